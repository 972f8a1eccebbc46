import Ferry

/// A packet on its way as fragments, which are packets of the same sender, for the same recipient, on the same route: what they have in
/// common, and how many have left.
struct FragmentCut: Sendable {
    /// The fields before the length of a fragment's payload, and those behind it.
    private let fields: (before: [UInt8], behind: [UInt8])
    private let type: UInt8
    private let number: UInt64
    /// The bytes of a fragment beside its data.
    let overhead: Int
    /// What each has of the packet, but for the last.
    let size: Int
    let total: Int
    private(set) var left = 0

    /// - Parameters:
    ///   - room: how many bytes a value may have.
    ///   - seed: makes the number of the fragments, with the packet and how it is cut.
    /// - Returns: nil when the bytes are no packet, or when the fields alone fill a value.
    init?(_ packet: [UInt8], room: Int, seed: UInt64) {
        guard let head = try? BitchatHead(packet.span.bytes) else { return nil }
        // Those of a packet with a route are of version 2, as it is; of others they are of version 1, whose length has 2 bytes.
        let version: UInt8 = head.hops.isEmpty ? 1 : 2
        var flags = head.flags.intersection([.recipient, .answersSync])
        if version == 2 { flags.insert(.route) }
        fields.before = [version, BitchatPacket.fragment, packet[2]] + packet[3..<11] + [flags.rawValue]
        fields.behind = Array(packet[head.sender..<head.payload.lowerBound])
        overhead = fields.before.count + (version == 1 ? 2 : 4) + fields.behind.count + 13
        guard overhead < room else { return nil }
        size = room - overhead
        total = (packet.count + size - 1) / size
        type = head.type
        // FNV-1a. The same packet has another number when it is cut otherwise.
        number = packet.reduce(seed ^ UInt64(size) &* 0x9E37_79B9_7F4A_7C15) {
            ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3
        }
    }

    /// How much of the packet the fragments have that have left.
    var leftBytes: Int { left * size }

    /// Whether the next fragment is the last.
    var isAtEnd: Bool { left + 1 == total }

    mutating func nextHasLeft() { left += 1 }

    /// Writes the next fragment.
    func write(_ packet: [UInt8], to bytes: inout [UInt8]) {
        let data = leftBytes..<min(packet.count, leftBytes + size)
        bytes.removeAll(keepingCapacity: true)
        bytes += fields.before
        BitchatPacket.append(UInt64(13 + data.count), fields.before[0] == 1 ? 2 : 4, to: &bytes)
        bytes += fields.behind
        BitchatPacket.append(number, 8, to: &bytes)
        BitchatPacket.append(UInt64(left), 2, to: &bytes)
        BitchatPacket.append(UInt64(total), 2, to: &bytes)
        bytes.append(type)
        bytes += packet[data]
    }
}
