import Ferry

/// A message on its way out. Its stream is the payload and then four bytes of CRC-32C.
struct OutboundMessage {
    var id: MessageID
    var payload: [UInt8]
    var level: Int
    var weight: Int
    var receipt: SendOptions.Receipt
    /// Bytes of the stream that are in chunks already.
    var cut = 0
    /// Bytes of the stream that the peer has.
    var acknowledged = 0
    var slot: UInt8 = 0
    var stage = Stage.waiting
    /// Whether it has been told as sent.
    var isReported = false
    private var checksum = CRC32C()
    /// Bytes of the payload that are in the checksum.
    private var summed = 0

    init(id: MessageID, payload: [UInt8], options: SendOptions) {
        self.id = id
        self.payload = payload
        level = Int(options.priority.rawValue)
        weight = Int(options.weight)
        receipt = options.receipt
    }

    enum Stage {
        case waiting
        /// A chunk with its begin is on its way or there.
        case begun
        /// It is let go of once the peer has heard so, or when its turn comes.
        case cancelled
    }

    static let trailerCount = 4
    /// What a message costs in credit besides its stream, so that empty messages are bounded too.
    static let overhead = 12
    /// What a message costs besides its payload.
    static let fixedCost = overhead + trailerCount

    var streamCount: Int { payload.count + Self.trailerCount }
    var remaining: Int { streamCount - cut }
    var isCut: Bool { cut == streamCount }

    /// Copies part of the stream into a chunk. First copies run in order. The checksum follows in large steps, while
    /// the bytes are still in the cache, and is complete when the trailer is due.
    mutating func write(_ offset: Int, _ count: Int, to writer: inout ChunkWriter) {
        let end = min(offset + count, payload.count)
        if offset < end {
            payload.withUnsafeBytes { writer.append(UnsafeRawBufferPointer(rebasing: $0[offset..<end])) }
        }
        let hasTrailer = offset + count > payload.count
        if end - summed >= CRC32C.step || (hasTrailer && summed < payload.count) { sum(upTo: end) }
        guard hasTrailer else { return }
        var place = max(offset, payload.count)
        while place < offset + count {
            writer.byte(UInt8(truncatingIfNeeded: checksum.value >> UInt32(8 * (place - payload.count))))
            place += 1
        }
    }

    @inline(never)
    private mutating func sum(upTo end: Int) {
        payload.withUnsafeBytes { checksum.add(UnsafeRawBufferPointer(rebasing: $0[summed..<end])) }
        summed = end
    }
}

/// What one message contributes to a chunk.
struct Segment: Hashable {
    enum Kind: UInt8 {
        /// The current message goes on, without a record.
        case goOn
        case begin
        case resume
        case cancel
    }

    var offset = 0
    var message: Int32 = 0
    var count: Int32 = 0
    var kind = Kind.goOn
}

/// The segments of a chunk, in place. `InlineArray` is the same, and Apple's systems have it from 26 on.
struct Segments {
    static let capacity = 4

    private var first = Segment()
    private var second = Segment()
    private var third = Segment()
    private var fourth = Segment()

    subscript(index: Int) -> Segment {
        @inline(__always) get {
            switch index {
            case 0: first
            case 1: second
            case 2: third
            case 3: fourth
            default: preconditionFailure("A chunk has four segments.")
            }
        }
        @inline(__always) set {
            switch index {
            case 0: first = newValue
            case 1: second = newValue
            case 2: third = newValue
            case 3: fourth = newValue
            default: preconditionFailure("A chunk has four segments.")
            }
        }
    }
}

/// A chunk that has a sequence number: what it says, so that it can be said again.
struct OutboundChunk {
    enum Form: UInt8 { case plain, slot, flagged }

    var form = Form.plain
    var flags: DataFlags = []
    var setsFullSize = false
    var segments = Segments()
    var segmentCount = 0
    /// Bytes of the body: the segments and their records.
    var bodyCount = 0
    /// Bytes of the chunk without an acknowledgement.
    var chunkCount = 0

    // What held before it, so that it can be undone.
    var currentBefore: Int32 = -1
    var fullSizeBefore = 0
    var chargedBefore: UInt64 = 0

    // The state of one part of a message.
    enum Fate: UInt8 { case waiting, inFlight, lost, received }
    var fate = Fate.waiting
    var transmissions = 0
    var serial: UInt64 = 0
    var sentAt = Timestamp.zero

    static let maximumSegments = Segments.capacity

    /// Becomes a full chunk that holds a part of one message and nothing else.
    mutating func setRun(_ segment: Segment, chunkCount: Int, current: Int32, charged: UInt64) {
        form = segment.kind == .goOn ? .plain : .slot
        flags = []
        setsFullSize = false
        segments[0] = segment
        segmentCount = 1
        bodyCount = Int(segment.count)
        self.chunkCount = chunkCount
        currentBefore = current
        fullSizeBefore = chunkCount
        chargedBefore = charged
        transmissions = 0
    }

    /// The link has taken it.
    mutating func sent(serial: UInt64, at now: Timestamp) {
        fate = .inFlight
        transmissions += 1
        sentAt = now
        self.serial = serial
    }
}
