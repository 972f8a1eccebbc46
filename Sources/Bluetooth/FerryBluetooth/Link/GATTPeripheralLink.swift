import DequeModule
import Ferry
import Synchronization

/// The peripheral's end of a GATT link: notifications or indications towards one central, its writes from it.
final class GATTPeripheralLink: Link {
    let central: ConnectedCentral
    private let host: any PeripheralRole
    private let attributes: GATTAttributes
    private let sides: SideCharacteristics
    private let recipients: UpdateRecipients
    private let identity: KnownIdentity
    private let gate = ReceiverGate()
    private let sizeCheck = ChunkSizeCheck()
    private let sizer: ValueSizer
    private let writes = Mutex(Writes())
    private let reads = Mutex(Reads())
    /// The values of the layout's notes.
    private let notes: Mutex<[[UInt8]]>
    private let isClosed = Atomic(false)
    private let hasSubscribed: Atomic<Bool>
    /// Tells the peripheral that the link has ended, where no other event does.
    private let onEnd: @Sendable () -> Void

    /// Write requests whose answer is held back while the receiver pauses: ATT then keeps the central from writing on.
    private struct Writes {
        var isPaused = false
        var unanswered: [RequestID] = []
    }

    /// Chunks that wait to be read, where the layout has a queue.
    private struct Reads {
        static let maximum = 16

        var waiting: Deque<[UInt8]> = []
        /// The one that is being read, in parts where it is long.
        var current: [UInt8] = []
        /// How often the bell has been rung.
        var rings: UInt32 = 0
        /// The bell is to be rung when there is space for it.
        var owesRing = false
    }

    init(
        to central: ConnectedCentral, over attributes: GATTAttributes, sides: SideCharacteristics, isSubscribed: Bool,
        on host: any PeripheralRole, _ valueSizes: ValueSizeMemory, _ time: any TimeSource,
        onEnd: @escaping @Sendable () -> Void
    ) {
        self.central = central
        self.host = host
        self.attributes = attributes
        self.onEnd = onEnd
        self.sides = sides
        notes = Mutex(sides.notes.map(\.bytes))
        hasSubscribed = Atomic(isSubscribed)
        recipients = .one(central)
        identity = KnownIdentity(central.peer, host.identity(of: central))
        sizer = ValueSizer(valueSizes, for: identity.update(nil), time)
    }

    deinit {
        tellEnd()
        host.disconnect(central)
        if !isSubscribed { onEnd() }
    }

    // MARK: Link

    var peer: PeerIdentity { identity.update(host.identity(of: central)) }

    var role: LinkRole? { .responder }

    /// After the central has gone: the last known size, so that a caller learns of the end only by the end itself.
    var maximumChunkSize: Int {
        let mark = sides.notes.isEmpty ? 0 : 1
        if attributes.queue != nil { return sizeCheck.note(512 + mark) }
        guard let length = host.maximumUpdateValueLength(for: central) else {
            return sizeCheck.note(sizeCheck.latest ?? min(20, sizer.limit) + mark)
        }
        return sizeCheck.note(min(length, sizer.limit) + mark)
    }

    func activate(_ receiver: any LinkReceiver) { gate.activate(receiver) }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        // A value that is too long would be cut without a word.
        guard !isClosed.load(ordering: .relaxed) else { throw gate.reason ?? .closedHere }
        try sizeCheck.check(chunk, for: self)
        // Chunks to a central that has not subscribed are lost.
        guard isSubscribed else { return false }
        return sides.notes.isEmpty ? try trySendPlain(chunk) : try trySendMarked(chunk)
    }

    /// Sends a chunk that begins with the number of its characteristic.
    private func trySendMarked(_ chunk: RawSpan) throws(FerryError) -> Bool {
        // A link takes no empty chunk.
        let mark = Int(chunk.unsafeLoad(as: UInt8.self))
        let value = chunk.extracting(droppingFirst: 1)
        guard mark > 0 else { return try trySendPlain(value) }
        guard mark <= attributes.notes.count, sides.notes[mark - 1].isNotified else {
            throw FerryError(
                .invalidConfiguration,
                "A chunk of this layout begins with 0, or with the number of a note that is notified, of \(attributes.notes.count) "
                    + "notes; this one begins with \(mark). Choose the framing that belongs to the layout.")
        }
        do {
            guard try host.tryUpdateValue(value, of: attributes.notes[mark - 1], for: recipients) else { return false }
        } catch {
            throw gate.reason ?? FerryError("Cannot update the central's value", error)
        }
        notes.withLock { $0[mark - 1] = value.withUnsafeBytes { [UInt8]($0) } }
        return true
    }

    private func trySendPlain(_ chunk: RawSpan) throws(FerryError) -> Bool {
        do {
            guard attributes.queue == nil else { return try queue(chunk.withUnsafeBytes { [UInt8]($0) }) }
            let isTaken = try host.tryUpdateValue(chunk, of: attributes.updates, for: recipients)
            sizer.note(isTaken, chunk.byteCount, to: peer)
            return isTaken
        } catch {
            throw gate.reason ?? FerryError("Cannot update the central's value", error)
        }
    }

    func setReceiving(_ isReceiving: Bool) {
        host.setReceiving(isReceiving, from: central)
        let answers = writes.withLock { writes -> [RequestID] in
            writes.isPaused = !isReceiving
            guard isReceiving else { return [] }
            defer { writes.unanswered = [] }
            return writes.unanswered
        }
        for request in answers { host.respond(to: request, with: .success([])) }
    }

    func close() {
        tellEnd()
        isClosed.store(true, ordering: .relaxed)
        host.disconnect(central)
        guard !isSubscribed else { return }
        // No adapter tells the end of a connection without subscription.
        gate.close(.closedHere)
        onEnd()
    }

    /// Sets the state to its end, after the chunks that are queued. Where there is no space for it the connection's end says it.
    private func tellEnd() {
        guard let state = sides.state, let attribute = attributes.state, !isClosed.load(ordering: .relaxed),
            gate.reason == nil
        else {
            return
        }
        _ = try? host.tryUpdateValue(state.end.span.bytes, of: attribute, for: recipients)
    }

    // MARK: Events, passed on by GATTPeripheral

    var isSubscribed: Bool { hasSubscribed.load(ordering: .acquiring) }

    func didSubscribe() {
        hasSubscribed.store(true, ordering: .releasing)
        gate.ready()
    }

    func isReady() {
        ring(again: true)
        gate.ready()
    }

    func didReceive(_ value: RawSpan) {
        guard gate.receive(value) else { return overflow() }
    }

    func didReceive(_ value: [UInt8], answering request: RequestID) {
        guard gate.receive(value.span.bytes) else {
            host.respond(to: request, with: .failure(.insufficientResources))
            return overflow()
        }
        let answersNow = writes.withLock { writes in
            if writes.isPaused { writes.unanswered.append(request) }
            return !writes.isPaused
        }
        if answersNow { host.respond(to: request, with: .success([])) }
    }

    /// That this side has closed the link goes before any other reason.
    func didEnd(_ reason: FerryError, isLoss: Bool = false) {
        let isClosed = isClosed.load(ordering: .relaxed)
        if isLoss, !isClosed { sizer.noteLoss(of: identity.update(nil)) }
        gate.close(isClosed ? .closedHere : reason)
    }

    private func overflow() {
        gate.close(.neverActivated)
        host.disconnect(central)
    }

    /// The value of a note, by its place.
    func note(_ place: Int) -> [UInt8] { notes.withLock { $0[place] } }

    // MARK: A queue to read

    private func queue(_ chunk: [UInt8]) throws(BluetoothError) -> Bool {
        let hasSpace = reads.withLock { reads in
            guard reads.waiting.count < Reads.maximum else { return false }
            reads.waiting.append(chunk)
            return true
        }
        if hasSpace { ring(again: false) }
        return hasSpace
    }

    /// Notifies the central that there is something to read. The value, which counts the notifications, carries nothing.
    private func ring(again: Bool) {
        let count: UInt32? = reads.withLock { reads in
            guard !again || reads.owesRing else { return nil }
            reads.rings &+= 1
            reads.owesRing = false
            return reads.rings
        }
        guard let count else { return }
        let value = (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * UInt32($0))) }
        if (try? host.tryUpdateValue(value.span.bytes, of: attributes.updates, for: recipients)) == false {
            reads.withLock { $0.owesRing = true }
        }
    }

    /// The next chunk, or from an offset on the rest of the one that is being read; empty when none waits.
    func read(from offset: Int) -> Result<[UInt8], ATTError> {
        let (answer, hasSpace) = reads.withLock { reads -> (Result<[UInt8], ATTError>, Bool) in
            if offset > 0 {
                guard offset <= reads.current.count else { return (.failure(.invalidOffset), false) }
                return (.success(Array(reads.current[offset...])), false)
            }
            let wasFull = reads.waiting.count == Reads.maximum
            reads.current = reads.waiting.popFirst() ?? []
            return (.success(reads.current), wasFull)
        }
        if hasSpace { gate.ready() }
        return answer
    }
}
