import Ferry
import FerryBluetooth
import FerryTransports
import Synchronization

/// Peripherals to try the commands with, on adapters of a virtual radio: a room sensor and a heart-rate belt, whose values
/// change twice a second.
final class Demonstration: Sendable {
    private let parts: [DemonstrationPeripheral]

    init(_ adapters: [OpenedAdapter]) async throws(BluetoothError) {
        var parts: [DemonstrationPeripheral] = []
        for (adapter, profile) in zip(adapters, DemonstrationProfile.all) {
            parts.append(try await DemonstrationPeripheral(adapter.adapter, profile))
        }
        self.parts = parts
    }

    /// How many adapters it takes.
    static let count = DemonstrationProfile.all.count

    func close() { for part in parts { part.close() } }
}

/// What a peripheral of the demonstration offers.
struct DemonstrationProfile: Sendable {
    var name: String
    var services: [ServiceDefinition]
    /// The values at a step; the others stay as they were.
    var values: @Sendable (_ step: Int) -> [BluetoothUUID: [UInt8]]

    /// A note that can be read and written: 128-bit UUIDs are an app's own.
    static let noteService = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3050 as UInt128)
    static let note = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3051 as UInt128)
    private static let temperature = BluetoothUUID(0x2A6E as UInt16)
    private static let humidity = BluetoothUUID(0x2A6F as UInt16)

    static let all = [
        DemonstrationProfile(
            name: "Ferry room",
            services: [
                ServiceDefinition(
                    .deviceInformation,
                    characteristics: [
                        fixed(.manufacturerNameString, "Ferry"), fixed(.modelNumberString, "Demonstration"),
                    ]),
                ServiceDefinition(.battery, characteristics: [measured(.batteryLevel)]),
                ServiceDefinition(.environmentalSensing, characteristics: [measured(temperature), measured(humidity)]),
                ServiceDefinition(
                    noteService,
                    characteristics: [
                        CharacteristicDefinition(
                            note, properties: [.read, .write, .writeWithoutResponse],
                            permissions: [.readable, .writeable],
                            descriptors: [
                                DescriptorDefinition(.characteristicUserDescription, value: Array("A note".utf8))
                            ])
                    ]),
            ]
        ) { step in
            // Hundredths of a degree Celsius, and of a percent (GATT Specification Supplement 3.226 and 3.129).
            let degrees = Int16(2150 + 10 * (step % 20))
            let share = UInt16(4500 - 5 * (step % 20))
            return [
                .batteryLevel: [UInt8(87 - step / 20 % 80)],
                temperature: [UInt8(truncatingIfNeeded: degrees), UInt8(truncatingIfNeeded: degrees >> 8)],
                humidity: [UInt8(truncatingIfNeeded: share), UInt8(truncatingIfNeeded: share >> 8)],
            ]
        },
        DemonstrationProfile(
            name: "Ferry belt",
            services: [
                ServiceDefinition(
                    .heartRate,
                    characteristics: [
                        CharacteristicDefinition(.heartRateMeasurement, properties: [.notify], permissions: [.readable])
                    ])
            ]
        ) { step in [.heartRateMeasurement: [0, UInt8(62 + step % 9)]] },
    ]

    private static func fixed(_ uuid: BluetoothUUID, _ text: String) -> CharacteristicDefinition {
        CharacteristicDefinition(uuid, properties: [.read], permissions: [.readable], value: Array(text.utf8))
    }

    private static func measured(_ uuid: BluetoothUUID) -> CharacteristicDefinition {
        CharacteristicDefinition(uuid, properties: [.read, .notify], permissions: [.readable])
    }
}

/// One peripheral of the demonstration.
private final class DemonstrationPeripheral: PeripheralRoleEvents {
    private struct State {
        var role: (any PeripheralRole)?
        var values: [AttributeID: [UInt8]] = [:]
        var step = 0
        var timer: ScheduledTimer?
    }

    private let profile: DemonstrationProfile
    private let names: Mutex<[AttributeID: BluetoothUUID]> = Mutex([:])
    private let state = Mutex(State())
    private let time = SystemTime()

    init(_ adapter: any BluetoothAdapter, _ profile: DemonstrationProfile) async throws(BluetoothError) {
        self.profile = profile
        let role = adapter.openPeripheral(self)
        state.withLock { $0.role = role }
        for service in profile.services {
            let published = try await role.publish(service)
            for (definition, id) in zip(service.characteristics, published.characteristics) {
                names.withLock { $0[id] = definition.uuid }
                if definition.value == nil { state.withLock { $0.values[id] = [] } }
            }
        }
        change()
        let short = profile.services.map(\.uuid).filter { $0.bitWidth < 128 }
        _ = try await role.startAdvertising(Advertisement(localName: profile.name, services: short))
    }

    func close() {
        let (role, timer) = state.withLock { state in
            defer { state = State() }
            return (state.role, state.timer)
        }
        timer?.cancel()
        role?.close()
    }

    /// Takes the next step, tells subscribers, and asks for the one after.
    private func change() {
        let names = names.withLock { $0 }
        let (role, changed) = state.withLock { state -> ((any PeripheralRole)?, [AttributeID: [UInt8]]) in
            guard let role = state.role else { return (nil, [:]) }
            let values = profile.values(state.step)
            state.step += 1
            var changed: [AttributeID: [UInt8]] = [:]
            for (id, uuid) in names { if let value = values[uuid] { changed[id] = value } }
            state.values.merge(changed) { $1 }
            state.timer = time.schedule(at: time.now + .milliseconds(500)) { [weak self] in self?.change() }
            return (role, changed)
        }
        for (id, value) in changed.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            // Values that find no place are passed over: there is a new one soon.
            _ = try? role?.tryUpdateValue(value.span.bytes, of: id, for: .all)
        }
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        let (role, value) = state.withLock { ($0.role, $0.values[request.characteristic]) }
        guard let value, request.offset <= value.count else {
            role?.respond(to: request.id, with: .failure(value == nil ? .attributeNotFound : .invalidOffset))
            return
        }
        role?.respond(to: request.id, with: .success(Array(value.dropFirst(request.offset))))
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        let (role, error) = state.withLock { state -> ((any PeripheralRole)?, ATTError?) in
            var values = state.values
            for part in request.parts {
                // The first part of a value replaces the value.
                var value = part.offset == 0 ? [] : values[part.characteristic] ?? []
                guard part.offset == value.count else { return (state.role, .invalidOffset) }
                value += part.value
                values[part.characteristic] = value
            }
            state.values = values
            return (state.role, nil)
        }
        role?.respond(to: request.id, with: error.map { .failure($0) } ?? .success([]))
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        let bytes = value.withUnsafeBytes { Array($0) }
        state.withLock { $0.values[characteristic] = bytes }
    }
}
