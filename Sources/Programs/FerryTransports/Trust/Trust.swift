import Ferry
import Synchronization

#if Seal
    import FerrySeal
    import Foundation

    /// Whom this side trusts, for one transport: makes the seals of its channels.
    final class Trust: Sendable {
        private struct State {
            var key: SecretKey?
            /// The code that was shown, and the one peer that has used it.
            var shown: Invitation?
            var owner: PublicKey?
            var isAnnounced = false
            /// Codes of `ferry invite` that were used here: their owners may come again after a loss.
            var claimed: [String: PublicKey] = [:]
        }

        let request: TrustRequest
        private let named: NamedTransport
        private let tell: @Sendable (String) -> Void
        private let folder: TrustFolder
        private let keys: TrustedKeys
        private let state = Mutex(State())

        init(_ request: TrustRequest, _ named: NamedTransport, _ tell: @escaping @Sendable (String) -> Void) {
            self.request = request
            self.named = named
            self.tell = tell
            folder = TrustFolder(identity: request.identity, trusted: request.trusted)
            keys = TrustedKeys(folder.trustedPath, tell)
        }

        private func key() throws(FerryError) -> SecretKey {
            if let key = state.withLock({ $0.key }) { return key }
            let key = try folder.key(tell)
            state.withLock { $0.key = key }
            return key
        }

        // MARK: Connecting

        func connecting() throws(FerryError) -> FramingSeal {
            let key = try key()
            let pinned = try request.peer.map { text throws(FerryError) in try keys.key(named: text) }
            let sealing: NoiseSealing
            if let code = request.code ?? request.codeOfEnvironment {
                let invitation: Invitation
                do { invitation = try Invitation(code: code) } catch {
                    throw FerryError(.sealMalformedKey, "The one-time code cannot be used. \(error.message)")
                }
                sealing = NoiseSealing(connectingAs: key, to: .invitation(invitation)) { [self] peer in
                    if let pinned, peer != pinned { return false }
                    remember(peer)
                    return true
                }
            } else if let pinned {
                sealing = NoiseSealing(connectingAs: key, to: .key(pinned))
            } else {
                guard try !keys.list().entries.isEmpty else { throw nobodyIsTrusted() }
                sealing = NoiseSealing(connectingAs: key, to: .anyone) { [keys] in keys.allows($0) }
            }
            return { Self.seal($0, sealing) }
        }

        private func nobodyIsTrusted() -> FerryError {
            FerryError(
                .sealStranger,
                "What crosses \(named) is sealed, and no key is trusted yet. Give --code with the one-time code that the other side shows; or "
                    + "run 'ferry trust KEY' here with the key that 'ferry key' shows there, and the same the other way round; or give "
                    + "--plain if others on the way may read and change it.")
        }

        private func remember(_ peer: PublicKey) {
            guard let name = request.remember else { return }
            do throws(FerryError) {
                if try folder.trust(peer, name: name) {
                    tell("\(name) (\(peer.fingerprint.grouped)) is trusted from now on.")
                }
            } catch { tell("The other side's key is not remembered. \(error.message)") }
        }

        // MARK: Accepting

        func accepting() throws(FerryError) -> FramingSeal {
            let key = try key()
            if request.code != nil {
                throw FerryError(
                    .invalidConfiguration,
                    "--code is for the side that connects. This side listens, and shows a code or takes trusted keys.")
            }
            if let text = request.peer {
                let pinned = try keys.key(named: text)
                let sealing = NoiseSealing(acceptingAs: key, from: .keys { $0 == pinned })
                return { Self.seal($0, sealing) }
            }
            // A list that cannot be used is told at once, and not when a peer comes.
            _ = try keys.list()
            announce()
            let acceptance = NoiseSealing.Acceptance.keys { [keys] in keys.allows($0) }
                .orInvitations({ [self] in waiting() }, claim: { [self] in claim($0, $1) })
            let sealing = NoiseSealing(acceptingAs: key, from: acceptance)
            return { Self.seal($0, sealing) }
        }

        private func announce() {
            guard request.showsCode else { return }
            let code = state.withLock { state -> String? in
                guard !state.isAnnounced else { return nil }
                state.isAnnounced = true
                let invitation = Invitation()
                state.shown = invitation
                return invitation.code
            }
            guard let code else { return }
            tell("One-time code for the other side: --code \(code)")
            CodePicture.show(code)
        }

        private func waiting() -> [Invitation] {
            let (shown, claimed) = state.withLock { ($0.shown, $0.claimed.keys) }
            return (shown.map { [$0] } ?? []) + claimed.compactMap { try? Invitation(code: $0) }
                + folder.invitations(at: .now).map(\.invitation)
        }

        /// Uses a code up. Its first owner may come again, as after a lost connection.
        private func claim(_ invitation: Invitation, _ peer: PublicKey) -> Bool {
            let code = invitation.code
            let known: Bool? = state.withLock { state in
                if state.shown?.code == code {
                    let isOwner = state.owner == nil || state.owner == peer
                    if isOwner { state.owner = peer }
                    return isOwner
                }
                return state.claimed[code].map { $0 == peer }
            }
            if let known {
                if known { remember(peer) }
                return known
            }
            guard let name = folder.use(code, at: .now) else { return false }
            state.withLock { $0.claimed[code] = peer }
            do throws(FerryError) {
                _ = try folder.trust(peer, name: name)
                tell(
                    "\(name.isEmpty ? "The invited peer" : name) (\(peer.fingerprint.grouped)) has come, and is trusted from now on."
                )
            } catch { tell("The invited peer's key is not remembered. \(error.message)") }
            return true
        }

        private static func seal(_ framing: some Framing, _ sealing: NoiseSealing) -> any Framing {
            SealedFraming(framing, by: sealing)
        }
    }
#else
    /// A build without the trait seals nothing.
    final class Trust: Sendable {
        let request: TrustRequest
        private let named: NamedTransport

        init(_ request: TrustRequest, _ named: NamedTransport, _ tell: @escaping @Sendable (String) -> Void) {
            self.request = request
            self.named = named
        }

        func connecting() throws(FerryError) -> FramingSeal { throw request.areMissing(named) }
        func accepting() throws(FerryError) -> FramingSeal { throw request.areMissing(named) }
    }
#endif
