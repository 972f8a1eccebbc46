import Ferry
import FerryBluetooth

/// GATT over an adapter that is opened when it is first needed: a name on the command line is checked before, and nothing
/// is taken that is not used.
struct DeferredTransport: Transport {
    let configuration: GATTConfiguration
    let open: @Sendable () async throws(BluetoothError) -> any BluetoothAdapter

    private func transport() async throws(FerryError) -> GATTTransport {
        do throws(BluetoothError) {
            return GATTTransport(adapter: try await open(), configuration: configuration)
        } catch {
            throw FerryError(.transportUnavailable, error.message)
        }
    }

    func listen() async throws(FerryError) -> LinkListener { try await transport().listen() }

    func connect(timeout: Duration) async throws(FerryError) -> any Link {
        try await transport().connect(timeout: timeout)
    }

    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        try await transport().connect(to: peer, timeout: timeout)
    }
}
