#if Seal
    import Crypto
    package import Ferry
    import Foundation

    /// Noise's HandshakeState (revision 34, 5.3), without I/O and chance: the ephemeral key is a parameter.
    ///
    /// A failed step ends the handshake: each later one throws `seal.outOfTurn`.
    package struct HandshakeState: Sendable {
        /// Which side this is.
        package enum Role: Sendable, Hashable { case initiator, responder }

        /// What this side knows before.
        package struct Keys: Sendable {
            /// This side's static key, where the pattern uses one.
            let own: SecretKey?
            /// The peer's, where the pattern says that it is known.
            let peer: PublicKey?
            /// The pre-shared key, where the pattern has one.
            let preshared: PresharedKey?

            package init(own: SecretKey? = nil, peer: PublicKey? = nil, preshared: PresharedKey? = nil) {
                self.own = own
                self.peer = peer
                self.preshared = preshared
            }
        }

        /// The keys of the two directions.
        package struct Result: Sendable {
            package let sending: CipherState
            package let receiving: CipherState
            /// A name of this session that both sides have and no side can choose (revision 34, 11.2).
            package let hash: [UInt8]
        }

        private enum Life: Sendable {
            case running(next: Int)
            case complete
            case failed
        }

        package let pattern: NoisePattern
        package let role: Role
        private let keys: Keys
        private let ephemeral: SecretKey
        private var remoteEphemeral: PublicKey?
        /// The peer's static key, known before or shown since.
        package private(set) var remoteStatic: PublicKey?
        private var symmetric: SymmetricState
        private var life = Life.running(next: 0)

        /// Begins a handshake.
        ///
        /// - Parameters:
        ///   - pattern: the same on both sides.
        ///   - role: who writes the first message.
        ///   - prologue: bytes that both sides must agree on.
        ///   - keys: what the pattern needs.
        ///   - ephemeral: a key of this handshake only. Never use one twice.
        /// - Throws: `invalidConfiguration` when a key is missing.
        package init(
            _ pattern: NoisePattern, _ role: Role, prologue: [UInt8], keys: Keys, ephemeral: SecretKey
        ) throws(FerryError) {
            let isInitiator = role == .initiator
            let needsPeer = isInitiator ? pattern.knowsResponder : pattern.knowsInitiator
            guard !pattern.needsStatic(isInitiator: isInitiator) || keys.own != nil, !needsPeer || keys.peer != nil,
                pattern.hasPresharedKey == (keys.preshared != nil)
            else {
                throw FerryError(
                    .invalidConfiguration,
                    "A handshake \(pattern.name) needs keys that were not given, or was given one that it has no place for."
                )
            }
            self.pattern = pattern
            self.role = role
            self.keys = keys
            self.ephemeral = ephemeral
            symmetric = SymmetricState(name: pattern.protocolName)
            symmetric.mixHash(prologue)
            if needsPeer { remoteStatic = keys.peer }
            if pattern.knowsInitiator, let key = isInitiator ? keys.own?.publicKey : keys.peer {
                symmetric.mixHash(key.bytes)
            }
            if pattern.knowsResponder, let key = isInitiator ? keys.peer : keys.own?.publicKey {
                symmetric.mixHash(key.bytes)
            }
        }

        /// Whether all messages have been exchanged.
        package var isComplete: Bool { if case .complete = life { true } else { false } }

        /// Whether this side writes the next message.
        package var writesNext: Bool {
            guard case .running(let next) = life else { return false }
            return next.isMultiple(of: 2) == (role == .initiator)
        }

        /// The keys of the messages, once ``isComplete``; nil before.
        package var result: Result? {
            guard isComplete else { return nil }
            let (initiator, responder) = symmetric.split()
            let isInitiator = role == .initiator
            return Result(
                sending: isInitiator ? initiator : responder, receiving: isInitiator ? responder : initiator,
                hash: symmetric.hash)
        }

        /// This side's next message.
        ///
        /// - Throws: `seal.outOfTurn`, or `seal.weakKey` when the peer's key is worthless.
        package mutating func write(_ payload: [UInt8] = []) throws(FerryError) -> [UInt8] {
            let index = try begin(writing: true)
            var message: [UInt8] = []
            for token in pattern.messages[index] {
                switch token {
                case .e:
                    let key = ephemeral.publicKey.bytes
                    message += key
                    symmetric.mixHash(key)
                    if pattern.hasPresharedKey { symmetric.mixKey(SymmetricKey(data: key)) }
                case .s: message += try symmetric.encryptAndHash(keys.own?.publicKey.bytes ?? [])
                default: try mix(token)
                }
            }
            message += try symmetric.encryptAndHash(payload)
            end(index)
            return message
        }

        /// Takes the peer's next message; returns its payload.
        ///
        /// - Throws: `seal.outOfTurn`, `seal.truncated`, `seal.refused`, `seal.weakKey`.
        package mutating func read(_ message: [UInt8]) throws(FerryError) -> [UInt8] {
            let index = try begin(writing: false)
            let least = pattern.messageCount(index)
            guard message.count >= least else {
                throw FerryError(
                    .sealTruncated,
                    "Message \(index + 1) of the handshake has \(message.count) bytes; with \(pattern.name) it has at least \(least)."
                )
            }
            var rest = message[...]
            for token in pattern.messages[index] {
                switch token {
                case .e:
                    let key = rest.prefix(32)
                    rest = rest.dropFirst(32)
                    remoteEphemeral = PublicKey(rawBytes: Array(key))
                    symmetric.mixHash(key)
                    if pattern.hasPresharedKey { symmetric.mixKey(SymmetricKey(data: Array(key))) }
                case .s:
                    let count = symmetric.hasKey ? 32 + Cipher.tagCount : 32
                    let key = try naming(index) { symmetric throws(FerryError) in
                        try symmetric.decryptAndHash(rest.prefix(count))
                    }
                    rest = rest.dropFirst(count)
                    remoteStatic = PublicKey(rawBytes: key)
                default: try mix(token)
                }
            }
            let payload = try naming(index) { symmetric throws(FerryError) in try symmetric.decryptAndHash(rest) }
            end(index)
            return payload
        }

        private mutating func naming(
            _ index: Int, _ body: (inout SymmetricState) throws(FerryError) -> [UInt8]
        ) throws(FerryError) -> [UInt8] {
            do { return try body(&symmetric) } catch {
                guard error.code == .sealRefused else { throw error }
                throw FerryError(
                    .sealRefused,
                    "Message \(index + 1) of the handshake \(pattern.name) does not authenticate: it was altered, or the peer has "
                        + "another key, code or setting. Compare both sides' keys.")
            }
        }

        /// Until the step has succeeded the handshake counts as failed.
        private mutating func begin(writing: Bool) throws(FerryError) -> Int {
            guard case .running(let next) = life, writesNext == writing else {
                let state =
                    switch life {
                    case .complete: "is complete"
                    case .failed: "has failed"
                    case .running: writesNext ? "waits for this side" : "waits for the peer"
                    }
                throw FerryError(
                    .sealOutOfTurn,
                    "A message of the handshake \(pattern.name) was to be \(writing ? "written" : "read") out of turn: it \(state). "
                        + "One side must connect and the other accept.")
            }
            life = .failed
            return next
        }

        private mutating func end(_ index: Int) {
            life = index + 1 == pattern.messages.count ? .complete : .running(next: index + 1)
        }

        private mutating func mix(_ token: NoisePattern.Token) throws(FerryError) {
            let isInitiator = role == .initiator
            let pair: (SecretKey?, PublicKey?) =
                switch token {
                case .ee: (ephemeral, remoteEphemeral)
                case .ss: (keys.own, remoteStatic)
                case .es: isInitiator ? (ephemeral, remoteStatic) : (keys.own, remoteEphemeral)
                case .se: isInitiator ? (keys.own, remoteEphemeral) : (ephemeral, remoteStatic)
                case .psk, .e, .s: (nil, nil)
                }
            if token == .psk, let preshared = keys.preshared { return symmetric.mixKeyAndHash(preshared.key) }
            guard let own = pair.0, let peer = pair.1 else {
                throw FerryError(.sealOutOfTurn, "The handshake \(pattern.name) lacks a key for \(token).")
            }
            symmetric.mixKey(try own.agree(with: peer))
        }
    }
#endif
