import Ferry
import FerrySequenced
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// A link that reconnects belongs to one peer: nothing meant for it reaches another, and nothing is lost on the way back.
@Suite(.tags(.sequenced, .recovery), .timeLimit(.minutes(5))) struct PinnedLinkTests {
    private typealias Station = MemoryAir.Station

    /// The peer goes, a stranger offers the same service, and then the peer comes back.
    @Test func aStrangerGetsNothing() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            let client = try air.sequenced(try await air.reconnecting("me").connect(timeout: .unreached))
            var links = listener.links.makeAsyncIterator()
            let server = try air.sequenced(try #require(await links.next()))
            var received = server.messages.makeAsyncIterator()
            try await client.send([1])
            #expect(try await received.next() == [1])

            let stranger = try await air.station("a stranger").listen()
            let strangers = Mutex(0)
            let accepting = Task { for await _ in stranger.links { strangers.withLock { $0 += 1 } } }
            air.breakConnections(to: "peer")
            try await client.send([2], timeout: .unreached)
            #expect(try await received.next() == [2])
            #expect(strangers.withLock { $0 } == 0)
            #expect(client.status.resumptions == 1)
            stranger.close()
            await accepting.value
            client.close()
            server.close()
            listener.close()
        }
    }

    /// A transport that hands over a link to somebody else is not believed.
    @Test func aLinkToSomebodyElseIsClosed() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.station("peer").listen()
            let wrong = Misleading(base: air.station("me"))
            let client = try air.sequenced(
                try await ReconnectingTransport(over: wrong, backoff: .init(MemoryAir.backoff), time: air.time).connect(
                    timeout: .unreached))
            let stranger = try await air.station("stranger").listen()
            air.breakConnections(to: "peer")
            try await air.time.until("a link to the stranger") { air.pairs.contains { $0.server == "stranger" } }
            try await air.time.until("the end of the links to the stranger") {
                air.pairs.filter { $0.server == "stranger" }.allSatisfy { isClosed($0.near) }
            }
            #expect(client.closeReason == nil)
            client.close()
            listener.close()
            stranger.close()
        }
    }

    private func isClosed(_ link: MemoryLink) -> Bool {
        do { _ = try link.trySend([UInt8(0xFF)].span.bytes) } catch { return true }
        return false
    }

    private struct Misleading: Transport {
        let base: MemoryAir.Station
        func listen() async throws(FerryError) -> LinkListener { try await base.listen() }
        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            try await base.connect(timeout: timeout)
        }
        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            try await base.connect(to: PeerIdentity("stranger", certainty: .address), timeout: timeout)
        }
    }

    /// Where the transport cannot recognise a peer the link ends at the first loss, and says what to do.
    @Test func aPeerThatCannotBeRecognizedIsNotLookedFor() throws {
        let air = MemoryAir(certainty: .connection)
        try air.run {
            let listener = try await air.station("peer").listen()
            let client = try air.sequenced(try await air.reconnecting("me").connect(timeout: .unreached))
            air.breakConnections(to: "peer")
            let reason = await client.closed
            #expect(reason?.code == .disconnected)
            #expect(reason?.message.contains("unrecognizedPeers: .areTakenForThePeer") == true)
            #expect(air.connects == 1)
            listener.close()
        }
    }

    @Test func anUnrecognizedPeerIsTakenForThePeerWhereAskedTo() throws {
        let air = MemoryAir(certainty: .connection)
        try air.run {
            let listener = try await air.reconnecting("peer", unrecognizedPeers: .areTakenForThePeer).listen()
            let client = try air.sequenced(
                try await air.reconnecting("me", unrecognizedPeers: .areTakenForThePeer).connect(timeout: .unreached))
            var links = listener.links.makeAsyncIterator()
            let server = try air.sequenced(try #require(await links.next()))
            var received = server.messages.makeAsyncIterator()
            try await client.send([1])
            air.breakConnections(to: "peer")
            try await client.send([2], timeout: .unreached)
            #expect(try await received.next() == [1])
            #expect(try await received.next() == [2])
            client.close()
            server.close()
            listener.close()
        }
    }

    // MARK: Coming back before the link was taken

    /// The peer connects, leaves and comes back before the app takes its link. Nothing is lost or doubled, and the peer
    /// connects no more often than it has to.
    @Test(arguments: [1, 3]) func aPeerThatReturnsBeforeItsLinkWasTaken(_ times: Int) throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            let client = try air.sequenced(try await air.reconnecting("me").connect(timeout: .unreached))
            async let sending: Void = {
                for number in 0..<20 { try await client.send([UInt8](repeating: UInt8(number), count: 200)) }
            }()
            for number in 0..<times {
                try await air.time.sleep(for: .milliseconds(20))
                air.breakConnections(to: "peer")
                try await air.time.until("the peer is back") { air.connects == number + 2 }
            }
            var links = listener.links.makeAsyncIterator()
            let server = try air.sequenced(try #require(await links.next()))
            var received = server.messages.makeAsyncIterator()
            for number in 0..<20 {
                #expect(try await received.next() == [UInt8](repeating: UInt8(number), count: 200))
            }
            try await sending
            #expect(air.connects == times + 1)
            client.close()
            server.close()
            listener.close()
        }
    }

    /// The app gives up a link that it never used, whose peer is back already and has spoken: what it said is not lost.
    @Test func aPeerThatIsBackIsHeardThoughItsFormerLinkIsGivenUp() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            var links = listener.links.makeAsyncIterator()
            let client = try air.sequenced(try await air.reconnecting("me").connect(timeout: .unreached))
            let unused = try #require(await links.next())
            air.breakConnections(to: "peer")
            async let sending: Void = client.send([1])
            try await air.time.until("the peer is back") { air.connects == 2 }
            try await air.time.sleep(for: .milliseconds(100))
            unused.close()
            let server = try air.sequenced(try #require(await links.next()))
            var received = server.messages.makeAsyncIterator()
            #expect(try await received.next() == [1])
            try await sending
            client.close()
            server.close()
            listener.close()
        }
    }

    /// Nothing is waited for where no session can come back: a peer's second connection is there at once, though it is silent.
    @Test func aSecondConnectionIsHandedOverAtOnceWhereNoSessionGoesOn() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer", framing: LengthPrefixFraming()).listen()
            var links = listener.links.makeAsyncIterator()
            var ends: [any Link] = []
            for _ in 0..<2 {
                ends.append(try await air.station("me").connect(timeout: .unreached))
                ends.append(try #require(await links.next()))
            }
            #expect(air.time.now < .zero + MemoryAir.backoff.attempt)
            for end in ends { end.close() }
            listener.close()
        }
    }

    /// With a framing that sends whatever fits, and an app that is late: everything arrives, whole.
    @Test(arguments: [LengthPrefixFraming() as any Framing, EndOfMessageFraming()])
    func nothingIsDroppedWhileALinkWaitsToBeTaken(_ framing: any Framing) throws {
        let air = MemoryAir()
        @Sendable func channel(_ link: any Link, _ framing: some Framing) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(over: link, codec: BytesCodec(), framing: framing, time: air.time)
        }
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            let client = try channel(
                try await air.reconnecting("me").connect(timeout: .unreached), framing)
            async let sending: Void = client.send(pattern(20_000))
            try await air.time.sleep(for: .milliseconds(100))
            var links = listener.links.makeAsyncIterator()
            let server = try channel(try #require(await links.next()), framing)
            var received = server.messages.makeAsyncIterator()
            #expect(try await received.next() == pattern(20_000))
            try await sending
            client.close()
            server.close()
            listener.close()
        }
    }

    /// A side that listens may speak first.
    @Test func aListenerMaySpeakFirst() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            let client = try MessageChannel(
                over: try await air.reconnecting("me").connect(timeout: .unreached), codec: BytesCodec(), time: air.time
            )
            var links = listener.links.makeAsyncIterator()
            let server = try MessageChannel(over: try #require(await links.next()), codec: BytesCodec(), time: air.time)
            try await server.send([7])
            var received = client.messages.makeAsyncIterator()
            #expect(try await received.next() == [7])
            client.close()
            server.close()
            listener.close()
        }
    }

    /// A peer that begins anew has a link of its own; its former one waits for the session that it had.
    @Test func anotherSessionOfTheSamePeerIsAnotherLink() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            var links = listener.links.makeAsyncIterator()
            let first = try air.sequenced(try await air.station("me").connect(timeout: .unreached))
            let former = try air.sequenced(try #require(await links.next()))
            try await first.send([1])
            air.breakConnections(to: "peer")
            let second = try air.sequenced(try await air.station("me").connect(timeout: .unreached))
            async let sent: Void = second.send([2])
            let later = try air.sequenced(try #require(await links.next()))
            var received = later.messages.makeAsyncIterator()
            #expect(try await received.next() == [2])
            try await sent
            try await air.time.until("the former link waits") { former.status.phase == .suspended }
            for channel in [first, second, former, later] { channel.close() }
            listener.close()
        }
    }

    /// The peer's other sessions have links that nobody reads yet: the one that comes back goes on in its own.
    @Test func aSessionComesBackToItsOwnLink() throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            var links = listener.links.makeAsyncIterator()
            let client = try air.sequenced(try await air.reconnecting("me").connect(timeout: .unreached))
            let server = try air.sequenced(try #require(await links.next()))
            var received = server.messages.makeAsyncIterator()
            try await client.send([1])
            #expect(try await received.next() == [1])
            var others: [(near: MessageChannel<[UInt8], [UInt8]>, far: any Link)] = []
            for _ in 0..<3 {
                let near = try air.sequenced(try await air.station("me").connect(timeout: .unreached))
                others.append((near, try #require(await links.next())))
            }
            air.pairs[0].near.disconnect()
            try await client.send([2], timeout: .unreached)
            #expect(try await received.next() == [2])
            #expect(client.status.resumptions == 1)
            for (number, other) in others.enumerated() {
                async let sent: Void = other.near.send([UInt8(number)], timeout: .unreached)
                let far = try air.sequenced(other.far)
                var messages = far.messages.makeAsyncIterator()
                #expect(try await messages.next() == [UInt8(number)])
                try await sent
                far.close()
            }
            client.close()
            server.close()
            listener.close()
        }
    }

    /// Once nobody listens no peer can come back: a link that has lost its connection ends, and does not wait for ever.
    @Test(arguments: [true, false]) func aLinkEndsWithTheListenerThatItsPeerCameBy(_ closesFirst: Bool) throws {
        let air = MemoryAir()
        try air.run {
            let listener = try await air.reconnecting("peer").listen()
            let client = try air.sequenced(try await air.station("me").connect(timeout: .unreached))
            var links = listener.links.makeAsyncIterator()
            let server = try air.sequenced(try #require(await links.next()))
            try await client.send([1])
            if closesFirst { listener.close() }
            air.breakConnections(to: "peer")
            if !closesFirst {
                try await air.time.until("the link waits") { server.status.phase == .suspended }
                listener.close()
            }
            try await air.time.until("the end of the link") { server.closeReason != nil }
            #expect(server.closeReason?.message.contains("listener that it came by is closed") == true)
            client.close()
            server.close()
        }
    }

    /// How long a link may wait to be taken is told by the transport's clock, as everything is.
    @Test func aLinkThatNobodyTakesIsClosedInTheTransportsTime() throws {
        let air = MemoryAir()
        let time = VirtualTime()
        try air.run {
            let listener = try await air.reconnecting("peer", time: time).listen()
            let client = try air.sequenced(try await air.station("me").connect(timeout: .unreached))
            try await air.time.until("the end of the link") {
                time.advance(by: .seconds(1))
                return client.closeReason != nil
            }
            listener.close()
        }
    }

    /// Dropped without a close, a listener stops: nothing that it began holds it.
    @Test func aDroppedListenerStops() throws {
        let air = MemoryAir()
        try air.run {
            let dropped = Dropped()
            do {
                let listener = try await air.reconnecting("peer").listen()
                dropped.listener = listener
                withExtendedLifetime(listener) {}
            }
            try await air.time.until("the end of the listener") { dropped.listener == nil }
            let error = await #expect(throws: FerryError.self) {
                try await air.station("me").connect(timeout: .seconds(1))
            }
            #expect(error?.code == .peerNotFound)
        }
    }

    private final class Dropped: Sendable {
        private let state = Mutex(State())
        private struct State { weak var listener: LinkListener? }
        var listener: LinkListener? {
            get { state.withLock { $0.listener } }
            set { state.withLock { $0.listener = newValue } }
        }
    }
}

extension MemoryAir {
    fileprivate static var backoff: ReconnectingTransport<Station>.Backoff {
        var backoff = ReconnectingTransport<Station>.Backoff()
        backoff.initial = .milliseconds(1)
        backoff.maximum = .milliseconds(10)
        return backoff
    }

    /// A station's transport that reconnects, with short pauses.
    fileprivate func reconnecting(
        _ name: String, framing: some Framing = SequencedFraming(),
        unrecognizedPeers: ReconnectingTransport<Station>.UnrecognizedPeers = .areRefused, time: VirtualTime? = nil
    ) -> ReconnectingTransport<Station> {
        ReconnectingTransport(
            over: station(name), framing: framing, unrecognizedPeers: unrecognizedPeers, backoff: Self.backoff,
            time: time ?? self.time)
    }
}

extension ReconnectingTransport.Backoff {
    fileprivate init<Other>(_ other: ReconnectingTransport<Other>.Backoff) {
        self.init()
        initial = other.initial
        maximum = other.maximum
    }
}
