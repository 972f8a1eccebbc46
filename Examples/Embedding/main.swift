import Ferry
import FerryBluetooth
import FerryJSON
import FerryLoopback

let radio = LoopbackRadio()  // or any other BluetoothAdapter
let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
let link = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).connect(timeout: .seconds(10))
let sensor = try MessageChannel(over: link, codec: JSONCodec<[String: Double]>())
try await sensor.send(["celsius": 21.5])
for await link in listener.links.prefix(1) {
    let phone = try MessageChannel(over: link, codec: JSONCodec<[String: Double]>())
    for try await reading in phone.messages.prefix(1) { print(reading) }
}
