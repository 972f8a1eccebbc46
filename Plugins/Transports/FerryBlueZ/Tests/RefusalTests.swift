#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerrySequenced
    import FerryTesting
    import Glibc
    import TestSupport
    import Testing

    /// What is missing or refused is said, with what to do about it; a connection may end at any moment.
    @Suite(
        .tags(.adapter), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct RefusalTests {
        @Test func anAdapterThatIsNotThereIsSaid() async throws {
            let adapter = try await BlueZAdapter.open("bluez:hci7")
            defer { adapter.close() }
            #expect(adapter.state == .unsupported)
            #expect(adapter.trouble == "bluetoothd has no adapter hci7; there is hci0, hci1.")
            let role = adapter.openCentral(Nobody())
            defer { role.close() }
            #expect { try role.startScan(ScanRequest()) } throws: { ($0 as? BluetoothError)?.code == .notPoweredOn }
        }

        @Test func aBusThatIsNotThereIsSaid() async throws {
            var configuration = BlueZConfiguration()
            configuration.busAddress = "unix:path=/run/no-bus-here"
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await BlueZAdapter.open(configuration: configuration)
            }
            #expect(error?.code == .notPoweredOn)
            #expect(error?.message.contains("apt-get install dbus") == true, "\(error?.message ?? "")")
        }

        @Test func aDaemonThatIsNotThereIsSaid() async throws {
            try await Machine.shell(
                """
                sed "s#/run/dbus/system_bus_socket#/run/bare-bus#" /guest/etc/dbus-1/system.conf >/run/bare-bus.conf
                (exec chroot /guest dbus-daemon --config-file=/run/bare-bus.conf --nofork --nopidfile) &
                echo $! >/run/bare-bus.pid
                wait_until 100 test -S /run/bare-bus
                """)
            var configuration = BlueZConfiguration()
            configuration.busAddress = "unix:path=/run/bare-bus"
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await BlueZAdapter.open(configuration: configuration)
            }
            #expect(error?.code == .notPoweredOn)
            #expect(error?.message.contains("systemctl start bluetooth") == true, "\(error?.message ?? "")")
            try await Machine.shell("end bare-bus; rm -f /run/bare-bus")
        }

        @Test func aBlockedAdapterIsSaid() async throws {
            let (adapter, _) = try await Machine.adapters()
            let block = "echo %d | tee /sys/class/bluetooth/hci0/rfkill*/soft"
            try await Machine.shell(block.replacing("%d", with: "1"))
            try await Machine.wait(for: .poweredOff, of: adapter)
            #expect(adapter.trouble?.contains("rfkill unblock bluetooth") == true)
            let error = await #expect(throws: BluetoothError.self) { try await adapter.powerOn() }
            #expect(error?.code == .notPoweredOn)
            #expect(error?.message.contains("rfkill unblock bluetooth") == true, "\(error?.message ?? "")")
            try await Machine.shell(block.replacing("%d", with: "0"))
            try await adapter.powerOn()
            #expect(adapter.state == .poweredOn)
        }

        /// bluetoothd has a few advertisements per adapter.
        @Test func tooManyAdvertisementsAreRefused() async throws {
            let (adapter, _) = try await Machine.adapters()
            var roles: [any PeripheralRole] = []
            var refusal: BluetoothError?
            for number in 0..<32 where refusal == nil {
                let role = adapter.openPeripheral(Deaf())
                roles.append(role)
                do {
                    _ = try await role.startAdvertising(
                        Advertisement(services: [BluetoothUUID(0xFE00 + UInt16(number))]))
                } catch {
                    refusal = error
                }
            }
            #expect(roles.count > 1, "the first is not refused")
            #expect(refusal?.code == .advertisingFailed)
            #expect(refusal?.message.contains("in use") == true, "\(refusal?.message ?? "nothing was refused")")
            for role in roles { role.close() }
            // Once they have been given back, there is space again.
            let role = adapter.openPeripheral(Deaf())
            _ = try await role.startAdvertising(Advertisement(services: [Links.layout.service]))
            role.close()
        }

        /// When the connection ends: the task that connects is cancelled after so long, or one side closes.
        enum Moment: Sendable {
            case connecting(Duration)
            case idle(byCentral: Bool)
            case sending(byCentral: Bool)

            /// `FERRY_TIMES` has so many attempts called off at chosen moments instead: to look into it.
            static let all: [Moment] = {
                if let times = getenv("FERRY_TIMES").flatMap({ Int(String(cString: $0)) }) {
                    var random = SplitMix64(seed: 5)
                    return (0..<times).map { _ in .connecting(.milliseconds(Int.random(in: 0...4000, using: &random))) }
                }
                return [50, 1000].map { .connecting(.milliseconds($0)) }
                    + [true, false].flatMap { [.idle(byCentral: $0), .sending(byCentral: $0)] }
            }()
        }

        @Test(arguments: Moment.all)
        func aConnectionMayEndAtAnyMoment(_ moment: Moment) async throws {
            let (serving, asking) = try await Machine.adapters()
            let transport = GATTTransport(adapter: serving, configuration: Links.layout)
            var listener = try await transport.listen()
            switch moment {
            case .connecting(let time):
                let attempt = Task {
                    try await GATTTransport(adapter: asking, configuration: Links.layout).connect(timeout: .unreached)
                }
                try await Task.sleep(for: time)
                attempt.cancel()
                do { try await attempt.value.close() } catch {
                    #expect((error as? FerryError)?.code == .cancelled, "\(error)")
                }
                // The peripheral may have seen the beginning of a link, or the whole of it. Its service stays until then:
                // bluetoothd 5.66 crashes when a subscription is refused.
                try await Links.waitForSilence()
                listener.close()
                listener = try await transport.listen()
            case .idle(let byCentral):
                let links = try await Links.next(on: listener)
                let (here, there) = byCentral ? (links.central, links.peripheral) : (links.peripheral, links.central)
                let other = try MessageChannel(over: there, codec: BytesCodec(), framing: LengthPrefixFraming())
                here.close()
                #expect(await Machine.rest(of: other).isEmpty)
            case .sending(let byCentral):
                let links = try await Links.next(on: listener)
                let (here, there) = byCentral ? (links.central, links.peripheral) : (links.peripheral, links.central)
                let sender = try MessageChannel(over: here, codec: BytesCodec(), framing: LengthPrefixFraming())
                let other = try MessageChannel(over: there, codec: BytesCodec(), framing: LengthPrefixFraming())
                let sent = Task { try await sender.send(.sample(1, 400_000), timeout: .unreached) }
                try await Machine.time.wait("end", for: "the message to be under way") {
                    other.statistics.chunksReceived > 10
                }
                sender.close()
                await #expect(throws: (any Error).self) { try await sent.value }
                #expect(await Machine.rest(of: other).isEmpty)
            }
            // Whatever was going on, the next one who comes is served.
            let links = try await Links.next(on: listener)
            try await Traffic.cross(links, [1, 300], BytesCodec(), SequencedFraming())
            try await links.end()
        }
    }

    /// A peripheral that hears nothing.
    final class Deaf: PeripheralRoleEvents {}
#endif
