public import Ferry

/// Finds messages in the arriving bytes, and resumes after damage. It throws nothing: faults are events among the messages.
@usableFromInline
struct FrameDecoder: Sendable {
    /// Where in the stream of bytes it is.
    private enum Place {
        case between
        case line
        /// Within a frame; `isEscaped` after an escape whose second byte has not come.
        case slip(isEscaped: Bool)
        /// Within a frame: `missing` bytes of a block have yet to come, and a zero follows it unless the frame ends.
        case cobs(missing: Int, owesZero: Bool)
        /// What follows belongs to a frame that was given up.
        case skipping
    }

    private let format: UARTFraming.Format
    private let limit: Int
    private var place = Place.between
    private var assembler: MessageAssembler
    /// Messages and faults, and what the session sends.
    @usableFromInline var events = FramingEventQueue()
    /// Frames that have ended, whole or damaged.
    private(set) var endedFrames = 0

    init(_ format: UARTFraming.Format, limit: Int) {
        self.format = format
        self.limit = limit
        // A carriage return at the end of a line is none of its bytes.
        let (bound, overflow) = limit.addingReportingOverflow(1)
        assembler = MessageAssembler(bound: overflow ? limit : bound)
    }

    /// Bytes of the message in hand.
    var arrivedBytes: Int { assembler.count }

    /// Whether a message has arrived in part.
    var isInFrame: Bool {
        switch place {
        case .between, .skipping: false
        case .line, .slip, .cobs: true
        }
    }

    private var isSkipping: Bool { if case .skipping = place { true } else { false } }

    /// Gives the message in hand up, and passes over the rest of it.
    mutating func giveUp(_ error: FerryError) {
        events.receiveFailed(error)
        endedFrames += 1
        _ = assembler.takeUnannounced()
        place = .skipping
    }

    mutating func receive(_ chunk: RawSpan) {
        switch format {
        case .lines: receiveLines(chunk)
        case .slip: receiveSLIP(chunk)
        case .cobs: receiveCOBS(chunk)
        }
    }

    /// Passes over what belongs to a frame that was given up; returns where to go on.
    private mutating func skip(to end: UInt8, in chunk: RawSpan, from offset: Int) -> Int {
        let found = chunk.first(end, from: offset)
        guard found < chunk.byteCount else { return found }
        place = .between
        return found + 1
    }

    private mutating func deliver(droppingCarriageReturn: Bool = false) {
        var message = assembler.takeUnannounced()
        if droppingCarriageReturn, message.last == Line.carriageReturn { message.removeLast() }
        place = .between
        endedFrames += 1
        if message.count <= limit { return events.received(message) }
        events.receiveFailed(tooLarge(afterMessages: endedFrames - 1))
    }

    /// Adds bytes to the message in hand; false, and the message is given up, where it becomes too large.
    private mutating func append(_ bytes: RawSpan, allowing spare: Int = 0) -> Bool {
        guard bytes.byteCount <= limit - assembler.count + spare else {
            giveUp(tooLarge(afterMessages: endedFrames))
            return false
        }
        assembler.append(bytes)
        return true
    }

    private mutating func append(_ byte: UInt8) -> Bool {
        guard assembler.count < limit else {
            giveUp(tooLarge(afterMessages: endedFrames))
            return false
        }
        withUnsafeBytes(of: byte) { assembler.append($0.bytes) }
        return true
    }

    /// Whether the limit lets all of a chunk's rest be part of the message in hand.
    private func hasRoom(for chunk: RawSpan, from offset: Int) -> Bool {
        chunk.byteCount - offset <= limit - assembler.count
    }

    private func tooLarge(afterMessages count: Int) -> FerryError {
        .messageTooLarge(receiving: "has no end within the limit", afterMessages: count, limit: limit)
    }

    private func malformed(_ what: String) -> FerryError {
        FerryError(
            .malformedStream,
            "Message \(endedFrames + 1) from the peer \(what). Bytes were lost, or the peer speaks another format.")
    }

    // MARK: Formats

    private mutating func receiveLines(_ chunk: RawSpan) {
        var offset = 0
        while offset < chunk.byteCount {
            if isSkipping {
                offset = skip(to: Line.feed, in: chunk, from: offset)
                continue
            }
            let rest = chunk.byteCount - offset
            var feed = offset
            place = .line
            if hasRoom(for: chunk, from: offset) {
                assembler.append(atMost: rest) { target in
                    feed = chunk.copy(upTo: Line.feed, Line.feed, from: offset, to: target, at: 0)
                    return feed &- offset
                }
            } else {
                // As far as the limit goes.
                feed = chunk.first(Line.feed, from: offset)
                guard append(chunk.extracting(offset..<feed), allowing: 1) else { continue }
            }
            offset = feed + 1
            if feed < chunk.byteCount { deliver(droppingCarriageReturn: true) }
        }
    }

    private mutating func receiveSLIP(_ chunk: RawSpan) {
        var offset = 0
        while offset < chunk.byteCount {
            if case .slip(isEscaped: true) = place {
                offset = takeEscaped(chunk, at: offset)
            } else if isSkipping || !hasRoom(for: chunk, from: offset) {
                offset = receiveSLIPCarefully(chunk, from: offset)
            } else {
                let special = unescape(chunk, from: offset)
                if special > offset { place = .slip(isEscaped: false) }
                guard special < chunk.byteCount else { return }
                takeSpecial(chunk.unsafeLoad(fromByteOffset: special, as: UInt8.self))
                offset = special + 1
            }
        }
    }

    private mutating func takeSpecial(_ byte: UInt8) {
        if byte == SLIP.escape {
            place = .slip(isEscaped: true)
        } else if isInFrame {
            deliver()
        }
    }

    /// Takes the second byte of an escape; returns where to go on. Rare code stands apart: the code that every chunk runs is faster without it.
    @inline(never)
    private mutating func takeEscaped(_ chunk: RawSpan, at offset: Int) -> Int {
        let byte = chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
        guard byte == SLIP.escapedEnd || byte == SLIP.escapedEscape else {
            giveUp(malformed("has 0x\(String(byte, radix: 16)) after a SLIP escape, byte \(arrivedBytes) of it"))
            // The end is left for what skips.
            return offset
        }
        place = .slip(isEscaped: false)
        _ = append(byte == SLIP.escapedEnd ? SLIP.end : SLIP.escape)
        return offset + 1
    }

    /// Passes over a frame that was given up, or takes bytes as far as the limit goes; returns where to go on.
    @inline(never)
    private mutating func receiveSLIPCarefully(_ chunk: RawSpan, from offset: Int) -> Int {
        if isSkipping { return skip(to: SLIP.end, in: chunk, from: offset) }
        let special = chunk.first(SLIP.end, SLIP.escape, from: offset)
        if special > offset {
            place = .slip(isEscaped: false)
            guard append(chunk.extracting(offset..<special)) else { return special }
        }
        guard special < chunk.byteCount else { return special }
        takeSpecial(chunk.unsafeLoad(fromByteOffset: special, as: UInt8.self))
        return special + 1
    }

    /// Adds the bytes between ends and behind escapes; the limit has room for all of the chunk. Returns the place of the first byte that
    /// is neither, or of an escape whose second byte is not here or wrong.
    private mutating func unescape(_ chunk: RawSpan, from offset: Int) -> Int {
        var at = offset
        assembler.append(atMost: chunk.byteCount - offset) { target in
            var count = 0
            while true {
                let special = chunk.copy(upTo: SLIP.end, SLIP.escape, from: at, to: target, at: count)
                count &+= special &- at
                at = special
                guard at &+ 1 < chunk.byteCount, chunk.unsafeLoad(fromByteOffset: at, as: UInt8.self) == SLIP.escape
                else { return count }
                let second = chunk.unsafeLoad(fromByteOffset: at &+ 1, as: UInt8.self)
                guard second == SLIP.escapedEnd || second == SLIP.escapedEscape else { return count }
                // Without a jump, which would be foreseen wrongly every other time.
                target[count] = SLIP.escape &- (second &- SLIP.escapedEscape) & (SLIP.escape &- SLIP.end)
                count &+= 1
                at &+= 2
            }
        }
        return at
    }

    private mutating func receiveCOBS(_ chunk: RawSpan) {
        var offset = 0
        while offset < chunk.byteCount {
            guard !isSkipping, hasRoom(for: chunk, from: offset) else {
                offset = receiveCOBSCarefully(chunk, from: offset)
                continue
            }
            let zero = takeBlocks(chunk, from: offset)
            guard zero < chunk.byteCount else { return }
            guard chunk.unsafeLoad(fromByteOffset: zero, as: UInt8.self) == 0 else {
                offset = zero
                continue
            }
            if case .cobs(let missing, _) = place, missing > 0 {
                offset = endBlock(missing: missing, at: zero)
            } else {
                if isInFrame { deliver() }
                offset = zero + 1
            }
        }
    }

    /// A frame has ended within a block; returns where to go on, which is at its end, for what skips.
    @inline(never)
    private mutating func endBlock(missing: Int, at zero: Int) -> Int {
        giveUp(malformed("ends \(missing) bytes before its COBS block does"))
        return zero
    }

    /// Passes over a frame that was given up, or takes bytes as far as the limit goes; returns where to go on.
    @inline(never)
    private mutating func receiveCOBSCarefully(_ chunk: RawSpan, from offset: Int) -> Int {
        switch place {
        case .skipping: return skip(to: 0, in: chunk, from: offset)
        case .cobs(let missing, let owesZero) where missing > 0:
            let end = min(chunk.byteCount, offset + missing)
            let zero = chunk.first(0, from: offset, upTo: end)
            guard zero == end else { return endBlock(missing: missing - (zero - offset), at: zero) }
            guard append(chunk.extracting(offset..<end)) else { return offset }
            place = .cobs(missing: missing - (end - offset), owesZero: owesZero)
            return end
        default:
            let code = chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            guard code > 0 else {
                if isInFrame { deliver() }
                return offset + 1
            }
            if case .cobs(_, owesZero: true) = place, !append(0 as UInt8) { return offset + 1 }
            place = .cobs(missing: Int(code) - 1, owesZero: code < 0xFF)
            return offset + 1
        }
    }

    /// The most bytes that are moved up at once behind a block without a zero.
    private static var window: Int { 512 }

    /// Adds the bytes of blocks; the limit has room for all of the chunk. Returns the place of the first zero, or where to go on.
    ///
    /// The code of a block stands where the zero before the block is to be. So all is copied as it is, in one pass that depends on no
    /// byte, and codes are written over. Behind a block of 254 bytes there is no zero: what follows moves up by one.
    private mutating func takeBlocks(_ chunk: RawSpan, from offset: Int) -> Int {
        var (start, missing, owesZero) = (offset, 0, false)
        if case .cobs(let ofBlock, let zero) = place { (missing, owesZero) = (ofBlock, zero) }
        if missing == 0, !owesZero {
            let code = chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            guard code > 0 else { return offset }
            (start, missing, owesZero) = (offset &+ 1, Int(code) &- 1, code < 0xFF)
        }
        let end = min(chunk.byteCount, start &+ Self.window)
        var zero = end
        assembler.append(atMost: end &- start) { target in
            if chunk.copyFindsZero(start..<end, to: target) { zero = chunk.first(0, from: start, upTo: end) }
            let count = zero &- start
            var (next, removed) = (missing, 0)
            while next < count, let bytes = target.baseAddress {
                let code = chunk.unsafeLoad(fromByteOffset: start &+ next, as: UInt8.self)
                let here = bytes + (next &- removed)
                if owesZero {
                    here.storeBytes(of: 0, as: UInt8.self)
                } else {
                    here.copyMemory(from: here + 1, byteCount: count &- next &- 1)
                    removed &+= 1
                }
                owesZero = code < 0xFF
                next &+= Int(code)
            }
            missing = next &- count
            return count &- removed
        }
        place = .cobs(missing: missing, owesZero: owesZero)
        return zero
    }
}
