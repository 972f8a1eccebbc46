#if NATS && Records
    import Ferry
    import FerryNATS
    import FerryRecords
    import FerryTesting
    import Foundation
    import GatewayRig
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import RecordsWorker

    /// A caller, a real server, a gateway and a peer: commands go down, and answers come up.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct PeerCommandTests {
        /// A gateway with both directions, and a peer whose store can be opened again.
        private final class Setting: Sendable {
            let server: NATSServer
            let store: RecordStore
            let peer: Mutex<RecordStore>
            private let running = Mutex<[Task<Void, any Error>]>([])

            init() async throws {
                let rig = try GatewaySetting { $0.largestRecord = 100_000 }
                (server, store) = (rig.server, rig.store)
                peer = Mutex(rig.peer)
                try await server.start()
                var records = rig.configuration()
                var messages = Downlink.Configuration(servers: [server.url], stream: "down")
                messages.servers = records.servers
                messages.servers.requestTimeout = .seconds(10)
                messages.lookInterval = .milliseconds(200)
                // The server has room for both.
                (records.stream.maximumBytes, messages.stream.maximumBytes) = (10_000_000, 10_000_000)
                let gateway = try Gateway(store, records)
                let downlink = try Downlink(store, messages)
                // One after the other: a server that has just started may lose one of two requests that come at once.
                running.withLock { $0.append(Task { try await gateway.run() }) }
                try await until("the stream of records") { try await gateway.status().isConnected }
                running.withLock { $0.append(Task { try await downlink.run() }) }
                try await until("the stream of messages") { downlink.status.isConnected }
            }

            var commands: PeerCommands.Configuration {
                var configuration = PeerCommands.Configuration(servers: [server.url])
                (configuration.downlink, configuration.stream) = ("down", "records")
                configuration.servers.reconnectDelay = .milliseconds(20)
                configuration.servers.connectTimeout = .unreached
                configuration.servers.requestTimeout = .seconds(10)
                configuration.pieceSize = 1000
                return configuration
            }

            var peerStore: RecordStore { peer.withLock { $0 } }

            /// One exchange of the gateway with the peer.
            func visit() async throws {
                let (near, far) = PacketLink.pair()
                let channels = try (
                    MessageChannel(over: near, codec: BytesCodec()), MessageChannel(over: far, codec: BytesCodec())
                )
                let peer = peerStore
                async let sent = store.exchange(over: channels.0, with: "ada:1", endingWhenIdle: .milliseconds(50))
                async let received = peer.exchange(over: channels.1, with: "gateway", endingWhenIdle: .milliseconds(50))
                _ = try await (sent, received)
            }

            /// The peer's end and its next beginning.
            func restartPeer() async throws {
                await peerStore.close()
                let next = try RecordStore.open(server.folder.appending(path: "peer").path())
                peer.withLock { $0 = next }
            }

            func close() async {
                for task in running.withLock({ $0 }) {
                    task.cancel()
                    _ = await task.result
                }
                await store.close()
                await peerStore.close()
            }
        }

        /// Visits the peer and runs its commands, until `body` has ended.
        private func serving<Value: Sendable>(
            _ setting: Setting, _ handlers: [String: CommandHandler],
            _ body: @escaping @Sendable () async throws -> Value
        ) async throws -> Value {
            try await withThrowingTaskGroup(of: Value?.self) { group in
                group.addTask {
                    while !Task.isCancelled { try? await setting.visit() }
                    return nil
                }
                group.addTask {
                    while !Task.isCancelled {
                        // Of each of the peer's openings in its turn.
                        let store = setting.peerStore
                        let desk = CommandDesk(store, handlers)
                        do {
                            for try await record in store.inbox { _ = try await desk.take(record) }
                        } catch let error as FerryError where [.closed, .cancelled].contains(error.code) {}
                        await Task.yield()
                    }
                    return nil
                }
                group.addTask { try await body() }
                defer { group.cancelAll() }
                while let next = try await group.next() { if let value = next { return value } }
                throw CancellationError()
            }
        }

        @Test func aCommandIsRunOnceAndAnsweredThoughServerAndPeerAreEnded() async throws {
            let setting = try await Setting()
            let runs = Mutex<[String: Int]>([:])
            let handlers: [String: CommandHandler] = [
                "say": .once { command in
                    runs.withLock { $0[String(decoding: command.body, as: UTF8.self), default: 0] += 1 }
                    return command.body
                },
                "fail": .once { _ in throw FerryError(.closed, "There is no power.") },
            ]
            let answers = try await serving(setting, handlers) { [configuration = setting.commands] in
                try await PeerCommands.with(configuration) { commands throws(FerryError) in
                    var answers: [CommandAnswer] = []
                    for number in 0..<12 {
                        let sent = try await commands.send(
                            "say", Array("\(number)".utf8), to: "ada:1", within: .unreached)
                        do {
                            if number == 3 {
                                await setting.server.kill()
                                try await setting.server.start()
                            }
                            if number % 4 == 2 { try await setting.restartPeer() }
                        } catch { throw FerryError(.requestFailed, "\(error)") }
                        answers.append(try await commands.answer(to: sent))
                    }
                    answers.append(try await commands.call("fail", of: "ada:1", within: .unreached))
                    answers.append(try await commands.call("fly", of: "ada:1", within: .unreached))
                    return answers
                }
            }
            // An interrupted one was begun, and is not begun again; all others were done.
            for (number, answer) in answers.prefix(12).enumerated() {
                if answer.outcome == .done {
                    #expect(answer.body == Array("\(number)".utf8))
                } else {
                    #expect(answer.outcome == .interrupted)
                }
            }
            #expect(runs.withLock { $0.values.allSatisfy { $0 == 1 } && $0.count <= 12 })
            #expect(answers.filter { $0.outcome == .interrupted }.count <= 3)
            #expect(answers.suffix(2).map(\.outcome) == [.failed, .unknown])
            #expect(answers[12].text == "There is no power.")
            await setting.close()
        }

        @Test func aPeerThatIsAwayIsToldOfAndDoesNotBeginItLater() async throws {
            let setting = try await Setting()
            var configuration = setting.commands
            configuration.wayBack = .milliseconds(10)
            let runs = Mutex(0)
            try await PeerCommands.with(configuration) { commands throws(FerryError) in
                do throws(FerryError) {
                    _ = try await commands.call("say", of: "ada:1", within: .milliseconds(20))
                    Issue.record("the peer was away, and it has answered")
                } catch {
                    #expect(error.code == .timedOut && error.fate == .mayHaveArrived, "\(error)")
                }
            }
            // It comes after its time, and the next one in time.
            let answer = try await serving(
                setting,
                [
                    "say": .once { _ in
                        runs.withLock { $0 += 1 }; return []
                    }
                ]
            ) { [configuration = setting.commands] in
                try await PeerCommands.with(configuration) { commands throws(FerryError) in
                    try await commands.call("say", of: "ada:1", within: .unreached)
                }
            }
            #expect(answer.outcome == .done && runs.withLock { $0 } == 1)
            await setting.close()
        }

        /// Who may publish records can write anything: another peer's answer, or none at all.
        @Test func anotherPeersAnswerIsNotTaken() async throws {
            let setting = try await Setting()
            try await PeerCommands.with(setting.commands) { commands throws(FerryError) in
                let sent = try await commands.send("say", to: "ada:1", within: .unreached)
                let connection = try await NATSConnection.connect(setting.commands.servers)
                let publisher = try await NATSPublisher(connection, to: "records")
                func forge(_ peer: String?, _ bytes: [UInt8]) async throws(FerryError) {
                    let headers = peer.map { [NATSMessage.Header("Ferry-Peer", $0)] } ?? []
                    _ = try await publisher.publish(
                        .init(
                            NATSMessage("ferry.records.x.ferry-answers", headers: headers, bytes: bytes),
                            id: "\(CommandID.random())"))
                }
                let forged = CommandAnswer(sent.id, .done, time: 0, Array("forged".utf8)).encoded
                try await forge("bob", forged)
                try await forge(nil, forged)
                try await forge("ada%3A1", [1, 2, 3])
                try await forge("ada%3A1", CommandAnswer(.random(), .done, time: 0, []).encoded)
                // The caller trusts the gateways' stream: it cannot tell this one from the peer's own.
                try await forge("ada%3A1", CommandAnswer(sent.id, .failed, time: 0, Array("own".utf8)).encoded)
                let answer = try await commands.answer(to: sent)
                #expect(answer.outcome == .failed && answer.text == "own")
                await connection.close()
            }
            await setting.close()
        }

        /// How far a file is, and what was read of it.
        private final class Seen: Sendable {
            let held = Mutex<UInt64>(0)
            let offsets = Mutex<[UInt64]>([])
        }

        @Test func aFileGoesOnWhereItWasThoughItsSenderAndThePeerAreEnded() async throws {
            let setting = try await Setting()
            let folder = setting.server.folder.appending(path: "files").path()
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            var random = SplitMix64(seed: 5)
            let content = (0..<50_500).map { _ in UInt8.random(in: 0...255, using: &random) }
            let file = try OfferedFile(
                "firmware.bin", size: UInt64(content.count), checksum: OfferedFile.checksum(adding: content))
            let seen = Seen()
            try await serving(setting, FileDrop(folder).handlers) { [configuration = setting.commands] in
                /// One sender, which is ended when so much is there.
                func send(upTo limit: UInt64) async throws {
                    let sending = Task {
                        try await PeerCommands.with(configuration) { commands throws(FerryError) in
                            try await commands.bring(
                                file, to: "ada:1", within: .unreached,
                                progress: { held in seen.held.withLock { $0 = max($0, held) } },
                                read: { offset, count throws(FerryError) in
                                    seen.offsets.withLock { $0.append(offset) }
                                    return Array(content[Int(offset)..<Int(offset) + count])
                                })
                        }
                    }
                    if limit < file.size {
                        try await until("\(limit) bytes") { seen.held.withLock { $0 } >= limit }
                        sending.cancel()
                        _ = await sending.result
                    } else {
                        try await sending.value
                    }
                }
                try await send(upTo: 10_000)
                try await setting.restartPeer()
                try await send(upTo: 30_000)
                seen.offsets.withLock { $0 = [] }
                try await send(upTo: file.size)
            }
            #expect(FileManager.default.contents(atPath: folder + "/firmware.bin") == Data(content))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["firmware.bin"])
            // The third sender began where the second was, and read nothing twice.
            let offsets = seen.offsets.withLock { $0 }
            #expect(offsets.first.map { $0 >= 30_000 } == true && Set(offsets).count == offsets.count, "\(offsets)")
            await setting.close()
        }

        @Test func aPeerThatTakesNoFileSaysWhy() async throws {
            let setting = try await Setting()
            let error = try await serving(setting, [:]) { [configuration = setting.commands] in
                try await PeerCommands.with(configuration) { commands throws(FerryError) -> FerryError? in
                    do throws(FerryError) {
                        try await commands.bring(
                            try OfferedFile("a", size: 1, checksum: 0), to: "ada:1", within: .unreached,
                            read: { _, _ throws(FerryError) in [1] })
                        return nil
                    } catch { return error }
                }
            }
            #expect(
                error?.code == .requestFailed && error?.message.contains("ferry-file-offer") == true, "\(error as Any)")
            await setting.close()
        }

        @Test(arguments: [
            ("a b", "ada:1", Duration.seconds(1)), ("a", "ada:1", .zero), ("a", "ada:1", .seconds(31 * 86_400)),
        ]) func whatCannotBeSentIsRefused(_ name: String, _ peer: String, _ limit: Duration) async throws {
            let setting = try await Setting()
            try await PeerCommands.with(setting.commands) { commands throws(FerryError) in
                do throws(FerryError) {
                    _ = try await commands.send(name, to: peer, within: limit)
                    Issue.record("it was sent")
                } catch { #expect(error.code == .invalidConfiguration && error.fate == .nothingSent, "\(error)") }
            }
            await setting.close()
        }

        @Test func aMissingStreamIsToldAtOnce() async throws {
            let setting = try await Setting()
            for change in [\PeerCommands.Configuration.stream, \.downlink] {
                var configuration = setting.commands
                configuration[keyPath: change] = "missing"
                do throws(FerryError) {
                    try await PeerCommands.with(configuration) { _ in }
                    Issue.record("there is no such stream")
                } catch { #expect(error.code == .natsNotFound && error.message.contains("missing"), "\(error)") }
            }
            await setting.close()
        }
    }

    /// A file in pieces, as a value, against a peer that is a model.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct FileSendingTests {
        @Test func allOfIsSentOnceToAPeerThatTakesAll() throws {
            var sending = FileSending(size: 1050, held: 100, pieceSize: 100, window: 4)
            var steps: [FileSending.Step] = []
            var held: UInt64 = 100
            var pending: [UInt64] = []
            loop: while true {
                let step = sending.step()
                steps.append(step)
                switch step {
                case .piece(let offset, let count): pending.append(offset + UInt64(count))
                case .wait:
                    #expect(pending.count == 4 || pending.last == 1050)
                    held = pending.removeFirst()
                    try sending.answered(held: held)
                case .end: break loop
                }
            }
            let pieces = steps.compactMap {
                if case .piece(let offset, let count) = $0 { (offset, count) } else { nil }
            }
            #expect(pieces.map(\.0) == (1...10).map { UInt64($0 * 100) } && pieces.last?.1 == 50)
            #expect(sending.held == 1050)
            #expect(pending.isEmpty)
        }

        /// A peer that loses what it has now and then: sending goes on from what it says, and ends with an error when it keeps doing so.
        @Test(arguments: 0..<200) func aPeerThatLosesItsPartGetsItAgainOrItIsToldOf(_ seed: Int) throws {
            var random = SplitMix64(seed: UInt64(seed))
            let size = UInt64.random(in: 0...2000, using: &random)
            var held: UInt64 = 0
            var sending = FileSending(
                size: size, held: 0, pieceSize: .random(in: 1...300, using: &random),
                window: .random(in: 1...8, using: &random))
            var losses = 0
            var pending: [(UInt64, Int)] = []
            do throws(FerryError) {
                loop: for _ in 0..<100_000 {
                    switch sending.step() {
                    case .piece(let offset, let count):
                        #expect(offset + UInt64(count) <= size && count > 0)
                        pending.append((offset, count))
                    case .wait:
                        if Int.random(in: 0..<40, using: &random) == 0 {
                            held = 0
                            losses += 1
                        }
                        let (offset, count) = pending.removeFirst()
                        if offset <= held { held = max(held, offset + UInt64(count)) }
                        try sending.answered(held: held)
                    case .end:
                        #expect(pending.isEmpty)
                        if held == size { break loop }
                        try sending.isIncomplete(held: held)
                    }
                }
                #expect(held == size)
            } catch {
                #expect(error.code == .misbehavingPeer && losses > FileSending.mostReturns)
            }
        }

        /// One that says more than there is, or that never has more, ends it.
        @Test(arguments: [UInt64(0), 1, .max]) func aPeerThatLiesEndsIt(_ lie: UInt64) {
            var sending = FileSending(size: 1000, held: 0, pieceSize: 100, window: 4)
            let error = #expect(throws: FerryError.self) {
                for _ in 0..<1000 {
                    switch sending.step() {
                    case .piece: break
                    case .wait: try sending.answered(held: lie)
                    case .end: try sending.isIncomplete(held: lie == .max ? 999 : lie)
                    }
                }
            }
            #expect(error?.code == .misbehavingPeer)
        }
    }
#endif
