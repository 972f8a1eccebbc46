import Ferry
import FerryBluetooth
import FerryPFTP

/// What the article on formats of devices shows.
func listAsTheGuideDoes(_ adapter: any BluetoothAdapter) async throws {
    let link = try await GATTTransport(adapter: adapter, configuration: .polarPFTP).connect(timeout: .seconds(10))
    let device = try PFTPClient(over: link)
    for entry in try await device.list("/U/0/") { print(entry.name, entry.size) }
}
