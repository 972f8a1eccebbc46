/// One LE credit-based channel (Core Specification 5.4, Vol 3, Part A, 10.1): SDUs both ways, each side's frames held
/// back by the credits that the other gives.
struct CreditChannel: Sendable {
    /// Largest SDU taken from a peer, in bytes, unless it has been raised.
    static let mtu: UInt16 = 2048
    /// Largest frame payload taken, in bytes: eight link layer packets of 251, less the header.
    static let mps: UInt16 = 2002
    /// Frames that a peer may send ahead.
    static let credits: UInt16 = 128
    /// SDU bytes that may wait to be sent.
    static let queueLimit = 16384

    enum State: Equatable { case connecting, open, closing }

    /// A channel that is closed once its queue has left: until when it may take that, in nanoseconds.
    struct Drain {
        /// How long nothing may leave. It ends nothing that moves, however slow the link is.
        static let pause: Int64 = 5_000_000_000
        /// How long it may take in all, also with a peer that gives a credit now and then.
        static let limit: Int64 = 60_000_000_000

        private let end: Int64
        private(set) var deadline: Int64

        init(at now: Int64) {
            end = now + Self.limit
            deadline = now + Self.pause
        }

        /// A frame has left.
        mutating func advance(at now: Int64) { deadline = min(now + Self.pause, end) }
    }

    let id: UInt32
    let psm: UInt16
    let local: UInt16
    /// Whether the channel came of a request for several; only such have their sizes changed.
    var isEnhanced = false
    /// Largest SDU taken, in bytes.
    var localMTU = Int(Self.mtu)
    var remote: UInt16 = 0
    var state: State
    var remoteMTU = 0
    var remoteMPS = 0
    /// Frames that may still be sent.
    var sendCredits = 0
    /// Frames that the peer may still send.
    var receiveCredits = Int(Self.credits)
    /// Whether credits are given back as frames are read.
    var isReceiving = true
    var wantsReady = false
    /// Set when the channel has been closed on this side.
    var drain: Drain?

    /// Lengths and bytes of SDUs on their way out, back to back; `head` is where the unsent part begins.
    private var queue: [UInt8] = []
    private var head = 0
    private var sduRemaining = 0
    /// The SDU being received, and its whole length.
    private var incoming: [UInt8] = []
    private var incomingCount = 0

    init(id: UInt32, psm: UInt16, local: UInt16, state: State) {
        self.id = id
        self.psm = psm
        self.local = local
        self.state = state
    }

    var queuedCount: Int { queue.count - head }

    /// Queues an SDU, or returns false when the queue is full.
    mutating func trySend(_ sdu: RawSpan) -> Bool {
        guard queuedCount == 0 || queuedCount + sdu.byteCount + 2 <= Self.queueLimit else {
            wantsReady = true
            return false
        }
        if head == queue.count {
            queue.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= Self.queueLimit {
            queue.removeSubrange(0..<head)
            head = 0
        }
        queue.append(u16: UInt16(truncatingIfNeeded: sdu.byteCount))
        queue.append(copying: sdu)
        return true
    }

    /// Moves the next frame to the connection's queue if there is one and credit for it. Returns whether it did.
    mutating func pump(into transmit: inout TransmitQueue, at now: Int64) -> Bool {
        guard state == .open, sendCredits > 0, head < queue.count else { return false }
        var sduCount: Int?
        if sduRemaining == 0 {
            sduRemaining = Int(queue[head]) | Int(queue[head + 1]) << 8
            sduCount = sduRemaining
            head += 2
        }
        let count = min(sduRemaining, remoteMPS - (sduCount == nil ? 0 : 2))
        transmit.appendSegment(queue[head..<head + count], sduCount: sduCount, on: remote)
        head += count
        sduRemaining -= count
        sendCredits -= 1
        drain?.advance(at: now)
        return true
    }

    /// Whether to report room to the refused sender: once for each refusal.
    mutating func takeReady() -> Bool {
        guard wantsReady, queuedCount <= Self.queueLimit / 2 else { return false }
        wantsReady = false
        return true
    }

    enum Received: Equatable {
        case partial
        /// ``takeSDU()`` has it.
        case complete
        /// The peer broke the channel's rules: it must be closed (10.1).
        case violation(String)
    }

    /// Takes a frame's payload.
    mutating func receive(_ frame: RawSpan) -> Received {
        guard receiveCredits > 0 else { return .violation("a frame without a credit") }
        receiveCredits -= 1
        guard frame.byteCount <= Int(Self.mps) else { return .violation("a frame above the MPS") }
        if incomingCount == 0 {
            guard frame.byteCount >= 2 else { return .violation("an SDU without its length") }
            incomingCount = Int(frame.u16(0))
            guard incomingCount <= localMTU else { return .violation("an SDU above the MTU") }
            guard incomingCount > 0 else { return frame.byteCount == 2 ? .partial : .violation("an overlong SDU") }
            incoming.append(copying: frame.extracting(2..<frame.byteCount))
        } else {
            incoming.append(copying: frame)
        }
        guard incoming.count <= incomingCount else { return .violation("more bytes than the SDU's length") }
        return incoming.count == incomingCount ? .complete : .partial
    }

    /// The received SDU; the buffer is kept for the next one.
    mutating func takeSDU(_ body: (RawSpan) -> Void) {
        body(incoming.span.bytes)
        incoming.removeAll(keepingCapacity: true)
        incomingCount = 0
    }

    /// Credits to give the peer now: none until half of them are used up, to save packets.
    mutating func creditsToReturn() -> UInt16 {
        let used = Int(Self.credits) - receiveCredits
        guard isReceiving, state == .open, used >= Int(Self.credits) / 2 else { return 0 }
        receiveCredits = Int(Self.credits)
        return UInt16(truncatingIfNeeded: used)
    }
}
