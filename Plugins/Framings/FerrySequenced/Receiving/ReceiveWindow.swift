import Ferry

/// Which chunks have arrived, with those that came before their turn.
struct ReceiveWindow {
    /// A chunk that waits for its turn.
    struct Held {
        var isPresent = false
        var header = DataHeader(sequence: 0, flags: [], bodyOffset: 0)
        var body: [UInt8] = []
    }

    /// Where a chunk belongs.
    enum Arrival { case due, early(Int), known, outside }

    /// The number of chunks taken, which is the number of the next one due.
    private(set) var next: UInt64 = 0
    private(set) var held: ContiguousArray<Held>
    private(set) var heldCount = 0
    let size: Int
    private let mask: UInt64

    init(window: Int) {
        size = window
        var capacity = 1
        while capacity < window { capacity *= 2 }
        held = ContiguousArray(repeating: Held(), count: capacity)
        mask = UInt64(capacity - 1)
    }

    var nextSequence: UInt8 { UInt8(truncatingIfNeeded: next & (SequencedChunk.sequenceCount - 1)) }

    private func place(_ distance: Int) -> Int { Int(truncatingIfNeeded: (next &+ UInt64(distance)) & mask) }

    func arrival(of sequence: UInt8) -> Arrival {
        let distance = Int((UInt64(sequence) &- next) & (SequencedChunk.sequenceCount - 1))
        if distance == 0 { return .due }
        if distance < size { return held[place(distance)].isPresent ? .known : .early(distance) }
        return distance < SequencedChunk.maximumWindow ? .outside : .known
    }

    /// Keeps a chunk that came `distance` before its turn.
    mutating func hold(_ distance: Int, _ header: DataHeader, _ body: UnsafeRawBufferPointer) {
        let place = place(distance)
        held[place].isPresent = true
        held[place].header = header
        held[place].body.removeAll(keepingCapacity: true)
        held[place].body.append(contentsOf: body)
        heldCount += 1
    }

    /// The chunk that is due has been taken; the next one is.
    mutating func advance() {
        if heldCount > 0 { dropDue() }
        next += 1
    }

    /// The chunk that is due proved damaged: it is as if it had never come.
    mutating func dropDue() {
        let place = place(0)
        guard held[place].isPresent else { return }
        held[place].isPresent = false
        heldCount -= 1
    }

    /// The chunk that is due, if it is held.
    func due() -> Held? {
        guard heldCount > 0 else { return nil }
        let place = place(0)
        return held[place].isPresent ? held[place] : nil
    }

    /// Forgets what came before its turn: the link has ended.
    mutating func dropHeld() {
        for place in held.indices { held[place].isPresent = false }
        heldCount = 0
    }

    /// Begins to count from 0.
    mutating func restart() {
        dropHeld()
        next = 0
    }

    /// What an acknowledgement says.
    func acknowledgement(credit: UInt64) -> Acknowledgement {
        var block = Acknowledgement(next: nextSequence, credit: credit)
        guard heldCount > 0 else { return block }
        for distance in 1..<size where held[place(distance)].isPresent { block.bitmap |= 1 << UInt64(distance - 1) }
        return block
    }
}
