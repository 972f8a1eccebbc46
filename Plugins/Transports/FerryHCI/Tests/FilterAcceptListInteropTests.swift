#if HCI
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    /// Several peripherals that are awaited at once.
    @Suite(.tags(.adapter), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct FilterAcceptListInteropTests {
        private final class Finder: CentralRoleEvents, Sendable {
            let found: AsyncStream<PeerID>
            private let finding: AsyncStream<PeerID>.Continuation

            init() { (found, finding) = AsyncStream.makeStream() }

            func centralDidDiscover(_ discovery: Discovery) { finding.yield(discovery.peripheral) }
        }

        private final class Unheard: PeripheralConnectionEvents {
            func peripheralDidDisconnect(_ reason: BluetoothError) {}
        }

        /// RootCanal goes by the list. Bumble's controllers take it and do not, so there the two have turns.
        @Test(arguments: RadioKind.two)
        func twoPeripheralsAreConnectedTo(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind, 3)
            defer { radio.stop() }
            var peripherals: [Interop.Script] = []
            for place in 0...1 {
                let peripheral = try Interop.Script(
                    "peer.py", ["peripheral", radio.peers[place], "--address", "F1:F1:F1:F1:F1:0\(place)"])
                #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
                peripherals.append(peripheral)
            }
            let file = Interop.file("list")
            var configuration = HCIConfiguration()
            configuration.capture = file
            let adapter = try await HCIAdapter.open(radio.channels[2], configuration)
            let finder = Finder()
            let role = adapter.openCentral(finder)
            try role.startScan(ScanRequest(services: [Layout.service]))
            var peers: Set<PeerID> = []
            for await peer in finder.found {
                peers.insert(peer)
                if peers.count == 2 { break }
            }
            role.stopScan()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for peer in peers {
                    group.addTask {
                        let connection = try await role.connect(to: peer, events: Unheard())
                        #expect(try await connection.discoverServices([Layout.service]).count == 1)
                    }
                }
                try await group.waitForAll()
            }
            for peripheral in peripherals {
                #expect(await peripheral.hasPrinted("P: connected"), "\(peripheral.output)")
            }
            role.close()
            adapter.close()
            for peripheral in peripherals { peripheral.stop() }
            let output = try await Interop.run(
                "tshark", ["-r", file, "-Y", "bthci_cmd.opcode == 0x2011", "-T", "fields", "-e", "bthci_cmd.opcode"])
            #expect(output.split(separator: "\n").filter { $0 == "0x2011" }.count >= 2)
            #expect(radio.complaints.isEmpty)
        }
    }
#endif
