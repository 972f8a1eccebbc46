import Ferry
import FerryBluetooth
import TestSupport

@testable import FerryLoopback

let testService = BluetoothUUID(0xE07F0AE8_00BB_47F5_94F4_4A7174EA3032 as UInt128)
let testCharacteristic = BluetoothUUID(0x9D534E8B_2153_4F6D_B2B0_8C68665A7274 as UInt128)

/// Two adapters, one with a published service, the other connected to it: where most tests start.
struct World: Sendable {
    let time: VirtualTime
    let radio: LoopbackRadio
    let server: LoopbackAdapter
    let client: LoopbackAdapter
    let peripheralOwner = PeripheralOwner()
    let centralOwner = CentralOwner()
    let peripheral: any PeripheralRole
    let central: any CentralRole

    init(_ configure: (inout LoopbackRadio.Configuration) -> Void = { _ in }) throws {
        time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configure(&configuration)
        radio = try LoopbackRadio(time: time, configuration: configuration)
        server = radio.makeAdapter(name: "server")
        client = radio.makeAdapter(name: "client")
        peripheral = server.openPeripheral(peripheralOwner)
        central = client.openCentral(centralOwner)
        settle()
    }

    /// Carries out what is due now, without letting time pass.
    func settle() { time.advance(by: .zero) }

    func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try time.run(within: .seconds(120), body)
    }

    static func definition(
        _ properties: CharacteristicProperties = [.read, .write, .writeWithoutResponse, .notify],
        permissions: AttributePermissions = [.readable, .writeable], value: [UInt8]? = nil
    ) -> ServiceDefinition {
        ServiceDefinition(
            testService,
            characteristics: [
                CharacteristicDefinition(
                    testCharacteristic, properties: properties, permissions: permissions, value: value)
            ])
    }

    /// Publishes a service and advertises it.
    func publish(_ definition: ServiceDefinition = World.definition()) async throws -> PublishedService {
        try await run {
            let service = try await peripheral.publish(definition)
            _ = try await peripheral.startAdvertising(Advertisement(localName: "server", services: [definition.uuid]))
            return service
        }
    }

    /// Connects another central, or the first, with a witness of its events.
    func connect(
        _ central: (any CentralRole)? = nil, on adapter: LoopbackAdapter? = nil
    ) async throws -> (any PeripheralConnection, ConnectionOwner) {
        let owner = ConnectionOwner()
        let central = central ?? self.central
        let peer = (adapter ?? client).identifier(of: server)
        let connection = try await run { try await central.connect(to: peer, events: owner) }
        settle()
        return (connection, owner)
    }
}
