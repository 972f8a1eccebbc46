/// The values that are read of characteristics that are queues: of a Read Response, and of Read Blob Responses that go on with it
/// (Core Specification 5.4, Vol 3, Part F, 3.4.4.3 to 3.4.4.6).
struct AttributeReads {
    typealias Kind = AttributeValues.Event.Kind
    typealias Bearer = AttributeWrites.Bearer
    typealias Client = AttributeWrites.Side

    private struct Read {
        let handle: Int
        var bytes: [UInt8] = []
        var stage = Stage.asked

        enum Stage {
            /// The answer is to come.
            case asked
            /// The last answer was full, so that there may be more.
            case full
        }
    }

    /// Handles that are followed on every connection.
    private let handles: Set<Int>
    /// Those of characteristics that were declared as queues.
    private var queues: [AttributeValues.Connection: Set<Int>] = [:]
    /// What both sides of a connection have said of ATT_MTU.
    private var mtus: [AttributeValues.Connection: Int] = [:]
    private var offers: [Client: Int] = [:]
    private var reads: [Client: Read] = [:]

    /// Opcodes of answers to reads.
    static let carryValues: Set<UInt8> = [0x0B, 0x0D]
    /// The most bytes of a value (3.2.9).
    private static let longestValue = 512
    /// ATT_MTU before the exchange, and the least of enhanced bearers (Vol 3, Part G, 5.2.1 and 5.3.1).
    private static let smallestMTU = 23
    private static let smallestEnhancedMTU = 64

    init(handles: Set<Int>) { self.handles = handles }

    /// A server has told what its characteristics are.
    mutating func declared(_ values: [Int: DeclaredValue], _ connection: AttributeValues.Connection) {
        for case (let handle, .queue) in values { queues[connection, default: []].insert(handle) }
    }

    /// Takes the next PDU, from either side.
    mutating func take(_ pdu: [UInt8], on bearer: Bearer, _ isReceived: Bool) -> [Kind] {
        func number(_ offset: Int) -> Int {
            offset + 1 < pdu.count ? Int(pdu[offset]) | Int(pdu[offset + 1]) << 8 : 0
        }
        let own = Client(bearer: bearer, isReceived: isReceived)
        let other = Client(bearer: bearer, isReceived: !isReceived)
        switch pdu.first {
        case 0x02:
            offers[own] = number(1)
            return finish(own)
        case 0x03:
            guard let offer = offers.removeValue(forKey: other) else { return [] }
            mtus[bearer.connection] = max(Self.smallestMTU, min(offer, number(1)))
            return []
        case 0x0A: return ask(number(1), 0, own)
        case 0x0C: return ask(number(1), number(3), own)
        case 0x0B, 0x0D: return answer(pdu.dropFirst(), other)
        case 0x01 where pdu.count >= 5 && [0x0A, 0x0C].contains(pdu[1]): return refuse(pdu[4], other)
        // Other requests, of which a client sends one at a time.
        case let opcode? where opcode & 0x41 == 0 && opcode != 0x1E: return finish(own)
        default: return []
        }
    }

    /// Whether an answer to a read would carry a value that is followed.
    func isAsked(_ connection: AttributeValues.Connection, isReceived: Bool) -> Bool {
        reads.contains {
            $0.key.bearer.connection == connection && $0.key.isReceived != isReceived && $0.value.stage == .asked
        }
    }

    /// Forgets a connection; returns the values whose ends were not certain.
    mutating func end(_ connection: AttributeValues.Connection) -> [Kind] {
        let clients = reads.keys.filter { $0.bearer.connection == connection }.sorted()
        let kinds = clients.flatMap { finish($0) }
        offers = offers.filter { $0.key.bearer.connection != connection }
        (queues[connection], mtus[connection]) = (nil, nil)
        return kinds
    }

    private mutating func ask(_ handle: Int, _ offset: Int, _ client: Client) -> [Kind] {
        if let read = reads[client], read.handle == handle, read.stage == .full, read.bytes.count == offset {
            reads[client]?.stage = .asked
            return []
        }
        let kinds = finish(client)
        let isFollowed = handles.contains(handle) || queues[client.bearer.connection]?.contains(handle) == true
        if isFollowed, offset == 0 { reads[client] = Read(handle: handle) }
        return kinds
    }

    private mutating func answer(_ part: ArraySlice<UInt8>, _ client: Client) -> [Kind] {
        guard var read = reads[client], read.stage == .asked else { return [] }
        read.bytes += part
        read.stage = .full
        reads[client] = read
        let mtu =
            client.bearer.number == 0
            ? mtus[client.bearer.connection] ?? Self.smallestMTU : Self.smallestEnhancedMTU
        return part.count < mtu - 1 || read.bytes.count >= Self.longestValue ? finish(client) : []
    }

    private mutating func refuse(_ code: UInt8, _ client: Client) -> [Kind] {
        // Attribute Not Long, and Invalid Offset: there is no more of the value.
        if [0x0B, 0x07].contains(code), reads[client]?.bytes.isEmpty == false {
            reads[client]?.stage = .full
            return finish(client)
        }
        reads[client] = nil
        return []
    }

    /// The value of a read that has been answered; one that has not is given up.
    private mutating func finish(_ client: Client) -> [Kind] {
        guard let read = reads.removeValue(forKey: client), read.stage == .full else { return [] }
        return [.read(handle: read.handle, isReceived: !client.isReceived, bytes: read.bytes)]
    }
}
