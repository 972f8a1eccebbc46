public import Ferry

/// Checks a framing against what ``/Ferry/FramingSession`` promises, however its chunks are cut, refused, merged and
/// handed in.
///
/// A framing that sends one way only, as the two simple framings do, passes ``verify(_:chunkSizes:)``. One that
/// acknowledges passes ``verifyExchange(_:chunkSizes:)`` and ``verifyCancelling(_:chunkSizes:)``, where both sides may send
/// and time passes when neither can go on. Any test library reports the ``ConformanceFailure`` that is thrown.
///
/// Long streams are cut at fewer places: a message of 100 000 bytes takes seconds in a debug build.
public struct FramingVerifier<F: Framing>: Sendable {
    /// What the cuts between chunks mean to the framing.
    public enum Boundaries: Sendable, Hashable {
        /// Nothing: chunks are one stream of bytes, and links may cut it anew.
        case carryNoMeaning
        /// A chunk must arrive as it was sent.
        case carryMeaning
    }

    /// The framing to be checked.
    public let framing: F
    /// What the cuts between its chunks mean.
    public let boundaries: Boundaries
    /// The fewest bytes a link must take at once.
    public let minimumChunkSize: Int
    /// The limits of all sessions.
    public let limits: Limits

    /// Makes a verifier for one framing.
    public init(_ framing: F, boundaries: Boundaries, minimumChunkSize: Int = 1, limits: Limits = Limits()) {
        self.framing = framing
        self.boundaries = boundaries
        self.minimumChunkSize = max(1, minimumChunkSize)
        self.limits = limits
    }

    /// Everything: the exchange, messages taken back, and at each chunk size the stream that results from it.
    ///
    /// - Throws: ``ConformanceFailure``.
    public func verify(_ messages: [[UInt8]], chunkSizes: some Sequence<Int>) throws {
        for size in chunkSizes where size >= minimumChunkSize {
            try verifyExchange(messages, chunkSizes: [size])
            try verifyCancelling(messages, chunkSizes: [size])
            let chunks = try FramingExchange(self, messages, sizes: [size]).run().chunks
            try verifyReceiving(chunks, as: messages)
        }
    }

    /// Sends the messages at each chunk size: all queued at once, or each when the one before is out; with no chunk
    /// refused, and with every chunk refused twice, once at another size; and at sizes that change between chunks. The sender is
    /// now the side that connected and now the other. A framing that does not need its role is told a wrong one at times; of one
    /// that does, two sessions in the same role must not get on (``verifyRoles(chunkSize:)``).
    ///
    /// - Throws: ``ConformanceFailure``.
    public func verifyExchange(_ messages: [[UInt8]], chunkSizes: some Sequence<Int>) throws {
        let sizes = chunkSizes.filter { $0 >= minimumChunkSize }
        for size in sizes {
            try FramingExchange(self, messages, sizes: [size]).run()
            try FramingExchange(self, messages, sizes: [size], queuesAll: false, from: .responder).run()
            try FramingExchange(self, messages, sizes: [size], refuses: true).run()
            try FramingExchange(
                self, messages, sizes: [size, minimumChunkSize, size + 7], refuses: true, from: .responder,
                to: framing.needsRole ? .initiator : .responder
            ).run()
        }
        try FramingExchange(self, messages, sizes: sizes + [minimumChunkSize], queuesAll: false).run()
        try verifyRoles(chunkSize: sizes.max() ?? max(20, minimumChunkSize))
    }

    /// Where a framing needs its role: two sessions that both think that they connected, or that they were connected to, do not
    /// deliver a message to each other. One of them ends with an error, when its deadlines come at the latest.
    ///
    /// - Throws: ``ConformanceFailure``.
    public func verifyRoles(chunkSize: Int) throws {
        guard framing.needsRole else { return }
        for role in LinkRole.allCases {
            var isRefused = false
            do {
                try FramingExchange(self, [[1]], sizes: [chunkSize], from: role, to: role).run()
            } catch is FerryError { isRefused = true }
            try check(
                isRefused, "a framing that needs its role ends with an error where both sides have the same",
                "two sessions in the role \(role) exchanged a message")
        }
    }

    func makeSession(_ role: LinkRole) -> F.Session {
        framing.makeSession(limits: limits, payloads: PayloadFormat(), role: role)
    }

    func check(_ isMet: Bool, _ requirement: String, _ detail: @autoclosure () -> String) throws {
        if !isMet { throw ConformanceFailure("\(framing.name) framing: \(requirement)", detail()) }
    }
}

/// Two sessions, each on its end of a link without loss, until all messages have arrived.
struct FramingExchange<F: Framing> {
    let verifier: FramingVerifier<F>
    let messages: [[UInt8]]
    /// The chunk sizes, one after the other and from the beginning again.
    let sizes: [Int]
    /// Whether all messages are queued at once.
    let queuesAll: Bool
    /// Whether every chunk is refused before it is accepted.
    let refuses: Bool

    private var sender: F.Session
    private var receiver: F.Session
    private var now = Timestamp.zero
    private var nextSize = 0
    private var enqueued = 0
    private var sent = 0
    private var progress: (message: Int, bytes: Int) = (0, 0)
    private var received = 0
    /// What the sender's link has taken.
    private(set) var chunks: [[UInt8]] = []

    init(
        _ verifier: FramingVerifier<F>, _ messages: [[UInt8]], sizes: [Int], queuesAll: Bool = true,
        refuses: Bool = false, from senderRole: LinkRole = .initiator, to receiverRole: LinkRole? = nil
    ) {
        self.verifier = verifier
        self.messages = messages
        self.sizes = sizes
        self.queuesAll = queuesAll
        self.refuses = refuses
        sender = verifier.makeSession(senderRole)
        receiver = verifier.makeSession(receiverRole ?? senderRole.other)
    }

    @discardableResult
    consuming func run() throws -> FramingExchange {
        sender.linkDidOpen(at: now)
        receiver.linkDidOpen(at: now)
        while sent < messages.count || received < messages.count {
            while enqueued < messages.count, queuesAll || enqueued == sent {
                try sender.enqueue(messages[enqueued], as: MessageID(rawValue: UInt64(enqueued)), at: now)
                enqueued += 1
            }
            let forward = try sendOne()
            let backward = try answerOne()
            if !forward && !backward { try passTime() }
        }
        while try answerOne() {}
        try verifier.check(try !sendOne(), "a session with nothing to send is idle", "it sent after \(messages.count)")
        try sender.linkDidClose(at: now)
        try receiver.linkDidClose(at: now)
        return self
    }

    /// One chunk from the sender to the receiver. Returns false when there is none.
    private mutating func sendOne() throws -> Bool {
        let size = sizes[nextSize % sizes.count]
        nextSize += 1
        if refuses {
            let first = try offer(atMost: size, accepting: false)
            _ = try offer(atMost: verifier.minimumChunkSize, accepting: false)
            let again = try offer(atMost: size, accepting: false)
            try verifier.check(
                first == again, "a refused offer leaves the session as it was",
                "at most \(size): \(first ?? []), then \(again ?? [])")
        }
        guard let chunk = try offer(atMost: size, accepting: true) else { return false }
        chunks.append(chunk)
        try receiver.receiveAmidGarbage(chunk, at: now)
        try readEvents()
        return true
    }

    private mutating func offer(atMost size: Int, accepting: Bool) throws -> [UInt8]? {
        var offered: [[UInt8]] = []
        let outcome = try sender.transmit(atMost: size, at: now) { (chunk) throws(FerryError) in
            offered.append(chunk.withUnsafeBytes { [UInt8]($0) })
            return accepting
        }
        let expected: Transmission = offered.isEmpty ? .idle : accepting ? .accepted : .refused
        try verifier.check(
            outcome == expected, "transmit reports the outcome of the offer", "\(outcome), not \(expected)")
        try verifier.check(offered.count <= 1, "transmit offers one chunk", "it offered \(offered.count)")
        if let chunk = offered.first {
            try verifier.check(
                (1...size).contains(chunk.count), "a chunk has 1 byte to as many as the link takes",
                "\(chunk.count) bytes at a size of \(size)")
        }
        return offered.first
    }

    /// One chunk from the receiver to the sender: an acknowledgement or the like.
    private mutating func answerOne() throws -> Bool {
        let size = sizes[nextSize % sizes.count]
        var answer: [UInt8]?
        let outcome = try receiver.transmit(atMost: size, at: now) { (chunk) throws(FerryError) in
            answer = chunk.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        guard outcome == .accepted, let answer else { return false }
        try sender.receiveAmidGarbage(answer, at: now)
        try readEvents()
        return true
    }

    /// Neither side can go on: the next deadline has to come.
    private mutating func passTime() throws {
        let deadline = [sender.deadline, receiver.deadline].compactMap { $0 }.min()
        guard let deadline, deadline > now || now == .zero else {
            throw ConformanceFailure(
                "\(verifier.framing.name) framing: every message arrives and is reported as sent",
                "\(received) arrived and \(sent) were sent of \(messages.count) with \(sizes); nothing is left to do")
        }
        now = max(now, deadline)
        try sender.wake(at: now)
        try receiver.wake(at: now)
        try readEvents()
    }

    private mutating func readEvents() throws {
        while let event = receiver.nextEvent() {
            switch event {
            case .received(let message):
                let isExpected = received < messages.count && message == messages[received]
                try verifier.check(
                    isExpected, "each message arrives once, whole and in order",
                    "with \(sizes), message \(received) arrived as \(message.count) bytes: \(message.prefix(64))")
                received += 1
                receiver.consume(message.count, at: now)
            case .progress, .sent, .failed, .receiveFailed:
                try verifier.check(false, "a session that only receives reports what it received", "\(event)")
            }
        }
        var reports = 0
        while let event = sender.nextEvent() {
            switch event {
            case .progress(let id, let bytes):
                reports += 1
                let message = Int(id.rawValue)
                let isForward = message > progress.message || (message == progress.message && bytes >= progress.bytes)
                try verifier.check(
                    message < enqueued && bytes <= messages[message].count && isForward && message >= sent,
                    "progress grows within a message until it is sent", "\(bytes) of \(message) after \(progress)")
                progress = (message, bytes)
            case .sent(let id):
                try verifier.check(
                    Int(id.rawValue) == sent, "messages are sent in order", "\(id.rawValue), not \(sent)")
                sent += 1
                reports = 0
            case .received, .failed, .receiveFailed:
                try verifier.check(false, "a session that only sends reports what it sent", "\(event)")
            }
            try verifier.check(reports <= 1, "steps of progress are told as one", "\(reports) reports of one message")
        }
    }
}

extension FramingSession {
    /// Receives a chunk that lies between other bytes, which are overwritten afterwards.
    mutating func receiveAmidGarbage(_ chunk: [UInt8], at now: Timestamp) throws(FerryError) {
        // What lies around would continue the chunk, if a session read on.
        let before = chunk.suffix(512)
        var buffer = before + chunk + chunk.prefix(512)
        try receive(buffer.span.bytes.extracting(before.count..<before.count + chunk.count), at: now)
        let garbage = [UInt8](repeating: 0xEE, count: buffer.count)
        buffer.withUnsafeMutableBytes { buffer in garbage.withUnsafeBytes { buffer.copyMemory(from: $0) } }
    }
}
