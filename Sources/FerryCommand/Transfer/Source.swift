import Foundation

/// One item to be sent and where its bytes are.
struct Source: Sendable {
    var item: TransferItem
    /// Nil for standard input.
    var path: String?

    /// Opens it for reading.
    func open() throws(SystemFile.Failure) -> SystemFile {
        guard let path else { return SystemFile(STDIN_FILENO, isOwned: false) }
        return try SystemFile.opened(path)
    }
}

/// What is to be sent, by the paths that were typed.
struct SourceList: Sendable {
    private(set) var sources: [Source] = []
    /// What is not sent, and why.
    private(set) var skipped: [(path: String, reason: String)] = []

    /// Known beforehand; nil when a stream is among them.
    var totalBytes: UInt64? {
        sources.reduce(UInt64?(0)) { total, source in
            guard let total else { return nil }
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
            guard TransferName.parts(name) != nil else { throw Refusal("'\(path)' has no name that can be sent.") }
            guard names.insert(name).inserted else {
                throw Refusal("Two of the paths are called '\(name)', and would be one at the receiver.")
            }
            if path == "-" {
                sources.append(Source(item: TransferItem(kind: asLines ? .lines : .stream, name: name)))
            } else {
                try add(path, as: name, asLines: asLines, isTop: true)
            }
        }
    }

    private static func name(of path: String) -> String {
        guard let real = realpath(path, nil) else { return URL(fileURLWithPath: path).lastPathComponent }
        defer { free(real) }
        return URL(fileURLWithPath: String(cString: real)).lastPathComponent
    }

    private mutating func add(_ path: String, as name: String, asLines: Bool, isTop: Bool) throws(Refusal) {
        var status = stat()
        guard (isTop ? stat(path, &status) : lstat(path, &status)) == 0 else {
            let reason = "'\(path)' cannot be read: \(SystemFile.Failure())."
            guard !isTop else { throw Refusal(reason) }
            return skipped.append((path, reason))
        }
        let mode = UInt16(truncatingIfNeeded: status.st_mode) & 0o777
        let modified = UInt64(clamping: Self.modified(status))
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            guard access(path, R_OK) == 0 else {
                let reason = "'\(path)' cannot be read: \(SystemFile.Failure())."
                guard !isTop else { throw Refusal(reason) }
                return skipped.append((path, reason))
            }
            let size = UInt64(clamping: status.st_size)
            let item = TransferItem(
                kind: asLines ? .lines : .file, mode: mode, modified: modified, size: asLines ? nil : size, name: name)
            sources.append(Source(item: item, path: path))
        case S_IFDIR:
            guard !asLines else { throw Refusal("'\(path)' is a folder, which has no lines.") }
            sources.append(
                Source(item: TransferItem(kind: .folder, mode: mode, modified: modified, name: name), path: path))
            let children: [String]
            do { children = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
                guard !isTop else { throw Refusal("'\(path)' cannot be read: \(FileProblem.text(error)).") }
                return skipped.append((path, "it cannot be read: \(FileProblem.text(error))"))
            }
            for child in children.sorted() {
                let childName = name + "/" + child
                guard TransferName.parts(childName) != nil else {
                    skipped.append((path + "/" + child, "its name cannot be sent"))
                    continue
                }
                try add(path + "/" + child, as: childName, asLines: false, isTop: false)
            }
        case S_IFIFO where isTop, S_IFCHR where isTop:
            sources.append(Source(item: TransferItem(kind: asLines ? .lines : .stream, name: name), path: path))
        default:
            let reason = "it is neither a file nor a folder"
            guard !isTop else { throw Refusal("'\(path)' cannot be sent: \(reason).") }
            skipped.append((path, reason))
        }
    }

    private static func modified(_ status: stat) -> Int {
        #if canImport(Darwin)
            status.st_mtimespec.tv_sec
        #else
            status.st_mtim.tv_sec
        #endif
    }
}
