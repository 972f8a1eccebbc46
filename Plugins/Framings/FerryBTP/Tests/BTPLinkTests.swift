import Ferry
import FerryBTP
import FerryBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// A commissioner and a device over the virtual radio: write with response, then the subscription, then indications.
@Suite(.tags(.framing, .bluetooth), .timeLimit(.minutes(5))) struct BTPLinkTests {
    /// 1 000 messages of mixed sizes, half of them each way at once.
    @Test(arguments: [23, 185, 247, 517])
    func messagesOfMixedSizesCross(attMTU: Int) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run(within: .seconds(1_000_000)) {
            let layout = GATTConfiguration.matterBTP
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(20))
            let one = try MessageChannel(over: near, codec: BytesCodec(), framing: BTPFraming(), time: time)
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let other = try MessageChannel(over: far, codec: BytesCodec(), framing: BTPFraming(), time: time)
            async let there: Void = Self.send(seed: 1, over: one)
            async let back: Void = Self.send(seed: 2, over: other)
            async let heard: Void = Self.expect(seed: 2, over: one)
            try await Self.expect(seed: 1, over: other)
            _ = try await (there, back, heard)
            // Idle for an hour: acknowledgements keep it.
            try await time.sleep(for: .seconds(3600))
            #expect(one.closeReason == nil)
            try await one.send([1])
            var last = other.messages.makeAsyncIterator()
            #expect(try await last.next() == [1])
            one.close()
            #expect(await other.closed?.code == .disconnected)
        }
    }

    /// A device that no handshake reaches does not keep the link: the commissioner has gone, which nobody tells.
    @Test func aCommissionerThatSaysNothingIsGivenUp() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run(within: .seconds(1000)) {
            let layout = GATTConfiguration.matterBTP
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            // Another framing writes something that is no handshake.
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(20))
            let one = try MessageChannel(over: near, codec: BytesCodec(), time: time)
            async let sending: Void? = try? one.send([1, 2, 3])
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let other = try MessageChannel(over: far, codec: BytesCodec(), framing: BTPFraming(), time: time)
            let reason = await other.closed
            #expect(reason?.code == .malformedStream)
            #expect(reason?.message.contains("03 01 02 03") == true)
            _ = await sending
            one.close()
        }
    }

    private static func messages(_ seed: UInt64) -> [[UInt8]] {
        var random = SplitMix64(seed: seed)
        return (0..<500).map { index in
            let largest = index % 100 == 99 ? 20_000 : index % 10 == 9 ? 1280 : 64
            return random.bytes(Int(random.next() % UInt64(largest + 1)))
        }
    }

    private static func send(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        for message in messages(seed) { try await channel.send(message) }
    }

    private static func expect(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        var arriving = channel.messages.makeAsyncIterator()
        for message in messages(seed) { #expect(try await arriving.next() == message) }
    }
}
