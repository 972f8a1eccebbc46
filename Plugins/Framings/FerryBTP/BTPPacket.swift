import Ferry

/// A packet's first byte.
struct BTPFlags: OptionSet, Sendable, Hashable {
    let rawValue: UInt8
    static let begin = Self(rawValue: 0x01)
    static let more = Self(rawValue: 0x02)
    static let end = Self(rawValue: 0x04)
    static let acknowledges = Self(rawValue: 0x08)
    static let management = Self(rawValue: 0x20)
    static let handshake = Self(rawValue: 0x40)

    /// Whether the packet carries a part of a message.
    var hasData: Bool { !isDisjoint(with: [.begin, .more, .end]) }
}

/// The head of a packet after the handshake: flags, the number that is acknowledged if any, the packet's own number, and in a
/// message's first packet the message's length, the least significant byte first.
struct BTPHeader: Sendable, Hashable {
    var flags: BTPFlags
    let acknowledged: UInt8?
    let sequence: UInt8
    let length: UInt16?

    /// Where the content begins.
    var byteCount: Int { 2 + (acknowledged == nil ? 0 : 1) + (length == nil ? 0 : 2) }

    /// Bits that have no meaning here, the one of management among them, are passed over, as connectedhomeip passes over them.
    ///
    /// - Returns: nil when the packet ends within its head.
    init?(_ packet: RawSpan) {
        var place = 0
        func byte() -> UInt8? {
            guard place < packet.byteCount else { return nil }
            defer { place += 1 }
            return packet.unsafeLoad(fromByteOffset: place, as: UInt8.self)
        }
        guard let first = byte() else { return nil }
        flags = BTPFlags(rawValue: first)
        if flags.contains(.acknowledges) {
            guard let number = byte() else { return nil }
            acknowledged = number
        } else {
            acknowledged = nil
        }
        guard let number = byte() else { return nil }
        sequence = number
        if flags.contains(.begin) {
            guard let low = byte(), let high = byte() else { return nil }
            length = UInt16(high) << 8 | UInt16(low)
        } else {
            length = nil
        }
    }

    init(_ flags: BTPFlags, acknowledged: UInt8?, sequence: UInt8, length: UInt16? = nil) {
        self.flags = acknowledged == nil ? flags : flags.union(.acknowledges)
        self.acknowledged = acknowledged
        self.sequence = sequence
        self.length = length
    }

    func append(to packet: inout [UInt8]) {
        packet.append(flags.rawValue)
        if let acknowledged { packet.append(acknowledged) }
        packet.append(sequence)
        if let length {
            packet.append(UInt8(truncatingIfNeeded: length))
            packet.append(UInt8(length >> 8))
        }
    }
}

/// What the side that connected sends first: 9 bytes.
struct BTPRequest: Sendable, Hashable {
    static let byteCount = 9
    /// Both handshake packets begin so: flags and operation.
    static let opcode: [UInt8] = [0x65, 0x6C]

    /// Up to 8 versions of 4 bits each, the best first; 0 for none.
    var versions: [UInt8]
    /// ATT_MTU as the sender knows it, perhaps less 3, or 0 where it does not.
    var mtu: UInt16
    var window: UInt8

    init(versions: [UInt8] = [BTPFraming.version], mtu: UInt16, window: UInt8) {
        self.versions = versions
        self.mtu = mtu
        self.window = window
    }

    init?(_ packet: [UInt8]) {
        guard packet.count >= Self.byteCount, packet.starts(with: Self.opcode) else { return nil }
        versions = packet[2..<6].flatMap { [$0 & 0xF, $0 >> 4] }.filter { $0 != 0 }
        mtu = UInt16(packet[7]) << 8 | UInt16(packet[6])
        window = packet[8]
    }

    var bytes: [UInt8] {
        var nibbles = [UInt8](repeating: 0, count: 4)
        for (place, version) in versions.prefix(8).enumerated() {
            nibbles[place / 2] |= (version & 0xF) << (place % 2 == 0 ? 0 : 4)
        }
        return Self.opcode + nibbles + [UInt8(truncatingIfNeeded: mtu), UInt8(mtu >> 8), window]
    }
}

/// What the other side answers: 6 bytes.
struct BTPResponse: Sendable, Hashable {
    static let byteCount = 6

    /// 0 when there is none that both know.
    var version: UInt8
    /// The most bytes of a packet.
    var fragment: UInt16
    var window: UInt8

    init(version: UInt8, fragment: UInt16, window: UInt8) {
        self.version = version
        self.fragment = fragment
        self.window = window
    }

    init?(_ packet: [UInt8]) {
        guard packet.count >= Self.byteCount, packet.starts(with: BTPRequest.opcode) else { return nil }
        version = packet[2]
        fragment = UInt16(packet[4]) << 8 | UInt16(packet[3])
        window = packet[5]
    }

    var bytes: [UInt8] {
        BTPRequest.opcode + [version, UInt8(truncatingIfNeeded: fragment), UInt8(fragment >> 8), window]
    }
}
