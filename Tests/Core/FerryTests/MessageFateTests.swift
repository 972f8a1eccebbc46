import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// What a sender is told of a message whose send has failed, and what a receiver gets before the end.
@Suite(.tags(.core, .channel)) struct MessageFateTests {
    @Test func aMessageThatHasNotBegunIsTakenBackWithNothingSent() {
        let rig = ChannelRig(queueDepth: 1)
        rig.send(pattern(100))
        let cancelled = rig.send(pattern(10))
        rig.a.cancel(cancelled)
        #expect(rig.error(cancelled)?.fate == .nothingSent)
        let late = rig.send(pattern(10), timeout: .seconds(1))
        rig.time.advance(by: .seconds(2))
        #expect(rig.error(late)?.code == .timedOut)
        #expect(rig.error(late)?.fate == .nothingSent)
        rig.deliverAll()
        #expect(rig.messages() == [pattern(100)])
    }

    /// Its sender does not wait for the link to take the rest.
    @Test(arguments: [true, false]) func aMessageThatHasBegunReturnsAtOnce(_ cancels: Bool) {
        let rig = ChannelRig(queueDepth: 1)
        let id = rig.send(pattern(100), timeout: cancels ? nil : .seconds(1))
        if cancels { rig.a.cancel(id) } else { rig.time.advance(by: .seconds(1)) }
        #expect(rig.error(id)?.code == (cancels ? .cancelled : .timedOut))
        #expect(rig.error(id)?.fate == .mayHaveArrived)
        let steps = rig.progress(id).count
        rig.deliverAll()
        #expect(rig.messages() == [pattern(100)])
        #expect(rig.progress(id).count == steps, "nobody is told of progress any more")
    }

    @Test func theEndOfTheChannelTellsEachMessagesFate() {
        let rig = ChannelRig(queueDepth: 2)
        let whole = rig.send(pattern(10))
        let begun = rig.send(pattern(100))
        let waiting = rig.send(pattern(10))
        rig.links.a.disconnect()
        #expect(rig.hasSucceeded(whole))
        #expect(rig.error(begun)?.fate == .takenBack)
        #expect(rig.error(waiting)?.fate == .nothingSent)
        let after = rig.send(pattern(10))
        #expect(rig.error(after)?.fate == .nothingSent)
    }

    @Test func refusedMessagesHaveLeftNothing() {
        var limits = Limits()
        limits.maximumMessageSize = 100
        limits.maximumOutboundBytes = 150
        let rig = ChannelRig(queueDepth: 1, limits: limits)
        #expect(rig.error(rig.send(pattern(101)))?.fate == .nothingSent)
        rig.send(pattern(100))
        #expect(rig.error(rig.send(pattern(100)))?.code == .queueFull)
        #expect(rig.error(rig.send(pattern(100)))?.fate == .nothingSent)
    }

    // MARK: The end, and what came before it

    /// A message of one byte, and then a length that is not in its shortest form.
    @Test(arguments: [[[0x01, 0xAA, 0x80, 0x00]], [[0x01, 0xAA], [0x80, 0x00]]] as [[[UInt8]]])
    func whatArrivedWholeIsDeliveredBeforeTheFailure(_ chunks: [[UInt8]]) {
        let link = ScriptedLink(sizes: [20]) { _, _ in true }
        let core = makeCore(link)
        for chunk in chunks { link.receive(chunk) }
        guard case .message([0xAA])? = core.take(), case .failure(let error)? = core.take() else {
            Issue.record("the message before the failure is lost")
            return
        }
        #expect(error.code == .malformedStream)
        #expect(link.isClosed)
    }

    /// The link takes the first message and ends with the second.
    @Test func whatTheLinkTookWholeIsSent() {
        let isOpen = Atomic(false)
        let link = ScriptedLink(sizes: [11]) { (number, _) throws(FerryError) in
            if number == 1 { throw FerryError(.disconnected, "The peer is gone.") }
            return isOpen.load(ordering: .relaxed)
        }
        let core = makeCore(link)
        let results = Mutex<[Int: Result<Void, FerryError>]>([:])
        for number in 0..<2 {
            core.submit(pattern(10), as: core.makeID()) { result in results.withLock { $0[number] = result } }
        }
        isOpen.store(true, ordering: .relaxed)
        core.linkIsReady()
        guard case .success? = results.withLock({ $0[0] }), case .failure(let error)? = results.withLock({ $0[1] })
        else {
            Issue.record("\(results.withLock { $0 })")
            return
        }
        #expect(error.fate == .nothingSent)
        #expect(error.message.contains("0 of 10 bytes"))
    }

    /// What a link still holds when it has ended is received, though nothing can be sent.
    @Test func aLinkThatEndedBeforeItWasTakenIsReadToItsEnd() {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let sender = makeCore(links.0)
        sender.submit(pattern(15), as: sender.makeID()) { _ in }
        let held = HeldLink(links.1)
        links.1.activate(held)
        while links.0.deliver() {}
        links.0.disconnect()
        let receiver = makeCore(held)
        receiver.submit(pattern(10), as: receiver.makeID()) { _ in }
        guard case .message(let payload)? = receiver.take(), case .end? = receiver.take() else {
            Issue.record("what had arrived is lost")
            return
        }
        #expect(payload == pattern(15))
    }

    private func makeCore(_ link: any Link, _ time: any TimeSource = VirtualTime()) -> ChannelCore {
        let limits = Limits()
        let core = ChannelCore(
            link: link, session: LengthPrefixFraming().makeSession(limits: limits), chunkSize: .max, limits: limits,
            time: time)
        core.open()
        return core
    }

    /// Holds what arrives until it is activated, as links over Bluetooth do.
    private final class HeldLink: Link, LinkReceiver {
        private let link: MemoryLink
        private let held = Mutex<(chunks: [[UInt8]], reason: FerryError?)>(([], nil))

        init(_ link: MemoryLink) { self.link = link }

        var peer: PeerIdentity { link.peer }
        var maximumChunkSize: Int { link.maximumChunkSize }
        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { try link.trySend(chunk) }
        func setReceiving(_ isReceiving: Bool) {}
        func close() { link.close() }
        func activate(_ receiver: any LinkReceiver) {
            let (chunks, reason) = held.withLock { $0 }
            for chunk in chunks { receiver.linkDidReceive(chunk.span.bytes) }
            if let reason { receiver.linkDidClose(reason) }
        }
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            held.withLock { $0.chunks.append(bytes) }
        }
        func linkDidClose(_ reason: FerryError) { held.withLock { $0.reason = reason } }
    }

    // MARK: Links that change

    /// The link shrinks between the question and the chunk: the same bytes are cut anew.
    @Test func aLinkThatShrinksMeanwhileGetsSmallerChunks() {
        let link = ScriptedLink(sizes: [100, 20]) { (_, chunk) throws(FerryError) in
            guard chunk.count <= 20 else { throw FerryError(.chunkTooLarge, "20 bytes at present") }
            return true
        }
        let core = makeCore(link)
        let isSent = Atomic(false)
        core.submit(pattern(90), as: core.makeID()) { result in
            if case .success = result { isSent.store(true, ordering: .relaxed) }
        }
        let wasSent = isSent.load(ordering: .relaxed)
        #expect(wasSent)
        #expect(core.closeReason == nil)
        #expect(link.taken.map(\.count) == [20, 20, 20, 20, 11])
        #expect(Array(link.taken.joined().dropFirst()) == pattern(90))
    }

    /// A link that refuses the size that it states itself is broken; it is not asked for ever.
    @Test func aLinkThatRefusesItsOwnSizeEndsTheChannel() {
        let link = ScriptedLink(sizes: [100]) { (_, _) throws(FerryError) in
            throw FerryError(.chunkTooLarge, "never")
        }
        let core = makeCore(link)
        core.submit(pattern(10), as: core.makeID()) { _ in }
        #expect(core.closeReason?.code == .chunkTooLarge)
    }

    @Test func aMachinesSleepIsNotAStall() {
        let isOpen = Atomic(false)
        let link = ScriptedLink(sizes: [20]) { (_, _) in isOpen.load(ordering: .relaxed) }
        let time = SleepyTime()
        let core = makeCore(link, time)
        let isSent = Atomic(false)
        core.submit(pattern(10), as: core.makeID()) { result in
            if case .success = result { isSent.store(true, ordering: .relaxed) }
        }
        time.sleepMachine(.seconds(3600))
        time.time.advance(by: .milliseconds(20))
        #expect(core.closeReason == nil)
        isOpen.store(true, ordering: .relaxed)
        core.linkIsReady()
        let wasSent = isSent.load(ordering: .relaxed)
        #expect(wasSent)
    }

    /// A link that is awake and takes nothing is given up after 30 s, no later.
    @Test func aStallIsNoticedInTime() {
        let link = ScriptedLink(sizes: [20]) { (_, _) in false }
        let time = VirtualTime()
        let core = makeCore(link, time)
        core.submit(pattern(10), as: core.makeID()) { _ in }
        time.advance(by: .seconds(29))
        #expect(core.closeReason == nil)
        time.advance(by: .seconds(2))
        #expect(core.closeReason?.code == .timedOut)
    }

    // MARK: What is left behind

    @Test func nothingIsLeftOfASendWithATimeout() {
        let rig = ChannelRig(queueDepth: 100)
        for _ in 0..<50 { rig.send(pattern(10), timeout: .seconds(3600)) }
        rig.deliverAll()
        #expect(rig.time.timerCount == 0)
        rig.send(pattern(2000), timeout: .seconds(3600))
        rig.links.a.disconnect()
        #expect(rig.time.timerCount == 0)
    }

    @Test(arguments: [LengthPrefixFraming() as any Framing, EndOfMessageFraming()])
    func cancellingManyIsLinear(_ framing: any Framing) { ChannelRig.expectCancellingToBeLinear(framing) }
}
