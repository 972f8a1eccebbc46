import Ferry

/// An upload by offsets, as a value without I/O: which piece goes next, and what an answer means.
///
/// Several pieces may be under way. Each answer names the offset that the server wants next. One that is not the end of its piece
/// makes all that are under way void: the upload waits until each of them has been answered, and goes on from the last answer's
/// offset; from 0 with a first request, for the server has forgotten everything.
///
/// Source: Nordic's iOS library, `McuMgrUploadPipeline`; Zephyr's `img_mgmt.c`.
struct SMPUpload: Sendable {
    /// A part of the upload, in one request.
    struct Piece: Sendable, Hashable {
        var offset: Int
        var count: Int
        /// Whether its request has the name and size of the upload.
        let isFirst: Bool
    }

    private enum Phase {
        /// Nothing is agreed on: a first request goes next, alone.
        case opening
        /// The first request is under way.
        case opened
        /// Pieces go from ``next`` on.
        case streaming
        /// Pieces in flight are void; then pieces go from this offset on.
        case draining(Int)
        case done
    }

    let size: Int
    /// The most pieces under way, at least 1.
    let window: Int
    /// The most times in a row that the server may go back, or be silent, without having got any further.
    let maximumSetbacks: Int

    private var phase = Phase.opening
    private var next = 0
    /// The end of the farthest piece that has been sent.
    private var sentUpTo = 0
    private var underWay = 0
    private var setbacks = 0
    /// The farthest offset that an answer has named.
    private(set) var confirmed = 0

    init(size: Int, window: Int, maximumSetbacks: Int = 8) {
        self.size = size
        self.window = max(1, window)
        self.maximumSetbacks = maximumSetbacks
    }

    var isDone: Bool { if case .done = phase { true } else { false } }

    /// The next piece to be sent, or nil while answers are awaited.
    ///
    /// - Parameter room: how many bytes fit a request of this offset; at least 1.
    mutating func nextPiece(room: (_ offset: Int, _ isFirst: Bool) -> Int) -> Piece? {
        guard underWay < window else { return nil }
        switch phase {
        case .opening:
            guard underWay == 0 else { return nil }
            phase = .opened
            return take(from: 0, room(0, true), isFirst: true)
        case .streaming:
            guard next < size else { return nil }
            return take(from: next, room(next, false), isFirst: false)
        case .opened, .draining, .done: return nil
        }
    }

    private mutating func take(from offset: Int, _ room: Int, isFirst: Bool) -> Piece {
        var count = min(max(room, 1), size - offset)
        // Flash is written in words: a server keeps no part of one, and would ask for it again.
        if offset + count < size, count > 4 { count -= count % 4 }
        next = offset + count
        sentUpTo = max(sentUpTo, next)
        underWay += 1
        return Piece(offset: offset, count: count, isFirst: isFirst)
    }

    /// A piece was answered: the server wants `offset` next.
    ///
    /// - Throws: `smp.answer` for an offset that cannot be; `smp.noProgress` when the server has gone back too often.
    mutating func answered(_ piece: Piece, offset: Int) throws(FerryError) {
        underWay -= 1
        guard (0...size).contains(offset) else {
            throw FerryError(
                .smpAnswer, "The server wants the bytes from \(offset) on; the upload has \(size). Start again.")
        }
        switch phase {
        case .opened:
            // What an earlier upload has left may be known by its hash: then the server is ahead.
            if offset == 0, piece.count > 0 { return try resume(from: 0) }
            reach(offset)
            sentUpTo = max(sentUpTo, offset)
            if !isDone { next = offset; phase = .streaming }
        case .streaming where offset == piece.offset + piece.count: reach(offset)
        case .streaming, .draining:
            guard offset <= sentUpTo else {
                throw FerryError(
                    .smpAnswer,
                    "The server wants the bytes from \(offset) on; only \(sentUpTo) have been sent. Start again.")
            }
            reach(offset)
            if !isDone { try drain(to: offset) }
        case .opening, .done: break
        }
    }

    /// A piece was not answered in time.
    ///
    /// - Throws: `smp.noProgress` after too many.
    mutating func wasLost(_ piece: Piece) throws(FerryError) {
        underWay -= 1
        switch phase {
        case .opened: try resume(from: 0)
        case .streaming: try drain(to: confirmed)
        case .draining(let offset): try drain(to: offset)
        case .opening, .done: break
        }
    }

    private mutating func reach(_ offset: Int) {
        if offset > confirmed { setbacks = 0 }
        confirmed = max(confirmed, offset)
        if offset == size { phase = .done }
    }

    private mutating func drain(to offset: Int) throws(FerryError) {
        guard underWay == 0 else { return phase = .draining(offset) }
        try resume(from: offset)
    }

    private mutating func resume(from offset: Int) throws(FerryError) {
        setbacks += 1
        guard setbacks <= maximumSetbacks else {
            throw FerryError(
                .smpNoProgress,
                "The server has got no further than byte \(confirmed) of \(size) in \(setbacks) attempts, and wants those from"
                    + " \(offset) on. Look at the device's own log, then start again with smaller requests.")
        }
        next = offset
        phase = offset == 0 ? .opening : .streaming
    }
}
