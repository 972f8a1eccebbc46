/// What a channel is doing.
public struct ChannelStatus: Sendable, Hashable {
    /// A step of a channel's life.
    public enum Phase: Sendable, Hashable {
        /// The two sides have not met yet.
        case connecting
        /// Messages cross.
        case open
        /// The connection is lost and another is looked for; messages wait.
        case suspended
        /// Nothing is sent any more. What arrived before can still be read.
        case ended
    }

    /// The present step.
    public let phase: Phase
    /// How often the channel went on over another connection.
    public let resumptions: Int

    init(phase: Phase, resumptions: Int) {
        self.phase = phase
        self.resumptions = resumptions
    }
}

/// How far one message has come.
public struct SendProgress: Sendable, Hashable {
    /// Bytes of the payload that the link has accepted or, with the sequenced framing, the peer has acknowledged.
    public let acceptedBytes: Int
    /// The payload's size in bytes: encoded and, where it gains, compressed.
    public let totalBytes: Int

    /// Makes a step.
    public init(acceptedBytes: Int, totalBytes: Int) {
        self.acceptedBytes = acceptedBytes
        self.totalBytes = totalBytes
    }
}

/// Counts of a channel since it was opened.
public struct ChannelStatistics: Sendable, Hashable {
    /// Messages whose last chunk the link has accepted or, with the sequenced framing, the peer has acknowledged.
    public var messagesSent = 0
    /// Chunks that the link has accepted.
    public var chunksSent = 0
    /// Bytes of those chunks, framing included.
    public var bytesSent = 0
    /// How often the link was full and the sender waited for it to be ready.
    public var waitsForReady = 0
    /// How long the sender waited in all.
    public var timeWaiting: Duration = .zero
    /// Probes that found space although the link had not said so: lost ready signals.
    public var lostReadySignals = 0
    /// Messages that arrived whole.
    public var messagesReceived = 0
    /// Chunks that arrived.
    public var chunksReceived = 0
    /// Bytes of those chunks, framing included.
    public var bytesReceived = 0
    /// Messages that the peer took back after a part of them had arrived.
    public var messagesCancelledByPeer = 0
    /// How often a suspended channel went on over another connection.
    public var resumptions = 0

    /// All zero.
    public init() {}
}
