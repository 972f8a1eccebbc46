import Ferry
import Synchronization

/// The central's end of a GATT link: writes towards the peripheral, notifications or indications from it.
///
/// It owns its central role, and with that its connection: both end with it.
final class GATTCentralLink: Link {
    private let role: any CentralRole
    private let connection: any PeripheralConnection
    private let outbound: AttributeID
    private let writeType: WriteType
    private let limit: Int
    private let events: GATTCentralEvents
    private let sizeCheck = ChunkSizeCheck()
    private let isClosed = Atomic(false)

    /// - Parameter limit: the most bytes of a chunk, whatever the connection takes.
    init(
        _ role: any CentralRole, _ connection: any PeripheralConnection, _ events: GATTCentralEvents,
        outbound: AttributeID, writeType: WriteType, limit: Int
    ) {
        self.role = role
        self.connection = connection
        self.events = events
        self.outbound = outbound
        self.writeType = writeType
        self.limit = limit
    }

    deinit { role.close() }

    var peer: PeerIdentity { connection.identity }

    var maximumChunkSize: Int { sizeCheck.note(min(connection.maximumWriteLength(writeType), limit)) }

    func activate(_ receiver: any LinkReceiver) { events.gate.activate(receiver) }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard !isClosed.load(ordering: .relaxed) else { throw events.gate.reason ?? .closedHere }
        try sizeCheck.check(chunk, for: self)
        do {
            return try connection.tryWriteValue(chunk, to: outbound, type: writeType)
        } catch {
            throw events.gate.reason ?? FerryError("Cannot write to the peripheral", error)
        }
    }

    func setReceiving(_ isReceiving: Bool) { connection.setReceiving(isReceiving) }

    func close() {
        isClosed.store(true, ordering: .relaxed)
        events.linkWillClose()
        events.claim.release()
        connection.disconnect()
    }
}

/// What the adapter tells of the connection. The adapter keeps it, so it does not keep the link.
final class GATTCentralEvents: PeripheralConnectionEvents {
    let gate = ReceiverGate()
    let claim: LinkClaim
    private let target = Mutex(Target())
    /// The characteristic that brings chunks, asked for with each of them; no attribute has that number before.
    private let inbound = Atomic(UInt64.max)

    private struct Target {
        weak var connection: (any PeripheralConnection)?
        /// Whether this side has ended the link, so that no other reason counts.
        var isClosed = false
        var service: AttributeID?
        var outbound: AttributeID?
    }

    init(_ claim: LinkClaim) { self.claim = claim }

    /// Names what the link is laid over, before anything comes over it.
    func begin(
        _ connection: any PeripheralConnection, service: AttributeID, inbound: AttributeID, outbound: AttributeID
    ) {
        target.withLock { target in
            target = Target(
                connection: connection, isClosed: target.isClosed, service: service, outbound: outbound)
        }
        self.inbound.store(UInt64(inbound.rawValue), ordering: .releasing)
    }

    func linkWillClose() { target.withLock { $0.isClosed = true } }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        guard inbound.load(ordering: .relaxed) == UInt64(characteristic.rawValue) else { return }
        // One without bytes is a chunk too: no framing sends it, and each says what comes of it (Formats.md).
        if !gate.receive(value) { end(.neverActivated) }
    }

    func peripheralIsReadyToWrite() { gate.ready() }

    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        guard target.withLock({ $0.outbound == characteristic }) else { return }
        switch result {
        case .success: gate.ready()
        case .failure(let error): end(FerryError("The peripheral refused a chunk", error))
        }
    }

    func peripheralDidModifyServices(_ services: [AttributeID]) {
        guard target.withLock({ $0.service.map(services.contains) ?? false }) else { return }
        end(FerryError(.disconnected, "The peripheral withdrew its service; connect again to find it anew."))
    }

    func peripheralDidDisconnect(_ reason: BluetoothError) {
        claim.release()
        let isClosed = target.withLock { $0.isClosed }
        gate.close(isClosed ? .closedHere : FerryError("The connection to the peripheral ended", reason))
    }

    private func end(_ reason: FerryError) {
        claim.release()
        gate.close(reason)
        target.withLock { $0.connection }?.disconnect()
    }
}

extension FerryError {
    static var closedHere: FerryError { FerryError(.closed, "This side closed the link.") }

    static var neverActivated: FerryError {
        FerryError(
            .queueFull,
            "Chunks arrived on a link that nobody had activated, more than are held. Make the channel as soon as the link "
                + "is there.")
    }
}
