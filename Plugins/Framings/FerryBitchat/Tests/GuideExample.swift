import Ferry
import FerryBitchat
import FerryBluetooth

/// What the article on formats of devices shows.
func listenAsTheGuideDoes(_ adapter: any BluetoothAdapter) async throws {
    let link = try await GATTTransport(adapter: adapter, configuration: .bitchat).connect(timeout: .seconds(10))
    let neighbour = try MessageChannel(over: link, codec: BytesCodec(), framing: BitchatFraming())
    for try await bytes in neighbour.messages {
        let packet = try BitchatPacket(decoding: bytes)
        print(packet.type, packet.sender, packet.payload.count)
    }
}
