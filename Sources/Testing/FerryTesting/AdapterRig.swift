import Ferry
import FerryBluetooth
import Synchronization

/// A peripheral with a service and a central that looks for it: what the checks of ``AdapterConformance`` begin with.
final class AdapterRig: Sendable {
    let peripheralAdapter: any BluetoothAdapter
    let centralAdapter: any BluetoothAdapter
    let deviations: AdapterConformance.Deviations
    let time: ConformanceTime
    let setInReach: (@Sendable (Bool) -> Void)?
    let name: String
    /// Guards the peripheral role's events; the connection's have their own.
    let calls = CallGuard()
    let connectionCalls = CallGuard()
    let witness: AdapterWitness
    let connectionWitness: ConnectionWitness
    let peripheral: any PeripheralRole
    let central: any CentralRole
    private let connections = Mutex<[any PeripheralConnection]>([])

    static let service = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0001 as UInt128)
    static let secondary = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0002 as UInt128)
    static let added = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0008 as UInt128)
    static let fixed = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0003 as UInt128)
    static let free = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0004 as UInt128)
    static let indicated = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0005 as UInt128)
    static let closed = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0006 as UInt128)
    static let answered = BluetoothUUID(0x6F0E_7C51_3B0D_4A52_9C34_5E0C_7E3C_0007 as UInt128)
    static let stranger = ConnectedCentral(peer: PeerID(rawValue: 1), connection: .max)
    static let description = BluetoothUUID(0x2901 as UInt16)
    static let fixedValue = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    /// Fits into the scan response beside the service.
    static let localName = "ferry"

    init(_ kit: AdapterConformance, _ requirement: AdapterConformance.Requirement) {
        peripheralAdapter = kit.peripheral
        centralAdapter = kit.central
        deviations = kit.deviations
        time = kit.time
        setInReach = kit.setInReach
        name = requirement.rawValue
        witness = AdapterWitness(calls: calls)
        connectionWitness = ConnectionWitness(calls: connectionCalls)
        peripheral = kit.peripheral.openPeripheral(witness)
        central = kit.central.openCentral(witness)
        let role = peripheral
        witness.record.withLock { $0.role = role }
    }

    func tearDown() async {
        for connection in connections.withLock({ $0 }) { connection.disconnect() }
        await time.pass(.milliseconds(100))
        central.close()
        peripheral.close()
        witness.record.withLock { record in
            record.role = nil
            record.onReady = nil
            record.onSubscribed = nil
            record.channels = []
        }
        connectionWitness.record.withLock { $0.onReady = nil }
        await time.pass(.milliseconds(100))
    }

    // MARK: Steps

    func require(_ condition: Bool, _ detail: @autoclosure () -> String) throws {
        guard condition else { throw ConformanceFailure(name, detail()) }
    }

    func run<Value: Sendable>(_ what: String, _ body: @escaping @Sendable () async throws -> Value) async throws
        -> Value
    {
        try await time.run(name, what, body)
    }

    func wait(for what: String, until condition: () -> Bool) async throws {
        try await time.wait(name, for: what, until: condition)
    }

    /// Expects a `BluetoothError` with one of these codes.
    func fails(
        _ what: String, with codes: BluetoothError.Code..., body: @escaping @Sendable () async throws -> Void
    ) async throws {
        do {
            try await run(what, body)
        } catch let error as BluetoothError {
            return try require(codes.contains(error.code), "\(what) threw \(error), not \(codes)")
        }
        throw ConformanceFailure(name, "\(what) did not throw; \(codes) was expected")
    }

    struct Service: Sendable {
        let id: AttributeID
        let fixed: AttributeID
        let free: AttributeID
        let indicated: AttributeID
        let closed: AttributeID
        let answered: AttributeID
    }

    /// Publishes the service of the checks and advertises it.
    func publish() async throws -> Service {
        try await wait(for: "the adapters to be powered on") {
            peripheralAdapter.state == .poweredOn && centralAdapter.state == .poweredOn
        }
        let peripheral = peripheral
        return try await run("publishing") {
            let inner = try await peripheral.publish(
                ServiceDefinition(Self.secondary, isPrimary: false, characteristics: []))
            let outer = try await peripheral.publish(
                ServiceDefinition(
                    Self.service, includedServices: [inner.id],
                    characteristics: [
                        CharacteristicDefinition(
                            Self.fixed, properties: .read, permissions: .readable, value: Self.fixedValue,
                            descriptors: [DescriptorDefinition(Self.description, value: [0x68, 0x69])]),
                        CharacteristicDefinition(
                            Self.free, properties: [.read, .write, .writeWithoutResponse, .notify],
                            permissions: [.readable, .writeable]),
                        CharacteristicDefinition(
                            Self.indicated, properties: .indicate, permissions: .readable),
                        CharacteristicDefinition(
                            Self.closed, properties: [.read, .write], permissions: []),
                        CharacteristicDefinition(
                            Self.answered, properties: .write, permissions: .writeable),
                    ]))
            _ = try await peripheral.startAdvertising(
                Advertisement(localName: Self.localName, services: [Self.service]))
            return Service(
                id: outer.id, fixed: outer.characteristics[0], free: outer.characteristics[1],
                indicated: outer.characteristics[2], closed: outer.characteristics[3],
                answered: outer.characteristics[4])
        }
    }

    /// Scans until the peripheral is found.
    func find() async throws -> PeerID {
        try central.startScan(ScanRequest(services: [Self.service]))
        try await wait(for: "the peripheral to be discovered") { witness.get { !$0.discoveries.isEmpty } }
        central.stopScan()
        guard let first = witness.get({ $0.discoveries.first }) else {
            throw ConformanceFailure(name, "nothing was discovered")
        }
        return first.peripheral
    }

    /// What the central sees of the service.
    struct Remote: Sendable {
        let connection: any PeripheralConnection
        let service: RemoteService
        let fixed: RemoteCharacteristic
        let free: RemoteCharacteristic
        let indicated: RemoteCharacteristic
        let closed: RemoteCharacteristic
        let answered: RemoteCharacteristic
    }

    /// What writes with response go to.
    func requested(_ remote: Remote) -> RemoteCharacteristic {
        deviations.contains(.writesAreCommands) ? remote.answered : remote.free
    }

    /// The same as its owner knows it.
    func requested(_ published: Service) -> AttributeID {
        deviations.contains(.writesAreCommands) ? published.answered : published.free
    }

    /// Publishes, connects and discovers.
    func connect() async throws -> (Service, Remote) {
        let published = try await publish()
        let peer = try await find()
        let remote = try await connect(to: peer, connectionWitness)
        return (published, remote)
    }

    /// Connects and discovers.
    func connect(to peer: PeerID, _ events: ConnectionWitness) async throws -> Remote {
        let central = central
        let connection = try await run("connecting") { try await central.connect(to: peer, events: events) }
        connections.withLock { $0.append(connection) }
        let remote = try await discover(connection)
        await time.pass(.milliseconds(100))
        return remote
    }

    private func discover(_ connection: any PeripheralConnection) async throws -> Remote {
        let name = name
        return try await run("discovery") {
            let services = try await connection.discoverServices([Self.service])
            guard let service = services.first, services.count == 1 else {
                throw ConformanceFailure(name, "discoverServices found \(services.count) services for one UUID")
            }
            let found = try await connection.discoverCharacteristics(nil, of: service.id)
            func pick(_ uuid: BluetoothUUID) throws -> RemoteCharacteristic {
                guard let match = found.first(where: { $0.uuid == uuid }) else {
                    throw ConformanceFailure(name, "the characteristic \(uuid.uuidString) was not discovered")
                }
                return match
            }
            return Remote(
                connection: connection, service: service, fixed: try pick(Self.fixed), free: try pick(Self.free),
                indicated: try pick(Self.indicated), closed: try pick(Self.closed),
                answered: try pick(Self.answered))
        }
    }

    /// Subscribes, and returns the central's name as the peripheral knows it.
    func subscribe(
        _ remote: Remote, to characteristic: RemoteCharacteristic, as subscription: Subscription
    ) async throws -> ConnectedCentral {
        let connection = remote.connection
        let id = characteristic.id  // capturing the 16-byte aligned structure itself crashes Swift 6.3.1
        try await run("subscribing") { try await connection.setSubscription(subscription, to: id) }
        try await wait(for: "didSubscribe") { witness.get { !$0.subscribed.isEmpty } }
        guard let central = witness.get({ $0.subscribed.last }) else {
            throw ConformanceFailure(name, "no central has subscribed")
        }
        return central
    }

    func tryUpdate(
        _ value: [UInt8], of characteristic: AttributeID, for recipients: UpdateRecipients
    ) throws(BluetoothError) -> Bool {
        try calls.call { () throws(BluetoothError) in
            try peripheral.tryUpdateValue(value.span.bytes, of: characteristic, for: recipients)
        }
    }

    func tryWrite(
        _ value: [UInt8], to characteristic: RemoteCharacteristic, _ type: WriteType, _ remote: Remote
    ) throws(BluetoothError) -> Bool {
        try connectionCalls.call { () throws(BluetoothError) in
            try remote.connection.tryWriteValue(value.span.bytes, to: characteristic.id, type: type)
        }
    }

    /// Whether more values are to be sent: a fixed number, and more where the queue was never full, for on a busy machine the sender
    /// may be slower than the link for a while.
    func mustGoOn(_ sent: Int, of total: Int, _ refusals: Int) -> Bool {
        sent < total || refusals == 0 && sent < 16 * total && !deviations.contains(.neverFull)
    }

    static func numbered(_ index: Int, size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: index &+ $0 &* 13) }
    }
}
