/// The values in PDUs of the Attribute Protocol, in the order in which they take effect (Core Specification 5.4, Vol 3, Part F,
/// 3.4.5 to 3.4.7).
struct AttributeWrites {
    typealias Kind = AttributeValues.Event.Kind

    /// A bearer of ATT, on which each side has at most one request that is not answered.
    struct Bearer: Hashable {
        var connection: AttributeValues.Connection
        /// The number of an enhanced bearer; 0 for the fixed channel.
        var number = 0
    }

    /// One side of a bearer, as a client.
    struct Side: Hashable, Comparable {
        var bearer: Bearer
        /// Whether this side's requests are received.
        let isReceived: Bool

        /// The order on one connection.
        static func < (one: Side, other: Side) -> Bool {
            (one.bearer.number, one.isReceived ? 1 : 0) < (other.bearer.number, other.isReceived ? 1 : 0)
        }
    }

    private struct Part {
        var handle: Int
        var offset: Int
        var bytes: [UInt8]
    }

    private enum Request {
        case write(handle: Int, bytes: [UInt8])
        case prepare(Part)
        case execute(isWritten: Bool)
    }

    private var requests: [Side: Request] = [:]
    /// The prepared parts that are not executed. A server's queue is shorter than 4096 parts, of at most 512 bytes in all a handle.
    private var prepared: [Side: [Part]] = [:]
    private static let mostParts = 4096
    private static let largestValue = 1 << 16

    /// Opcodes of PDUs with values, or parts of them.
    static let carryValues: Set<UInt8> = [0x12, 0x16, 0x18, 0x1B, 0x1D, 0x23, 0x52, 0xD2]

    /// Takes the next PDU.
    mutating func take(_ pdu: [UInt8], on bearer: Bearer, _ isReceived: Bool) -> [Kind] {
        func number(_ offset: Int) -> Int { Int(pdu[offset]) | Int(pdu[offset + 1]) << 8 }
        let own = Side(bearer: bearer, isReceived: isReceived)
        let other = Side(bearer: bearer, isReceived: !isReceived)
        switch pdu.first {
        case 0x1B, 0x1D, 0x52:
            guard pdu.count >= 3 else { return [] }
            return [.value(handle: number(1), isReceived: isReceived, bytes: Array(pdu[3...]))]
        case 0xD2:
            // A signed write ends with 12 bytes of signature.
            guard pdu.count >= 15 else { return [] }
            return [.value(handle: number(1), isReceived: isReceived, bytes: Array(pdu[3..<(pdu.count - 12)]))]
        case 0x09:
            let found = DeclaredValue.declared(in: pdu)
            return found.isEmpty ? [] : [.declared(Dictionary(found.map { ($0.handle, $0.value) }) { _, new in new })]
        case 0x1E: return [.confirmed(isReceived: isReceived)]
        case 0x23: return Self.values(pdu, isReceived)
        case 0x12:
            guard pdu.count >= 3 else { return [] }
            return ask(.write(handle: number(1), bytes: Array(pdu[3...])), own)
        case 0x16:
            guard pdu.count >= 5 else { return [] }
            return ask(.prepare(Part(handle: number(1), offset: number(3), bytes: Array(pdu[5...]))), own)
        case 0x18:
            guard pdu.count >= 2 else { return [] }
            return ask(.execute(isWritten: pdu[1] == 1), own)
        case 0x13, 0x17, 0x19: return answer(pdu[0], other)
        case 0x01 where pdu.count >= 5: return refuse(pdu[1], pdu[4], other)
        default: return []
        }
    }

    /// Forgets a connection.
    ///
    /// - Returns: its writes that were not answered.
    mutating func end(_ connection: AttributeValues.Connection) -> [Kind] {
        let sides = requests.keys.filter { $0.bearer.connection == connection }.sorted()
        let kinds = sides.flatMap { unanswered($0) }
        for side in sides { requests[side] = nil }
        prepared = prepared.filter { $0.key.bearer.connection != connection }
        return kinds
    }

    private mutating func ask(_ request: Request, _ side: Side) -> [Kind] {
        // The capture does not have the answer to the one before.
        let kinds = unanswered(side)
        requests[side] = request
        return kinds
    }

    private mutating func answer(_ opcode: UInt8, _ side: Side) -> [Kind] {
        guard let request = requests[side] else { return [] }
        switch (request, opcode) {
        case (.write(let handle, let bytes), 0x13):
            requests[side] = nil
            return [.value(handle: handle, isReceived: side.isReceived, bytes: bytes)]
        case (.prepare(let part), 0x17):
            requests[side] = nil
            if prepared[side, default: []].count < Self.mostParts { prepared[side, default: []].append(part) }
        case (.execute(let isWritten), 0x19):
            requests[side] = nil
            let parts = prepared.removeValue(forKey: side) ?? []
            return isWritten
                ? Self.values(of: parts).map { .value(handle: $0, isReceived: side.isReceived, bytes: $1) } : []
        default: break
        }
        return []
    }

    private mutating func refuse(_ opcode: UInt8, _ code: UInt8, _ side: Side) -> [Kind] {
        guard let request = requests[side] else { return [] }
        switch (request, opcode) {
        case (.write(let handle, let bytes), 0x12):
            requests[side] = nil
            return [.refused(handle: handle, isReceived: side.isReceived, count: bytes.count, code: code)]
        case (.prepare, 0x16): requests[side] = nil
        case (.execute(let isWritten), 0x18):
            requests[side] = nil
            let parts = prepared.removeValue(forKey: side) ?? []
            return isWritten
                ? Self.values(of: parts).map {
                    .refused(handle: $0, isReceived: side.isReceived, count: $1.count, code: code)
                } : []
        default: break
        }
        return []
    }

    private func unanswered(_ side: Side) -> [Kind] {
        switch requests[side] {
        case .write(let handle, let bytes):
            [.unanswered(handle: handle, isReceived: side.isReceived, count: bytes.count)]
        case .execute(isWritten: true):
            Self.values(of: prepared[side] ?? []).map {
                .unanswered(handle: $0, isReceived: side.isReceived, count: $1.count)
            }
        default: []
        }
    }

    /// The values that parts make, in the order of their first parts.
    private static func values(of parts: [Part]) -> [(handle: Int, bytes: [UInt8])] {
        var values: [(handle: Int, bytes: [UInt8])] = []
        for part in parts {
            let index = values.firstIndex { $0.handle == part.handle } ?? values.count
            if index == values.count { values.append((part.handle, [])) }
            // A part that begins behind the end is refused by the server; one before it replaces the bytes there.
            guard part.offset <= values[index].bytes.count, part.offset + part.bytes.count <= largestValue else {
                continue
            }
            let end = min(values[index].bytes.count, part.offset + part.bytes.count)
            values[index].bytes.replaceSubrange(part.offset..<end, with: part.bytes)
        }
        return values
    }

    /// Multiple Handle Value Notification (3.4.7.4).
    private static func values(_ pdu: [UInt8], _ isReceived: Bool) -> [Kind] {
        func number(_ offset: Int) -> Int { Int(pdu[offset]) | Int(pdu[offset + 1]) << 8 }
        var (values, offset): ([Kind], Int) = ([], 1)
        while pdu.count - offset >= 4 {
            let end = offset + 4 + number(offset + 2)
            guard end <= pdu.count else { break }
            values.append(.value(handle: number(offset), isReceived: isReceived, bytes: Array(pdu[(offset + 4)..<end])))
            offset = end
        }
        return values
    }
}
