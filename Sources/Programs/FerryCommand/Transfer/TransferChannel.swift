import Ferry
import Synchronization

/// A channel for a transfer: messages go out as fast as the link takes them, and those of the peer are waited for with a deadline.
final class TransferChannel: Sendable {
    private let channel: MessageChannel<[UInt8], [UInt8]>
    /// Messages of data are no longer than this: many chunks where those are large, few where each takes its time.
    let dataSize: Int
    private let time = SystemTime()
    private let isOverdue = Atomic(false)

    init(over link: any Link, framing: any Framing, chunkSize: Int?) throws(FerryError) {
        var limits = Limits()
        limits.maximumMessageSize = TransferMessage.maximumData + 64
        limits.maximumInboundBytes = 8 << 20
        // A pipe at the other end may stand still for a while.
        limits.outboundStallTimeout = .seconds(600)
        let size = min(chunkSize ?? .max, link.maximumChunkSize)
        dataSize = min(256 << 10, max(4 << 10, 16 * size))
        channel = try Self.open(link, framing, chunkSize, limits)
    }

    private static func open(
        _ link: any Link, _ framing: some Framing, _ chunkSize: Int?, _ limits: Limits
    ) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
        try MessageChannel(over: link, codec: BytesCodec(), framing: framing, chunkSize: chunkSize, limits: limits)
    }

    /// Who the other side has proven to be, or who its link says it is.
    var peer: PeerIdentity { channel.peer }

    func send(_ message: TransferMessage) async throws(FerryError) { try await send(encoded: message.encoded) }

    /// Sends a message that is encoded already.
    func send(encoded message: [UInt8]) async throws(FerryError) {
        do { try await channel.send(message) } catch {
            // What the other side says of this one's key or code says more than how far a message has come.
            throw channel.closeReason.flatMap { $0.isOfHandshake ? $0 : nil } ?? error
        }
    }

    /// The next message, whole as it came; nil when the other side has closed the channel.
    ///
    /// - Throws: `timedOut`, or why the channel has ended.
    func next(within timeout: Duration) async throws(FerryError) -> TransferMessage? {
        let timer = limit(timeout)
        defer { timer.cancel() }
        return try await next()
    }

    /// The same, without a deadline.
    func next() async throws(FerryError) -> TransferMessage? {
        var messages = channel.messages.makeAsyncIterator()
        guard let bytes = try await messages.next() else {
            guard isOverdue.load(ordering: .relaxed) else { return nil }
            throw FerryError(.timedOut, "The other side has said nothing for too long.")
        }
        return try TransferMessage(bytes)
    }

    /// Ends the channel when the time is over.
    func limit(_ timeout: Duration) -> ScheduledTimer {
        time.schedule(at: time.now + timeout) { [self] in
            isOverdue.store(true, ordering: .relaxed)
            channel.close()
        }
    }

    /// Lets the messages sent go out, and ends.
    func finish() async { try? await channel.closeAfterSending(timeout: .seconds(10)) }

    func close() { channel.close() }
}
