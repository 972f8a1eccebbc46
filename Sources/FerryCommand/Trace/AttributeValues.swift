/// What a capture of HCI tells of the values that cross: notifications, indications and writes, on ATT's fixed channel and on
/// enhanced bearers.
///
/// What crosses other L2CAP channels is an app's own, and passed over: Ferry's links are laid over GATT.
struct AttributeValues {
    struct Event: Hashable {
        enum Kind: Hashable {
            case value(handle: Int, isReceived: Bool, bytes: [UInt8])
            case connected(peer: String)
            case disconnected(reason: UInt8)
            case confirmed(isReceived: Bool)
        }

        var connection: Connection
        var kind: Kind
    }

    struct Connection: Hashable {
        var adapter: Int
        var handle: Int
    }

    private struct Direction: Hashable {
        var connection: Connection
        var isReceived: Bool
    }

    /// Frames of which the rest is to come, at most one for each direction of a connection; there are 3840 handles.
    private var fragments: [Direction: [UInt8]] = [:]
    private var bearers = EnhancedBearers()

    /// Takes the next packet.
    mutating func take(_ packet: CapturedPacket) -> [Event] {
        switch packet.kind {
        case .event: take(event: packet.bytes, packet.adapter)
        case .data: take(data: packet)
        case .other: []
        }
    }

    /// LE Connection Complete in its three forms, and Disconnection Complete (Core Specification 5.4, Vol 4, Part E, 7.7).
    private mutating func take(event: [UInt8], _ adapter: Int) -> [Event] {
        func connection(_ offset: Int) -> Connection {
            Connection(adapter: adapter, handle: (Int(event[offset]) | Int(event[offset + 1]) << 8) & 0xFFF)
        }
        if event.count >= 6, event[0] == 0x05, event[2] == 0 {
            let ended = connection(3)
            for isReceived in [false, true] { fragments[Direction(connection: ended, isReceived: isReceived)] = nil }
            bearers.end(ended)
            return [Event(connection: ended, kind: .disconnected(reason: event[5]))]
        }
        guard event.count >= 14, event[0] == 0x3E, [0x01, 0x0A, 0x29].contains(event[2]), event[3] == 0 else {
            return []
        }
        let digits = event[8..<14].reversed().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
        let peer = digits.joined(separator: ":").uppercased()
        return [Event(connection: connection(4), kind: .connected(peer: peer))]
    }

    private mutating func take(data packet: CapturedPacket) -> [Event] {
        let bytes = packet.bytes
        guard bytes.count >= 4 else { return [] }
        let field = Int(bytes[0]) | Int(bytes[1]) << 8
        let connection = Connection(adapter: packet.adapter, handle: field & 0xFFF)
        let direction = Direction(connection: connection, isReceived: packet.isReceived)
        let isContinuation = field >> 12 & 3 == 1
        // A continuation without a beginning is the rest of what was sent before the capture.
        guard var frame = isContinuation ? fragments.removeValue(forKey: direction) : [] else { return [] }
        frame += bytes.dropFirst(4)
        let length = frame.count >= 4 ? 4 + Int(frame[0]) + Int(frame[1]) << 8 : .max
        guard frame.count >= length else {
            fragments[direction] = frame
            return []
        }
        fragments[direction] = nil
        let channel = Int(frame[2]) | Int(frame[3]) << 8
        let payload = frame[4..<length]
        let pdu =
            channel == 0x0004
            ? Array(payload) : bearers.take(payload, on: channel, of: connection, isReceived: packet.isReceived)
        guard let pdu else { return [] }
        return Self.values(pdu, packet.isReceived).map { Event(connection: connection, kind: $0) }
    }

    /// What a PDU of the Attribute Protocol carries (Vol 3, Part F, 3.4.5 and 3.4.7).
    private static func values(_ pdu: [UInt8], _ isReceived: Bool) -> [Event.Kind] {
        func number(_ offset: Int) -> Int { Int(pdu[offset]) | Int(pdu[offset + 1]) << 8 }
        switch pdu.first {
        case 0x1B, 0x1D, 0x12, 0x52:
            guard pdu.count >= 3 else { return [] }
            return [.value(handle: number(1), isReceived: isReceived, bytes: Array(pdu[3...]))]
        case 0x1E: return [.confirmed(isReceived: isReceived)]
        case 0x23:
            var (values, offset): ([Event.Kind], Int) = ([], 1)
            while pdu.count - offset >= 4 {
                let end = offset + 4 + number(offset + 2)
                guard end <= pdu.count else { break }
                values.append(
                    .value(handle: number(offset), isReceived: isReceived, bytes: Array(pdu[(offset + 4)..<end])))
                offset = end
            }
            return values
        default: return []
        }
    }
}
