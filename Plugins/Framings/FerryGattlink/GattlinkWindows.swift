import Ferry

/// The packets that were sent and not acknowledged. After a silence the oldest goes again, and all behind it, each as it was cut: the peer
/// may have some of them.
struct SendingWindow: Sendable {
    /// The part of a message that a packet has.
    struct Packet: Sendable, Equatable {
        /// Counted from the session's first message on.
        var message: Int
        var start: Int
        var count: Int

        var end: Int { start + count }
    }

    /// The most packets without an acknowledgement.
    let size: Int
    /// Not acknowledged, oldest first.
    private(set) var packets = RingQueue<Packet>()
    private var oldest: UInt8 = 0
    /// How many of ``packets`` have been sent since the last silence.
    private var sent = 0

    init(size: Int) { self.size = size }

    /// Whether another packet may go.
    var hasPlace: Bool { sent < size }

    /// The packet that is to go again.
    var again: Packet? { sent < packets.count ? packets[sent] : nil }

    /// The number of the next packet, be it new or sent again.
    var number: UInt8 { (oldest &+ UInt8(sent)) & GattlinkPacket.numbers }

    /// The packet that goes again, or a new one, has left.
    mutating func left(_ packet: Packet) {
        if sent == packets.count { packets.append(packet) }
        sent += 1
    }

    /// Takes the packets up to a number as acknowledged, and gives each to `body`. Any other number changes nothing: acknowledgements
    /// may be doubled.
    mutating func acknowledge(_ number: UInt8, _ body: (Packet) -> Void) {
        let count = Int((number &- oldest) & GattlinkPacket.numbers) + 1
        guard count <= packets.count else { return }
        for _ in 0..<count { body(packets.removeFirst()) }
        oldest = (number &+ 1) & GattlinkPacket.numbers
        sent = max(0, sent - count)
    }

    /// All of them go again.
    mutating func rewind() { sent = 0 }
}

/// The packets that have come.
struct ReceivingWindow: Sendable {
    /// The most packets that the peer sends without an acknowledgement.
    let size: Int
    private var expected: UInt8 = 0
    private var received = 0
    /// Packets since the last acknowledgement.
    private(set) var owed = 0

    init(size: Int) { self.size = size }

    /// What acknowledges all that has come.
    var acknowledgement: UInt8 { (expected &- 1) & GattlinkPacket.numbers }

    /// Whether the peer would soon have to wait.
    var isUrgent: Bool { owed > size / 2 }

    enum Arrival: Equatable {
        /// The packet that was due.
        case due
        /// One that has come before: its acknowledgement was lost, and goes again.
        case known
        /// One behind a packet that was lost, which goes again with all behind it.
        case early
    }

    mutating func receive(_ number: UInt8) -> Arrival {
        guard number != expected else {
            expected = (expected &+ 1) & GattlinkPacket.numbers
            received = min(received + 1, size)
            owed += 1
            return .due
        }
        guard Int((expected &- number) & GattlinkPacket.numbers) <= received else { return .early }
        owed += 1
        return .known
    }

    mutating func acknowledged() { owed = 0 }
}
