import Ferry
import Foundation

/// A packet of a capture.
struct CapturedPacket: Hashable {
    enum Kind: Hashable { case data, event, other }

    /// Since the epoch of the file's format.
    var seconds: Double
    /// The number of the adapter, where the file tells.
    var adapter: Int
    /// Whether the controller sent it.
    let isReceived: Bool
    var kind: Kind
    /// Without the H4 indicator. The first bytes, where the capture has cut the packet.
    var bytes: [UInt8]
    /// How many bytes the packet had.
    var whole: Int
    /// How many packets the capture has lost since the one before, where the file tells.
    var dropped = 0
}

/// Reads captures of HCI piece by piece: btsnoop (datalink types 1001, 1002 and 2001) and pcap (link types 201 and 254).
struct PacketFile {
    /// The problem with a file, for people.
    struct Malformed: Error { let description: String }

    private enum Layout {
        case btsnoop(datalink: UInt32)
        case pcap(isBigEndian: Bool, ticks: Double, link: UInt32)
    }

    private let layout: Layout
    private var held: [UInt8]
    /// Where in the file the held bytes begin.
    private var position: Int
    /// Packets that were lost since the capture began, as the last record tells.
    private var drops: UInt32 = 0

    /// Longest record taken: HCI has no packet above 65 540 bytes.
    private static let maximumRecord = 1 << 18
    /// Bytes that tell what a file is.
    static let headCount = 24

    /// What the first bytes of a file begin, or nil where that is text. Give ``headCount`` bytes where there are as many.
    static func recognize(_ head: [UInt8]) throws(Malformed) -> PacketFile? {
        if head.starts(with: Array("btsnoop\0".utf8)) {
            guard head.count >= 16 else { throw Malformed(description: "The capture is cut in its header.") }
            let datalink = number(head, 12, 4, true)
            guard [1001, 1002, 2001].contains(datalink) else {
                throw Malformed(
                    description: "The btsnoop file has the datalink type \(datalink). 1001, 1002 (HCI) and 2001 "
                        + "(Linux's monitor) can be read.")
            }
            return PacketFile(.btsnoop(datalink: datalink), head, headerCount: 16)
        }
        let magics: [[UInt8]: (Bool, Double)] = [
            [0xA1, 0xB2, 0xC3, 0xD4]: (true, 1e6), [0xD4, 0xC3, 0xB2, 0xA1]: (false, 1e6),
            [0xA1, 0xB2, 0x3C, 0x4D]: (true, 1e9), [0x4D, 0x3C, 0xB2, 0xA1]: (false, 1e9),
        ]
        if let (isBigEndian, ticks) = magics[Array(head.prefix(4))] {
            guard head.count >= 24 else { throw Malformed(description: "The capture is cut in its header.") }
            let link = number(head, 20, 4, isBigEndian) & 0x0FFF_FFFF
            guard link == 201 || link == 254 else {
                throw Malformed(
                    description: "The pcap file has the link type \(link). 201 (HCI with direction) and 254 (Linux's "
                        + "monitor) can be read; in others it does not stand who sent a packet, or they are not HCI.")
            }
            return PacketFile(.pcap(isBigEndian: isBigEndian, ticks: ticks, link: link), head, headerCount: 24)
        }
        if head.starts(with: [0x0A, 0x0D, 0x0D, 0x0A]) {
            throw Malformed(description: "This is pcapng. Convert it first: editcap -F pcap IN OUT.")
        }
        guard !head.contains(0), head.prefix(2) != [0x1F, 0x8B] else {
            throw Malformed(
                description: "This is neither a capture (btsnoop, pcap) nor text: it begins with "
                    + head.prefix(8).hexadecimal(separator: " ") + ".")
        }
        return nil
    }

    private init(_ layout: Layout, _ head: [UInt8], headerCount: Int) {
        self.layout = layout
        held = Array(head.dropFirst(headerCount))
        position = headerCount
    }

    /// Takes the next bytes of the file, and answers with the packets that they complete.
    mutating func feed(_ bytes: [UInt8]) throws(Malformed) -> [CapturedPacket] {
        held += bytes
        var (start, packets): (Int, [CapturedPacket]) = (0, [])
        defer {
            held.removeFirst(start)
            position += start
        }
        while true {
            let headerCount: Int
            let count: Int
            let whole: Int
            switch layout {
            case .btsnoop:
                headerCount = 24
                guard held.count - start >= headerCount else { return packets }
                whole = Int(Self.number(held, start, 4, true))
                count = Int(Self.number(held, start + 4, 4, true))
            case .pcap(let isBigEndian, _, _):
                headerCount = 16
                guard held.count - start >= headerCount else { return packets }
                count = Int(Self.number(held, start + 8, 4, isBigEndian))
                whole = Int(Self.number(held, start + 12, 4, isBigEndian))
            }
            guard count <= Self.maximumRecord, count <= whole else {
                throw Malformed(
                    description: "The record at byte \(position + start) says that it has \(count) of \(whole) bytes, "
                        + "which none can have. The file is damaged there.")
            }
            guard held.count - start >= headerCount + count else { return packets }
            let header = Array(held[start..<start + headerCount])
            let body = Array(held[start + headerCount..<start + headerCount + count])
            var packet =
                packet(header, body)
                ?? CapturedPacket(
                    seconds: seconds(header), adapter: 0, isReceived: false, kind: .other, bytes: [], whole: 0)
            packet.dropped = dropped(header)
            packet.whole += whole - count
            // One of which not even the connection is left is as good as lost.
            if count < whole, packet.bytes.count < 2 { packet.dropped += 1 }
            packets.append(packet)
            start += headerCount + count
        }
    }

    /// At the end of the file.
    func finish() throws(Malformed) {
        guard !held.isEmpty else { return }
        throw Malformed(
            description: "The file ends in the middle of the record at byte \(position): it was cut, or is still being "
                + "written.")
    }

    /// How many packets were lost just before a record, by btsnoop's cumulative count.
    private mutating func dropped(_ header: [UInt8]) -> Int {
        guard case .btsnoop = layout else { return 0 }
        let now = Self.number(header, 12, 4, true)
        defer { drops = now }
        return now > drops ? Int(now - drops) : 0
    }

    private func seconds(_ header: [UInt8]) -> Double {
        switch layout {
        case .btsnoop:
            let microseconds = UInt64(Self.number(header, 16, 4, true)) << 32 | UInt64(Self.number(header, 20, 4, true))
            // The format counts from the year 0; this many microseconds lie before 1970.
            return Double(Int64(bitPattern: microseconds) &- 0x00DC_DDB3_0F2F_8000) / 1e6
        case .pcap(let isBigEndian, let ticks, _):
            return Double(Self.number(header, 0, 4, isBigEndian)) + Double(Self.number(header, 4, 4, isBigEndian))
                / ticks
        }
    }

    private func packet(_ header: [UInt8], _ body: [UInt8]) -> CapturedPacket? {
        let seconds = seconds(header)
        switch layout {
        case .btsnoop(let datalink):
            let flags = Self.number(header, 8, 4, true)
            if datalink == 2001 {
                return Self.monitored(seconds, Int(flags >> 16), Int(flags & 0xFFFF), body)
            }
            if datalink == 1002 { return Self.h4(seconds, isReceived: flags & 1 == 1, body) }
            let isCommandOrEvent = flags & 2 != 0
            let kind: CapturedPacket.Kind = isCommandOrEvent ? (flags & 1 == 1 ? .event : .other) : .data
            return CapturedPacket(
                seconds: seconds, adapter: 0, isReceived: flags & 1 == 1, kind: kind, bytes: body, whole: body.count)
        case .pcap(_, _, let link):
            guard body.count >= 4 else { return nil }
            let rest = Array(body.dropFirst(4))
            if link == 201 { return Self.h4(seconds, isReceived: Self.number(body, 0, 4, true) & 1 == 1, rest) }
            return Self.monitored(
                seconds, Int(Self.number(body, 0, 2, true)), Int(Self.number(body, 2, 2, true)), rest)
        }
    }

    private static func h4(_ seconds: Double, isReceived: Bool, _ body: [UInt8]) -> CapturedPacket? {
        guard let indicator = body.first else { return nil }
        let kind: CapturedPacket.Kind = indicator == 2 ? .data : indicator == 4 ? .event : .other
        return CapturedPacket(
            seconds: seconds, adapter: 0, isReceived: isReceived, kind: kind, bytes: Array(body.dropFirst()),
            whole: body.count - 1)
    }

    /// The opcodes of Linux's monitor: 3 an event, 4 and 5 data sent and received.
    private static func monitored(
        _ seconds: Double, _ adapter: Int, _ opcode: Int, _ body: [UInt8]
    ) -> CapturedPacket {
        let kind: CapturedPacket.Kind = opcode == 3 ? .event : opcode == 4 || opcode == 5 ? .data : .other
        return CapturedPacket(
            seconds: seconds, adapter: adapter, isReceived: opcode == 3 || opcode == 5, kind: kind, bytes: body,
            whole: body.count)
    }

    private static func number(_ bytes: [UInt8], _ offset: Int, _ count: Int, _ isBigEndian: Bool) -> UInt32 {
        let octets = bytes[offset..<offset + count]
        let ordered: [UInt8] = isBigEndian ? Array(octets) : octets.reversed()
        return ordered.reduce(0) { $0 << 8 | UInt32($1) }
    }
}
