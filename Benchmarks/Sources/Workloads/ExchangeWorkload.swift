public import Ferry
import FerryBTP
import FerrySequenced

extension Workload {
    /// Two sessions of one framing, chunks handed from one to the other: encoding, decoding and, where the framing has
    /// them, acknowledgements. `wire` tells what a pass puts on the wire, both ways together.
    ///
    /// The clock only moves when neither side has anything to send, to the next deadline. Compiled for the framings that
    /// are measured, as a program is that names the one it uses: else looking up types at run time is measured too.
    @specialized(where F == SequencedFraming)
    @specialized(where F == LengthPrefixFraming)
    @specialized(where F == BTPFraming)
    public static func exchange<F: Framing>(
        _ name: String, _ framing: F, messageSize: Int, messageCount: Int, chunkSize: Int
    ) throws -> (workload: Workload, wire: WireCount) {
        var pair = ExchangePair(framing, chunkSize: chunkSize)
        let messages = (0..<messageCount).map { ChunkStream.message($0, messageSize) }
        _ = try pair.pass(messages)
        let before = pair.wire
        _ = try pair.pass(messages)
        let wire = WireCount(chunks: pair.wire.chunks - before.chunks, bytes: pair.wire.bytes - before.bytes)
        let workload = Workload(
            name, messagesPerPass: messageCount, chunksPerPass: wire.chunks, bytesPerPass: messageSize * messageCount
        ) { passes in
            var pair = ExchangePair(framing, chunkSize: chunkSize)
            return try measure(passes) { try pair.pass(messages) }
        }
        return (workload, wire)
    }
}

/// What went over a wire.
public struct WireCount: Sendable {
    /// Chunks, control chunks included.
    public var chunks = 0
    /// Their bytes.
    public var bytes = 0
}

/// A sender and a receiver with nothing in between.
private struct ExchangePair<F: Framing> {
    private var sender: F.Session
    private var receiver: F.Session
    private let chunkSize: Int
    private var now = Timestamp.zero
    private(set) var wire = WireCount()

    init(_ framing: F, chunkSize: Int) {
        sender = framing.makeSession(limits: .wide, payloads: PayloadFormat(), role: .initiator)
        receiver = framing.makeSession(limits: .wide, payloads: PayloadFormat(), role: .responder)
        self.chunkSize = chunkSize
        sender.linkDidOpen(at: now)
        receiver.linkDidOpen(at: now)
    }

    /// Sends all messages; returns how many bytes of payload arrived.
    mutating func pass(_ messages: [[UInt8]]) throws -> Int {
        for (index, message) in messages.enumerated() {
            try sender.enqueue(message, as: MessageID(rawValue: UInt64(index)), at: now)
        }
        var (sent, delivered, received) = (0, 0, 0)
        while sent < messages.count || delivered < messages.count {
            // As a link with room for a few takes them.
            var hasSent = false
            for _ in 0..<8 {
                guard try Self.carry(from: &sender, to: &receiver, atMost: chunkSize, at: now, &wire) else { break }
                hasSent = true
            }
            let hasAnswered = try Self.carry(from: &receiver, to: &sender, atMost: chunkSize, at: now, &wire)
            while let event = sender.nextEvent() {
                if case .sent = event { sent += 1 }
            }
            while let event = receiver.nextEvent() {
                guard case .received(let message) = event else { continue }
                receiver.consume(message.count, at: now)
                received += message.count
                delivered += 1
            }
            guard !hasSent, !hasAnswered else { continue }
            guard let deadline = [sender.deadline, receiver.deadline].compactMap({ $0 }).min() else { break }
            now = max(now, deadline)
            try sender.wake(at: now)
            try receiver.wake(at: now)
        }
        return received
    }

    /// Hands one chunk over, if there is one.
    private static func carry(
        from source: inout F.Session, to target: inout F.Session, atMost chunkSize: Int, at now: Timestamp,
        _ wire: inout WireCount
    ) throws -> Bool {
        try source.transmit(
            atMost: chunkSize, at: now,
            { (chunk) throws(FerryError) in
                wire.chunks += 1
                wire.bytes += chunk.byteCount
                try target.receive(chunk, at: now)
                return true
            }) == .accepted
    }
}
