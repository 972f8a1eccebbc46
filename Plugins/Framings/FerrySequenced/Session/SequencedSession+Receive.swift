public import Ferry

extension SequencedFraming.Session {
    /// Takes a chunk that arrived. What the link has cut short counts as lost.
    ///
    /// - Throws: `malformedStream`, `messageTooLarge` or `misbehavingPeer` for what no honest peer sends,
    ///   `incompatiblePeer` when the peer refuses.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        try chunk.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(FerryError) in
            try receive(bytes, at: now)
        }
    }

    private mutating func receive(_ bytes: UnsafeRawBufferPointer, at now: Timestamp) throws(FerryError) {
        if phase == .established, arrivals.heldCount == 0, inbox.takeRun(bytes, sequence: arrivals.nextSequence) {
            silence = 0
            stall.chunkArrived(at: now)
            arrivals.advance()
            acknowledging.pending += 1
            return scheduleAcknowledgement(isWanted: false, at: now)
        }
        guard phase != .suspended, phase != .refusing else { return }
        guard let chunk = try SequencedChunk.parse(bytes) else {
            statistics.damagedChunks += 1
            return
        }
        switch chunk {
        case .hello(let hello): return try receive(hello, at: now)
        case .foreignHello: return refuse(SequencedRefusal(.version, value: SequencedHello.version), at: now)
        case .refusal(let refusal): throw refusal.error(refusedBy: "The peer")
        default: break
        }
        // Before the peer's hello nothing else can be understood; it will come again.
        guard phase == .met || phase == .established else { return }
        phase.move(.knownHelloAccepted)
        silence = 0
        switch chunk {
        case .data(let header):
            try receive(header, UnsafeRawBufferPointer(rebasing: bytes[header.bodyOffset...]), at: now)
        case .acknowledgement(let block): try receive(block, at: now)
        case .probe: acknowledging.isDue = true
        case .piece(let piece):
            try receive(piece, UnsafeRawBufferPointer(rebasing: bytes[piece.bodyOffset...]), at: now)
        case .hello, .foreignHello, .refusal: break
        }
    }

    // MARK: Data

    private mutating func receive(
        _ header: DataHeader, _ body: UnsafeRawBufferPointer, at now: Timestamp
    ) throws(FerryError) {
        stall.chunkArrived(at: now)
        if let block = header.acknowledgement { try receive(block, at: now) }
        switch arrivals.arrival(of: header.sequence) {
        case .due:
            guard try inbox.take(header, body, &events) else {
                statistics.damagedChunks += 1
                return
            }
            arrivals.advance()
            acknowledging.pending += 1
            if arrivals.heldCount > 0 { try takeHeld() }
        case .early(let distance):
            arrivals.hold(distance, header, body)
            statistics.earlyChunks += 1
            acknowledging.pending += 1
        case .known:
            statistics.doubledChunks += 1
        case .outside:
            return
        }
        // The two short forms have no room to ask.
        let isLast = inbox.openCount == 0 && (header.slot != nil || header.bodyOffset == 1)
        scheduleAcknowledgement(isWanted: isLast || header.flags.contains(.push), at: now)
    }

    private mutating func takeHeld() throws(FerryError) {
        while let held = arrivals.due() {
            let isWhole = try held.body.span.bytes.withUnsafeBytes {
                (bytes: UnsafeRawBufferPointer) throws(FerryError) in try inbox.take(held.header, bytes, &events)
            }
            guard isWhole else {
                statistics.damagedChunks += 1
                return arrivals.dropDue()
            }
            arrivals.advance()
        }
    }

    private mutating func scheduleAcknowledgement(isWanted: Bool, at now: Timestamp) {
        // While something is missing the sender hears of every third chunk, its threshold for a loss.
        let usual = min(configuration.chunksPerAcknowledgement, max(1, window.limit * 7 / 8))
        let threshold = arrivals.heldCount > 0 ? min(3, usual) : usual
        if isWanted || acknowledging.pending >= threshold {
            acknowledging.isDue = true
        } else if acknowledging.deadline == nil {
            acknowledging.deadline = now + configuration.acknowledgementDelay
        }
    }

    private mutating func receive(
        _ piece: Piece, _ bytes: UnsafeRawBufferPointer, at now: Timestamp
    ) throws(FerryError) {
        if piece.offset == 0 || piece.sequence != receivedPiece.sequence {
            receivedPiece.sequence = piece.sequence
            receivedPiece.bytes.removeAll(keepingCapacity: true)
        }
        guard piece.offset == receivedPiece.bytes.count,
            piece.offset + bytes.count <= Self.maximumChunkSize
        else { return }
        receivedPiece.bytes.append(contentsOf: bytes)
        guard piece.isLast else { return }
        let whole = receivedPiece.bytes
        receivedPiece.bytes = []
        try whole.span.bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(FerryError) in
            guard case .data(let header) = try SequencedChunk.parse(bytes) else {
                statistics.damagedChunks += 1
                return
            }
            try receive(header, UnsafeRawBufferPointer(rebasing: bytes[header.bodyOffset...]), at: now)
        }
    }

    // MARK: Acknowledgements

    private mutating func receive(_ block: Acknowledgement, at now: Timestamp) throws(FerryError) {
        guard let number = try window.resolve(block) else { return }
        // Credit counts from the acknowledged chunk, so that neither side's counters are ever sent.
        let base = number == window.next ? outbox.charged : window[number].chargedBefore
        guard block.credit <= UInt64(1) << 34 else {
            throw FerryError(
                .malformedStream, "The peer grants \(block.credit) x 64 bytes of credit; no receiver holds as much.")
        }
        window.acknowledge(before: number, bitmap: block.bitmap, at: now, &outbox, &events)
        if let piece = sentPiece, piece.number < number { sentPiece = nil }
        let granted = base + block.credit * UInt64(Acknowledgement.creditUnit)
        guard granted > outbox.granted else { return }
        outbox.granted = granted
        probing = Probing()
    }

    // MARK: The hello

    func hello() -> SequencedHello {
        var inbox = inbox
        return SequencedHello(
            session: id, window: UInt8(configuration.window), maximumMessageSize: inbox.maximumSize,
            credit: inbox.openingCredit(), codec: payloads.codec, compression: payloads.compression,
            hasMet: phase == .met || phase == .established,
            known: handshake.peer.map {
                SequencedHello.Known(session: $0, receivedCount: UInt32(truncatingIfNeeded: arrivals.next))
            })
    }

    private mutating func refuse(_ refusal: SequencedRefusal, at now: Timestamp) {
        guard phase == .greeting || phase == .met else { return }
        phase.move(.incompatible)
        handshake.refusing = .due(refusal)
        handshake.deadline = now + .seconds(1)
    }

    private mutating func receive(_ hello: SequencedHello, at now: Timestamp) throws(FerryError) {
        if phase == .established {
            // A late copy, unless the peer still waits for our hello.
            if hello.session == handshake.peer, !hello.hasMet { handshake.isDue = true }
            return
        }
        guard hello.codec == payloads.codec else {
            return refuse(SequencedRefusal(.codec, value: payloads.codec), at: now)
        }
        guard hello.compression == payloads.compression else {
            return refuse(SequencedRefusal(.compression, value: payloads.compression), at: now)
        }
        guard let peer = handshake.peer else { return try meetAnew(hello, at: now) }
        if hello.session == peer {
            if hello.known == nil || hello.known?.session == id { return try resume(hello, at: now) }
            guard phase == .greeting else { return handshake.isDue = true }
            forget()
            return try meetAnew(hello, at: now)
        }
        // A session's identifier only counts up: a lower one is a late copy of what it said before.
        if phase == .met, (1...255).contains(peer &- hello.session) { return }
        forget()
        try meetAnew(hello, at: now)
    }

    /// The peer is new to us. If it knows another session than ours, it learns from our hello that it has to forget.
    private mutating func meetAnew(_ hello: SequencedHello, at now: Timestamp) throws(FerryError) {
        guard hello.known == nil || hello.known?.session == id else { return handshake.isDue = true }
        try resume(hello, at: now)
    }

    /// Goes on from what the peer has of ours, which is nothing if it does not know us.
    private mutating func resume(_ hello: SequencedHello, at now: Timestamp) throws(FerryError) {
        let isFirst = phase == .greeting
        if isFirst {
            let stated = hello.known?.receivedCount ?? 0
            let number = window.first + UInt64(stated &- UInt32(truncatingIfNeeded: window.first))
            guard number <= window.next, hello.known != nil || arrivals.next == 0 else {
                throw FerryError(
                    .malformedStream,
                    "The peer claims to have \(stated) chunks; \(window.first) were acknowledged and \(window.next) sent. "
                        + "It is not the session it says it is.")
            }
            if window.next > 0 || arrivals.next > 0 { statistics.resumptions += 1 }
            window.acknowledge(before: number, bitmap: 0, at: now, &outbox, &events)
            window.undo(from: number, into: &outbox)
            window.forgetTimes()
            window.limit = min(configuration.window, Int(hello.window))
            outbox.fullSize = 0
            if outbox.charged == 0 { outbox.granted = max(outbox.granted, UInt64(hello.credit.bytes)) }
            meet(hello)
        }
        silence = 0
        phase.move(hello.hasMet ? .knownHelloAccepted : .helloAccepted)
        handshake.deadline = nil
        // The peer learns that its hello has come.
        if isFirst || !hello.hasMet { handshake.isDue = true }
    }

    private mutating func meet(_ hello: SequencedHello) {
        handshake.peer = hello.session
        _ = inbox.openingCredit()
        let maximum = hello.maximumMessageSize.bytes
        outbox.peerMaximum = maximum
        outbox.failWaiting(&events) { Self.tooLarge($0.payload.count, maximum) }
        // Credit that the peer may not have heard of is granted again.
        if arrivals.next > 0 { acknowledging.isDue = true }
    }

    /// The peer does not know our session. Messages that may have arrived whole fail with an unknown fate; all others
    /// start again.
    private mutating func forget() {
        let uncertain = outbox.uncertain()
        window.undo(from: window.first, into: &outbox)
        outbox.restart()
        let error = FerryError(
            .peerLostState,
            "The peer has lost its session, so it cannot be learned whether the message arrived. Ask the peer, or send it "
                + "again if receiving it twice does no harm.", fate: .mayHaveArrived)
        outbox.failWaiting(&events) { uncertain.contains($0.id) ? error : nil }
        window.restart()
        arrivals.restart()
        for _ in 0..<inbox.restart() {
            events.append(
                .receiveFailed(FerryError(.truncatedMessage, "The peer has lost a message that had arrived in part.")))
        }
        id &+= 1
        peerRestarts += 1
        handshake.peer = nil
        handshake.isDue = true
        phase.move(.peerForgot)
    }
}
