#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Over virtual controllers that nobody here wrote, with and against a host stack that nobody here wrote.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct InteropTests {
        private static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
        private static let characteristic = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)
        private static let card = Array(
            String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4).utf8.prefix(158))

        /// The defaults, with a capture for tshark to look at.
        private static func captured(_ name: String) -> HCIConfiguration {
            var configuration = HCIConfiguration()
            configuration.capture = Interop.capture(name)
            return configuration
        }

        /// Sends the card in pieces of 20 bytes, then the marker, to whoever subscribes.
        private final class CardServer: PeripheralRoleEvents, Sendable {
            private let subscriptions: AsyncStream<(ConnectedCentral, AttributeID)>.Continuation
            let subscribers: AsyncStream<(ConnectedCentral, AttributeID)>

            init() { (subscribers, subscriptions) = AsyncStream.makeStream() }

            func finish() { subscriptions.finish() }

            func central(_ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as: Subscription) {
                subscriptions.yield((central, characteristic))
            }
        }

        @Test(.withOthers, arguments: RadioKind.every)
        func aCardReachesBumblesCentral(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let adapter = try await HCIAdapter.open(radio.channels[0], Self.captured("card"))
            let events = CardServer()
            let role = adapter.openPeripheral(events)
            let published = try await role.publish(
                ServiceDefinition(
                    Self.service,
                    characteristics: [
                        CharacteristicDefinition(
                            Self.characteristic, properties: [.notify, .read], permissions: .readable)
                    ]))
            let report = try await role.startAdvertising(Advertisement(localName: "card", services: [Self.service]))
            #expect(report.advertised.services == [Self.service])
            let central = try Interop.Script("central.py", [radio.peers[1]])
            Task {
                _ = await central.exitStatus()
                events.finish()
            }
            for await (peer, characteristic) in events.subscribers {
                #expect(characteristic == published.characteristics[0])
                for start in stride(from: 0, to: Self.card.count, by: 20) {
                    let piece = Array(Self.card[start..<min(start + 20, Self.card.count)])
                    #expect(try role.tryUpdateValue(piece.span.bytes, of: characteristic, for: .one(peer)))
                }
                #expect(try role.tryUpdateValue(Array("EOM".utf8).span.bytes, of: characteristic, for: .all))
                break
            }
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("match = True"))
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        /// Collects values until the marker.
        private final class CardReader: CentralRoleEvents, PeripheralConnectionEvents, Sendable {
            let discoveries: AsyncStream<Discovery>
            let values: AsyncStream<[UInt8]>
            private let discovered: AsyncStream<Discovery>.Continuation
            private let updated: AsyncStream<[UInt8]>.Continuation

            init() {
                (discoveries, discovered) = AsyncStream.makeStream()
                (values, updated) = AsyncStream.makeStream()
            }

            func centralDidDiscover(_ discovery: Discovery) { discovered.yield(discovery) }
            func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
                updated.yield(value.withUnsafeBytes { Array($0) })
            }
            func peripheralDidDisconnect(_ reason: BluetoothError) { updated.finish() }
        }

        @Test(.withOthers, arguments: RadioKind.every)
        func aCardComesFromBumblesPeripheral(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peripheral.py", [radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let adapter = try await HCIAdapter.open(radio.channels[1], Self.captured("card"))
            let reader = CardReader()
            let role = adapter.openCentral(reader)
            try role.startScan(ScanRequest(services: [Self.service]))
            var found: PeerID?
            for await discovery in reader.discoveries {
                #expect(discovery.advertisement.isConnectable)
                if let rssi = kind.rssi { #expect(discovery.rssi == rssi) }
                found = discovery.peripheral
                break
            }
            role.stopScan()
            let connection = try await role.connect(to: try #require(found), events: reader)
            let service = try #require(try await connection.discoverServices([Self.service]).first)
            let characteristic = try #require(
                try await connection.discoverCharacteristics([Self.characteristic], of: service.id).first)
            #expect(characteristic.properties == [.notify, .read])
            let rssi = try await connection.readRSSI()
            if let expected = kind.rssi { #expect(rssi == expected) }
            try await connection.setSubscription(.notify, to: characteristic.id)
            var card: [UInt8] = []
            for await value in reader.values {
                if value == Array("EOM".utf8) { break }
                #expect(value.count <= 20)
                card += value
            }
            #expect(card == Self.card)
            connection.disconnect()
            for await _ in reader.values {}
            peripheral.stop()
        }

        @Test(arguments: RadioKind.here(RadioKind.all))
        func twoAdaptersCarryMessages(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let framing = EndOfMessageFraming()
            let serving = try await HCIAdapter.open(radio.channels[0], Self.captured("card"))
            let asking = try await HCIAdapter.open(radio.channels[1], Self.captured("card"))
            let configuration = GATTConfiguration(
                service: Self.service, characteristic: Self.characteristic)
            let listener = try await GATTTransport(adapter: serving, configuration: configuration).listen()
            let link = try await GATTTransport(adapter: asking, configuration: configuration).connect(
                timeout: .unreached)
            var incoming: (any Link)?
            for await accepted in listener.links {
                incoming = accepted
                break
            }
            let sender = try MessageChannel(over: try #require(incoming), codec: BytesCodec(), framing: framing)
            let receiver = try MessageChannel(over: link, codec: BytesCodec(), framing: framing)
            let message = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            async let sent: Void = sender.send(message)
            for try await received in receiver.messages {
                #expect(received == message)
                break
            }
            try await sent
            receiver.close()
            sender.close()
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        /// A pseudo-terminal in place of a serial line.
        @Test(.withOthers) func aSerialLineCarriesTheHost() async throws {
            let folder = Interop.folder()
            let line = folder + "line"
            let controllers = try Interop.Script("controllers.py", ["pty:\(line)", "unix-server:\(folder)socket"])
            defer { controllers.stop() }
            #expect(await controllers.hasPrinted("C1 "), "\(controllers.output)")
            let (adapter, server) = try await Server.open(.serial(path: line, speed: 1_000_000))
            let client = try await Client.open(.unix(path: folder + "socket"))
            let connection = try await client.connect()
            let (id, _) = try await client.discover(connection)
            #expect(try await client.collect(connection, id, .notify) == Layout.pattern(600))
            try await connection.writeValue(Layout.pattern(500), to: id)
            #expect(try await connection.readValue(of: id) == Layout.pattern(500))
            // A process that this one starts must not keep the line.
            let device = try FileManager.default.destinationOfSymbolicLink(atPath: line)
            let held = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { number in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) == device
            }
            #expect(!held.isEmpty)
            #expect(held.allSatisfy { fcntl(Int32($0) ?? -1, F_GETFD) & FD_CLOEXEC != 0 }, "\(held)")
            client.close()
            controllers.stop()
            try await server.journal.wait(for: "state poweredOff")
            server.close()
            adapter.close()
        }
    }
#endif
