import Ferry
import Workloads

/// Formats of devices beside the length prefix, in the same rounds: decoding; and both ends of BTP, which acknowledge, without a target.
func checkDeviceSpeed(_ report: inout Report) throws {
    for chunkSize in [20, 244] {
        report.heading(
            "Formats of devices, chunks of \(chunkSize) bytes: the length prefix's time for a chunk beside theirs")
        let plain = Workload.decode("length", LengthPrefixFraming(), try bigStream(LengthPrefixFraming(), chunkSize))
        let plainExchange = try Workload.exchange(
            "length", LengthPrefixFraming(), messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize
        ).workload
        var pairs: [(Workload, Workload, Double?)] = try deviceDecoders(chunkSize).map { ($0, plain, 0.5) }
        pairs.append((try btpExchange(chunkSize), plainExchange, nil))
        for (workload, plain, goal) in pairs {
            var (own, ratios): ([Double], [Double]) = ([], [])
            for _ in 0..<11 {
                let base = try plain.nanosecondsPerChunk(passes: 200_000 / plain.chunksPerPass)
                own.append(try workload.nanosecondsPerChunk(passes: 200_000 / workload.chunksPerPass))
                ratios.append(base / (own.last ?? 0))
            }
            let ratio = median(ratios)
            report.line(
                workload.name, "\(rounded(median(own))) ns, \(rounded(ratio)) of the length prefix's speed",
                target: goal.map { "at least \($0)" }, isMet: ratio >= goal ?? 0)
        }
    }
}
