#if HCI
    import Ferry
    import FerryBTP
    import FerryBitchat
    import FerryBluetooth
    import FerryGattlink
    import FerryHCI
    import FerryImprov
    import FerryMdoc
    import FerryMeshtastic
    import FerryPFTP
    import FerryTesting
    import TestSupport
    import Testing

    /// Formats of others between two hosts of Ferry's own, over controllers that speak HCI.
    @Suite(.tags(.adapter, .framing), .serialized, .timeLimit(.minutes(5)))
    struct OtherFormatsTests {
        enum Format: CaseIterable, Sendable {
            case mdocPeripheralServer, mdocCentralClient, btp, pftp, improv, meshtastic, gattlink, bitchat
        }

        private static let service = BluetoothUUID(0x1234_5678_9ABC_4DEF_8123_4567_89AB_CDEF as UInt128)

        /// How many messages go each way.
        private static let each = Effort.of(50, full: 500)

        /// Messages of mixed sizes, each way at once; the longest are a few of a hundred.
        @Test(arguments: Format.allCases, [23, 185, 247, 517])
        func messagesCross(_ format: Format, attMTU: Int) async throws {
            switch format {
            case .mdocPeripheralServer:
                try await exchange(.mdocPeripheralServer(service: Self.service), MdocFraming(), attMTU, Self.messages)
            case .mdocCentralClient:
                let layout = GATTConfiguration.mdocCentralClient(service: Self.service, ident: [UInt8](1...16))
                try await exchange(layout, MdocFraming(), attMTU, Self.messages)
            case .btp: try await exchange(.matterBTP, BTPFraming(), attMTU, Self.messages)
            case .pftp: try await exchange(.polarPFTP, PFTPFraming(), attMTU, Self.messages)
            case .improv:
                let notes: [[UInt8]] = [[1, 1], [2, 0], [3, 0]]
                try await exchange(.improv(), ImprovFraming(), attMTU, Self.packets, after: notes)
            case .meshtastic:
                try await exchange(.meshtastic, MeshtasticFraming(), attMTU, { Self.values($0, attMTU) })
            case .gattlink: try await exchange(.gattlink, GattlinkFraming(), attMTU, Self.datagrams)
            case .bitchat:
                // A fragment does not fit into the values of an ATT_MTU of 23.
                guard attMTU - 3 >= BitchatFraming.smallestValue else { return }
                try await exchange(.bitchat, BitchatFraming(), attMTU, Self.meshPackets)
            }
        }

        private func exchange(
            _ layout: GATTConfiguration, _ framing: some Framing, _ attMTU: Int,
            _ messages: @Sendable (UInt64) throws -> [[UInt8]], after notes: [[UInt8]] = []
        ) async throws {
            let (out, home) = (try messages(1), try messages(2))
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            var configuration = HCIConfiguration()
            configuration.maximumMTU = attMTU
            let serving = try await HCIAdapter.open(radio.channels[0], configuration)
            let asking = try await HCIAdapter.open(radio.channels[1])
            try await radio.explaining {
                let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
                let near = try await GATTTransport(adapter: asking, configuration: layout).connect(timeout: .unreached)
                let one = try MessageChannel(over: near, codec: BytesCodec(), framing: framing)
                var links = listener.links.makeAsyncIterator()
                let far = try #require(await links.next())
                let other = try MessageChannel(over: far, codec: BytesCodec(), framing: framing)
                async let there: Void = send(out, over: one)
                async let back: Void = send(home, over: other)
                async let heard: Void = expect(notes + home, over: one)
                try await expect(out, over: other)
                _ = try await (there, back, heard)
                one.close()
                #expect(await other.closed?.code == .disconnected)
            }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        private static let messages: @Sendable (UInt64) -> [[UInt8]] = { seed in
            var random = SplitMix64(seed: seed)
            return (0..<each).map { index in
                random.bytes(1 + Int(random.next() % (index % 50 == 49 ? 4000 : index % 20 == 19 ? 1280 : 32)))
            }
        }

        /// Packets of Improv, to the longest.
        private static let packets: @Sendable (UInt64) throws -> [[UInt8]] = { seed in
            var random = SplitMix64(seed: seed)
            return try (0..<each).map { index in
                let text = random.bytes(Int(random.next() % (index % 20 == 19 ? 254 : 32)))
                return [0] + (try ImprovPacket(.scan, [text]).bytes())
            }
        }

        /// IPv4 datagrams.
        private static let datagrams: @Sendable (UInt64) -> [[UInt8]] = { seed in
            var random = SplitMix64(seed: seed)
            return (0..<each).map { index in
                let count = 20 + Int(random.next() % (index % 50 == 49 ? 4000 : index % 20 == 19 ? 1280 : 32))
                return [0x45, 0, UInt8(count >> 8), UInt8(count & 0xFF)] + random.bytes(count - 4)
            }
        }

        /// Packets of bitchat, some of them fragments' worth.
        private static let meshPackets: @Sendable (UInt64) throws -> [[UInt8]] = { seed in
            var random = SplitMix64(seed: seed)
            return try (0..<each).map { index in
                let count = Int(random.next() % (index % 50 == 49 ? 4000 : index % 20 == 19 ? 1280 : 32))
                return try BitchatPacket(
                    type: 2, sender: random.next(), timestamp: UInt64(index), payload: random.bytes(count)
                ).bytes()
            }
        }

        /// Messages that a value carries: those of seed 1 are written, the others are read, at any ATT_MTU.
        private static func values(_ seed: UInt64, _ attMTU: Int) -> [[UInt8]] {
            var random = SplitMix64(seed: seed)
            let longest = seed == 1 ? min(512, attMTU - 3) : 512
            return (0..<each).map { index in
                random.bytes(1 + Int(random.next() % UInt64(index % 20 == 19 ? longest : min(longest, 32))))
            }
        }

        private func send(_ messages: [[UInt8]], over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
            for message in messages { try await channel.send(message) }
        }

        private func expect(_ messages: [[UInt8]], over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
            var arriving = channel.messages.makeAsyncIterator()
            for message in messages { #expect(try await arriving.next() == message) }
        }
    }
#endif
