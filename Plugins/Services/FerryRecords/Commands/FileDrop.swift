#if Records
    import CFerryChecksum
    import Ferry
    import Foundation

    /// A peer's folder for files that come through its inbox, such as its firmware: the commands by which a file is offered, arrives in
    /// pieces and gets its name.
    ///
    ///     let desk = CommandDesk(store, FileDrop("/var/lib/press/files").handlers)
    ///
    /// A file is a part until it is complete, and goes on from there after any interruption: also when its sender was ended and begins
    /// again. It gets its name when its size and checksum are right; a file of that name is replaced at once, whole.
    public struct FileDrop: Sendable {
        /// The most parts in the folder.
        public static let mostParts = 16

        private let folder: String
        private let largestFile: UInt64

        /// A folder.
        ///
        /// - Parameters:
        ///   - folder: a folder that is there.
        ///   - largestFile: the largest file that is taken, in bytes.
        public init(_ folder: String, largestFile: UInt64 = 1 << 30) {
            self.folder = folder
            self.largestFile = largestFile
        }

        /// The handlers of a file's commands.
        public var handlers: [String: CommandHandler] {
            func handler(
                _ body: @escaping @Sendable (FileDrop, RemoteCommand) throws(FerryError) -> FileProgress
            ) -> CommandHandler {
                .repeatable { command in
                    // The disk may be slow, and threads of Swift's concurrency must not wait for it.
                    try await withCheckedThrowingContinuation { continuation in
                        DispatchQueue.global().async {
                            continuation.resume(with: Result { try body(self, command).encoded })
                        }
                    }
                }
            }
            return [
                OfferedFile.Command.offer: handler { drop, command throws(FerryError) in
                    try drop.offer(try Self.file(command))
                },
                OfferedFile.Command.piece: handler { drop, command throws(FerryError) in
                    try drop.write(try FilePiece(decoding: command.body))
                },
                OfferedFile.Command.end: handler { drop, command throws(FerryError) in
                    try drop.end(try Self.file(command))
                },
            ]
        }

        private static func file(_ command: RemoteCommand) throws(FerryError) -> OfferedFile {
            var reader = MessageReader(command.body)
            reader.kind = "offer of a file"
            let file = try OfferedFile(&reader)
            guard reader.isAtEnd else { throw reader.failure("\(reader.rest.count) bytes follow the name") }
            return file
        }

        // MARK: The three commands

        /// Says how much of a file is here, and makes room for it.
        private func offer(_ file: OfferedFile) throws(FerryError) -> FileProgress {
            guard file.size <= largestFile else {
                throw failure(
                    file, "has \(file.size) bytes, and at most \(largestFile) are taken. Raise FileDrop's largestFile.")
            }
            if try hasArrived(file) { return FileProgress(held: file.size, isComplete: true) }
            let held = try size(of: Self.part(of: file)) ?? 0
            var parts = try partNames()
            for part in parts where part.hasPrefix(Self.partPrefix(of: file)) && part != Self.part(of: file) {
                // Of an older file of this name.
                unlink(path(part))
                parts.removeAll { $0 == part }
            }
            guard held > 0 || parts.count < Self.mostParts else {
                throw failure(
                    file,
                    "would be the \(parts.count + 1)th part in the folder, and there are at most \(Self.mostParts). Remove old ones."
                )
            }
            var disk = statvfs()
            if statvfs(folder, &disk) == 0 {
                let free = UInt64(disk.f_bavail).multipliedReportingOverflow(by: UInt64(disk.f_frsize))
                guard free.overflow || free.partialValue >= file.size - min(held, file.size) else {
                    throw failure(
                        file,
                        "needs \(file.size - held) bytes more, and the disk has \(free.partialValue) left. Make room.")
                }
            }
            return FileProgress(held: min(held, file.size), isComplete: false)
        }

        /// Writes a piece, and waits until it is on disk. One that leaves a gap, or is there already, changes nothing.
        private func write(_ piece: FilePiece) throws(FerryError) -> FileProgress {
            let file = piece.file
            guard file.size <= largestFile else {
                throw failure(file, "has \(file.size) bytes, and at most \(largestFile) are taken.")
            }
            let part = try size(of: Self.part(of: file))
            // A piece that was published twice may come after the file's end, and would begin a part anew.
            if part == nil, try hasArrived(file) { return FileProgress(held: file.size, isComplete: true) }
            let held = part ?? 0
            let end = piece.offset + UInt64(piece.bytes.count)
            guard piece.offset <= held, end > held else { return FileProgress(held: held, isComplete: false) }
            try withPart(of: file, O_WRONLY | O_CREAT) { (descriptor) throws(FerryError) in
                var rest = piece.bytes.dropFirst(Int(held - piece.offset))
                var offset = held
                while !rest.isEmpty {
                    let count = rest.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
                    guard count > 0 else {
                        if errno == EINTR { continue }
                        throw failure(file, "cannot be written: \(Self.systemError).")
                    }
                    rest = rest.dropFirst(count)
                    offset += UInt64(count)
                }
                guard Self.sync(descriptor) else { throw failure(file, "cannot be synced: \(Self.systemError).") }
            }
            return FileProgress(held: end, isComplete: false)
        }

        /// Gives a complete part the file's name. A part with another checksum is removed, so that the sender begins again.
        private func end(_ file: OfferedFile) throws(FerryError) -> FileProgress {
            // It may be done already, where the answer was not stored.
            if try hasArrived(file) { return FileProgress(held: file.size, isComplete: true) }
            let part = Self.part(of: file)
            if file.size == 0 { try withPart(of: file, O_WRONLY | O_CREAT) { _ in } }
            let held = try size(of: part) ?? 0
            guard held >= file.size else { return FileProgress(held: held, isComplete: false) }
            guard try checksum(of: part, file) == file.checksum, held == file.size else {
                unlink(path(part))
                return FileProgress(held: 0, isComplete: false)
            }
            guard rename(path(part), path(file.name)) == 0 else {
                throw failure(file, "cannot get its name: \(Self.systemError).")
            }
            try syncFolder(file)
            return FileProgress(held: file.size, isComplete: true)
        }

        // MARK: The folder

        private static func partPrefix(of file: OfferedFile) -> String { ".\(file.name).ferry-" }

        private static func part(of file: OfferedFile) -> String {
            "\(partPrefix(of: file))\(String(file.checksum, radix: 16))-\(file.size)"
        }

        private func path(_ name: String) -> String { "\(folder)/\(name)" }

        private func partNames() throws(FerryError) -> [String] {
            do {
                return try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                    $0.hasPrefix(".") && $0.contains(".ferry-")
                }
            } catch {
                throw FerryError(
                    .invalidConfiguration, "The folder \(folder) cannot be read. Check that it is there.", cause: error)
            }
        }

        /// The size of a regular file; nil where there is none.
        private func size(of name: String) throws(FerryError) -> UInt64? {
            var status = stat()
            guard lstat(path(name), &status) == 0 else {
                if errno == ENOENT { return nil }
                throw FerryError(.invalidConfiguration, "\(path(name)) cannot be looked at: \(Self.systemError).")
            }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw FerryError(.invalidConfiguration, "\(path(name)) is no file. Move it away.")
            }
            return UInt64(clamping: status.st_size)
        }

        private func hasArrived(_ file: OfferedFile) throws(FerryError) -> Bool {
            guard try size(of: file.name) == file.size else { return false }
            return try checksum(of: file.name, file) == file.checksum
        }

        private func withPart(
            of file: OfferedFile, _ flags: Int32, _ body: (Int32) throws(FerryError) -> Void
        ) throws(FerryError) {
            let descriptor = open(path(Self.part(of: file)), flags | O_NOFOLLOW | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else { throw failure(file, "cannot be opened: \(Self.systemError).") }
            defer { close(descriptor) }
            try body(descriptor)
        }

        private func checksum(of name: String, _ file: OfferedFile) throws(FerryError) -> UInt32 {
            let descriptor = open(path(name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
            guard descriptor >= 0 else { throw failure(file, "cannot be read: \(Self.systemError).") }
            defer { close(descriptor) }
            var checksum: UInt32 = 0
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
            defer { buffer.deallocate() }
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                if count == 0 { return checksum }
                guard count > 0 else {
                    if errno == EINTR { continue }
                    throw failure(file, "cannot be read: \(Self.systemError).")
                }
                checksum = ferry_crc32c(checksum, buffer.baseAddress, count)
            }
        }

        /// Waits until the folder's names are on disk.
        private func syncFolder(_ file: OfferedFile) throws(FerryError) {
            let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard descriptor >= 0 else {
                throw failure(file, "has its name, which cannot be synced: \(Self.systemError).")
            }
            defer { close(descriptor) }
            guard Self.sync(descriptor) else {
                throw failure(file, "has its name, which cannot be synced: \(Self.systemError).")
            }
        }

        private static func sync(_ descriptor: Int32) -> Bool {
            #if canImport(Darwin)
                // There `fsync` leaves it in the drive's memory (fsync(2)).
                if fcntl(descriptor, F_FULLFSYNC) == 0 { return true }
            #endif
            return fsync(descriptor) == 0
        }

        private static var systemError: String { String(cString: strerror(errno)) }

        private func failure(_ file: OfferedFile, _ what: String) -> FerryError {
            FerryError(.storeFailed, "The file \(file.name) \(what)")
        }
    }

    extension OfferedFile {
        /// Continues a CRC-32C over more bytes of a file.
        ///
        /// - Parameters:
        ///   - checksum: that of the bytes before; 0 at the beginning.
        ///   - bytes: the bytes that follow.
        /// - Returns: that of all.
        public static func checksum(_ checksum: UInt32 = 0, adding bytes: [UInt8]) -> UInt32 {
            bytes.withUnsafeBytes { ferry_crc32c(checksum, $0.baseAddress, $0.count) }
        }
    }
#endif
