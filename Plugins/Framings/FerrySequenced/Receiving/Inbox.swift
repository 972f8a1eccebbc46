import Ferry

/// Puts messages together from the bodies of chunks in their order, checks them, and counts credit.
struct Inbox {
    /// A message that has arrived in part.
    struct Partial {
        fileprivate var assembler = MessageAssembler(bound: 0)
        /// The payload's length, or -1 when the slot is free.
        var count = -1
        /// Bytes of the stream, payload and checksum, that have arrived.
        var received = 0
        var checksum = CRC32C()
        /// Bytes of the payload that are in the checksum.
        var summed = 0
        var trailer: UInt32 = 0

        var streamCount: Int { count + OutboundMessage.trailerCount }
        var cost: Int { received + OutboundMessage.overhead }
    }

    private(set) var slots = ContiguousArray(repeating: Partial(), count: SequencedChunk.slotCount)
    /// The slot whose bytes a body without a record goes on with, or -1.
    private(set) var current = -1
    /// Messages that have arrived in part, and the bytes of their payloads when they are whole.
    private(set) var openCount = 0
    private(set) var openBytes = 0
    /// The costs of the messages that are delivered and not consumed, oldest first.
    private(set) var delivered: RingQueue<Int> = []
    private(set) var deliveredCost = 0

    /// The size of a chunk that states no length, or 0.
    private(set) var fullSize = 0
    /// Cost in bytes, since the session began, of the messages that have arrived and of those that the peer may still
    /// send.
    private(set) var charged: UInt64 = 0
    private(set) var granted: UInt64 = 0

    /// The largest message, as the hello states it.
    let maximumSize: RoundedSize
    /// How much may be delivered and not consumed, besides one message.
    let window: Int

    init(maximumSize: RoundedSize, window: Int) {
        self.maximumSize = maximumSize
        self.window = window
    }

    // MARK: Credit

    /// The credit that a hello states, and that a session begins with.
    mutating func openingCredit() -> RoundedSize {
        let credit = RoundedSize(roundingDown: window - deliveredCost)
        if charged == 0 { granted = max(granted, UInt64(credit.bytes)) }
        return credit
    }

    /// The credit that may be granted now: consumed and incomplete messages make room, complete unread ones do not.
    private var grantable: UInt64 {
        // The bytes that arrive during a session's life do not fit an `Int` of 32 bits.
        let total = Int64(clamping: charged) - Int64(deliveredCost) + Int64(window)
        return max(granted, UInt64(max(0, total)))
    }

    /// Whether the peer had better hear of its credit soon.
    var hasNews: Bool { grantable - granted >= UInt64(window / 4) }

    /// Grants what may be granted; the result is what an acknowledgement states.
    mutating func grant() -> UInt64 {
        let units = (grantable - charged) / UInt64(Acknowledgement.creditUnit)
        granted = max(granted, charged + units * UInt64(Acknowledgement.creditUnit))
        return units
    }

    /// What ``grant()`` would answer.
    var credit: UInt64 { (grantable - charged) / UInt64(Acknowledgement.creditUnit) }

    /// The app has taken a message of `count` bytes, or several of as many together.
    mutating func consume(_ count: Int) {
        var rest = count
        var isFirst = true
        let fixed = OutboundMessage.fixedCost
        while let cost = delivered.first, cost - fixed <= rest, isFirst || rest > 0 {
            delivered.removeFirst()
            deliveredCost -= cost
            rest -= cost - fixed
            isFirst = false
        }
    }

    /// The message that is current.
    var arriving: ReceiveProgress? {
        guard slots.indices.contains(current) else { return nil }
        let count = slots[current].count
        return ReceiveProgress(receivedBytes: min(slots[current].received, count), totalBytes: count)
    }

    /// Whether a message has arrived in part and the peer has credit to go on.
    var expectsMore: Bool { openCount > 0 && granted > charged }

    // MARK: The link and the peer

    /// A new link: no size has been stated yet.
    mutating func linkDidOpen() { fullSize = 0 }

    /// The peer has lost what it was sending. Returns how many messages had arrived in part.
    mutating func restart() -> Int {
        var dropped = 0
        for slot in slots.indices where slots[slot].count >= 0 {
            slots[slot] = Partial()
            dropped += 1
        }
        current = -1
        openCount = 0
        openBytes = 0
        fullSize = 0
        charged = 0
        granted = 0
        return dropped
    }

    // MARK: Bodies

    /// Takes the body of the chunk that is due. Returns false, unchanged, when the link has cut it.
    ///
    /// - Throws: `malformedStream`, or what limit the peer exceeds.
    mutating func take(
        _ header: DataHeader, _ body: UnsafeRawBufferPointer, _ events: inout RingQueue<FramingEvent>
    ) throws(FerryError) -> Bool {
        let chunkCount = header.bodyOffset - header.acknowledgementCount + body.count
        guard try isWhole(header, body, chunkCount) else { return false }
        if header.setsFullSize { fullSize = chunkCount }
        if let slot = header.slot { try resume(slot) }
        var reader = ChunkReader(body)
        if !header.flags.contains(.record) { try goOn(&reader, &events) }
        while reader.remaining > 0 {
            guard let byte = reader.byte() else { break }
            let (record, slot) = try Record.parse(byte)
            switch record {
            case .begin: try begin(slot, &reader)
            case .resume: try resume(slot)
            case .cancel:
                try cancel(slot, &events)
                continue
            }
            try goOn(&reader, &events)
        }
        guard charged <= granted else {
            throw Self.malformed("has sent \(charged - granted) bytes more than it had credit for")
        }
        return true
    }

    /// Takes a chunk that is full, goes on with one message and does not end it: most chunks of a long message. Returns
    /// false, unchanged, when it is anything else.
    mutating func takeRun(_ chunk: UnsafeRawBufferPointer, sequence: UInt8) -> Bool {
        guard chunk.count == fullSize, chunk.count > 2 else { return false }
        var header = 1
        var slot = current
        if chunk[0] != sequence {
            guard chunk[0] >= 0xC0, chunk[0] < 0xE0, chunk[1] == sequence else { return false }
            header = 2
            slot = Int(chunk[0] & 0x1F)
        }
        let count = chunk.count - header
        guard slot >= 0, charged + UInt64(count) <= granted,
            slots[slot].goOn(UnsafeRawBufferPointer(rebasing: chunk[header...]))
        else { return false }
        current = slot
        charged += UInt64(count)
        return true
    }

    private func isWhole(
        _ header: DataHeader, _ body: UnsafeRawBufferPointer, _ chunkCount: Int
    ) throws(FerryError) -> Bool {
        if let stated = header.bodyLength {
            guard body.count <= stated else { throw Self.malformed("has sent a chunk longer than it says") }
            return body.count == stated
        }
        guard header.flags.contains(.end) else { return chunkCount == fullSize }
        // The body is the rest of one message, and nothing else.
        var reader = ChunkReader(body)
        if header.flags.contains(.record) {
            guard let byte = reader.byte() else { return false }
            let (record, slot) = try Record.parse(byte)
            switch record {
            case .begin:
                guard let count = try reader.varint("message length") else { return false }
                return UInt64(reader.remaining) == count &+ UInt64(OutboundMessage.trailerCount)
            case .resume: return try reader.remaining == rest(of: Int(slot))
            case .cancel: throw Self.malformed("has cancelled a message and ended it in one chunk")
            }
        }
        return try reader.remaining == rest(of: header.slot.map(Int.init) ?? current)
    }

    private func rest(of slot: Int) throws(FerryError) -> Int {
        guard slots.indices.contains(slot), slots[slot].count >= 0 else {
            throw Self.malformed("goes on with a message that is not open")
        }
        return slots[slot].streamCount - slots[slot].received
    }

    private mutating func begin(_ slot: UInt8, _ reader: inout ChunkReader) throws(FerryError) {
        guard let stated = try reader.varint("message length") else {
            throw Self.malformed("has cut a record in two")
        }
        let slot = Int(slot)
        guard slots[slot].count < 0 else { throw Self.malformed("begins a message in slot \(slot), which is taken") }
        guard stated <= UInt64(maximumSize.bytes) else {
            throw FerryError(
                .messageTooLarge,
                "The peer announces a message of \(stated) bytes; its limit, Limits.maximumMessageSize rounded up, is "
                    + "\(maximumSize.bytes). Raise it, or send less at once.")
        }
        let count = Int(stated)
        guard UInt64(openBytes) + stated <= 2 * UInt64(maximumSize.bytes) else {
            throw Self.malformed("has more bytes in open messages than twice the largest message")
        }
        openCount += 1
        openBytes += count
        charged += UInt64(OutboundMessage.overhead)
        slots[slot].count = count
        slots[slot].received = 0
        slots[slot].checksum = CRC32C()
        slots[slot].summed = 0
        slots[slot].trailer = 0
        slots[slot].assembler.begin(expecting: count)
        current = slot
    }

    private mutating func resume(_ slot: UInt8) throws(FerryError) {
        _ = try rest(of: Int(slot))
        current = Int(slot)
    }

    private mutating func cancel(_ slot: UInt8, _ events: inout RingQueue<FramingEvent>) throws(FerryError) {
        let slot = Int(slot)
        _ = try rest(of: slot)
        events.append(
            .receiveFailed(
                FerryError(
                    .cancelledByPeer,
                    "The peer cancelled a message after \(min(slots[slot].received, slots[slot].count)) of "
                        + "\(slots[slot].count) bytes.")))
        openCount -= 1
        openBytes -= slots[slot].count
        slots[slot] = Partial()
        if current == slot { current = -1 }
    }

    /// Gives the current message what the body holds of it.
    private mutating func goOn(
        _ reader: inout ChunkReader, _ events: inout RingQueue<FramingEvent>
    ) throws(FerryError) {
        let rest = try rest(of: current)
        guard let part = reader.take(min(rest, reader.remaining)) else { return }
        charged += UInt64(part.count)
        slots[current].add(part)
        guard part.count == rest else { return }
        let slot = current
        current = -1
        guard slots[slot].checksum.value == slots[slot].trailer else {
            throw FerryError(
                .malformedStream,
                "A message of \(slots[slot].count) bytes arrived with the wrong checksum: the link has changed what it "
                    + "carried, or the peer is not in step.")
        }
        openCount -= 1
        openBytes -= slots[slot].count
        delivered.append(slots[slot].cost)
        deliveredCost += slots[slot].cost
        slots[slot].count = -1
        events.append(.received(slots[slot].assembler.takeExpected()))
    }

    private static func malformed(_ what: ErrorText) -> FerryError {
        FerryError(.malformedStream, "The peer \(what). It is not in step, or does not use the sequenced framing.")
    }
}

extension Inbox.Partial {
    /// Takes a part that is payload and not the last of it, or returns false.
    fileprivate mutating func goOn(_ part: UnsafeRawBufferPointer) -> Bool {
        guard part.count < count - received else { return false }
        append(part)
        received += part.count
        return true
    }

    /// The checksum follows in large steps, while the bytes are still in the cache.
    private mutating func append(_ part: UnsafeRawBufferPointer) {
        assembler.append(part.bytes)
        if assembler.count - summed >= CRC32C.step { sum() }
    }

    @inline(never)
    private mutating func sum() {
        assembler.withBytes { checksum.add(UnsafeRawBufferPointer(rebasing: $0[summed...])) }
        summed = assembler.count
    }

    fileprivate mutating func add(_ part: UnsafeRawBufferPointer) {
        let plain = min(part.count, max(0, count - received))
        if plain > 0 { append(UnsafeRawBufferPointer(rebasing: part[0..<plain])) }
        if plain < part.count, summed < count { sum() }
        for place in plain..<part.count {
            trailer |= UInt32(part[place]) << UInt32(8 * (received + place - count))
        }
        received += part.count
    }
}
