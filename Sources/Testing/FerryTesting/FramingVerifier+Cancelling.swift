import Ferry

extension FramingVerifier {
    /// Sends the messages at each chunk size, and takes each of the first three back: before anything has left, at several
    /// moments on its way, and when it is out. What the session says it has taken back does not arrive, all else does.
    ///
    /// - Throws: ``ConformanceFailure``.
    public func verifyCancelling(_ messages: [[UInt8]], chunkSizes: some Sequence<Int>) throws {
        for size in chunkSizes where size >= minimumChunkSize {
            for index in messages.indices.prefix(3) {
                // How many chunks have left by then: none, few, and about half of all.
                let half = messages.reduce(0) { $0 + $1.count } / size / 2
                for chunks in Set([0, 1, 2, 3, min(half, 1000)]).sorted() {
                    try FramingCancelling(self, messages, size: size).run(cancelling: index, afterChunks: chunks)
                }
            }
        }
    }
}

/// Two sessions, each on its end of a link without loss, with one message that is taken back on its way.
private struct FramingCancelling<F: Framing> {
    private let verifier: FramingVerifier<F>
    private let messages: [[UInt8]]
    private let size: Int

    private var sender: F.Session
    private var receiver: F.Session
    private var now = Timestamp.zero
    private var sentChunks = 0
    private var sent: Set<UInt64> = []
    private var received: [[UInt8]] = []
    /// The message that was taken back, if it was.
    private var takenBack: Int?

    init(_ verifier: FramingVerifier<F>, _ messages: [[UInt8]], size: Int) {
        self.verifier = verifier
        self.messages = messages
        self.size = size
        sender = verifier.makeSession(.initiator)
        receiver = verifier.makeSession(.responder)
    }

    consuming func run(cancelling index: Int, afterChunks chunks: Int) throws {
        let id = MessageID(rawValue: UInt64(index))
        let moment = "message \(index), taken back after \(chunks) chunks of \(size)"
        sender.linkDidOpen(at: now)
        receiver.linkDidOpen(at: now)
        for (number, message) in messages.enumerated() {
            try sender.enqueue(message, as: MessageID(rawValue: UInt64(number)), at: now)
        }
        while sentChunks < chunks, try moveOne() {}
        let wasSent = sent.contains(id.rawValue)
        let isUntouched = sentChunks == 0
        let isTakenBack = sender.cancel(id, at: now)
        if isTakenBack { takenBack = index }
        try verifier.check(!isTakenBack || !wasSent, "cancel does not take back a message reported as sent", moment)
        try verifier.check(isTakenBack || !isUntouched, "cancel takes back a message that has not begun", moment)
        try finish(moment)
        let expected = messages.enumerated().filter { $0.offset != takenBack }
        try verifier.check(
            sorted(received) == sorted(expected.map(\.element)),
            "what cancel has taken back does not arrive, and all else does",
            "\(moment): cancel said \(isTakenBack); \(received.map(\.count)) bytes arrived of \(messages.map(\.count))")
        try verifier.check(
            !isTakenBack || !sent.contains(id.rawValue), "a cancelled message is not reported as sent", moment)
    }

    /// Until nothing is left to do.
    private mutating func finish(_ moment: String) throws {
        let expected = messages.count - (takenBack == nil ? 0 : 1)
        while true {
            if try moveOne() { continue }
            if sent.count >= expected, received.count >= expected { return }
            let deadline = [sender.deadline, receiver.deadline].compactMap { $0 }.min()
            guard let deadline, deadline > now || now == .zero else {
                throw ConformanceFailure(
                    "\(verifier.framing.name) framing: what cancel has taken back does not arrive, and all else does",
                    "\(moment): \(received.count) arrived and \(sent.count) were sent of \(expected); nothing is left to do"
                )
            }
            now = max(now, deadline)
            try sender.wake(at: now)
            try receiver.wake(at: now)
            readEvents()
        }
    }

    /// One chunk each way. Returns false when there is none.
    private mutating func moveOne() throws -> Bool {
        let size = size
        var chunk: [UInt8]?
        _ = try sender.transmit(atMost: size, at: now) { (offered) throws(FerryError) in
            chunk = offered.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        if let chunk {
            sentChunks += 1
            try receiver.receiveAmidGarbage(chunk, at: now)
            readEvents()
        }
        var answer: [UInt8]?
        _ = try receiver.transmit(atMost: size, at: now) { (offered) throws(FerryError) in
            answer = offered.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        if let answer {
            try sender.receiveAmidGarbage(answer, at: now)
            readEvents()
        }
        return chunk != nil || answer != nil
    }

    private mutating func readEvents() {
        while let event = receiver.nextEvent() {
            guard case .received(let message) = event else { continue }
            received.append(message)
            receiver.consume(message.count, at: now)
        }
        while let event = sender.nextEvent() {
            if case .sent(let id) = event { sent.insert(id.rawValue) }
        }
    }

    private func sorted(_ messages: [[UInt8]]) -> [[UInt8]] { messages.sorted { $0.lexicographicallyPrecedes($1) } }
}
