import Ferry
import Synchronization

/// The central's end of a GATT link: writes towards the peripheral, notifications or indications from it.
final class GATTCentralLink: Link, PeripheralConnectionEvents {
    private let connection: any PeripheralConnection
    private let service: AttributeID
    private let inbound: AttributeID
    private let outbound: AttributeID
    private let writeType: WriteType
    private let limit: Int
    private let gate = ReceiverGate()
    private let sizeCheck = ChunkSizeCheck()

    /// - Parameter limit: the most bytes of a chunk, whatever the connection takes.
    init(
        _ connection: any PeripheralConnection, service: AttributeID, inbound: AttributeID, outbound: AttributeID,
        writeType: WriteType, limit: Int
    ) {
        self.connection = connection
        self.service = service
        self.inbound = inbound
        self.outbound = outbound
        self.writeType = writeType
        self.limit = limit
    }

    // MARK: Link

    var peer: PeerIdentity { connection.identity }

    var maximumChunkSize: Int { sizeCheck.note(min(connection.maximumWriteLength(writeType), limit)) }

    func activate(_ receiver: any LinkReceiver) { gate.activate(receiver) }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        try sizeCheck.check(chunk, for: self)
        do {
            return try connection.tryWriteValue(chunk, to: outbound, type: writeType)
        } catch {
            throw FerryError("Cannot write to the peripheral", error)
        }
    }

    func setReceiving(_ isReceiving: Bool) { connection.setReceiving(isReceiving) }

    func close() { connection.disconnect() }

    // MARK: PeripheralConnectionEvents

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        guard characteristic == inbound, value.byteCount > 0 else { return }
        guard gate.receive(value) else {
            gate.close(.neverActivated)
            connection.disconnect()
            return
        }
    }

    func peripheralIsReadyToWrite() { gate.ready() }

    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        guard characteristic == outbound else { return }
        switch result {
        case .success: gate.ready()
        case .failure(let error):
            gate.close(FerryError("The peripheral refused a chunk", error))
            connection.disconnect()
        }
    }

    func peripheralDidModifyServices(_ services: [AttributeID]) {
        guard services.contains(service) else { return }
        gate.close(FerryError(.disconnected, "The peripheral withdrew its service; connect again to find it anew."))
        connection.disconnect()
    }

    func peripheralDidDisconnect(_ reason: BluetoothError) {
        gate.close(FerryError("The connection to the peripheral ended", reason))
    }
}

extension FerryError {
    static var neverActivated: FerryError {
        FerryError(
            .queueFull,
            "Chunks arrived on a link that nobody had activated, more than are held. Make the channel as soon as the link "
                + "is there.")
    }
}
