import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

@testable import FerrySequenced

/// The sequenced framing through a whole channel.
@Suite(.tags(.core, .framing, .sequenced), .timeLimit(.minutes(5))) struct SequencedChannelTests {
    // MARK: The formats in the hello

    private struct Halving: Compression {
        var identifier: UInt8 = 77
        func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) -> Bool { false }
        func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] { [] }
    }

    @Test func anotherCodecIsRefusedByNameOnBothSides() throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let bytes = try MessageChannel(over: links.0, codec: BytesCodec(), framing: SequencedFraming())
        let text = try MessageChannel(over: links.1, codec: TextCodec(), framing: SequencedFraming())
        exchange(links)
        for reason in [bytes.closeReason, text.closeReason] {
            #expect(reason?.code == .incompatiblePeer)
            #expect(reason?.message.contains("codec") == true, "\(String(describing: reason))")
        }
    }

    @Test func anotherCompressionIsRefusedByNameOnBothSides() throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let plain = try MessageChannel(over: links.0, codec: BytesCodec(), framing: SequencedFraming())
        let small = try MessageChannel(
            over: links.1, codec: BytesCodec(), framing: SequencedFraming(), compression: Halving())
        exchange(links)
        for reason in [plain.closeReason, small.closeReason] {
            #expect(reason?.code == .incompatiblePeer)
            #expect(reason?.message.contains("compression") == true, "\(String(describing: reason))")
        }
    }

    /// The numbers from 128 on are deflate's with a dictionary; both sides say which one they have, and what to do.
    @Test func anotherDictionaryIsNamedOnBothSides() throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let channels = try zip([links.0, links.1], [128, 254] as [UInt8]).map { link, number in
            try MessageChannel(
                over: link, codec: BytesCodec(), framing: SequencedFraming(), compression: Halving(identifier: number))
        }
        exchange(links)
        for channel in channels {
            let words = try #require(channel.closeReason?.message)
            #expect(words.contains(/compresses with the dictionary of number (128|254)/), "\(words)")
            #expect(words.contains("Give both sides the same dictionary"), "\(words)")
        }
    }

    @Test func theHelloCarriesTheChannelsNumbers() throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let tap = Tap()
        let channel = try MessageChannel(
            over: TappedLink(links.0, observer: tap), codec: TextCodec(), framing: SequencedFraming(),
            compression: Halving())
        #expect(tap.first.withLock { $0 }.map { [$0[9], $0[10]] } == [2, 77])
        channel.close()
        var configuration = SequencedFraming.Configuration()
        configuration.codec = 200
        configuration.compression = 201
        let others = MemoryLink.makePair(maximumChunkSize: 20)
        let second = Tap()
        let chosen = try MessageChannel(
            over: TappedLink(others.0, observer: second), codec: TextCodec(), framing: SequencedFraming(configuration))
        #expect(second.first.withLock { $0 }.map { [$0[9], $0[10]] } == [200, 201])
        chosen.close()
    }

    private final class Tap: LinkObserver {
        let first = Mutex<[UInt8]?>(nil)
        func linkDidSend(_ chunk: RawSpan) {
            first.withLock { $0 = $0 ?? chunk.withUnsafeBytes { Array($0) } }
        }
    }

    // MARK: Sending

    @Test func progressCountsWhatThePeerHas() {
        let rig = ChannelRig(framing: SequencedFraming(), queueDepth: 100)
        exchange(rig.links)
        let id = rig.send(pattern(500))
        rig.deliverAll()
        #expect(rig.outcome(id) == nil)
        #expect(rig.progress(id).isEmpty)
        exchange(rig.links)
        #expect(rig.hasSucceeded(id))
        #expect(rig.progress(id).last?.acceptedBytes == 500)
        #expect(rig.messages() == [pattern(500)])
    }

    @Test func cancellingInTheMiddleTakesTheMessageBack() {
        let rig = ChannelRig(framing: SequencedFraming(), queueDepth: 4)
        exchange(rig.links)
        let id = rig.send(pattern(500))
        _ = rig.links.a.deliver()
        _ = rig.links.a.deliver()
        rig.a.cancel(id)
        let error = rig.error(id)
        #expect(error?.code == .cancelled)
        #expect(error?.message.contains("the peer does not get it") == true)
        let next = rig.send(pattern(30))
        exchange(rig.links)
        #expect(rig.hasSucceeded(next))
        #expect(error?.fate == .takenBack)
        // The reader is not told of what it never saw.
        #expect(rig.messages() == [pattern(30)])
        #expect(rig.b.statistics.messagesCancelledByPeer == 1)
    }

    @Test func aTimeoutInTheMiddleTakesTheMessageBack() {
        let rig = ChannelRig(framing: SequencedFraming(), queueDepth: 4)
        exchange(rig.links)
        let id = rig.send(pattern(500), timeout: .seconds(5))
        for _ in 0..<8 { _ = rig.links.a.deliver() }
        while rig.links.b.deliver() {}
        rig.time.advance(by: .seconds(5))
        let error = rig.error(id)
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("of 500 bytes of the message acknowledged by the peer") == true, "\(error!)")
        #expect(error?.message.contains("taken back") == true)
        #expect(rig.a.closeReason == nil)
    }

    // MARK: Receiving

    @Test func aSlowReaderStopsTheSenderByCreditAlone() {
        var limits = Limits()
        limits.maximumInboundBytes = 64 << 10
        limits.maximumMessageSize = 16 << 10
        let rig = ChannelRig(
            framing: SequencedFraming(), maximumChunkSize: 244, queueDepth: 100, limits: limits)
        exchange(rig.links)
        let ids = (0..<100).map { rig.send(pattern(8000, seed: $0)) }
        exchange(rig.links)
        // Hours pass and nobody reads: what waits is bounded, acknowledgements still cross, nothing ends.
        for _ in 0..<500 {
            rig.time.advance(by: .seconds(20))
            exchange(rig.links)
        }
        #expect(rig.links.b.isReceiving)
        #expect(rig.a.closeReason == nil)
        #expect(rig.b.closeReason == nil)
        let waiting = rig.b.statistics.messagesReceived
        #expect(waiting >= 5 && waiting * 8000 <= limits.maximumInboundBytes)
        var received: [[UInt8]] = []
        while received.count < 100 {
            received += rig.messages()
            rig.time.advance(by: .milliseconds(200))
            exchange(rig.links)
            if rig.b.closeReason != nil { break }
        }
        #expect(received.count == 100)
        #expect(ids.allSatisfy(rig.hasSucceeded))
    }

    /// The link is paused for a reader that is slow: that the peer is silent then is no fault of its own.
    @Test func aPausedPeerIsNotTakenForASilentOne() {
        var limits = Limits()
        limits.maximumInboundBytes = 1000
        let rig = ChannelRig(maximumChunkSize: 100, queueDepth: 100, receiverLimits: limits)
        rig.send(pattern(600))
        rig.send(pattern(350, seed: 1))
        for _ in 0..<8 { _ = rig.links.a.deliver() }
        #expect(!rig.links.b.isReceiving)
        rig.time.advance(by: .seconds(3600))
        #expect(rig.b.closeReason == nil)
        #expect(rig.messages() == [pattern(600)])
        rig.deliverAll()
        #expect(rig.messages() == [pattern(350, seed: 1)])
        // A peer that is silent though it may go on is still noticed.
        rig.send(pattern(350, seed: 2))
        _ = rig.links.a.deliver()
        rig.time.advance(by: .seconds(61))
        #expect(rig.b.closeReason?.code == .truncatedMessage)
    }

    @Test func silenceInTheMiddleOfASequencedMessageHasADeadline() {
        let rig = ChannelRig(framing: SequencedFraming(), queueDepth: 100)
        exchange(rig.links)
        rig.send(pattern(500))
        _ = rig.links.a.deliver()
        rig.time.advance(by: .seconds(59))
        #expect(rig.b.closeReason == nil)
        rig.time.advance(by: .seconds(2))
        #expect(rig.b.closeReason?.code == .truncatedMessage)
        #expect(rig.b.closeReason?.message.contains("Limits.inboundStallTimeout") == true)
    }

    @Test(arguments: [SequencedFraming() as any Framing, LengthPrefixFraming()])
    func aMessageOfTheLargestSizeFitsItsEnvelope(_ framing: any Framing) async throws {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        let links = MemoryLink.makePair(maximumChunkSize: 100, queueDepth: 100)
        func channel(_ link: MemoryLink, _ framing: some Framing) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(
                over: link, codec: BytesCodec(), framing: framing, compression: Halving(), limits: limits,
                time: VirtualTime())
        }
        let (a, b) = (try channel(links.0, framing), try channel(links.1, framing))
        async let sending: Void = a.send(pattern(1000))
        async let receiving: [UInt8]? = {
            var messages = b.messages.makeAsyncIterator()
            return try await messages.next()
        }()
        try await until("the message is acknowledged") {
            exchange(links)
            return b.statistics.messagesReceived > 0 && a.statistics.messagesSent > 0
        }
        try await sending
        #expect(try await receiving == pattern(1000))
        let error = await #expect(throws: FerryError.self) { try await a.send(pattern(1001)) }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.message.contains("1001 bytes") == true)
        a.close()
        b.close()
    }

    // MARK: Links that are dead without anybody knowing

    /// Two channels over links that reconnect, whose connections the test makes.
    private final class Pair {
        let time = VirtualTime()
        var links: (MemoryLink, MemoryLink)
        let resumable: [ResumableLink]
        let cores: [ChannelCore]
        let suspensions: [Count]

        final class Count: Sendable {
            let value = Mutex(0)
        }

        init() {
            links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 100)
            var configuration = SequencedFraming.Configuration()
            configuration.maximumTimeouts = 3
            let counts = [Count(), Count()]
            suspensions = counts
            resumable = [links.0, links.1].enumerated().map { index, link in
                ResumableLink(over: link) { event in
                    if case .suspended = event { counts[index].value.withLock { $0 += 1 } }
                }
            }
            let time = time
            cores = resumable.map {
                ChannelCore(
                    link: $0, session: SequencedFraming(configuration).makeSession(limits: Limits()), chunkSize: .max,
                    limits: Limits(), time: time)
            }
            for core in cores { core.open() }
        }

        /// A new connection in place of the last one.
        func connect() {
            links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 100)
            for (link, below) in zip(resumable, [links.0, links.1]) { #expect(link.adopt(below)) }
        }
    }

    /// All of it is out, and nobody is there to say that it has arrived: its sender does not wait for that.
    @Test func aSendIsCancelledAtOnceThoughTheLinkIsLost() {
        let pair = Pair()
        exchange(pair.links)
        let outcome = Mutex<Result<Void, FerryError>?>(nil)
        let id = pair.cores[0].makeID()
        pair.cores[0].submit(pattern(30), as: id) { result in outcome.withLock { $0 = result } }
        pair.links.0.disconnect()
        #expect(pair.cores[0].status.phase == .suspended)
        pair.cores[0].cancel(id)
        guard case .failure(let error)? = outcome.withLock({ $0 }) else {
            Issue.record("its sender still waits")
            return
        }
        #expect(error.code == .cancelled)
        #expect(error.fate == .mayHaveArrived)
        for core in pair.cores { core.finish(FerryError(.closed, "The test is over.")) }
    }

    @Test func aSilentPeerIsLookedForOverAnotherConnection() {
        let pair = Pair()
        exchange(pair.links)
        let outcome = Mutex<Result<Void, FerryError>?>(nil)
        pair.cores[0].submit(pattern(300), as: pair.cores[0].makeID()) { result in outcome.withLock { $0 = result } }
        // The connection carries nothing any more, and neither stack says so.
        for _ in 0..<100 {
            pair.time.advance(by: .seconds(1))
            while pair.links.0.deliver(.isLost) {}
            while pair.links.1.deliver(.isLost) {}
        }
        #expect(pair.suspensions[0].value.withLock { $0 } == 1)
        #expect(pair.cores[0].closeReason == nil)
        pair.connect()
        exchange(pair.links)
        guard case .success? = outcome.withLock({ $0 }) else {
            Issue.record("not sent: \(String(describing: outcome.withLock { $0 }))")
            return
        }
        guard case .message(let payload)? = pair.cores[1].take() else {
            Issue.record("not received")
            return
        }
        #expect(payload == pattern(300))
    }

    @Test func aPeerThatStaysSilentEndsTheChannelInTheEnd() {
        let pair = Pair()
        pair.cores[0].submit(pattern(300), as: pair.cores[0].makeID()) { _ in }
        var connections = 1
        for _ in 0..<1000 where pair.cores[0].closeReason == nil {
            pair.time.advance(by: .seconds(1))
            while pair.links.0.deliver(.isLost) {}
            while pair.links.1.deliver(.isLost) {}
            if pair.suspensions[0].value.withLock({ $0 }) == connections {
                pair.connect()
                connections += 1
            }
        }
        #expect(pair.cores[0].closeReason?.code == .timedOut)
        #expect(connections == 4)
    }

    /// A link that cannot be replaced ends with the session.
    @Test func withoutReconnectingSilenceEndsTheChannel() {
        var configuration = SequencedFraming.Configuration()
        configuration.maximumTimeouts = 3
        let rig = ChannelRig(framing: SequencedFraming(configuration), queueDepth: 100)
        exchange(rig.links)
        let id = rig.send(pattern(100))
        for _ in 0..<100 {
            rig.time.advance(by: .seconds(1))
            while rig.links.a.deliver(.isLost) {}
        }
        #expect(rig.error(id)?.code == .timedOut)
        #expect(rig.a.closeReason?.code == .timedOut)
    }

    // MARK: Life

    @Test func theStatusIsToldUntilTheEnd() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let a = try MessageChannel(over: links.0, codec: BytesCodec(), framing: SequencedFraming())
        let b = try MessageChannel(over: links.1, codec: BytesCodec(), framing: SequencedFraming())
        #expect(a.status.phase == .connecting)
        var statuses = a.statuses.makeAsyncIterator()
        #expect(await statuses.next()?.phase == .connecting)
        exchange(links)
        #expect(await statuses.next()?.phase == .open)
        #expect(a.peer == links.0.peer)
        async let closed = a.closed
        b.close()
        #expect(await statuses.next()?.phase == .ended)
        #expect(await statuses.next() == nil)
        #expect(await closed?.code == .disconnected)
        #expect(await a.closed?.code == .disconnected, "also afterwards")
    }

    @Test func withAcknowledgementsWhatIsOutMayHaveArrived() {
        let rig = ChannelRig(framing: SequencedFraming(), queueDepth: 4)
        exchange(rig.links)
        let out = rig.send(pattern(10))
        let begun = rig.send(pattern(500))
        #expect(rig.outcome(out) == nil)
        rig.links.a.disconnect()
        #expect(rig.error(out)?.fate == .mayHaveArrived)
        #expect(rig.error(begun)?.fate == .takenBack)
    }

    /// The link takes nothing more, and still holds the acknowledgement of a message.
    @Test func whatAnEndedLinkStillHoldsMayAcknowledge() {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let ending = EndingLink(links.0)
        let limits = Limits(), framing = SequencedFraming(), time = VirtualTime()
        let sender = ChannelCore(
            link: ending, session: framing.makeSession(limits: limits), chunkSize: .max, limits: limits, time: time)
        let receiver = ChannelCore(
            link: links.1, session: framing.makeSession(limits: limits), chunkSize: .max, limits: limits, time: time)
        sender.open()
        receiver.open()
        exchange(links)
        let results = Mutex<[Int: Result<Void, FerryError>]>([:])
        func send(_ number: Int) {
            sender.submit(pattern(10), as: sender.makeID()) { result in results.withLock { $0[number] = result } }
        }
        send(0)
        while links.0.deliver() {}
        ending.hasEnded.store(true, ordering: .relaxed)
        send(1)
        #expect(sender.closeReason?.code == .disconnected)
        #expect(results.withLock { $0.isEmpty })
        while links.1.deliver() {}
        guard case .success? = results.withLock({ $0[0] }) else {
            Issue.record("the acknowledgement is lost")
            return
        }
        links.0.disconnect()
        guard case .failure(let error)? = results.withLock({ $0[1] }) else {
            Issue.record("nothing is said of the second message")
            return
        }
        #expect(error.fate == .nothingSent)
    }

    /// A link that ends: it takes nothing more, and what it holds comes before it says so.
    private final class EndingLink: Link {
        let hasEnded = Atomic(false)
        private let link: MemoryLink

        init(_ link: MemoryLink) { self.link = link }

        var peer: PeerIdentity { link.peer }
        var maximumChunkSize: Int { link.maximumChunkSize }
        func activate(_ receiver: any LinkReceiver) { link.activate(receiver) }
        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            if hasEnded.load(ordering: .relaxed) { throw FerryError(.disconnected, "The peer is gone.") }
            return try link.trySend(chunk)
        }
        func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }
        func close() {}
    }

    @Test func cancellingManyIsLinear() { ChannelRig.expectCancellingToBeLinear(SequencedFraming()) }
}
