/// The btsnoop format for captures of HCI (the Frontline format as BlueZ and Android write it, datalink type 1002:
/// packets with their H4 indicator), which Wireshark reads.
public enum BTSnoop {
    /// The file's first 16 bytes: its mark, version 1, datalink type 1002; most significant octet first.
    public static let header: [UInt8] = Array("btsnoop\0".utf8) + [0, 0, 0, 1, 0, 0, 0x03, 0xEA]

    /// Appends a record of one packet.
    ///
    /// - Parameters:
    ///   - packet: from its H4 indicator on.
    ///   - isReceived: whether it came from the controller.
    ///   - microseconds: when, since 1970-01-01 00:00 UTC.
    ///   - output: the file, or the next part of it.
    public static func append(_ packet: RawSpan, isReceived: Bool, microseconds: Int64, to output: inout [UInt8]) {
        let isData =
            packet.byteCount > 0 && packet.u8(0) != H4PacketType.command.rawValue
            && packet.u8(0) != H4PacketType.event.rawValue
        // Bit 0: received; bit 1: command or event.
        let flags: UInt32 = (isReceived ? 1 : 0) | (isData ? 0 : 2)
        append(packet, of: packet.byteCount, flags: flags, microseconds: microseconds, to: &output)
    }

    private static func append(
        _ bytes: RawSpan, of count: Int, flags: UInt32, microseconds: Int64, to output: inout [UInt8]
    ) {
        let (whole, kept) = (UInt32(truncatingIfNeeded: count), UInt32(truncatingIfNeeded: bytes.byteCount))
        for field in [whole, kept, flags, 0] as [UInt32] { output.append(bigEndian: UInt64(field), octets: 4) }
        // The format counts from the year 0; this many microseconds lie before 1970.
        output.append(bigEndian: UInt64(bitPattern: 0x00DC_DDB3_0F2F_8000 &+ microseconds), octets: 8)
        output.append(copying: bytes)
    }

    // MARK: Linux's monitor

    /// The first 16 bytes of a file of what Linux's monitor channel says: datalink type 2001.
    public static let monitorHeader: [UInt8] = Array("btsnoop\0".utf8) + [0, 0, 0, 1, 0, 0, 0x07, 0xD1]

    /// What ``appendMonitor(_:microseconds:only:to:)`` made of a message.
    public enum MonitorOutcome: Sendable, Equatable {
        /// A packet of the adapter with this number, or, when nil, a message about the system or an adapter's state.
        case appended(packetOf: UInt16?)
        /// It is about another adapter.
        case passedOver
        /// It is too short to be a message.
        case malformed
    }

    /// Appends a record of one message of the monitor channel: opcode, adapter and length, two little-endian octets each,
    /// then the packet without its H4 indicator (`include/net/bluetooth/hci_mon.h` of Linux).
    ///
    /// - Parameters:
    ///   - message: as it was read from the socket. One that the reader cut is recorded as far as it goes.
    ///   - microseconds: when, since 1970-01-01 00:00 UTC.
    ///   - adapter: the number of the only adapter to record; nil for all. Messages about none are always recorded.
    ///   - output: the file, or the next part of it.
    public static func appendMonitor(
        _ message: RawSpan, microseconds: Int64, only adapter: UInt16?, to output: inout [UInt8]
    ) -> MonitorOutcome {
        guard message.byteCount >= 6 else { return .malformed }
        let (opcode, index, count) = (message.u16(0), message.u16(2), Int(message.u16(4)))
        if let adapter, index != adapter, index != 0xFFFF { return .passedOver }
        let bytes = message.extracting(6..<min(message.byteCount, 6 + count))
        append(bytes, of: count, flags: UInt32(index) << 16 | UInt32(opcode), microseconds: microseconds, to: &output)
        // 2 to 7 are commands, events, ACL and SCO data; 18 and 19 isochronous data.
        let isPacket = (2...7).contains(opcode) || (18...19).contains(opcode)
        return .appended(packetOf: isPacket ? index : nil)
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64, octets: Int) {
        for place in (0..<octets).reversed() { append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(place)))) }
    }
}
