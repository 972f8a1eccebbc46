#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Logs that were damaged, cut or deleted while no process had the store: what was accepted and is gone is said.
    @Suite(.tags(.records, .recovery), .timeLimit(.minutes(5))) struct MarkTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        private var path: String { folder.file("copy") }

        private func open() throws(FerryError) -> RecordStore { try RecordStore.open(path, time: VirtualTime()) }

        /// The files of a process that was killed after it had appended this many records, one in a transaction.
        private func killed(_ count: Int, stream: String = "s") async throws {
            let store = try RecordStore.open(folder.file("a"), time: VirtualTime())
            let more = count - Int(try await store.waiting().first?.count ?? 0)
            for number in 0..<max(0, more) { try await store.append(bytes("\(number)"), to: "p", stream: stream) }
            try copy()
            await store.close()
        }

        private func copy() throws {
            for end in ["", "-wal", "-mark"] {
                try? FileManager.default.removeItem(atPath: path + end)
                try? FileManager.default.copyItem(atPath: folder.file("a") + end, toPath: path + end)
            }
        }

        private func log() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path + "-wal")) }

        /// What is missing of so many records must be said, and nothing else.
        private func check(_ count: Int, _ what: String) async throws -> Int {
            let store = try open()
            let there = try await store.records(to: "p", stream: "s", limit: count).map(\.id.sequence)
            let notices = try await store.notices().map(\.text)
            if there.count == count {
                #expect(notices.isEmpty, "\(what): \(notices)")
            } else {
                #expect(there == Array(1...UInt64(there.count + 1)).dropLast(), "\(what)")
                #expect(
                    notices.contains {
                        $0.contains("stream 's' to peer p") && $0.contains("sequences \(there.count + 1) to \(count) ")
                    }, "\(what): \(there.count) of \(count), \(notices)")
            }
            // No sequence is given a second time.
            #expect(try await store.append(bytes("new"), to: "p", stream: "s").sequence == UInt64(count) + 1, "\(what)")
            await store.close()
            // It is said once.
            let again = try open()
            #expect(try await again.notices().count == notices.count, "\(what)")
            #expect(try await again.notices(after: Int64(notices.count)).isEmpty, "\(what)")
            await again.close()
            return count - there.count
        }

        @Test func aLogThatWasLeftAloneLosesNothing() async throws {
            try await killed(50)
            #expect(try await check(50, "undamaged") == 0)
        }

        @Test func aDeletedLogIsNoticed() async throws {
            try await killed(50)
            try FileManager.default.removeItem(atPath: path + "-wal")
            #expect(try await check(50, "deleted") > 0)
        }

        @Test func flippedBitsOfTheLogAreNoticed() async throws {
            try await killed(50)
            let original = try log()
            var random = SplitMix64(seed: UInt64.random(in: 0...UInt64.max))
            let seed = random
            var lost = 0
            for round in 0..<20 {
                try copy()
                var bytes = original
                // The first is in the log's own header.
                let place = round == 0 ? 17 : Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
                try bytes.write(to: URL(fileURLWithPath: path + "-wal"))
                lost += try await check(50, "byte \(place) of \(bytes.count), \(seed)") > 0 ? 1 : 0
            }
            #expect(lost > 0)
            print("20 flipped bits of a log: \(lost) lost records, and each was said")
        }

        @Test func aLogThatWasCutIsNoticed() async throws {
            try await killed(50)
            let original = try log()
            var random = SplitMix64(seed: UInt64.random(in: 0...UInt64.max))
            let seed = random
            var lost = 0
            for _ in 0..<20 {
                try copy()
                let count = Int.random(in: 0..<original.count, using: &random)
                try original.prefix(count).write(to: URL(fileURLWithPath: path + "-wal"))
                lost += try await check(50, "cut to \(count) of \(original.count), \(seed)") > 0 ? 1 : 0
            }
            #expect(lost > 0)
            print("20 logs that were cut: \(lost) lost records, and each was said")
        }

        /// Records that had arrived, and whose sender has forgotten them.
        @Test func arrivedRecordsThatAreGoneAreNoticed() async throws {
            let tests = try ExchangeTests()
            let (a, b) = (try tests.open("a"), try tests.open("b"))
            for number in 1...3 { try await b.append(bytes("\(number)"), to: "a", stream: "t") }
            try await tests.meet(a, b)
            for end in ["", "-mark"] {
                try FileManager.default.copyItem(
                    atPath: tests.folder.file("a") + end, toPath: tests.folder.file("c") + end)
            }
            await a.close()
            await b.close()
            let c = try tests.open("c")
            let notices = try await c.notices()
            #expect(
                notices.contains {
                    $0.text.contains("stream 't' from peer b") && $0.text.contains("numbers 1 to 3 ") && $0.peer == "b"
                }, "\(notices)")
            await c.close()
        }

        /// A whole new store in place of one whose file is gone.
        @Test func aStoreThatIsGoneIsNoticed() async throws {
            try await killed(5)
            let before = try open()
            let id = before.id
            await before.close()
            for end in ["", "-wal"] { try? FileManager.default.removeItem(atPath: path + end) }
            let store = try open()
            #expect(store.id != id)
            #expect(try await store.notices().map(\.text).contains { $0.contains("\(id)") && $0.contains("is gone") })
            try await store.append(bytes("new"), to: "p", stream: "s")
            await store.close()
            let again = try open()
            #expect(try await again.notices().count == 1)
            await again.close()
        }

        /// A file of marks may be anything, and may be read-only.
        @Test func aDamagedMarkSaysNothing() async throws {
            try await killed(5)
            let mark = URL(fileURLWithPath: path + "-mark")
            let original = try Data(contentsOf: mark)
            #expect(original.count == 64 + 32)
            for place in 0..<original.count {
                var bytes = original
                bytes[place] ^= 0x40
                try bytes.write(to: mark)
                let store = try open()
                #expect(try await store.notices() == [], "byte \(place)")
                await store.close()
            }
            try Data().write(to: mark)
            let store = try open()
            try await store.append(bytes("6"), to: "p", stream: "s")
            await store.close()
            #expect(try Data(contentsOf: mark) != Data())
        }

        /// A file of marks may have right checksums and numbers that no store gives.
        @Test(arguments: [Mark.Direction.outbound, .inbound]) func aMarkPastAllSequencesSaysNothing(
            _ direction: Mark.Direction
        ) async throws {
            let tests = try ExchangeTests()
            let (a, b) = (try tests.open("a"), try tests.open("b"))
            try await a.append(bytes("out"), to: "b", stream: "s")
            try await b.append(bytes("in"), to: "a", stream: "t")
            try await tests.meet(a, b)
            await a.close()
            await b.close()
            let mark = Mark(of: tests.folder.file("a"), a.id, a.epoch)
            mark.write([Mark.Entry(direction: direction, stream: 1, last: .max)])
            let store = try tests.open("a")
            #expect(try await store.notices() == [])
            #expect(try await store.append(bytes("more"), to: "b", stream: "s").sequence == 2)
            await store.close()
        }

        /// Readable by this user only, whatever the user's mask allows.
        @Test func filesAreTheUsersOwn() async throws {
            let path = folder.file("own")
            let store = try RecordStore.open(path, time: VirtualTime())
            try await store.append(bytes("secret"), to: "p")
            for end in ["", "-wal", "-lock", "-mark", "-reserve"] {
                let attributes = try FileManager.default.attributesOfItem(atPath: path + end)
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(end)")
            }
            await store.close()
        }
    }
#endif
