#if Records
    import Ferry
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// A folder that is gone when the test has ended.
    final class Folder: Sendable {
        let path: String

        /// In memory where the system has a folder for that, and `inMemory` asks for it.
        init(inMemory: Bool = false) throws {
            let memory = URL(fileURLWithPath: "/dev/shm")
            let base =
                inMemory && FileManager.default.isWritableFile(atPath: memory.path)
                ? memory : FileManager.default.temporaryDirectory
            path = base.appendingPathComponent("records-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func file(_ name: String) -> String { path + "/" + name }
    }

    /// Changes a database behind the store's back.
    func edit(_ path: String, _ sql: String) throws {
        let database = try DatabaseQueue(path: path)
        try database.write { try $0.execute(sql: sql) }
        try database.close()
    }

    func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct StoreTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        private func open(
            _ name: String = "a", _ configuration: RecordStore.Configuration = .init(),
            time: any TimeSource = VirtualTime(),
            wallClock: @escaping @Sendable () -> Date = { Date(timeIntervalSince1970: 1_800_000_000) }
        ) throws(FerryError) -> RecordStore {
            try RecordStore.open(folder.file(name), configuration: configuration, time: time, wallClock: wallClock)
        }

        @Test func whatWasAppendedIsThereAfterwards() async throws {
            var store = try open()
            let (id, first) = (store.id, store.epoch)
            let one = try await store.append(bytes("one"), to: "p", stream: "s")
            let two = try await store.append(bytes("two"), to: "p", stream: "s", priority: .urgent)
            #expect((one.sequence, two.sequence) == (1, 2))
            await store.close()
            store = try open()
            #expect(store.id == id)
            #expect(store.epoch.generation == 2 && store.epoch.nonce != first.nonce)
            let three = try await store.append(bytes("three"), to: "p", stream: "s")
            #expect(three == RecordID(sender: id, epoch: store.epoch, stream: "s", sequence: 3))
            let waiting = try await store.records(to: "p", stream: "s")
            #expect(waiting.map(\.id) == [one, two, three])
            #expect(waiting.map(\.bytes) == [bytes("one"), bytes("two"), bytes("three")])
            #expect(waiting.map(\.priority) == [.normal, .urgent, .normal])
            #expect(
                try await store.waiting() == [.init(peer: "p", stream: "s", count: 3, bytes: 11, committedThrough: 0)])
            await store.close()
        }

        @Test func callsAtTheSameTimeKeepTheirOrderWithinEach() async throws {
            let store = try open()
            try await withThrowingTaskGroup { group in
                for task in 0..<20 {
                    group.addTask {
                        for number in 0..<20 {
                            try await store.append(bytes("\(task) \(number)"), to: "p", stream: "\(task % 3)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            var all: [String] = []
            for stream in 0..<3 {
                let records = try await store.records(to: "p", stream: "\(stream)", limit: 1000)
                #expect(records.map(\.id.sequence) == Array(1...UInt64(records.count)))
                all += records.map { String(decoding: $0.bytes, as: UTF8.self) }
            }
            #expect(all.count == 400)
            for task in 0..<20 {
                #expect(all.filter { $0.hasPrefix("\(task) ") } == (0..<20).map { "\(task) \($0)" })
            }
            await store.close()
        }

        // MARK: Water marks

        private var small: RecordStore.Configuration {
            var configuration = RecordStore.Configuration()
            configuration.highWaterRecords = 4
            configuration.lowWaterRecords = 2
            return configuration
        }

        @Test func aboveTheHighWaterMarkItRefusesOrWaits() async throws {
            let time = VirtualTime()
            let store = try open("a", small, time: time)
            var ids: [RecordID] = []
            for number in 0..<4 { ids.append(try await store.append([UInt8(number)], to: "p")) }
            let error = await #expect(throws: FerryError.self) {
                try await store.append([9], to: "p", whenFull: .refuse)
            }
            #expect(error?.code == .outboxFull && error?.fate == .nothingSent)
            // Another peer has an outbox of its own.
            try await store.append([9], to: "q", whenFull: .refuse)

            async let waiting = store.append([5], to: "p")
            try await until("the call waits for room") { time.timerCount > 0 }
            // Three are below the high-water mark, but not at the low one.
            try await store.cancel(ids[0], to: "p")
            await #expect(throws: FerryError.self) { try await store.append([9], to: "p", whenFull: .refuse) }
            try await store.cancel(ids[1], to: "p")
            #expect(try await waiting.sequence == 5)
            #expect(try await store.records(to: "p").map(\.bytes) == [[2], [3], [5]])
            await store.close()
        }

        /// Also of those that wait for room, which comes a few records at a time.
        @Test func whatOneActorAppendsIsStoredInTheOrderOfItsCalls() async throws {
            let store = try open("a", small, time: VirtualTime())
            let tasks = await Appender(store).append(200)
            let room = Task {
                while !Task.isCancelled {
                    for record in try await store.records(to: "p").prefix(3) {
                        try await store.cancel(record.id, to: "p")
                    }
                    await Task.yield()
                }
            }
            var sequences: [UInt64] = []
            for task in tasks { sequences.append(try await task.value) }
            #expect(sequences == Array(1...200))
            room.cancel()
            _ = await room.result
            await store.close()
        }

        @Test func waitingForRoomHasADeadline() async throws {
            let time = VirtualTime()
            let store = try open("a", small, time: time)
            try await store.append(contentsOf: [[1], [2], [3], [4]], to: "p")
            async let late = store.append([5], to: "p", whenFull: .wait(atMost: .seconds(3)))
            try await until("the call waits for room") { time.timerCount > 0 }
            time.advance(by: .seconds(3))
            do {
                _ = try await late
                Issue.record("There was no room.")
            } catch { #expect((error as? FerryError)?.code == .outboxFull) }
            let task = Task { try await store.append([6], to: "p") }
            try await until("the call waits for room") { time.timerCount > 0 }
            task.cancel()
            await #expect(throws: FerryError.self) { try await task.value }
            await store.close()
        }

        @Test func closingEndsWhoeverWaits() async throws {
            let time = VirtualTime()
            let store = try open("a", small, time: time)
            try await store.append(contentsOf: [[1], [2], [3], [4]], to: "p")
            async let late = store.append([5], to: "p")
            async let record = { () -> ArrivedRecord? in
                for try await record in store.inbox { return record }
                return nil
            }()
            try await until("the call waits for room") { time.timerCount > 0 }
            await store.close()
            do {
                _ = try await late
                Issue.record("The store is closed.")
            } catch { #expect((error as? FerryError)?.code == .closed) }
            #expect(try await record == nil)
            await #expect(throws: FerryError.self) { try await store.append([6], to: "q") }
        }

        // MARK: Care

        @Test func expiredRecordsGo() async throws {
            let clock = Shared(Date(timeIntervalSince1970: 1000))
            let store = try open(wallClock: { clock.value })
            let short = try await store.append([1], to: "p", expires: Date(timeIntervalSince1970: 1010))
            let long = try await store.append([2], to: "p", expires: Date(timeIntervalSince1970: 2000))
            let forever = try await store.append([3], to: "p")
            #expect(try await store.expire() == 0)
            // A clock that is set back a year expires nothing.
            clock.value = Date(timeIntervalSince1970: 1000 - 365 * 86_400)
            #expect(try await store.expire() == 0)
            clock.value = Date(timeIntervalSince1970: 1010)
            #expect(try await store.expire() == 1)
            #expect(try await store.records(to: "p").map(\.id) == [long, forever])
            #expect(try await store.receipt(of: short, to: "p") == .withdrawn)
            #expect(try await store.receipt(of: long, to: "p") == .waiting)
            #expect(try await store.cancel(long, to: "p") == .nothingSent)
            await #expect(throws: FerryError.self) { try await store.cancel(long, to: "p") }
            try await store.compact()
            #expect(try await store.records(to: "p").map(\.id) == [forever])
            await store.close()
        }

        @Test func compactingGivesRoomBack() async throws {
            let store = try open()
            let big = [UInt8](repeating: 7, count: 100_000)
            let ids = try await store.append(contentsOf: Array(repeating: big, count: 40), to: "p")
            for id in ids { try await store.cancel(id, to: "p") }
            try await store.compact()
            let size = try FileManager.default.attributesOfItem(atPath: store.path)[.size] as? Int ?? .max
            #expect(size < 200_000)
            await store.close()
        }

        // MARK: Files

        @Test func oneOpenerAtATime() async throws {
            let store = try open()
            let error = #expect(throws: FerryError.self) { try open() }
            #expect(error?.code == .storeInUse)
            #expect(error?.message.contains("process \(ProcessInfo.processInfo.processIdentifier)") == true)
            await store.close()
        }

        #if os(Linux)
            /// A process that is being started has all files of this one until it runs its program.
            @Test func aFileThatSomebodyInheritedHoldsNoLock() async throws {
                let store = try open()
                let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                let lock = try #require(
                    names.compactMap(Int32.init).first {
                        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))
                            == store.path + "-lock"
                    })
                let inherited = dup(lock)
                defer { close(inherited) }
                await store.close()
                await (try open()).close()
            }
        #endif

        /// A second time, it would be whatever another thread had opened meanwhile.
        @Test func whoFindsAStoreInUseClosesItsDescriptorOnce() async throws {
            let store = try open()
            for _ in 0..<3 {
                errno = 0
                var found: FerryError.Code?
                do { _ = try RecordStore.open(store.path) } catch { found = error.code }
                let last = errno
                #expect(found == .storeInUse && last != EBADF)
            }
            await store.close()
        }

        @Test func whatIsNoStoreIsLeftAlone() throws {
            let text = Data("This is a letter, and no database at all. ".utf8) + Data(count: 4096)
            try text.write(to: URL(fileURLWithPath: folder.file("letter")))
            #expect(#expect(throws: FerryError.self) { try open("letter") }?.code == .storeDamaged)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("letter"))) == text)
            // SQLite takes a file of one byte for an empty one.
            try Data([0x7B]).write(to: URL(fileURLWithPath: folder.file("byte")))
            #expect(#expect(throws: FerryError.self) { try open("byte") }?.code == .storeDamaged)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("byte"))) == Data([0x7B]))
            try edit(folder.file("other"), "CREATE TABLE player (id INTEGER)")
            #expect(#expect(throws: FerryError.self) { try open("other") }?.code == .storeDamaged)
            #expect(#expect(throws: FerryError.self) { try open("no/folder") }?.code == .storeNotWritable)
        }

        @Test func aNewerStoreIsRefused() async throws {
            await (try open()).close()
            try edit(folder.file("a"), "PRAGMA user_version = 99")
            let error = #expect(throws: FerryError.self) { try open() }
            #expect(error?.code == .storeTooNew && error?.message.contains("schema 99") == true)
        }

        @Test func damageIsTold() async throws {
            let store = try open()
            try await store.append(
                contentsOf: (0..<2000).map { bytes("record \($0) " + String(repeating: "x", count: 90)) }, to: "p")
            await store.close()
            let url = URL(fileURLWithPath: folder.file("a"))
            var data = try Data(contentsOf: url)
            for offset in stride(from: 4096 * 3, to: data.count, by: 1) { data[offset] = 0x5A }
            try data.write(to: url)
            do {
                let damaged = try open()
                _ = try await damaged.records(to: "p", limit: 5000)
                Issue.record("The damage was not noticed.")
            } catch { #expect(error.code == .storeDamaged, "\(error)") }
        }

        @Test func configurationsAreChecked() throws {
            var configuration = RecordStore.Configuration()
            configuration.inboxCapacity = 100
            #expect(#expect(throws: FerryError.self) { try open("a", configuration) }?.code == .invalidConfiguration)
            configuration = .init()
            configuration.lowWaterBytes = configuration.highWaterBytes + 1
            #expect(#expect(throws: FerryError.self) { try open("a", configuration) }?.code == .invalidConfiguration)
        }

        @Test func namesAndSizesAreChecked() async throws {
            var configuration = RecordStore.Configuration()
            configuration.largestRecord = 10
            let store = try open("a", configuration)
            await #expect(throws: FerryError.self) { try await store.append(Array(repeating: 0, count: 11), to: "p") }
            await #expect(throws: FerryError.self) { try await store.append([], to: "") }
            await #expect(throws: FerryError.self) {
                try await store.append([], to: "p", stream: String(repeating: "s", count: 129))
            }
            try await store.append([], to: "p", stream: String(repeating: "s", count: 128))
            for number in 1..<256 { try await store.append([], to: "p", stream: "\(number)") }
            #expect(
                await #expect(throws: FerryError.self) { try await store.append([], to: "p", stream: "256") }?.code
                    == .outboxFull)
            await store.close()
        }

        @Test func sequencesEndWhereTheyEnd() async throws {
            var store = try open()
            try await store.append([1], to: "p")
            await store.close()
            try edit(folder.file("a"), "UPDATE ferry_outbound SET checksum = NULL, last = 9223372036854775806")
            store = try open()
            #expect(try await store.append([2], to: "p").sequence == UInt64(Int64.max))
            #expect(
                await #expect(throws: FerryError.self) { try await store.append([3], to: "p") }?.code == .outboxFull)
            await store.close()
        }
    }

    /// A value that closures share.
    final class Shared<Value: Sendable>: @unchecked Sendable {
        private let lock = NSLock()
        private var content: Value
        init(_ value: Value) { content = value }
        var value: Value {
            get { lock.withLock { content } }
            _modify {
                lock.lock()
                defer { lock.unlock() }
                yield &content
            }
        }
    }

    /// Appends without awaiting.
    private actor Appender {
        private let store: RecordStore

        init(_ store: RecordStore) { self.store = store }

        func append(_ count: Int) -> [Task<UInt64, any Error>] {
            (0..<count).map { number in Task { try await append(record: UInt8(truncatingIfNeeded: number)) } }
        }

        private func append(record: UInt8) async throws -> UInt64 {
            try await store.append([record], to: "p", whenFull: .wait(atMost: .unreached)).sequence
        }
    }
#endif
