#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerrySMP
    import FerryUART
    import TestSupport
    import Testing

    /// What devices speak, over two controllers and the LE host between them.
    @Suite(.tags(.adapter, .framing), .serialized, .timeLimit(.minutes(5)))
    struct DeviceFormatTests {
        /// A format, and the layout that devices use it with.
        enum Format: String, CaseIterable {
            case smp, lines, slip, cobs

            var framing: any Framing {
                switch self {
                case .smp: SMPFraming()
                case .lines: UARTFraming(.lines(.carriageReturnLineFeed))
                case .slip: UARTFraming(.slip)
                case .cobs: UARTFraming(.cobs)
                }
            }

            var layout: GATTConfiguration { self == .smp ? .smp : .nordicUART }

            /// A message of this many bytes that the format can say.
            func message(_ count: Int, _ seed: Int) -> [UInt8] {
                let bytes = pattern(count, seed: seed)
                switch self {
                case .smp:
                    return SMPHeader(operation: .write, group: .image, sequence: UInt8(seed & 0xFF), command: 1)
                        .message(bytes)
                case .lines: return bytes.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
                case .slip: return bytes.isEmpty ? [0xC0] : bytes
                case .cobs: return bytes
                }
            }
        }

        /// Messages from none of a byte to several thousand, each way at once: a thousand of them at the full size.
        @Test(arguments: Format.allCases, [23, 185, 247, 517])
        func messagesCross(format: Format, attMTU: Int) async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            var configuration = HCIConfiguration()
            configuration.maximumMTU = attMTU
            let serving = try await HCIAdapter.open(radio.channels[0], configuration)
            let asking = try await HCIAdapter.open(radio.channels[1], configuration)
            let listener = try await GATTTransport(adapter: serving, configuration: format.layout).listen()
            let outbound = try await GATTTransport(adapter: asking, configuration: format.layout)
                .connect(timeout: .seconds(60))
            var links = listener.links.makeAsyncIterator()
            let inbound = try #require(await links.next())
            // The longest of a format are seldom: one in a hundred, as they would take most of the time.
            let total = Effort.of(100, full: 1_000)
            let messages = (0..<total).map { number in
                format.message(number % 100 == 99 ? 4000 + number : number * 7 % 300, number)
            }
            let ends = [outbound, inbound]
            let channels = try ends.map { try MessageChannel(over: $0, codec: BytesCodec(), framing: format.framing) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (sender, receiver) in [(channels[0], channels[1]), (channels[1], channels[0])] {
                    group.addTask { for message in messages { try await sender.send(message) } }
                    group.addTask {
                        var count = 0
                        for try await message in receiver.messages {
                            guard message == messages[count] else {
                                Issue.record("message \(count) of \(message.count) bytes is another")
                                return
                            }
                            count += 1
                            if count == messages.count { return }
                        }
                        Issue.record("\(count) messages arrived")
                    }
                }
                try await group.waitForAll()
            }
            for channel in channels { channel.close() }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
            serving.close()
            asking.close()
        }
    }
#endif
