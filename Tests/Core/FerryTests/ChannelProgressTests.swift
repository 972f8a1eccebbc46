import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Progress goes forward only, and nothing is told of a message after its `send` has returned.
@Suite(.tags(.core, .channel)) struct ChannelProgressTests {
    /// A peer that has lost its state gets the message from its beginning once more.
    @Test func goesForwardOnlyThoughTheMessageBeginsAgain() {
        let link = ScriptedLink(sizes: [20]) { _, _ in true }
        let core = ChannelCore(
            link: link, session: SteppingSession(steps: [40, 20, 40, 60, 100]), chunkSize: .max, limits: Limits(),
            time: VirtualTime())
        core.open()
        let told = Mutex<[Int]>([])
        core.submit(
            pattern(100), as: core.makeID(), progress: { step in told.withLock { $0.append(step.acceptedBytes) } },
            completion: { _ in told.withLock { $0.append(-1) } })
        for _ in 0..<10 { link.receive([1]) }
        #expect(told.withLock { $0 } == [40, 60, 100, -1])
    }

    /// What ends the message comes while somebody is still being told how far it is: that is told first, and in its order.
    @Test(arguments: [true, false]) func isOverWhenSendReturns(_ isCancelled: Bool) {
        let isOpen = Atomic(false)
        let link = ScriptedLink(sizes: [20]) { number, _ in number == 0 || isOpen.load(ordering: .relaxed) }
        let limits = Limits()
        let core = ChannelCore(
            link: link, session: LengthPrefixFraming().makeSession(limits: limits), chunkSize: .max, limits: limits,
            time: VirtualTime())
        core.open()
        let told = Mutex<[String]>([])
        let id = core.makeID()
        core.submit(
            pattern(100), as: id,
            progress: { step in
                if !isOpen.exchange(true, ordering: .relaxed) {
                    if isCancelled { core.cancel(id) }
                    core.linkIsReady()
                }
                told.withLock { $0.append("\(step.acceptedBytes)") }
            },
            completion: { result in
                told.withLock { $0.append((try? result.get()) == nil ? "given up" : "sent") }
            })
        // The first chunk has a byte of the prefix in it.
        #expect(told.withLock { $0 } == (isCancelled ? ["19", "given up"] : ["19", "100", "sent"]))
        #expect(link.taken.count == 6, "the rest left while the first step was told")
    }
}

/// Tells of one message, a step for each chunk that arrives, whatever it is.
private struct SteppingSession: FramingSession {
    private var steps: [Int]
    private var message: MessageID?
    private var events: [FramingEvent] = []

    init(steps: [Int]) { self.steps = steps }

    mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) { message = id }
    mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { false }
    mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission { .idle }

    mutating func receive(_ chunk: RawSpan, at now: Timestamp) {
        guard let message else { return }
        if steps.isEmpty {
            events.append(.sent(message))
            self.message = nil
        } else {
            events.append(.progress(message, acceptedBytes: steps.removeFirst()))
        }
    }

    mutating func nextEvent() -> FramingEvent? { events.isEmpty ? nil : events.removeFirst() }
    mutating func linkDidClose(at now: Timestamp) {}
}
