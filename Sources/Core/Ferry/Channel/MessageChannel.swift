/// A two-way channel of typed messages over one link.
///
///     let channel = try MessageChannel(over: link, codec: TextCodec())
///     try await channel.send("hello")
///     for try await message in channel.messages { print(message) }
///
/// Both sides use the same framing and compression, and in each direction the same codec. The channel belongs to its
/// creator: it closes when the last reference is released.
///
/// ## After an error
/// - A message that cannot be encoded, is too large, or finds the queue full: `send` throws; the channel goes on.
/// - A received message that cannot be decoded or decompressed: ``messages`` throws once, and iterating again goes on
///   with the next message; ``results`` has the error as one element among the others.
/// - Sides out of step, an exceeded limit, a stalled or lost link: the channel closes. Pending sends throw, each with
///   the fate of its message (``FerryError/fate``); ``messages`` delivers the messages that had arrived whole and then
///   throws or ends, and ``closeReason`` gives the reason.
public final class MessageChannel<Outbound: Sendable, Inbound: Sendable>: Sendable {
    let core: ChannelCore
    private let time: any TimeSource
    private let outboundCodec: any Codec<Outbound>
    private let inboundCodec: any Codec<Inbound>
    let envelope: CompressionEnvelope?

    /// Opens a channel with separate types for the two directions, over a link without another owner, and activates the
    /// link.
    ///
    /// - Parameters:
    ///   - link: the link; the channel closes it in the end.
    ///   - outboundCodec: turns messages to be sent into bytes.
    ///   - inboundCodec: turns received bytes into messages.
    ///   - framing: turns payloads into chunks and back.
    ///   - compression: makes payloads smaller, or nil. With it each payload begins with one byte that says whether it is
    ///     stored or compressed.
    ///   - chunkSize: an upper bound of the chunks sent, in bytes; nil for what link and framing allow.
    ///   - limits: what a peer can make grow, bounded.
    ///   - time: the clock for timeouts.
    /// - Throws: `invalidConfiguration` for limits out of range, for payloads that the framing cannot carry, and for a framing
    ///   that has to know who connected over a link that cannot tell. The link is closed then.
    public init(
        over link: any Link, sending outboundCodec: some Codec<Outbound>, receiving inboundCodec: some Codec<Inbound>,
        framing: some Framing = LengthPrefixFraming(), compression: (any Compression)? = nil, chunkSize: Int? = nil,
        limits: Limits = Limits(), time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        let payloads = PayloadFormat(
            codec: outboundCodec.identifier, compression: compression?.identifier ?? 0,
            isEnveloped: compression != nil)
        do throws(FerryError) {
            try limits.check()
            try framing.check(payloads)
            if framing.needsRole, link.role == nil { throw .roleUnknown(to: framing) }
        } catch {
            link.close()
            throw error
        }
        self.time = time
        self.outboundCodec = outboundCodec
        self.inboundCodec = inboundCodec
        envelope = compression.map { CompressionEnvelope(compression: $0, limits: limits) }
        // A message of the largest size may be stored, one byte longer in its envelope.
        let envelopeCount = compression == nil ? 0 : 1
        var framed = limits
        framed.maximumMessageSize += framed.maximumMessageSize < .max ? envelopeCount : 0
        core = ChannelCore(
            link: link,
            session: framing.makeSession(limits: framed, payloads: payloads, role: link.role ?? .initiator),
            chunkSize: chunkSize ?? .max, limits: limits, time: time, envelopeCount: envelopeCount)
        core.open()
    }

    deinit {
        core.finish(FerryError(.closed, "The channel was closed because its last reference was released."))
    }

    /// Who is at the other end: as the link says, or as the peer has proven by its key (``SealedFraming``). Until that proof it is the
    /// link's word.
    public var peer: PeerIdentity { core.peer }

    // MARK: Sending

    /// Sends one message; returns when its last chunk is in the link's transmit queue.
    ///
    /// Messages leave one after the other, in the order in which the calls begin: a call has its place before it suspends for
    /// the first time, wherever its message is encoded. So what one actor sends leaves in the order of its calls, awaited or in
    /// tasks that are isolated to it. `async let`, task groups and tasks of no actor begin in any order;
    /// ``enqueue(_:options:timeout:progress:)`` takes its place without being awaited. A full link suspends the call until all
    /// is taken.
    /// Cancelling the task ends the call at once: the message is taken back as long as none of its bytes has left; after
    /// that it is finished all the same, because half a message would put the peer out of step. ``FerryError/fate`` says
    /// which.
    ///
    /// With the sequenced framing it returns when the peer has the whole message. Short messages overtake long ones, a
    /// message that is cancelled or times out is withdrawn even after it has begun, and progress counts the bytes that
    /// the peer has acknowledged.
    ///
    /// Encoding and compression run off the caller's actor, unless the codec is trivial (``Codec/isTrivial``).
    ///
    /// - Parameters:
    ///   - message: the value.
    ///   - options: priority, share and receipt, for framings that have a choice.
    ///   - timeout: how long to wait at most; nil for as long as the link keeps taking chunks
    ///     (``Limits/outboundStallTimeout``). A message that cannot be taken back is finished after its timeout too.
    ///   - progress: told how far the message has come, several chunks at a time, forward only and never after the call has
    ///     returned. It must not block.
    /// - Throws: ``FerryError`` with `encodingFailed`, `messageTooLarge`, `queueFull`, `notText`, `cancelled`, `timedOut`,
    ///   or the reason why the channel is closed; always with a ``FerryError/fate``.
    public func send(
        _ message: Outbound, options: SendOptions = SendOptions(), timeout: Duration? = nil,
        progress: (@Sendable (SendProgress) -> Void)? = nil
    ) async throws(FerryError) {
        let actor: (any Actor)? = #isolation
        guard actor != nil, envelope != nil || !outboundCodec.isTrivial else {
            return try await core.send(
                payload(for: message), options: options, timeout: timeout, progress: progress)
        }
        let place = core.reserve()
        let payload = await payloadElsewhere(for: message)
        try await core.send(payload, in: place, options: options, timeout: timeout, progress: progress)
    }

    /// Takes a message to be sent and returns at once: it leaves after those that were sent or taken before, and before those
    /// that come later.
    ///
    ///     let greeting = try channel.enqueue("hello")
    ///     let question = try channel.enqueue("how are you?")
    ///     try await greeting.sent()
    ///     try await question.sent()
    ///
    /// For callers that do not await, such as delegates and callbacks. The message is encoded, and compressed, on the calling
    /// thread. It may be called from any thread, and from within a callback of the channel's.
    ///
    /// - Parameters: as ``send(_:options:timeout:progress:)``.
    /// - Returns: the message, to await its end. It is sent whether or not anybody does.
    /// - Throws: ``FerryError`` with `encodingFailed`; all else is thrown by ``QueuedMessage/sent()``.
    public func enqueue(
        _ message: Outbound, options: SendOptions = SendOptions(), timeout: Duration? = nil,
        progress: (@Sendable (SendProgress) -> Void)? = nil
    ) throws(FerryError) -> QueuedMessage {
        let queued = QueuedMessage(core: core)
        core.submit(
            try payload(for: message).get(), as: queued.id, options: options, timeout: timeout, progress: progress,
            completion: queued.complete)
        return queued
    }

    // MARK: Receiving

    /// The messages that arrive, in order. It ends when this side closes the channel or the peer disconnects between two
    /// messages; any other end is thrown. Several iterators share the messages between them.
    public var messages: Messages { Messages(channel: self) }

    /// The same without throwing: what could not be decoded, or was lost, is one element, and the loop goes on. When the
    /// channel has failed, the reason is the last element.
    public var results: Results { Results(channel: self) }

    /// How far the message in hand has come; nil between messages.
    public var arriving: ReceiveProgress? { core.arriving }

    /// ``arriving`` at each chunk, until the channel ends. A slow reader gets the newest.
    public var arrivals: AsyncStream<ReceiveProgress> { core.watchArriving() }

    // MARK: Life

    /// What the channel is doing at present.
    public var status: ChannelStatus { core.status }

    /// The present status and each later one, until the channel has ended. A slow reader gets the newest.
    public var statuses: AsyncStream<ChannelStatus> { core.watchStatus() }

    /// Closes the channel and its link. Messages that wait to be sent fail with `closed`; await their `send` first, or use
    /// ``closeAfterSending(timeout:)``, if they matter. What arrived whole can still be read. A second call does nothing.
    public func close() {
        core.finish(FerryError(.closed, "The channel was closed by this side."))
    }

    /// Takes no more messages, waits until those that were taken are out, and closes the channel.
    ///
    /// - Parameter timeout: how long to wait; after it the channel closes all the same, and pending messages fail.
    /// - Throws: `timedOut`, `cancelled`, or why the channel ended before.
    public func closeAfterSending(timeout: Duration) async throws(FerryError) {
        core.drain()
        let timer = time.schedule(at: time.now + timeout) { [core] in
            core.finish(
                FerryError(.timedOut, "Messages still waited to be sent \(timeout) after the channel was to be closed.")
            )
        }
        defer { timer.cancel() }
        let reason = await closed
        if let reason, reason.code != .closed { throw reason }
        guard reason == nil else { return }
        let error = FerryError(.cancelled, "The task was cancelled while messages waited to be sent.")
        core.finish(error)
        throw error
    }

    /// Waits until the channel has ended, and says why; nil when the task is cancelled before.
    public var closed: FerryError? {
        get async {
            for await _ in core.watchStatus() {}
            return core.closeReason
        }
    }

    /// Why the channel is closed, or nil while it is open.
    public var closeReason: FerryError? { core.closeReason }

    /// Counts since the channel was opened.
    public var statistics: ChannelStatistics { core.statistics }

    /// Calls `body` with the channel and closes it afterwards: after all that was to be sent when `body` returns, at once when
    /// it throws.
    ///
    ///     try await MessageChannel(over: link, codec: TextCodec()).use { channel in
    ///         try await channel.send("hello")
    ///     }
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for unsent messages.
    ///   - body: the work to do with the channel.
    /// - Throws: what `body` throws, or ``closeAfterSending(timeout:)``.
    public func use<Value>(
        closingWithin timeout: Duration = .seconds(30), _ body: (MessageChannel) async throws -> Value
    ) async throws -> Value {
        let value: Value
        do {
            value = try await body(self)
        } catch {
            close()
            throw error
        }
        if closeReason == nil { try await closeAfterSending(timeout: timeout) }
        return value
    }

    // MARK: Values and payloads

    func payload(for message: Outbound) -> Result<[UInt8], FerryError> {
        let encoded: [UInt8]
        do {
            encoded = try outboundCodec.encode(message)
        } catch {
            let failure =
                error as? FerryError
                ?? FerryError(
                    .encodingFailed, "\(type(of: outboundCodec)) cannot encode the message.", cause: error)
            return .failure(failure.telling(.nothingSent))
        }
        guard let envelope else { return .success(encoded) }
        return Result { () throws(FerryError) in try envelope.wrap(encoded) }.mapError { $0.telling(.nothingSent) }
    }

    @concurrent private func payloadElsewhere(for message: Outbound) async -> Result<[UInt8], FerryError> {
        payload(for: message)
    }

    private func message(from payload: [UInt8]) -> Result<Inbound, FerryError> {
        do {
            let encoded = try envelope?.unwrap(payload) ?? payload
            return .success(try inboundCodec.decode(encoded))
        } catch let error as FerryError {
            return .failure(error)
        } catch {
            return .failure(
                FerryError(
                    .decodingFailed,
                    "\(type(of: inboundCodec)) cannot decode a message of \(payload.count) bytes. Check that both sides "
                        + "use the same codec and message type. The channel goes on with the next message.",
                    cause: error)
            )
        }
    }

    @concurrent private func messageElsewhere(from payload: [UInt8]) async -> Result<Inbound, FerryError> {
        message(from: payload)
    }

    /// Payloads of more bytes are decoded off the caller's actor, unless the codec is trivial. Compressed ones always are.
    private static var largestDecodedInPlace: Int { 4 << 10 }

    fileprivate func next(isolation actor: isolated (any Actor)?) async -> Result<Inbound, FerryError>? {
        switch await core.read(isolation: actor) {
        case .message(let payload):
            let isSmall = envelope == nil && (inboundCodec.isTrivial || payload.count <= Self.largestDecodedInPlace)
            return actor == nil || isSmall ? message(from: payload) : await messageElsewhere(from: payload)
        case .failure(let error): return .failure(error)
        case .end: return nil
        }
    }
}

extension MessageChannel where Outbound == Inbound {
    /// Opens a channel with one type for both directions, over a link without another owner, and activates the link. As
    /// ``init(over:sending:receiving:framing:compression:chunkSize:limits:time:)`` otherwise.
    ///
    /// - Throws: `invalidConfiguration` for limits out of range, and for payloads that the framing cannot carry.
    public convenience init(
        over link: any Link, codec: some Codec<Outbound>, framing: some Framing = LengthPrefixFraming(),
        compression: (any Compression)? = nil, chunkSize: Int? = nil, limits: Limits = Limits(),
        time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        try self.init(
            over: link, sending: codec, receiving: codec, framing: framing, compression: compression,
            chunkSize: chunkSize, limits: limits, time: time)
    }
}

extension MessageChannel {
    /// The messages of a channel, as they arrive.
    public struct Messages: AsyncSequence, Sendable {
        /// The app's value.
        public typealias Element = Inbound
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
            public mutating func next() async throws(FerryError) -> Inbound? {
                try await next(isolation: nil)
            }

            /// The next message; nil when the channel was closed or the task cancelled.
            ///
            /// - Throws: ``FerryError``; when the channel is still open, the next call goes on with the next message.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(FerryError) -> Inbound? {
                try await channel.next(isolation: actor)?.get()
            }
        }
    }

    /// The messages of a channel as they arrive, and what went wrong with some.
    public struct Results: AsyncSequence, Sendable {
        /// A message, or why it could not be read.
        public typealias Element = Result<Inbound, FerryError>
        /// It never throws.
        public typealias Failure = Never

        fileprivate let channel: MessageChannel

        /// Begins, or goes on, reading.
        public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

        /// Reads one result at a time.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let channel: MessageChannel

            /// The next result; nil when the channel has ended or the task was cancelled.
            public mutating func next() async -> Result<Inbound, FerryError>? { await next(isolation: nil) }

            /// The next result; nil when the channel has ended or the task was cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Result<Inbound, FerryError>? {
                await channel.next(isolation: actor)
            }
        }
    }
}
