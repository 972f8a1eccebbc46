/// How payloads become chunks and chunks become payloads: the recipe for a ``FramingSession``.
public protocol Framing: Sendable {
    /// The state of this framing on one link.
    associatedtype Session: FramingSession

    /// The framing's name as people type it: `eom`, `length`.
    var name: String { get }

    /// The state for a new link.
    func makeSession(limits: Limits) -> Session

    /// The same for payloads of a known format, which a framing may state to the peer. The two simple framings do not.
    func makeSession(limits: Limits, payloads: PayloadFormat) -> Session

    /// The same for one of the link's two sides: what a channel calls. Where ``needsRole`` is false `role` may be wrong.
    func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session

    /// Whether the two sides differ, in who starts above all, so that a session must know which one it is. A channel refuses
    /// such a framing over a link that cannot tell (``Link/role``). The framings of Ferry's own do not.
    var needsRole: Bool { get }

    /// Refuses payloads that this framing cannot carry, before anything is sent.
    ///
    /// - Throws: ``FerryError`` with `invalidConfiguration` and what to choose instead.
    func check(_ payloads: PayloadFormat) throws(FerryError)

    /// The number by which the first chunk on a link names its sender's session, where the framing can go on over another
    /// link; nil for any other chunk. A listening transport that reconnects knows by it which link a peer comes back to.
    func sessionID(inFirstChunk chunk: RawSpan) -> UInt64?

    /// Whether messages arrive in the order of sending, all of them, as long as the session lives. ``SealedFraming`` has both sides
    /// count them then.
    var keepsMessageOrder: Bool { get }
}

extension Framing {
    /// True: one message after the other.
    public var keepsMessageOrder: Bool { true }
    /// Ignores the format.
    public func makeSession(limits: Limits, payloads: PayloadFormat) -> Session { makeSession(limits: limits) }
    /// Ignores the role.
    public func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session {
        makeSession(limits: limits, payloads: payloads)
    }
    /// False: both sides do the same.
    public var needsRole: Bool { false }
    /// Takes any payloads.
    public func check(_ payloads: PayloadFormat) throws(FerryError) {}
    /// None: the framing does not go on over another link.
    public func sessionID(inFirstChunk chunk: RawSpan) -> UInt64? { nil }
}

/// What a channel's payloads are, in numbers that both sides can compare.
public struct PayloadFormat: Sendable, Hashable {
    /// ``Codec/identifier``.
    public var codec: UInt8
    /// ``Compression/identifier``, 0 without compression.
    public var compression: UInt8
    /// Whether payloads are in the envelope of a compression, be its identifier 0.
    public var isEnveloped: Bool

    /// Makes a format.
    public init(codec: UInt8 = 0, compression: UInt8 = 0, isEnveloped: Bool = false) {
        self.codec = codec
        self.compression = compression
        self.isEnveloped = isEnveloped
    }
}

/// One message on its way out, numbered by the channel.
public struct MessageID: Sendable, Hashable, Comparable {
    /// Counts from 0 in the order of sending.
    public let rawValue: UInt64

    /// Makes an identifier.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Orders by time of sending.
    public static func < (a: MessageID, b: MessageID) -> Bool { a.rawValue < b.rawValue }
}

/// A framing's state on one link, without I/O, clock or randomness.
///
/// The owner asks and the session answers; nothing happens in between. After ``enqueue(_:as:at:)``, ``receive(_:at:)``,
/// ``wake(at:)`` and ``linkDidOpen(at:)`` the owner calls ``transmit(atMost:at:_:)`` until it returns a result other
/// than `.accepted`, then ``nextEvent()`` until nil, then reads ``deadline``. A session may send its own chunks
/// (acknowledgements, a handshake) and several messages at once; the two simple framings do neither.
public protocol FramingSession: Sendable {
    /// Takes a payload to be sent.
    ///
    /// - Throws: ``FerryError`` when this framing cannot carry it; nothing has changed then.
    mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError)

    /// The same with a choice of priority, share and receipt, for framings that have one.
    mutating func enqueue(
        _ payload: [UInt8], as id: MessageID, options: SendOptions, at now: Timestamp
    ) throws(FerryError)

    /// Whether ``linkDidOpen(at:)`` may follow ``linkDidClose(at:)``, and unfinished messages go on then.
    var survivesLinkLoss: Bool { get }

    /// Whether the session acknowledges and grants credit itself: ``FramingEvent/progress(_:acceptedBytes:)`` counts what the
    /// peer has, and a slow reader stops the peer without the link being paused.
    var acknowledges: Bool { get }

    /// Takes a message back if the peer will not get it then: because none of its bytes has been accepted, or because the
    /// peer is told to drop what it has. Returns whether it was.
    mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool

    /// The fate of a message that was enqueued, is not yet reported as sent or failed, and is not sent any further.
    func fate(of id: MessageID) -> MessageFate

    /// How far the message has come that is arriving; nil when none is.
    var arriving: ReceiveProgress? { get }

    /// Whether messages may leave: false while the two sides still have to meet, on each link anew.
    var isReady: Bool { get }

    /// Offers the next chunk, if there is one, of at most `maximumChunkSize` bytes.
    ///
    /// The size is asked anew for each chunk, and only when there is one: sessions keep byte offsets, never lists of
    /// chunks cut in advance. When `offer` returns false the session is as it was, and the next call offers a chunk again.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall`; the session cannot go on with this link.
    mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission

    /// Takes a chunk that arrived.
    ///
    /// - Throws: ``FerryError`` when the two sides are out of step or a limit is exceeded; the session is of no use
    ///   afterwards, but ``nextEvent()`` still tells what happened before.
    mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError)

    /// The next thing that happened, oldest first.
    mutating func nextEvent() -> FramingEvent?

    /// When to call ``wake(at:)``, or nil. It may have moved later by the time it comes.
    var deadline: Timestamp? { get }

    /// Tells the session that its deadline may have come.
    ///
    /// - Throws: as ``receive(_:at:)``.
    mutating func wake(at now: Timestamp) throws(FerryError)

    /// A new link carries this session's chunks from now on.
    mutating func linkDidOpen(at now: Timestamp)

    /// The link has ended.
    ///
    /// - Throws: `truncatedMessage` when a message had arrived in part.
    mutating func linkDidClose(at now: Timestamp) throws(FerryError)

    /// The app has taken `count` bytes of delivered messages: credit that may be granted to the peer.
    mutating func consume(_ count: Int, at now: Timestamp)

    /// This side has asked the link to pause its peer, or to go on: silence is not the peer's meanwhile.
    mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp)

    /// Whether ``wake(at:)`` has thrown because the peer was silent, and the session would go on over another link.
    var needsNewLink: Bool { get }

    /// How often the peer has come back without its session, so that what it knew is lost.
    var peerRestarts: Int { get }

    /// Who the peer has proven to be by a key, where the session can tell; nil until then.
    var provenPeer: PeerIdentity? { get }
}

extension FramingSession {
    /// Ignores the options: messages go whole, in the order of sending.
    public mutating func enqueue(
        _ payload: [UInt8], as id: MessageID, options: SendOptions, at now: Timestamp
    ) throws(FerryError) {
        try enqueue(payload, as: id, at: now)
    }
    /// It may have arrived.
    public func fate(of id: MessageID) -> MessageFate { .mayHaveArrived }
    /// Not told.
    public var arriving: ReceiveProgress? { nil }
    /// True: there is nothing to agree on first.
    public var isReady: Bool { true }
    /// False: messages in flight end with the link.
    public var survivesLinkLoss: Bool { false }
    /// False: progress counts what the link has taken.
    public var acknowledges: Bool { false }
    /// False.
    public var needsNewLink: Bool { false }
    /// Never: the session ends with the peer's.
    public var peerRestarts: Int { 0 }
    /// Nil: only the link identifies the peer.
    public var provenPeer: PeerIdentity? { nil }
    /// Nothing to wake for.
    public var deadline: Timestamp? { nil }
    /// Does nothing.
    public mutating func wake(at now: Timestamp) throws(FerryError) {}
    /// Does nothing.
    public mutating func linkDidOpen(at now: Timestamp) {}
    /// Does nothing.
    public mutating func consume(_ count: Int, at now: Timestamp) {}
    /// Does nothing.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) {}
}

/// The result of an attempt to send the next chunk.
@frozen public enum Transmission: Sendable, Hashable {
    /// There is nothing to send.
    case idle
    /// The link took a chunk; there may be more.
    case accepted
    /// There is a chunk and the link has no space for it.
    case refused
}

/// What a session has to tell.
public enum FramingEvent: Sendable {
    /// A message arrived, whole.
    case received([UInt8])
    /// So many of a message's payload bytes have been accepted so far, by the link or, where the framing
    /// ``FramingSession/acknowledges``, by the peer. Several steps may be told as one.
    case progress(MessageID, acceptedBytes: Int)
    /// A message is out, as far as this framing can tell.
    case sent(MessageID)
    /// A message cannot be sent; the session goes on.
    case failed(MessageID, FerryError)
    /// Something that arrived was lost or damaged; the session goes on.
    case receiveFailed(FerryError)
}

/// How far a message that is arriving has come.
public struct ReceiveProgress: Sendable, Hashable {
    /// Bytes of its payload that are here.
    public let receivedBytes: Int
    /// The payload's size in bytes, where the framing tells it in advance.
    public let totalBytes: Int?

    /// Made by framings.
    public init(receivedBytes: Int, totalBytes: Int?) {
        self.receivedBytes = receivedBytes
        self.totalBytes = totalBytes
    }
}
