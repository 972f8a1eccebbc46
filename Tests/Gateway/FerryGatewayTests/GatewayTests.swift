#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import GatewayRig
    import TestSupport
    import Testing

    /// A peer, a gateway and a server: records go from store to store, and from there to a stream.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct GatewayTests {
        @Test func everyRecordIsInTheStreamOnceThoughTheServerIsKilled() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<120)
            try await setting.collect()
            try await setting.server.start()
            let gateway = try Gateway(setting.store, setting.configuration())
            let running = Task { try await gateway.run() }
            try await until("20 records") { try await gateway.status().published >= 20 }
            await setting.server.kill()
            try await setting.append(120..<240)
            try await setting.collect()
            try await setting.server.start()
            // All of it is there, and then leaves the inbox.
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
            #expect(try await gateway.status().repetitions >= 1)
            let connection = try await setting.connect()
            #expect(try await GatewaySetting.table(connection, 240) == GatewaySetting.expected(0..<240))
            #expect(try await connection.state(of: "records").messages == 240)
            running.cancel()
            #expect(await running.result.failureCode == .cancelled)
            await setting.close()
        }

        @Test func aFullStreamStopsThePeerAndNothingIsLost() async throws {
            let setting = try GatewaySetting {
                $0.largestRecord = 100
                $0.inboxCapacity = 2000
            }
            try await setting.server.start()
            var configuration = setting.configuration()
            configuration.stream.maximumMessages = 20
            let gateway = try Gateway(setting.store, configuration)
            let running = Task { try await gateway.run() }
            try await setting.append(0..<150)
            let collecting = Task { try await setting.collect() }
            // The stream takes 20, the inbox as much as it has credit for, and the peer keeps the rest.
            var status = try await gateway.status()
            try await until("a full stream, not \(status)") {
                status = try await gateway.status()
                return status.trouble?.contains("Have consumers take messages out") == true
            }
            #expect(status.published >= 20 && status.waiting < 100)
            #expect(try await setting.peer.waiting().reduce(0) { $0 + $1.count } > 0)
            let connection = try await setting.connect()
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var numbers: [String: [Int]] = [:]
            var count = 0
            while count < 150 {
                for delivery in try await consumer.take(atMost: 100, within: .milliseconds(200)) {
                    try await consumer.acknowledge(delivery)
                    let stream = try #require(delivery.message["Ferry-Stream"])
                    numbers[stream, default: []].append(
                        Int(String(decoding: delivery.message.bytes, as: UTF8.self)) ?? -1)
                    count += 1
                }
                try await connection.publish(
                    NATSMessage(
                        "$JS.API.STREAM.PURGE.records",
                        bytes: Array("{\"seq\":\(count + 1)}".utf8)))
            }
            #expect(numbers == GatewaySetting.expected(0..<150))
            try await collecting.value
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        /// What somebody has made of the stream, with the server's own interface.
        private func change(_ stream: String, on connection: NATSConnection) async throws {
            let shape = """
                {"name":"records","subjects":["ferry.records.>"],"retention":"limits","storage":"file","num_replicas":1,
                "max_consumers":-1,"max_bytes":1073741824,"max_age":0,"duplicate_window":600000000000,\(stream)}
                """
            try await connection.publish(NATSMessage("$JS.API.STREAM.UPDATE.records", bytes: Array(shape.utf8)))
        }

        @Test func aStreamThatIsMadeToLoseRecordsGetsNone() async throws {
            let setting = try GatewaySetting()
            try await setting.server.start()
            let gateway = try Gateway(setting.store, setting.configuration())
            let running = Task { try await gateway.run() }
            let connection = try await setting.connect()
            try await until("a stream") { try await gateway.status().isConnected }
            try await change(#""discard":"old","max_msgs":10"#, on: connection)
            try await setting.append(0..<120)
            try await setting.collect()
            try await until("the operator is told") {
                let status = try await gateway.status()
                return !status.isConnected && status.trouble?.contains("--discard=new") == true
            }
            // A record that comes now waits.
            let published = try await gateway.status().published
            try await setting.append(120..<150)
            try await setting.collect()
            #expect(try await gateway.status().waiting >= 140)
            #expect(try await gateway.status().published == published)
            try await change(#""discard":"new","max_msgs":-1"#, on: connection)
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
            // What the stream had kept comes before what it is given again.
            let table = try await GatewaySetting.table(connection, 150).mapValues { $0.sorted() }
            #expect(table == GatewaySetting.expected(0..<150))
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test(arguments: [true, false]) func aStreamThatIsRemovedIsMadeAgain(_ creates: Bool) async throws {
            let setting = try GatewaySetting()
            try await setting.server.start()
            let connection = try await setting.connect()
            var configuration = setting.configuration()
            try await connection.open(configuration.stream)
            configuration.createsStream = creates
            let gateway = try Gateway(setting.store, configuration)
            let running = Task { try await gateway.run() }
            try await setting.append(0..<60)
            try await setting.collect()
            try await until("20 records") { try await gateway.status().published >= 20 }
            try await connection.removeStream("records")
            if !creates {
                try await until("the operator is told") {
                    try await gateway.status().trouble?.contains("Create it") == true
                }
                try await connection.open(configuration.stream)
            }
            try await setting.append(60..<90)
            try await setting.collect()
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
            let table = try await GatewaySetting.table(connection, 30)
            #expect(Set(table.values.joined()).isSuperset(of: 60..<90))
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test func whatIsInTheWayIsSaidAndRecordsWait() async throws {
            let setting = try GatewaySetting()
            try await setting.server.start()
            let connection = try await setting.connect()
            var configuration = setting.configuration()
            #expect(try await Gateway.check(configuration, largestRecord: 1000) == nil)
            do {
                _ = try await Gateway.check(configuration, largestRecord: 1 << 20)
                Issue.record("a record may be too large")
            } catch { #expect(error.code == .messageTooLarge) }
            var narrow = configuration.stream
            narrow.duplicateWindow = .seconds(100)
            try await connection.open(narrow)
            configuration.stream.duplicateWindow = .seconds(600)
            let gateway = try Gateway(setting.store, configuration)
            let code = await Task { try await gateway.run() }.result.failureCode
            #expect(code == .natsWrongShape)
            configuration.createsStream = false
            do {
                _ = try await Gateway.check(configuration, largestRecord: 1000)
                Issue.record("the window is too short")
            } catch {
                #expect(error.code == .natsWrongShape && error.message.contains("--dupe-window=600s"), "\(error)")
            }
            await setting.server.kill()
            do {
                _ = try await Gateway.check(configuration, largestRecord: 1000)
                Issue.record("there is no server")
            } catch { #expect(error.code == .natsNoServer, "\(error)") }
            await setting.close()
        }
    }

    extension Result where Failure == any Error {
        fileprivate var failureCode: FerryError.Code? {
            if case .failure(let error) = self { return (error as? FerryError)?.code }
            return nil
        }
    }
#endif
