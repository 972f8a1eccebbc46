#if NATS && Records
    import DequeModule
    public import Ferry
    public import FerryRecords

    /// A file for a peer, such as its firmware.
    extension PeerCommands {
        /// Brings a file to a peer's folder (``/FerryRecords/FileDrop``). It goes on with what the peer has of it already, and replaces an
        /// older file of that name when all of it is there.
        ///
        /// - Parameters:
        ///   - file: its name, size and checksum.
        ///   - peer: the peer's name at the gateways.
        ///   - limit: when the last of it is to have arrived; up to 30 days.
        ///   - progress: receives how many bytes are on the peer's disk, each time that there are more.
        ///   - read: returns `count` bytes of the file from an offset on.
        /// - Throws: `timedOut` when the peer has not answered in time; `requestFailed` with the peer's reason; `misbehavingPeer` when it
        ///   keeps having less than was sent; as ``send(_:_:to:within:)``; the errors of `read`. The peer keeps its part, and the
        ///   same call resumes.
        public func bring(
            _ file: OfferedFile, to peer: String, within limit: Duration,
            progress: @Sendable (UInt64) -> Void = { _ in },
            read: (_ offset: UInt64, _ count: Int) async throws(FerryError) -> [UInt8]
        ) async throws(FerryError) {
            let end = SystemTime().now + limit
            func left() -> Duration { max(.milliseconds(1), end - SystemTime().now) }
            func ask(_ name: String, _ body: [UInt8]) async throws(FerryError) -> FileProgress {
                try held(file, peer, try await call(name, body, of: peer, within: left()))
            }
            var state = try await ask(OfferedFile.Command.offer, file.encoded)
            var sending = FileSending(
                size: file.size, held: state.held, pieceSize: configuration.pieceSize, window: configuration.pieceWindow
            )
            var waiting: Deque<Sent> = []
            defer { for sent in waiting { calls.forget(sent.id) } }
            while !state.isComplete {
                switch sending.step() {
                case .piece(let offset, let count):
                    let bytes = try await read(offset, count)
                    guard bytes.count == count else {
                        throw FerryError(
                            .invalidConfiguration,
                            "The file \(file.name) gave \(bytes.count) of \(count) bytes at \(offset). It must not change while it is sent."
                        )
                    }
                    let piece = FilePiece(of: file, at: offset, bytes)
                    waiting.append(
                        try await send(OfferedFile.Command.piece, piece.encoded, to: peer, within: left()))
                case .wait:
                    guard let first = waiting.popFirst() else { continue }
                    let answer = try held(file, peer, try await answer(to: first))
                    try sending.answered(held: answer.held)
                    progress(sending.held)
                case .end:
                    state = try await ask(OfferedFile.Command.end, file.encoded)
                    if !state.isComplete { try sending.isIncomplete(held: state.held) }
                }
            }
            progress(file.size)
        }

        private func held(
            _ file: OfferedFile, _ peer: String, _ answer: CommandAnswer
        ) throws(FerryError) -> FileProgress {
            guard answer.outcome == .done else {
                throw FerryError(
                    .requestFailed, "\(peer) does not take the file \(file.name) (\(answer.outcome)): \(answer.text)")
            }
            return try FileProgress(decoding: answer.body)
        }
    }
#endif
