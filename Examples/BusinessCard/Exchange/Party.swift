import Ferry
import Synchronization

/// One side of an exchange: what it does with a link, how it shows it, and how patient it is.
struct Party: Sendable {
    /// `server` or `client`, as shown in the log.
    var role: String
    /// What stands before the progress.
    var sendingTitle = "Sending"
    var recipe = Recipe()
    /// The longest that any one step may take.
    var timeout = Duration.seconds(30)
    var console: Console
    var showsChunks = false
    var time: any TimeSource = SystemTime()
    /// Times the log; both sides of an exchange share one.
    var stopwatch = Stopwatch()

    /// What became of a card that was handed to a peer.
    struct Delivery: Sendable {
        /// The card's size in bytes as the codec encodes it.
        var encodedBytes: Int
        /// The message's size in bytes, after compression if there is any.
        var messageBytes: Int
        var statistics: ChannelStatistics
        /// How many chunks of which size, largest first.
        var chunks: [(size: Int, count: Int)]
        /// From the first chunk until the peer left.
        var duration: Duration
        /// The card that came back, when one was waited for and came.
        var reply: Card?
    }

    /// Sends a card over a new link and waits for the peer to leave, who leaves when it has the card. One that stays is
    /// left after the timeout.
    ///
    /// - Parameter expectsReply: whether to wait for a card that the peer sends back.
    func handOver(_ card: Card, over link: any Link, expectsReply: Bool = false) async throws -> Delivery {
        let start = time.now
        return try await withChannel(over: link) { channel, log in
            let messageBytes = try await send(card, over: channel)
            var reply: Card?
            // `send` is done when the last chunk is queued. That the peer leaves says that it has them all.
            let deadline = time.now + timeout
            reading: while deadline > time.now {
                switch try await next(on: channel, until: deadline) {
                case .card(let card) where expectsReply: reply = card
                case .card: break
                case .end, .nothing: break reading
                }
            }
            return Delivery(
                encodedBytes: try recipe.codec.make().encode(card).count, messageBytes: messageBytes,
                statistics: channel.statistics, chunks: log.sizes, duration: time.now - start, reply: reply)
        }
    }

    /// A card that has arrived, and why the one that was to be sent back could not be.
    struct Arrival: Sendable {
        var card: Card
        var replyFailure: (any Error)?
    }

    /// Receives a card over a new link, and leaves.
    ///
    /// - Parameter reply: a card to send back before.
    func receive(over link: any Link, reply: Card? = nil) async throws -> Arrival {
        try await withChannel(over: link) { channel, _ in
            let deadline = time.now + timeout
            // Whether chunks still came shortly before the deadline.
            let early = Size()
            let timer = time.schedule(at: time.now + timeout / 4 * 3) {
                early.value.withLock { $0 = channel.statistics.bytesReceived }
            }
            defer { timer.cancel() }
            switch try await next(on: channel, until: deadline) {
            case .card(let card):
                guard let reply else { return Arrival(card: card) }
                do {
                    _ = try await send(reply, over: channel)
                    return Arrival(card: card)
                } catch {
                    // What has arrived is not lost with what could not be sent.
                    return Arrival(card: card, replyFailure: error)
                }
            case .end:
                throw CardError(
                    "The peer left before a whole card had arrived. \(channel.closeReason?.message ?? "")")
            case .nothing:
                let arrived = channel.statistics.bytesReceived
                guard arrived == early.value.withLock({ $0 }) else {
                    throw CardError(
                        "The card was still arriving after \(timeout.forPeople): \(arrived) bytes so far. Wait longer with "
                            + "--timeout.")
                }
                throw CardError(
                    "Connected, but no whole card arrived within \(timeout.forPeople). Check that both sides use the "
                        + "same --framing, --codec and --compress.")
            }
        }
    }

    private func send(_ card: Card, over channel: MessageChannel<Card, Card>) async throws -> Int {
        let size = Size()
        defer { console.endProgress() }
        try await channel.send(card, timeout: timeout) { [console, sendingTitle] progress in
            size.value.withLock { $0 = progress.totalBytes }
            console.progress(sendingTitle, progress.acceptedBytes, of: progress.totalBytes)
        }
        return size.value.withLock { $0 }
    }

    private final class Size: Sendable { let value = Mutex(0) }

    private enum Next: Sendable {
        case card(Card)
        /// The peer has left.
        case end
        /// The deadline came first.
        case nothing
    }

    private func next(on channel: MessageChannel<Card, Card>, until deadline: Timestamp) async throws -> Next {
        try await time.race(until: deadline) {
            var messages = channel.messages.makeAsyncIterator()
            return try await messages.next().map(Next.card) ?? .end
        } ?? .nothing
    }

    /// Opens a channel over a link and closes it in the end, however the end comes.
    private func withChannel<Result: Sendable>(
        over link: any Link, _ body: (MessageChannel<Card, Card>, ChunkLog) async throws -> Result
    ) async throws -> Result {
        let log = ChunkLog(role: role, console: showsChunks ? console : nil, stopwatch: stopwatch)
        let channel = try recipe.open(over: TappedLink(link, observer: log), time: time)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(
                try await withTaskCancellationHandler {
                    try await body(channel, log)
                } onCancel: {
                    channel.close()  // ends a message that is on its way too
                })
        } catch {
            outcome = .failure(error)
        }
        channel.close()
        // What is queued goes out before the link ends, and the process must not end before that.
        await log.waitForClose(for: .seconds(2), time)
        return try outcome.get()
    }
}

extension TimeSource {
    /// What `body` returns, or nil when the deadline comes first; `body` is cancelled then and must heed it.
    func race<Result: Sendable>(
        until deadline: Timestamp, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result? {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await sleep(until: deadline)
                return nil
            }
            defer { group.cancelAll() }
            let first = try await group.next() ?? nil
            try Task.checkCancellation()
            return first
        }
    }
}
