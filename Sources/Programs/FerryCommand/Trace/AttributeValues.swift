import Ferry

/// What a capture of HCI tells of the values that cross: notifications, indications, writes, and reads of queues, on
/// ATT's fixed channel and on enhanced bearers.
///
/// A write that is answered counts when its response comes, and not when it is refused; a long write when it is executed. What
/// crosses other L2CAP channels is an app's own, and passed over: Ferry's links are laid over GATT.
struct AttributeValues {
    struct Event: Hashable {
        enum Kind: Hashable {
            case value(handle: Int, isReceived: Bool, bytes: [UInt8])
            /// A value of a queue was read; no bytes where it is empty.
            case read(handle: Int, isReceived: Bool, bytes: [UInt8])
            /// A write of a value had no effect; `code` is ATT's.
            case refused(handle: Int, isReceived: Bool, count: Int, code: UInt8)
            /// The capture has no answer to a write of a value.
            case unanswered(handle: Int, isReceived: Bool, count: Int)
            /// Values may be missing here.
            case missing(Gap, isReceived: Bool)
            case connected(peer: String)
            case disconnected(reason: UInt8)
            case confirmed(isReceived: Bool)
            /// A server has told what the values of these handles are.
            case declared([Int: DeclaredValue])
        }

        var connection: Connection
        var kind: Kind
    }

    /// Why the capture does not have a value.
    enum Gap: Hashable {
        /// The capture kept the first bytes of a packet.
        case cut(kept: Int, whole: Int)
        /// The rest of a frame did not come.
        case endless
        /// The beginning of a frame did not come.
        case headless
    }

    struct Connection: Hashable {
        var adapter: Int
        var handle: Int
    }

    private struct Direction: Hashable {
        var connection: Connection
        let isReceived: Bool
    }

    private enum Frame {
        /// Its first bytes; the rest is to come.
        case begun([UInt8])
        /// The capture does not have all of it, and its rest is passed over.
        case broken
        case whole
    }

    /// The last frame of each direction of a connection; there are 3840 handles.
    private var frames: [Direction: Frame] = [:]
    private var bearers = EnhancedBearers()
    private var writes = AttributeWrites()
    private var reads: AttributeReads

    /// - Parameter handles: values that are followed also when they are read, declared or not.
    init(handles: Set<Int>) { reads = AttributeReads(handles: handles) }

    /// Takes the next packet.
    mutating func take(_ packet: CapturedPacket) -> [Event] {
        switch packet.kind {
        case .event: take(event: packet.bytes, packet.adapter)
        case .data: take(data: packet)
        case .other: []
        }
    }

    /// At the end of the capture: the frames and writes of which the rest did not come.
    mutating func finish() -> [Event] {
        Set(frames.keys.map(\.connection)).sorted { ($0.adapter, $0.handle) < ($1.adapter, $1.handle) }
            .flatMap { end($0) }
    }

    /// LE Connection Complete in its three forms, and Disconnection Complete (Core Specification 5.4, Vol 4, Part E, 7.7).
    private mutating func take(event: [UInt8], _ adapter: Int) -> [Event] {
        func connection(_ offset: Int) -> Connection {
            Connection(adapter: adapter, handle: (Int(event[offset]) | Int(event[offset + 1]) << 8) & 0xFFF)
        }
        if event.count >= 6, event[0] == 0x05, event[2] == 0 {
            let ended = connection(3)
            return end(ended) + [Event(connection: ended, kind: .disconnected(reason: event[5]))]
        }
        guard event.count >= 14, event[0] == 0x3E, [0x01, 0x0A, 0x29].contains(event[2]), event[3] == 0 else {
            return []
        }
        let peer = event[8..<14].reversed().hexadecimal(separator: ":", uppercase: true)
        // The capture may not have the end of an earlier connection with this handle.
        return end(connection(4)) + [Event(connection: connection(4), kind: .connected(peer: peer))]
    }

    private mutating func end(_ connection: Connection) -> [Event] {
        var kinds: [Event.Kind] = []
        for isReceived in [false, true] {
            let frame = frames.removeValue(forKey: Direction(connection: connection, isReceived: isReceived))
            let isOpen = if case .begun(let bytes) = frame { mayCarry(bytes, connection, isReceived) } else { false }
            if isOpen || bearers.hasOpenSDU(connection, isReceived: isReceived) {
                kinds.append(.missing(.endless, isReceived: isReceived))
            }
        }
        bearers.end(connection)
        kinds += writes.end(connection) + reads.end(connection)
        return kinds.map { Event(connection: connection, kind: $0) }
    }

    private mutating func take(data packet: CapturedPacket) -> [Event] {
        let bytes = packet.bytes
        guard bytes.count >= 2 else { return [] }
        let field = Int(bytes[0]) | Int(bytes[1]) << 8
        let connection = Connection(adapter: packet.adapter, handle: field & 0xFFF)
        let direction = Direction(connection: connection, isReceived: packet.isReceived)
        let isContinuation = field >> 12 & 3 == 1
        var kinds: [Event.Kind] = []
        var frame: [UInt8] = []
        switch frames[direction] {
        case .begun(let beginning) where isContinuation: frame = beginning
        case .begun(let beginning):
            if mayCarry(beginning, connection, packet.isReceived) {
                kinds.append(.missing(.endless, isReceived: packet.isReceived))
            }
        case .broken where isContinuation: return []
        case .whole where isContinuation:
            frames[direction] = .broken
            return [Event(connection: connection, kind: .missing(.headless, isReceived: packet.isReceived))]
        // The rest of a frame that was sent before the capture.
        case nil where isContinuation: return []
        default: break
        }
        frame += bytes.dropFirst(4)
        // Some captures cut a packet and do not say so; the packet itself does.
        let announced = bytes.count >= 4 ? 4 + (Int(bytes[2]) | Int(bytes[3]) << 8) : 4
        let whole = max(packet.whole, announced)
        guard whole <= bytes.count else {
            frames[direction] = .broken
            if mayCarry(frame, connection, packet.isReceived) {
                let gap = Gap.cut(kept: bytes.count, whole: whole)
                kinds.append(.missing(gap, isReceived: packet.isReceived))
            }
            return kinds.map { Event(connection: connection, kind: $0) }
        }
        let length = frame.count >= 4 ? 4 + Int(frame[0]) + Int(frame[1]) << 8 : .max
        guard frame.count >= length else {
            frames[direction] = .begun(frame)
            return kinds.map { Event(connection: connection, kind: $0) }
        }
        frames[direction] = .whole
        let channel = Int(frame[2]) | Int(frame[3]) << 8
        let payload = frame[4..<length]
        if channel == 0x0004 {
            let bearer = AttributeWrites.Bearer(connection: connection)
            kinds += take(Array(payload), on: bearer, packet.isReceived)
        } else {
            switch bearers.take(payload, on: channel, of: connection, isReceived: packet.isReceived) {
            case .none: break
            case .malformed: kinds.append(.missing(.endless, isReceived: packet.isReceived))
            case .pdu(let pdu, let number):
                let bearer = AttributeWrites.Bearer(connection: connection, number: number)
                kinds += take(pdu, on: bearer, packet.isReceived)
            }
        }
        return kinds.map { Event(connection: connection, kind: $0) }
    }

    private mutating func take(
        _ pdu: [UInt8], on bearer: AttributeWrites.Bearer, _ isReceived: Bool
    ) -> [Event.Kind] {
        let read = reads.take(pdu, on: bearer, isReceived)
        let kinds = writes.take(pdu, on: bearer, isReceived)
        for case .declared(let values) in kinds { reads.declared(values, bearer.connection) }
        return read + kinds
    }

    /// Whether a frame of which the capture has these first bytes may carry a value.
    private func mayCarry(_ frame: [UInt8], _ connection: Connection, _ isReceived: Bool) -> Bool {
        guard frame.count >= 4 else { return true }
        let channel = Int(frame[2]) | Int(frame[3]) << 8
        guard channel == 0x0004 else { return bearers.isBearer(channel, of: connection, isReceived: isReceived) }
        return frame.count == 4 || AttributeWrites.carryValues.contains(frame[4])
            || AttributeReads.carryValues.contains(frame[4]) && reads.isAsked(connection, isReceived: isReceived)
    }
}
