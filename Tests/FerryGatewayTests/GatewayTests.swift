#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryGateway
    import FerryLoopback
    import FerryNATS
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    /// A peer, a gateway and a server: records go from store to store, and from there to a stream.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(3)))
    struct GatewayTests {
        /// Stores in a folder that goes with the test.
        private final class Setting: Sendable {
            let folder: URL
            let server: NATSServer
            let peer: RecordStore
            let store: RecordStore
            let radio = LoopbackRadio()

            init(_ change: (inout RecordStore.Configuration) -> Void = { _ in }) throws {
                server = try NATSServer()
                folder = server.folder
                peer = try RecordStore.open(folder.appending(path: "peer").path())
                var configuration = RecordStore.Configuration()
                configuration.largestRecord = 1000
                change(&configuration)
                store = try RecordStore.open(folder.appending(path: "gateway").path(), configuration: configuration)
            }

            func configuration() -> Gateway.Configuration {
                var configuration = Gateway.Configuration(servers: [server.url], name: "g1", stream: "records")
                configuration.servers.reconnectDelay = .milliseconds(20)
                configuration.servers.connectTimeout = .seconds(30)
                configuration.servers.requestTimeout = .seconds(30)
                configuration.retention = .milliseconds(500)
                configuration.lookInterval = .milliseconds(50)
                // What was on its way when the server was killed is waited for so long, and published again.
                configuration.patience = .seconds(2)
                return configuration
            }

            /// Carries what waits in the peer's store to the gateway's.
            func collect() async throws {
                let layout = try GATTConfiguration(
                    service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
                let near = GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
                let far = GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
                let listener = try await far.listen()
                defer { listener.close() }
                async let connecting = near.connect(timeout: .seconds(30))
                var links = listener.links.makeAsyncIterator()
                let come = await links.next()
                let other = try #require(come)
                let link = try await connecting
                let channels = try (
                    MessageChannel(over: link, codec: BytesCodec()), MessageChannel(over: other, codec: BytesCodec())
                )
                async let sent = peer.exchange(over: channels.0, with: "gateway")
                async let received = store.exchange(over: channels.1, with: "ada")
                try await peer.drained("gateway", within: .seconds(60))
                try await peer.endExchange(with: "gateway")
                _ = try? await (sent, received)
            }

            func close() async {
                await peer.close()
                await store.close()
            }
        }

        private func append(_ numbers: Range<Int>, _ setting: Setting) async throws {
            for number in numbers {
                try await setting.peer.append(Array("\(number)".utf8), to: "gateway", stream: "s\(number % 3)")
            }
        }

        /// A consumer's table: what the stream has, upserted by name; and the numbers of each stream in the order of arrival.
        private func table(_ connection: NATSConnection, _ count: Int) async throws -> [String: [Int]] {
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var names: Set<String> = []
            var numbers: [String: [Int]] = [:]
            while names.count < count {
                for delivery in try await consumer.take(atMost: 100, within: .seconds(1)) {
                    try await consumer.acknowledge(delivery)
                    let name = try #require(delivery.message["Nats-Msg-Id"])
                    guard names.insert(name).inserted else { continue }
                    let stream = try #require(delivery.message["Ferry-Stream"])
                    let number = try #require(Int(String(decoding: delivery.message.bytes, as: UTF8.self)))
                    numbers[stream, default: []].append(number)
                }
            }
            return numbers
        }

        private func expected(_ range: Range<Int>) -> [String: [Int]] {
            Dictionary(grouping: range) { "s\($0 % 3)" }
        }

        @Test func everyRecordIsInTheStreamOnceThoughTheServerIsKilled() async throws {
            let setting = try Setting()
            try await append(0..<120, setting)
            try await setting.collect()
            try await setting.server.start()
            let gateway = try Gateway(setting.store, setting.configuration())
            let running = Task { try await gateway.run() }
            while try await gateway.status().published < 20 { try await Task.sleep(for: .milliseconds(5)) }
            await setting.server.kill()
            try await append(120..<240, setting)
            try await setting.collect()
            try await setting.server.start()
            // All of it is there, and then leaves the inbox.
            while try await gateway.status().waiting > 0 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(try await gateway.status().repetitions >= 1)
            let connection = try await NATSConnection.connect(NATSConfiguration(servers: [setting.server.url]))
            #expect(try await table(connection, 240) == expected(0..<240))
            #expect(try await connection.state(of: "records").messages == 240)
            running.cancel()
            #expect(await running.result.failureCode == .cancelled)
            await setting.close()
        }

        @Test func aFullStreamStopsThePeerAndNothingIsLost() async throws {
            let setting = try Setting {
                $0.largestRecord = 100
                $0.inboxCapacity = 2000
            }
            try await setting.server.start()
            var configuration = setting.configuration()
            configuration.stream.maximumMessages = 20
            let gateway = try Gateway(setting.store, configuration)
            let running = Task { try await gateway.run() }
            try await append(0..<150, setting)
            let collecting = Task { try await setting.collect() }
            // The stream takes 20, the inbox as much as it has credit for, and the peer keeps the rest.
            var status = try await gateway.status()
            while !(status.trouble ?? "").contains("Have consumers take messages out") {
                try await Task.sleep(for: .milliseconds(5))
                status = try await gateway.status()
            }
            #expect(status.published >= 20 && status.waiting < 100)
            #expect(try await setting.peer.waiting().reduce(0) { $0 + $1.count } > 0)
            let connection = try await NATSConnection.connect(NATSConfiguration(servers: [setting.server.url]))
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
            #expect(numbers == expected(0..<150))
            try await collecting.value
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test func whatIsInTheWayIsSaidAndRecordsWait() async throws {
            let setting = try Setting()
            try await setting.server.start()
            let connection = try await NATSConnection.connect(NATSConfiguration(servers: [setting.server.url]))
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
