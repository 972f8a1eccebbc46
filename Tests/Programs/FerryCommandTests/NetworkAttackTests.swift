#if NATS && Records && Seal
    import Ferry
    import FerryGateway
    import FerryNATS
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand
    @testable import FerryRecords

    /// Attacks of a peer whose own key is trusted, over the sockets that peers come by: none wins, and the attacked peer loses nothing.
    @Suite(.tags(.program, .records, .hostility), .timeLimit(.minutes(5))) struct NetworkAttackTests {
        /// Whether what was heard is a refusal that says neither the key nor the store that it was taken for.
        private func isBareRefusal(_ heard: [RecordsMessage], _ rig: AttackRig, _ victim: RecordStore) -> Bool {
            guard case .end(let code, let text)? = heard.last, code == RecordsMessage.EndCode.identity.rawValue else {
                return false
            }
            let isTold = heard.dropLast().contains { if case .hello = $0 { false } else { true } }
            return !isTold && !text.contains(rig.fingerprint("victim")) && !text.contains("\(victim.id)")
        }

        @Test(arguments: AttackRig.Place.allCases) func anotherKeyGetsNothingForAStoresName(
            _ place: AttackRig.Place
        ) async throws {
            let rig = try AttackRig(place, port: 20_210)
            let (gateway, victim) = (try rig.store("gateway"), try rig.store("victim"))
            let running = try rig.hub(gateway)
            let name = "key:\(rig.fingerprint("victim"))"
            try await victim.append(Array("1".utf8), to: "gateway")
            try await rig.visit(victim)
            try await gateway.append(Array("for the victim alone".utf8), to: name)

            let attacker = Attacker(channel: try await rig.channel("mallory"))
            try? await attacker.greet(as: victim.id, victim.epoch)
            let heard = await attacker.heard()
            #expect(isBareRefusal(heard, rig, victim), "\(heard)")
            #expect(try await gateway.peers().map(\.name) == [name])

            try await victim.append(Array("2".utf8), to: "gateway")
            try await until("the victim's order") {
                try await rig.visit(victim)
                let channel = try await rig.channel("victim")
                _ = try? await victim.exchange(over: channel, with: "gateway", endingWhenIdle: .milliseconds(100))
                return try await victim.undone() == 1
            }
            #expect(try await rig.take(1, from: victim) == ["gateway: for the victim alone"])
            #expect(try await rig.take(2, from: gateway) == ["\(name): 1", "\(name): 2"])
            running.cancel()
            _ = await running.result
            for store in [gateway, victim] { await store.close() }
        }

        /// Numbers far ahead, in the victim's own opening: they are the attacker's own, and the victim's next records are taken.
        @Test(arguments: AttackRig.Place.allCases) func aForgedSequenceUnderAProvenKeyHarmsNobodyElse(
            _ place: AttackRig.Place
        ) async throws {
            let rig = try AttackRig(place, port: 20_220)
            let (gateway, victim) = (try rig.store("gateway"), try rig.store("victim"))
            let running = try rig.hub(gateway)
            try await victim.append(Array("1".utf8), to: "gateway")
            try await rig.visit(victim)

            let attacker = Attacker(channel: try await rig.channel("mallory"))
            try await attacker.greet(as: StoreID(high: 6, low: 6), victim.epoch)
            try await attacker.forge("FORGED", 1 << 40, victim.epoch)
            attacker.channel.close()

            try await victim.append(Array("2".utf8), to: "gateway")
            try await rig.visit(victim)
            let (own, other) = ("key:\(rig.fingerprint("victim"))", "key:\(rig.fingerprint("mallory"))")
            #expect(
                try await rig.take(3, from: gateway).sorted()
                    == ["\(own): 1", "\(own): 2", "\(other): FORGED"].sorted())
            running.cancel()
            _ = await running.result
            for store in [gateway, victim] { await store.close() }
        }

        /// At a gateway that does not know the victim yet: names of messages carry the key, so that nothing of the victim's is a duplicate.
        @Test(.enabled(if: NATSServer.isHere, "needs nats-server"), arguments: AttackRig.Place.allCases)
        func namesInTheStreamAreTheKeysOwn(_ place: AttackRig.Place) async throws {
            let rig = try AttackRig(place, port: 20_230)
            let server = try NATSServer()
            try await server.start()
            let victim = try rig.store("victim")
            let stores = [try rig.store("gateway0"), try rig.store("gateway1")]
            var running: [Task<Void, any Error>] = []
            var gateways: [Gateway] = []
            for (number, store) in stores.enumerated() {
                running.append(try rig.hub(store, at: number))
                var configuration = Gateway.Configuration(
                    servers: [server.url], name: "g\(number)", stream: "records")
                configuration.servers.requestTimeout = .seconds(30)
                configuration.servers.reconnectDelay = .milliseconds(20)
                configuration.lookInterval = .milliseconds(50)
                let gateway = try Gateway(store, configuration)
                gateways.append(gateway)
                running.append(Task { try await gateway.run() })
            }
            try await victim.append(Array("1".utf8), to: "gateway")
            try await rig.visit(victim)
            // The victim's store, opening and next number, where nobody knows them.
            let attacker = Attacker(channel: try await rig.channel("mallory", at: 1))
            try await attacker.greet(as: victim.id, victim.epoch)
            try await attacker.forge("FORGED", 2, victim.epoch)
            attacker.channel.close()

            var configuration = NATSConfiguration(servers: [server.url])
            configuration.requestTimeout = .unreached
            let connection = try await NATSConnection.connect(configuration)
            var troubles: [String?] = []
            try await until("the forged record is in the stream: \(troubles)") {
                var published = 0
                troubles = []
                for gateway in gateways {
                    let status = try await gateway.status()
                    published += status.published
                    troubles.append(status.trouble)
                }
                return published == 2
            }
            let count = try await connection.state(of: "records").messages
            #expect(count == 2)
            try await victim.append(Array("2".utf8), to: "gateway")
            try await rig.visit(victim)
            try await until("the victim's next record is in the stream") {
                try await gateways[0].status().published == 2
            }
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var texts: [String: [String]] = [:]
            while texts.values.joined().count < 3 {
                for delivery in try await consumer.take(atMost: 10, within: .seconds(1)) {
                    try await consumer.acknowledge(delivery)
                    texts[delivery.message.subject, default: []].append(
                        String(decoding: delivery.message.bytes, as: UTF8.self))
                }
            }
            #expect(
                texts == [
                    "ferry.records.key-\(rig.fingerprint("victim")).%": ["1", "2"],
                    "ferry.records.key-\(rig.fingerprint("mallory")).%": ["FORGED"],
                ])
            await connection.close()
            for task in running { task.cancel() }
            for task in running { _ = await task.result }
            for store in stores + [victim] { await store.close() }
        }

        /// A gateway of a fleet goes to a peer's address, and the attacker listens there.
        @Test(.enabled(if: NATSServer.isHere, "needs nats-server"), arguments: AttackRig.Place.allCases)
        func aFleetTakesNothingFromAnImpostor(_ place: AttackRig.Place) async throws {
            let rig = try AttackRig(place, port: 20_240)
            let server = try NATSServer()
            try await server.start()
            let (gateway, victim) = (try rig.store("gateway"), try rig.store("victim"))
            gateway.decideTrust { $0.certainty == .key ? .trusted : RecordStore.Trust($0) }
            let settings: [String: Any] = [
                "nats": ["servers": [server.url]], "name": "g", "store": "unused",
                "fleet": ["bucket": "leases", "leaseSeconds": 10, "peers": ["press-7": rig.address()]],
                "trust": [
                    "seal": "always", "identity": "\(rig.folder)/gateway", "trusted": "\(rig.folder)/trusted",
                ],
            ]
            let read = try GatewaySettings.read(try JSONSerialization.data(withJSONObject: settings), "file")
            let fleet = try await GatewayFleet(
                gateway, try #require(try read.leases()), try read.rounds(), over: nil,
                named: ["press-7": try TransferOptions.parse(rig.address())], try read.trustRequest(),
                try GatewayLog(nil, gateway: "g"))
            let running = Task { try await fleet.run(with: nil) }

            /// The victim, at its address, until nothing waits.
            func serve() async throws {
                let listener = try await rig.transport("victim").listen()
                for await link in listener.links {
                    _ = try? await victim.exchange(
                        over: try RecordsChannel.open(over: link) { $0 }, with: "gateway",
                        endingWhenIdle: .milliseconds(100))
                    if try await victim.waiting().allSatisfy({ $0.count == 0 }) { break }
                }
                listener.close()
            }
            try await victim.append(Array("1".utf8), to: "gateway")
            try await serve()
            try await gateway.append(Array("for the victim alone".utf8), to: "press-7")

            let listener = try await rig.transport("mallory").listen()
            var links = listener.links.makeAsyncIterator()
            var heard: [RecordsMessage] = []
            // A busy gateway may give a link up before its first word, and comes again.
            while heard.isEmpty {
                let attacker = Attacker(channel: try RecordsChannel.open(over: try #require(await links.next())) { $0 })
                try? await attacker.greet(as: victim.id, victim.epoch)
                heard = await attacker.heard()
            }
            #expect(isBareRefusal(heard, rig, victim), "\(heard)")
            listener.close()

            try await victim.append(Array("2".utf8), to: "gateway")
            try await serve()
            #expect(try await rig.take(2, from: gateway) == ["press-7: 1", "press-7: 2"])
            running.cancel()
            _ = await running.result
            for store in [gateway, victim] { await store.close() }
        }

        /// Silent connections, and half-open ones that stop within the handshake, come all the time: an honest peer is served at its first
        /// attempt, and its is the only peer on the gateway's disk. 200 of them, 10 000 with `FERRY_FULL`.
        @Test(arguments: AttackRig.Place.allCases) func silentConnectionsKeepNobodyOut(
            _ place: AttackRig.Place
        ) async throws {
            let rig = try AttackRig(place, port: 20_250)
            let (gateway, victim) = (try rig.store("gateway"), try rig.store("victim"))
            let running = try rig.hub(gateway)
            let stranger = try rig.transport(nil)
            // The length of a message of 32 bytes, as a handshake begins, and then nothing.
            let begun: [UInt8] = [32]
            var silent: [any Link] = []
            var slowest = Duration.zero
            let rounds = Effort.of(4, full: 20)
            for round in 1...rounds {
                for number in 0..<Effort.of(50, full: 500) {
                    try await until("a silent connection is there") {
                        guard let link = try? await stranger.connect(timeout: .seconds(5)) else { return false }
                        silent.append(link)
                        return true
                    }
                    if number % 2 == 0 { _ = try? silent.last?.trySend(begun.span.bytes) }
                    // The gateway has closed the oldest ones long since.
                    if silent.count > 200 { silent.removeFirst().close() }
                }
                try await victim.append(Array("\(round)".utf8), to: "gateway")
                let start = ContinuousClock.now
                let channel = try RecordsChannel.open(
                    over: try await rig.transport("victim").connect(timeout: .unreached)
                ) { $0 }
                let summary = try await victim.exchange(
                    over: channel, with: "gateway", endingWhenIdle: .milliseconds(50))
                slowest = max(slowest, ContinuousClock.now - start)
                #expect(summary.committed == 1, "\(round): \(summary)")
            }
            #expect(try await gateway.peers().map(\.name) == ["key:\(rig.fingerprint("victim"))"])
            #expect(try await gateway.undone() == rounds)
            // Alone on a machine that does nothing else, as with FERRY_FULL.
            if Effort.isFull { #expect(slowest < .seconds(2)) }
            for link in silent { link.close() }
            running.cancel()
            _ = await running.result
            for store in [gateway, victim] { await store.close() }
        }
    }
#endif
