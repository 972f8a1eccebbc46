public import Ferry
import FerrySMP

/// Messages as one framing puts them on the wire: the chunks one behind the other, and where each ends.
public struct ChunkStream: Sendable {
    /// Bytes in each message.
    public let messageSize: Int
    /// How many messages there are.
    public let messageCount: Int
    /// The most bytes in a chunk.
    public let chunkSize: Int
    /// The chunks, one behind the other.
    public let bytes: [UInt8]
    /// The offset behind each chunk.
    public let ends: [Int]

    /// How many chunks there are.
    public var chunkCount: Int { ends.count }
    /// Bytes of all messages together.
    public var payloadBytes: Int { messageSize * messageCount }

    /// Has `framing` send `messageCount` messages of `messageSize` bytes that no two of them share.
    public init(
        _ framing: some Framing, messageSize: Int, messageCount: Int, chunkSize: Int, content: StreamContent = .bytes
    ) throws(FerryError) {
        self.messageSize = messageSize
        self.messageCount = messageCount
        self.chunkSize = chunkSize
        var session = framing.makeSession(limits: .wide)
        for index in 0..<messageCount {
            let id = MessageID(rawValue: UInt64(index))
            try session.enqueue(content.message(index, messageSize), as: id, at: .zero)
        }
        var bytes: [UInt8] = []
        var ends: [Int] = []
        while try session.transmit(
            atMost: chunkSize, at: .zero,
            { (chunk) throws(FerryError) in
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
                ends.append(bytes.count)
                return true
            }) == .accepted
        {}
        self.bytes = bytes
        self.ends = ends
    }

    static func message(_ index: Int, _ size: Int) -> [UInt8] { StreamContent.bytes.message(index, size) }
}

/// What the messages of a stream are.
public enum StreamContent: Sendable {
    /// Bytes of which each value is as frequent as any other.
    case bytes
    /// ASCII, as records in JSON are.
    case text
    /// A message of SMP with bytes behind its header.
    case smp

    func message(_ index: Int, _ size: Int) -> [UInt8] {
        switch self {
        case .bytes: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
        case .text: (0..<size).map { UInt8(0x20 + ($0 &* 31 &+ index) % 0x5F) }
        case .smp:
            SMPHeader(operation: .write, group: .image, sequence: UInt8(truncatingIfNeeded: index), command: 1)
                .message(StreamContent.bytes.message(index, size - SMPHeader.byteCount))
        }
    }
}

extension Limits {
    /// Limits that let messages of 64 MiB pass.
    public static var wide: Limits {
        var limits = Limits()
        limits.maximumMessageSize = 64 << 20
        // The sequenced framing grants its peer what this leaves beside the largest message.
        limits.maximumInboundBytes = 65 << 20
        return limits
    }
}
