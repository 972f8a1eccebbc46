import Ferry
import FerryBluetooth
import FerryCoreBluetooth
import FerryJSON
import FerryLoopback
import FerrySequenced

struct Reading: Codable, Sendable {
    var celsius: Double
}

// A reading crosses the virtual radio.
let radio = LoopbackRadio()
let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
let link = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).connect(timeout: .seconds(10))
let sensor = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
let phone = Task {
    for await link in listener.links.prefix(1) {
        let channel = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
        for try await reading in channel.messages.prefix(1) { return reading.celsius }
    }
    return 0
}
try await sensor.send(Reading(celsius: 21.5))
print("a reading of \(try await phone.value) crossed")

// What the app does on a phone; this machine may have no adapter.
_ = CoreBluetoothAdapter.self
