import Ferry

/// A whole channel over two of the LE host: what the virtual radio would cost at least if it were made of them. Each chunk
/// crosses in the call that sends it, without an adapter, a queue, reach, faults or a time between, all of which would come on
/// top.
///
/// - Parameter crossesHosts: false for the channel alone, whose link hands each chunk over as it is.
/// - Returns: the nanoseconds of processor time that a chunk takes, in the best of nine rounds.
func measureChannel(crossesHosts: Bool, chunkSize: Int) async throws -> Double {
    let far = FarLink(chunkSize: chunkSize)
    let near = NearLink(far, crossesHosts: crossesHosts, chunkSize: chunkSize)
    var limits = Limits()
    limits.maximumInboundBytes = 1 << 30
    let sender = try MessageChannel(over: near, codec: BytesCodec(), framing: LengthPrefixFraming(), limits: limits)
    let receiver = try MessageChannel(over: far, codec: BytesCodec(), framing: LengthPrefixFraming(), limits: limits)
    let message = [UInt8](repeating: 7, count: 1 << 20)
    var messages = receiver.messages.makeAsyncIterator()
    var best = Double.infinity
    for _ in 0..<9 {
        let chunks = sender.statistics.chunksSent
        let started = processSeconds()
        for _ in 0..<25 {
            try await sender.send(message)
            guard try await messages.next()?.count == message.count else {
                throw FerryError(.truncatedMessage, "A message got lost between the two hosts.")
            }
        }
        best = min(best, (processSeconds() - started) * 1e9 / Double(sender.statistics.chunksSent - chunks))
    }
    return best
}

/// The sending end. Its channel's lock is what guards it.
private final class NearLink: Link, @unchecked Sendable {
    let peer = PeerIdentity("far", certainty: .address)
    let maximumChunkSize: Int
    private let far: FarLink
    private let crossesHosts: Bool
    private var sender = Sink(length: 0)
    private var receiver = Sink(length: 0)

    init(_ far: FarLink, crossesHosts: Bool, chunkSize: Int) {
        self.far = far
        self.crossesHosts = crossesHosts
        maximumChunkSize = chunkSize
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard crossesHosts else {
            far.receiver?.linkDidReceive(chunk)
            return true
        }
        return sender.send(chunk) { packet in receiver.receive(packet) { far.receiver?.linkDidReceive($0) } }
    }

    func activate(_ receiver: any LinkReceiver) {}
    func setReceiving(_ isReceiving: Bool) {}
    func close() {}
}

/// The receiving end, which has nothing to send.
private final class FarLink: Link, @unchecked Sendable {
    let peer = PeerIdentity("near", certainty: .address)
    let maximumChunkSize: Int
    var receiver: (any LinkReceiver)?

    init(chunkSize: Int) { maximumChunkSize = chunkSize }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { false }
    func activate(_ receiver: any LinkReceiver) { self.receiver = receiver }
    func setReceiving(_ isReceiving: Bool) {}
    func close() {}
}
