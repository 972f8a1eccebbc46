import Ferry
import Synchronization

/// The peripheral's end of a GATT link: notifications or indications towards one central, its writes from it.
final class GATTPeripheralLink: Link {
    let central: ConnectedCentral
    private let role: any PeripheralRole
    private let characteristic: AttributeID
    private let recipients: UpdateRecipients
    private let identity: KnownIdentity
    private let gate = ReceiverGate()
    private let sizeCheck = ChunkSizeCheck()
    private let writes = Mutex(Writes())
    private let isClosed = Atomic(false)

    /// Write requests whose answer is held back while the receiver pauses: ATT then keeps the central from writing on.
    private struct Writes {
        var isPaused = false
        var unanswered: [RequestID] = []
    }

    init(to central: ConnectedCentral, of characteristic: AttributeID, on role: any PeripheralRole) {
        self.central = central
        self.role = role
        self.characteristic = characteristic
        recipients = .one(central)
        identity = KnownIdentity(central.peer, role.identity(of: central))
    }

    deinit { role.disconnect(central) }

    // MARK: Link

    var peer: PeerIdentity { identity.update(role.identity(of: central)) }

    /// Once the central has gone: the last one known, so that whoever asks before it is told hears of the end alone.
    var maximumChunkSize: Int {
        sizeCheck.note(role.maximumUpdateValueLength(for: central) ?? sizeCheck.latest ?? 20)
    }

    func activate(_ receiver: any LinkReceiver) { gate.activate(receiver) }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        // A value that is too long would be cut without a word.
        guard !isClosed.load(ordering: .relaxed) else { throw gate.reason ?? .closedHere }
        try sizeCheck.check(chunk, for: self)
        do {
            return try role.tryUpdateValue(chunk, of: characteristic, for: recipients)
        } catch {
            throw gate.reason ?? FerryError("Cannot update the central's value", error)
        }
    }

    func setReceiving(_ isReceiving: Bool) {
        role.setReceiving(isReceiving, from: central)
        let answers = writes.withLock { writes -> [RequestID] in
            writes.isPaused = !isReceiving
            guard isReceiving else { return [] }
            defer { writes.unanswered = [] }
            return writes.unanswered
        }
        for request in answers { role.respond(to: request, with: .success([])) }
    }

    func close() {
        isClosed.store(true, ordering: .relaxed)
        role.disconnect(central)
    }

    // MARK: Events, passed on by GATTPeripheral

    func isReady() { gate.ready() }

    func didReceive(_ value: RawSpan) {
        guard gate.receive(value) else { return overflow() }
    }

    func didReceive(_ value: [UInt8], answering request: RequestID) {
        guard gate.receive(value.span.bytes) else {
            role.respond(to: request, with: .failure(.insufficientResources))
            return overflow()
        }
        let answersNow = writes.withLock { writes in
            if writes.isPaused { writes.unanswered.append(request) }
            return !writes.isPaused
        }
        if answersNow { role.respond(to: request, with: .success([])) }
    }

    /// That this side has closed the link goes before any other reason.
    func didEnd(_ reason: FerryError) { gate.close(isClosed.load(ordering: .relaxed) ? .closedHere : reason) }

    private func overflow() {
        gate.close(.neverActivated)
        role.disconnect(central)
    }
}
