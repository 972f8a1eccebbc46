#if Records
    public import Ferry
    import Foundation
    import GRDB

    extension FerryError.Code {
        /// Another process, or another part of this one, has the store open; the message says which.
        public static let storeInUse = FerryError.Code("records.storeInUse")
        /// The file is damaged, or is no store of records.
        public static let storeDamaged = FerryError.Code("records.storeDamaged")
        /// A newer version of Ferry has written the file.
        public static let storeTooNew = FerryError.Code("records.storeTooNew")
        /// The disk is full. Refused records can be appended again once there is room.
        public static let diskFull = FerryError.Code("records.diskFull")
        /// The file cannot be written, or not be opened.
        public static let storeNotWritable = FerryError.Code("records.storeNotWritable")
        /// The disk failed, and the store stopped so that nothing is said to be there that may not be. Open it again.
        public static let storeFailed = FerryError.Code("records.storeFailed")
        /// The database refuses what one call wrote. Nothing of that call is stored; the store goes on.
        public static let storeRefused = FerryError.Code("records.storeRefused")
        /// The outbox is at its high-water mark.
        public static let outboxFull = FerryError.Code("records.outboxFull")
        /// There is no such peer, stream or record.
        public static let recordNotFound = FerryError.Code("records.recordNotFound")
        /// The peer's store is another one than it should be.
        public static let strangePeer = FerryError.Code("records.strangePeer")
        /// Nothing was to be exchanged for as long as was asked.
        public static let exchangeIdle = FerryError.Code("records.exchangeIdle")
        /// A side ended the exchange before all was done; the message says which side and why.
        public static let exchangeEnded = FerryError.Code("records.exchangeEnded")
        /// The peer's disk is full or failed.
        public static let peerCannotStore = FerryError.Code("records.peerCannotStore")
    }

    extension Damage {
        func error(at path: String) -> FerryError {
            FerryError(
                .storeDamaged,
                "The store \(path) is damaged. Table \(table), \(row): column \(column) has \(what). Keep a copy, and put a backup in "
                    + "its place, or take the row out with sqlite3.", cause: self)
        }
    }

    /// An error of SQLite's, in words for people.
    func storeError(_ error: any Error, at path: String) -> FerryError {
        if let error = error as? FerryError { return error }
        if let damage = error as? Damage ?? (error as? DamageAfterChanges)?.damage { return damage.error(at: path) }
        guard let error = error as? DatabaseError else {
            return FerryError(.storeFailed, "The store \(path) cannot be used. Open it again.", cause: error)
        }
        switch error.resultCode {
        case .SQLITE_FULL:
            return FerryError(
                .diskFull,
                "The disk of the store \(path) is full. Make room, then store again the records that were refused.",
                cause: error)
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN:
            var isFolder: ObjCBool = false
            if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
                return FerryError(
                    .storeNotWritable, "\(path) is a folder, and a store is a file. Name a file in it.", cause: error)
            }
            return FerryError(
                .storeNotWritable,
                "The store \(path) cannot be opened for writing. Check that its folder exists, and that this user may write to "
                    + "the folder and to the file.", cause: error)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            return FerryError(
                .storeDamaged,
                "The file \(path) is damaged, or is no store of records. Keep a copy, and put a backup in its place or move it "
                    + "away for an empty store; `sqlite3 \(path) .recover` may save its records.", cause: error)
        case .SQLITE_CONSTRAINT, .SQLITE_TOOBIG, .SQLITE_MISMATCH, .SQLITE_RANGE:
            return FerryError(
                .storeRefused,
                "The store \(path) refuses a write: \(error.message ?? "\(error.resultCode)"). Nothing of it is stored.",
                cause: error)
        // The store's own statements are right; what they find is not.
        case .SQLITE_ERROR, .SQLITE_SCHEMA:
            return FerryError(
                .storeDamaged,
                "The file \(path) has other tables than a store of records (\(error.message ?? "no message")). Keep a copy, and put a "
                    + "backup in its place or move it away for an empty store.", cause: error)
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            return FerryError(
                .storeInUse, "Another program has the database \(path) open, such as sqlite3. Close it there.",
                cause: error)
        default:
            return FerryError(
                .storeFailed,
                "The disk failed under the store \(path). The last write may or may not be there: open the store again, "
                    + "and look.", cause: error)
        }
    }
#endif
