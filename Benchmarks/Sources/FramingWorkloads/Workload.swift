import CAllocationCounter

/// Something to be timed. A pass is one run over the same input.
public struct Workload: Sendable {
    public let name: String
    public let chunksPerPass: Int
    public let bytesPerPass: Int
    /// Runs so many passes with one state, after one pass to warm up, and tells the allocations of the passes counted.
    public let run: @Sendable (_ passes: Int) throws -> Outcome

    public struct Outcome: Sendable {
        /// Payload bytes that came out, to be compared with what went in.
        public var bytes: Int
        public var allocations: Int
        public var elapsed: Duration
    }

    init(
        _ name: String, chunksPerPass: Int, bytesPerPass: Int, run: @escaping @Sendable (_ passes: Int) throws -> Outcome
    ) {
        self.name = name
        self.chunksPerPass = chunksPerPass
        self.bytesPerPass = bytesPerPass
        self.run = run
    }
}

/// Runs `pass` once to warm up, then `passes` times, and measures the latter.
@inline(__always)
func measure(_ passes: Int, _ pass: () throws -> Int) rethrows -> Workload.Outcome {
    _ = try pass()
    var bytes = 0
    let allocations = ferry_allocation_count()
    let start = ContinuousClock.now
    for _ in 0..<passes { bytes += try pass() }
    let elapsed = start.duration(to: .now)
    return Workload.Outcome(
        bytes: bytes, allocations: Int(ferry_allocation_count() - allocations), elapsed: elapsed)
}
