#if BlueZ
    import Ferry
    @testable import FerryBlueZ
    import FerryBluetooth
    import TestSupport
    import Testing

    /// Two adapters of a real bluetoothd pair with each other.
    @Suite(
        .tags(.adapter, .pairing), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct PairingTests {
        struct Way: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let peripheral: BlueZPairing.Capability
            let central: BlueZPairing.Capability
            var errs = false
            var isByItself = false
        }

        static let ways = [
            Way(testDescription: "Just Works", peripheral: .noInputNoOutput, central: .noInputNoOutput),
            Way(testDescription: "passkey", peripheral: .displayOnly, central: .keyboardOnly),
            Way(testDescription: "wrong passkey", peripheral: .displayOnly, central: .keyboardOnly, errs: true),
            Way(
                testDescription: "numeric comparison, for a channel", peripheral: .displayYesNo,
                central: .displayYesNo, isByItself: true),
        ]

        /// What the people at the peripheral and at the central are asked, in this order.
        private static let questions = [
            "Just Works": [["allow"], []], "passkey": [["show"], ["passkey"]],
            "wrong passkey": [["show"], ["passkey"]],
            // For what nobody has begun, the system's agent is asked; the kernel answers for the side that began.
            "numeric comparison, for a channel": [["compare"], []],
        ]

        @Test(arguments: ways) func pairs(_ way: Way) async throws {
            try await ChannelRig.end()
            // The central's person sees the peripheral's screen.
            let people = (Person(), Person())
            people.1.decide {
                $0.compare = { _ in !way.errs }
                $0.passkey = {
                    try? await people.0.journal.wait(for: "show ")
                    let number = people.0.journal.all.compactMap { Int($0.dropFirst("show ".count)) }.first
                    return number.map { way.errs ? ($0 + 1) % 1_000_000 : $0 }
                }
            }
            let serving = try await open("bluez:hci0", way.peripheral, people.0, isDefault: true)
            let asking = try await open("bluez:hci1", way.central, people.1, isDefault: false)
            let rig = try await ChannelRig.connect(serving, asking)
            let peer = try rig.connection.peripheral
            if way.isByItself {
                let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: true)
                let (near, _) = try await rig.open(psm)
                near.close()
            } else {
                do throws(BluetoothError) {
                    try await asking.pair(with: peer)
                    #expect(!way.errs)
                } catch {
                    #expect(way.errs && error.code == .att(.insufficientAuthentication), "\(error)")
                }
            }
            if !way.errs {
                let services = try await rig.connection.discoverServices([ChannelRig.service])
                let found = try await rig.connection.discoverCharacteristics(
                    nil, of: try #require(services.first).id)
                #expect(try await rig.connection.readValue(of: try #require(found.first).id) == ChannelRig.secret)
                #expect(await asking.bondedPeers == [peer])
            }
            #expect([people.0.questions, people.1.questions] == Self.questions[way.testDescription])
            try await asking.forget(peer)
            for central in await serving.bondedPeers { try await serving.forget(central) }
            try await until { rig.isOver }
            rig.close()
            serving.close()
            asking.close()
        }

        private func open(
            _ name: String, _ capability: BlueZPairing.Capability, _ person: Person, isDefault: Bool
        ) async throws -> BlueZAdapter {
            var pairing = BlueZPairing()
            pairing.capability = capability
            pairing.agent = person
            pairing.isDefault = isDefault
            return try await BlueZAdapter.open(name, pairing: pairing)
        }
    }
#endif
