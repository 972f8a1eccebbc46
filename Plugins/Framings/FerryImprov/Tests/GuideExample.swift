import Ferry
import FerryBluetooth
import FerryImprov

/// What the article on formats of devices shows.
func provisionAsTheGuideDoes(_ adapter: any BluetoothAdapter) async throws {
    let link = try await GATTTransport(adapter: adapter, configuration: .improv()).connect(timeout: .seconds(10))
    let device = try await ImprovClient(over: link)
    try await device.authorized(within: .seconds(60))
    print(try await device.provision(ssid: "home", password: "secret"))
}
