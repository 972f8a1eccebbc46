#if Records
    import GRDB
    import GRDBSQLite

    /// Row after row through one statement: a record's numbers and bytes straight to and from SQLite, without a box for each value.
    extension Statement {
        /// Gives a parameter, counted from 1, a number or NULL, which it keeps for the rows that follow.
        func set(_ parameter: Int32, _ number: Int64?) {
            if let number {
                sqlite3_bind_int64(sqliteStatement, parameter, number)
            } else {
                sqlite3_bind_null(sqliteStatement, parameter)
            }
        }

        /// Writes a row with these bytes.
        ///
        /// - Throws: `DatabaseError`.
        func write(_ bytes: [UInt8], at parameter: Int32, _ database: Database) throws {
            // SQLite may have undone the transaction, as it does when the disk is full; a row would be on disk by itself then.
            guard database.isInsideTransaction else {
                throw DatabaseError(resultCode: .SQLITE_ABORT, message: "the transaction was undone", sql: sql)
            }
            let code = bytes.withUnsafeBytes { bytes in
                // Without a destructor: the bytes are there until the row is written.
                var code =
                    bytes.baseAddress.map {
                        sqlite3_bind_blob(sqliteStatement, parameter, $0, Int32(clamping: bytes.count), nil)
                    } ?? sqlite3_bind_zeroblob(sqliteStatement, parameter, 0)
                if code == SQLITE_OK { code = sqlite3_step(sqliteStatement) }
                return code
            }
            // Before the statement is reset, which replaces the message.
            let message = code == SQLITE_DONE ? nil : String(cString: sqlite3_errmsg(database.sqliteConnection))
            sqlite3_reset(sqliteStatement)
            sqlite3_bind_null(sqliteStatement, parameter)
            guard code == SQLITE_DONE else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: sql)
            }
        }

        /// Reads rows of a table, until `body` answers that it has enough.
        ///
        /// - Parameters:
        ///   - table: the table that errors name.
        ///   - keys: how many of the first columns tell which row it is.
        /// - Throws: `DatabaseError`; what `body` throws.
        func forEachRow(
            of table: String, keys: Int32 = 1, _ database: Database, _ body: (StoredRow) throws -> Bool
        ) throws {
            defer { sqlite3_reset(sqliteStatement) }
            while true {
                let code = sqlite3_step(sqliteStatement)
                if code == SQLITE_DONE { return }
                guard code == SQLITE_ROW else {
                    let message = String(cString: sqlite3_errmsg(database.sqliteConnection))
                    throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: sql)
                }
                guard try body(StoredRow(statement: sqliteStatement, table: table, keys: keys)) else { return }
            }
        }

        /// Reads the first row, if there is one.
        ///
        /// - Throws: `DatabaseError`; what `body` throws.
        func firstRow<Value>(
            of table: String, keys: Int32 = 1, _ database: Database, _ body: (StoredRow) throws -> Value
        ) throws -> Value? {
            var value: Value?
            try forEachRow(of: table, keys: keys, database) { row in
                value = try body(row)
                return false
            }
            return value
        }
    }

    /// The row that a statement is at; its columns are counted from 0. Decoding is total: a value of another type or out of its
    /// range is ``Damage``.
    struct StoredRow {
        fileprivate let statement: OpaquePointer
        fileprivate let table: String
        fileprivate let keys: Int32

        /// - Throws: ``Damage`` for a value that is no integer, or out of range.
        func number(_ column: Int32, _ range: ClosedRange<Int64> = 0...Int64.max) throws(Damage) -> Int64 {
            guard type(column) == SQLITE_INTEGER else {
                throw damage(column, "\(kind(column)) where a number belongs")
            }
            let value = sqlite3_column_int64(statement, column)
            guard range.contains(value) else {
                throw damage(column, "\(value), which is not within \(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }

        /// - Throws: ``Damage`` for a value that is neither an integer in range nor NULL.
        func numberOrNull(_ column: Int32, _ range: ClosedRange<Int64> = 0...Int64.max) throws(Damage) -> Int64? {
            type(column) == SQLITE_NULL ? nil : try number(column, range)
        }

        /// 64 bits, which SQLite keeps with a sign.
        ///
        /// - Throws: ``Damage``.
        func bits(_ column: Int32) throws(Damage) -> UInt64 {
            UInt64(bitPattern: try number(column, Int64.min...Int64.max))
        }

        /// - Throws: ``Damage``.
        func bitsOrNull(_ column: Int32) throws(Damage) -> UInt64? {
            type(column) == SQLITE_NULL ? nil : try bits(column)
        }

        /// A generation and, in the next column, its nonce, or NULL in both.
        ///
        /// - Throws: ``Damage``.
        func epochOrNull(_ column: Int32) throws(Damage) -> Epoch? {
            guard let generation = try numberOrNull(column) else {
                guard type(column + 1) == SQLITE_NULL else { throw damage(column, "nothing, beside a nonce") }
                return nil
            }
            return Epoch(generation: UInt64(generation), nonce: try bits(column + 1))
        }

        /// - Throws: ``Damage`` for a value that is no text, not UTF-8, longer than `longest` bytes, or has a NUL.
        func text(_ column: Int32, longest: Int) throws(Damage) -> String {
            guard type(column) == SQLITE_TEXT else { throw damage(column, "\(kind(column)) where a text belongs") }
            // In this order: asking for the text may change how many bytes there are.
            guard let start = sqlite3_column_text(statement, column) else {
                throw damage(column, "a text without bytes")
            }
            let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
            guard bytes.count <= longest else {
                throw damage(column, "a text of \(bytes.count) bytes where \(longest) are the most")
            }
            guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
                throw damage(column, "a text that is not UTF-8, or has a NUL")
            }
            return text
        }

        /// - Throws: ``Damage``.
        func textOrNull(_ column: Int32, longest: Int) throws(Damage) -> String? {
            type(column) == SQLITE_NULL ? nil : try text(column, longest: longest)
        }

        /// - Throws: ``Damage`` for a value that is no BLOB.
        func bytes(_ column: Int32) throws(Damage) -> [UInt8] {
            guard type(column) == SQLITE_BLOB else { throw damage(column, "\(kind(column)) where a BLOB belongs") }
            let start = sqlite3_column_blob(statement, column)
            return [UInt8](
                UnsafeRawBufferPointer(
                    start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, column))))
        }

        /// Holds the row to its checksum. Rows from before schema 3 have none, until they are written next.
        ///
        /// - Throws: ``Damage`` for a row that was changed since it was written.
        func check(_ column: Int32, _ checksum: RowChecksum) throws(Damage) {
            guard let stored = try numberOrNull(column, Int64.min...Int64.max) else { return }
            guard stored == checksum.column else {
                throw damage(column, "not that of the row's values: a bit of the row has changed")
            }
        }

        /// The damage of one column.
        func damage(_ column: Int32, _ what: String) -> Damage {
            let row = (0..<keys).map { key in
                type(key) == SQLITE_INTEGER
                    ? "\(name(key)) \(sqlite3_column_int64(statement, key))" : "\(name(key)) (\(kind(key)))"
            }
            return Damage(table: table, row: row.joined(separator: ", "), column: name(column), what: what)
        }

        private func type(_ column: Int32) -> Int32 { sqlite3_column_type(statement, column) }

        private func name(_ column: Int32) -> String {
            sqlite3_column_name(statement, column).map { String(cString: $0) } ?? "\(column)"
        }

        private func kind(_ column: Int32) -> String {
            switch type(column) {
            case SQLITE_INTEGER: "a number"
            case SQLITE_FLOAT: "a fraction"
            case SQLITE_TEXT: "a text"
            case SQLITE_BLOB: "a BLOB"
            default: "nothing"
            }
        }
    }
#endif
