#if Records
    import Ferry
    import GRDB

    /// The tables, and how older files become newer ones. `Documentation/Records.md` describes their columns.
    enum Schema {
        /// "Frry": tells a store from other databases (`PRAGMA application_id`).
        static let application: Int64 = 0x4672_7279

        /// From each version to the next. A released migration is never changed; new ones are added.
        static let migrations = [
            """
            CREATE TABLE ferry_store (one INTEGER PRIMARY KEY CHECK (one = 1), high INTEGER NOT NULL, low INTEGER NOT NULL);
            CREATE TABLE ferry_opening (generation INTEGER PRIMARY KEY, nonce INTEGER NOT NULL);
            CREATE TABLE ferry_peer (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, high INTEGER, low INTEGER, certainty INTEGER,
                generation INTEGER, nonce INTEGER, largest INTEGER, UNIQUE (high, low));
            CREATE TABLE ferry_outbound (
                id INTEGER PRIMARY KEY, peer INTEGER NOT NULL, name TEXT NOT NULL, last INTEGER NOT NULL,
                generation INTEGER, nonce INTEGER, acknowledged INTEGER,
                count INTEGER NOT NULL, bytes INTEGER NOT NULL, priority INTEGER NOT NULL, UNIQUE (peer, name));
            CREATE TABLE ferry_waiting (
                stream INTEGER NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL, priority INTEGER NOT NULL,
                expires INTEGER, record BLOB NOT NULL, PRIMARY KEY (stream, sequence)) WITHOUT ROWID;
            CREATE INDEX ferry_expiring ON ferry_waiting (expires) WHERE expires IS NOT NULL;
            CREATE TABLE ferry_withdrawn (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, sequence INTEGER NOT NULL);
            CREATE INDEX ferry_withdrawn_place ON ferry_withdrawn (stream, sequence);
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
            CREATE TABLE ferry_notice (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT, text TEXT NOT NULL);
            """,
            """
            ALTER TABLE ferry_inbound ADD COLUMN relayed INTEGER;
            ALTER TABLE ferry_inbound ADD COLUMN relayed_at INTEGER;
            """,
            // Rows that are there keep NULL until they are written next: a large file is not written anew.
            """
            ALTER TABLE ferry_store ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_opening ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_peer ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_outbound ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_inbound ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_position ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_waiting ADD COLUMN checksum INTEGER;
            ALTER TABLE ferry_arrived ADD COLUMN checksum INTEGER;
            """,
            """
            ALTER TABLE ferry_peer ADD COLUMN key TEXT;
            ALTER TABLE ferry_peer ADD COLUMN met INTEGER;
            """,
            """
            CREATE TABLE ferry_command (
                high INTEGER NOT NULL, low INTEGER NOT NULL, deadline INTEGER NOT NULL, state INTEGER NOT NULL,
                checksum INTEGER, PRIMARY KEY (high, low)) WITHOUT ROWID;
            CREATE INDEX ferry_command_deadline ON ferry_command (deadline);
            """,
        ]

        /// Makes a new file a store, or brings an older one up to date; in one transaction, so that a file is never between two
        /// versions.
        ///
        /// - Parameter migrations: the first makes a new file a store of version 1, each other one a store of a version that of the
        ///   next. Tests have some of their own.
        /// - Throws: `storeTooNew`, `storeDamaged` when it is another program's; SQLite's errors.
        static func prepare(_ database: Database, at path: String, _ migrations: [String] = migrations) throws {
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            let application = try Int64.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0
            guard isEmpty || application == Self.application else {
                throw FerryError(
                    .storeDamaged,
                    "The file \(path) is another program's database, not a store of records. Name another file.")
            }
            guard version <= migrations.count else {
                throw FerryError(
                    .storeTooNew,
                    "A newer version of Ferry has written the store \(path) (schema \(version); this one knows up to "
                        + "\(migrations.count)). Update Ferry, or use a copy from before.")
            }
            guard version >= (isEmpty ? 0 : 1) else {
                throw FerryError(.storeDamaged, "The store \(path) has no schema version. Put a backup in its place.")
            }
            // A trigger or a view in a table's place would run any SQL that another program wrote into the file.
            let foreign = try String.fetchOne(
                database,
                sql: """
                    SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view') AND tbl_name LIKE 'ferry!_%' ESCAPE '!' LIMIT 1
                    """)
            guard foreign == nil else {
                throw FerryError(
                    .storeDamaged,
                    "The store \(path) has a trigger or a view on Ferry's own tables, which Ferry never makes. Drop it with sqlite3, "
                        + "or put a backup in its place.")
            }
            guard version < migrations.count else { return }
            try database.inTransaction(.immediate) {
                for migration in migrations[version...] { try database.execute(sql: migration) }
                try database.execute(sql: "PRAGMA application_id = \(Self.application)")
                try database.execute(sql: "PRAGMA user_version = \(migrations.count)")
                return .commit
            }
        }
    }
#endif
