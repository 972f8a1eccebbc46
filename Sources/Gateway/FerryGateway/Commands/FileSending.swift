#if NATS && Records
    import Ferry
    import FerryRecords

    /// A file on its way to a peer, in pieces that are commands: what to send next, as a value without I/O and clock.
    struct FileSending: Sendable {
        /// The next step.
        enum Step: Sendable, Hashable {
            /// Send these bytes.
            case piece(offset: UInt64, count: Int)
            /// Wait for the answer to a piece.
            case wait
            /// Say that all was sent.
            case end
        }

        /// How often the peer may have less than it said, before sending is given up: it lost a part, or what arrived was damaged.
        static let mostReturns = 3

        let size: UInt64
        let pieceSize: Int
        let window: Int
        /// How many of the first bytes are on the peer's disk.
        private(set) var held: UInt64
        private var next: UInt64
        private var outstanding = 0
        private var returns = 0

        /// - Parameters:
        ///   - size: the file's, in bytes.
        ///   - held: what the peer has of it already.
        ///   - pieceSize: how many bytes a piece has, except for the last.
        ///   - window: the most pieces without an answer.
        init(size: UInt64, held: UInt64, pieceSize: Int, window: Int) {
            (self.size, self.pieceSize, self.window) = (size, pieceSize, window)
            self.held = min(held, size)
            next = self.held
        }

        /// Takes the next step.
        mutating func step() -> Step {
            guard next < size else { return outstanding > 0 ? .wait : .end }
            guard outstanding < window else { return .wait }
            let piece = Step.piece(offset: next, count: Int(min(UInt64(pieceSize), size - next)))
            next += min(UInt64(pieceSize), size - next)
            outstanding += 1
            return piece
        }

        /// A piece has its answer.
        ///
        /// - Parameter held: what the peer has of the file.
        /// - Throws: `misbehavingPeer` when the peer keeps having less than was sent.
        mutating func answered(held: UInt64) throws(FerryError) {
            outstanding -= 1
            self.held = min(held, size)
            if outstanding == 0, next > self.held { try goBack() }
        }

        /// The peer does not have the whole file, though all was sent.
        ///
        /// - Throws: as ``answered(held:)``.
        mutating func isIncomplete(held: UInt64) throws(FerryError) {
            self.held = min(held, size)
            try goBack()
        }

        private mutating func goBack() throws(FerryError) {
            returns += 1
            guard returns <= Self.mostReturns else {
                throw FerryError(
                    .misbehavingPeer,
                    "The peer has \(held) of \(size) bytes of the file, after \(returns) attempts. Look at its disk, and whether "
                        + "the file changes while it is sent.")
            }
            next = held
        }
    }
#endif
