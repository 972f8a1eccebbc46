import Ferry

extension FramingVerifier {
    /// Receives a stream, perhaps a golden one, in every way a link may deliver it.
    ///
    /// - Parameters:
    ///   - chunks: The stream as a sender cut it.
    ///   - messages: What it holds.
    /// - Throws: ``ConformanceFailure``.
    public func verifyReceiving(_ chunks: [[UInt8]], as messages: [[UInt8]]) throws {
        try receive(chunks, as: messages, "chunks as they were sent")
        try verifyLimit(of: chunks, messages)
        try verifyEnds(of: boundaries == .carryMeaning ? chunks : chunks.joined().map { [$0] })
        guard boundaries == .carryNoMeaning else { return }
        let stream = Array(chunks.joined())
        guard !stream.isEmpty else { return }
        try receive([stream], as: messages, "all chunks merged")
        for size in sizesToCut(stream.count) {
            let pieces = stride(from: 0, to: stream.count, by: size).map {
                Array(stream[$0..<min($0 + size, stream.count)])
            }
            try receive(pieces, as: messages, "\(size) bytes at a time")
        }
        try verifyEveryCut(stream, messages)
        if stream.count <= 10 { try verifyEveryWayToCut(stream, messages) }
    }

    /// A receiver whose limit a message exceeds says so, and does not deliver it.
    private func verifyLimit(of chunks: [[UInt8]], _ messages: [[UInt8]]) throws {
        guard let largest = messages.map(\.count).max(), largest > 1 else { return }
        var lower = limits
        lower.maximumMessageSize = largest - 1
        var session = framing.makeSession(limits: lower)
        session.linkDidOpen(at: .zero)
        var code: FerryError.Code?
        do {
            for chunk in chunks where code == nil {
                try session.receiveAmidGarbage(chunk, at: .zero)
                while let event = session.nextEvent() {
                    switch event {
                    case .receiveFailed(let error): code = error.code
                    case .received(let message):
                        try check(
                            message.count < largest, "a message above Limits.maximumMessageSize is refused",
                            "one of \(message.count) bytes arrived at a limit of \(largest - 1)")
                    default: break
                    }
                }
            }
        } catch let error as FerryError { code = error.code }
        try check(
            code == .messageTooLarge, "what receive cannot go on with is thrown",
            "\(code.map(\.description) ?? "nothing") was, for \(largest) bytes at a limit of \(largest - 1)")
    }

    /// All sizes for short streams; for long ones those near a power of two.
    private func sizesToCut(_ count: Int) -> [Int] {
        count <= 600 ? Array(1...count) : (0..<12).flatMap { [1 << $0, (1 << $0) + 1] }.filter { $0 < count }
    }

    /// Every place in short streams. In long ones the first and last 20 and some between, the fewer the longer the stream, for
    /// the rest of it is received from each.
    private func placesToCut(_ count: Int) -> [Int] {
        guard count > 1000 else { return Array(0..<count) }
        let step = max(count / 1000, count * count / 10_000_000)
        return Set(stride(from: 0, to: count, by: step)).union(0..<20).union(count - 20..<count).sorted()
    }

    /// The stream in two pieces, cut at every byte. The session up to the cut is a value, and is copied.
    private func verifyEveryCut(_ stream: [UInt8], _ messages: [[UInt8]]) throws {
        var head = framing.makeSession(limits: limits)
        var delivered = 0
        let cuts = placesToCut(stream.count)
        for (cut, next) in zip(cuts, cuts.dropFirst() + [stream.count]) {
            var session = head
            var position = delivered
            try session.receiveAmidGarbage(Array(stream[cut...]), at: .zero)
            try take(from: &session, &position, messages, "cut at byte \(cut)")
            try check(position == messages.count, "every message arrives", "\(position) did when cut at byte \(cut)")
            try head.receiveAmidGarbage(Array(stream[cut..<next]), at: .zero)
            try take(from: &head, &delivered, messages, "up to byte \(cut)")
        }
    }

    /// A short stream cut at every set of places.
    private func verifyEveryWayToCut(_ stream: [UInt8], _ messages: [[UInt8]]) throws {
        for cuts in 0..<(1 << (stream.count - 1)) {
            var pieces: [[UInt8]] = [[stream[0]]]
            for index in 1..<stream.count {
                if cuts >> (index - 1) & 1 == 1 { pieces.append([]) }
                pieces[pieces.count - 1].append(stream[index])
            }
            try receive(pieces, as: messages, "cut into pieces of \(pieces.map(\.count))")
        }
    }

    /// The link ends after every piece: in the middle of a message that is told, between messages it is not.
    private func verifyEnds(of pieces: [[UInt8]]) throws {
        var session = framing.makeSession(limits: limits)
        session.linkDidOpen(at: .zero)
        let stride = max(1, pieces.count / 1000)
        for (index, piece) in pieces.enumerated() {
            try session.receiveAmidGarbage(piece, at: .zero)
            var isBetweenMessages = false
            while let event = session.nextEvent() {
                if case .received = event { isBetweenMessages = true }
            }
            guard index % stride == 0 || isBetweenMessages else { continue }
            var ended = session
            var code: FerryError.Code?
            do { try ended.linkDidClose(at: .zero) } catch { code = error.code }
            try check(
                code == (isBetweenMessages ? nil : .truncatedMessage),
                "a link that ends in the middle of a message is told, between messages it is not",
                "after \(index + 1) of \(pieces.count) pieces: \(code.map(\.description) ?? "nothing")")
            try check(
                (session.deadline == nil) == isBetweenMessages,
                "silence has a deadline in the middle of a message only",
                "after \(index + 1) of \(pieces.count) pieces")
        }
    }

    private func receive(_ pieces: [[UInt8]], as messages: [[UInt8]], _ how: String) throws {
        var session = framing.makeSession(limits: limits)
        session.linkDidOpen(at: .zero)
        var position = 0
        for piece in pieces {
            try session.receiveAmidGarbage(piece, at: .zero)
            try take(from: &session, &position, messages, how)
        }
        try check(position == messages.count, "every message arrives", "\(position) of \(messages.count) did: \(how)")
        try session.linkDidClose(at: .zero)
    }

    private func take(
        from session: inout F.Session, _ position: inout Int, _ messages: [[UInt8]], _ how: String
    ) throws {
        while let event = session.nextEvent() {
            guard case .received(let message) = event, position < messages.count, message == messages[position] else {
                throw ConformanceFailure(
                    "\(framing.name) framing: each message arrives once, whole and in order",
                    "at message \(position), \(how): \(event)")
            }
            position += 1
        }
    }
}
