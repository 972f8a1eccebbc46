#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Testing

    extension MixedTests {
        /// How messages become chunks, and what carries those towards the central.
        enum Mix: String, CaseIterable, Sendable {
            case endOfMessage, lengthPrefix, sequenced, lengthPrefixByIndications

            var framing: any Framing {
                get throws {
                    switch self {
                    case .endOfMessage: try EndOfMessageFraming(chunkSize: nil)
                    case .lengthPrefix, .lengthPrefixByIndications: LengthPrefixFraming()
                    case .sequenced: SequencedFraming()
                    }
                }
            }
        }

        /// Sizes are log-uniform from 1 byte to 8 KiB, both ways at once. Each mix meets two ATT_MTUs, and each of those both
        /// ways round.
        @Test(arguments: Way.allCases, Array(zip(Mix.allCases, 0...)))
        func messagesOfMixedSizesCross(way: Way, mix: (Mix, Int)) async throws {
            let (mix, place) = mix
            let mtu = [23, 185, 247, 517][(place + (way == .hostServes ? 0 : 2)) % 4]
            let (serving, asking, host) = try await way.open(mtu: mtu)
            defer { host.close() }
            var layout = GATTConfiguration(service: Layout.service, characteristic: Layout.updates)
            layout.subscription = mix == .lengthPrefixByIndications ? .indicate : .notify
            let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
            let link = try await GATTTransport(adapter: asking, configuration: layout).connect(timeout: .seconds(30))
            var incoming = listener.links.makeAsyncIterator()
            try await exchange(try #require(await incoming.next()), link, try mix.framing, "\(mix) at \(mtu)")
            listener.close()
        }

        private func exchange(
            _ first: any Link, _ second: any Link, _ framing: some Framing, _ what: String
        ) async throws {
            let ends = [first, second].map { MessageChannel(over: $0, codec: BytesCodec(), framing: framing) }
            let count = 24
            // Golden-ratio steps spread evenly over the logarithms of the sizes, and are the same each time.
            let messages = (0..<count).map { index in
                let share = (Double(index) * 0.618_033_988_75).truncatingRemainder(dividingBy: 1)
                return Layout.pattern(Int(exp2(share * 13)), index)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for end in ends {
                    group.addTask { for message in messages { try await end.send(message, timeout: .seconds(60)) } }
                    group.addTask {
                        var received = end.messages.makeAsyncIterator()
                        for (index, message) in messages.enumerated() {
                            let next = try await received.next()
                            #expect(next == message, "message \(index), \(what)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            for end in ends { end.close() }
        }
    }
#endif
