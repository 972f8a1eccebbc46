import Ferry
import FerryBluetooth
import FerryUART

/// What the article FormatsOfDevices shows.
func talkAsTheArticleDoes(_ adapter: any BluetoothAdapter) async throws {
    let transport = GATTTransport(adapter: adapter, configuration: .nordicUART)
    let link = try await transport.connect(timeout: .seconds(10))
    let device = try MessageChannel(
        over: link, codec: TextCodec(), framing: UARTFraming(.lines(.carriageReturnLineFeed)))
    try await device.send("AT")
    for try await line in device.messages { print(line) }
}
