import Ferry
import Synchronization

/// Two ends of a link and their receivers, with the checks of ``LinkConformance`` from `near` to `far`.
struct LinkRig: Sendable {
    let near: any Link
    let far: any Link
    let nearWitness = LinkWitness()
    let farWitness = LinkWitness()
    let time: ConformanceTime
    let name: String

    init(_ near: any Link, _ far: any Link, _ time: ConformanceTime, _ requirement: LinkConformance.Requirement) {
        self.near = near
        self.far = far
        self.time = time
        name = requirement.rawValue
    }

    func activate() {
        near.activate(nearWitness)
        far.activate(farWitness)
    }

    private func trySend(_ chunk: [UInt8]) throws(FerryError) -> Bool {
        try nearWitness.calls.call { () throws(FerryError) in try near.trySend(chunk.span.bytes) }
    }

    /// Sends a chunk, waiting for space if there is none.
    func send(_ chunk: [UInt8]) async throws {
        let failure = Mutex<FerryError?>(nil)
        try await time.wait(name, for: "space for a chunk") {
            do throws(FerryError) { return try trySend(chunk) } catch {
                failure.withLock { $0 = error }
                return true
            }
        }
        if let error = failure.withLock({ $0 }) {
            throw ConformanceFailure(name, "trySend of \(chunk.count) bytes threw \(error)")
        }
    }

    /// Fills the queue until it is full. Returns the chunks that were taken.
    private func fill() throws -> [[UInt8]] {
        var taken: [[UInt8]] = []
        var total = 0
        while total < 1_000_000 {
            let chunk = numbered(taken.count, size: near.maximumChunkSize)
            guard try trySend(chunk) else { return taken }
            taken.append(chunk)
            total += chunk.count
        }
        throw ConformanceFailure(name, "the queue took a million bytes and was not full")
    }

    private func numbered(_ index: Int, size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: index &+ $0 &* 31) }
    }

    func expect(_ chunks: [[UInt8]]) async throws {
        try await time.wait(name, for: "\(chunks.count) chunks; \(farWitness.chunks.count) came") {
            farWitness.chunks.count >= chunks.count
        }
        let received = farWitness.chunks
        try require(received.count == chunks.count, name, "\(chunks.count) chunks were sent, \(received.count) came")
        for (index, pair) in zip(chunks, received).enumerated() where pair.0 != pair.1 {
            throw ConformanceFailure(
                name, "chunk \(index) of \(pair.0.count) bytes arrived as \(pair.1.count) bytes, or changed")
        }
    }

    private func noViolation() throws {
        if let violation = nearWitness.calls.violation ?? farWitness.calls.violation {
            throw ConformanceFailure(name, violation)
        }
    }

    // MARK: Checks

    func chunksArriveInOrder() async throws {
        activate()
        var sent: [[UInt8]] = []
        // Every size up to the longest attribute value's, each beside others; 200 chunks at least where links are small.
        for index in 0..<max(200, 4 * min(512, near.maximumChunkSize) / 3) {
            // The size is asked for each time, as it may change.
            let maximum = near.maximumChunkSize
            let size = index % 4 == 3 ? maximum : 1 + (index - index / 4) % min(512, maximum)
            let chunk = numbered(index, size: size)
            try await send(chunk)
            sent.append(chunk)
        }
        try await expect(sent)
        try noViolation()
    }

    /// Chunks of sizes that are none are refused, and nothing of them is sent.
    func refuses(_ sizes: (_ maximum: Int) -> [Int], _ code: FerryError.Code) async throws {
        activate()
        try require(near.maximumChunkSize >= 1, name, "maximumChunkSize is \(near.maximumChunkSize)")
        // A refusal must not depend on an ATT_MTU exchange, so let that finish first.
        await time.pass(.milliseconds(200))
        for size in sizes(near.maximumChunkSize) {
            do throws(FerryError) {
                _ = try trySend([UInt8](repeating: 1, count: size))
            } catch {
                try require(error.code == code, name, "trySend of \(size) bytes threw \(error), not \(code)")
                continue
            }
            throw ConformanceFailure(
                name, "trySend took \(size) bytes with maximumChunkSize \(near.maximumChunkSize)")
        }
        try await send([7])
        try await expect([[7]])
    }

    func fullThenReady(delay: Duration) async throws {
        activate()
        await time.pass(.milliseconds(200))
        far.setReceiving(false)
        // From before: where a pause stops the peer's queue late, space may come in the moment after the refusal.
        let readies = nearWitness.readies
        var sent = try fill()
        far.setReceiving(true)
        try await time.wait(name, for: "linkIsReady after the queue was full") { nearWitness.readies > readies }
        if delay > .zero { await time.pass(delay) }
        let chunk = numbered(sent.count, size: near.maximumChunkSize)
        if delay > .zero {
            try require(try trySend(chunk), name, "no space \(delay) after linkIsReady, with nothing sent since")
        } else {
            try await send(chunk)
        }
        sent.append(chunk)
        try await expect(sent)
    }

    func eventsComeFromOutside() async throws {
        activate()
        let left = Mutex(2000)
        let refill: @Sendable () -> Void = {
            left.withLock { left in
                while left > 0, (try? trySend([UInt8(truncatingIfNeeded: left)])) == true { left -= 1 }
            }
        }
        nearWitness.record.withLock { $0.onReady = refill }
        refill()
        try await time.wait(name, for: "2000 chunks") {
            refill()
            return farWitness.chunks.count >= 2000
        }
        nearWitness.record.withLock { $0.onReady = nil }
        try require(farWitness.chunks.count == 2000, name, "2000 chunks were sent, \(farWitness.chunks.count) came")
        farWitness.calls.call {
            far.setReceiving(false)
            far.setReceiving(true)
            _ = far.maximumChunkSize
        }
        nearWitness.calls.call { near.close() }
        try await time.wait(name, for: "the end") { !nearWitness.reasons.isEmpty && !farWitness.reasons.isEmpty }
        try noViolation()
    }

    func chunksWaitForActivation() async throws {
        near.activate(nearWitness)
        try await send([1])
        try await send([2, 3])
        var sent: [[UInt8]] = [[1], [2, 3]]
        // As many as the link takes: nothing of that may be lost, and a link that has no room says so.
        var refusals = 0
        while sent.count < 200, refusals < 10 {
            let chunk = numbered(sent.count, size: min(8, near.maximumChunkSize))
            if try trySend(chunk) {
                sent.append(chunk)
                refusals = 0
            } else {
                refusals += 1
                await time.pass(.milliseconds(20))
            }
        }
        await time.pass(.milliseconds(200))
        far.activate(farWitness)
        try await expect(sent)
    }

    func pauses() async throws {
        activate()
        await time.pass(.milliseconds(200))
        try await send([9])
        try await expect([[9]])
        far.setReceiving(false)
        await time.pass(.milliseconds(200))
        let before = farWitness.chunks.count
        var sent = [[9]] + (try fill())
        await time.pass(.milliseconds(200))
        // One chunk may have been on its way when the pause was asked for.
        try require(
            farWitness.chunks.count <= before + 1, name,
            "\(farWitness.chunks.count - before) chunks came although the receiver had paused")
        far.setReceiving(true)
        try await expect(sent)
        sent.append([4])
        try await send([4])
        try await expect(sent)
    }

    func closes(losesQueued: Bool) async throws {
        activate()
        await time.pass(.milliseconds(200))
        try await send([1])
        try await send([2])
        // Perhaps it arrives before the end at this side; not after it.
        _ = try? far.trySend(([3] as [UInt8]).span.bytes)
        near.close()
        near.close()
        try await time.wait(name, for: "linkDidClose at both ends") {
            !nearWitness.reasons.isEmpty && !farWitness.reasons.isEmpty
        }
        await time.pass(.seconds(3))
        for (end, reasons) in [("this", nearWitness.reasons), ("the far", farWitness.reasons)] {
            try require(reasons.count == 1, name, "linkDidClose came \(reasons.count) times at \(end) end")
        }
        try require(nearWitness.reasons[0].code == .closed, name, "this end closed with \(nearWitness.reasons[0])")
        try require(farWitness.reasons[0].code != .closed, name, "the far end, which did not close, was told `closed`")
        for (end, witness) in [("this", nearWitness), ("the far", farWitness)] {
            let late = witness.record.withLock { $0.afterEnd }
            try require(late == 0, name, "\(late) chunks came after linkDidClose at \(end) end")
        }
        if !losesQueued { try await expect([[1], [2]]) }
    }

    /// Both sides close at once. The far one may have heard of it before it did.
    func firstReasonWins() async throws {
        activate()
        await time.pass(.milliseconds(200))
        near.close()
        far.close()
        try await expectFirstReason()
    }

    /// This side closes, and the far one cannot hear of it.
    func firstReasonWins(isLateLoss: Bool, _ setInReach: @Sendable (Bool) -> Void) async throws {
        defer { setInReach(true) }
        activate()
        await time.pass(.milliseconds(200))
        if !isLateLoss { setInReach(false) }
        near.close()
        if isLateLoss { setInReach(false) }
        try await expectFirstReason()
        let code = farWitness.reasons[0].code
        try require(code != .closed, name, "the far end, which did not close, was told `closed`")
    }

    private func expectFirstReason() async throws {
        try await time.wait(name, for: "linkDidClose at both ends") {
            !nearWitness.reasons.isEmpty && !farWitness.reasons.isEmpty
        }
        await time.pass(.seconds(3))
        for (end, reasons) in [("this", nearWitness.reasons), ("the far", farWitness.reasons)] {
            try require(reasons.count == 1, name, "linkDidClose came \(reasons.count) times at \(end) end")
        }
        let reason = nearWitness.reasons[0]
        try require(reason.code == .closed, name, "this end, which closed first, was told \(reason)")
    }

    func sendsNothingAfterTheEnd() async throws {
        activate()
        near.close()
        try await time.wait(name, for: "linkDidClose at both ends") {
            !nearWitness.reasons.isEmpty && !farWitness.reasons.isEmpty
        }
        for (link, witness, end) in [(near, nearWitness, "closed"), (far, farWitness, "far")] {
            let reason = witness.reasons[0]
            let thrown = try refusal(link, end)
            try require(
                thrown.code == reason.code, name,
                "linkDidClose told the \(end) end \(reason), and trySend threw \(thrown)")
            link.setReceiving(false)
            link.setReceiving(true)
            link.close()
            try require(link.maximumChunkSize >= 1, name, "maximumChunkSize is below 1 after the end")
            let later = try refusal(link, end)
            try require(
                later.code == reason.code, name,
                "after close() the \(end) end, which had ended with \(reason), has another reason: \(later)")
        }
        await time.pass(.milliseconds(200))
        try require(nearWitness.reasons.count == 1, name, "linkDidClose came more than once")
        try require(farWitness.reasons.count == 1, name, "linkDidClose came more than once at the far end")
    }

    /// Why an ended link sends nothing.
    private func refusal(_ link: any Link, _ end: String) throws -> FerryError {
        do throws(FerryError) { _ = try link.trySend(([1] as [UInt8]).span.bytes) } catch { return error }
        throw ConformanceFailure(name, "trySend at the \(end) end did not throw after the end")
    }

    func activatesAfterTheEnd() async throws {
        near.activate(nearWitness)
        near.close()
        try await time.wait(name, for: "linkDidClose") { !nearWitness.reasons.isEmpty }
        await time.pass(.seconds(3))
        far.activate(farWitness)
        try await time.wait(name, for: "linkDidClose of a link that ended before activate") {
            !farWitness.reasons.isEmpty
        }
    }
}
