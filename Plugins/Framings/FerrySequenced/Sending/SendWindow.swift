import Ferry

/// The chunks that were sent and are not yet acknowledged, oldest first, and when to send which of them again.
///
/// A chunk counts as lost when three sent after it have arrived (the threshold of RFC 5681 and RFC 9002, 6.1.1), or when
/// the retransmission timer comes; an acknowledgement that comes sooner after a repetition than any round trip so far
/// is taken to be for the original (as RFC 8985, 6.2 does).
struct SendWindow {
    private var chunks: ContiguousArray<OutboundChunk>
    private let mask: UInt64
    /// The number of the oldest chunk that is not acknowledged, and of the next one to be cut. Chunks count from 0.
    private(set) var first: UInt64 = 0
    private(set) var next: UInt64 = 0
    private(set) var lostCount = 0
    private var nextSerial: UInt64 = 0
    private var newestArrived: UInt64 = 0
    private var timerStart = Timestamp.zero
    /// How many chunks may be out at once: the smaller of this side's and the peer's window.
    var limit: Int {
        didSet { forgetLatency() }
    }
    var estimator = RoundTripEstimator()

    /// How many chunks leave between one that asks for an acknowledgement and its coming: as many as it was lately.
    private var latency: Int
    /// A chunk that asked, until it is acknowledged.
    private var asking: UInt64?
    /// The chunk that is to ask next.
    private var nextToAsk: UInt64 = 0

    private static let reorderingThreshold: UInt64 = 3

    init(window: Int) {
        var capacity = 1
        while capacity < window { capacity *= 2 }
        chunks = ContiguousArray(repeating: OutboundChunk(), count: capacity)
        mask = UInt64(capacity - 1)
        limit = window
        latency = window
        planAsking(after: 0)
    }

    private func place(_ number: UInt64) -> Int { Int(truncatingIfNeeded: number & mask) }

    var count: Int { Int(next - first) }
    var hasRoom: Bool { count < limit }

    /// Makes the next chunk, or returns false.
    mutating func cut(from outbox: inout Outbox, atMost size: Int, acknowledgementCount: Int) -> Bool {
        let asks = isAskingDue
        guard
            outbox.cut(
                atMost: size, acknowledgementCount: acknowledgementCount, asks: asks, into: &chunks[place(next)])
        else { return false }
        next += 1
        return true
    }

    /// Takes back every chunk from `number` on.
    mutating func undo(from number: UInt64, into outbox: inout Outbox) {
        while next > number {
            next -= 1
            if chunks[place(next)].fate == .lost { lostCount -= 1 }
            outbox.undo(chunks[place(next)])
        }
        if let number = asking, number >= next { asking = nil }
        let planned = nextToAsk
        planAsking(after: next)
        nextToAsk = min(nextToAsk, planned)
    }

    /// Begins to count from 0, when nothing is out.
    mutating func restart() {
        first = 0
        next = 0
        forgetTimes()
    }

    // MARK: Asking for acknowledgements

    // Few acknowledgements are cheap, and too few stop a sender whose window is full before the next one comes. How long one
    // takes depends on the link: within the same connection event, or in the next one, dozens of chunks later.

    /// Whether the next chunk had better ask. The one that fills the window asks again if there was no answer: it was lost.
    var isAskingDue: Bool { next >= nextToAsk || (asking != nil && count == limit - 1) }

    /// Chunks between two requests for an acknowledgement: as few as leave enough of the window for the chunks sent
    /// meanwhile, and a quarter as much again.
    private mutating func planAsking(after number: UInt64) {
        let fewest = min(8, max(1, limit / 4))
        let spare = limit - latency - latency / 4 - 1
        nextToAsk = number + UInt64(min(max(spare, fewest), max(fewest, limit * 7 / 8))) - 1
    }

    private mutating func asked(_ number: UInt64) {
        if asking == nil { asking = number }
        planAsking(after: number + 1)
    }

    private mutating func answered(before number: UInt64) {
        if let request = asking {
            guard request < number else { return }
            asking = nil
            latency = max(Int(next - 1 - request), latency - (latency + 7) / 8)
        }
        planAsking(after: number)
    }

    private mutating func forgetLatency() {
        latency = limit
        asking = nil
        planAsking(after: next)
    }

    /// A new link: measured reordering of the old link does not apply.
    mutating func forgetTimes() {
        newestArrived = nextSerial
        estimator.progressed()
        forgetLatency()
    }

    subscript(number: UInt64) -> OutboundChunk {
        _read { yield chunks[place(number)] }
    }

    /// The oldest chunk that has to be sent again.
    func firstLost() -> UInt64? {
        guard lostCount > 0 else { return nil }
        var number = first
        while number < next {
            if chunks[place(number)].fate == .lost { return number }
            number += 1
        }
        return nil
    }

    /// The link has taken a chunk.
    mutating func sent(_ number: UInt64, at now: Timestamp) {
        let place = place(number)
        if chunks[place].fate == .lost { lostCount -= 1 }
        // The timer runs from the first chunk on, and anew from each repetition of the oldest.
        if number == first { timerStart = now }
        if chunks[place].transmissions == 0, chunks[place].flags.contains(.push) { asked(number) }
        chunks[place].sent(serial: nextSerial, at: now)
        nextSerial += 1
    }

    /// The link has taken the next chunk of a run, which was not cut before.
    mutating func sentRun(of outbox: inout Outbox, at now: Timestamp) {
        if next == first { timerStart = now }
        let place = place(next)
        outbox.bookRun(into: &chunks[place])
        chunks[place].sent(serial: nextSerial, at: now)
        next += 1
        nextSerial += 1
    }

    // MARK: Acknowledgements

    /// What an acknowledgement says, as the number of the first missing chunk; nil when it is older than one before.
    ///
    /// - Throws: `malformedStream` when it speaks of chunks that were never sent.
    func resolve(_ block: Acknowledgement) throws(FerryError) -> UInt64? {
        let distance = (UInt64(block.next) &- first) & (SequencedChunk.sequenceCount - 1)
        let outstanding = next - first
        guard distance <= outstanding else {
            if distance >= UInt64(SequencedChunk.maximumWindow) { return nil }
            throw neverSent(first + distance - 1)
        }
        let highest = UInt64(UInt64.bitWidth - block.bitmap.leadingZeroBitCount)
        guard block.bitmap == 0 || distance + highest < outstanding else { throw neverSent(first + distance + highest) }
        return first + distance
    }

    private func neverSent(_ number: UInt64) -> FerryError {
        FerryError(
            .malformedStream,
            "The peer acknowledges chunk \(number); chunks up to \(next) have been sent. It is not in step.")
    }

    /// Drops the chunks before `number`, handing each to `outbox`.
    mutating func acknowledge(
        before number: UInt64, bitmap: UInt64, at now: Timestamp, _ outbox: inout Outbox,
        _ events: inout RingQueue<FramingEvent>
    ) {
        let advances = number > first
        var sample: Int64?
        var run = AcknowledgedRun()
        while first < number {
            let place = place(first)
            if chunks[place].fate != .received { arrived(place, at: now, &sample) }
            // Most chunks hold one segment. Read by itself it is one load; by a number that the compiler does not know,
            // all of them are copied first.
            let segmentCount = chunks[place].segmentCount
            if segmentCount > 0 { run.take(chunks[place].segments[0], &outbox, &events) }
            if segmentCount > 1 {
                for index in 1..<segmentCount { run.take(chunks[place].segments[index], &outbox, &events) }
            }
            first += 1
        }
        run.end(&outbox, &events)
        outbox.reportProgress(&events)
        var bits = bitmap
        while bits != 0 {
            let place = place(number + 1 + UInt64(bits.trailingZeroBitCount))
            bits &= bits - 1
            if chunks[place].fate != .received {
                arrived(place, at: now, &sample)
                chunks[place].fate = .received
            }
        }
        if let sample { estimator.measured(sample) }
        if advances {
            estimator.progressed()
            timerStart = now
            answered(before: number)
        }
        guard first < next else { return }
        // The oldest has the lowest serial, unless it is out again: then others may be lost that it says nothing of.
        let oldest = place(first)
        if chunks[oldest].transmissions > 1 || isOvertaken(oldest) { findLost() }
    }

    private mutating func arrived(_ place: Int, at now: Timestamp, _ sample: inout Int64?) {
        let trip = now.nanoseconds - chunks[place].sentAt.nanoseconds
        if chunks[place].fate == .lost { lostCount -= 1 }
        if chunks[place].transmissions == 1 { sample = trip }
        if chunks[place].transmissions == 1 || trip >= estimator.shortest ?? 0 {
            newestArrived = max(newestArrived, chunks[place].serial)
        }
    }

    private func isOvertaken(_ place: Int) -> Bool {
        chunks[place].serial + Self.reorderingThreshold <= newestArrived
    }

    private mutating func findLost() {
        var number = first
        while number < next {
            let place = place(number)
            if chunks[place].fate == .inFlight, isOvertaken(place) {
                chunks[place].fate = .lost
                lostCount += 1
            }
            number += 1
        }
    }

    // MARK: The timer

    /// When the retransmission timer comes: while chunks are out and none waits to be repeated.
    var deadline: Timestamp? {
        guard count > 0, lostCount == 0 else { return nil }
        let (sum, overflow) = timerStart.nanoseconds.addingReportingOverflow(estimator.timeout)
        return overflow ? .distantFuture : Timestamp(nanoseconds: sum)
    }

    /// The timer has come: the oldest chunk goes again, even if the peer once said that it had it, for a chunk that proves
    /// damaged when its turn comes is dropped. Returns how often it has been sent.
    mutating func expire() -> Int {
        guard count > 0, lostCount == 0 else { return 0 }
        estimator.expired()
        chunks[place(first)].fate = .lost
        lostCount = 1
        return chunks[place(first)].transmissions
    }
}

/// Acknowledged segments of one message, told to the outbox as one.
private struct AcknowledgedRun {
    private var message: Int32 = -1
    private var count = 0

    @inline(__always)
    mutating func take(_ segment: Segment, _ outbox: inout Outbox, _ events: inout RingQueue<FramingEvent>) {
        if segment.message == message, segment.kind != .cancel {
            count += Int(segment.count)
        } else {
            begin(segment, &outbox, &events)
        }
    }

    mutating func end(_ outbox: inout Outbox, _ events: inout RingQueue<FramingEvent>) {
        if message >= 0 { outbox.acknowledge(count, of: message, &events) }
        message = -1
    }

    @inline(never)
    private mutating func begin(_ segment: Segment, _ outbox: inout Outbox, _ events: inout RingQueue<FramingEvent>) {
        end(&outbox, &events)
        if segment.kind == .cancel {
            outbox.acknowledgeCancel(of: segment.message)
        } else {
            message = segment.message
            count = Int(segment.count)
        }
    }
}
