#if HCI
    import Ferry
    import FerryBTP
    import FerryBluetooth
    import FerryHCI
    import FerryMdoc
    import FerryPFTP
    import FerryTesting
    import TestSupport
    import Testing

    /// Formats of others between two hosts of Ferry's own, over controllers that speak HCI.
    @Suite(.tags(.adapter, .framing), .serialized, .timeLimit(.minutes(5)))
    struct OtherFormatsTests {
        enum Format: CaseIterable, Sendable { case mdocPeripheralServer, mdocCentralClient, btp, pftp }

        private static let service = BluetoothUUID(0x1234_5678_9ABC_4DEF_8123_4567_89AB_CDEF as UInt128)

        /// 1 000 messages of mixed sizes, half of them each way at once.
        @Test(arguments: Format.allCases, [23, 185, 247, 517])
        func messagesCross(_ format: Format, attMTU: Int) async throws {
            switch format {
            case .mdocPeripheralServer:
                try await exchange(.mdocPeripheralServer(service: Self.service), MdocFraming(), attMTU)
            case .mdocCentralClient:
                let layout = GATTConfiguration.mdocCentralClient(service: Self.service, ident: [UInt8](1...16))
                try await exchange(layout, MdocFraming(), attMTU)
            case .btp: try await exchange(.matterBTP, BTPFraming(), attMTU)
            case .pftp: try await exchange(.polarPFTP, PFTPFraming(), attMTU)
            }
        }

        private func exchange(_ layout: GATTConfiguration, _ framing: some Framing, _ attMTU: Int) async throws {
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
                async let there: Void = send(seed: 1, over: one)
                async let back: Void = send(seed: 2, over: other)
                async let heard: Void = expect(seed: 2, over: one)
                try await expect(seed: 1, over: other)
                _ = try await (there, back, heard)
                one.close()
                #expect(await other.closed?.code == .disconnected)
            }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        private func messages(_ seed: UInt64) -> [[UInt8]] {
            var random = SplitMix64(seed: seed)
            return (0..<500).map { index in
                random.bytes(1 + Int(random.next() % (index % 100 == 99 ? 4000 : index % 20 == 19 ? 1280 : 32)))
            }
        }

        private func send(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
            for message in messages(seed) { try await channel.send(message) }
        }

        private func expect(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
            var arriving = channel.messages.makeAsyncIterator()
            for message in messages(seed) { #expect(try await arriving.next() == message) }
        }
    }
#endif
