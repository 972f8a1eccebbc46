#if Records
    import GRDB
    import GRDBSQLite

    /// Row after row through one statement: a record's numbers and bytes straight to SQLite, without a box for each value.
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
    }
#endif
