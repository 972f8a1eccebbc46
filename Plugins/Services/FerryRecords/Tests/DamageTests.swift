#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Stores that SQLite opens and that have in their tables what Ferry never wrote: nothing traps, and the error names the place.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct DamageTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        /// A store with records in both directions, and what is done with such a one.
        private func make() async throws -> String {
            let (a, b) = (try tests.open("a"), try tests.open("b"))
            for number in 1...3 { try await a.append(bytes("out \(number)"), to: "b", stream: "s") }
            try await b.append(bytes("in 1"), to: "a", stream: "t")
            try await b.append(bytes("in 2"), to: "a", stream: "t")
            try await tests.meet(a, b)
            for number in 4...6 { try await a.append(bytes("out \(number)"), to: "b", stream: "s") }
            await a.close()
            await b.close()
            return tests.folder.file("a")
        }

        /// Opens the store, lists, receives, and drains it; returns the first error.
        private func use(_ path: String) async throws -> FerryError? {
            do throws(FerryError) {
                let store = try RecordStore.open(path, time: VirtualTime())
                let error = await Result { try await use(store) }.error
                await store.close()
                return error
            } catch { return error }
        }

        private func use(_ store: RecordStore) async throws {
            _ = try await store.notices()
            for stream in try await store.waiting() {
                _ = try await store.records(to: stream.peer, stream: stream.stream)
            }
            var inbox = store.inbox.makeAsyncIterator()
            for _ in 0..<(try await store.undone()) {
                guard let record = try await inbox.next() else { break }
                try await record.done()
            }
            let b = try tests.open("b")
            try await b.append(bytes("in 3"), to: "a", stream: "t")
            let result = await Result { try await tests.meet(store, b) }
            await b.close()
            _ = try result.get()
        }

        struct Change: Sendable, CustomTestStringConvertible {
            let sql: String
            let place: [String]
            var testDescription: String { sql }

            init(_ sql: String, _ place: String...) {
                self.sql = sql
                self.place = place
            }
        }

        static let changes = [
            Change(
                "UPDATE ferry_outbound SET checksum = NULL, count = 9223372036854775807", "ferry_outbound", "id 1",
                "count", "9223372036854775807"),
            Change("UPDATE ferry_outbound SET checksum = NULL, count = -1", "ferry_outbound", "count"),
            Change("UPDATE ferry_outbound SET checksum = NULL, count = 4", "ferry_outbound", "count"),
            Change("UPDATE ferry_outbound SET checksum = NULL, count = 2", "ferry_outbound", "count"),
            Change("UPDATE ferry_outbound SET checksum = NULL, bytes = 'many'", "ferry_outbound", "bytes", "a text"),
            Change("UPDATE ferry_outbound SET checksum = NULL, last = 1.5", "ferry_outbound", "last", "a fraction"),
            Change("UPDATE ferry_outbound SET checksum = NULL, priority = 256", "ferry_outbound", "priority"),
            Change("UPDATE ferry_outbound SET checksum = NULL, nonce = NULL", "ferry_outbound", "nonce"),
            Change("UPDATE ferry_outbound SET peer = 7, checksum = NULL", "ferry_outbound", "peer", "7"),
            Change("UPDATE ferry_outbound SET priority = 3", "ferry_outbound", "checksum"),
            Change("UPDATE ferry_inbound SET checksum = NULL, number = 9223372036854775807", "ferry_inbound", "number"),
            Change("UPDATE ferry_inbound SET checksum = NULL, bytes = 1", "ferry_inbound", "bytes"),
            Change("UPDATE ferry_position SET sequence = 1", "ferry_position", "checksum"),
            Change("UPDATE ferry_inbound SET checksum = NULL, name = x'00'", "ferry_inbound", "name", "a BLOB"),
            Change("UPDATE ferry_inbound SET sequence = 1", "ferry_inbound", "checksum"),
            Change("UPDATE ferry_peer SET name = 'c'", "ferry_peer", "checksum"),
            Change("UPDATE ferry_peer SET checksum = NULL, name = CAST(x'FF' AS TEXT)", "ferry_peer", "name"),
            Change("UPDATE ferry_peer SET checksum = NULL, certainty = 'sure'", "ferry_peer", "certainty"),
            Change("UPDATE ferry_store SET high = high + 1", "ferry_store", "checksum"),
            Change("UPDATE ferry_store SET checksum = NULL, low = 'x'", "ferry_store", "low"),
            Change("UPDATE ferry_opening SET nonce = nonce + 1", "ferry_opening", "checksum"),
            Change("UPDATE ferry_opening SET generation = -5", "ferry_opening", "generation"),
            Change(
                "UPDATE ferry_waiting SET record = x'00' WHERE sequence = 5", "ferry_waiting", "sequence 5", "checksum"),
            Change(
                "UPDATE ferry_waiting SET expires = 'soon' WHERE sequence = 4", "ferry_waiting", "sequence 4", "expires"
            ),
            Change("UPDATE ferry_waiting SET checksum = NULL, record = 'text'", "ferry_waiting", "record", "a text"),
            Change("UPDATE ferry_waiting SET checksum = NULL, generation = 77", "ferry_waiting", "generation", "77"),
            Change("UPDATE ferry_arrived SET record = x'00' WHERE number = 2", "ferry_arrived", "number 2", "checksum"),
            Change("UPDATE ferry_arrived SET sequence = 9 WHERE number = 1", "ferry_arrived", "number 1", "checksum"),
            Change("UPDATE ferry_arrived SET checksum = NULL, nonce = 'x'", "ferry_arrived", "nonce"),
            Change("DROP TABLE ferry_position", "ferry_position"),
            Change("CREATE TRIGGER t AFTER DELETE ON ferry_waiting BEGIN SELECT 1; END", "a trigger or a view"),
            Change("INSERT INTO ferry_notice (at, text) VALUES ('never', 1)", "ferry_notice", "at"),
            Change("DELETE FROM ferry_waiting", "ferry_outbound", "count"),
        ]

        @Test(arguments: changes) func impossibleValuesAreToldWithTheirPlace(_ change: Change) async throws {
            let path = try await make()
            try edit(path, change.sql)
            let error = try #require(await use(path))
            #expect(error.code == .storeDamaged, "\(error)")
            #expect(error.message.contains(path))
            for part in change.place { #expect(error.message.contains(part), "\(part): \(error.message)") }
        }

        @Test func undamagedStoresAreUsed() async throws {
            let path = try await make()
            #expect(try await use(path) == nil)
        }

        /// Rows of before schema 3 have no checksum, and are read.
        @Test func rowsWithoutChecksumsAreRead() async throws {
            let path = try await make()
            for table in ["store", "opening", "peer", "outbound", "inbound", "position", "waiting", "arrived"] {
                try edit(path, "UPDATE ferry_\(table) SET checksum = NULL")
            }
            #expect(try await use(path) == nil)
            // What was written meanwhile has one.
            let database = try DatabaseQueue(path: path)
            let missing = try await database.read { database in
                try Int.fetchOne(
                    database,
                    sql: """
                        SELECT (SELECT count(*) FROM ferry_outbound WHERE checksum IS NULL)
                        + (SELECT count(*) FROM ferry_inbound WHERE checksum IS NULL)
                        + (SELECT count(*) FROM ferry_peer WHERE checksum IS NULL)
                        """)
            }
            #expect(missing == 0)
            try database.close()
        }

        /// A damaged record holds up its stream, and can be taken out of the way.
        @Test func aDamagedRecordIsCancelled() async throws {
            let path = try await make()
            try edit(path, "UPDATE ferry_waiting SET record = x'00' WHERE sequence = 5")
            let store = try RecordStore.open(path, time: VirtualTime())
            let b = try tests.open("b")
            await #expect(throws: FerryError.self) { try await tests.meet(store, b) }
            let id = RecordID(sender: store.id, epoch: store.epoch, stream: "s", sequence: 5)
            try await store.cancel(id, to: "b")
            try await tests.meet(store, b)
            #expect(try await store.waiting().map(\.count) == [0])
            #expect(try await tests.take(5, from: b).suffix(2) == ["out 4", "out 6"])
            await b.close()
            await store.close()
        }

        /// Flipped bits of the file are never handed over as records.
        @Test func flippedBitsAreNoRecords() async throws {
            let path = try await make()
            let original = try Data(contentsOf: URL(fileURLWithPath: path))
            let good: Set<String> = ["out 4", "out 5", "out 6", "in 1", "in 2"]
            var random = SplitMix64(seed: UInt64.random(in: 0...UInt64.max))
            let seed = random
            // Most of the file is room for the next records.
            let places = original.indices.dropFirst(100).filter { original[$0] != 0 }
            var (told, unseen) = (0, 0)
            for _ in 0..<100 {
                let place = places[Int.random(in: places.indices, using: &random)]
                var bytes = original
                bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
                try bytes.write(to: URL(fileURLWithPath: path))
                for end in ["-wal", "-mark"] { try? FileManager.default.removeItem(atPath: path + end) }
                let (records, error) = await read(path)
                #expect(records.isSubset(of: good), "byte \(place), \(seed): \(records)")
                if error != nil { told += 1 } else { unseen += records.count < 5 ? 1 : 0 }
            }
            print("100 flipped bits: \(told) were told, \(unseen) lost a record otherwise")
        }

        /// What is handed over of a store, until an error.
        private func read(_ path: String) async -> (Set<String>, FerryError?) {
            let (records, failure) = (Shared(Set<String>()), Shared<FerryError?>(nil))
            do throws(FerryError) {
                let store = try RecordStore.open(path, time: VirtualTime())
                let inbox = Task {
                    do {
                        for try await record in store.inbox {
                            records.value.insert(String(decoding: record.bytes, as: UTF8.self))
                        }
                    } catch { failure.value = failure.value ?? error as? FerryError }
                }
                do throws(FerryError) {
                    for stream in try await store.waiting() {
                        for record in try await store.records(to: stream.peer, stream: stream.stream) {
                            records.value.insert(String(decoding: record.bytes, as: UTF8.self))
                        }
                    }
                } catch { failure.value = failure.value ?? error }
                // What is said to be there and is not comes never.
                for _ in 0..<10 {
                    await Task.yield()
                    _ = try? await store.read { _, _ in }
                }
                await store.close()
                await inbox.value
            } catch { failure.value = failure.value ?? error }
            return (records.value, failure.value)
        }
    }

    extension Result where Failure == any Error {
        fileprivate init(_ body: () async throws -> Success) async {
            do { self = .success(try await body()) } catch { self = .failure(error) }
        }

        fileprivate var error: FerryError? {
            if case .failure(let error) = self { error as? FerryError } else { nil }
        }
    }
#endif
