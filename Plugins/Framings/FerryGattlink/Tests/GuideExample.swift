import Ferry
import FerryBluetooth
import FerryGattlink

/// What the article on formats of devices shows.
func pingAsTheGuideDoes(_ adapter: any BluetoothAdapter, _ echoRequest: [UInt8]) async throws {
    let link = try await GATTTransport(adapter: adapter, configuration: .gattlink).connect(timeout: .seconds(10))
    let device = try MessageChannel(over: link, codec: BytesCodec(), framing: GattlinkFraming())
    try await device.send(echoRequest)  // an IPv4 datagram
    for try await datagram in device.messages { print(datagram.count) }
}
