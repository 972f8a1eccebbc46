import Ferry
import FerryBluetooth
import FerryMdoc

/// What Documentation/Mdoc.md shows.
func readAsTheGuideDoes(
    _ adapter: any BluetoothAdapter, _ service: BluetoothUUID
) async throws -> MessageChannel<[UInt8], [UInt8]> {
    let layout = GATTConfiguration.mdocPeripheralServer(service: service)
    let link = try await GATTTransport(adapter: adapter, configuration: layout).connect(timeout: .seconds(10))
    let reader = try MessageChannel(over: link, codec: BytesCodec(), framing: MdocFraming())
    return reader
}
