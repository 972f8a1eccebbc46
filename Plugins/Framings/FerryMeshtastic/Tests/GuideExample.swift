import Ferry
import FerryBluetooth
import FerryMeshtastic

/// What the article on formats of devices shows.
func downloadAsTheGuideDoes(_ adapter: any BluetoothAdapter) async throws {
    let link = try await GATTTransport(adapter: adapter, configuration: .meshtastic).connect(timeout: .seconds(10))
    let radio = try MessageChannel(over: link, codec: BytesCodec(), framing: MeshtasticFraming())
    try await radio.send([0x18, 42])  // want_config_id = 42: the radio tells all that it knows
    for try await fromRadio in radio.messages { print(fromRadio.count) }
}
