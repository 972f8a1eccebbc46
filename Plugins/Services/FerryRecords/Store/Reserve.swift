#if Records
    import Foundation

    /// A file beside the store whose blocks are kept back for making room: on a full disk the log takes them to withdraw, or to
    /// forget what a peer has committed. Nothing else is stored until they are there again.
    struct Reserve: Sendable {
        /// In bytes. A transaction that makes room takes away few records at a time and fits.
        static let size = 512 << 10

        private let path: String
        /// Whether the blocks are there.
        private(set) var isHeld: Bool

        /// Looks whether the file is there, and changes nothing.
        init(of store: String) {
            path = store + "-reserve"
            var status = stat()
            // st_blocks counts units of 512 bytes on every file system.
            isHeld =
                lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
                && Int(status.st_size) >= Self.size && Int(status.st_blocks) * 512 >= Self.size
        }

        /// Takes the blocks, if they are not there.
        ///
        /// - Returns: whether they are there now.
        mutating func take() -> Bool {
            guard !isHeld else { return true }
            let descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { return false }
            isHeld = allocate(descriptor, Self.size) && fsync(descriptor) == 0
            Foundation.close(descriptor)
            // A part of it would be in the way of what makes room.
            if !isHeld { unlink(path) }
            return isHeld
        }

        /// Gives the blocks to the file system.
        ///
        /// - Returns: whether there were some.
        mutating func giveUp() -> Bool {
            guard isHeld else { return false }
            isHeld = false
            return unlink(path) == 0
        }
    }

    /// Gives a file real blocks for its first bytes: writing there does not fail for want of room.
    ///
    /// - Returns: whether there was room.
    func allocate(_ descriptor: Int32, _ count: Int) -> Bool {
        #if os(Linux)
            return posix_fallocate(descriptor, 0, off_t(count)) == 0
        #else
            let bytes = [UInt8](repeating: 0xFE, count: 64 << 10)
            return stride(from: 0, to: count, by: bytes.count).allSatisfy { offset in
                let part = min(bytes.count, count - offset)
                return pwrite(descriptor, bytes, part, off_t(offset)) == part
            }
        #endif
    }
#endif
