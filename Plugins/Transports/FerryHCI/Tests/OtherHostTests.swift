#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerrySequenced
    import Synchronization
    import TestSupport
    import Testing

    /// A link that reconnects, while another host has the peer's place.
    @Suite(.tags(.adapter, .recovery), .serialized, .timeLimit(.minutes(5))) struct OtherHostTests {
        private static let layout = GATTConfiguration(service: Layout.service, characteristic: Layout.characteristic)
        private static let home: UInt64 = 0xC0_11_22_33_44_55
        private static let elsewhere: UInt64 = 0xC0_66_77_88_99_AA

        private static func open(_ channel: HCIChannel, _ address: UInt64) async throws -> HCIAdapter {
            var configuration = HCIConfiguration()
            configuration.address = address
            return try await HCIAdapter.open(channel, configuration)
        }

        private static func channel(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
        }

        /// The peer goes, and a stranger offers the same service on the same controller: what is meant for the peer waits
        /// until that is back.
        @Test(arguments: RadioKind.here([.bumble(acl: 251)])) func aStrangerGetsNothing(_ kind: RadioKind) async throws
        {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let asking = try await HCIAdapter.open(radio.channels[1])
            defer { asking.close() }
            let peer = try await Self.open(radio.channels[0], Self.home)
            let listener = try await GATTTransport(adapter: peer, configuration: Self.layout).listen()
            let watched = WatchedTransport(GATTTransport(adapter: asking, configuration: Self.layout))
            var backoff = ReconnectingTransport<WatchedTransport<GATTTransport>>.Backoff()
            backoff.initial = .milliseconds(10)
            backoff.maximum = .milliseconds(50)
            backoff.attempt = .seconds(3)
            let client = try Self.channel(
                try await ReconnectingTransport(over: watched, backoff: backoff).connect(timeout: .unreached))
            var incoming = listener.links.makeAsyncIterator()
            let server = try Self.channel(try #require(await incoming.next()))
            try await client.send([1])
            var received = server.messages.makeAsyncIterator()
            #expect(try await received.next() == [1])

            listener.close()
            peer.close()
            #expect(await radio.script.hasPrinted("host gone"), "\(radio.script.output)")
            let stranger = try await Self.open(radio.channels[0], Self.elsewhere)
            let strangers = try await GATTTransport(adapter: stranger, configuration: Self.layout).listen()
            let visits = Mutex(0)
            let accepting = Task { for await _ in strangers.links { visits.withLock { $0 += 1 } } }
            async let sending: Void = client.send([2], timeout: .unreached)
            try await watched.journal.wait(for: "failed", 3)
            #expect(visits.withLock { $0 } == 0)
            #expect(client.closeReason == nil)

            strangers.close()
            await accepting.value
            stranger.close()
            #expect(await radio.script.hasPrinted("host gone", times: 2), "\(radio.script.output)")
            let back = try await Self.open(radio.channels[0], Self.home)
            defer { back.close() }
            let again = try await GATTTransport(adapter: back, configuration: Self.layout).listen()
            var returning = again.links.makeAsyncIterator()
            // On a busy machine an attempt may be given up when its link has just come: then another one follows.
            var servers: [MessageChannel<[UInt8], [UInt8]>] = []
            var message: [UInt8]?
            while message == nil {
                let next = try Self.channel(try #require(await returning.next()))
                servers.append(next)
                var rest = next.messages.makeAsyncIterator()
                message = try? await rest.next()
            }
            #expect(message == [2])
            try await sending
            #expect(visits.withLock { $0 } == 0)
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
            client.close()
            for next in servers + [server] { next.close() }
        }
    }
#endif
