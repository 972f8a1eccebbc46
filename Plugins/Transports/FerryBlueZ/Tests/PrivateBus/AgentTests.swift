#if BlueZ
    @testable import FerryBlueZ
    import FerryBluetooth
    import Synchronization
    import TestSupport
    import Testing

    /// The pairing agent, asked by a bluetoothd that is not one, on a bus of its own.
    @Suite(
        .tags(.adapter, .pairing), .enabled(if: PrivateBus.isHere, "needs dbus-daemon; not in the virtual machine"),
        .timeLimit(.minutes(5)))
    struct AgentTests {
        private struct Setting {
            let bus: PrivateBus
            let daemon: FakeDaemon
            let adapter: BlueZAdapter
            var peer: PeerID { adapter.engine.shared.withLock { $0.peer(FakeDaemon.device) } }

            init(
                _ person: Person?, _ capability: BlueZPairing.Capability = .keyboardDisplay,
                prepare: (FakeDaemon) -> Void = { _ in }
            ) async throws {
                bus = try PrivateBus()
                daemon = try await FakeDaemon(bus.address)
                prepare(daemon)
                var configuration = BlueZConfiguration()
                configuration.busAddress = bus.address
                var pairing = BlueZPairing()
                pairing.capability = capability
                pairing.agent = person
                adapter = try await BlueZAdapter.open("bluez", configuration: configuration, pairing: pairing)
            }

            func close() {
                adapter.close()
                daemon.stop()
            }
        }

        private static let device = BusValue.path(FakeDaemon.device)

        private func name(_ answer: FakeDaemon.Answer) -> String {
            switch answer {
            case .success(let values): "\(values)"
            case .failure(let error): String(error.name.split(separator: ".").last ?? "")
            }
        }

        @Test func itIsRegisteredForTheSystem() async throws {
            let setting = try await Setting(Person(), .displayYesNo)
            defer { setting.close() }
            #expect(setting.daemon.arguments(of: "RegisterAgent") == [.path("/ferry/agent"), .string("DisplayYesNo")])
            #expect(setting.daemon.arguments(of: "RequestDefaultAgent") == [.path("/ferry/agent")])
        }

        @Test func thePersonIsAsked() async throws {
            let person = Person { $0.passkey = { 7 } }
            let setting = try await Setting(person)
            defer { setting.close() }
            let device = Self.device, number = BusValue.uint32(123456)
            let daemon = setting.daemon
            for entered: UInt16 in [0, 1, 2] {
                #expect(name(await daemon.ask("DisplayPasskey", [device, number, .uint16(entered)])) == "[]")
            }
            #expect(name(await daemon.ask("RequestConfirmation", [device, number])) == "[]")
            let passkey = await daemon.ask("RequestPasskey", [device])
            #expect(try passkey.get() == [.uint32(7)])
            #expect(name(await daemon.ask("RequestAuthorization", [device])) == "[]")
            let service = BusValue.string("0000110d-0000-1000-8000-00805f9b34fb")
            #expect(name(await daemon.ask("AuthorizeService", [device, service])) == "[]")
            #expect(name(await daemon.ask("RequestPinCode", [device])) == "Rejected")
            #expect(name(await daemon.ask("Nonsense", [device])).hasPrefix("Unknown"))
            #expect(
                person.journal.all == [
                    "show 123456", "compare 123456", "passkey", "allow", "service \(BluetoothUUID(0x110D as UInt16))",
                ])
        }

        @Test func thePersonRefuses() async throws {
            let setting = try await Setting(Person(agrees: false))
            defer { setting.close() }
            let device = Self.device
            for (member, arguments) in [
                ("RequestConfirmation", [device, .uint32(1)]), ("RequestPasskey", [device]),
                ("RequestAuthorization", [device]),
                ("AuthorizeService", [device, .string("110d")]), ("AuthorizeService", [device, .string("no uuid")]),
            ] as [(String, [BusValue])] {
                #expect(name(await setting.daemon.ask(member, arguments)) == "Rejected", "\(member)")
            }
        }

        @Test(arguments: [-1, 1_000_000]) func aNumberThatIsNoneEndsThePairing(_ number: Int) async throws {
            let setting = try await Setting(Person { $0.passkey = { number } })
            defer { setting.close() }
            #expect(name(await setting.daemon.ask("RequestPasskey", [Self.device])) == "Rejected")
        }

        @Test func withoutAPersonItPairsWithoutANumber() async throws {
            let setting = try await Setting(nil, .keyboardDisplay)
            defer { setting.close() }
            let device = Self.device
            #expect(setting.daemon.arguments(of: "RegisterAgent").last == .string("NoInputNoOutput"))
            #expect(name(await setting.daemon.ask("RequestAuthorization", [device])) == "[]")
            #expect(name(await setting.daemon.ask("RequestConfirmation", [device, .uint32(1)])) == "Rejected")
            #expect(name(await setting.daemon.ask("RequestPasskey", [device])) == "Rejected")
            #expect(name(await setting.daemon.ask("AuthorizeService", [device, .string("110d")])) == "Rejected")
        }

        @Test func cancelEndsTheQuestion() async throws {
            let person = Person()
            person.decide { $0.compare = { [unowned person] _ in await person.thinkTooLong() } }
            let setting = try await Setting(person)
            defer { setting.close() }
            let daemon = setting.daemon
            async let answer = daemon.ask("RequestConfirmation", [Self.device, .uint32(5)])
            try await until { person.journal.all == ["compare 5"] }
            #expect(name(await daemon.ask("Cancel", [])) == "[]")
            #expect(name(await answer) == "Canceled")
            try await until { person.journal.all == ["compare 5", "cancelled"] }
        }

        @Test(
            arguments: [
                ("AuthenticationFailed", BluetoothError.Code.att(.insufficientAuthentication)),
                ("AuthenticationRejected", .att(.insufficientAuthentication)),
                ("AuthenticationCanceled", .att(.insufficientAuthentication)), ("AuthenticationTimeout", .timedOut),
                ("ConnectionAttemptFailed", .connectionFailed), ("InProgress", .connectionFailed),
                ("Failed", .connectionFailed), ("NotReady", .notPoweredOn), ("AlreadyExists", nil), (nil, nil),
            ] as [(String?, BluetoothError.Code?)])
        func pairingEndsAsBluezSays(_ error: String?, code: BluetoothError.Code?) async throws {
            let setting = try await Setting(nil)
            defer { setting.close() }
            if let error {
                setting.daemon.answer(
                    "Pair", with: .failure(BusError(name: "org.bluez.Error.\(error)", message: "as the test says")))
            }
            do throws(BluetoothError) {
                try await setting.adapter.pair(with: setting.peer)
                #expect(code == nil)
            } catch {
                #expect(error.code == code, "\(error)")
            }
            #expect(setting.daemon.called.contains("Pair"))
        }

        @Test func cancellingTheTaskCancelsThePairing() async throws {
            let setting = try await Setting(nil) { $0.answer("Pair", with: nil) }
            defer { setting.close() }
            let (adapter, peer, daemon) = (setting.adapter, setting.peer, setting.daemon)
            let task = Task { try await adapter.pair(with: peer) }
            try await until { daemon.called.contains("Pair") }
            task.cancel()
            let error = await #expect(throws: BluetoothError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            try await until { daemon.called.contains("CancelPairing") }
        }

        @Test func aRefusedAgentIsSaidSo() async throws {
            let setting = try await Setting(nil) {
                $0.answer("RegisterAgent", with: .failure(BusError(name: "org.bluez.Error.AlreadyExists", message: "")))
            }
            defer { setting.close() }
            let error = await #expect(throws: BluetoothError.self) {
                try await setting.adapter.pair(with: setting.peer)
            }
            #expect(error?.code == .notSupported)
            #expect(!setting.daemon.called.contains("Pair"))
        }

        @Test func strangersAndTheForgotten() async throws {
            let setting = try await Setting(nil)
            defer { setting.close() }
            let error = await #expect(throws: BluetoothError.self) {
                try await setting.adapter.pair(with: PeerID(rawValue: 1))
            }
            #expect(error?.code == .unknownPeer)
            #expect(await setting.adapter.bondedPeers.isEmpty)
            try await setting.adapter.forget(PeerID(rawValue: 1))
            #expect(!setting.daemon.called.contains("RemoveDevice"))
            try await setting.adapter.forget(setting.peer)
            #expect(setting.daemon.arguments(of: "RemoveDevice") == [Self.device])
        }
    }
#endif
