import Ferry

// MARK: - Runs

// Most chunks are full, hold nothing but one message's bytes, and there is nothing to choose. They skip the choice, and
// are not booked before the link has taken them.
extension Outbox {
    /// Full chunks that may follow without choosing anew. Any event that changes the choice ends the run.
    struct Run {
        var left = 0
        var message: Int32 = -1
        /// Whether the first one has to name its message.
        var isResuming = false
        var spendsTurn = false
    }

    /// Finds out what ``pick()`` would choose for how long: as long as turn, message and credit last.
    mutating func planRun() {
        run.left = 0
        var level = levels.count - 1
        while level >= 0, levels[level].active.isEmpty, levels[level].waiting.isEmpty { level -= 1 }
        if level >= 0, fullSize > 0, cancelling.isEmpty { planRun(at: level) }
    }

    /// The same when nothing above `level` has anything to send.
    private mutating func planRun(at level: Int) {
        let turn = levels[level].turn
        guard let first = levels[level].active.first,
            turn > 0 || levels[level].hasJustAdmitted || !canBegin(level)
        else { return }
        let index = Int(first)
        let rest = messages[index].remaining
        let isResuming = first != current
        if isResuming, rest <= fullSize { return }
        let isAlone = readyCount == 1
        let chunks = isAlone ? .max : turn > 0 ? turn : messages[index].weight * Self.chunksPerTurn
        let left = min(chunks, min(rest - 1, credit - OutboundMessage.fixedCost - 1) / (fullSize - 1))
        run = Run(left: left, message: first, isResuming: isResuming, spendsTurn: !isAlone)
    }

    /// Writes the next chunk of the run, without booking it.
    mutating func writeRun(sequence: UInt8, to writer: inout ChunkWriter) {
        let index = Int(run.message)
        if run.isResuming { writer.byte(0xC0 | messages[index].slot) }
        writer.byte(sequence)
        messages[index].write(messages[index].cut, fullSize - writer.count, to: &writer)
    }

    /// The link has taken the chunk that ``writeRun(sequence:to:)`` wrote.
    mutating func bookRun(into chunk: inout OutboundChunk) {
        let index = Int(run.message)
        let count = fullSize - (run.isResuming ? 2 : 1)
        let segment = Segment(
            offset: messages[index].cut, message: run.message, count: Int32(truncatingIfNeeded: count),
            kind: run.isResuming ? .resume : .goOn)
        chunk.setRun(segment, chunkCount: fullSize, current: current, charged: charged)
        messages[index].cut += count
        charged += UInt64(count)
        current = run.message
        run.isResuming = false
        run.left -= 1
        guard run.spendsTurn else { return }
        let level = messages[index].level
        guard levels[level].spend(messages[index].weight * Self.chunksPerTurn) else { return }
        run.left = 0
        planRun(at: level)
    }
}

// MARK: - Writing

extension Outbox {
    /// Writes a chunk that was cut, for the first time or again.
    mutating func write(
        _ chunk: borrowing OutboundChunk, sequence: UInt8, _ acknowledgement: Acknowledgement?,
        to writer: inout ChunkWriter
    ) {
        switch chunk.form {
        case .plain:
            writer.byte(sequence)
        case .slot:
            writer.byte(0xC0 | messages[Int(chunk.segments[0].message)].slot)
            writer.byte(sequence | (chunk.flags.contains(.end) ? 0x80 : 0))
        case .flagged:
            let flags = acknowledgement == nil ? chunk.flags : chunk.flags.union(.acknowledgement)
            writer.byte(0x80 | flags.rawValue)
            writer.byte(sequence)
            acknowledgement?.write(to: &writer)
            if chunk.flags.contains(.length) {
                writer.varint(UInt64(chunk.bodyCount) << 1 | (chunk.setsFullSize ? 1 : 0))
            }
        }
        for place in 0..<chunk.segmentCount {
            let segment = chunk.segments[place]
            let index = Int(segment.message)
            if chunk.form == .flagged {
                let slot = messages[index].slot
                switch segment.kind {
                case .goOn: break
                case .begin:
                    writer.byte(Record.begin.byte(slot: slot))
                    writer.varint(UInt64(messages[index].payload.count))
                case .resume: writer.byte(Record.resume.byte(slot: slot))
                case .cancel: writer.byte(Record.cancel.byte(slot: slot))
                }
            }
            messages[index].write(segment.offset, Int(segment.count), to: &writer)
        }
    }
}

// MARK: - Undoing

extension Outbox {
    /// Takes back the latest chunk that was cut and not undone.
    mutating func undo(_ chunk: borrowing OutboundChunk) {
        run.left = 0
        for place in (0..<chunk.segmentCount).reversed() { undo(chunk.segments[place]) }
        current = chunk.currentBefore
        fullSize = chunk.fullSizeBefore
        charged = chunk.chargedBefore
    }

    private mutating func undo(_ segment: Segment) {
        let index = Int(segment.message)
        let level = messages[index].level
        if segment.kind == .cancel {
            cancelling.prepend(segment.message)
            return open(index)
        }
        if messages[index].isCut {
            open(index)
            levels[level].active.prepend(segment.message)
            readyCount += 1
        }
        messages[index].cut = segment.offset
        guard segment.kind == .begin else { return }
        close(index)
        if messages[index].stage == .cancelled {
            cancelling.removeAll { $0 == segment.message }
            return release(segment.message)
        }
        messages[index].stage = .waiting
        if levels[level].active.first == segment.message { levels[level].turn = 0 }
        levels[level].active.removeAll { $0 == segment.message }
        levels[level].waiting.prepend(segment.message)
        levels[level].hasJustAdmitted = false
    }

    /// The messages whose last byte is in a chunk: after a peer has lost its state, it is unknown whether it has them.
    func uncertain() -> [MessageID] {
        var ids: [MessageID] = []
        for index in indices.values where messages[Int(index)].isCut {
            // Into its place: sorting would bring 4 kB of the standard library into firmware, for what happens once a session.
            let id = messages[Int(index)].id
            var (low, high) = (0, ids.count)
            while low < high {
                let middle = (low + high) / 2
                if ids[middle] < id { low = middle + 1 } else { high = middle }
            }
            ids.insert(id, at: low)
        }
        return ids
    }
}
