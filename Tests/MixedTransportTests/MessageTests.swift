#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerrySequenced
    import TestSupport
    import Testing

    /// How messages become chunks, and what carries those towards the central.
    enum Mix: String, CaseIterable, Sendable {
        case endOfMessage, lengthPrefix, sequenced, lengthPrefixByIndications

        func layout(_ service: BluetoothUUID = Layout.service) -> GATTConfiguration {
            GATTConfiguration(
                service: service, characteristic: Layout.updates,
                subscription: self == .lengthPrefixByIndications ? .indicate : .notify)
        }

        /// Messages go both ways at once; then each side says that it has them all, the central first, which disconnects.
        func exchange(over link: any Link, isCentral: Bool) async throws {
            let channel =
                switch self {
                case .endOfMessage:
                    try MessageChannel(
                        over: link, codec: BytesCodec(), framing: try EndOfMessageFraming(chunkSize: nil))
                case .lengthPrefix, .lengthPrefixByIndications: try MessageChannel(over: link, codec: BytesCodec())
                case .sequenced: try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
                }
            async let sent: Void = {
                for message in Self.messages { try await channel.send(message, timeout: .unreached) }
            }()
            var received = channel.messages.makeAsyncIterator()
            for (index, message) in Self.messages.enumerated() {
                let next = try await received.next()
                #expect(next == message, "message \(index) of \(self)")
            }
            try await sent
            let last: [UInt8] = [0x2E]
            if isCentral { try await channel.send(last, timeout: .unreached) }
            #expect(try await received.next() == last)
            if !isCentral {
                do {
                    try await channel.send(last, timeout: .unreached)
                } catch {
                    // The central has it, or its own expectation fails. It leaves right behind its acknowledgement, and
                    // bluetoothd reads no more of a connection that has ended (Documentation/BlueZ.md).
                    guard self == .sequenced, error.code == .disconnected, error.fate == .mayHaveArrived else {
                        throw error
                    }
                }
                #expect(try await received.next() == nil)
            }
            channel.close()
        }

        /// The same between two adapters.
        func exchange(from serving: any BluetoothAdapter, to asking: any BluetoothAdapter) async throws {
            let listener = try await GATTTransport(adapter: serving, configuration: layout()).listen()
            defer { listener.close() }
            let link = try await GATTTransport(adapter: asking, configuration: layout()).connect(timeout: .unreached)
            var incoming = listener.links.makeAsyncIterator()
            let other = try #require(await incoming.next())
            async let served: Void = exchange(over: other, isCentral: false)
            try await exchange(over: link, isCentral: true)
            try await served
        }

        /// Sizes are log-uniform from 1 byte to 8 KiB. Golden-ratio steps spread evenly over their logarithms, and are the
        /// same each time.
        private static let messages = (0..<20).map { index in
            let share = (Double(index) * 0.618_033_988_75).truncatingRemainder(dividingBy: 1)
            return Layout.pattern(1 << Int(share * 13) + Int(share * 100), index)
        }
    }

    extension MixedTests {
        /// Each mix meets two ATT_MTUs, and each of those both ways round.
        @Test(arguments: Way.allCases, Array(zip(Mix.allCases, 0...)))
        func messagesOfMixedSizesCross(way: Way, mix: (Mix, Int)) async throws {
            let (mix, place) = mix
            var mtu = [23, 185, 247, 517][(place + (way == .hostServes ? 0 : 2)) % 4]
            // Its chunks have 20 bytes at least, and BlueZ leaves two of ATT_MTU unused.
            if mix == .sequenced { mtu = max(mtu, 25) }
            let (serving, asking, host) = try await way.open(mtu: mtu)
            defer { host.close() }
            try await mix.exchange(from: serving, to: asking)
        }
    }
#endif
