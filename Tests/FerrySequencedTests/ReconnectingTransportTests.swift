import Ferry
import FerrySequenced
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Peers in memory: each `connect` makes a pair of links, and a pump moves their chunks and now and then breaks them.
private final class BreakingTransport: Transport {
    private struct State {
        var listener: LinkListener?
        var links: [MemoryLink] = []
        var untilBreak: Int
        var breaks = 0
        var connects = 0
        var random = SplitMix64(seed: 5)
        var isStopped = false
    }

    private let state: Mutex<State>
    let maximumBreaks: Int

    init(breaks: Int) {
        maximumBreaks = breaks
        state = Mutex(State(untilBreak: 40))
    }

    func listen() async throws(FerryError) -> LinkListener {
        let listener = LinkListener {}
        state.withLock { $0.listener = listener }
        return listener
    }

    func connect(timeout: Duration) async throws(FerryError) -> any Link {
        let (client, server) = MemoryLink.makePair(maximumChunkSize: 60)
        let offered = state.withLock { state in
            state.connects += 1
            state.links = [client, server]
            return state.listener?.offer(server) ?? false
        }
        guard offered else { throw FerryError(.peerNotFound, "Nobody listens.") }
        return client
    }

    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        try await connect(timeout: timeout)
    }

    var counts: (breaks: Int, connects: Int) { state.withLock { ($0.breaks, $0.connects) } }

    func stop() { state.withLock { $0.isStopped = true } }

    /// Moves chunks until stopped.
    func pump() async {
        while !Task.isCancelled, !state.withLock({ $0.isStopped }) {
            let (links, breaks) = state.withLock { state in
                var breaks = false
                if state.untilBreak <= 0, state.breaks < maximumBreaks {
                    state.untilBreak = 20 + state.random.below(100)
                    state.breaks += 1
                    breaks = true
                }
                return (state.links, breaks)
            }
            if breaks { links.first?.disconnect() }
            var moved = 0
            for link in links where link.deliver() { moved += 1 }
            state.withLock { $0.untilBreak -= moved }
            if moved == 0 { try? await Task.sleep(for: .microseconds(300)) } else { await Task.yield() }
        }
    }
}

@Suite(.tags(.core, .recovery, .sequenced)) struct ReconnectingTransportTests {
    private var backoff: ReconnectingTransport<BreakingTransport>.Backoff {
        var backoff = ReconnectingTransport<BreakingTransport>.Backoff()
        backoff.initial = .milliseconds(1)
        return backoff
    }

    @Test(.timeLimit(.minutes(5))) func everyMessageArrivesOnceThoughTheLinkBreaks() async throws {
        let base = BreakingTransport(breaks: 10)
        let transport = ReconnectingTransport(over: base, backoff: backoff)
        let listener = try await transport.listen()
        async let pump: Void = base.pump()
        let client = try MessageChannel(
            over: try await transport.connect(timeout: .seconds(30)), codec: BytesCodec(), framing: SequencedFraming())
        async let sending: Void = {
            for number in 0..<60 {
                try await client.send([UInt8](repeating: UInt8(number), count: 700 + number))
            }
        }()
        var links = listener.links.makeAsyncIterator()
        let link = try #require(await links.next())
        let server = try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
        var messages = server.messages.makeAsyncIterator()
        for number in 0..<60 {
            let message = try await messages.next()
            #expect(message == [UInt8](repeating: UInt8(number), count: 700 + number))
        }
        try await sending
        #expect(client.closeReason == nil)
        #expect(server.closeReason == nil)
        #expect(base.counts.breaks == 10)
        // On a machine that stands still an acknowledgement may be late, and the peer is looked for once more.
        #expect(base.counts.connects >= 11)
        base.stop()
        await pump
        client.close()
        server.close()
        listener.close()
    }

    @Test(.timeLimit(.minutes(5))) func anotherFramingEndsAtTheFirstLoss() async throws {
        let base = BreakingTransport(breaks: 1)
        let transport = ReconnectingTransport(over: base, backoff: backoff)
        let listener = try await transport.listen()
        async let pump: Void = base.pump()
        let client = try MessageChannel(
            over: try await transport.connect(timeout: .seconds(30)), codec: BytesCodec(),
            framing: LengthPrefixFraming())
        var links = listener.links.makeAsyncIterator()
        let server = try MessageChannel(over: try #require(await links.next()), codec: BytesCodec())
        await #expect(throws: FerryError.self) { try await client.send([UInt8](repeating: 1, count: 1 << 20)) }
        #expect(client.closeReason?.code == .disconnected)
        base.stop()
        await pump
        server.close()
        listener.close()
    }

    @Test(.timeLimit(.minutes(5))) func patienceComesToAnEnd() async throws {
        let base = BreakingTransport(breaks: 1)
        var backoff = backoff
        backoff.patience = .milliseconds(20)
        let transport = ReconnectingTransport(over: base, backoff: backoff)
        let listener = try await base.listen()
        async let pump: Void = base.pump()
        let client = try MessageChannel(
            over: try await transport.connect(timeout: .seconds(30)), codec: BytesCodec(), framing: SequencedFraming())
        var links = listener.links.makeAsyncIterator()
        let link = try #require(await links.next())
        let server = try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
        listener.close()
        // The peer's link breaks, and nobody listens any more.
        await #expect(throws: FerryError.self) { try await client.send([UInt8](repeating: 1, count: 1 << 20)) }
        #expect(client.closeReason?.code == .disconnected)
        #expect(await server.closed?.code == .disconnected)
        base.stop()
        await pump
    }
}
