/// A two-way channel of typed messages over one link.
///
///     let channel = MessageChannel(over: link, codec: TextCodec())
///     try await channel.send("hello")
///     for try await message in channel.messages { print(message) }
///
/// Both sides use the same codec, framing and compression. The channel belongs to whoever made it: when the last
/// reference goes, it is closed.
///
/// ## After an error
/// - A message that cannot be encoded, is too large, or finds the queue full: `send` throws; the channel goes on.
/// - A received message that cannot be decoded or decompressed: ``messages`` throws once, and iterating again goes on
///   with the next message.
/// - Sides out of step, an exceeded limit, a stalled or lost link: the channel closes. Waiting sends throw, ``messages``
///   delivers what had arrived whole and then throws or ends, and ``closeReason`` says why.
public final class MessageChannel<Message: Sendable>: Sendable {
    private let core: ChannelCore
    private let codec: any Codec<Message>
    private let envelope: CompressionEnvelope?

    /// Opens a channel over a link that nobody else uses, and activates the link.
    ///
    /// - Parameters:
    ///   - link: the link; the channel closes it in the end.
    ///   - codec: turns messages into bytes and back.
    ///   - framing: turns payloads into chunks and back.
    ///   - compression: makes payloads smaller, or nil. With it each payload begins with one byte that says whether it is
    ///     stored or compressed.
    ///   - chunkSize: an upper bound of the chunks sent, in bytes; nil for what link and framing allow.
    ///   - limits: what a peer can make grow, bounded.
    ///   - time: the clock for timeouts.
    public init(
        over link: any Link, codec: some Codec<Message>, framing: some Framing = LengthPrefixFraming(),
        compression: (any Compression)? = nil, chunkSize: Int? = nil, limits: Limits = Limits(),
        time: any TimeSource = SystemTime()
    ) {
        self.codec = codec
        envelope = compression.map { CompressionEnvelope(compression: $0, limits: limits) }
        // A message of the largest size may be stored, one byte longer in its envelope.
        let envelopeCount = compression == nil ? 0 : 1
        var framed = limits
        framed.maximumMessageSize += framed.maximumMessageSize < .max ? envelopeCount : 0
        let payloads = PayloadFormat(codec: codec.identifier, compression: compression?.identifier ?? 0)
        core = ChannelCore(
            link: link, session: framing.makeSession(limits: framed, payloads: payloads), chunkSize: chunkSize ?? .max,
            limits: limits, time: time, envelopeCount: envelopeCount)
        core.open()
    }

    deinit {
        core.finish(FerryError(.closed, "The channel was closed because nobody refers to it any more."))
    }

    /// Sends one message; returns when its last chunk is in the link's transmit queue.
    ///
    /// Messages leave in the order of the calls, one after the other. A full link suspends the call until all is taken.
    /// Cancelling the task takes the message back as long as none of its bytes has left; after that the message is
    /// finished all the same, because half a message would put the peer out of step, and the call returns normally.
    ///
    /// With ``SequencedFraming`` it returns when the peer has the whole message, short messages overtake long ones, what is
    /// cancelled or times out is taken back in the middle too, and progress counts what the peer has acknowledged.
    ///
    /// - Parameters:
    ///   - message: the value.
    ///   - options: priority, share and receipt, for framings that have a choice.
    ///   - timeout: how long to wait at most; nil for as long as the link keeps taking chunks
    ///     (``Limits/outboundStallTimeout``). A message that cannot be taken back is finished after its timeout too.
    ///   - progress: told how far the message has come, several chunks at a time. It must not block.
    /// - Throws: ``FerryError`` with `encodingFailed`, `messageTooLarge`, `queueFull`, `notText`, `cancelled`, `timedOut`,
    ///   or the reason why the channel is closed.
    public func send(
        _ message: Message, options: SendOptions = SendOptions(), timeout: Duration? = nil,
        progress: (@Sendable (SendProgress) -> Void)? = nil
    ) async throws(FerryError) {
        let payload = try payload(for: message)
        try await core.send(payload, options: options, timeout: timeout, progress: progress)
    }

    /// The messages that arrive, in order. It ends when this side closes the channel or the peer disconnects between two
    /// messages; any other end is thrown. Several iterators share the messages between them.
    public var messages: Messages { Messages(channel: self) }

    /// Closes the channel and its link. Messages that wait to be sent fail with `closed`; await their `send` first if
    /// they matter. What arrived whole can still be read. A second call does nothing.
    public func close() {
        core.finish(FerryError(.closed, "The channel was closed by this side."))
    }

    /// Why the channel is closed, or nil while it is open.
    public var closeReason: FerryError? { core.closeReason }

    /// What has gone through so far.
    public var statistics: ChannelStatistics { core.statistics }

    private func payload(for message: Message) throws(FerryError) -> [UInt8] {
        let encoded: [UInt8]
        do {
            encoded = try codec.encode(message)
        } catch let error as FerryError {
            throw error
        } catch {
            throw FerryError(.encodingFailed, "\(type(of: codec)) cannot encode the message.", cause: error)
        }
        guard let envelope else { return encoded }
        return try envelope.wrap(encoded)
    }

    private func message(from payload: [UInt8]) throws(FerryError) -> Message {
        let encoded = try envelope?.unwrap(payload) ?? payload
        do {
            return try codec.decode(encoded)
        } catch let error as FerryError {
            throw error
        } catch {
            throw FerryError(
                .decodingFailed,
                "\(type(of: codec)) cannot decode a message of \(encoded.count) bytes. Check that both sides use the "
                    + "same codec and message type. The channel goes on with the next message.", cause: error)
        }
    }
}

extension MessageChannel {
    /// The messages of a channel, as they arrive.
    public struct Messages: AsyncSequence, Sendable {
        /// The app's value.
        public typealias Element = Message
        /// The one kind of error.
        public typealias Failure = FerryError

        fileprivate let channel: MessageChannel

        /// Begins, or goes on, reading.
        public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

        /// Reads one message at a time.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let channel: MessageChannel

            /// The next message; nil when the channel was closed or the task cancelled.
            ///
            /// - Throws: ``FerryError``; when the channel is still open, the next call goes on with the next message.
            public mutating func next() async throws(FerryError) -> Message? {
                try await next(isolation: nil)
            }

            /// The next message; nil when the channel was closed or the task cancelled.
            ///
            /// - Throws: ``FerryError``; when the channel is still open, the next call goes on with the next message.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(FerryError) -> Message? {
                switch await channel.core.read(isolation: actor) {
                case .message(let payload): return try channel.message(from: payload)
                case .failure(let error): throw error
                case .end: return nil
                }
            }
        }
    }
}

/// How far one message has come.
public struct SendProgress: Sendable, Hashable {
    /// Bytes of the payload that the link has accepted or, with ``SequencedFraming``, the peer has acknowledged.
    public let acceptedBytes: Int
    /// The payload's size in bytes: encoded and, where it gains, compressed.
    public let totalBytes: Int

    /// Makes a step.
    public init(acceptedBytes: Int, totalBytes: Int) {
        self.acceptedBytes = acceptedBytes
        self.totalBytes = totalBytes
    }
}

/// What has gone through a channel so far.
public struct ChannelStatistics: Sendable, Hashable {
    /// Messages whose last chunk the link has accepted or, with ``SequencedFraming``, the peer has acknowledged.
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

    /// All zero.
    public init() {}
}
