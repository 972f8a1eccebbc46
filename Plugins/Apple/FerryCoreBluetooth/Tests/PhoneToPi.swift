// swift-format-ignore-file
// The code of the article "From an iPhone to a Raspberry Pi", which is compiled and run here.
import Ferry
import FerryBluetooth
import FerryJSON
import FerrySequenced

/// The Raspberry Pi: takes the readings of each phone that comes, until its task is cancelled.
func collectReadings(on bluetooth: any BluetoothAdapter, _ keep: @escaping @Sendable (PeerIdentity, Reading) async throws -> Void) async throws {
    let transport = ReconnectingTransport(over: GATTTransport(adapter: bluetooth, configuration: try Layout.make()))
    let listener = try await transport.listen()
    defer { listener.close() }
    await withDiscardingTaskGroup { group in
        for await link in listener.links {
            group.addTask {
                do {
                    let channel = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
                    for try await reading in channel.messages { try await keep(link.peer, reading) }
                } catch { print("\(link.peer): \(error)") }
            }
        }
    }
}

/// What the Raspberry Pi's program does once it has an adapter.  // not shown
func printReadings(from adapter: any BluetoothAdapter) async throws {  // not shown
    try await collectReadings(on: adapter) { peer, reading in print(peer, reading) }
}  // not shown

/// The iPhone: sends what it has, and returns when the Raspberry Pi has all of it.
func sendReadings(_ readings: [Reading], over bluetooth: any BluetoothAdapter) async throws {
    let transport = ReconnectingTransport(over: GATTTransport(adapter: bluetooth, configuration: try Layout.make()))
    let link = try await transport.connect(timeout: .seconds(60))
    let channel = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
    defer { channel.close() }
    // Each send waits while the link is full, and returns when the other side has the reading, also over a lost connection.
    for reading in readings { try await channel.send(reading) }
}
