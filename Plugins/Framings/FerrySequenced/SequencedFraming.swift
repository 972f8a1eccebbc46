public import Ferry

/// Framing for links that lose, double, reorder or cut chunks, and for connections that end in the middle: every message
/// arrives once and intact, or its sender learns that it did not.
///
/// Chunks carry a sequence number in one byte; the receiver acknowledges, and lost chunks are sent again. Several
/// messages are in flight at once, the urgent one first. The receiver grants credit, so a slow reader stops the sender
/// over any transport. When the link is replaced, both sides continue from the last acknowledged byte.
/// `Documentation/Sequenced.md` describes the format and states its guarantees and limits.
///
/// It needs chunks of 20 bytes at least.
public struct SequencedFraming: Framing {
    /// What can be chosen. Both sides may choose differently, except for the two identifiers.
    public var configuration: Configuration

    private let makeSessionID: @Sendable () -> UInt32

    /// Makes the framing.
    ///
    /// - Parameters:
    ///   - configuration: what can be chosen.
    ///   - sessionID: makes the identifier of each session. It must not repeat: it is how a peer that has lost its state
    ///     is told from one that has not.
    public init(
        _ configuration: Configuration = Configuration(),
        sessionID: @escaping @Sendable () -> UInt32 = { .random(in: .min ... .max) }
    ) {
        self.configuration = configuration
        makeSessionID = sessionID
    }

    /// `sequenced`.
    public var name: String { "sequenced" }

    /// False: a short message overtakes a long one, and cancelled messages are missing.
    public var keepsMessageOrder: Bool { false }

    /// The state for a new peer. It outlives the link.
    public func makeSession(limits: Limits) -> Session { makeSession(limits: limits, payloads: PayloadFormat()) }

    /// The same, with the numbers of codec and compression for the hello.
    public func makeSession(limits: Limits, payloads: PayloadFormat) -> Session {
        var payloads = payloads
        payloads.codec = configuration.codec ?? payloads.codec
        payloads.compression = configuration.compression ?? payloads.compression
        return Session(id: makeSessionID(), configuration: configuration, limits: limits, payloads: payloads)
    }

    /// The session that a link's first chunk comes from, or nil when it is no hello of the sequenced framing.
    ///
    /// For transports that recognise a peer which comes back.
    public func sessionID(inFirstChunk chunk: RawSpan) -> UInt64? {
        chunk.withUnsafeBytes { bytes in
            guard case .hello(let hello)? = try? SequencedChunk.parse(bytes) else { return nil }
            return UInt64(hello.session)
        }
    }

    /// What can be chosen.
    public struct Configuration: Sendable, Hashable {
        /// The most chunks that are out at once, and that are held when they come before their turn: 1 to 64. Default 56,
        /// which lets a chunk be overtaken by 16 others without being mistaken for a later one.
        public var window = 56 { didSet { window = min(max(1, window), SequencedChunk.maximumWindow) } }

        /// How many bytes may be delivered and not yet read, besides one message, before the peer has to wait. At least
        /// 1 KiB, at most 1 GiB, and no more than half of ``/Ferry/Limits/maximumInboundBytes``. Default 256 KiB.
        public var creditWindow = 256 << 10 { didSet { creditWindow = min(max(1 << 10, creditWindow), 1 << 30) } }

        /// The number of chunks after which an acknowledgement is due though the sender asks for none. At least 1, at
        /// most seven eighths of the window, which is the default: the sender asks for one as often as it needs it.
        public var chunksPerAcknowledgement = 64 {
            didSet { chunksPerAcknowledgement = max(1, chunksPerAcknowledgement) }
        }

        /// How long an acknowledgement may wait for a chunk to ride on, or for more to acknowledge. Default 150 ms.
        public var acknowledgementDelay: Duration = .milliseconds(150)

        /// How many messages of one priority share the link. 1 sends them one after the other; at most 8. Default 4.
        public var maximumOpenMessages = 4 { didSet { maximumOpenMessages = min(max(1, maximumOpenMessages), 8) } }

        /// What counts as sent. Default `delivered`.
        public var receipt: SendOptions.Receipt = .delivered

        /// How many timeouts without a sign of the peer end the session, or have a link that reconnects do so. At least 1.
        /// Default 12, which is a minute and a half at least.
        public var maximumTimeouts = 12 { didSet { maximumTimeouts = max(1, maximumTimeouts) } }

        /// A number for the codec, stated in the hello; a peer with another one is refused. Default nil: the codec's own
        /// (``/Ferry/Codec/identifier``).
        public var codec: UInt8?

        /// A number for the compression, stated in the hello; a peer with another one is refused. Default nil: the
        /// compression's own (``/Ferry/Compression/identifier``), 0 without one.
        public var compression: UInt8?

        /// The defaults.
        public init() {}
    }
}
