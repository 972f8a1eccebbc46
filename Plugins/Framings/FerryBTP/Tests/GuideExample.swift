import Ferry
import FerryBTP
import FerryBluetooth

/// What Documentation/BTP.md shows.
func commissionAsTheGuideDoes(
    _ adapter: any BluetoothAdapter
) async throws -> MessageChannel<[UInt8], [UInt8]> {
    let transport = GATTTransport(adapter: adapter, configuration: .matterBTP)
    let link = try await transport.connect(timeout: .seconds(10))
    let device = try MessageChannel(over: link, codec: BytesCodec(), framing: BTPFraming())
    return device
}
