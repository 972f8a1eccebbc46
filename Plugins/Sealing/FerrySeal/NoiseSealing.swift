#if Seal
    public import Ferry

    /// Seals a channel by Noise: `Noise_…_25519_ChaChaPoly_SHA256`, revision 34. `Documentation/Seal.md` has the bytes.
    ///
    ///     let sealing = NoiseSealing(connectingAs: mine, to: .key(theirs))
    ///     let channel = try MessageChannel(
    ///         over: link, codec: TextCodec(), framing: SealedFraming(LengthPrefixFraming(), by: sealing))
    ///
    /// One side connects, the other accepts. What the connecting side knows decides the handshake:
    ///
    /// | knows | handshake | round trips | bytes |
    /// |---|---|---|---|
    /// | the peer's key | IK | 1 | 145 |
    /// | that both know both keys | KK | 1 | 97 |
    /// | an invitation | XXpsk0 | 1.5 | 209 |
    /// | nothing | XX | 1.5 | 193 |
    ///
    /// IK is for a listener with many keys: the first message says, sealed, whose it is. KK is for one pair. With an invitation the first
    /// message proves that the peer has the code, so a stranger costs its reader some hashes and no agreement of keys.
    public struct NoiseSealing: MessageSealing {
        /// Who is to be at the other end of a connection.
        public enum Peer: Sendable {
            /// The one with this key.
            case key(PublicKey)
            /// The one with this key, which accepts this side's key and no other.
            case pair(PublicKey)
            /// The one that has the same one-time code; its key is learned.
            case invitation(Invitation)
            /// Any peer; its key is learned. Check ``/Ferry/MessageChannel/peer`` before you believe a message.
            case anyone
        }

        /// Who may connect.
        public struct Acceptance: Sendable {
            var rule: @Sendable (PublicKey) -> Bool = { _ in false }
            var invitations: Invitations?
            var pair: PublicKey?

            /// The one-time codes that are good at present, and what uses one up.
            struct Invitations: Sendable {
                let waiting: @Sendable () -> [Invitation]
                let claim: @Sendable (Invitation, PublicKey) -> Bool
            }

            /// The most codes that a handshake tries, in the order in which they are given. Default 64: each costs its reader four hashes.
            public static let maximumInvitations = 64

            /// The keys of a list.
            public static func keys(in list: AllowList) -> Acceptance { keys { list.allows($0) } }

            /// The keys that the rule allows; it is asked at each handshake and must not block.
            public static func keys(_ rule: @escaping @Sendable (PublicKey) -> Bool) -> Acceptance {
                Acceptance(rule: rule)
            }

            /// The one with this key, which connects to ``Peer/pair(_:)``.
            public static func pair(_ key: PublicKey) -> Acceptance { Acceptance(pair: key) }

            /// A peer that has the one-time code; its key is learned. Use another code for the next one.
            public static func invitation(_ invitation: Invitation) -> Acceptance { Acceptance().or(invitation) }

            /// Every key. The peer proves it, and no list names its owner.
            public static var anyone: Acceptance { keys { _ in true } }

            /// This, and a peer that has the one-time code.
            public func or(_ invitation: Invitation) -> Acceptance {
                orInvitations {
                    [invitation]
                } claim: { _, _ in
                    true
                }
            }

            /// This, and a peer that has one of several one-time codes.
            ///
            /// - Parameters:
            ///   - waiting: returns the codes that are good at present; asked when a peer comes with a code. It must not block.
            ///     ``maximumInvitations`` of them are tried.
            ///   - claim: uses a code up for the key that has proven to have it, and returns whether it was still good: the one place
            ///     where two peers with the same code are told apart. `false` ends the handshake with `seal.stranger`.
            public func orInvitations(
                _ waiting: @escaping @Sendable () -> [Invitation],
                claim: @escaping @Sendable (Invitation, PublicKey) -> Bool
            ) -> Acceptance {
                var both = self
                both.invitations = Invitations(waiting: waiting, claim: claim)
                return both
            }
        }

        enum Side: Sendable {
            /// The rule is asked with the peer's key once the peer has proven it, beside what the handshake demands.
            case connecting(Peer, rule: @Sendable (PublicKey) -> Bool)
            case accepting(Acceptance)
        }

        private let key: SecretKey
        private let side: Side
        private let makeEphemeral: @Sendable () -> SecretKey

        /// The side that connects.
        ///
        /// - Parameters:
        ///   - key: this side's identity.
        ///   - peer: who is to be there.
        ///   - rule: whether a peer may be there that has proven this key; asked before this side shows its own key, where the peer's was
        ///     not known before. `false` ends the handshake with `seal.stranger`. It must not block. By default every key may.
        public init(
            connectingAs key: SecretKey, to peer: Peer,
            where rule: @escaping @Sendable (PublicKey) -> Bool = { _ in true }
        ) {
            self.init(key, .connecting(peer, rule: rule)) { SecretKey() }
        }

        /// The side that is connected to.
        ///
        /// - Parameters:
        ///   - key: this side's identity.
        ///   - acceptance: who may come.
        public init(acceptingAs key: SecretKey, from acceptance: Acceptance) {
            self.init(key, .accepting(acceptance)) { SecretKey() }
        }

        /// With a generator of ephemeral keys, for tests that have to repeat. Each key must be used once.
        package init(connectingAs key: SecretKey, to peer: Peer, ephemeral: @escaping @Sendable () -> SecretKey) {
            self.init(key, .connecting(peer, rule: { _ in true }), ephemeral)
        }

        /// With a generator of ephemeral keys, for tests that have to repeat. Each key must be used once.
        package init(
            acceptingAs key: SecretKey, from acceptance: Acceptance, ephemeral: @escaping @Sendable () -> SecretKey
        ) {
            self.init(key, .accepting(acceptance), ephemeral)
        }

        private init(_ key: SecretKey, _ side: Side, _ makeEphemeral: @escaping @Sendable () -> SecretKey) {
            self.key = key
            self.side = side
            self.makeEphemeral = makeEphemeral
        }

        /// `noise`.
        public var name: String { "noise" }

        /// The state for a new peer, with a new ephemeral key.
        public func makeSeal(for exchange: SealedExchange) -> NoiseSeal {
            NoiseSeal(key: key, side: side, exchange: exchange, ephemeral: makeEphemeral())
        }
    }
#endif
