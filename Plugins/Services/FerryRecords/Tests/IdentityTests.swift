#if Records
    import Ferry
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Who is who: strangers, copies, and backups.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct IdentityTests {
        let tests: ExchangeTests
        var folder: Folder { tests.folder }

        init() throws { tests = try ExchangeTests() }

        private func copy(_ from: String, to: String) throws {
            try? FileManager.default.removeItem(atPath: folder.file(to))
            for end in ["-wal", "-mark"] { try? FileManager.default.removeItem(atPath: folder.file(to + end)) }
            try FileManager.default.copyItem(atPath: folder.file(from), toPath: folder.file(to))
        }

        private func values(_ store: RecordStore) async throws -> [String] {
            try await store.read { database, _ in
                try Array(Row.fetchAll(database, sql: "SELECT record FROM ferry_arrived ORDER BY stream, number")).map {
                    String(decoding: $0["record"] as Data, as: UTF8.self)
                }
            }
        }

        @Test func aNameThatIsNotGivenIsTheLinks() async throws {
            let (a, b) = (try tests.open("a"), try tests.open("b"))
            try await a.append(bytes("1"), to: "address:far")
            let (first, second) = try await tests.meet(a, b, names: (nil, nil))
            #expect(first == .init(peer: "address:far", committed: 1, received: 0))
            #expect(second == .init(peer: "address:near", committed: 0, received: 1))
            await a.close()
            await b.close()
        }

        @Test func anotherStoreUnderThePeersNameIsRefused() async throws {
            let (a, b, c) = (try tests.open("a"), try tests.open("b"), try tests.open("c"))
            try await tests.meet(a, b)
            try await a.append(bytes("for b"), to: "b")
            let error = await #expect(throws: FerryError.self) { try await tests.meet(a, c) }
            #expect(error?.code == .strangePeer)
            #expect(error?.message.contains("forgetIdentity(of:)") == true)
            #expect(try await values(c).isEmpty)
            // And no other name helps whoever has the store.
            let other = await #expect(throws: FerryError.self) { try await tests.meet(a, b, names: ("x", "a")) }
            #expect(other?.code == .strangePeer)
            try await a.forgetIdentity(of: "b")
            try await tests.meet(a, c)
            #expect(try await values(c) == ["for b"])
            for store in [a, b, c] { await store.close() }
        }

        @Test func aStoreDoesNotMeetItself() async throws {
            let a = try tests.open("a")
            await a.close()
            try copy("a", to: "twin")
            let (one, two) = (try tests.open("a"), try tests.open("twin"))
            let error = await #expect(throws: FerryError.self) { try await tests.meet(one, two) }
            #expect(error?.code == .strangePeer)
            await one.close()
            await two.close()
        }

        @Test func strangersCanBeRefused() async throws {
            let a = try tests.open("a")
            let b = try tests.open("b") { $0.acceptsStrangers = false }
            try await a.append(bytes("1"), to: "b")
            await #expect(throws: FerryError.self) { try await tests.meet(a, b, names: ("b", nil)) }
            #expect(try await values(b).isEmpty)
            try await tests.meet(a, b)
            #expect(try await values(b) == ["1"])
            await a.close()
            await b.close()
        }

        /// The sender comes back from a backup: what it appends then is not taken for what it had appended before.
        @Test func aSenderFromABackup() async throws {
            var a = try tests.open("a")
            let b = try tests.open("b")
            for number in 1...3 { try await a.append(bytes("shared \(number)"), to: "b", stream: "s") }
            await a.close()
            try copy("a", to: "backup")
            a = try tests.open("a")
            for number in 4...6 { try await a.append(bytes("lost life \(number)"), to: "b", stream: "s") }
            try await tests.meet(a, b)
            await a.close()
            try copy("backup", to: "a")
            a = try tests.open("a")
            for number in 4...5 { try await a.append(bytes("new life \(number)"), to: "b", stream: "s") }
            try await tests.meet(a, b)
            let expected =
                (1...3).map { "shared \($0)" } + (4...6).map { "lost life \($0)" } + (4...5).map { "new life \($0)" }
            #expect(try await values(b) == expected)
            #expect(try await a.notices().contains { $0.text.contains("was copied, or comes from a backup") })
            #expect(try await b.notices().contains { $0.text.contains("was copied, or comes from a backup") })
            await a.close()
            await b.close()
        }

        /// The receiver comes back from a backup: what it had committed is gone, and both sides say so.
        @Test func aReceiverFromABackup() async throws {
            let a = try tests.open("a")
            var b = try tests.open("b")
            try await a.append(bytes("1"), to: "b", stream: "s")
            try await tests.meet(a, b)
            await b.close()
            try copy("b", to: "backup")
            b = try tests.open("b")
            try await a.append(bytes("2"), to: "b", stream: "s")
            try await tests.meet(a, b)
            await b.close()
            try copy("backup", to: "b")
            b = try tests.open("b")
            try await a.append(bytes("3"), to: "b", stream: "s")
            try await tests.meet(a, b)
            #expect(try await values(b) == ["1", "3"])
            #expect(try await a.notices().contains { $0.text.contains("up to 2, and now has it up to 1") })
            #expect(try await b.notices().contains { $0.text.contains("is lost here") })
            await a.close()
            await b.close()
        }

        /// Two copies of one store, of the same generation, both sending: nothing is taken for the other's.
        @Test func twoStoresOfTheSameGeneration() async throws {
            var a = try tests.open("a")
            let b = try tests.open("b")
            try await a.append(bytes("shared"), to: "b", stream: "s")
            await a.close()
            try copy("a", to: "twin")
            a = try tests.open("a")
            let twin = try tests.open("twin")
            #expect(a.epoch.generation == twin.epoch.generation && a.epoch != twin.epoch)
            try await a.append(bytes("a's"), to: "b", stream: "s")
            try await twin.append(bytes("the twin's"), to: "b", stream: "s")
            for _ in 0..<2 {
                try await tests.meet(a, b)
                try await tests.meet(twin, b)
            }
            #expect(try await values(b) == ["shared", "a's", "the twin's"])
            #expect(try await !b.notices().isEmpty)
            #expect(try await !twin.notices().isEmpty)
            for store in [a, b, twin] { await store.close() }
        }
    }
#endif
