public import Ferry

extension SequencedFraming.Session {
    /// Offers the next chunk: a hello first, then due acknowledgements, then lost parts, then new ones.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        guard mayHaveChunk else { return .idle }
        let size = min(maximumChunkSize(), Self.maximumChunkSize)
        if outbox.run.left > 0, size == outbox.fullSize, window.hasRoom, window.lostCount == 0, !window.isAskingDue,
            !acknowledging.isDue, !handshake.isDue, phase == .established || phase == .met
        {
            return try sendRun(at: now, offer)
        }
        guard size >= SequencedChunk.minimumChunkSize else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The link takes \(size) bytes at once; the sequenced framing needs \(SequencedChunk.minimumChunkSize). "
                    + "Negotiate a larger ATT_MTU, or use the length framing.")
        }
        if scratch.count < size { scratch = [UInt8](repeating: 0, count: size) }
        if phase == .refusing { return try refuse(at: now, offer) }
        if handshake.isDue { return try greet(at: now, offer) }
        guard phase == .met || phase == .established else { return .idle }
        // An acknowledgement that is short and has data to ride on waits for it.
        var riding: Acknowledgement?
        if acknowledging.isDue {
            let block = arrivals.acknowledgement(credit: inbox.credit)
            if block.bitmap == 0, block.credit < 1 << 14, window.lostCount == 0, window.hasRoom, !outbox.isEmpty {
                riding = block
            } else {
                return try acknowledge(block, at: now, offer)
            }
        }
        if let number = window.firstLost() { return try resend(number, atMost: size, at: now, offer) }
        if window.hasRoom, !outbox.isEmpty {
            let outcome = try sendNew(atMost: size, riding, at: now, offer)
            if outcome != .idle { return outcome }
        }
        if let riding { return try acknowledge(riding, at: now, offer) }
        return try probe(at: now, offer)
    }

    private var mayHaveChunk: Bool {
        switch phase {
        case .suspended: false
        case .greeting: handshake.isDue
        case .refusing: true
        case .met, .established:
            handshake.isDue || acknowledging.isDue || window.lostCount > 0 || (window.hasRoom && !outbox.isEmpty)
        }
    }

    private mutating func offerControl(
        _ offer: (RawSpan) throws(FerryError) -> Bool, _ write: (inout ChunkWriter) -> Void
    ) throws(FerryError) -> Bool {
        let count = scratch.withUnsafeMutableBytes { bytes in
            var writer = ChunkWriter(bytes)
            write(&writer)
            return writer.count
        }
        return try offer(scratch.span.bytes.extracting(0..<count))
    }

    private mutating func refuse(
        at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        switch handshake.refusing {
        case .no: return .idle
        case .told(let refusal): throw refusal.error(refusedBy: "This side")
        case .due(let refusal):
            guard try offerControl(offer, { refusal.write(to: &$0) }) else { return .refused }
            handshake.refusing = .told(refusal)
            return .accepted
        }
    }

    private mutating func greet(
        at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let hello = hello()
        guard try offerControl(offer, { hello.write(to: &$0) }) else { return .refused }
        handshake.isDue = false
        // Once the peer is met its own hello repeats, until ours has come.
        if phase == .greeting {
            handshake.deadline = now + .milliseconds(500 << min(handshake.tries, 4))
            handshake.tries += 1
        }
        return .accepted
    }

    private mutating func acknowledge(
        _ block: Acknowledgement, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let accepted = try offerControl(offer) { writer in
            writer.byte(SequencedChunk.Control.acknowledgement)
            block.write(to: &writer)
        }
        guard accepted else { return .refused }
        statistics.acknowledgementChunks += 1
        acknowledged()
        return .accepted
    }

    private mutating func acknowledged() {
        _ = inbox.grant()
        acknowledging = Acknowledging()
    }

    private mutating func encode(_ number: UInt64, _ acknowledgement: Acknowledgement?) -> Int {
        let sequence = UInt8(truncatingIfNeeded: number & (SequencedChunk.sequenceCount - 1))
        return scratch.withUnsafeMutableBytes { bytes in
            var writer = ChunkWriter(bytes)
            outbox.write(window[number], sequence: sequence, acknowledgement, to: &writer)
            return writer.count
        }
    }

    private mutating func sendNew(
        atMost size: Int, _ riding: Acknowledgement?, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let number = window.next
        guard window.cut(from: &outbox, atMost: size, acknowledgementCount: riding?.encodedCount ?? 0) else {
            return .idle
        }
        let count = encode(number, riding)
        var isAccepted = false
        defer { if !isAccepted { window.undo(from: number, into: &outbox) } }
        isAccepted = try offer(scratch.span.bytes.extracting(0..<count))
        guard isAccepted else { return .refused }
        window.sent(number, at: now)
        outbox.handedOver(window[number], &events)
        statistics.dataChunks += 1
        probing = Probing()
        if riding != nil { acknowledged() }
        return .accepted
    }

    /// The next chunk of a run: written, offered, and booked only if the link takes it.
    private mutating func sendRun(
        at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let size = outbox.fullSize
        let sequence = UInt8(truncatingIfNeeded: window.next & (SequencedChunk.sequenceCount - 1))
        scratch.withUnsafeMutableBytes { bytes in
            var writer = ChunkWriter(bytes)
            outbox.writeRun(sequence: sequence, to: &writer)
        }
        guard try offer(scratch.span.bytes.extracting(0..<size)) else { return .refused }
        window.sentRun(of: &outbox, at: now)
        statistics.dataChunks += 1
        return .accepted
    }

    private mutating func resend(
        _ number: UInt64, atMost size: Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let whole = window[number].chunkCount
        if whole > size || sentPiece?.number == number {
            return try resendPiece(of: number, whole, atMost: size, at: now, offer)
        }
        let count = encode(number, nil)
        guard try offer(scratch.span.bytes.extracting(0..<count)) else { return .refused }
        window.sent(number, at: now)
        statistics.repeatedChunks += 1
        return .accepted
    }

    /// A chunk cannot be cut anew under the same number, as the peer may have it; so it goes in pieces.
    private mutating func resendPiece(
        of number: UInt64, _ whole: Int, atMost size: Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        if scratch.count < whole { scratch = [UInt8](repeating: 0, count: whole) }
        let offset = sentPiece?.number == number ? sentPiece?.offset ?? 0 : 0
        let count = min(whole - offset, size - 2 - Varint.encodedCount(UInt64(offset)))
        let isLast = offset + count == whole
        let sequence = UInt8(truncatingIfNeeded: number & (SequencedChunk.sequenceCount - 1))
        _ = encode(number, nil)
        let part = Array(scratch[offset..<offset + count])
        let accepted = try offerControl(offer) { writer in
            Piece.write(sequence: sequence, isLast: isLast, offset: offset, to: &writer)
            part.withUnsafeBytes { writer.append($0) }
        }
        guard accepted else { return .refused }
        if isLast {
            sentPiece = nil
            window.sent(number, at: now)
            statistics.repeatedChunks += 1
        } else {
            sentPiece = SentPiece(number: number, offset: offset + count)
        }
        return .accepted
    }

    private mutating func probe(
        at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        guard window.count == 0, !outbox.isEmpty else { return .idle }
        switch probing.state {
        case .idle: break
        case .waiting: return .idle
        case .due:
            guard try offerControl(offer, { $0.byte(SequencedChunk.Control.probe) }) else { return .refused }
            probing.tries = min(probing.tries + 1, 8)
        }
        let interval = min(window.estimator.timeout << Int64(probing.tries), RoundTripEstimator.ceiling)
        probing.state = .waiting(until: now + .nanoseconds(interval))
        return probing.tries == 0 ? .idle : .accepted
    }
}
