#if HCI && BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    extension MixedTests {
        @Test func bluezServesACardToBumble() async throws {
            let central = try Bumble.central("hci-socket:0")
            try await Bumble.serve(on: try await Guest.bluez())
            try await Bumble.hasTheCard(central)
        }

        @Test func bluezFetchesACardFromBumble() async throws {
            let peripheral = try Bumble.peripheral("hci-socket:0")
            try await Bumble.fetch(with: try await Guest.bluez())
            try await Bumble.isDone(peripheral)
        }
    }

    /// The programs of `Tests/Interop`, and what they expect.
    enum Bumble {
        private static let card = Array(
            String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4).utf8.prefix(158))
        private static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
        private static let characteristic = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)

        static func central(_ transport: String) throws -> Program { try start("central.py", transport) }
        static func peripheral(_ transport: String) throws -> Program { try start("peripheral.py", transport) }

        private static func start(_ program: String, _ transport: String) throws -> Program {
            return try Program(
                packageFolder.appending(path: ".build-interop/venv/bin/python").path,
                ["-u", packageFolder.appending(path: "Tests/Interop/\(program)").path, transport])
        }

        static func hasTheCard(_ central: Program) async throws { try await end(central, "match = True") }
        static func isDone(_ peripheral: Program) async throws { try await end(peripheral, "P: disconnected") }

        private static func end(_ program: Program, _ text: String) async throws {
            try await until("Bumble to end") { !program.isRunning || program.text.contains("Error") }
            #expect(program.text.contains(text), "\(program.text)")
        }

        /// Hands the card to one central, and sees it leave.
        static func serve(on adapter: any BluetoothAdapter) async throws {
            let server = CardServer()
            let role = adapter.openPeripheral(server)
            defer { role.close() }
            let published = try await role.publish(
                ServiceDefinition(
                    service,
                    characteristics: [
                        CharacteristicDefinition(characteristic, properties: [.notify, .read], permissions: .readable)
                    ]))
            _ = try await role.startAdvertising(Advertisement(services: [service]))
            try await until("Bumble to subscribe") { server.isSubscribed }
            let pieces = stride(from: 0, to: card.count, by: 20).map { Array(card[$0...].prefix(20)) }
            for piece in pieces + [Array("EOM".utf8)] {
                #expect(try role.tryUpdateValue(piece.span.bytes, of: published.characteristics[0], for: .all))
            }
            try await until("Bumble to leave") { server.isAlone }
        }

        /// Fetches the card from one peripheral.
        static func fetch(with adapter: any BluetoothAdapter) async throws {
            let reader = CardReader()
            let role = adapter.openCentral(reader)
            defer { role.close() }
            try role.startScan(ScanRequest(services: [service]))
            try await until("Bumble to be found") { reader.found != nil }
            role.stopScan()
            let connection = try await role.connect(to: try #require(reader.found), events: reader)
            let service = try #require(try await connection.discoverServices([service]).first)
            let characteristic = try #require(
                try await connection.discoverCharacteristics([characteristic], of: service.id).first)
            try await connection.setSubscription(.notify, to: characteristic.id)
            try await until("the card") { reader.values.last == Array("EOM".utf8) }
            #expect(Array(reader.values.dropLast().joined()) == card)
            connection.disconnect()
            try await until("the connection's end") { reader.isAlone }
        }
    }

    private final class CardServer: PeripheralRoleEvents, Sendable {
        private let state = Mutex((isSubscribed: false, isAlone: false))
        var isSubscribed: Bool { state.withLock { $0.isSubscribed } }
        var isAlone: Bool { state.withLock { $0.isAlone } }

        func central(_ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as: Subscription) {
            state.withLock { $0.isSubscribed = true }
        }
        func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
            state.withLock { $0.isAlone = true }
        }
    }

    private final class CardReader: CentralRoleEvents, PeripheralConnectionEvents, Sendable {
        private let state = Mutex<(found: PeerID?, values: [[UInt8]], isAlone: Bool)>((nil, [], false))
        var found: PeerID? { state.withLock { $0.found } }
        var values: [[UInt8]] { state.withLock { $0.values } }
        var isAlone: Bool { state.withLock { $0.isAlone } }

        func peripheralDidDisconnect(_ reason: BluetoothError) { state.withLock { $0.isAlone = true } }
        func centralDidDiscover(_ discovery: Discovery) { state.withLock { $0.found = discovery.peripheral } }
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
            let bytes = value.withUnsafeBytes { Array($0) }
            state.withLock { $0.values.append(bytes) }
        }
    }
#endif
