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
    }

    let time = VirtualTime()
    private let state: Mutex<State>
    let maximumBreaks: Int

    init(breaks: Int) {
        maximumBreaks = breaks
        state = Mutex(State(untilBreak: 40))
    }

    func listen() async throws(FerryError) -> LinkListener {
        let listener = LinkListener(time: time) {}
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

    /// Moves chunks, and now and then breaks the link. Returns whether anything moved.
    private func deliver() -> Bool {
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
        return moved > 0
    }

    /// Runs the body under virtual time, and moves chunks until it has returned.
    func run(_ body: @escaping @Sendable () async throws -> Void) throws {
        try time.run(within: .seconds(3600)) { [self] in
            let pump = Task { await time.keep { [self] in deliver() } }
            defer { pump.cancel() }
            try await body()
        }
    }
}

@Suite(.tags(.core, .recovery, .sequenced), .timeLimit(.minutes(5))) struct ReconnectingTransportTests {
    private var backoff: ReconnectingTransport<BreakingTransport>.Backoff {
        var backoff = ReconnectingTransport<BreakingTransport>.Backoff()
        backoff.initial = .milliseconds(1)
        return backoff
    }

    @Test func everyMessageArrivesOnceThoughTheLinkBreaks() throws {
        let base = BreakingTransport(breaks: 10)
        try base.run { [backoff] in
            let transport = ReconnectingTransport(over: base, backoff: backoff, time: base.time)
            let listener = try await transport.listen()
            let client = try MessageChannel(
                over: try await transport.connect(timeout: .unreached), codec: BytesCodec(),
                framing: SequencedFraming(),
                time: base.time)
            async let sending: Void = {
                for number in 0..<60 {
                    try await client.send([UInt8](repeating: UInt8(number), count: 700 + number))
                }
            }()
            var links = listener.links.makeAsyncIterator()
            let link = try #require(await links.next())
            let server = try MessageChannel(
                over: link, codec: BytesCodec(), framing: SequencedFraming(),
                time: base.time)
            var messages = server.messages.makeAsyncIterator()
            for number in 0..<60 {
                let message = try await messages.next()
                #expect(message == [UInt8](repeating: UInt8(number), count: 700 + number))
            }
            try await sending
            #expect(client.closeReason == nil)
            #expect(server.closeReason == nil)
            #expect(base.counts == (breaks: 10, connects: 11))
            client.close()
            server.close()
            listener.close()
        }
    }

    @Test func anotherFramingEndsAtTheFirstLoss() throws {
        let base = BreakingTransport(breaks: 1)
        try base.run { [backoff] in
            let transport = ReconnectingTransport(over: base, backoff: backoff, time: base.time)
            let listener = try await transport.listen()
            let client = try MessageChannel(
                over: try await transport.connect(timeout: .unreached), codec: BytesCodec(),
                framing: LengthPrefixFraming(), time: base.time)
            var links = listener.links.makeAsyncIterator()
            let server = try MessageChannel(
                over: try #require(await links.next()), codec: BytesCodec(), time: base.time)
            await #expect(throws: FerryError.self) { try await client.send([UInt8](repeating: 1, count: 1 << 20)) }
            #expect(client.closeReason?.code == .disconnected)
            server.close()
            listener.close()
        }
    }

    @Test func patienceComesToAnEnd() throws {
        let base = BreakingTransport(breaks: 1)
        var backoff = backoff
        backoff.patience = .milliseconds(20)
        try base.run { [backoff] in
            let transport = ReconnectingTransport(over: base, backoff: backoff, time: base.time)
            let listener = try await base.listen()
            let client = try MessageChannel(
                over: try await transport.connect(timeout: .unreached), codec: BytesCodec(),
                framing: SequencedFraming(),
                time: base.time)
            var links = listener.links.makeAsyncIterator()
            let link = try #require(await links.next())
            let server = try MessageChannel(
                over: link, codec: BytesCodec(), framing: SequencedFraming(),
                time: base.time)
            listener.close()
            // The peer's link breaks, and nobody listens any more.
            await #expect(throws: FerryError.self) { try await client.send([UInt8](repeating: 1, count: 1 << 20)) }
            #expect(client.closeReason?.code == .disconnected)
            #expect(await server.closed?.code == .disconnected)
        }
    }
}
