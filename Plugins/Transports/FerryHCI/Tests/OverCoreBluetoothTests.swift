#if HCI && canImport(CoreBluetoothRig)
    import CoreBluetoothRig
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerrySequenced
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// The adapter for apps, over Core Bluetooth over the LE host over two controllers.
    @Suite(.tags(.adapter, .coreBluetooth), .serialized, .timeLimit(.minutes(5)))
    struct OverCoreBluetoothTests {
        /// ATT_MTU is 185, for the kit takes 400 bytes to be a long value.
        @Test(arguments: AdapterConformance.Requirement.allCases, RadioKind.here([.bumble(acl: 251)]))
        func keepsTheContract(_ requirement: AdapterConformance.Requirement, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            var configuration = HCIConfiguration()
            configuration.maximumMTU = 185
            let near = try await HCIAdapter.open(radio.channels[0], configuration)
            let far = try await HCIAdapter.open(radio.channels[1])
            defer {
                near.close()
                far.close()
            }
            try await radio.explaining {
                try await conformance(peripheral: near, central: far).check(requirement)
            }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        enum Sides: CaseIterable { case central, peripheral, both }
        enum Framings: CaseIterable { case endOfMessage, lengthPrefix, sequenced }

        /// Each way; FERRY_MESSAGES asks for more.
        private static let count = ProcessInfo.processInfo.environment["FERRY_MESSAGES"].flatMap(Int.init) ?? 50

        /// The last of each fifty has 25 KiB, or 100 KiB with `FERRY_FULL` or `FERRY_MESSAGES`.
        private static let largest = Effort.of(count > 50 ? 102_400 : 25_600, full: 102_400)

        private static func message(_ number: Int) -> [UInt8] {
            let length = number % 50 == 49 ? largest : number % 50 < 10 ? number * 199 % 2000 : number * 37 % 200
            return (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ number) }
        }

        /// Beside the adapter that has no Core Bluetooth between, and with itself; both ways at once.
        @Test(arguments: Sides.allCases, Framings.allCases)
        func messagesCross(_ sides: Sides, _ framing: Framings) async throws {
            switch framing {
            case .endOfMessage: try await exchange(sides, EndOfMessageFraming())
            case .lengthPrefix: try await exchange(sides, LengthPrefixFraming())
            case .sequenced: try await exchange(sides, SequencedFraming())
            }
        }

        private func exchange(_ sides: Sides, _ framing: some Framing) async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let near = try await HCIAdapter.open(radio.channels[0])
            let far = try await HCIAdapter.open(radio.channels[1])
            let layout = GATTConfiguration(
                service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
            let serving: any BluetoothAdapter = sides == .central ? near : overCoreBluetooth(near)
            let asking: any BluetoothAdapter = sides == .peripheral ? far : overCoreBluetooth(far)
            let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
            let link = try await GATTTransport(adapter: asking, configuration: layout).connect(timeout: .unreached)
            let one = try MessageChannel(over: link, codec: BytesCodec(), framing: framing)
            var links = listener.links.makeAsyncIterator()
            let accepted = try #require(await links.next())
            let other = try MessageChannel(over: accepted, codec: BytesCodec(), framing: framing)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for channel in [one, other] {
                    group.addTask {
                        for number in 0..<Self.count { try await channel.send(Self.message(number)) }
                    }
                    group.addTask { try await Self.expectAll(from: channel) }
                }
                try await group.waitForAll()
            }
            one.close()
            other.close()
            listener.close()
            near.close()
            far.close()
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        private static func expectAll(from channel: MessageChannel<[UInt8], [UInt8]>) async throws {
            var number = 0
            for try await received in channel.messages {
                try #require(received == message(number), "message \(number)")
                number += 1
                if number == count { return }
            }
            Issue.record("the channel ended after \(number) of \(count)")
        }
    }
#endif
