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
            /// It is over. A refusal of a key or a code is for the peer.
            case failed(Refusal?)
        }

        /// Whether the peer's key was looked at.
        private enum KeyCheck {
            case due
            /// On the accepting side, of a peer that came by this code.
            case dueByCode(Invitation)
            case done
        }

        /// The two directions.
        private struct Messages {
            var sealer: MessageSealer
            var opener: MessageOpener
            let peer: PublicKey
            var proof: Proof

            /// By which the peer has shown that it has its secret key, and is not the echo of an old handshake.
            enum Proof {
                case none
                case handshake
                /// A message that was sealed after the handshake.
                case message
            }
        }

        private let key: SecretKey
        private let side: NoiseSealing.Side
        private let exchange: SealedExchange
        private let ephemeral: SecretKey
        private var life = Life.idle
        /// The digests of the messages of the handshake, of both sides, to know one that comes again.
        private var seen: [SHA256.Digest] = []
        private var keyCheck = KeyCheck.due

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
            guard case .established(let messages) = life, messages.proof != .none else { return nil }
            return PeerIdentity(messages.peer.fingerprint.description, certainty: .key)
        }

        /// The peer's key, as surely as ``provenPeer``.
        public var peerKey: PublicKey? {
            guard case .established(let messages) = life, messages.proof != .none else { return nil }
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
                let (opening, keys): (Opening, HandshakeState.Keys) =
                    switch peer {
                    case .key(let theirs): (.ik, .init(own: key, peer: theirs))
                    case .pair(let theirs): (.kk, .init(own: key, peer: theirs))
                    case .invitation(let code): (.invited, .init(own: key, preshared: code.presharedKey))
                    case .anyone: (.xx, .init(own: key))
                    }
                life = .failed(nil)
                return [opening.rawValue] + (try write(begin(opening, .initiator, keys), after: [opening.rawValue]))
            case .shaking(let state):
                guard state.writesNext else { return nil }
                life = .failed(nil)
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
            if case .failed = life { throw Self.over }
            if case .shaking = life, let reason = Refusal(message) {
                life = .failed(nil)
                throw notAccepted(reason)
            }
            let before = life
            life = .failed(nil)
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
            let keys: HandshakeState.Keys
            switch opening {
            case .xx, .ik: keys = .init(own: key)
            case .kk:
                guard let pair = acceptance.pair else {
                    life = .failed(.key)
                    throw Self.unexpected("as one of a pair")
                }
                keys = .init(own: key, peer: pair)
            case .invited: return try firstRead(message, by: acceptance.invitations)
            }
            do throws(FerryError) { return try firstRead(message, begin(opening, .responder, keys)) } catch {
                // It is sealed for another key than this side's; or altered, which looks the same.
                if opening != .xx, error.code == .sealRefused { life = .failed(.notForThisKey) }
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
            life = .failed(.code)
            guard let invitations else { throw Self.unexpected("with a one-time code") }
            var failure: FerryError?
            for invitation in invitations.waiting().prefix(NoiseSealing.Acceptance.maximumInvitations) {
                let keys = HandshakeState.Keys(own: key, preshared: invitation.presharedKey)
                do throws(FerryError) {
                    let state = try firstRead(message, begin(.invited, .responder, keys))
                    keyCheck = .dueByCode(invitation)
                    life = .failed(nil)
                    return state
                } catch  where error.code == .sealRefused {
                    failure = error
                }
            }
            guard failure == nil else {
                throw FerryError(
                    .sealRefused,
                    "The peer's one-time code is none that is good here: it is mistyped, was used already, or has expired; or an attacker "
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
            let isProven = state.role == .initiator || state.pattern.messages.count > 2
            life = .established(
                Messages(sealer: sealer, opener: opener, peer: peer, proof: isProven ? .handshake : .none))
        }

        /// Looks at the peer's key, once, as soon as a message of the peer's has shown or confirmed it.
        private mutating func check(_ state: HandshakeState) throws(FerryError) {
            guard let peer = state.remoteStatic, peer != key.publicKey else { return }
            let check = keyCheck
            keyCheck = .done
            switch (side, check) {
            case (_, .done): return
            case (.connecting(_, let rule), _):
                guard rule(peer) else {
                    life = .failed(.key)
                    throw stranger(peer)
                }
            case (.accepting(let acceptance), .dueByCode(let invitation)):
                guard acceptance.invitations?.claim(invitation, peer) == true else {
                    life = .failed(.code)
                    throw FerryError(
                        .sealStranger,
                        "The peer with the key \(peer) (\(peer.fingerprint)) comes with a one-time code that another used before it. Make a "
                            + "new code if you expect both.")
                }
            case (.accepting(let acceptance), .due):
                // KK binds the key itself.
                guard state.pattern == .kk || acceptance.rule(peer) else {
                    life = .failed(.key)
                    throw stranger(peer)
                }
            }
        }

        /// Two bytes that say why this side has ended the handshake; nil where it was no matter of keys.
        public var refusal: [UInt8]? {
            guard case .failed(let reason?) = life else { return nil }
            return [Refusal.first, reason.rawValue]
        }

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
            life = .failed(nil)
            defer { life = .established(messages) }
            return try messages.sealer.seal(payload)
        }

        /// The payload of a sealed one.
        ///
        /// - Throws: `seal.truncated`, `seal.replayed`, `seal.reordered`, `seal.tooOld`, `seal.tooFarAhead`, `seal.exhausted`, each
        ///   for its reason; `seal.handshakeRepeated`.
        public mutating func open(_ sealed: [UInt8]) throws(FerryError) -> [UInt8] {
            guard case .established(var messages) = life else { throw Self.early }
            life = .failed(nil)
            defer { life = .established(messages) }
            do throws(FerryError) {
                let payload = try messages.opener.open(sealed)
                messages.proof = .message
                return payload
            } catch {
                // The peer ends the handshake after its last message, which was this side's.
                if messages.proof != .message, let reason = Refusal(sealed) { throw notAccepted(reason) }
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
