import Ferry
import FerryBluetooth
import Synchronization
import TestSupport
import Testing

@testable import FerryCoreBluetooth

/// The peripheral role of tvOS and watchOS, which lack one for apps.
@Suite(.tags(.adapter, .coreBluetooth), .timeLimit(.minutes(5))) struct UnsupportedRoleTests {
    private final class Owner: PeripheralRoleEvents {
        let states = Mutex<[AdapterState]>([])
        func peripheralAdapterDidChange(_ state: AdapterState) { states.withLock { $0.append(state) } }
    }

    @Test func roleReportsThatItIsUnsupported() async throws {
        let owner = Owner()
        let role = UnsupportedPeripheralRole(owner)
        try await until("a state") { owner.states.withLock { !$0.isEmpty } }
        #expect(owner.states.withLock { $0 } == [.unsupported])
        role.close()
    }

    @Test func eachCallFailsWithNotSupported() async throws {
        let owner = Owner()
        let role: any PeripheralRole = UnsupportedPeripheralRole(owner)
        func refuses(_ call: () async throws -> Void) async -> Bool {
            do { try await call() } catch { return (error as? BluetoothError)?.code == .notSupported }
            return false
        }
        #expect(
            await refuses {
                _ = try await role.publish(ServiceDefinition(BluetoothUUID(0xFE01 as UInt16), characteristics: []))
            })
        #expect(await refuses { _ = try await role.startAdvertising(Advertisement()) })
        #expect(await refuses { _ = try await role.publishL2CAPChannel(encryptionRequired: false) })
        #expect(
            await refuses {
                _ = try role.tryUpdateValue(([1] as [UInt8]).span.bytes, of: AttributeID(rawValue: 1), for: .all)
            })
    }
}
