public import Ferry

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
        _ framing: some Framing, messageSize: Int, messageCount: Int, chunkSize: Int
    ) throws(FerryError) {
        self.messageSize = messageSize
        self.messageCount = messageCount
        self.chunkSize = chunkSize
        var session = framing.makeSession(limits: .wide)
        for index in 0..<messageCount {
            let id = MessageID(rawValue: UInt64(index))
            try session.enqueue(Self.message(index, messageSize), as: id, at: .zero)
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

    static func message(_ index: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
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
