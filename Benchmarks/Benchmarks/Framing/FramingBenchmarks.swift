import Benchmark
import Ferry
import FramingWorkloads

// Over time: `swift package benchmark`. Ratios and targets: `swift run -c release framing-ratios`.
// An iteration is two passes over 16 messages of 16 KiB, one of them to warm up. The whole channel gets a file of its own
// beside this one.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput, .peakMemoryResident], warmupIterations: 2, scalingFactor: .one,
        maxDuration: .seconds(2), maxIterations: 200)

    func add(_ workload: Workload, _ chunkSize: Int) {
        let name = workload.name.map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined() + "_\(chunkSize)"
        Benchmark(name) { benchmark in
            for _ in benchmark.scaledIterations { blackHole(try workload.run(1)) }
        }
    }

    for chunkSize in [20, 182, 244] {
        let endOfMessage = EndOfMessageFraming.unlimited
        let length = LengthPrefixFraming(prefix: .uint32(.big))
        guard
            let lengthStream = try? ChunkStream(
                length, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize),
            let endStream = try? ChunkStream(
                endOfMessage, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize)
        else { fatalError("the streams cannot be made") }
        add(.copy("copy", lengthStream), chunkSize)
        add(.nioDecode("nio decode", lengthStream), chunkSize)
        add(.decode("length decode", length, lengthStream), chunkSize)
        add(.encode("length encode", length, lengthStream), chunkSize)
        add(.decode("eom decode", endOfMessage, endStream), chunkSize)
        add(.encode("eom encode", endOfMessage, endStream), chunkSize)
    }
}

extension EndOfMessageFraming {
    /// Chunks as large as the link takes.
    static var unlimited: EndOfMessageFraming {
        guard let framing = try? EndOfMessageFraming(chunkSize: nil) else { fatalError("refused") }
        return framing
    }
}
