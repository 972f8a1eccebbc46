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
    ///   - output: the file, or what is to be written to it next.
    public static func append(_ packet: RawSpan, isReceived: Bool, microseconds: Int64, to output: inout [UInt8]) {
        let count = UInt32(truncatingIfNeeded: packet.byteCount)
        let isData =
            packet.byteCount > 0 && packet.u8(0) != H4PacketType.command.rawValue
            && packet.u8(0) != H4PacketType.event.rawValue
        // Bit 0: received; bit 1: command or event.
        let flags: UInt32 = (isReceived ? 1 : 0) | (isData ? 0 : 2)
        for field in [count, count, flags, 0] as [UInt32] { output.append(bigEndian: UInt64(field), octets: 4) }
        // The format counts from the year 0; this many microseconds lie before 1970.
        output.append(bigEndian: UInt64(bitPattern: 0x00DC_DDB3_0F2F_8000 &+ microseconds), octets: 8)
        output.append(copying: packet)
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64, octets: Int) {
        for place in (0..<octets).reversed() { append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(place)))) }
    }
}
