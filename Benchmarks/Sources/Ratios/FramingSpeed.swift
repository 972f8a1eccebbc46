import Ferry
import Peers
import Workloads

/// Rounds in which every workload runs once, one behind the other; the figures are medians of the rounds' ratios.
func checkSpeed(_ report: inout Report) throws {
    for chunkSize in [20, 182, 244] {
        let fixed = try bigStream(LengthPrefixFraming(prefix: .uint32(.big)), chunkSize)
        let nio = Workload.nioDecode("NIO", fixed)
        let nioSlices = Workload.nioDecodeOfSlices("NIO, slices", fixed)
        let copy = Workload.copy("copy", fixed)
        let decoders = try decoders(chunkSize)
        let workloads = try decoders + encoders(chunkSize)
        var nanoseconds = Array(repeating: [Double](), count: workloads.count)
        var nioNanoseconds: [Double] = []
        var nioSlicesNanoseconds: [Double] = []
        var copyNanoseconds: [Double] = []
        for _ in 0..<11 {
            copyNanoseconds.append(try copy.nanosecondsPerChunk(passes: 800_000 / fixed.chunkCount))
            for (index, workload) in workloads.enumerated() {
                nanoseconds[index].append(try workload.nanosecondsPerChunk(passes: 400_000 / fixed.chunkCount))
            }
            nioNanoseconds.append(try nio.nanosecondsPerChunk(passes: 40_000 / fixed.chunkCount))
            nioSlicesNanoseconds.append(try nioSlices.nanosecondsPerChunk(passes: 40_000 / fixed.chunkCount))
        }
        report.heading("Chunks of \(chunkSize) bytes, messages of 16 KiB, medians of 11 rounds")
        report.line("copy, chunk by chunk", "\(rounded(median(copyNanoseconds))) ns")
        report.line("NIO LengthFieldBasedFrameDecoder", "\(rounded(median(nioNanoseconds))) ns")
        report.line("the same from slices made beforehand", "\(rounded(median(nioSlicesNanoseconds))) ns")
        for (workload, nanoseconds) in zip(workloads, nanoseconds) {
            let isDecoder = workload.name.hasPrefix("decode")
            let toCopy = median(zip(nanoseconds, copyNanoseconds).map { $0 / $1 })
            let hasCopyTarget = !isDecoder || chunkSize == 244
            let limit = isDecoder ? 4 : 3.5
            report.line(
                workload.name, "\(rounded(median(nanoseconds))) ns, \(rounded(toCopy)) x copy",
                target: hasCopyTarget ? "at most \(limit) x copy" : nil, isMet: !hasCopyTarget || toCopy <= limit)
            guard isDecoder else { continue }
            let toNIO = median(zip(nioNanoseconds, nanoseconds).map { $0 / $1 })
            let toSlices = median(zip(nioSlicesNanoseconds, nanoseconds).map { $0 / $1 })
            report.line(
                "    x NIO's rate", "\(rounded(toNIO)) (\(rounded(toSlices)) from slices)", target: "at least 40",
                isMet: toNIO >= 40)
        }
    }
}

/// The cost of a byte for messages of 1 KiB to 64 MiB, beside copying as many into memory taken anew, which is what a
/// message as bytes of its own costs at least: the kernel clears each page of a large one.
func checkFlatness(_ report: inout Report) throws {
    report.heading("Chunks of 244 bytes: picoseconds per byte by size of message, and the same for copying")
    func check(_ framing: some Framing, _ decode: (ChunkStream) -> Workload) throws {
        var ratios: [Double] = []
        for shift in [10, 13, 16, 18, 20, 23, 26] {
            let size = 1 << shift
            let stream = try ChunkStream(framing, messageSize: size, messageCount: 1, chunkSize: 244)
            let workload = decode(stream)
            let copy = Workload.copyIntoNewMemory("copy", stream)
            let passes = max(1, (8 << 20) / size)
            var decoding: [Double] = []
            var copying: [Double] = []
            for _ in 0..<5 {
                copying.append(Double(try copy.run(passes).nanoseconds) * 1000 / Double(passes * size))
                decoding.append(Double(try workload.run(passes).nanoseconds) * 1000 / Double(passes * size))
            }
            let ratio = median(zip(decoding, copying).map { $0 / $1 })
            ratios.append(ratio)
            report.line(
                "\(framing.name), \(size >> 10) KiB",
                "\(Int(median(decoding))) ps, copy \(Int(median(copying))) ps, \(rounded(ratio)) x")
        }
        let worst = ratios.max() ?? 0
        report.line(
            framing.name, "at worst \(rounded(worst)) x copy", target: "at most 4 x copy at every size",
            isMet: worst <= 4)
    }
    try check(LengthPrefixFraming()) { .decode("length", LengthPrefixFraming(), $0) }
    try check(EndOfMessageFraming.unlimited) { .decode("eom", .unlimited, $0) }
}
