import Ferry
import FerryBluetooth
import FerrySMP

/// What the article FormatsOfDevices shows.
func manageAsTheArticleDoes(_ adapter: any BluetoothAdapter) async throws {
    let transport = GATTTransport(adapter: adapter, configuration: .smp)
    let link = try await transport.connect(timeout: .seconds(10))
    let device = try SMPClient(over: link)
    let answer = try await device.echo("hello")
    print(answer)
}
