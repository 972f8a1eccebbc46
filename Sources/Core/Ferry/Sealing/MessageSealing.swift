/// How payloads are sealed for one peer: the recipe for a ``MessageSeal``.
///
/// The core knows no cryptography. ``SealedFraming`` puts a seal between a channel's payloads, as they are after compression, and
/// its framing: a handshake comes before the first message, then every payload is sealed and opened.
public protocol MessageSealing: Sendable {
    /// The state with one peer.
    associatedtype Seal: MessageSeal

    /// The sealing's name as people type it: `noise`.
    var name: String { get }

    /// The state for a new peer. Chance comes in here: what must never repeat is made for this seal alone.
    func makeSeal(for exchange: SealedExchange) -> Seal
}

/// What a seal has to know of the channel that it works for.
public struct SealedExchange: Sendable, Hashable {
    /// The numbers of codec and compression.
    public var payloads: PayloadFormat
    /// Whether messages arrive in the order of sealing, without gaps. Then the two sides count them; otherwise each sealed payload
    /// has to say which it is.
    public var keepsOrder: Bool

    /// Made by ``SealedFraming``.
    public init(payloads: PayloadFormat, keepsOrder: Bool) {
        self.payloads = payloads
        self.keepsOrder = keepsOrder
    }
}

/// A handshake with one peer and what follows from it, as a value without I/O, clock or chance.
///
/// The contract, which `SealConformance` of FerryTesting checks:
///
/// - The two sides take turns: a side is asked for its next message until it has none, and then gets the peer's.
/// - After the handshake each sealed payload opens once. With ``SealedExchange/keepsOrder`` they open in the order of sealing only;
///   without it in any order, and some may be missing.
/// - An altered, cut or doubled message, or one of another session, always throws. After an error from ``receiveHandshake(_:)`` or
///   ``open(_:)`` the owner ends the channel.
/// - Errors and descriptions hold no key.
public protocol MessageSeal: Sendable {
    /// The most bytes that sealing adds to a payload.
    var maximumOverhead: Int { get }

    /// Whether the handshake is complete on this side: payloads can be sealed, and the peer's opened.
    var isEstablished: Bool { get }

    /// Who the peer has proven to be; nil until it has. Of some handshakes the proof is the first message that opens.
    var provenPeer: PeerIdentity? { get }

    /// This side's next message of the handshake; nil when it is the peer's turn, and when the handshake is complete.
    ///
    /// - Throws: ``FerryError`` when the handshake cannot go on.
    mutating func nextHandshakeMessage() throws(FerryError) -> [UInt8]?

    /// Takes the peer's next message of the handshake.
    ///
    /// - Throws: ``FerryError`` that names the defect of the message.
    mutating func receiveHandshake(_ message: [UInt8]) throws(FerryError)

    /// The message for the peer after ``receiveHandshake(_:)`` has thrown, sent before the link closes; nil for none.
    /// The peer cannot check its origin, so it affects only the text of the peer's error. By default nil.
    var refusal: [UInt8]? { get }

    /// A payload, sealed.
    ///
    /// - Throws: ``FerryError`` before the handshake is complete, and when the key is used up.
    mutating func seal(_ payload: [UInt8]) throws(FerryError) -> [UInt8]

    /// The payload of a sealed one.
    ///
    /// - Throws: ``FerryError`` that names the defect of the message.
    mutating func open(_ sealed: [UInt8]) throws(FerryError) -> [UInt8]
}

extension MessageSeal {
    /// Nil: the link closes without a word.
    public var refusal: [UInt8]? { nil }
}
