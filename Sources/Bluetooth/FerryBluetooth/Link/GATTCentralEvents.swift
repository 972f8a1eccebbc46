import Ferry
import Synchronization

/// What the adapter tells of the connection, and what a link still owes the peripheral before chunks may follow. The adapter
/// keeps it, so it does not keep the link.
final class GATTCentralEvents: PeripheralConnectionEvents {
    /// The steps before chunks may follow one another.
    enum Opening {
        case open
        /// The state is to be set to its start.
        case owesStart
        /// The first chunk is to be written; then the subscription is to be made.
        case owesFirstWrite(Subscription)
        /// The first chunk is not answered yet.
        case awaitsAnswer(Subscription)
        case subscribing
    }

    /// The state of reading a peripheral's queue.
    private enum Reading {
        case idle
        case reading
        /// The bell has been rung meanwhile.
        case readingAgain
    }

    let gate = ReceiverGate()
    let claim: LinkClaim
    private let time: any TimeSource
    private let target = Mutex(Target())
    /// The characteristic that brings chunks, asked for with each of them; no attribute has that number before.
    private let inbound = Atomic(UInt64.max)
    private let opening = Mutex(Opening.open)
    private let hasOpened = Atomic(true)
    private let hasQueue = Atomic(false)
    /// Whether chunks begin with the number of their characteristic.
    private let hasNotes = Atomic(false)

    private struct Target {
        weak var connection: (any PeripheralConnection)?
        /// Whether this side has ended the link, so that no other reason counts.
        var isClosed = false
        var attributes: GATTAttributes?
        var state: SideCharacteristics.State?
        var reading = Reading.idle
        var isPaused = false
        var sizer: ValueSizer?
    }

    init(_ claim: LinkClaim, _ time: any TimeSource) {
        self.claim = claim
        self.time = time
    }

    /// Names what the link is laid over, before anything comes over it.
    func begin(
        _ connection: any PeripheralConnection, _ attributes: GATTAttributes, _ state: SideCharacteristics.State?,
        _ sizer: ValueSizer, _ first: Opening
    ) {
        target.withLock { target in
            target = Target(
                connection: connection, isClosed: target.isClosed, attributes: attributes, state: state, sizer: sizer)
        }
        set(first)
        hasQueue.store(attributes.queue != nil, ordering: .releasing)
        hasNotes.store(!attributes.notes.isEmpty, ordering: .releasing)
        inbound.store(UInt64(attributes.updates.rawValue), ordering: .releasing)
    }

    func linkWillClose() { target.withLock { $0.isClosed = true } }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        guard inbound.load(ordering: .relaxed) == UInt64(characteristic.rawValue) else {
            if hasNotes.load(ordering: .relaxed), takeNote(characteristic, value) { return }
            return noteState(characteristic, value)
        }
        if hasQueue.load(ordering: .relaxed) { return read() }
        // An empty one is a chunk too: no framing sends it, and each defines its meaning (Formats.md).
        if !take(value) { end(.neverActivated) }
    }

    /// Passes a chunk on, or keeps it until the link is activated. False when too much is kept already.
    private func take(_ value: RawSpan) -> Bool {
        guard hasNotes.load(ordering: .relaxed) else { return gate.receive(value) }
        return gate.receive(marked(value, 0).span.bytes)
    }

    /// Passes the value of a note on. False for any other characteristic.
    private func takeNote(_ characteristic: AttributeID, _ value: RawSpan) -> Bool {
        let place = target.withLock { $0.attributes?.notes.firstIndex(of: characteristic) }
        guard let place else { return false }
        if !gate.receive(marked(value, UInt8(truncatingIfNeeded: place + 1)).span.bytes) { end(.neverActivated) }
        return true
    }

    /// The value of a note as the link begins.
    func noteDidRead(_ characteristic: AttributeID, _ value: [UInt8]) { _ = takeNote(characteristic, value.span.bytes) }

    private func marked(_ value: RawSpan, _ mark: UInt8) -> [UInt8] {
        var chunk: [UInt8] = []
        chunk.reserveCapacity(1 + value.byteCount)
        chunk.append(mark)
        value.withUnsafeBytes { chunk.append(contentsOf: $0) }
        return chunk
    }

    func peripheralIsReadyToWrite() {
        if !isOpen, let connection = target.withLock({ $0.connection }) { writeStart(on: connection) }
        gate.ready()
    }

    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        guard target.withLock({ $0.attributes?.writes == characteristic }) else { return }
        switch result {
        case .success:
            if !isOpen { firstWriteIsAnswered() }
            gate.ready()
        case .failure(let error): end(FerryError("The peripheral refused a chunk", error))
        }
    }

    func peripheralDidModifyServices(_ services: [AttributeID]) {
        guard target.withLock({ $0.attributes.map { services.contains($0.service) } ?? false }) else { return }
        end(FerryError(.disconnected, "The peripheral withdrew its service; connect again to find it anew."))
    }

    func peripheralDidDisconnect(_ reason: BluetoothError) {
        claim.release()
        let (isClosed, connection, sizer) = target.withLock { ($0.isClosed, $0.connection, $0.sizer) }
        if !isClosed, reason.isLoss, let connection { sizer?.noteLoss(of: connection.identity) }
        gate.close(isClosed ? .closedHere : FerryError("The connection to the peripheral ended", reason))
    }

    private func end(_ reason: FerryError) {
        claim.release()
        gate.close(reason)
        target.withLock { $0.connection }?.disconnect()
    }
}

// MARK: - The beginning

extension GATTCentralEvents {
    /// Whether chunks may follow one another.
    var isOpen: Bool { hasOpened.load(ordering: .acquiring) }

    private func set(_ next: Opening) { opening.withLock { set(next, &$0) } }

    private func set(_ next: Opening, _ opening: inout Opening) {
        opening = next
        if case .open = next {
            hasOpened.store(true, ordering: .releasing)
        } else {
            hasOpened.store(false, ordering: .releasing)
        }
    }

    /// Both subscriptions are made: what remains is to say so, where the layout has a state.
    func owesStart(on connection: any PeripheralConnection) {
        guard stateToSet != nil else { return }
        set(.owesStart)
        writeStart(on: connection)
    }

    /// The link has an owner: starts reading.
    func begin() {
        if hasQueue.load(ordering: .relaxed) { read() }
    }

    /// Writes the start value to the state characteristic, if that is needed and there is space. Holds the lock
    /// meanwhile, so that a ready signal that comes at the same time sees the result.
    private func writeStart(on connection: any PeripheralConnection) {
        guard let (state, attribute) = stateToSet else { return }
        let failure = opening.withLock { opening -> BluetoothError? in
            guard case .owesStart = opening else { return nil }
            do throws(BluetoothError) {
                let isTaken = try connection.tryWriteValue(state.start.span.bytes, to: attribute, type: state.writeType)
                if isTaken { set(.open, &opening) }
                return nil
            } catch {
                return error
            }
        }
        if let failure { end(FerryError("Cannot begin the link at the peripheral", failure)) }
    }

    /// Writes the end value to the state characteristic, after the queue. Without space for it the end of the
    /// connection says the same.
    func tellEnd(on connection: any PeripheralConnection) {
        guard gate.reason == nil, let (state, attribute) = stateToSet else { return }
        _ = try? connection.tryWriteValue(state.end.span.bytes, to: attribute, type: state.writeType)
    }

    private var stateToSet: (SideCharacteristics.State, AttributeID)? {
        target.withLock { target in
            guard let state = target.state, let attribute = target.attributes?.state else { return nil }
            return (state, attribute)
        }
    }

    private func noteState(_ characteristic: AttributeID, _ value: RawSpan) {
        guard let (state, attribute) = stateToSet, attribute == characteristic else { return }
        switch state.meaning(of: value.withUnsafeBytes { [UInt8]($0) }) {
        // Peripherals in the field repeat it.
        case .start: break
        case .end: end(state.endedByPeer)
        case .unknown(let error): end(error)
        }
    }

    /// Offers a chunk to a link that is not open yet.
    func tryFirst(
        _ chunk: RawSpan, _ type: WriteType, on connection: any PeripheralConnection
    ) throws(BluetoothError) -> Bool {
        writeStart(on: connection)
        guard let attribute = target.withLock({ $0.attributes?.writes }) else { return false }
        var failure: BluetoothError?
        var subscription: Subscription?
        let isTaken = opening.withLock { opening -> Bool in
            do throws(BluetoothError) {
                switch opening {
                case .owesStart, .awaitsAnswer, .subscribing: return false
                case .open: return try connection.tryWriteValue(chunk, to: attribute, type: type)
                case .owesFirstWrite(let next):
                    guard try connection.tryWriteValue(chunk, to: attribute, type: type) else { return false }
                    if type == .withResponse {
                        set(.awaitsAnswer(next), &opening)
                    } else {
                        set(.subscribing, &opening)
                        subscription = next
                    }
                    return true
                }
            } catch {
                failure = error
                return false
            }
        }
        if let failure { throw failure }
        if let subscription { subscribe(subscription) }
        return isTaken
    }

    private func firstWriteIsAnswered() {
        let subscription = opening.withLock { opening -> Subscription? in
            guard case .awaitsAnswer(let subscription) = opening else { return nil }
            set(.subscribing, &opening)
            return subscription
        }
        if let subscription { subscribe(subscription) }
    }

    private func subscribe(_ subscription: Subscription) {
        let (connection, attribute) = target.withLock { ($0.connection, $0.attributes?.updates) }
        guard let connection, let attribute else { return }
        time.startTask { [self] in
            do throws(BluetoothError) {
                try await connection.setSubscription(subscription, to: attribute)
                set(.open)
                gate.ready()
            } catch {
                end(FerryError("Cannot subscribe after the first chunk", error))
            }
        }
    }
}

// MARK: - A queue to read

extension GATTCentralEvents {
    /// The peripheral may answer a chunk without ringing the bell.
    func chunkHasLeft() {
        if hasQueue.load(ordering: .relaxed) { read() }
    }

    func setReading(_ isReading: Bool) {
        target.withLock { $0.isPaused = !isReading }
        if isReading, hasQueue.load(ordering: .relaxed) { read() }
    }

    /// Reads until nothing is left, unless that is being done already: then once more.
    private func read() {
        let begins = target.withLock { target in
            let wasIdle = if case .idle = target.reading { true } else { false }
            target.reading = wasIdle ? .reading : .readingAgain
            return wasIdle
        }
        guard begins else { return }
        time.startTask { [self] in await readAll() }
    }

    private func readAll() async {
        while true {
            let (connection, attribute) = target.withLock { ($0.isPaused ? nil : $0.connection, $0.attributes?.queue) }
            var value: [UInt8] = []
            if let connection, let attribute {
                do throws(BluetoothError) {
                    value = try await connection.readValue(of: attribute)
                } catch {
                    return end(FerryError("Cannot read from the peripheral's queue", error))
                }
            }
            if !value.isEmpty {
                guard take(value.span.bytes) else { return end(.neverActivated) }
                continue
            }
            let isDone = target.withLock { target in
                if case .readingAgain = target.reading, !target.isPaused {
                    target.reading = .reading
                    return false
                }
                target.reading = .idle
                return true
            }
            if isDone { return }
        }
    }
}
