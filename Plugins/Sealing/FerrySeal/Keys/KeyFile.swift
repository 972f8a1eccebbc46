#if Seal
    public import Ferry

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// Keys in files.
    public enum KeyFile {
        /// Reads a secret key.
        ///
        /// - Throws: `seal.unsafeFile` when the file is missing, is no regular file, belongs to another user, or lets anybody else read or
        ///   write it; `seal.malformedKey` for its content. Nothing of the content is in an error.
        public static func readSecretKey(at path: String) throws(FerryError) -> SecretKey {
            try KeyText.parse(try read(path, atMost: KeyText.maximumSize, refusing: 0o077))
        }

        /// Writes a secret key into a new file that its owner alone can read (0600), and has the system keep it.
        ///
        /// - Throws: `seal.unsafeFile` when the file exists, for a key is never overwritten, or cannot be written.
        public static func writeSecretKey(_ key: SecretKey, at path: String) throws(FerryError) {
            try writeNew(KeyText.write(key), at: path)
        }

        /// Writes a text into a new file of 0600, and has the system keep it.
        ///
        /// - Throws: `seal.unsafeFile` when the file exists or cannot be written.
        package static func writeNew(_ text: String, at path: String) throws(FerryError) {
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw failure(path, "cannot be made", "Choose another path, or move the file away") }
            defer { closeFile(file) }
            var isWritten = fchmod(file, 0o600) == 0
            var bytes = [UInt8](text.utf8)
            defer { wipe(&bytes) }
            var offset = 0
            while isWritten, offset < bytes.count {
                let count = bytes.withUnsafeBytes { writeFile(file, UnsafeRawBufferPointer(rebasing: $0[offset...])) }
                if count < 0, errno == EINTR { continue }
                isWritten = count > 0
                offset += max(0, count)
            }
            guard isWritten, fsync(file) == 0 else {
                let error = failure(path, "cannot be written", "Free space on the disk and try again")
                _ = unlink(path)
                throw error
            }
        }

        /// Puts a text in place of a file, whole or not at all.
        ///
        /// - Throws: `seal.unsafeFile` when it cannot be written.
        package static func replace(_ path: String, with text: String) throws(FerryError) {
            let new = path + ".new"
            _ = unlink(new)
            try writeNew(text, at: new)
            guard rename(new, path) == 0 else {
                let error = failure(path, "cannot be replaced", "Check the permissions of its folder")
                _ = unlink(new)
                throw error
            }
        }

        /// Calls `body` while no other process does so with the same file, which is made and left.
        ///
        /// - Throws: `seal.unsafeFile`, and what `body` throws.
        package static func withLock<Value>(
            _ path: String, _ body: () throws(FerryError) -> Value
        ) throws(FerryError) -> Value {
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw failure(path, "cannot be made", "Check the permissions of its folder") }
            defer { closeFile(file) }
            while flock(file, LOCK_EX) != 0 {
                guard errno == EINTR else { throw failure(path, "cannot be locked", "Try again") }
            }
            return try body()
        }

        /// Reads a text that only its owner may read or write.
        ///
        /// - Throws: `seal.unsafeFile`.
        package static func readPrivateText(at path: String) throws(FerryError) -> String {
            try read(path, atMost: KeyText.maximumSize, refusing: 0o077)
        }

        /// Reads the text of a list of keys; empty when the file is missing.
        ///
        /// - Throws: `seal.unsafeFile`.
        package static func readListText(at path: String) throws(FerryError) -> String {
            var status = stat()
            if lstat(path, &status) != 0, errno == ENOENT { return "" }
            return try read(path, atMost: AllowList.maximumSize, refusing: 0o022)
        }

        /// Numbers that change when the file at a path does; none when there is no file.
        package static func mark(of path: String) -> [Int64] {
            var status = stat()
            guard lstat(path, &status) == 0 else { return [] }
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            return [
                Int64(status.st_ino), Int64(status.st_size), Int64(time.tv_sec), Int64(time.tv_nsec),
                Int64(status.st_mode), Int64(status.st_uid),
            ]
        }

        /// Reads a list of keys. Others may read it and not write it. A file that is missing is an empty list.
        ///
        /// - Throws: `seal.unsafeFile`, `seal.malformedKey`.
        public static func readAllowList(at path: String) throws(FerryError) -> AllowList {
            try AllowList(parsing: try readListText(at: path))
        }

        private static func read(_ path: String, atMost limit: Int, refusing mode: mode_t) throws(FerryError) -> String
        {
            // Checks the open file, so that no other takes its place in between. A pipe must not hang the opening.
            let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard file >= 0 else {
                throw failure(
                    path, "cannot be opened", "Make a key with `ferry key`, or check the path; links are not followed")
            }
            defer { closeFile(file) }
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                throw failure(path, "is no regular file", "Name the file itself", isSystem: false)
            }
            guard status.st_uid == geteuid() || status.st_uid == 0 else {
                throw failure(path, "belongs to another user", "Copy it to a file of your own", isSystem: false)
            }
            guard status.st_mode & mode == 0 else {
                let octal = String(status.st_mode & 0o777, radix: 8)
                throw failure(
                    path, "has the permissions \(octal), so that others can \(mode & 0o044 != 0 ? "read" : "write") it",
                    "Run `chmod \(mode & 0o044 != 0 ? "600" : "go-w")` on it, and make a new key if others may have read it",
                    isSystem: false)
            }
            var bytes: [UInt8] = []
            defer { wipe(&bytes) }
            var buffer = [UInt8](repeating: 0, count: 4096)
            defer { wipe(&buffer) }
            while bytes.count <= limit {
                let count = buffer.withUnsafeMutableBytes { readFile(file, $0) }
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw failure(path, "cannot be read", "Check the disk") }
                if count == 0 { break }
                bytes += buffer[..<count]
            }
            guard bytes.count <= limit else {
                throw failure(path, "has more than \(limit) bytes", "Name another file", isSystem: false)
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw failure(path, "is not UTF-8", "Name another file", isSystem: false)
            }
            return text
        }

        private static func failure(_ path: String, _ what: String, _ remedy: String, isSystem: Bool = true)
            -> FerryError
        {
            let why = isSystem ? ": \(String(cString: strerror(errno)))" : ""
            return FerryError(.sealUnsafeFile, "The file \(path) \(what)\(why). \(remedy).")
        }
    }

    // Named, for `KeyFile.read` hides the system's.
    private func closeFile(_ file: Int32) { _ = close(file) }
    private func readFile(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        read(file, buffer.baseAddress, buffer.count)
    }
    private func writeFile(_ file: Int32, _ buffer: UnsafeRawBufferPointer) -> Int {
        write(file, buffer.baseAddress, buffer.count)
    }
#endif
