#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Files of other versions: an older one becomes a newer one with all that is in it, and a newer one is left alone.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct MigrationTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        private var path: String { tests.folder.file("a") }

        private func open(_ migrations: [String]) throws(FerryError) -> RecordStore {
            let wallClock = Date(timeIntervalSince1970: 1_800_000_000)
            return try RecordStore.open(path, .init(), VirtualTime(), { wallClock }, migrations)
        }

        /// Makes the file what a store of these migrations is, with these rows.
        private func make(_ migrations: [String], _ rows: String) throws {
            let database = try DatabaseQueue(path: path)
            try database.writeWithoutTransaction { database in
                try Schema.prepare(database, at: path, migrations)
                try database.execute(sql: rows)
            }
            try database.close()
        }

        private func version() throws -> Int? {
            let database = try DatabaseQueue(path: path)
            defer { try? database.close() }
            return try database.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
        }

        private var contents: Data { get throws { try Data(contentsOf: URL(fileURLWithPath: path)) } }

        /// A store as there never was one, which knows neither priorities nor expiry, and counts what waits each time.
        private static let older = """
            CREATE TABLE ferry_store (one INTEGER PRIMARY KEY CHECK (one = 1), high INTEGER NOT NULL, low INTEGER NOT NULL);
            CREATE TABLE ferry_opening (generation INTEGER PRIMARY KEY, nonce INTEGER NOT NULL);
            CREATE TABLE ferry_peer (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, high INTEGER, low INTEGER, certainty INTEGER,
                generation INTEGER, nonce INTEGER, largest INTEGER, UNIQUE (high, low));
            CREATE TABLE ferry_outbound (
                id INTEGER PRIMARY KEY, peer INTEGER NOT NULL, name TEXT NOT NULL, last INTEGER NOT NULL,
                generation INTEGER, nonce INTEGER, acknowledged INTEGER, UNIQUE (peer, name));
            CREATE TABLE ferry_record (
                stream INTEGER NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL, record BLOB NOT NULL,
                PRIMARY KEY (stream, sequence)) WITHOUT ROWID;
            CREATE TABLE ferry_inbound (
                id INTEGER PRIMARY KEY, peer INTEGER NOT NULL, name TEXT NOT NULL,
                generation INTEGER, nonce INTEGER, sequence INTEGER,
                number INTEGER NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL, UNIQUE (peer, name));
            CREATE TABLE ferry_position (
                stream INTEGER NOT NULL, generation INTEGER NOT NULL, nonce INTEGER NOT NULL, sequence INTEGER NOT NULL,
                PRIMARY KEY (stream, generation, nonce)) WITHOUT ROWID;
            CREATE TABLE ferry_arrived (
                stream INTEGER NOT NULL, number INTEGER NOT NULL, generation INTEGER NOT NULL, nonce INTEGER NOT NULL,
                sequence INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
            """

        /// From there to what there is: a table by another name and with more columns, sums that are kept from now on, new tables.
        private static let newer =
            """
            CREATE TABLE ferry_waiting (
                stream INTEGER NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL, priority INTEGER NOT NULL,
                expires INTEGER, record BLOB NOT NULL, PRIMARY KEY (stream, sequence)) WITHOUT ROWID;
            INSERT INTO ferry_waiting SELECT stream, sequence, generation, 1, NULL, record FROM ferry_record;
            DROP TABLE ferry_record;
            ALTER TABLE ferry_outbound ADD COLUMN count INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE ferry_outbound ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE ferry_outbound ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
            UPDATE ferry_outbound SET
                count = (SELECT count(*) FROM ferry_waiting WHERE stream = id),
                bytes = (SELECT coalesce(sum(length(record)), 0) FROM ferry_waiting WHERE stream = id), priority = 1;
            CREATE INDEX ferry_expiring ON ferry_waiting (expires) WHERE expires IS NOT NULL;
            CREATE TABLE ferry_withdrawn (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, sequence INTEGER NOT NULL);
            CREATE INDEX ferry_withdrawn_place ON ferry_withdrawn (stream, sequence);
            CREATE TABLE ferry_notice (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT, text TEXT NOT NULL);
            """ + Schema.migrations.dropFirst().joined()

        /// Opened twice; two records wait for b, which has one, and one of b's lies in the inbox.
        private static func rows(waiting: String) -> String {
            """
            INSERT INTO ferry_store VALUES (1, 17, 18);
            INSERT INTO ferry_opening VALUES (1, 101), (2, -102);
            INSERT INTO ferry_peer (id, name) VALUES (1, 'b');
            INSERT INTO ferry_outbound (id, peer, name, last, generation, nonce, acknowledged) VALUES (1, 1, 's', 3, 1, 101, 1);
            \(waiting)
            INSERT INTO ferry_inbound VALUES (1, 1, 't', 4, 104, 1, 1, 1, 3);
            INSERT INTO ferry_position VALUES (1, 4, 104, 1);
            INSERT INTO ferry_arrived VALUES (1, 1, 4, 104, 1, CAST('old' AS BLOB));
            """
        }

        private static let oldRows = rows(
            waiting: """
                INSERT INTO ferry_record VALUES (1, 2, 1, CAST('two' AS BLOB)), (1, 3, 2, CAST('three' AS BLOB));
                """)

        /// All that those rows say is there, and goes on.
        private func check(_ store: RecordStore) async throws {
            #expect(store.id == StoreID(high: 17, low: 18) && store.epoch.generation == 3)
            let waiting = try await store.records(to: "b", stream: "s")
            #expect(waiting.map(\.bytes) == [bytes("two"), bytes("three")])
            #expect(waiting.map(\.id.sequence) == [2, 3])
            #expect(
                waiting.map(\.id.epoch) == [
                    Epoch(generation: 1, nonce: 101), Epoch(generation: 2, nonce: UInt64(bitPattern: -102)),
                ])
            #expect(
                try await store.waiting() == [.init(peer: "b", stream: "s", count: 2, bytes: 8, committedThrough: 1)])
            #expect(try await store.append(bytes("four"), to: "b", stream: "s").sequence == 4)
            #expect(try await tests.take(1, from: store) == ["old"])
            let b = try tests.open("b")
            try await tests.meet(store, b)
            #expect(try await tests.take(3, from: b) == ["two", "three", "four"])
            #expect(try await tests.leftOver(b) == 0)
            await b.close()
        }

        @Test func anOlderFileBecomesANewerOne() async throws {
            try make([Self.older], Self.oldRows)
            #expect(try version() == 1)
            let store = try open([Self.older, Self.newer])
            try await check(store)
            await store.close()
            #expect(try version() == 2)
            // The second time there is nothing to change.
            await (try open([Self.older, Self.newer])).close()
            // And the older Ferry leaves it alone from now on.
            let before = try contents
            let error = #expect(throws: FerryError.self) { try open([Self.older]) }
            #expect(error?.code == .storeTooNew)
            #expect(error?.message.contains("schema 2; this one knows up to 1") == true)
            #expect(error?.message.contains("Update Ferry, or use a copy from before") == true)
            #expect(try contents == before)
        }

        /// Whatever ends a migration, the file is what it was, and can be opened by who could before, or by a better one.
        @Test func aMigrationThatFailsChangesNothing() async throws {
            try make([Self.older], Self.oldRows)
            let before = try contents
            #expect(throws: FerryError.self) { try open([Self.older, Self.newer, "CREATE TABLE ferry_store (id)"]) }
            #expect(try version() == 1)
            #expect(try contents.count == before.count)
            let store = try open([Self.older, Self.newer])
            try await check(store)
            await store.close()
        }

        /// A file as version 1 writes it. It does not change any more: what comes after it is a migration.
        @Test func aFileOfVersionOneIsRead() async throws {
            let tables = """
                CREATE TABLE ferry_store (one INTEGER PRIMARY KEY, high INTEGER, low INTEGER);
                CREATE TABLE ferry_opening (generation INTEGER PRIMARY KEY, nonce INTEGER NOT NULL);
                CREATE TABLE ferry_peer (
                    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, high INTEGER, low INTEGER, certainty INTEGER,
                    generation INTEGER, nonce INTEGER, largest INTEGER, UNIQUE (high, low));
                CREATE TABLE ferry_outbound (
                    id INTEGER PRIMARY KEY, peer INTEGER, name TEXT, last INTEGER, generation INTEGER, nonce INTEGER,
                    acknowledged INTEGER, count INTEGER, bytes INTEGER, priority INTEGER, UNIQUE (peer, name));
                CREATE TABLE ferry_waiting (
                    stream INTEGER NOT NULL, sequence INTEGER NOT NULL, generation INTEGER, priority INTEGER,
                    expires INTEGER, record BLOB, PRIMARY KEY (stream, sequence)) WITHOUT ROWID;
                CREATE INDEX ferry_expiring ON ferry_waiting (expires) WHERE expires IS NOT NULL;
                CREATE TABLE ferry_withdrawn (id INTEGER PRIMARY KEY, stream INTEGER, sequence INTEGER);
                CREATE INDEX ferry_withdrawn_place ON ferry_withdrawn (stream, sequence);
                CREATE TABLE ferry_inbound (
                    id INTEGER PRIMARY KEY, peer INTEGER, name TEXT, generation INTEGER, nonce INTEGER, sequence INTEGER,
                    number INTEGER, count INTEGER, bytes INTEGER, UNIQUE (peer, name));
                CREATE TABLE ferry_position (
                    stream INTEGER NOT NULL, generation INTEGER NOT NULL, nonce INTEGER NOT NULL, sequence INTEGER,
                    PRIMARY KEY (stream, generation, nonce)) WITHOUT ROWID;
                CREATE TABLE ferry_arrived (
                    stream INTEGER NOT NULL, number INTEGER NOT NULL, generation INTEGER, nonce INTEGER, sequence INTEGER,
                    record BLOB, PRIMARY KEY (stream, number)) WITHOUT ROWID;
                CREATE TABLE ferry_notice (id INTEGER PRIMARY KEY, at INTEGER, peer TEXT, text TEXT);
                PRAGMA application_id = 0x46727279; PRAGMA user_version = 1;
                """
            let rows = Self.rows(
                waiting: """
                    UPDATE ferry_outbound SET count = 2, bytes = 8, priority = 1;
                    INSERT INTO ferry_waiting VALUES (1, 2, 1, 1, NULL, CAST('two' AS BLOB)), (1, 3, 2, 1, NULL, CAST('three' AS BLOB));
                    """)
            let database = try DatabaseQueue(path: path)
            try await database.writeWithoutTransaction { try $0.execute(sql: tables + rows) }
            try database.close()
            let store = try tests.open("a")
            try await check(store)
            await store.close()
        }
    }
#endif
