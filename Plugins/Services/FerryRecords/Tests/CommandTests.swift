#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Commands and their answers: the bytes, the decision, and a desk between two stores.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct CommandTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        private static let id = CommandID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f)

        // MARK: Bytes

        @Test(arguments: try vectorCases("commands")) func goldenBytes(_ vector: VectorCase) throws {
            let bytes = try #require(vector.bytes(of: "bytes"))
            let isCommand = vector.words(of: "kind") == ["command"]
            if let code = vector.words(of: "error")?.first {
                let error = #expect(throws: FerryError.self) {
                    if isCommand {
                        _ = try RemoteCommand(decoding: bytes)
                    } else {
                        _ = try CommandAnswer(decoding: bytes)
                    }
                }
                #expect(error?.code.description == code)
                return
            }
            func number(_ key: String) throws -> Int64 {
                let words = try #require(vector.words(of: key))
                return try #require(Int64(words[0]))
            }
            let body = try #require(vector.bytes(of: "body"))
            if isCommand {
                let name = try #require(vector.words(of: "name"))[0]
                let command = try RemoteCommand(name, body, deadline: number("deadline"), id: Self.id)
                #expect(command.encoded == bytes)
                #expect(try RemoteCommand(decoding: bytes) == command)
            } else {
                let outcome = try #require(CommandAnswer.Outcome(rawValue: UInt8(number("outcome"))))
                let answer = CommandAnswer(Self.id, outcome, time: try number("time"), body)
                #expect(answer.encoded == bytes)
                #expect(try CommandAnswer(decoding: bytes) == answer)
            }
        }

        @Test func mutatedBytesAreReadOrRefused() throws {
            var random = SeededGenerator(seed: 7)
            let command = try RemoteCommand("restart", bytes("now"), deadline: 5, id: Self.id).encoded
            let answer = CommandAnswer(Self.id, .done, time: 5, bytes("x")).encoded
            let piece = FilePiece(
                of: try OfferedFile("a.bin", size: 100, checksum: 1), at: 2, bytes("llo")
            ).encoded
            for _ in 0..<20_000 {
                for seed in [command, answer, piece] {
                    var input = seed
                    for _ in 0..<Int.random(in: 1...3, using: &random) {
                        input[Int.random(in: 0..<input.count, using: &random)] = .random(in: 0...255, using: &random)
                    }
                    input.removeLast(Int.random(in: 0...input.count, using: &random))
                    if let read = try? RemoteCommand(decoding: input) { #expect(read.encoded == input) }
                    if let read = try? CommandAnswer(decoding: input) { #expect(read.encoded == input) }
                    if let read = try? FilePiece(decoding: input) { #expect(read.encoded == input) }
                    _ = try? FileProgress(decoding: input)
                }
            }
        }

        @Test(arguments: ["", ".", "a/b", "ä", "a b", String(repeating: "a", count: 65)])
        func otherNamesAreRefused(_ name: String) {
            let error = #expect(throws: FerryError.self) { try RemoteCommand(name, deadline: 0) }
            #expect(error?.code == .invalidConfiguration && error?.fate == .nothingSent)
        }

        @Test func aPieceOfAFileIsWhatThePageSays() throws {
            let file = try OfferedFile("a.bin", size: 5, checksum: OfferedFile.checksum(adding: bytes("hello")))
            #expect(file.encoded == vectorBytes("00000000000000059a71bb4c05612e62696e"))
            let piece = FilePiece(of: file, at: 2, bytes("llo"))
            #expect(piece.encoded == vectorBytes("00000000000000059a71bb4c05612e62696e00000000000000026c6c6f"))
            #expect(try FilePiece(decoding: piece.encoded) == piece)
            #expect(FileProgress(held: 258, isComplete: true).encoded == [0, 0, 0, 0, 0, 0, 1, 2, 1])
            #expect(throws: FerryError.self) {
                try FilePiece(decoding: FilePiece(of: file, at: 3, bytes("llo")).encoded)
            }
            for name in ["", ".a", "a/b", "a\u{0}", "a\nb", String(repeating: "a", count: 201)] {
                #expect(throws: FerryError.self) { try OfferedFile(name, size: 1, checksum: 0) }
            }
        }

        // MARK: The decision

        /// All pairs of the store's memory and the peer's handlers.
        @Test func eachCaseHasOneStep() {
            typealias Row = (CommandMemory, CommandHandler.Mode?, isOver: Bool, hasRoom: Bool, CommandStep)
            let rows: [Row] = [
                (.unknown, .once, false, true, .run), (.unknown, .once, false, false, .answer(.refused)),
                (.unknown, .once, true, true, .answer(.expired)), (.unknown, .once, true, false, .answer(.expired)),
                (.unknown, .repeatable, false, true, .run), (.unknown, .repeatable, false, false, .run),
                (.unknown, .repeatable, true, true, .answer(.expired)),
                (.unknown, .repeatable, true, false, .answer(.expired)),
                (.unknown, nil, false, true, .answer(.unknown)), (.unknown, nil, false, false, .answer(.unknown)),
                (.unknown, nil, true, true, .answer(.expired)), (.unknown, nil, true, false, .answer(.expired)),
            ]
            for row in rows { #expect(CommandStep(row.0, row.1, isOver: row.2, hasRoom: row.3) == row.4, "\(row)") }
            for isOver in [true, false] {
                for hasRoom in [true, false] {
                    // A command that was begun has not expired, and is begun again only where that does no harm.
                    #expect(CommandStep(.begun, .once, isOver: isOver, hasRoom: hasRoom) == .answer(.interrupted))
                    #expect(CommandStep(.begun, nil, isOver: isOver, hasRoom: hasRoom) == .answer(.interrupted))
                    #expect(CommandStep(.begun, .repeatable, isOver: isOver, hasRoom: hasRoom) == .run)
                    for mode in [nil, .once, .repeatable] as [CommandHandler.Mode?] {
                        #expect(CommandStep(.answered, mode, isOver: isOver, hasRoom: hasRoom) == .drop)
                    }
                }
            }
        }

        // MARK: A desk

        /// A wall clock that stands still until it is set, and virtual time.
        private final class Clock: Sendable {
            let milliseconds = Mutex<Int64>(1_800_000_000_000)
            let time = VirtualTime()
            func set(_ value: Int64) { milliseconds.withLock { $0 = value } }
            var date: Date { Date(timeIntervalSince1970: Double(milliseconds.withLock { $0 }) / 1000) }
        }

        private func peer(_ clock: Clock) throws -> RecordStore {
            try RecordStore.open(
                tests.folder.file("peer"), .init(), clock.time, { clock.date }, Schema.migrations)
        }

        /// Puts a record into the peer's inbox, as an exchange with `caller` does.
        private func arrive(_ record: [UInt8], at peer: RecordStore, _ sequence: UInt64) async throws {
            try await peer.committerArrival(record, sequence)
        }

        private func command(
            _ name: String, _ body: String = "", deadline: Int64 = 1_800_000_060_000, id: CommandID = .random()
        ) throws -> RemoteCommand {
            try RemoteCommand(name, bytes(body), deadline: deadline, id: id)
        }

        private func next(_ store: RecordStore) async throws -> ArrivedRecord {
            var inbox = store.inbox.makeAsyncIterator()
            return try #require(try await inbox.next())
        }

        private func answers(_ store: RecordStore) async throws -> [CommandAnswer] {
            guard try await store.waiting().contains(where: { $0.stream == CommandAnswer.stream }) else { return [] }
            return try await store.records(to: "caller", stream: CommandAnswer.stream).map {
                try CommandAnswer(decoding: $0.bytes)
            }
        }

        @Test func eachCommandHasOneAnswerAndOtherRecordsStay() async throws {
            let clock = Clock()
            let store = try peer(clock)
            let runs = Mutex<[String]>([])
            let desk = CommandDesk(
                store,
                [
                    "say": .once { command in
                        runs.withLock { $0.append(String(decoding: command.body, as: UTF8.self)) }
                        return command.body + [33]
                    },
                    "fail": .once { _ in throw FerryError(.closed, "There is no power.") },
                ])
            let ids = (0..<4).map { CommandID(high: 1, low: $0) }
            let all = try [
                command("say", "a", id: ids[0]), command("fail", id: ids[1]), command("nothing", id: ids[2]),
                command("say", "late", deadline: 1_799_999_999_999, id: ids[3]), command("say", "a", id: ids[0]),
            ]
            for (index, command) in all.enumerated() {
                try await arrive(command.encoded, at: store, UInt64(index + 1))
            }
            for _ in all {
                let wasCommand = try await desk.take(try await next(store))
                #expect(wasCommand)
            }
            #expect(runs.withLock { $0 } == ["a"])
            let found = try await answers(store)
            #expect(found.map(\.id) == ids)
            #expect(found.map(\.outcome) == [.done, .failed, .unknown, .expired])
            #expect(found[0].body == bytes("a!") && found[1].text == "There is no power.")
            #expect(found.allSatisfy { $0.time == 1_800_000_000_000 })
            #expect(try await store.undone() == 0)
            // A record of another stream stays; one of the commands' stream that is no command is dropped with a notice.
            try await store.committerArrival(bytes("own"), 1, stream: "orders")
            let own = try await next(store)
            let wasCommand = try await desk.take(own)
            #expect(!wasCommand)
            try await own.done()
            try await arrive(bytes("what?"), at: store, 6)
            let wasDropped = try await desk.take(try await next(store))
            #expect(wasDropped)
            #expect(try await store.undone() == 0)
            #expect(try await store.notices().last?.text.contains("A command was dropped unread.") == true)
            await store.close()
        }

        /// The peer ends while it runs a command, and comes again: also long after the deadline.
        @Test(arguments: [CommandHandler.Mode.once, .repeatable], [Int64(0), 3_600_000])
        func anInterruptedCommandIsToldAsSuchOrRunsAgain(_ mode: CommandHandler.Mode, _ later: Int64) async throws {
            let clock = Clock()
            let sent = try command("work")
            do {
                let store = try peer(clock)
                try await arrive(sent.encoded, at: store, 1)
                let began = Mutex(false)
                let desk = CommandDesk(
                    store,
                    [
                        "work": CommandHandler(mode) { _ in
                            began.withLock { $0 = true }
                            await untilCancelled()
                            try Task.checkCancellation()
                            return []
                        }
                    ])
                let record = try await next(store)
                let running = Task { try await desk.take(record) }
                try await until("its begin") { began.withLock { $0 } }
                running.cancel()
                let error = await #expect(throws: FerryError.self) { try await running.value }
                #expect(error?.code == .cancelled)
                #expect(try await store.undone() == 1)
                await store.close()
            }
            clock.set(1_800_000_000_000 + later)
            let store = try peer(clock)
            let desk = CommandDesk(store, ["work": CommandHandler(mode) { _ in Array("done".utf8) }])
            let wasCommand = try await desk.take(try await next(store))
            #expect(wasCommand)
            let outcomes = try await answers(store).map(\.outcome)
            switch (mode, later) {
            case (.once, _): #expect(outcomes == [.interrupted])
            // It was not remembered as begun, for running it again does no harm.
            case (.repeatable, 0): #expect(outcomes == [.done])
            case (.repeatable, _): #expect(outcomes == [.expired])
            }
            // The same once more, by a caller that published it twice: it has its answer.
            try await arrive(sent.encoded, at: store, 2)
            let isTaken = try await desk.take(try await next(store))
            #expect(isTaken)
            if mode == .once, later == 0 { #expect(try await answers(store).count == 1) }
            await store.close()
        }

        @Test func aCommandThatDoesNotEndIsCancelledAtItsDeadline() async throws {
            let clock = Clock()
            let store = try peer(clock)
            let began = Mutex(false)
            let desk = CommandDesk(
                store,
                [
                    "work": .once { _ in
                        began.withLock { $0 = true }
                        // Until it is cancelled.
                        await untilCancelled()
                        try Task.checkCancellation()
                        return []
                    }
                ])
            try await arrive(try command("work").encoded, at: store, 1)
            let record = try await next(store)
            async let taken = desk.take(record)
            try await until("its begin") { began.withLock { $0 } }
            try await until("its deadline") { clock.time.timerCount > 0 }
            clock.time.advance(by: .seconds(61))
            #expect(try await taken)
            let found = try await answers(store)
            #expect(found.map(\.outcome) == [.interrupted] && found[0].text.contains("deadline"))
            await store.close()
        }

        @Test func answeredCommandsAreForgottenAfterTheirDeadline() async throws {
            let clock = Clock()
            let store = try peer(clock)
            let desk = CommandDesk(store, ["work": .once { _ in [] }])
            func remembered() async throws -> Int {
                try await store.read { database, _ in
                    try Int.fetchOne(database, sql: "SELECT count(*) FROM ferry_command") ?? -1
                }
            }
            for number in 1...3 {
                try await arrive(
                    try command("work", deadline: 1_800_000_000_000 + Int64(number) * 1000).encoded, at: store,
                    UInt64(number))
                _ = try await desk.take(try await next(store))
            }
            #expect(try await remembered() == 3)
            clock.set(1_800_000_002_500)
            try await arrive(try command("work").encoded, at: store, 4)
            _ = try await desk.take(try await next(store))
            #expect(try await remembered() == 2)
            #expect(try await answers(store).map(\.outcome) == [.done, .done, .done, .done])
            await store.close()
        }

        @Test func anAnswerThatIsTooLargeIsTold() async throws {
            var configuration = RecordStore.Configuration()
            configuration.largestRecord = 2000
            let store = try RecordStore.open(tests.folder.file("peer"), configuration: configuration)
            let desk = CommandDesk(store, ["work": .once { _ in Array(repeating: 1, count: 2000) }])
            try await arrive(try RemoteCommand("work", deadline: .max).encoded, at: store, 1)
            _ = try await desk.take(try await next(store))
            let found = try await answers(store)
            #expect(found.map(\.outcome) == [.failed] && found[0].text.contains("largestRecord"), "\(found)")
            await store.close()
        }

        // MARK: Files

        private func send(
            _ name: String, _ body: [UInt8], _ drop: FileDrop
        ) async throws -> FileProgress {
            let handler = try #require(drop.handlers[name])
            return try FileProgress(decoding: try await handler.run(try RemoteCommand(name, body, deadline: .max)))
        }

        @Test func aFileArrivesInPiecesWhateverIsRepeatedOrMissing() async throws {
            let folder = tests.folder.file("files")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let content = (0..<1000).map { UInt8(truncatingIfNeeded: $0 * 7) }
            let file = try OfferedFile("a.bin", size: 1000, checksum: OfferedFile.checksum(adding: content))
            var drop = FileDrop(folder)
            func piece(_ range: Range<Int>) async throws -> FileProgress {
                try await send(
                    OfferedFile.Command.piece,
                    FilePiece(of: file, at: UInt64(range.lowerBound), Array(content[range])).encoded,
                    drop)
            }
            func offer() async throws -> FileProgress { try await send(OfferedFile.Command.offer, file.encoded, drop) }
            func end() async throws -> FileProgress { try await send(OfferedFile.Command.end, file.encoded, drop) }
            #expect(try await offer() == .init(held: 0, isComplete: false))
            #expect(try await piece(0..<300) == .init(held: 300, isComplete: false))
            // A gap, what is there, and what overlaps.
            #expect(try await piece(400..<500).held == 300)
            #expect(try await piece(100..<200).held == 300)
            #expect(try await piece(200..<400).held == 400)
            #expect(try await end() == .init(held: 400, isComplete: false))
            // The peer was ended, and comes again.
            drop = FileDrop(folder)
            #expect(try await offer().held == 400)
            #expect(try await piece(400..<1000).held == 1000)
            #expect(!FileManager.default.fileExists(atPath: folder + "/a.bin"))
            #expect(try await end() == .init(held: 1000, isComplete: true))
            #expect(FileManager.default.contents(atPath: folder + "/a.bin") == Data(content))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a.bin"])
            // Its answer was lost, and it is asked again.
            #expect(try await end().isComplete)
            #expect(try await offer() == .init(held: 1000, isComplete: true))
            // A piece that was published twice comes after the end: it begins no part.
            #expect(try await piece(0..<300) == .init(held: 1000, isComplete: true))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a.bin"])
        }

        @Test func aPartThatIsDamagedIsSentAgainAndAnOlderOneGoes() async throws {
            let folder = tests.folder.file("files")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let drop = FileDrop(folder, largestFile: 100)
            let older = try OfferedFile("a", size: 3, checksum: 1)
            _ = try await send(OfferedFile.Command.piece, FilePiece(of: older, at: 0, bytes("old")).encoded, drop)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 1)
            // All of it is there, and it is not what was offered.
            #expect(try await send(OfferedFile.Command.end, older.encoded, drop) == .init(held: 0, isComplete: false))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            _ = try await send(OfferedFile.Command.piece, FilePiece(of: older, at: 0, bytes("ol")).encoded, drop)
            let newer = try OfferedFile("a", size: 3, checksum: OfferedFile.checksum(adding: bytes("new")))
            #expect(try await send(OfferedFile.Command.offer, newer.encoded, drop).held == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            // An empty file, and one that is too large.
            let empty = try OfferedFile("e", size: 0, checksum: 0)
            #expect(try await send(OfferedFile.Command.end, empty.encoded, drop).isComplete)
            #expect(FileManager.default.contents(atPath: folder + "/e") == Data())
            let large = try OfferedFile("l", size: 101, checksum: 0)
            for body in [large.encoded, FilePiece(of: large, at: 0, [1]).encoded] {
                let name = body.count == large.encoded.count ? OfferedFile.Command.offer : OfferedFile.Command.piece
                await #expect(throws: FerryError.self) { try await send(name, body, drop) }
            }
            // Parts are bounded.
            for number in 0..<FileDrop.mostParts {
                let file = try OfferedFile("p\(number)", size: 2, checksum: 0)
                _ = try await send(OfferedFile.Command.offer, file.encoded, drop)
                _ = try await send(OfferedFile.Command.piece, FilePiece(of: file, at: 0, [1]).encoded, drop)
            }
            let error = await #expect(throws: FerryError.self) {
                try await send(OfferedFile.Command.offer, newer.encoded, drop)
            }
            #expect(error?.message.contains("17th part") == true)
            // A link in the part's place is not followed.
            try FileManager.default.createSymbolicLink(
                atPath: folder + "/.s.ferry-0-2", withDestinationPath: tests.folder.file("elsewhere"))
            let linked = try OfferedFile("s", size: 2, checksum: 0)
            await #expect(throws: FerryError.self) {
                try await send(OfferedFile.Command.piece, FilePiece(of: linked, at: 0, [1]).encoded, drop)
            }
            #expect(!FileManager.default.fileExists(atPath: tests.folder.file("elsewhere")))
        }
    }

    extension RecordStore {
        /// Commits a record from the peer `caller` in a stream, as an exchange does.
        fileprivate func committerArrival(
            _ record: [UInt8], _ sequence: UInt64, stream name: String = RemoteCommand.stream
        ) async throws {
            let (number, _) = try await committer.perform { [self] database, book in
                let peer = try book.peer(named: "caller", database)
                let (number, _) = try position(of: name, from: peer, acknowledged: nil, database, &book)
                let cost = try store(
                    [.init(sequence: sequence, bytes: record)], Epoch(generation: 1, nonce: 1), in: number, database,
                    &book)
                return (number, cost)
            }
            desk.arrive(in: number)
        }
    }
#endif
