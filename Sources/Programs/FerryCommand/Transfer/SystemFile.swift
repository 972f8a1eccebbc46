import Dispatch
import Foundation
import Synchronization

/// An open file, read and written where waiting for it holds no other task up: a pipe may be silent for hours.
final class SystemFile: Sendable {
    let descriptor: Int32
    private let isOwned: Bool
    private static let queue = DispatchQueue(label: "ferry.files", attributes: .concurrent)

    /// What went wrong, for people.
    struct Failure: Error, CustomStringConvertible {
        let number: Int32
        init() { number = errno }
        init(_ number: Int32) { self.number = number }
        var description: String { String(cString: strerror(number)) }
    }

    /// - Parameter isOwned: whether it is closed with this object.
    init(_ descriptor: Int32, isOwned: Bool = true) {
        self.descriptor = descriptor
        self.isOwned = isOwned
    }

    deinit { if isOwned { close(descriptor) } }

    static func opened(_ path: String) throws(Failure) -> SystemFile {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure() }
        return SystemFile(descriptor)
    }

    /// A file that grows, made when it is not there; `-` is standard output.
    static func forAppending(_ path: String) throws(Failure) -> SystemFile {
        guard path != "-" else { return SystemFile(STDOUT_FILENO, isOwned: false) }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw Failure() }
        return SystemFile(descriptor)
    }

    /// The stamp of a path that this process may read, which is not opened: a pipe would wait for its writer, and be read once only.
    static func stamp(ofReadable path: String) throws(Failure) -> Stamp {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else { throw Failure() }
        return Stamp(status)
    }

    /// What tells whether a file is another one, or has changed. A write through a mapping may leave the times as they are.
    struct Stamp: Equatable {
        var device: UInt64
        var inode: UInt64
        var size: UInt64
        var modified: Time
        /// When the content or the metadata was changed last. A program cannot set this time.
        var changed: Time
        var kind: mode_t
        var permissions: UInt16
        var links: UInt64

        struct Time: Equatable {
            var seconds: Int
            var nanoseconds: Int
        }

        init(_ status: stat) {
            device = UInt64(truncatingIfNeeded: status.st_dev)
            inode = UInt64(truncatingIfNeeded: status.st_ino)
            size = UInt64(clamping: status.st_size)
            #if canImport(Darwin)
                let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
            #else
                let (modified, changed) = (status.st_mtim, status.st_ctim)
            #endif
            self.modified = Time(seconds: modified.tv_sec, nanoseconds: modified.tv_nsec)
            self.changed = Time(seconds: changed.tv_sec, nanoseconds: changed.tv_nsec)
            kind = status.st_mode & S_IFMT
            permissions = UInt16(truncatingIfNeeded: status.st_mode) & 0o777
            links = UInt64(clamping: Int64(status.st_nlink))
        }

        /// Whether both are of one file; its content may differ.
        func isSameFile(as other: Stamp) -> Bool { device == other.device && inode == other.inode }
    }

    func stamp() throws(Failure) -> Stamp {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Failure() }
        return Stamp(status)
    }

    /// What stands under a name in this folder; nil when nothing does. A link is not followed.
    func stamp(of name: String) throws(Failure) -> Stamp? {
        var status = stat()
        guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            if errno == ENOENT { return nil }
            throw Failure()
        }
        return Stamp(status)
    }

    /// Opens a file or folder in this folder. A link is not followed, and opening a pipe does not wait.
    func opened(_ name: String, _ flags: Int32, mode: mode_t = 0) throws(Failure) -> SystemFile {
        let descriptor = openat(self.descriptor, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw Failure() }
        return SystemFile(descriptor)
    }

    /// Waits until a power cut takes nothing of the file away, or of a folder none of its names.
    func synchronize() throws(Failure) {
        #if canImport(Darwin)
            // There `fsync` leaves it in the drive's memory (fsync(2)).
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else {
            // Of folders some file systems do not take it, and keep their names by other means.
            if errno == EINVAL || errno == ENOTSUP { return }
            throw Failure()
        }
    }

    /// Runs what may wait.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// Reads until the buffer is full or the file at its end. Returns how much was read.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        var filled = 0
        while filled < buffer.count {
            let count = read(descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure() }
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Reads the bytes at hand, at least one unless the file is at its end.
    func readSome(_ buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        while true {
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure() }
            return count
        }
    }

    func write(_ bytes: ArraySlice<UInt8>) throws(Failure) {
        let failure = bytes.withUnsafeBytes { bytes -> Failure? in
            var done = 0
            while done < bytes.count {
                let count = Foundation.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { return Failure() }
                done += count
            }
            return nil
        }
        if let failure { throw failure }
    }

    func seek(to offset: UInt64) throws(Failure) {
        guard lseek(descriptor, off_t(clamping: offset), SEEK_SET) >= 0 else { throw Failure() }
    }

    /// The digest of the first `count` bytes, or of the whole file; nil when it is shorter. Leaves the file at their end.
    func content(of count: UInt64? = nil) throws(Failure) -> TransferContent? {
        try seek(to: 0)
        var content = TransferContent()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while count.map({ content.count < $0 }) ?? true {
            let wanted = min(UInt64(buffer.count), (count ?? .max) - content.count)
            let read = try fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(wanted)]))
            if read == 0 { return count == nil ? content : nil }
            content.add(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<read]))
        }
        return content
    }
}
