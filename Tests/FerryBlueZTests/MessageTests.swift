#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryJSON
    import FerryPropertyList
    import FerryTesting
    import FerryZlib
    import Glibc
    import Testing

    /// Whole messages between two adapters of a real bluetoothd.
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(10)))
    struct MessageTests {
        struct Record: Codable, Sendable, Equatable {
            var name: String
            var numbers: [Int]
        }

        static let record = Record(
            name: String(repeating: "Ada Lovelace, ", count: 40), numbers: (0..<200).map { $0 * $0 })

        enum Mix: String, CaseIterable, Sendable {
            case lengthJSON, lengthPropertyList, endOfMessageXML, endOfMessageJSONZlib, sequencedJSON
            case sequencedPropertyListZlib
        }

        private func exchange(
            _ links: (Links), _ codec: some Codec<Record>, _ framing: some Framing,
            _ compression: (any Compression)? = nil
        ) async throws {
            let peripheral = MessageChannel(
                over: links.peripheral, codec: codec, framing: framing, compression: compression)
            let central = MessageChannel(over: links.central, codec: codec, framing: framing, compression: compression)
            for (sender, receiver) in [(peripheral, central), (central, peripheral)] {
                async let sent: Void = sender.send(Self.record, timeout: .seconds(60))
                var messages = receiver.messages.makeAsyncIterator()
                #expect(try await messages.next() == Self.record)
                try await sent
            }
            central.close()
            peripheral.close()
            try await links.end()
        }

        @Test(arguments: Mix.allCases)
        func everyKindOfMessageCrosses(_ mix: Mix) async throws {
            let links = try await Links.open()
            switch mix {
            case .lengthJSON: try await exchange(links, JSONCodec<Record>(), LengthPrefixFraming())
            case .lengthPropertyList: try await exchange(links, PropertyListCodec<Record>(), LengthPrefixFraming())
            case .endOfMessageXML:
                try await exchange(links, PropertyListCodec<Record>(format: .xml), EndOfMessageFraming())
            case .endOfMessageJSONZlib:
                try await exchange(
                    links, JSONCodec<Record>(), try EndOfMessageFraming(chunkSize: nil), ZlibCompression())
            case .sequencedJSON: try await exchange(links, JSONCodec<Record>(), SequencedFraming())
            case .sequencedPropertyListZlib:
                try await exchange(links, PropertyListCodec<Record>(), SequencedFraming(), ZlibCompression())
            }
        }

        /// Sizes are log-uniform from 1 byte to 100 KiB. Both ways, one after the other.
        @Test func manyMessagesOfMixedSizesCross() async throws {
            let count = getenv("FERRY_MESSAGES").map { Int(atoi($0)) } ?? 2000
            let links = try await Links.open()
            let peripheral = MessageChannel(
                over: links.peripheral, codec: BytesCodec(), framing: LengthPrefixFraming())
            let central = MessageChannel(over: links.central, codec: BytesCodec(), framing: LengthPrefixFraming())
            for (sender, receiver) in [(peripheral, central), (central, peripheral)] {
                let began = SystemTime().now
                // Golden-ratio steps spread evenly over the logarithms of the sizes, and are the same each time.
                let sizes = (0..<count).map { index in
                    Int(exp2((Double(index) * 0.618_033_988_75).truncatingRemainder(dividingBy: 1) * log2(102_400)))
                }
                async let sent: Void = {
                    for (index, size) in sizes.enumerated() {
                        try await sender.send(Self.message(index, size), timeout: .seconds(120))
                    }
                }()
                var index = 0
                for try await message in receiver.messages {
                    guard message == Self.message(index, sizes[index]) else {
                        Issue.record("message \(index) is not the one that was sent")
                        break
                    }
                    index += 1
                    if index == count { break }
                }
                try await sent
                let bytes = sizes.reduce(0, +)
                print("\(count) messages, \(bytes) bytes in \(SystemTime().now - began)")
                #expect(index == count)
            }
            central.close()
            peripheral.close()
            try await links.end()
        }

        static func message(_ index: Int, _ size: Int) -> [UInt8] {
            (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
        }
    }

    /// A link between the two adapters, by both its ends.
    struct Links: Sendable {
        static let layout = GATTConfiguration(
            service: BluetoothUUID(0x6E2A_0011_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128),
            characteristic: BluetoothUUID(0x6E2A_0012_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128))

        let listener: LinkListener
        let peripheral: any Link
        let central: any Link

        static func open() async throws -> Links {
            let (serving, asking) = try await Machine.adapters()
            let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
            let central = try await GATTTransport(adapter: asking, configuration: layout).connect(
                timeout: .seconds(60))
            var incoming = listener.links.makeAsyncIterator()
            return Links(listener: listener, peripheral: try #require(await incoming.next()), central: central)
        }

        /// Stops listening, and waits for bluetoothd to have ended the connection.
        func end() async throws {
            listener.close()
            try await Task.sleep(for: .seconds(3))
        }
    }
#endif
