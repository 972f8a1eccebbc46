import Foundation

/// One item to send and where its bytes are.
struct Source: Sendable {
    enum Place: Sendable, Hashable {
        case standardInput
        /// A path that was typed: a link there is followed.
        case typed(String)
        /// A path within a folder that was typed: a link there is not followed.
        case found(String)
        /// It cannot be sent, and why. The receiver is told of it all the same.
        case none(reason: String)
    }

    var item: TransferItem
    var place: Place

    /// A source that is open for reading.
    struct Opened: Sendable {
        let file: SystemFile
        /// As it is now.
        let item: TransferItem
        /// Nil for a stream.
        let stamp: SystemFile.Stamp?
    }

    /// Opens it for reading. Waits up to a second for a file that is just being written.
    ///
    /// - Throws: ``Refusal``, `SystemFile.Failure`.
    func open() throws -> Opened {
        switch place {
        case .standardInput:
            return Opened(file: SystemFile(STDIN_FILENO, isOwned: false), item: item, stamp: nil)
        case .none(let reason): throw Refusal(reason)
        case .typed(let path):
            guard item.kind == .file else { return Opened(file: try SystemFile.opened(path), item: item, stamp: nil) }
            return try open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        case .found(let path): return try open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        }
    }

    private func open(_ path: String, _ flags: Int32) throws -> Opened {
        let descriptor = Foundation.open(path, flags)
        guard descriptor >= 0 else { throw SystemFile.Failure() }
        let file = SystemFile(descriptor)
        var stamp = try file.stamp()
        guard stamp.kind == S_IFREG else { throw Refusal("it is no file any more") }
        for _ in 0..<20 {
            guard let rest = Self.rest(of: stamp.changed) else { break }
            usleep(rest)
            stamp = try file.stamp()
        }
        let item = TransferItem(
            kind: item.kind, mode: stamp.permissions, modified: UInt64(clamping: stamp.modified.seconds),
            size: stamp.size, name: item.name)
        return Opened(file: file, item: item, stamp: stamp)
    }

    /// How long, in microseconds, until a change would show: the times of files go on by up to 10 ms at once, and two changes
    /// between have the same.
    private static func rest(of changed: SystemFile.Stamp.Time) -> UInt32? {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let age = (now.tv_sec - changed.seconds) * 1_000_000 + (now.tv_nsec - changed.nanoseconds) / 1000
        return (0..<50_000).contains(age) ? UInt32(50_000 - age) : nil
    }
}

extension Source.Opened {
    /// Whether `sent` is what the file was at one moment: it has not changed since it was opened, or is the same again.
    func isStill(_ sent: TransferContent) throws -> Bool {
        guard let stamp else { return true }
        let now = try file.stamp()
        if now == stamp { return true }
        // A link to it or new permissions change the stamp too, and so does a writer who writes the same.
        guard now.size == sent.count, try file.content(of: sent.count) == sent else { return false }
        return try file.stamp() == now
    }
}

/// The items to send, by the paths that were typed.
struct SourceList: Sendable {
    private(set) var sources: [Source] = []

    /// Known beforehand; nil when a stream is among them.
    var totalBytes: UInt64? {
        sources.reduce(UInt64?(0)) { total, source in
            guard let total else { return nil }
            if case .none = source.place { return total }
            return source.item.kind == .folder ? total : source.item.size.map { total + $0 }
        }
    }

    /// - Parameters:
    ///   - paths: files and folders; `-` is standard input.
    ///   - streamName: what standard input is called.
    ///   - asLines: whether every line is a message.
    /// - Throws: ``Refusal`` for a path that cannot be sent, before anything is.
    init(_ paths: [String], streamName: String, asLines: Bool) throws(Refusal) {
        var names: Set<String> = []
        for path in paths {
            let name = path == "-" ? streamName : Self.name(of: path)
            guard let name, TransferName.parts(name) != nil else {
                throw Refusal("'\(path)' has no name that can be sent.")
            }
            guard names.insert(name).inserted else {
                throw Refusal("Two of the paths are called '\(name)', and would be one at the receiver.")
            }
            if path == "-" {
                let item = TransferItem(kind: asLines ? .lines : .stream, name: name)
                sources.append(Source(item: item, place: .standardInput))
            } else {
                try add(path, as: name, asLines: asLines, isTop: true)
            }
        }
    }

    /// Nil for a name that is not UTF-8.
    private static func name(of path: String) -> String? {
        guard let real = realpath(path, nil) else { return URL(fileURLWithPath: path).lastPathComponent }
        defer { free(real) }
        return String(validatingCString: real).map { URL(fileURLWithPath: $0).lastPathComponent }
    }

    /// Leaves a path out, of which both sides are told. One that was typed ends the command before anything is sent.
    ///
    /// - Parameter reason: what follows the path in a sentence.
    private mutating func leaveOut(_ path: String, as name: String, _ reason: String, isTop: Bool) throws(Refusal) {
        guard !isTop else { throw Refusal("'\(path)' \(reason).") }
        sources.append(Source(item: TransferItem(kind: .file, name: name), place: .none(reason: "it \(reason)")))
    }

    private mutating func add(_ path: String, as name: String, asLines: Bool, isTop: Bool) throws(Refusal) {
        var status = stat()
        guard (isTop ? stat(path, &status) : lstat(path, &status)) == 0, access(path, R_OK) == 0 || !isTop else {
            return try leaveOut(path, as: name, "cannot be read: \(SystemFile.Failure())", isTop: isTop)
        }
        let stamp = SystemFile.Stamp(status)
        let modified = UInt64(clamping: stamp.modified.seconds)
        let place = isTop ? Source.Place.typed(path) : .found(path)
        func item(_ kind: TransferItem.Kind, size: UInt64? = nil) -> TransferItem {
            TransferItem(kind: kind, mode: stamp.permissions, modified: modified, size: size, name: name)
        }
        switch stamp.kind {
        case S_IFREG:
            sources.append(
                Source(item: asLines ? item(.lines) : item(.file, size: stamp.size), place: place))
        case S_IFDIR:
            guard !asLines else { throw Refusal("'\(path)' is a folder, which has no lines.") }
            sources.append(Source(item: item(.folder), place: place))
            let children: [[UInt8]]
            do { children = try Self.names(in: path) } catch {
                return try leaveOut(path, as: name, "cannot be read: \(error)", isTop: isTop)
            }
            for child in children { try add(child, of: path, as: name) }
        case S_IFIFO where isTop, S_IFCHR where isTop:
            let item = TransferItem(kind: asLines ? .lines : .stream, name: name)
            sources.append(Source(item: item, place: place))
        case S_IFLNK: try leaveOut(path, as: name, "is a link, and links in folders are not sent", isTop: isTop)
        default: try leaveOut(path, as: name, "is neither a file nor a folder, and cannot be sent", isTop: isTop)
        }
    }

    private mutating func add(_ child: [UInt8], of path: String, as name: String) throws(Refusal) {
        if let text = String(validating: child, as: UTF8.self), TransferName.parts("\(name)/\(text)") != nil {
            return try add("\(path)/\(text)", as: "\(name)/\(text)", asLines: false, isTop: false)
        }
        var shown = "\(name)/\(TransferName.shown(child))"
        // One that is too long or too deep is named by its end.
        if TransferName.parts(shown) == nil { shown = TransferName.shown(child) }
        try leaveOut(
            "", as: shown,
            "has a name that cannot be sent: names are UTF-8, without backslashes, and do not end in .ferry-part; they have "
                + "at most 240 bytes, and paths 64 parts and 4096 bytes", isTop: false)
    }

    /// The names in a folder as bytes, in their order.
    private static func names(in path: String) throws(SystemFile.Failure) -> [[UInt8]] {
        guard let folder = opendir(path) else { throw SystemFile.Failure() }
        defer { closedir(folder) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(folder) else { break }
            // An entry is as long as its name, and not as the array that stands for it.
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                let start = UnsafeRawPointer($0)
                let count = strlen(start.assumingMemoryBound(to: CChar.self))
                return Array(UnsafeRawBufferPointer(start: start, count: count))
            }
            if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
        }
        guard errno == 0 else { throw SystemFile.Failure() }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }
}
