package import Ferry
package import FerryTesting
import Synchronization
import Testing

/// Two channel cores over a pair of memory links under virtual time: nothing happens but what the test does.
package final class ChannelRig: Sendable {
    package let time = VirtualTime()
    package let links: (a: MemoryLink, b: MemoryLink)
    package let a: ChannelCore
    package let b: ChannelCore
    private let outcomes = Mutex<[MessageID: Result<Void, FerryError>]>([:])
    private let steps = Mutex<[MessageID: [SendProgress]]>([:])

    package init(
        framing: some Framing = LengthPrefixFraming(), maximumChunkSize: Int = 20, queueDepth: Int = 4,
        limits: Limits = Limits(), receiverLimits: Limits? = nil
    ) {
        let (a, b) = MemoryLink.makePair(maximumChunkSize: maximumChunkSize, queueDepth: queueDepth)
        links = (a, b)
        let theirs = receiverLimits ?? limits
        self.a = ChannelCore(
            link: a, session: framing.makeSession(limits: limits), chunkSize: .max, limits: limits, time: time)
        self.b = ChannelCore(
            link: b, session: framing.makeSession(limits: theirs), chunkSize: .max, limits: theirs, time: time)
        self.a.open()
        self.b.open()
    }

    /// Sends from a to b.
    @discardableResult
    package func send(_ payload: [UInt8], timeout: Duration? = nil) -> MessageID {
        let id = a.makeID()
        a.submit(
            payload, as: id, timeout: timeout,
            progress: { [self] step in steps.withLock { $0[id, default: []].append(step) } },
            completion: { [self] result in
                outcomes.withLock { outcomes in
                    precondition(outcomes[id] == nil, "a send was completed twice")
                    outcomes[id] = result
                }
            })
        return id
    }

    /// What became of a message, or nil while it is under way.
    package func outcome(_ id: MessageID) -> Result<Void, FerryError>? { outcomes.withLock { $0[id] } }

    package func error(_ id: MessageID) -> FerryError? {
        if case .failure(let error)? = outcome(id) { error } else { nil }
    }

    package func hasSucceeded(_ id: MessageID) -> Bool {
        if case .success? = outcome(id) { true } else { false }
    }

    package func progress(_ id: MessageID) -> [SendProgress] { steps.withLock { $0[id] ?? [] } }

    /// Delivers everything from a to b.
    package func deliverAll() { while links.a.deliver() {} }

    /// What b can read now.
    package func readAll() -> [Delivery] {
        var deliveries: [Delivery] = []
        while let delivery = b.take() {
            deliveries.append(delivery)
            if case .end = delivery { break }
        }
        return deliveries
    }

    /// The messages that b can read now.
    package func messages() -> [[UInt8]] {
        readAll().compactMap { if case .message(let payload) = $0 { payload } else { nil } }
    }
}

extension ChannelRig {
    /// Taking back n messages that wait takes n times as long as taking back one.
    package static func expectCancellingToBeLinear(_ framing: some Framing) {
        /// The processor's time, in seconds; the shortest of three, for caches that other work has emptied.
        func seconds(_ count: Int) -> Double {
            (0..<3).map { _ in
                let rig = ChannelRig(framing: framing, queueDepth: 1)
                rig.send(pattern(1000))
                let ids = (0..<count).map { _ in rig.send([1]) }
                let seconds = processorTime { for id in ids.reversed() { rig.a.cancel(id) } }
                #expect(ids.allSatisfy { rig.error($0)?.fate == .nothingSent })
                return seconds
            }.min() ?? 0
        }
        let few = seconds(1000)
        let many = seconds(16_000)
        // 16 times as many, and more for colder caches; 256 times as long where each looks at all others.
        #expect(many < 64 * few, "1000 took \(few) s, 16 000 \(many) s")
    }
}

/// Bytes that differ from their neighbours.
package func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 131 &+ ($0 >> 8)) }
}

/// Delivers in both directions until nothing waits.
package func exchange(_ links: (a: MemoryLink, b: MemoryLink)) {
    var isBusy = true
    while isBusy {
        isBusy = links.a.deliver()
        if links.b.deliver() { isBusy = true }
    }
}
