#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Foundation

    import Synchronization

    /// Keys in a file: JSON, with access for its owner only from its first byte on. A crash at any instant, of the process or
    /// of the machine, leaves the file as it was or as it is to be.
    struct BondFile: Sendable {
        let path: String
        /// One write at a time: the bonds read last are written last.
        private static let writing = Mutex(())

        init(path: String) { self.path = path }

        struct Content: Codable, Equatable {
            var format = 1
            /// The adapter's static random address, by which peers know it.
            var address: UInt64
            /// The key of its private addresses, once they have changed.
            var identityResolvingKey: String?
            var bonds: [Entry] = []

            /// Nil where there is none, or where it cannot be read.
            var ownResolvingKey: [UInt8]? { identityResolvingKey.flatMap(Entry.bytes) }
        }

        struct Entry: Codable, Equatable {
            var peer: UInt64
            var isRandom: Bool
            var identity: UInt64?
            var isIdentityRandom: Bool?
            var longTermKey: String
            var diversifier: UInt16
            var random: UInt64
            var identityResolvingKey: String?
            var isAuthenticated: Bool
            var isSecureConnections: Bool
            var peerIsCentral: Bool
            /// Not in files from before identities had to be proven.
            var isIdentityProven: Bool?
        }

        private func error(_ what: String) -> BluetoothError {
            BluetoothError(.invalidArgument, "The bond file \(path) \(what)")
        }

        /// Nil when there is no file yet.
        ///
        /// - Throws: `invalidArgument` when there is one that cannot be read: its keys are not to be lost by writing anew.
        func read() throws(BluetoothError) -> Content? {
            guard FileManager.default.fileExists(atPath: path) else { return nil }
            do {
                let content = try JSONDecoder().decode(Content.self, from: Data(contentsOf: URL(filePath: path)))
                guard content.format == 1 else { throw self.error("has format \(content.format); 1 is read here.") }
                return content
            } catch let known as BluetoothError {
                throw known
            } catch let error as DecodingError {
                throw self.error(
                    "is damaged, or is no bond file: \(Self.words(error)). Mend it, or remove it and pair anew.")
            } catch {
                throw self.error("cannot be read. Name a file that this user may read.")
            }
        }

        private static func words(_ error: DecodingError) -> String {
            switch error {
            case .keyNotFound(let key, _): "'\(key.stringValue)' is missing"
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
                context.codingPath.isEmpty
                    ? "it is not JSON"
                    : "the value at "
                        + context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(
                            separator: ".")
                        + " is of another kind"
            @unknown default: "it cannot be decoded"
            }
        }

        /// Writes what `content` gives.
        ///
        /// - Throws: `invalidArgument` when it cannot be written; the file is as it was then.
        func write(_ content: () -> Content) throws(BluetoothError) {
            try Self.writing.withLock { _ throws(BluetoothError) in
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
                guard let data = try? encoder.encode(content()) else { throw error("cannot be encoded.") }
                try put(data, at: path)
            }
        }

        /// Writes beside the file and puts that in its place, so that there is a whole file at all times: the bytes are on the
        /// disk before the name is, and the name is before this returns.
        private func put(_ data: Data, at path: String) throws(BluetoothError) {
            let fresh = path + ".new"
            // What a crash left is not written on: others may have it open, or have made it.
            unlink(fresh)
            let descriptor = Foundation.open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw systemError("cannot be written: \(fresh) cannot be made") }
            let isWritten = Self.write(data, to: descriptor) && fsync(descriptor) == 0
            let failure = isWritten ? nil : systemError("cannot be written")
            Foundation.close(descriptor)
            if let failure {
                unlink(fresh)
                throw failure
            }
            guard rename(fresh, path) == 0 else { throw systemError("cannot be replaced") }
            let folder = Foundation.open(
                URL(filePath: path).deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard folder >= 0 else { return }
            fsync(folder)
            Foundation.close(folder)
        }

        private static func write(_ data: Data, to descriptor: Int32) -> Bool {
            data.withUnsafeBytes { bytes in
                var offset = 0
                while offset < bytes.count {
                    let count = Foundation.write(
                        descriptor, bytes.baseAddress?.advanced(by: offset), bytes.count - offset)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { return false }
                    offset += count
                }
                return true
            }
        }

        /// With the reason of the call that failed last.
        private func systemError(_ what: String) -> BluetoothError {
            error("\(what): \(String(cString: strerror(errno))).")
        }

        // MARK: What can be found out again

        private var peersPath: String { path + ".peers" }

        /// Facts about the peers besides their keys. A file that cannot be read costs time only.
        func readPeers() -> KnownPeers {
            guard let data = FileManager.default.contents(atPath: peersPath) else { return KnownPeers() }
            return (try? JSONDecoder().decode(KnownPeers.self, from: data)) ?? KnownPeers()
        }

        /// Keeps it beside the keys.
        func writePeers(_ known: KnownPeers) throws(BluetoothError) {
            guard let data = try? JSONEncoder().encode(known) else { return }
            try Self.writing.withLock { _ throws(BluetoothError) in try put(data, at: peersPath) }
        }
    }

    extension BondFile.Entry {
        init(_ bond: Bond) {
            peer = bond.peer.value
            isRandom = bond.peer.kind == .random
            identity = bond.identity?.value
            isIdentityRandom = bond.identity.map { $0.kind == .random }
            longTermKey = Self.text(bond.longTermKey)
            diversifier = bond.diversifier
            random = bond.random
            identityResolvingKey = bond.identityResolvingKey.map(Self.text)
            isAuthenticated = bond.isAuthenticated
            isSecureConnections = bond.isSecureConnections
            peerIsCentral = bond.peerIsCentral
            isIdentityProven = bond.isIdentityProven ? true : nil
        }

        /// Nil when a key is not 16 bytes in hexadecimal.
        var bond: Bond? {
            guard let key = Self.bytes(longTermKey) else { return nil }
            let resolving = identityResolvingKey.flatMap(Self.bytes)
            guard (resolving == nil) == (identityResolvingKey == nil) else { return nil }
            return Bond(
                peer: Address(peer, isRandom ? .random : .public),
                identity: identity.map { Address($0, isIdentityRandom == true ? .random : .public) }, longTermKey: key,
                diversifier: diversifier,
                random: random, identityResolvingKey: resolving, isAuthenticated: isAuthenticated,
                isSecureConnections: isSecureConnections, peerIsCentral: peerIsCentral,
                isIdentityProven: isIdentityProven ?? false)
        }

        static func text(_ bytes: [UInt8]) -> String {
            bytes.hexadecimal()
        }

        static func bytes(_ text: String) -> [UInt8]? {
            let digits = text.compactMap(\.hexDigitValue)
            guard digits.count == 32, text.count == 32 else { return nil }
            return stride(from: 0, to: 32, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
        }
    }
#endif
