import Ferry

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The file of a Unix socket that listens. It outlives its process when that is killed, and is then in the way.
struct UnixFile: Sendable {
    let path: String
    /// The identity of the file that was made, so that no other file is removed.
    private let device: UInt64
    private let inode: UInt64

    /// Has a socket listen at a path, in place of the file that a process left which is no more.
    ///
    /// - Returns: the file; nil for a name in the abstract namespace.
    /// - Throws: `transportUnavailable` with the obstacle.
    static func listen(
        _ descriptor: Descriptor, at path: String, _ address: SystemAddress, permissions: UInt16
    ) throws(FerryError) -> UnixFile? {
        guard path.utf8.first != UInt8(ascii: "@") else {
            do throws(Problem) {
                try address.bind(descriptor)
                try descriptor.listen()
            } catch { throw unavailable(path, error) }
            return nil
        }
        // One process at a time examines the file and replaces it. The folder serves as the lock.
        let folder = open(Self.folder(of: path), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        defer { if folder >= 0 { Descriptor.closeFile(folder) } }
        if folder >= 0 { _ = flock(folder, LOCK_EX) }

        // Linux makes the file with the permissions of the socket, so that no process connects before they are set.
        _ = fchmod(descriptor.number, mode_t(permissions))
        do throws(Problem) {
            do throws(Problem) { try address.bind(descriptor) } catch {
                guard error == .inUse else { throw error }
                try removeStale(path, address)
                try address.bind(descriptor)
            }
        } catch {
            throw unavailable(path, error)
        }
        _ = chmod(path, mode_t(permissions))
        var status = stat()
        guard lstat(path, &status) == 0 else { throw unavailable(path, Problem()) }
        let file = UnixFile(
            path: path, device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
        // Within the lock: to another process a file that is bound and does not listen yet looks like one left behind.
        do throws(Problem) { try descriptor.listen() } catch {
            file.remove()
            throw unavailable(path, error)
        }
        return file
    }

    /// Why a socket cannot listen at a path as long as nothing else changes there; nil when it may come.
    static func obstacle(at path: String) -> String? {
        guard path.utf8.first != UInt8(ascii: "@") else { return nil }
        var status = stat()
        if stat(path, &status) == 0 {
            return mode_t(status.st_mode) & mode_t(S_IFMT) == mode_t(S_IFSOCK)
                ? nil : "there is a file of that name that is no socket"
        }
        guard errno == ENOENT || errno == ENOTDIR else { return nil }
        let hasFolder =
            stat(folder(of: path), &status) == 0 && mode_t(status.st_mode) & mode_t(S_IFMT) == mode_t(S_IFDIR)
        return hasFolder ? nil : "its folder does not exist"
    }

    /// Removes the file if it is there still, and still the one that was made.
    func remove() {
        var status = stat()
        guard lstat(path, &status) == 0, UInt64(truncatingIfNeeded: status.st_dev) == device,
            UInt64(status.st_ino) == inode
        else { return }
        _ = unlink(path)
    }

    /// Removes the file of a socket that no process listens at any more.
    private static func removeStale(_ path: String, _ address: SystemAddress) throws(Problem) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard mode_t(status.st_mode) & mode_t(S_IFMT) == mode_t(S_IFSOCK) else { throw Problem(ENOTSOCK) }
        let probe = try Descriptor.open(AF_UNIX, Descriptor.unixKind)
        defer { probe.close() }
        do throws(Problem) { try address.connect(probe) } catch {
            guard error == .refused else { throw error == .wrongKind || error == .wouldBlock ? .inUse : error }
            guard unlink(path) == 0 else { throw Problem() }
            return
        }
        throw .inUse
    }

    private static func unavailable(_ path: String, _ problem: Problem) -> FerryError {
        let reason =
            switch problem.number {
            case ENOTSOCK: "there is a file of that name that is no socket. Remove it, or choose another path"
            case EADDRINUSE: "another program listens there. End it, or choose another path"
            case ENOENT, ENOTDIR: "its folder does not exist"
            default: problem.text
            }
        return FerryError(.transportUnavailable, "Cannot listen at unix:\(path): \(reason).")
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
