#if Records
    import Ferry
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Which transactions wait for the disk.
    @Suite(.tags(.records, .recovery), .timeLimit(.minutes(5))) struct SyncTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        /// SQLite's own numbers of `PRAGMA synchronous`.
        private static let (normal, full) = (1, 2)

        private static func synchronous(_ database: Database) throws -> Int? {
            try Int.fetchOne(database, sql: "PRAGMA synchronous")
        }

        @Test(arguments: [
            ([Committer.Kind.repeatable], normal), ([.lasting], full), ([.growing], full),
            ([.repeatable, .repeatable], normal),
            ([.repeatable, .lasting], full), ([.growing, .repeatable], full),
        ]) func aTransactionIsSyncedForAnyOfItsPieces(_ kinds: [Committer.Kind], _ expected: Int) async throws {
            let store = try tests.open("a")
            // Neither the first nor one after another kind.
            for before in [Committer.Kind.lasting, .repeatable] {
                _ = try await store.committer.perform(as: before) { database, _ in try Self.synchronous(database) }
                let gate = try await store.holdWriter()
                let seen = Mutex<[Int?]>([])
                for kind in kinds {
                    store.committer.submit(as: kind, { database, _ in try Self.synchronous(database) }) { result in
                        seen.withLock { $0.append(try? result.get()) }
                    }
                }
                gate.signal()
                try await until("all are done") { seen.withLock { $0.count } == kinds.count }
                #expect(seen.withLock { $0 } == kinds.map { _ in expected })
            }
            await store.close()
        }

        /// How the transactions that took records out of the outbox were written.
        private final class Forgetting: TransactionObserver, Sendable {
            private let state = Mutex((hasForgotten: false, seen: [Int?]()))
            var seen: [Int?] { state.withLock { $0.seen } }

            func observes(eventsOfKind kind: DatabaseEventKind) -> Bool {
                // SQLite tells nothing of a table without row numbers, as that of the records is.
                if case .update("ferry_outbound", _) = kind { true } else { false }
            }
            func databaseDidChange(with event: DatabaseEvent) { state.withLock { $0.hasForgotten = true } }
            func databaseDidCommit(_ database: Database) {
                guard state.withLock({ $0.hasForgotten }) else { return }
                let mode = try? SyncTests.synchronous(database)
                state.withLock { $0 = (false, $0.seen + [mode]) }
            }
            func databaseDidRollback(_ database: Database) {}
        }

        /// A power cut takes what was not synced: the peer says again what it has, and nothing comes twice.
        @Test func whatIsForgottenUnsyncedIsForgottenAgain() async throws {
            var (a, b) = (try tests.open("a"), try tests.open("b"))
            let forgetting = Forgetting()
            // They know each other.
            try await tests.meet(a, b, times: 1)
            try await a.append(contentsOf: (0..<10).map { bytes("\($0)") }, to: "b", stream: "s")
            let copy = tests.folder.file("copy")
            for end in ["", "-wal", "-mark"] {
                try FileManager.default.copyItem(atPath: tests.folder.file("a") + end, toPath: copy + end)
            }
            try await a.read { database, _ in database.add(transactionObserver: forgetting) }
            try await tests.meet(a, b)
            #expect(!forgetting.seen.isEmpty && forgetting.seen.allSatisfy { $0 == Self.normal })
            #expect(try await tests.take(10, from: b) == (0..<10).map { "\($0)" })
            await a.close()
            // What the disk had when the peer's word was not yet on it.
            a = try tests.open("copy")
            #expect(try await a.waiting().map(\.count) == [10])
            let (sent, _) = try await tests.meet(a, b)
            #expect(sent.committed == 10)
            #expect(try await a.waiting().allSatisfy { $0.count == 0 })
            for store in [a, b] {
                #expect(try await store.notices().isEmpty)
                #expect(try await tests.leftOver(store) == 0)
                await store.close()
            }
        }
    }
#endif
