import Foundation
import Synchronization

/// Where a receiver puts items.
protocol Destination: Sendable {
    /// Looks what is there of an item, and makes room for it.
    ///
    /// - Throws: ``Refusal``.
    func open(_ item: TransferItem) throws -> Place
}

/// Why an item is not taken, for people on both sides.
struct Refusal: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// What was found for an item.
enum Place: Sendable {
    /// Nothing needs to come: it is a folder, and there.
    case settled
    /// Something of that name is there, with this content.
    case whole(TransferContent)
    /// A part is there, perhaps none of it; the rest is written with this.
    case part(TransferContent, any ItemWriter)
}

/// Writes one item.
protocol ItemWriter: Sendable {
    /// Cuts what is there to so many bytes, after which the rest is written.
    func begin(at offset: UInt64) throws
    func write(_ bytes: ArraySlice<UInt8>) throws
    /// Gives it its name: it is whole.
    ///
    /// - Throws: ``Refusal`` when there is something of that name now.
    func finish() throws
}

/// Standard output: one item, which is not kept.
final class StreamDestination: Destination, ItemWriter {
    private let file: SystemFile
    private let isTaken = Mutex(false)

    init(_ file: SystemFile = SystemFile(STDOUT_FILENO, isOwned: false)) { self.file = file }

    func open(_ item: TransferItem) throws -> Place {
        guard item.kind != .folder else {
            throw Refusal("it is a folder, and the receiver writes to its standard output. Send it through tar.")
        }
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        guard !wasTaken else {
            throw Refusal("the receiver writes one item to its standard output, and has begun with one")
        }
        return .part(TransferContent(), self)
    }

    func begin(at offset: UInt64) {}
    func write(_ bytes: ArraySlice<UInt8>) throws { try file.write(bytes) }
    func finish() {}
}

/// A folder. Nothing is written outside of it, whatever names come and whatever links stand in it; nothing that is there is
/// replaced unless that is wanted. An item that is not complete is `.NAME.ferry-part` beside its place.
final class FolderDestination: Destination {
    private let root: SystemFile
    private let overwrites: Bool

    /// Opens a folder, making it if need be.
    ///
    /// - Throws: `SystemFile.Failure`.
    init(_ path: String, overwrites: Bool) throws(SystemFile.Failure) {
        _ = mkdir(path, 0o777)
        let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFile.Failure() }
        root = SystemFile(descriptor)
        self.overwrites = overwrites
    }

    func open(_ item: TransferItem) throws -> Place {
        guard let parts = TransferName.parts(item.name), let leaf = parts.last else {
            throw Refusal("its name leads out of the receiver's folder, or is none")
        }
        var folder = root
        for part in parts.dropLast() { folder = try Self.descend(into: part, of: folder) }
        if item.kind == .folder {
            _ = try Self.descend(into: leaf, of: folder)
            return .settled
        }
        if let whole = try whole(leaf, in: folder, item) { return .whole(whole) }
        return try part(leaf, in: folder, item)
    }

    /// Opens a folder in another, making it if need be. A link is not followed.
    private static func descend(into part: String, of folder: SystemFile) throws -> SystemFile {
        if mkdirat(folder.descriptor, part, 0o777) != 0, errno != EEXIST {
            throw Refusal("the folder '\(part)' cannot be made: \(SystemFile.Failure())")
        }
        let descriptor = openat(folder.descriptor, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOTDIR || errno == ELOOP {
                throw Refusal("'\(part)' is there and no folder, and links are not followed")
            }
            throw Refusal("the folder '\(part)' cannot be opened: \(SystemFile.Failure())")
        }
        return SystemFile(descriptor)
    }

    /// What stands in the item's place; nil when that is free, or to be replaced.
    private func whole(_ leaf: String, in folder: SystemFile, _ item: TransferItem) throws -> TransferContent? {
        var status = stat()
        guard fstatat(folder.descriptor, leaf, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw Refusal("something of that name is there that is no file")
        }
        if overwrites { return nil }
        guard item.kind == .file else {
            throw Refusal("a file of that name is there already; --overwrite at the receiver replaces it")
        }
        let descriptor = openat(folder.descriptor, leaf, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw Refusal("a file of that name is there that cannot be read") }
        return try SystemFile(descriptor).content()
    }

    private func part(_ leaf: String, in folder: SystemFile, _ item: TransferItem) throws -> Place {
        let name = TransferName.partial(of: leaf)
        let descriptor = openat(
            folder.descriptor, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600 as mode_t)
        guard descriptor >= 0 else { throw Refusal("it cannot be written: \(SystemFile.Failure())") }
        let file = SystemFile(descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
            throw Refusal("'\(name)' is in the way")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw Refusal("it is being received already") }
        // A stream cannot be sent again from its middle.
        let isFile = item.kind == .file
        let content = isFile ? try file.content() ?? TransferContent() : TransferContent()
        let writer = FileWriter(folder: folder, file: file, name, as: leaf, item, overwrites: overwrites)
        return .part(content, writer)
    }
}

/// Writes a file beside its place, and moves it there when it is whole.
private struct FileWriter: ItemWriter {
    private let folder: SystemFile
    private let file: SystemFile
    private let partName: String
    private let name: String
    private let item: TransferItem
    private let overwrites: Bool

    init(
        folder: SystemFile, file: SystemFile, _ partName: String, as name: String, _ item: TransferItem,
        overwrites: Bool
    ) {
        self.folder = folder
        self.file = file
        self.partName = partName
        self.name = name
        self.item = item
        self.overwrites = overwrites
    }

    func begin(at offset: UInt64) throws {
        guard ftruncate(file.descriptor, off_t(clamping: offset)) == 0 else { throw SystemFile.Failure() }
        try file.seek(to: offset)
    }

    func write(_ bytes: ArraySlice<UInt8>) throws { try file.write(bytes) }

    func finish() throws {
        _ = fchmod(file.descriptor, mode_t(item.mode == 0 ? 0o644 : item.mode & 0o777))
        if item.modified > 0 {
            var times = (timespec(), timespec())
            times.0.tv_sec = time_t(clamping: item.modified)
            times.1 = times.0
            _ = withUnsafePointer(to: &times) {
                $0.withMemoryRebound(to: timespec.self, capacity: 2) { futimens(file.descriptor, $0) }
            }
        }
        // "Done" is said of what a power cut does not take away.
        guard fsync(file.descriptor) == 0 else { throw SystemFile.Failure() }
        if overwrites {
            guard renameat(folder.descriptor, partName, folder.descriptor, name) == 0 else {
                throw SystemFile.Failure()
            }
            return
        }
        // Unlike a renaming, a link never replaces what has come there meanwhile.
        guard linkat(folder.descriptor, partName, folder.descriptor, name, 0) == 0 else {
            if errno == EEXIST { throw Refusal("a file of that name has come meanwhile") }
            throw SystemFile.Failure()
        }
        _ = unlinkat(folder.descriptor, partName, 0)
    }
}
