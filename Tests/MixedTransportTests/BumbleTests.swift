#if HCI && BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import Foundation
    import Synchronization
    import Testing

    extension MixedTests {
        /// The programs of `Tests/Interop`, on the user channel of hci0.
        private static func bumble(_ program: String) -> Task<String, any Error> {
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return Task {
                try await Guest.output(
                    root.appending(path: ".build-interop/venv/bin/python").path,
                    ["-u", root.appending(path: "Tests/Interop/\(program)").path, "hci-socket:0"])
            }
        }

        private static let card = Array(
            String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4).utf8.prefix(158))

        /// What those programs know.
        private static let layout = (
            service: BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128),
            characteristic: BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)
        )

        /// Python takes its time in an emulated machine. What it printed is told when it took too long.
        private static func wait(
            for what: String, _ program: Task<String, any Error>, until condition: () -> Bool
        ) async throws {
            for _ in 0..<2 {
                do { return try await Guest.wait(for: what, until: condition) } catch {}
            }
            program.cancel()
            Issue.record("Bumble's output: \((try? await program.value) ?? "none")")
            try await Guest.wait(for: what, until: condition)
        }

        @Test func bluezServesACardToBumble() async throws {
            let server = CardServer()
            let role = try await Guest.bluez().openPeripheral(server)
            let published = try await role.publish(
                ServiceDefinition(
                    Self.layout.service,
                    characteristics: [
                        CharacteristicDefinition(
                            Self.layout.characteristic, properties: [.notify, .read], permissions: .readable)
                    ]))
            _ = try await role.startAdvertising(Advertisement(services: [Self.layout.service]))
            let central = Self.bumble("central.py")
            try await Self.wait(for: "Bumble to subscribe", central) { server.isSubscribed }
            let pieces =
                stride(from: 0, to: Self.card.count, by: 20).map { Array(Self.card[$0...].prefix(20)) }
                + [Array("EOM".utf8)]
            for piece in pieces {
                #expect(try role.tryUpdateValue(piece.span.bytes, of: published.characteristics[0], for: .all))
            }
            let output = try await central.value
            #expect(output.contains("match = True"), "\(output)")
            role.close()
        }

        @Test func bluezFetchesACardFromBumble() async throws {
            let peripheral = Self.bumble("peripheral.py")
            let reader = CardReader()
            let role = try await Guest.bluez().openCentral(reader)
            try role.startScan(ScanRequest(services: [Self.layout.service]))
            try await Self.wait(for: "Bumble to be found", peripheral) { reader.found != nil }
            role.stopScan()
            let connection = try await role.connect(to: try #require(reader.found))
            connection.activate(reader)
            let service = try #require(try await connection.discoverServices([Self.layout.service]).first)
            let characteristic = try #require(
                try await connection.discoverCharacteristics([Self.layout.characteristic], of: service.id).first)
            try await connection.setSubscription(.notify, to: characteristic.id)
            try await Guest.wait(for: "the card") { reader.values.last == Array("EOM".utf8) }
            #expect(Array(reader.values.dropLast().joined()) == Self.card)
            connection.disconnect()
            let output = try await peripheral.value
            #expect(output.contains("P: disconnected"), "\(output)")
            role.close()
        }
    }

    private final class CardServer: PeripheralRoleEvents, Sendable {
        private let subscribed = Mutex(false)
        var isSubscribed: Bool { subscribed.withLock { $0 } }

        func peripheral(_ central: PeerID, didSubscribeTo characteristic: AttributeID, as: Subscription) {
            subscribed.withLock { $0 = true }
        }
    }

    private final class CardReader: CentralRoleEvents, PeripheralConnectionEvents, Sendable {
        private let state = Mutex<(found: PeerID?, values: [[UInt8]])>((nil, []))
        var found: PeerID? { state.withLock { $0.found } }
        var values: [[UInt8]] { state.withLock { $0.values } }

        func peripheralDidDisconnect(_ reason: BluetoothError) {}
        func centralDidDiscover(_ discovery: Discovery) { state.withLock { $0.found = discovery.peripheral } }
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
            let bytes = value.withUnsafeBytes { Array($0) }
            state.withLock { $0.values.append(bytes) }
        }
    }
#endif
