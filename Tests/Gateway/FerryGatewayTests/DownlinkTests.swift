#if NATS && Records
    import Ferry
    import FerryNATS
    import FerryRecords
    import Foundation
    import GatewayRig
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import RecordsWorker

    /// Messages for peers: from a stream of a real server, through gateways' stores, onto a peer's disk.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct DownlinkTests {
        /// A server, and a peer's store.
        private final class Setting: Sendable {
            let server: NATSServer
            let peer: RecordStore

            init() throws {
                server = try NATSServer()
                peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            }

            var configuration: Downlink.Configuration {
                var configuration = Downlink.Configuration(servers: [server.url], stream: "down")
                configuration.servers.reconnectDelay = .milliseconds(20)
                configuration.servers.connectTimeout = .unreached
                // A request that a killed server has taken with it is made again after that.
                configuration.servers.requestTimeout = .seconds(10)
                configuration.lookInterval = .milliseconds(200)
                return configuration
            }

            func store(_ name: String, largest: Int = 1000) throws -> RecordStore {
                var configuration = RecordStore.Configuration()
                configuration.greeting = configuration.patience
                configuration.largestRecord = largest
                return try RecordStore.open(server.folder.appending(path: name).path(), configuration: configuration)
            }

            func connect() async throws -> NATSConnection {
                var servers = configuration.servers
                servers.requestTimeout = .unreached
                return try await NATSConnection.connect(servers)
            }

            /// One exchange of a gateway with the peer, which knows all gateways by one name.
            func visit(_ gateway: RecordStore) async throws {
                let (near, far) = PacketLink.pair()
                let channels = try (
                    MessageChannel(over: near, codec: BytesCodec()), MessageChannel(over: far, codec: BytesCodec())
                )
                try? await peer.forgetIdentity(of: "gateway")
                async let sent = gateway.exchange(over: channels.0, with: "ada:1", endingWhenIdle: .milliseconds(100))
                async let received = peer.exchange(
                    over: channels.1, with: "gateway", endingWhenIdle: .milliseconds(100))
                _ = try await (sent, received)
            }
        }

        /// Has them in the stream, as an app of the fleet's owner does.
        private func publish(_ numbers: ClosedRange<Int>, _ streams: [String], _ connection: NATSConnection)
            async throws
        {
            let publisher = try await NATSPublisher(connection, to: "down", timeout: .unreached)
            for number in numbers {
                for stream in streams {
                    // Under a name, so that what a killed server has is not there twice.
                    let message = NATSMessage("ferry.commands.ada%3A1.\(stream)", bytes: Array("\(number)".utf8))
                    _ = try await publisher.publish(.init(message, id: "\(stream)/\(number)"))
                }
            }
        }

        /// What has come to the peer so far, by stream.
        private func take(_ peer: RecordStore, into found: inout [String: [Int]]) async throws {
            while try await peer.undone() > 0 {
                var inbox = peer.inbox.makeAsyncIterator()
                let record = try #require(try await inbox.next())
                let origin = try #require(record.origin)
                #expect(origin.name == "down")
                found[origin.stream, default: []].append(
                    try #require(Int(String(decoding: record.bytes, as: UTF8.self))))
                try await record.done()
            }
        }

        @Test func eachMessageComesOnceThoughGatewaysTakeTurnsAndTheServerIsKilled() async throws {
            let setting = try Setting()
            try await setting.server.start()
            let stores = try [setting.store("one"), setting.store("two")]
            let downlinks = try stores.map { try Downlink($0, setting.configuration, servesAll: false) }
            let running = downlinks.map { downlink in Task { try await downlink.run() } }
            let connection = try await setting.connect()
            try await until("both connections") { downlinks.allSatisfy { $0.status.isConnected } }
            try await publish(1...20, ["s", "%"], connection)
            var found: [String: [Int]] = [:]
            let all = ["s": Array(1...60), "": Array(1...60)]
            for turn in 0... {
                let (downlink, store) = (downlinks[turn % 2], stores[turn % 2])
                downlink.begin("ada:1")
                if turn == 1 {
                    await setting.server.kill()
                    try await setting.server.start()
                }
                if turn < 3, turn > 0 {
                    try await publish(20 * turn + 1...20 * turn + 20, ["s", "%"], connection)
                }
                // Somewhere in the middle of what it has read.
                let before = found
                while found == before, found != all {
                    try await setting.visit(store)
                    try await take(setting.peer, into: &found)
                }
                // In the end also until all has left the stream, but for its very last message.
                if found == all {
                    try await until("the end of the stream") {
                        try await setting.visit(store)
                        return try await connection.state(of: "down").messages <= 1
                    }
                    break
                }
                await downlink.stop("ada:1")
            }
            try await take(setting.peer, into: &found)
            #expect(found == all)
            #expect(downlinks.map(\.status.carried).reduce(0, +) >= 60)
            for task in running {
                task.cancel()
                let error = await #expect(throws: FerryError.self) { try await task.value }
                #expect(error?.code == .cancelled)
            }
            for store in stores + [setting.peer] { await store.close() }
        }

        @Test func oneGatewayAloneCarriesForWhoeverHasMessages() async throws {
            let setting = try Setting()
            try await setting.server.start()
            let store = try setting.store("one", largest: 100)
            let journal = GatewayJournal()
            let downlink = try Downlink(store, setting.configuration, observer: journal)
            let running = Task { try await downlink.run() }
            let connection = try await setting.connect()
            try await until("a connection") { downlink.status.isConnected }
            try await publish(1...3, ["s"], connection)
            // Larger than the store takes: it says so, and what was before it goes on.
            let publisher = try await NATSPublisher(connection, to: "down", timeout: .unreached)
            let large = NATSMessage("ferry.commands.ada%3A1.s", bytes: Array(repeating: 65, count: 200))
            let receipt = try await publisher.publish(.init(large, id: "large"))
            try await publish(4...5, ["s"], connection)
            try await until("trouble with its size") {
                downlink.status.trouble?.contains("largestRecord") == true
            }
            try await connection.remove("ferry.commands.ada%3A1.s", through: receipt.sequence, in: "down")
            var found: [String: [Int]] = [:]
            while found["s"]?.last != 5 {
                try await setting.visit(store)
                try await take(setting.peer, into: &found)
            }
            #expect(found["s"]?.suffix(2) == [4, 5])
            try await until("the end of the stream") {
                try await setting.visit(store)
                return try await connection.state(of: "down").messages <= 1
            }
            running.cancel()
            _ = await running.result
            #expect(journal.servers(.downlink).count == 1 && journal.servers(.downlink).first != "")
            #expect(journal.carried == downlink.status.carried && journal.carried > 0)
            #expect(journal.heldUp.contains(.messageTooLarge))
            #expect(
                journal.events.contains {
                    if case .disconnected(.downlink, isEnding: true) = $0 { true } else { false }
                })
            for store in [store, setting.peer] { await store.close() }
        }

        @Test func aStreamThatCannotBeReadOneByOneIsRefused() async throws {
            let setting = try Setting()
            try await setting.server.start()
            #expect(try await Downlink.check(setting.configuration) == nil)
            let connection = try await setting.connect()
            var shape = setting.configuration.stream
            shape.allowsDirectReading = false
            try await connection.open(shape)
            let error = await #expect(throws: FerryError.self) { try await Downlink.check(setting.configuration) }
            #expect(error?.code == .natsWrongShape && error?.message.contains("--allow-direct") == true)
            let store = try setting.store("one")
            let downlink = try Downlink(store, setting.configuration)
            let second = await #expect(throws: FerryError.self) { try await downlink.run() }
            #expect(second?.code == .natsWrongShape)
            await store.close()
            await setting.peer.close()
        }
    }

    /// The parts of a downlink that need no server.
    @Suite(.tags(.records)) struct DownlinkValueTests {
        @Test func aWindowTellsWhatCanLeaveTheStream() {
            var window = DownlinkWindow(.init(records: 5, bytes: 100))
            #expect(window.hasRoom && window.isEmpty && window.next == 1 && window.room == 5)
            window.put([(place: 7, bytes: 10), (place: 9, bytes: 10)], of: "a", through: 12)
            window.put([(place: 8, bytes: 10)], of: "b", through: 3)
            #expect(window.next == 10 && window.records == 3 && window.room == 2)
            #expect(window.committed("a", through: 10) == 0 && window.committed("c", through: 10) == 0)
            #expect(!window.hasRemovals && window.removals(before: 20).isEmpty)
            #expect(window.committed("a", through: 11) == 1 && window.committed("a", through: 11) == 0)
            #expect(window.records == 2 && window.hasRemovals)
            #expect(window.removals(before: 20) == [.init(subject: "a", through: 7)])
            #expect(window.committed("a", through: 90) == 1 && window.committed("b", through: 3) == 1)
            #expect(window.isEmpty && window.next == 10)
            // The stream's last message stays, until there is another one.
            #expect(window.removals(before: 9) == [.init(subject: "a", through: 8), .init(subject: "b", through: 8)])
            #expect(window.hasRemovals && window.removals(before: 9).isEmpty)
            #expect(window.removals(before: 10) == [.init(subject: "a", through: 9)])
            #expect(!window.hasRemovals)
            window.put([(place: 10, bytes: 100)], of: "a", through: 13)
            #expect(!window.hasRoom && window.room == 0)
            _ = window.committed("a", through: 13)
            #expect(window.hasRoom)
        }

        @Test func whatIsHeardIsLookedForAFewTimes() {
            func at(_ milliseconds: Int) -> Timestamp { .zero + .milliseconds(milliseconds) }
            var times = LookTimes(interval: .seconds(60))
            #expect(times.isDue(at: at(0)))
            times.looked(found: false, at: at(0))
            #expect(times.next == at(60_000) && !times.isDue(at: at(59_999)))
            times.heard(at: at(100))
            #expect(times.isDue(at: at(100)))
            for (now, next) in [(100, 150), (150, 400), (400, 1400), (1400, 5400), (5400, 65_400)] {
                times.looked(found: false, at: at(now))
                #expect(times.next == at(next))
            }
            times.looked(found: true, at: at(65_400))
            #expect(times.isDue(at: at(65_400)))
        }

        @Test func subjectsNameAPeerAndAStream() {
            let names = DownlinkNames(prefix: "ferry.commands")
            #expect(names.pattern("ada:1") == "ferry.commands.ada%3A1.*" && names.everything == "ferry.commands.>")
            for (peer, stream, subject) in [
                ("ada:1", "s", "ferry.commands.ada%3A1.s"), ("ada", "", "ferry.commands.ada.%"),
                ("ä.b", "c d", "ferry.commands.%C3%A4%2Eb.c%20d"),
            ] {
                #expect(names.subject(peer, stream) == subject)
                let address = names.address(subject)
                #expect(address?.peer == peer && address?.stream == stream)
            }
            for subject in [
                "ferry.commands.ada", "ferry.commands.ada.s.t", "ferry.command.ada.s", "ferry.commands.%.s",
                "ferry.commands.ada.%4", "ferry.commands.ada.%FF", "ferry.commandsx.ada.s",
                // No store keeps a NUL, and what is escaped otherwise is not found again when the peer has it.
                "ferry.commands.ada.a%00b", "ferry.commands.ada%00.s", "ferry.commands.ada%3a1.s",
                "ferry.commands.ada.%61", "ferry.commands.ada.%+A",
            ] {
                #expect(names.address(subject) == nil, "\(subject)")
            }
        }

        @Test func configurationsAreChecked() {
            func code(_ change: (inout Downlink.Configuration) -> Void) -> FerryError.Code? {
                var configuration = Downlink.Configuration(servers: ["nats://localhost"])
                change(&configuration)
                do throws(FerryError) { try configuration.check() } catch { return error.code }
                return nil
            }
            #expect(code { _ in } == nil)
            #expect(code { $0.prefix = "a..b" } == .invalidConfiguration)
            #expect(code { $0.stream.name = "a b" } == .invalidConfiguration)
            #expect(code { $0.maximumRecords = 0 } == .invalidConfiguration)
            #expect(code { $0.maximumBytes = 0 } == .invalidConfiguration)
            #expect(code { $0.lookInterval = .zero } == .invalidConfiguration)
        }
    }
#endif
