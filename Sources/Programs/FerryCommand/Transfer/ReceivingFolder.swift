import Foundation
import Synchronization

/// The folder of a receiver, on disk: its folders, and its parts of files, which are bounded. Those who receive into it at once
/// share one of these; other processes may receive into the same folder.
final class ReceivingFolder: Sendable {
    /// A file's place in the folder.
    struct Path: Hashable {
        var folders: [String]
        var name: String
    }

    /// What tests put in the place of the system.
    struct Seams: Sendable {
        var synchronize: @Sendable (SystemFile) throws(SystemFile.Failure) -> Void = {
            (file) throws(SystemFile.Failure) in
            try file.synchronize()
        }
        /// Runs when a part was opened, and before it is locked.
        var didOpenPart: @Sendable () -> Void = {}
    }

    /// The answer to a request for a part's lock.
    enum Lock {
        /// There is no part.
        case none
        /// It has become something else: look again.
        case gone
        case locked(SystemFile)
    }

    let overwrites: Bool
    let seams: Seams
    /// The permissions that new files do not get.
    let umask: mode_t
    private let root: SystemFile
    private let bounds = Mutex(ReceivingBounds())

    /// The process's, read once: reading it means to set it.
    private static let umask: mode_t = {
        let mask = Foundation.umask(0o077)
        Foundation.umask(mask)
        return mask
    }()

    init(_ path: String, overwrites: Bool, seams: Seams) throws(SystemFile.Failure) {
        self.overwrites = overwrites
        self.seams = seams
        umask = Self.umask
        let isNew = mkdir(path, 0o777) == 0
        let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFile.Failure() }
        root = SystemFile(descriptor)
        guard faccessat(descriptor, ".", W_OK | X_OK, 0) == 0 else { throw SystemFile.Failure() }
        if isNew, let parent = try? root.opened("..", O_RDONLY | O_DIRECTORY) { try seams.synchronize(parent) }
    }

    // MARK: Folders

    /// Opens a folder; nil when it, or one above it, is not there.
    ///
    /// - Throws: ``Refusal`` for something that is no folder.
    func open(_ parts: [String]) throws -> SystemFile? {
        var folder = root
        for part in parts {
            guard let next = try Self.descend(into: part, of: folder) else { return nil }
            folder = next
        }
        return folder
    }

    /// Opens a folder, making it and those above it if need be, and waits until their names are on disk.
    ///
    /// - Parameter mode: its permissions if it is made, of which the umask takes some away.
    /// - Throws: ``Refusal``, also when there are too many folders in which nothing has arrived.
    func make(_ parts: [String], mode: mode_t = 0o777) throws -> SystemFile {
        var folder = root
        for (index, part) in parts.enumerated() {
            let path = Array(parts[...index])
            if let next = try Self.descend(into: part, of: folder) {
                // Another process may have made it, or one that was killed, and not have come this far.
                if bounds.withLock({ !$0.knows(path) }) { try seams.synchronize(folder) }
                bounds.withLock { $0.know(path) }
                folder = next
                continue
            }
            guard bounds.withLock({ $0.reserve(path) }) else {
                throw Refusal(
                    "\(ReceivingBounds.mostEmptyFolders) folders were made in which no file has arrived, and the receiver makes "
                        + "no more. Send the files, or make the folders at the receiver.")
            }
            if mkdirat(folder.descriptor, part, index == parts.count - 1 ? mode : 0o777) != 0, errno != EEXIST {
                let failure = SystemFile.Failure()
                bounds.withLock { $0.filled(path) }
                throw Refusal("the folder '\(part)' cannot be made: \(failure)")
            }
            guard let next = try Self.descend(into: part, of: folder) else {
                throw Refusal("the folder '\(part)' was removed while it was used")
            }
            try seams.synchronize(folder)
            bounds.withLock { $0.know(path) }
            folder = next
        }
        return folder
    }

    /// Opens a folder in another; nil when there is none. A link is not followed.
    private static func descend(into part: String, of folder: SystemFile) throws -> SystemFile? {
        do { return try folder.opened(part, O_RDONLY | O_DIRECTORY) } catch {
            switch error.number {
            case ENOENT: return nil
            case ENOTDIR, ELOOP: throw Refusal("'\(part)' is there and no folder, and links are not followed")
            default: throw Refusal("the folder '\(part)' cannot be opened: \(error)")
            }
        }
    }

    /// Waits until the name of a file is on disk, and those of the folders above it.
    func keepName(of path: Path, in parent: SystemFile) throws {
        try seams.synchronize(parent)
        _ = try make(path.folders)
    }

    // MARK: Parts

    /// Locks the part of a file that may be there.
    ///
    /// - Throws: ``Refusal`` when another sender is writing it, or its name is not a file's.
    func lock(_ path: Path, in parent: SystemFile) throws -> Lock {
        let name = TransferName.partial(of: path.name)
        let file: SystemFile
        do { file = try parent.opened(name, O_RDWR) } catch {
            switch error.number {
            case ENOENT: return .none
            case ELOOP, EISDIR, ENXIO: throw Refusal("'\(name)' is in the way")
            default: throw Refusal("it cannot be written: \(error)")
            }
        }
        seams.didOpenPart()
        return try lock(file, path, in: parent)
    }

    private func lock(_ file: SystemFile, _ path: Path, in parent: SystemFile) throws -> Lock {
        let name = TransferName.partial(of: path.name)
        guard try file.stamp().kind == S_IFREG else { throw Refusal("'\(name)' is in the way") }
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { throw Refusal("it is being received already") }
        // The lock's last owner may have finished the file meanwhile: the descriptor is then of the whole file, not of a part.
        let stamp = try file.stamp()
        guard let named = try parent.stamp(of: name), named.isSameFile(as: stamp) else { return .gone }
        if stamp.links > 1 {
            // A receiver that was killed has named the file and not come to take the part's name away.
            guard let whole = try parent.stamp(of: path.name), whole.isSameFile(as: stamp) else {
                throw Refusal("'\(name)' is in the way")
            }
            guard unlinkat(parent.descriptor, name, 0) == 0 else {
                throw Refusal("'\(name)' is in the way: \(SystemFile.Failure())")
            }
            return .gone
        }
        bounds.withLock { $0.takeUp(path) }
        return .locked(file)
    }

    /// Makes the part of a file, and the folders above it, now that there is something to write.
    func makePart(_ path: Path) throws -> (parent: SystemFile, file: SystemFile) {
        let parent = try make(path.folders)
        for _ in 0..<8 {
            do {
                // Only made here: it may have been there, as another sender's, or as what one has left.
                _ = try parent.opened(TransferName.partial(of: path.name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
            } catch {
                guard error.number == EEXIST else { throw error }
            }
            guard case .locked(let file) = try lock(path, in: parent) else { continue }
            guard ftruncate(file.descriptor, 0) == 0 else { throw SystemFile.Failure() }
            return (parent, file)
        }
        throw Refusal("it is being received already")
    }

    /// Gives a part that is whole the file's name.
    func name(_ path: Path, in parent: SystemFile) throws {
        let partial = TransferName.partial(of: path.name)
        if overwrites {
            guard renameat(parent.descriptor, partial, parent.descriptor, path.name) == 0 else {
                throw SystemFile.Failure()
            }
        } else {
            // Unlike a renaming, a link never replaces a file that has arrived meanwhile.
            guard linkat(parent.descriptor, partial, parent.descriptor, path.name, 0) == 0 else {
                if errno == EEXIST { throw Refusal("a file of that name has come meanwhile") }
                throw SystemFile.Failure()
            }
            _ = unlinkat(parent.descriptor, partial, 0)
        }
        bounds.withLock { bounds in
            for count in path.folders.indices { bounds.filled(Array(path.folders[...count])) }
        }
    }

    /// Removes a part that the caller has locked.
    func remove(_ path: Path, in parent: SystemFile) {
        _ = unlinkat(parent.descriptor, TransferName.partial(of: path.name), 0)
    }

    /// Leaves a part, which the caller has still locked, for a later attempt. When there are too many parts the smallest is
    /// removed: it is the least loss.
    func leave(_ path: Path, _ file: SystemFile) {
        let count = (try? file.stamp().size) ?? 0
        guard let smallest = bounds.withLock({ $0.leave(path, count: count) }) else { return }
        guard let parent = try? open(smallest.folders) else { return }
        // The caller holds the lock of its part. Another part that is locked is in use again, and stays.
        if smallest == path { return remove(path, in: parent) }
        if case .locked(let file)? = try? lock(smallest, in: parent) {
            withExtendedLifetime(file) { remove(smallest, in: parent) }
        }
    }
}

/// Bounds what senders leave at a receiver: incomplete files and empty folders. A value.
struct ReceivingBounds {
    /// The most parts without a writer.
    static let mostParts = 64
    /// The most folders that were made and in which no file has arrived.
    static let mostEmptyFolders = 1024
    /// The most folders whose names are remembered to be on disk.
    static let mostKnown = 4096

    private struct Part {
        var count: UInt64
        var order: UInt64
    }

    private var parts: [ReceivingFolder.Path: Part] = [:]
    private var order: UInt64 = 0
    private var empty: Set<[String]> = []
    private var known: Set<[String]> = []

    /// Counts a part whose writer has gone.
    ///
    /// - Returns: the part to remove, when there are too many: the one with the fewest bytes, and of those the oldest.
    mutating func leave(_ path: ReceivingFolder.Path, count: UInt64) -> ReceivingFolder.Path? {
        order += 1
        parts[path] = Part(count: count, order: order)
        guard parts.count > Self.mostParts else { return nil }
        let smallest = parts.min { ($0.value.count, $0.value.order) < ($1.value.count, $1.value.order) }?.key
        if let smallest { parts[smallest] = nil }
        return smallest
    }

    /// The part has a writer again.
    mutating func takeUp(_ path: ReceivingFolder.Path) { parts[path] = nil }

    /// Counts a folder that is to be made. Returns false when there are too many that nothing has come into.
    mutating func reserve(_ folder: [String]) -> Bool {
        guard empty.count < Self.mostEmptyFolders else { return false }
        empty.insert(folder)
        return true
    }

    /// Something has arrived in the folder, or it was not made.
    mutating func filled(_ folder: [String]) { empty.remove(folder) }

    func knows(_ folder: [String]) -> Bool { known.contains(folder) }

    /// The folder's name is on disk.
    mutating func know(_ folder: [String]) {
        // A folder that is forgotten is synchronised once more, no worse.
        if known.count >= Self.mostKnown { known = [] }
        known.insert(folder)
    }
}
