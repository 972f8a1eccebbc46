#if Seal
    import Crypto
    public import Ferry

    /// One side of a Noise handshake and of the messages after it.
    public struct NoiseSeal: MessageSeal {
        /// The first byte of the first message: version 1 in the upper half, the handshake in the lower.
        enum Opening: UInt8, CaseIterable {
            case xx = 0x10
            case ik = 0x11
            case kk = 0x12
            case invited = 0x13

            var pattern: NoisePattern {
                switch self {
                case .xx: .xx
                case .ik: .ik
                case .kk: .kk
                // The place is one of the pattern's.
                case .invited: NoisePattern.xx.withPresharedKey(0) ?? .xx
                }
            }
        }

        /// Why this side ends a handshake, as it tells the peer: a message of two bytes, the second of them this.
        enum Refusal: UInt8 {
            case key = 1
            case code = 2
            case notForThisKey = 3

            static let first: UInt8 = 0x1F
            /// The reason in a message; nil where it is no refusal. Every message of a handshake and every sealed one is longer.
            init?(_ message: [UInt8]) {
                guard message.count == 2, message[0] == Self.first, let reason = Refusal(rawValue: message[1]) else {
                    return nil
                }
                self = reason
            }
        }

        private enum Life {
            /// Nothing was exchanged.
            case idle
            case shaking(HandshakeState)
            case established(Messages)
            case failed
        }

        /// The two directions.
        private struct Messages {
            var sealer: MessageSealer
            var opener: MessageOpener
            let peer: PublicKey
            /// Whether the peer has shown that it has its secret key, and is not the echo of an old handshake.
            var isPeerProven: Bool
        }

        private let key: SecretKey
        private let side: NoiseSealing.Side
        private let exchange: SealedExchange
        private let ephemeral: SecretKey
        private var life = Life.idle
        /// The digests of the messages of the handshake, of both sides, to know one that comes again.
        private var seen: [SHA256.Digest] = []
        /// The code by which the peer came, on the accepting side.
        private var invited: Invitation?
        private var isPeerChecked = false
        private var reason: Refusal?
        private var hasOpened = false

        init(key: SecretKey, side: NoiseSealing.Side, exchange: SealedExchange, ephemeral: SecretKey) {
            self.key = key
            self.side = side
            self.exchange = exchange
            self.ephemeral = ephemeral
        }

        private var numbering: Numbering { exchange.keepsOrder ? .counted : .stated }

        /// 16 bytes, and the number where messages overtake each other.
        public var maximumOverhead: Int { numbering.maximumOverhead }

        /// Whether the handshake is complete on this side.
        public var isEstablished: Bool { if case .established = life { true } else { false } }

        /// The fingerprint of the peer's key. On the accepting side of a handshake of two messages it is known with the first message
        /// that opens, for the first of the handshake may be an old one that an attacker repeats.
        public var provenPeer: PeerIdentity? {
            guard case .established(let messages) = life, messages.isPeerProven else { return nil }
            return PeerIdentity(messages.peer.fingerprint.description, certainty: .key)
        }

        /// The peer's key, as surely as ``provenPeer``.
        public var peerKey: PublicKey? {
            guard case .established(let messages) = life, messages.isPeerProven else { return nil }
            return messages.peer
        }

        // MARK: The handshake

        /// This side's next message of the handshake.
        ///
        /// - Throws: `seal.weakKey`, `seal.outOfTurn`, `invalidConfiguration`.
        public mutating func nextHandshakeMessage() throws(FerryError) -> [UInt8]? {
            switch life {
            case .idle:
                guard case .connecting(let peer, _) = side else { return nil }
                let opening: Opening
                var keys = HandshakeState.Keys(own: key)
                switch peer {
                case .key(let theirs):
                    opening = .ik
                    keys.peer = theirs
                case .pair(let theirs):
                    opening = .kk
                    keys.peer = theirs
                case .invitation(let invitation):
                    opening = .invited
                    keys.preshared = invitation.presharedKey
                case .anyone: opening = .xx
                }
                life = .failed
                return [opening.rawValue] + (try write(begin(opening, .initiator, keys), after: [opening.rawValue]))
            case .shaking(let state):
                guard state.writesNext else { return nil }
                life = .failed
                return try write(state)
            case .established: return nil
            case .failed: throw Self.over
            }
        }

        private mutating func write(_ state: HandshakeState, after prefix: [UInt8] = []) throws(FerryError) -> [UInt8] {
            var state = state
            let message = try state.write()
            seen.append(SHA256.hash(data: prefix + message))
            try go(on: state)
            return message
        }

        private func begin(
            _ opening: Opening, _ role: HandshakeState.Role, _ keys: HandshakeState.Keys
        ) throws(FerryError) -> HandshakeState {
            // What both sides have to agree on and no message says: a difference ends the handshake.
            let prologue =
                [UInt8]("Ferry seal".utf8) + [
                    opening.rawValue, exchange.payloads.compression, exchange.payloads.isEnveloped ? 1 : 0,
                    numbering.rawValue,
                ]
            return try HandshakeState(opening.pattern, role, prologue: prologue, keys: keys, ephemeral: ephemeral)
        }

        /// Takes the peer's next message of the handshake.
        ///
        /// - Throws: `incompatiblePeer`, `seal.stranger`, `seal.handshakeRepeated`, and what Noise's steps throw: `seal.truncated`,
        ///   `seal.refused`, `seal.weakKey`, `seal.outOfTurn`.
        public mutating func receiveHandshake(_ message: [UInt8]) throws(FerryError) {
            let digest = SHA256.hash(data: message)
            guard !seen.contains(digest) else { throw Self.repeated }
            if case .shaking = life, let reason = Refusal(message) {
                life = .failed
                throw notAccepted(reason)
            }
            let before = life
            life = .failed
            switch before {
            case .idle:
                let state = try firstRead(message)
                try check(state)
                try go(on: state)
            case .shaking(var state):
                guard try state.read(message).isEmpty else { throw Self.unexpectedPayload(message.count) }
                try check(state)
                try go(on: state)
            case .established, .failed: throw Self.over
            }
            seen.append(digest)
        }

        private mutating func firstRead(_ message: [UInt8]) throws(FerryError) -> HandshakeState {
            guard case .accepting(let acceptance) = side else {
                throw FerryError(
                    .sealOutOfTurn,
                    "The peer began a handshake that this side begins. One side must connect and the other accept.")
            }
            guard let first = message.first, let opening = Opening(rawValue: first) else {
                let what = message.first.map { "begins with \($0)" } ?? "is empty"
                throw FerryError(
                    .incompatiblePeer,
                    "The first message, of \(message.count) bytes, \(what); a handshake of this version begins with 16 to 19. The peer does not "
                        + "seal, or has another version: use the same setting on both sides.")
            }
            var keys = HandshakeState.Keys(own: key)
            switch opening {
            case .xx, .ik: break
            case .kk:
                guard let pair = acceptance.pair else {
                    reason = .key
                    throw Self.unexpected("as one of a pair")
                }
                keys.peer = pair
            case .invited: return try firstRead(message, by: acceptance.invitations)
            }
            do throws(FerryError) { return try firstRead(message, begin(opening, .responder, keys)) } catch {
                // It is sealed for another key than this side's; or altered, which looks the same.
                if opening != .xx, error.code == .sealRefused { reason = .notForThisKey }
                throw error
            }
        }

        private func firstRead(_ message: [UInt8], _ begun: HandshakeState) throws(FerryError) -> HandshakeState {
            var state = begun
            guard try state.read(Array(message.dropFirst())).isEmpty else {
                throw Self.unexpectedPayload(message.count)
            }
            return state
        }

        /// Finds the code that the peer has: the one by which its first message opens.
        private mutating func firstRead(
            _ message: [UInt8], by invitations: NoiseSealing.Acceptance.Invitations?
        ) throws(FerryError) -> HandshakeState {
            reason = .code
            guard let invitations else { throw Self.unexpected("with a one-time code") }
            var failure: FerryError?
            for invitation in invitations.waiting().prefix(NoiseSealing.Acceptance.maximumInvitations) {
                let keys = HandshakeState.Keys(own: key, preshared: invitation.presharedKey)
                do throws(FerryError) {
                    let state = try firstRead(message, begin(.invited, .responder, keys))
                    invited = invitation
                    reason = nil
                    return state
                } catch  where error.code == .sealRefused {
                    failure = error
                }
            }
            guard failure == nil else {
                throw FerryError(
                    .sealRefused,
                    "The peer's one-time code is none that is good here: it is mistyped, was used already, or has expired; or somebody "
                        + "on the path has altered the message. Make a new code and give it to the peer.")
            }
            throw FerryError(
                .sealStranger,
                "The peer comes with a one-time code, and none waits to be used here. Make one and give it to the peer."
            )
        }

        /// After each message: the messages of the channel begin after the last.
        private mutating func go(on state: HandshakeState) throws(FerryError) {
            guard state.remoteStatic != key.publicKey else {
                throw FerryError(.sealStranger, "The peer has this side's own key. Make a key for each side.")
            }
            guard let result = state.result else { return life = .shaking(state) }
            guard let peer = state.remoteStatic, let sealer = MessageSealer(result.sending, numbering),
                let opener = MessageOpener(result.receiving, numbering)
            else { throw Self.over }
            // Who has read a message that follows one of this side's has a peer that is there now.
            let isPeerProven = state.role == .initiator || state.pattern.messages.count > 2
            life = .established(Messages(sealer: sealer, opener: opener, peer: peer, isPeerProven: isPeerProven))
        }

        /// Looks at the peer's key, once, as soon as a message of the peer's has shown or confirmed it.
        private mutating func check(_ state: HandshakeState) throws(FerryError) {
            guard !isPeerChecked, let peer = state.remoteStatic, peer != key.publicKey else { return }
            isPeerChecked = true
            switch side {
            case .connecting(_, let rule):
                guard rule(peer) else {
                    reason = .key
                    throw stranger(peer)
                }
            case .accepting(let acceptance):
                if let invited {
                    guard acceptance.invitations?.claim(invited, peer) == true else {
                        reason = .code
                        throw FerryError(
                            .sealStranger,
                            "The peer with the key \(peer) (\(peer.fingerprint)) comes with a one-time code that another used before it. Make a "
                                + "new code if you expect both.")
                    }
                } else if state.pattern != .kk {
                    // KK binds the key itself.
                    guard acceptance.rule(peer) else {
                        reason = .key
                        throw stranger(peer)
                    }
                }
            }
        }

        /// Two bytes that say why this side has ended the handshake; nil where it was no matter of keys.
        public var refusal: [UInt8]? { reason.map { [Refusal.first, $0.rawValue] } }

        private func notAccepted(_ reason: Refusal) -> FerryError {
            let text =
                switch reason {
                case .key:
                    "The peer does not accept this side's key \(key.publicKey) (\(key.publicKey.fingerprint)). Have its owner add it to the list "
                        + "of keys there."
                case .code:
                    "The peer does not accept this one-time code: it is mistyped, was used already, or has expired. Ask for a new code."
                case .notForThisKey:
                    "The peer does not have the key that this side expects of it, or an attacker on the path has altered the first message. "
                        + "Compare the peer's key with the one that was given."
                }
            return FerryError(.sealNotAccepted, text)
        }

        private func stranger(_ peer: PublicKey) -> FerryError {
            FerryError(
                .sealStranger,
                "The peer's key \(peer) (\(peer.fingerprint)) is not allowed here. Add it to the list of keys if you know whose it is."
            )
        }

        // MARK: Messages

        /// A payload, sealed.
        ///
        /// - Throws: `seal.outOfTurn` before the handshake is complete, `seal.exhausted` after 2^48 messages.
        public mutating func seal(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
            guard case .established(var messages) = life else { throw Self.early }
            // Alone, so that it is changed in place.
            life = .failed
            defer { life = .established(messages) }
            return try messages.sealer.seal(payload)
        }

        /// The payload of a sealed one.
        ///
        /// - Throws: `seal.truncated`, `seal.replayed`, `seal.reordered`, `seal.tooOld`, `seal.tooFarAhead`, `seal.exhausted`, each
        ///   for what was wrong with it; `seal.handshakeRepeated`.
        public mutating func open(_ sealed: [UInt8]) throws(FerryError) -> [UInt8] {
            guard case .established(var messages) = life else { throw Self.early }
            life = .failed
            defer { life = .established(messages) }
            do throws(FerryError) {
                let payload = try messages.opener.open(sealed)
                messages.isPeerProven = true
                hasOpened = true
                return payload
            } catch {
                // The peer ends the handshake after its last message, which was this side's.
                if !hasOpened, let reason = Refusal(sealed) { throw notAccepted(reason) }
                // A message of the handshake is named as such, whichever check refused it.
                throw seen.contains(SHA256.hash(data: sealed)) ? Self.repeated : error
            }
        }

        // MARK: Errors

        private static var repeated: FerryError {
            FerryError(
                .sealHandshakeRepeated,
                "A message of the handshake came a second time. An attacker on the path repeats messages.")
        }

        private static var over: FerryError {
            FerryError(.sealOutOfTurn, "The handshake has ended. Open a new channel.")
        }

        private static var early: FerryError {
            FerryError(.sealOutOfTurn, "A message was to be sealed or opened before the handshake is complete.")
        }

        private static func unexpected(_ how: String) -> FerryError {
            FerryError(.sealStranger, "The peer comes \(how), and this side waits for none. Set up both sides alike.")
        }

        private static func unexpectedPayload(_ count: Int) -> FerryError {
            FerryError(
                .sealRefused,
                "A message of the handshake, of \(count) bytes, holds more than the handshake. This version takes nothing else."
            )
        }
    }
#endif
