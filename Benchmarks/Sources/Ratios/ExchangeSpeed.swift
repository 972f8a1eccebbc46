import Ferry
import FerrySequenced
import Workloads

/// Encoding, decoding and acknowledging, both ends on one core, beside the length prefix in the same rounds. Messages above 64 KiB, of
/// which several grow at once, are the allocator's work above all and have no target.
func checkExchangeSpeed(_ report: inout Report) throws {
    report.heading("Both ends of the sequenced framing on one core, acknowledgements included")
    for (chunkSize, messageSize, messageCount, goal) in [
        (20, 16 << 10, 16, 7.0), (182, 16 << 10, 16, 7.0), (244, 16 << 10, 16, 7.0), (244, 256 << 10, 4, nil),
    ] {
        let sequenced = try Workload.exchange(
            "sequenced", SequencedFraming(), messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize
        ).workload
        let plain = try Workload.exchange(
            "length", LengthPrefixFraming(), messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize
        ).workload
        var nanoseconds: [Double] = []
        var plainNanoseconds: [Double] = []
        for _ in 0..<11 {
            nanoseconds.append(try sequenced.nanosecondsPerChunk(passes: 400_000 / sequenced.chunksPerPass))
            plainNanoseconds.append(try plain.nanosecondsPerChunk(passes: 400_000 / plain.chunksPerPass))
        }
        let ratio = median(zip(nanoseconds, plainNanoseconds).map { $0 / $1 })
        let rate = 1000 / (nanoseconds.min() ?? .infinity)
        report.line(
            "chunks of \(chunkSize), messages of \(messageSize >> 10) KiB",
            "\(rounded(rate)) million chunks a second, \(rounded(ratio)) x length prefix's time",
            target: goal.map { "at most \($0) x" }, isMet: ratio <= goal ?? .infinity)
    }
}
