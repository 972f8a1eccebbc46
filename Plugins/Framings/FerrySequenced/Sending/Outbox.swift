import Ferry

/// The messages that wait to be sent or acknowledged, and the choice of which goes next.
///
/// Priorities are strict: the highest level that can send does. Within a level the open messages take turns of four
/// chunks times their weight, and after each turn a waiting message may join. Nothing is cut in advance: ``cut`` makes
/// one chunk, and ``undo`` takes the latest one back.
struct Outbox {
    var messages: ContiguousArray<OutboundMessage> = []
    private var vacant: [Int32] = []
    private(set) var indices = MessageIndices()
    var levels = ContiguousArray(repeating: Level(), count: 4)
    var cancelling: RingQueue<Int32> = []
    private(set) var freeSlots = UInt32.max
    /// The message whose bytes a chunk without a record goes on with, or -1.
    var current: Int32 = -1
    /// Payload bytes of the messages that are begun and not yet cut to the end.
    private(set) var openBytes = 0
    /// The message whose progress is still to be told, or -1.
    private var progressed: Int32 = -1
    /// Messages that have something to be cut.
    var readyCount = 0

    /// The size of a chunk that needs no length, or 0.
    var fullSize = 0
    /// Credit used and given since the session began, in bytes.
    var charged: UInt64 = 0
    var granted: UInt64 = 0
    /// The largest message the peer takes.
    var peerMaximum = Int.max
    /// How many messages of one priority take turns: 1 to 8.
    let maximumOpen: Int
    /// Set by ``planRun()`` alone.
    var run = Run()

    struct Level {
        var active: RingQueue<Int32> = []
        /// Not begun, oldest first. Messages that were cancelled keep their places, but never the first.
        var waiting: RingQueue<Int32> = []
        /// How many of ``waiting`` were cancelled.
        var cancelledCount = 0
        /// Chunks left of the turn of `active.first`.
        var turn = 0
        var hasJustAdmitted = false

        /// Spends one chunk of a turn, and ends it if that was the last; returns whether it was.
        mutating func spend(_ whole: Int) -> Bool {
            if turn <= 0 {
                turn = whole
                hasJustAdmitted = false
            }
            turn -= 1
            guard turn <= 0 else { return false }
            if active.count > 1 { rotate() } else { hasJustAdmitted = false }
            return true
        }

        mutating func rotate() {
            if let first = active.popFirst() { active.append(first) }
            hasJustAdmitted = false
        }
    }

    init(maximumOpen: Int) { self.maximumOpen = maximumOpen }

    /// Less room than this at the end of a chunk is left empty.
    private static let worthwhile = 8
    static let chunksPerTurn = 4

    var credit: Int { Int(clamping: granted > charged ? granted - charged : 0) }

    /// Whether there is credit to go on with once `count` bytes more are sent.
    func isAmple(_ count: Int) -> Bool { credit - count > OutboundMessage.fixedCost }

    /// Whether a message waits, be it for credit.
    var isEmpty: Bool { readyCount == 0 && cancelling.isEmpty }

    // MARK: Coming and going

    mutating func enqueue(_ message: OutboundMessage) {
        run.left = 0
        let index: Int32
        if let free = vacant.popLast() {
            index = free
            messages[Int(free)] = message
        } else {
            index = Int32(messages.count)
            messages.append(message)
        }
        indices[message.id] = index
        levels[message.level].waiting.append(index)
        readyCount += 1
    }

    /// Takes a message back unless its last byte is in a chunk already.
    mutating func cancel(_ id: MessageID) -> Bool {
        guard let index = indices[id], !messages[Int(index)].isCut else { return false }
        run.left = 0
        let level = messages[Int(index)].level
        readyCount -= 1
        indices[id] = nil
        let wasBegun = messages[Int(index)].stage == .begun
        messages[Int(index)].stage = .cancelled
        if wasBegun {
            if levels[level].active.first == index { levels[level].turn = 0 }
            levels[level].active.removeAll { $0 == index }
            cancelling.append(index)
        } else {
            messages[Int(index)].payload = []
            levels[level].cancelledCount += 1
            let isMostlyCancelled = levels[level].cancelledCount > levels[level].waiting.count / 2 + 16
            sweep(level, wholly: isMostlyCancelled)
        }
        return true
    }

    /// Lets go of cancelled messages at the head of those that wait, or of all: rarely, so that cancelling many takes no
    /// longer for each.
    private mutating func sweep(_ level: Int, wholly: Bool = false) {
        guard levels[level].cancelledCount > 0 else { return }
        var kept: RingQueue<Int32> = []
        while let first = levels[level].waiting.first {
            if messages[Int(first)].stage == .cancelled {
                release(first)
                levels[level].cancelledCount -= 1
            } else if wholly {
                kept.append(first)
            } else {
                return
            }
            levels[level].waiting.removeFirst()
        }
        levels[level].waiting = kept
    }

    func fate(of id: MessageID) -> MessageFate {
        guard let index = indices[id] else { return .mayHaveArrived }
        if messages[Int(index)].isCut { return .mayHaveArrived }
        return messages[Int(index)].stage == .begun ? .takenBack : .nothingSent
    }

    mutating func release(_ index: Int32) {
        indices[messages[Int(index)].id] = nil
        messages[Int(index)].payload = []
        vacant.append(index)
    }

    /// The peer has a part of a message. Progress is told once for each acknowledgement, by ``reportProgress``.
    mutating func acknowledge(_ count: Int, of message: Int32, _ events: inout RingQueue<FramingEvent>) {
        let index = Int(message)
        if progressed != message { reportProgress(&events) }
        messages[index].acknowledged += count
        if messages[index].stage == .cancelled { return }
        progressed = message
        guard messages[index].acknowledged == messages[index].streamCount else { return }
        reportProgress(&events)
        if !messages[index].isReported { events.append(.sent(messages[index].id)) }
        release(message)
    }

    /// The peer has heard that a message is cancelled.
    mutating func acknowledgeCancel(of message: Int32) { release(message) }

    /// Tells how far the message that was acknowledged last has come.
    mutating func reportProgress(_ events: inout RingQueue<FramingEvent>) {
        guard progressed >= 0 else { return }
        let index = Int(progressed)
        progressed = -1
        guard !messages[index].isReported else { return }
        let count = min(messages[index].acknowledged, messages[index].payload.count)
        events.append(.progress(messages[index].id, acceptedBytes: count))
    }

    /// The link has taken a chunk for the first time: ends turns, and tells who asked for no more than that.
    mutating func handedOver(_ chunk: borrowing OutboundChunk, _ events: inout RingQueue<FramingEvent>) {
        let first = chunk.segments[0]
        if first.kind != .cancel {
            let level = messages[Int(first.message)].level
            levels[level].turn -= 1
            if levels[level].turn <= 0, levels[level].active.first == first.message { levels[level].rotate() }
        }
        // Only the current message can be unfinished, so a chunk that finishes none needs no further look.
        let isSingle = chunk.segmentCount == 1
        defer { planRun() }
        guard current == -1 || !isSingle else { return }
        for place in 0..<chunk.segmentCount {
            let segment = chunk.segments[place]
            let index = Int(segment.message)
            guard segment.kind != .cancel, messages[index].receipt == .handedOver, messages[index].isCut,
                !messages[index].isReported
            else { continue }
            messages[index].isReported = true
            events.append(.sent(messages[index].id))
        }
    }

    /// Fails every waiting message that `isHopeless`.
    mutating func failWaiting(
        _ events: inout RingQueue<FramingEvent>, with error: (OutboundMessage) -> FerryError?
    ) {
        for level in levels.indices {
            for index in levels[level].waiting where messages[Int(index)].stage != .cancelled {
                guard let error = error(messages[Int(index)]) else { continue }
                readyCount -= 1
                events.append(.failed(messages[Int(index)].id, error))
                indices[messages[Int(index)].id] = nil
                messages[Int(index)].stage = .cancelled
                levels[level].cancelledCount += 1
            }
            sweep(level, wholly: true)
        }
    }

    /// The peer has lost its state: messages that are not wholly acknowledged start again. Every chunk has been undone
    /// before.
    mutating func restart() {
        run.left = 0
        charged = 0
        granted = 0
        current = -1
        openBytes = 0
        freeSlots = .max
        for index in cancelling { release(index) }
        cancelling = []
        for level in levels.indices {
            for index in levels[level].active.reversed() {
                messages[Int(index)].stage = .waiting
                messages[Int(index)].cut = 0
                messages[Int(index)].acknowledged = 0
                levels[level].waiting.prepend(index)
            }
            levels[level].active = []
            levels[level].turn = 0
            levels[level].hasJustAdmitted = false
        }
    }

    // MARK: Choosing

    private func pick() -> Segment? {
        if let index = cancelling.first { return Segment(message: index, kind: .cancel) }
        guard credit > 0 else { return nil }
        for level in levels.indices.reversed() {
            let canBegin = canBegin(level)
            if let first = levels[level].active.first {
                if levels[level].turn > 0 || !canBegin || levels[level].hasJustAdmitted {
                    return Segment(message: first, kind: first == current ? .goOn : .resume)
                }
            }
            if canBegin, let first = levels[level].waiting.first { return Segment(message: first, kind: .begin) }
        }
        return nil
    }

    func canBegin(_ level: Int) -> Bool {
        guard let first = levels[level].waiting.first, levels[level].active.count < maximumOpen,
            freeSlots != 0, credit > OutboundMessage.fixedCost
        else { return false }
        let count = messages[Int(first)].payload.count
        if openBytes == 0 || openBytes + count <= peerMaximum { return true }
        // The peer holds twice its maximum, the second half for messages more urgent than all open ones. The maximum is
        // the peer's word, up to `Int.max` where that has 32 bits, so the comparison does not double it.
        return openBytes + count - peerMaximum <= peerMaximum && (level...3).allSatisfy { levels[$0].active.isEmpty }
    }

    // MARK: Cutting

    /// Makes the next chunk of at most `size` bytes, or returns false. Where it `asks` for an acknowledgement it does so
    /// unless it is of a form without flags.
    mutating func cut(
        atMost size: Int, acknowledgementCount: Int, asks: Bool, into chunk: inout OutboundChunk
    ) -> Bool {
        run.left = 0
        guard let first = pick() else { return false }
        chunk = OutboundChunk()
        chunk.currentBefore = current
        chunk.fullSizeBefore = fullSize
        chunk.chargedBefore = charged
        let index = Int(first.message)
        let rest = first.kind == .cancel ? 0 : messages[index].remaining
        let isFree = acknowledgementCount == 0
        let push: DataFlags = asks ? .push : []
        let fixed = 2 + acknowledgementCount
        if first.kind != .cancel {
            let credit = first.kind == .begin ? credit - OutboundMessage.overhead : credit
            let header = asks ? 2 : 1
            if isFree, first.kind == .goOn, fullSize == size, rest >= size - header, credit >= size - header,
                asks || isAmple(size - header)
            {
                append(first, count: size - header, to: &chunk)
                return finish(&chunk, asks ? .flagged : .plain, push, header: header)
            }
            let isAlone = readyCount == 1 && cancelling.isEmpty
            let usesSlot = first.kind == .resume && isFree && isAmple(rest)
            let record = usesSlot ? 0 : recordCount(first)
            let spare = size - fixed - record - rest
            if spare >= 0, credit >= rest, isAlone || spare < Self.worthwhile {
                append(first, count: rest, to: &chunk)
                if usesSlot { return finish(&chunk, .slot, .end, header: 2) }
                chunk.bodyCount += record
                // With nothing more to send, a caller may be waiting for the receipt.
                let waits = isAlone && messages[index].receipt != .handedOver || !isAmple(0)
                let flags: DataFlags = [.end, waits ? .push : push, first.kind == .goOn ? [] : .record]
                return finish(&chunk, .flagged, flags, header: 2)
            }
            if isFree, fullSize == size, first.kind != .goOn, rest > size {
                let record = first.kind == .resume ? 0 : record
                let count = size - 2 - record
                if credit >= count, isAmple(count) {
                    append(first, count: count, to: &chunk)
                    chunk.bodyCount += record
                    if first.kind == .resume { return finish(&chunk, .slot, [], header: 2) }
                    return finish(&chunk, .flagged, push.union(.record), header: 2)
                }
            }
        }
        fill(&chunk, beginningWith: first, room: size - fixed)
        let field = Varint.encodedCount(UInt64(chunk.bodyCount) << 1)
        chunk.setsFullSize = isFree && 2 + field + chunk.bodyCount == size
        if chunk.setsFullSize { fullSize = size }
        // What uses up the credit asks for more.
        let asking: DataFlags = isAmple(0) ? push : .push
        let flags: DataFlags = first.kind == .goOn ? [.length, asking] : [.length, asking, .record]
        return finish(&chunk, .flagged, flags, header: 2 + field)
    }

    private func finish(
        _ chunk: inout OutboundChunk, _ form: OutboundChunk.Form, _ flags: DataFlags, header: Int
    ) -> Bool {
        chunk.form = form
        chunk.flags = flags
        chunk.chunkCount = header + chunk.bodyCount
        return true
    }

    /// Fills a body that states its length, with up to four messages.
    private mutating func fill(_ chunk: inout OutboundChunk, beginningWith first: Segment, room: Int) {
        let field = room - 1 < 64 ? 1 : (room - 2 < 8192 ? 2 : 3)
        let capacity = room - field
        var next: Segment? = first
        while let segment = next {
            let record = recordCount(segment)
            var count = 0
            if segment.kind != .cancel {
                let credit = segment.kind == .begin ? credit - OutboundMessage.overhead : credit
                count = min(messages[Int(segment.message)].remaining, capacity - chunk.bodyCount - record, credit)
                guard count > 0 else { return }
            }
            chunk.bodyCount += record
            append(segment, count: count, to: &chunk)
            guard current == -1 || segment.kind == .cancel, chunk.segmentCount < OutboundChunk.maximumSegments,
                capacity - chunk.bodyCount >= Self.worthwhile
            else { return }
            next = pick()
            // A record never names the message that is current.
            if next?.kind == .goOn { return }
        }
    }

    private func recordCount(_ segment: Segment) -> Int {
        switch segment.kind {
        case .goOn: 0
        case .resume, .cancel: 1
        case .begin: 1 + Varint.encodedCount(UInt64(messages[Int(segment.message)].payload.count))
        }
    }

    private mutating func append(_ segment: Segment, count: Int, to chunk: inout OutboundChunk) {
        let index = Int(segment.message)
        let level = messages[index].level
        var segment = segment
        segment.offset = messages[index].cut
        segment.count = Int32(truncatingIfNeeded: count)
        chunk.segments[chunk.segmentCount] = segment
        chunk.segmentCount += 1
        chunk.bodyCount += count
        if segment.kind == .cancel {
            cancelling.removeFirst()
            close(index)
            if current == segment.message { current = -1 }
            return
        }
        if segment.kind == .begin {
            levels[level].waiting.removeFirst()
            sweep(level)
            levels[level].active.prepend(segment.message)
            levels[level].turn = messages[index].weight * Self.chunksPerTurn
            levels[level].hasJustAdmitted = true
            messages[index].stage = .begun
            messages[index].slot = UInt8(freeSlots.trailingZeroBitCount)
            open(index)
            charged += UInt64(OutboundMessage.overhead)
        } else if levels[level].turn <= 0 {
            levels[level].turn = messages[index].weight * Self.chunksPerTurn
            levels[level].hasJustAdmitted = false
        }
        charged += UInt64(count)
        messages[index].cut += count
        current = segment.message
        if messages[index].isCut {
            levels[level].active.removeFirst()
            levels[level].turn = 0
            readyCount -= 1
            close(index)
            current = -1
        }
    }

    mutating func open(_ index: Int) {
        freeSlots &= ~(1 << UInt32(messages[index].slot))
        openBytes += messages[index].payload.count
    }

    mutating func close(_ index: Int) {
        freeSlots |= 1 << UInt32(messages[index].slot)
        openBytes -= messages[index].payload.count
    }
}
