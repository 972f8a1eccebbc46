#if Records
    import Ferry
    import Foundation
    import GRDB

    /// One opener at a time. The kernel lifts the lock when the process ends, however it ends.
    struct StoreLock: ~Copyable, Sendable {
        private let descriptor: Int32

        /// - Throws: `storeInUse` with who has it; `storeNotWritable`.
        init(_ path: String) throws(FerryError) {
            let file = path + "-lock"
            // Closed here where this fails: the property's descriptor is closed by deinit, also when init throws.
            let descriptor = Foundation.open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                // An existing store has the file already: the disk has no room for a new one.
                if errno == ENOSPC || errno == EDQUOT {
                    throw storeError(DatabaseError(resultCode: .SQLITE_FULL), at: path)
                }
                throw FerryError(
                    .storeNotWritable,
                    "The store's lock \(file) cannot be opened: \(String(cString: strerror(errno))). Check that the folder "
                        + "exists, and that this user may write to it.")
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let holder = Self.holder(descriptor)
                close(descriptor)
                throw FerryError(
                    .storeInUse,
                    "The store \(path) is open in \(holder). One process at a time may have it: end that one, or ask it."
                )
            }
            let text = "process \(ProcessInfo.processInfo.processIdentifier) (\(ProcessInfo.processInfo.processName))"
            // Only for people, so whether it can be written does not matter.
            _ = ftruncate(descriptor, 0)
            _ = text.withCString { pwrite(descriptor, $0, strlen($0), 0) }
            self.descriptor = descriptor
        }

        /// Unlocked by name: a process that is being started meanwhile still has the file open too.
        deinit {
            flock(descriptor, LOCK_UN)
            Foundation.close(descriptor)
        }

        private static func holder(_ descriptor: Int32) -> String {
            var bytes = [UInt8](repeating: 0, count: 200)
            let count = pread(descriptor, &bytes, bytes.count, 0)
            return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : "another process"
        }
    }
#endif
