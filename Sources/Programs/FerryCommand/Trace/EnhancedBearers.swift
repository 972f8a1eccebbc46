/// The enhanced ATT bearers of a capture: credit-based L2CAP channels of the SPSM 0x0027, of which there may be several beside
/// ATT's fixed channel (Core Specification 5.4, Vol 3, Part A, 4.25 and 10.1, and Part F, 3.2.11).
///
/// Those are known whose request and response are in the capture.
struct EnhancedBearers {
    typealias Connection = AttributeValues.Connection

    private struct Request: Hashable {
        var connection: Connection
        var identifier: UInt8
        let isReceived: Bool
    }

    /// Where frames of one direction arrive.
    private struct End: Hashable {
        var connection: Connection
        let isReceived: Bool
        var channel: Int
    }

    /// An SDU of which the rest is to come.
    private struct SDU {
        /// The number of the bearer, which its two ends share.
        var bearer: Int
        var bytes: [UInt8] = []
        var count = 0
    }

    /// What a frame of a bearer completes.
    enum Outcome {
        case none
        /// The frames are no SDU: some are missing, or have more than was announced.
        case malformed
        case pdu([UInt8], bearer: Int)
    }

    /// By the request's identifier, of which there are 255 in each direction of a connection.
    private var requests: [Request: [Int]] = [:]
    /// A connection has 64 dynamic channels in each direction.
    private var ends: [End: SDU] = [:]
    private var bearers = 0

    /// Takes the payload of the next L2CAP frame. Returns an ATT PDU once it is whole.
    mutating func take(
        _ payload: ArraySlice<UInt8>, on channel: Int, of connection: Connection, isReceived: Bool
    ) -> Outcome {
        if channel == 0x0005 {
            signal(Array(payload), connection, isReceived)
            return .none
        }
        let end = End(connection: connection, isReceived: isReceived, channel: channel)
        guard var sdu = ends.removeValue(forKey: end) else { return .none }
        defer { ends[end] = sdu }
        if sdu.count == 0 {
            guard let count = Self.number(payload, 0) else { return .malformed }
            sdu.count = count
            sdu.bytes = Array(payload.dropFirst(2))
        } else {
            sdu.bytes += payload
        }
        guard sdu.bytes.count >= sdu.count else { return .none }
        let outcome: Outcome = sdu.bytes.count == sdu.count ? .pdu(sdu.bytes, bearer: sdu.bearer) : .malformed
        sdu = SDU(bearer: sdu.bearer)
        return outcome
    }

    /// Whether frames to this channel are a bearer's, or of the channel that opens bearers.
    func isBearer(_ channel: Int, of connection: Connection, isReceived: Bool) -> Bool {
        channel == 0x0005 || ends[End(connection: connection, isReceived: isReceived, channel: channel)] != nil
    }

    /// Whether a direction of a connection has an SDU of which the rest did not come.
    func hasOpenSDU(_ connection: Connection, isReceived: Bool) -> Bool {
        ends.contains { $0.key.connection == connection && $0.key.isReceived == isReceived && $0.value.count > 0 }
    }

    /// Forgets a connection.
    mutating func end(_ connection: Connection) {
        requests = requests.filter { $0.key.connection != connection }
        ends = ends.filter { $0.key.connection != connection }
    }

    /// What a command of the LE signalling channel begins and ends (4.6, 4.7, 4.25 and 4.26).
    private mutating func signal(_ command: [UInt8], _ connection: Connection, _ isReceived: Bool) {
        guard command.count >= 4 else { return }
        let fields = stride(from: 4, to: command.count - 1, by: 2).compactMap { Self.number(command[...], $0) }
        let identifier = command[1]
        func toSender(_ channel: Int) -> End {
            End(connection: connection, isReceived: !isReceived, channel: channel)
        }
        func fromSender(_ channel: Int) -> End {
            End(connection: connection, isReceived: isReceived, channel: channel)
        }
        switch command[0] {
        case 0x17 where fields.count > 4 && fields[0] == 0x0027:
            let request = Request(connection: connection, identifier: identifier, isReceived: isReceived)
            requests[request] = Array(fields[4...].prefix(5))
        case 0x18 where fields.count > 4:
            let request = Request(connection: connection, identifier: identifier, isReceived: !isReceived)
            guard let asked = requests.removeValue(forKey: request) else { return }
            for (there, here) in zip(asked, fields[4...]) where Self.isDynamic(here) && Self.isDynamic(there) {
                bearers += 1
                ends[fromSender(there)] = SDU(bearer: bearers)
                ends[toSender(here)] = SDU(bearer: bearers)
            }
        case 0x07 where fields.count == 2:
            ends[toSender(fields[0])] = nil
            ends[fromSender(fields[1])] = nil
        default: break
        }
    }

    private static func isDynamic(_ channel: Int) -> Bool { (0x0040...0x007F).contains(channel) }

    private static func number(_ bytes: ArraySlice<UInt8>, _ offset: Int) -> Int? {
        guard bytes.count >= offset + 2 else { return nil }
        return Int(bytes[bytes.startIndex + offset]) | Int(bytes[bytes.startIndex + offset + 1]) << 8
    }
}
