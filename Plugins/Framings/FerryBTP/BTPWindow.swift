import Ferry

/// Packet numbers of both directions, and how many packets may still be sent without an acknowledgement.
///
/// Numbers have 8 bits and wrap. Counts are kept beside them, never computed from two numbers: connectedhomeip 1.4.2 computes, and
/// counts one place too many when the newest number has wrapped.
struct BTPWindow: Sendable {
    /// The most packets without an acknowledgement, either way.
    let size: Int
    /// The number of the next packet to be sent.
    private(set) var nextToSend: UInt8
    /// Packets that were sent and not acknowledged.
    private(set) var unacknowledged: Int
    private var nextExpected: UInt8
    /// Packets that were received and not acknowledged.
    private(set) var owed: Int

    /// After a handshake, whose response counts as the responder's packet 0.
    init(_ role: LinkRole, size: Int) {
        self.size = size
        nextToSend = role == .initiator ? 0 : 1
        unacknowledged = role == .initiator ? 0 : 1
        nextExpected = role == .initiator ? 1 : 0
        owed = role == .initiator ? 1 : 0
    }

    private var slots: Int { size - unacknowledged }

    /// The last place is kept for an acknowledgement, or the two sides could wait for each other's.
    var maySendData: Bool { slots > 1 || (slots == 1 && owed > 0) }

    var maySendAcknowledgement: Bool { slots >= 1 && owed > 0 }

    /// Whether the peer has so few places left that it must not wait for the timer.
    var isAcknowledgementUrgent: Bool { owed > 0 && size - owed <= 1 }

    /// What the next packet acknowledges: all that was received, or nothing new.
    var acknowledgement: UInt8? { owed > 0 ? nextExpected &- 1 : nil }

    /// A packet has left, with ``acknowledgement`` aboard.
    mutating func sent() {
        nextToSend &+= 1
        unacknowledged += 1
        owed = 0
    }

    /// Why a number cannot be.
    enum Violation: Error {
        /// Another one was due.
        case sequence(expected: UInt8)
        /// So many packets came without an acknowledgement.
        case overrun(Int)
        /// None of those that wait for an acknowledgement.
        case acknowledgement(waiting: Int, newest: UInt8)
    }

    mutating func acknowledged(_ number: UInt8) throws(Violation) {
        let newest = nextToSend &- 1
        let left = Int(newest &- number)
        guard left < unacknowledged else { throw .acknowledgement(waiting: unacknowledged, newest: newest) }
        unacknowledged = left
    }

    /// Takes the packet that was due, within the window. Returns false, and has done nothing, for any other.
    mutating func receivedInTurn(_ number: UInt8) -> Bool {
        guard number == nextExpected, owed < size else { return false }
        nextExpected &+= 1
        owed += 1
        return true
    }

    /// One packet more than was offered is taken: connectedhomeip sends it now and then.
    mutating func received(_ number: UInt8) throws(Violation) {
        guard number == nextExpected else { throw .sequence(expected: nextExpected) }
        guard owed <= size else { throw .overrun(owed + 1) }
        nextExpected &+= 1
        owed += 1
    }
}
