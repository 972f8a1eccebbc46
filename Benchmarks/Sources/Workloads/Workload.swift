import CMemoryCounter

/// Something to be timed. A pass is one run over the same input.
public struct Workload: Sendable {
    /// What it is called in reports.
    public let name: String
    /// Messages that a pass delivers or sends.
    public let messagesPerPass: Int
    /// Chunks that a pass takes or makes.
    public let chunksPerPass: Int
    /// Payload bytes that a pass delivers or sends.
    public let bytesPerPass: Int
    /// Runs so many passes with one state after one that is not measured.
    public let run: @Sendable (_ passes: Int) throws -> Outcome

    /// What was measured.
    public struct Outcome: Sendable {
        /// Payload bytes of all measured passes, to be compared with what went in.
        public var bytes: Int
        /// Allocations of all measured passes.
        public var allocations: Int
        /// Bytes that memcpy and memmove copied in all measured passes; 0 in programs that do not count copies.
        public var copiedBytes: Int
        /// The thread's processor time for all measured passes.
        public var nanoseconds: Int
    }

    /// Something to be timed.
    public init(
        _ name: String, messagesPerPass: Int, chunksPerPass: Int, bytesPerPass: Int,
        run: @escaping @Sendable (_ passes: Int) throws -> Outcome
    ) {
        self.name = name
        self.messagesPerPass = messagesPerPass
        self.chunksPerPass = chunksPerPass
        self.bytesPerPass = bytesPerPass
        self.run = run
    }

    /// A pass over the messages of `stream`.
    public init(_ name: String, _ stream: ChunkStream, run: @escaping @Sendable (_ passes: Int) throws -> Outcome) {
        self.init(
            name, messagesPerPass: stream.messageCount, chunksPerPass: stream.chunkCount,
            bytesPerPass: stream.payloadBytes, run: run)
    }

    /// Nanoseconds per chunk over so many passes.
    public func nanosecondsPerChunk(passes: Int) throws -> Double {
        let outcome = try run(passes)
        precondition(outcome.bytes == passes * bytesPerPass, "\(name) lost or doubled bytes")
        return Double(outcome.nanoseconds) / Double(passes * chunksPerPass)
    }
}

/// Runs `pass` once to warm up, then `passes` times, and measures the latter.
@inline(__always)
public func measure(_ passes: Int, _ pass: () throws -> Int) rethrows -> Workload.Outcome {
    _ = try pass()
    var bytes = 0
    let allocations = ferry_allocation_count()
    let copied = ferry_copied_bytes()
    let start = ferry_thread_nanoseconds()
    for _ in 0..<passes { bytes += try pass() }
    let end = ferry_thread_nanoseconds()
    return Workload.Outcome(
        bytes: bytes, allocations: Int(ferry_allocation_count() - allocations),
        copiedBytes: Int(ferry_copied_bytes() - copied), nanoseconds: Int(end - start))
}

/// Whether allocations are counted on this platform.
public var allocationsAreCounted: Bool { ferry_allocations_are_counted() != 0 }

/// Whether copies are counted in this program.
public var copiesAreCounted: Bool { ferry_copies_are_counted() != 0 }
