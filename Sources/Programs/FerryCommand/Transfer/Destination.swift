import Foundation
import Synchronization

/// Where a receiver puts items.
protocol Destination: Sendable {
    /// Looks up the item in the destination. Nothing is written for a file of which no byte has come.
    ///
    /// - Throws: ``Refusal``.
    func open(_ item: TransferItem) throws -> Place
}

/// Why an item is not taken, for people on both sides.
struct Refusal: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The state of an item here.
enum Place: Sendable {
    /// Nothing needs to come: it is a folder, and on disk.
    case settled
    /// A file of that name is there.
    case whole(any StoredFile)
    /// `count` bytes of it are there, perhaps none; the rest is written with this.
    case part(count: UInt64, any ItemWriter)
}

/// A file that is there.
protocol StoredFile: Sendable {
    func content() throws -> TransferContent
    /// Waits until it is on disk, with its name.
    func keep() throws
}

/// Writes one item.
protocol ItemWriter: Sendable {
    /// The digest of the bytes that are on disk.
    func content() throws -> TransferContent
    /// Truncates the part to `offset` bytes; the rest is written after that.
    func begin(at offset: UInt64) throws
    func write(_ bytes: ArraySlice<UInt8>) throws
    /// Gives it its name: it is whole. Returns when it is on disk.
    ///
    /// - Throws: ``Refusal`` when there is something of that name now.
    func finish() throws
    /// Removes the part: a later attempt cannot use it.
    func discard()
}

/// Standard output: one item, which is not kept.
final class StreamDestination: Destination, ItemWriter {
    private let file: SystemFile
    private let isTaken = Mutex(false)

    init(_ file: SystemFile = SystemFile(STDOUT_FILENO, isOwned: false)) { self.file = file }

    private static let taken = Refusal(
        "the receiver writes one item to its standard output, and has begun with one")

    func open(_ item: TransferItem) throws -> Place {
        guard item.kind != .folder else {
            throw Refusal("it is a folder, and the receiver writes to its standard output. Send it through tar.")
        }
        guard !isTaken.withLock({ $0 }) else { throw Self.taken }
        return .part(count: 0, self)
    }

    func content() -> TransferContent { TransferContent() }

    func begin(at offset: UInt64) throws {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        guard !wasTaken else { throw Self.taken }
    }

    func write(_ bytes: ArraySlice<UInt8>) throws { try file.write(bytes) }
    func finish() {}
    func discard() {}
}

/// Compares an item with the file that is there in its place: for senders that cannot prove what they have, and are not told.
final class ComparingWriter: ItemWriter {
    private let file: any StoredFile
    private let received = Mutex(TransferContent())

    init(_ file: any StoredFile) { self.file = file }

    func content() -> TransferContent { TransferContent() }
    func begin(at offset: UInt64) { received.withLock { $0 = TransferContent() } }
    func write(_ bytes: ArraySlice<UInt8>) { received.withLock { $0.add(bytes) } }

    func finish() throws {
        let received = received.withLock { $0 }
        guard try file.content() == received else { throw FolderDestination.isTaken }
        try file.keep()
    }

    func discard() {}
}

/// A folder. Nothing is written outside of it, for any name that comes and any link that stands in it; nothing that is there is
/// replaced unless that is wanted. An item that is not complete is `.NAME.ferry-part` beside its place.
final class FolderDestination: Destination {
    private let folder: ReceivingFolder

    /// Opens a folder, making it if need be.
    ///
    /// - Throws: `SystemFile.Failure`.
    init(_ path: String, overwrites: Bool, seams: ReceivingFolder.Seams = .init()) throws(SystemFile.Failure) {
        folder = try ReceivingFolder(path, overwrites: overwrites, seams: seams)
    }

    static let isTaken = Refusal("another file of that name is there already; --overwrite at the receiver replaces it")

    func open(_ item: TransferItem) throws -> Place {
        guard let parts = TransferName.parts(item.name), let leaf = parts.last else {
            throw Refusal("its name leads out of the receiver's folder, or is none")
        }
        if item.kind == .folder {
            // A folder stays open to its owner, or nothing could be received into it.
            _ = try folder.make(parts, mode: mode_t((item.mode ?? 0o777) & 0o777 | 0o700))
            return .settled
        }
        let path = ReceivingFolder.Path(folders: parts.dropLast(), name: leaf)
        for _ in 0..<8 {
            guard let parent = try folder.open(path.folders) else { break }
            if let whole = try whole(path, in: parent, item) { return .whole(whole) }
            switch try folder.lock(path, in: parent) {
            case .none: break
            case .gone: continue
            case .locked(let file):
                let writer = FileWriter(folder, path, item, .open(parent: parent, file))
                // A stream cannot be sent again from its middle.
                return .part(count: item.kind == .file ? try file.stamp().size : 0, writer)
            }
            break
        }
        return .part(count: 0, FileWriter(folder, path, item, .none))
    }

    /// What stands in the item's place; nil when that is free, or to be replaced.
    private func whole(
        _ path: ReceivingFolder.Path, in parent: SystemFile, _ item: TransferItem
    ) throws -> (any StoredFile)? {
        guard let stamp = try parent.stamp(of: path.name) else { return nil }
        guard stamp.kind == S_IFREG else { throw Refusal("something of that name is there that is no file") }
        if folder.overwrites { return nil }
        guard item.kind == .file else { throw Self.isTaken }
        let file: SystemFile
        do { file = try parent.opened(path.name, O_RDONLY) } catch {
            throw Refusal("a file of that name is there that cannot be read")
        }
        return WholeFile(folder: folder, path: path, parent: parent, file: file)
    }
}

/// A file that was there before.
private struct WholeFile: StoredFile {
    let folder: ReceivingFolder
    let path: ReceivingFolder.Path
    let parent: SystemFile
    let file: SystemFile

    func content() throws -> TransferContent { try file.content() ?? TransferContent() }

    func keep() throws {
        // A receiver that was killed may have named it and not have come this far.
        try folder.seams.synchronize(file)
        try folder.keepName(of: path, in: parent)
    }
}

/// Writes a file beside its place, and moves it there when it is whole.
private final class FileWriter: ItemWriter {
    enum State {
        /// Nothing is on disk.
        case none
        case open(parent: SystemFile, SystemFile)
        case finished
    }

    private let folder: ReceivingFolder
    private let path: ReceivingFolder.Path
    private let item: TransferItem
    private let state: Mutex<State>

    init(_ folder: ReceivingFolder, _ path: ReceivingFolder.Path, _ item: TransferItem, _ state: sending State) {
        (self.folder, self.path, self.item) = (folder, path, item)
        self.state = Mutex(state)
    }

    /// An incomplete part stays for a later attempt, unless there are too many parts.
    deinit {
        state.withLock { state in
            if case .open(_, let file) = state { folder.leave(path, file) }
        }
    }

    func content() throws -> TransferContent {
        guard let file = try opened(makes: false)?.file else { return TransferContent() }
        return try file.content() ?? TransferContent()
    }

    func begin(at offset: UInt64) throws {
        guard let file = try opened(makes: false)?.file else { return }
        guard ftruncate(file.descriptor, off_t(clamping: offset)) == 0 else { throw SystemFile.Failure() }
        try file.seek(to: offset)
    }

    func write(_ bytes: ArraySlice<UInt8>) throws {
        if bytes.isEmpty { return }
        try opened(makes: true)?.file.write(bytes)
    }

    func discard() {
        state.withLock { state in
            if case .open(let parent, _) = state { folder.remove(path, in: parent) }
            state = .finished
        }
    }

    func finish() throws {
        guard let (parent, file) = try opened(makes: true) else { return }
        // The umask counts for a sender's permissions too: the folder is the receiver's.
        let mode = mode_t(item.mode ?? 0o666) & 0o777 & ~folder.umask
        guard fchmod(file.descriptor, mode) == 0 else { throw SystemFile.Failure() }
        if item.modified > 0 {
            var times = (timespec(), timespec())
            times.0.tv_sec = time_t(clamping: item.modified)
            times.1 = times.0
            _ = withUnsafePointer(to: &times) {
                $0.withMemoryRebound(to: timespec.self, capacity: 2) { futimens(file.descriptor, $0) }
            }
        }
        try folder.seams.synchronize(file)
        try folder.name(path, in: parent)
        // "Done" is said of what a power cut does not take away, and the name is in the folder.
        try folder.keepName(of: path, in: parent)
        state.withLock { $0 = .finished }
    }

    private func opened(makes: Bool) throws -> (parent: SystemFile, file: SystemFile)? {
        try state.withLock { state in
            switch state {
            case .open(let parent, let file): return (parent, file)
            case .none where makes:
                let (parent, file) = try folder.makePart(path)
                state = .open(parent: parent, file)
                return (parent, file)
            case .none, .finished: return nil
            }
        }
    }
}
