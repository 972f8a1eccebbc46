import Ferry
import FerryTesting
import Synchronization

/// Two channel cores over a pair of memory links under virtual time: nothing happens but what the test does.
final class ChannelRig: Sendable {
    let time = VirtualTime()
    let links: (a: MemoryLink, b: MemoryLink)
    let a: ChannelCore
    let b: ChannelCore
    private let outcomes = Mutex<[MessageID: Result<Void, FerryError>]>([:])
    private let steps = Mutex<[MessageID: [SendProgress]]>([:])

    init(
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
    func send(_ payload: [UInt8], timeout: Duration? = nil) -> MessageID {
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
    func outcome(_ id: MessageID) -> Result<Void, FerryError>? { outcomes.withLock { $0[id] } }

    func error(_ id: MessageID) -> FerryError? {
        if case .failure(let error)? = outcome(id) { error } else { nil }
    }

    func hasSucceeded(_ id: MessageID) -> Bool {
        if case .success? = outcome(id) { true } else { false }
    }

    func progress(_ id: MessageID) -> [SendProgress] { steps.withLock { $0[id] ?? [] } }

    /// Delivers everything from a to b.
    func deliverAll() { while links.a.deliver() {} }

    /// What b can read now.
    func readAll() -> [Delivery] {
        var deliveries: [Delivery] = []
        while let delivery = b.take() {
            deliveries.append(delivery)
            if case .end = delivery { break }
        }
        return deliveries
    }

    /// The messages that b can read now.
    func messages() -> [[UInt8]] {
        readAll().compactMap { if case .message(let payload) = $0 { payload } else { nil } }
    }
}

/// Bytes that differ from their neighbours.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 131 &+ ($0 >> 8)) }
}

/// Delivers in both directions until nothing waits.
func exchange(_ links: (a: MemoryLink, b: MemoryLink)) {
    var isBusy = true
    while isBusy {
        isBusy = links.a.deliver()
        if links.b.deliver() { isBusy = true }
    }
}
