import Ferry
import FerryBluetooth
import FerryJSON
import FerryLoopback

struct Reading: Codable, Sendable { var sensor: String; var celsius: Double }

let radio = LoopbackRadio()  // or any other BluetoothAdapter
let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))

// The peripheral: wait for a central, send it a record.
let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
async let serving: Void = {
    for await link in listener.links {
        let channel = MessageChannel(over: link, codec: JSONCodec<Reading>())
        try await channel.send(Reading(sensor: "deck", celsius: 21.5))
        return channel.close()
    }
}()

// The central: connect, print what arrives until the peripheral leaves.
let link = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).connect(timeout: .seconds(10))
for try await reading in MessageChannel(over: link, codec: JSONCodec<Reading>()).messages { print(reading) }
try await serving
