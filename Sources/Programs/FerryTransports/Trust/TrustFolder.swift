#if Seal
    package import Ferry
    package import FerrySeal
    package import Foundation
    import Synchronization

    /// Where a user's keys are: this side's secret key, the list of trusted keys, and the one-time codes that wait to be used.
    ///
    ///     ~/.config/ferry/key                 0600, made when it is first needed
    ///     ~/.config/ferry/trusted             a key and a name a line
    ///     ~/.config/ferry/invitations/...     0600, one file a code
    ///
    /// `FERRY_HOME` names another folder, and `XDG_CONFIG_HOME` another place for it.
    package struct TrustFolder: Sendable {
        package let path: String
        package let keyPath: String
        package let trustedPath: String
        private var invitationsPath: String { path + "/invitations" }

        /// The most codes that wait: as many as a handshake tries.
        package static let maximumInvitations = NoiseSealing.Acceptance.maximumInvitations - 8

        /// - Parameters:
        ///   - identity: the file of the secret key; nil for the folder's.
        ///   - trusted: the file of the trusted keys; nil for the folder's.
        package init(
            identity: String? = nil, trusted: String? = nil,
            environment: [String: String] = ProcessInfo.processInfo.environment
        ) {
            func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
            path =
                value("FERRY_HOME")
                ?? (value("XDG_CONFIG_HOME") ?? (value("HOME") ?? NSHomeDirectory()) + "/.config") + "/ferry"
            keyPath = identity ?? path + "/key"
            trustedPath = trusted ?? path + "/trusted"
        }

        private func make(_ folder: String) throws(FerryError) {
            do {
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            } catch {
                throw FerryError(
                    .sealUnsafeFile,
                    "The folder \(folder) for keys cannot be made. Set FERRY_HOME to a folder that this user can write.",
                    cause: error)
            }
        }

        private func makeFolder(of file: String) throws(FerryError) {
            let folder = (file as NSString).deletingLastPathComponent
            if !folder.isEmpty { try make(folder) }
        }

        // MARK: This side's key

        /// This side's key; makes one when there is none.
        ///
        /// - Parameter tell: is told of a new key.
        /// - Throws: `seal.unsafeFile`, `seal.malformedKey`.
        package func key(_ tell: (String) -> Void) throws(FerryError) -> SecretKey {
            guard !FileManager.default.fileExists(atPath: keyPath) else {
                return try KeyFile.readSecretKey(at: keyPath)
            }
            try makeFolder(of: keyPath)
            let key = SecretKey()
            do { try KeyFile.writeSecretKey(key, at: keyPath) } catch {
                // Another process has made it meanwhile.
                if let theirs = try? KeyFile.readSecretKey(at: keyPath) { return theirs }
                throw error
            }
            tell("A new key is in \(keyPath).")
            return key
        }

        // MARK: Trusted keys

        package func trusted() throws(FerryError) -> AllowList { try KeyFile.readAllowList(at: trustedPath) }

        /// The key that a person means: a key, its fingerprint, or a name in the list.
        ///
        /// - Throws: `seal.malformedKey` for a text that is none of these, and for a name that several keys have.
        package func key(named text: String) throws(FerryError) -> PublicKey {
            try TrustedKeys(trustedPath) { _ in }.key(named: text)
        }

        /// Adds a key to the list. Returns false when it is there already.
        ///
        /// - Throws: `seal.unsafeFile`, `seal.malformedKey`.
        package func trust(_ key: PublicKey, name: String) throws(FerryError) -> Bool {
            try changeList { list, text throws(FerryError) in
                guard try list.add(key, name: name) else { return false }
                if !text.isEmpty, text.last?.isNewline != true { text += "\n" }
                text += name.isEmpty ? "\(key)\n" : "\(key) \(name)\n"
                return true
            }
        }

        /// Removes a key from the list. Returns false when it is not there.
        ///
        /// - Throws: `seal.unsafeFile`, `seal.malformedKey`.
        package func distrust(_ key: PublicKey) throws(FerryError) -> Bool {
            try changeList { list, text throws(FerryError) in
                guard list.remove(key) else { return false }
                text = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).filter { line in
                    let word = line.drop(while: \.isWhitespace).prefix { !$0.isWhitespace }
                    return (try? PublicKey(text: word)) != key
                }.joined(separator: "\n")
                return true
            }
        }

        private func changeList(
            _ change: (inout AllowList, inout String) throws(FerryError) -> Bool
        ) throws(FerryError) -> Bool {
            try makeFolder(of: trustedPath)
            return try KeyFile.withLock(trustedPath + ".lock") { () throws(FerryError) in
                var text = try KeyFile.readListText(at: trustedPath)
                var list = try AllowList(parsing: text)
                guard try change(&list, &text) else { return false }
                try KeyFile.replace(trustedPath, with: text)
                return true
            }
        }

        // MARK: One-time codes

        /// A code that waits to be used.
        package struct Waiting {
            package let invitation: Invitation
            package let name: String
            fileprivate let path: String
        }

        /// Makes a code that waits until it is used, or until its time is over.
        ///
        /// - Parameters:
        ///   - name: what the peer's key is called when it has come.
        ///   - end: when the code expires.
        /// - Throws: `seal.unsafeFile`; `seal.malformedKey` for a name that does not fit a line, and when too many codes wait.
        package func invite(name: String, until end: Date) throws(FerryError) -> Invitation {
            var list = AllowList()
            try list.add(SecretKey().publicKey, name: name)
            try make(invitationsPath)
            let count = invitations(at: .now).count
            guard count < Self.maximumInvitations else {
                throw FerryError(
                    .sealMalformedKey,
                    "\(count) codes wait to be used, the most there may be. Call them off with 'ferry invite --clear'.")
            }
            let invitation = Invitation()
            let text = "\(invitation.code)\n\(Int(end.timeIntervalSince1970))\n\(name)\n"
            try KeyFile.writeNew(text, at: invitationsPath + "/" + UUID().uuidString)
            return invitation
        }

        /// The codes that wait, the oldest first; removes those whose time is over, and passes over files that others can read.
        package func invitations(at now: Date) -> [Waiting] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: invitationsPath)) ?? []
            return names.sorted().prefix(4 * Self.maximumInvitations).compactMap { file in
                let path = invitationsPath + "/" + file
                guard let text = try? KeyFile.readPrivateText(at: path) else { return nil }
                let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
                guard lines.count >= 3, let seconds = Int(lines[1]), let invitation = try? Invitation(code: lines[0])
                else {
                    return nil
                }
                guard now.timeIntervalSince1970 < Double(seconds) else {
                    _ = unlink(path)
                    return nil
                }
                return Waiting(invitation: invitation, name: String(lines[2]), path: path)
            }
        }

        /// Uses a code up: of all processes and peers one succeeds.
        ///
        /// - Returns: the name that it was made for; nil when it is used or expired.
        func use(_ code: String, at now: Date) -> String? {
            guard let found = invitations(at: now).first(where: { $0.invitation.code == code }) else { return nil }
            return unlink(found.path) == 0 ? found.name : nil
        }

        /// Calls all codes off that wait. Returns how many.
        package func clearInvitations() -> Int { invitations(at: .now).count { unlink($0.path) == 0 } }
    }

    /// The list of trusted keys as it is on disk now: what `ferry trust` changes holds from the next handshake on.
    final class TrustedKeys: Sendable {
        private struct State {
            var mark: [Int64] = []
            var list = AllowList()
        }

        private let path: String
        private let tell: @Sendable (String) -> Void
        private let state = Mutex(State())

        init(_ path: String, _ tell: @escaping @Sendable (String) -> Void) {
            self.path = path
            self.tell = tell
        }

        /// - Throws: `seal.unsafeFile`, `seal.malformedKey`.
        func list() throws(FerryError) -> AllowList {
            let mark = KeyFile.mark(of: path)
            let known = state.withLock { $0.mark == mark && !mark.isEmpty ? $0.list : nil }
            if let known { return known }
            let list = try KeyFile.readAllowList(at: path)
            state.withLock { $0 = State(mark: mark, list: list) }
            return list
        }

        /// Whether a key is in the list. A list that cannot be used allows none.
        func allows(_ key: PublicKey) -> Bool {
            do throws(FerryError) { return try list().allows(key) } catch {
                tell("No key is trusted while the list cannot be used. \(error.message)")
                return false
            }
        }

        /// The key that a person means: a key, or a name in the list.
        ///
        /// - Throws: `seal.malformedKey` for a text that is neither, and for a name that two keys have.
        func key(named text: String) throws(FerryError) -> PublicKey {
            if text.lowercased().hasPrefix("ferry1") { return try PublicKey(text: text) }
            let found = try list().entries.filter { $0.name == text || Fingerprint(text) == $0.key.fingerprint }
            guard found.count == 1 else {
                throw FerryError(
                    .sealMalformedKey,
                    found.isEmpty
                        ? "No trusted key has the name '\(text)'. 'ferry trust' lists them; give the key itself, or one of the names."
                        : "\(found.count) trusted keys have the name '\(text)'. Give the key itself.")
            }
            return found[0].key
        }
    }
#endif
