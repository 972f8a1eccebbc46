import Ferry
import Synchronization

/// The central's end of a GATT link: writes towards the peripheral, notifications or indications from it.
///
/// It owns its central role, and with that its connection: both end with it.
final class GATTCentralLink: Link {
    private let host: any CentralRole
    private let connection: any PeripheralConnection
    private let outbound: AttributeID
    private let writeType: WriteType
    private let limit: Int
    private let sizer: ValueSizer
    private let events: GATTCentralEvents
    private let sizeCheck = ChunkSizeCheck()
    private let isClosed = Atomic(false)

    /// - Parameter limit: the most bytes of a chunk, even where the connection takes more.
    init(
        _ host: any CentralRole, _ connection: any PeripheralConnection, _ events: GATTCentralEvents,
        outbound: AttributeID, writeType: WriteType, sizer: ValueSizer, limit: Int
    ) {
        self.host = host
        self.connection = connection
        self.events = events
        self.outbound = outbound
        self.writeType = writeType
        self.limit = limit
        self.sizer = sizer
    }

    deinit {
        if !isClosed.load(ordering: .relaxed) { events.tellEnd(on: connection) }
        host.close()
    }

    var peer: PeerIdentity { connection.identity }

    var role: LinkRole? { .initiator }

    var maximumChunkSize: Int { sizeCheck.note(min(connection.maximumWriteLength(writeType), limit, sizer.limit)) }

    func activate(_ receiver: any LinkReceiver) {
        events.gate.activate(receiver)
        events.begin()
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard !isClosed.load(ordering: .relaxed) else { throw events.gate.reason ?? .closedHere }
        try sizeCheck.check(chunk, for: self)
        do {
            guard events.isOpen else { return try events.tryFirst(chunk, writeType, on: connection) }
            let isTaken = try connection.tryWriteValue(chunk, to: outbound, type: writeType)
            sizer.note(isTaken, chunk.byteCount, to: connection.identity)
            if isTaken { events.chunkHasLeft() }
            return isTaken
        } catch {
            throw events.gate.reason ?? FerryError("Cannot write to the peripheral", error)
        }
    }

    func setReceiving(_ isReceiving: Bool) {
        connection.setReceiving(isReceiving)
        events.setReading(isReceiving)
    }

    func close() {
        if !isClosed.exchange(true, ordering: .relaxed) { events.tellEnd(on: connection) }
        events.linkWillClose()
        events.claim.release()
        connection.disconnect()
    }
}

extension BluetoothError {
    /// Whether a connection has ended without either side having ended it: nothing was heard, or no answer came.
    var isLoss: Bool { code == .connectionTimeout || code == .timedOut }
}

extension FerryError {
    static var closedHere: FerryError { FerryError(.closed, "This side closed the link.") }

    static var neverActivated: FerryError {
        FerryError(
            .queueFull,
            "Chunks arrived on a link that was not activated, more than are held. Make the channel as soon as the link "
                + "is there.")
    }
}
