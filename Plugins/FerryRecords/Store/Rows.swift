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
            // Before the statement is reset, which has words of its own.
            let message = code == SQLITE_DONE ? nil : String(cString: sqlite3_errmsg(database.sqliteConnection))
            sqlite3_reset(sqliteStatement)
            sqlite3_bind_null(sqliteStatement, parameter)
            guard code == SQLITE_DONE else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: sql)
            }
        }

        /// The row that a statement is at; its columns are counted from 0.
        struct CurrentRow {
            fileprivate let statement: OpaquePointer

            func number(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

            func bytes(_ column: Int32) -> [UInt8] {
                // In this order: asking for the bytes may change how many there are.
                let start = sqlite3_column_blob(statement, column)
                return [UInt8](
                    UnsafeRawBufferPointer(
                        start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, column))))
            }
        }

        /// Reads rows, until `body` answers that it has enough.
        ///
        /// - Throws: `DatabaseError`; what `body` throws.
        func forEachRow(_ database: Database, _ body: (CurrentRow) throws -> Bool) throws {
            defer { sqlite3_reset(sqliteStatement) }
            while true {
                let code = sqlite3_step(sqliteStatement)
                if code == SQLITE_DONE { return }
                guard code == SQLITE_ROW else {
                    let message = String(cString: sqlite3_errmsg(database.sqliteConnection))
                    throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: sql)
                }
                guard try body(CurrentRow(statement: sqliteStatement)) else { return }
            }
        }
    }
#endif
