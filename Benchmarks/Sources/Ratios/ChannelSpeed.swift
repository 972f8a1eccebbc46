import Ferry
import FerrySequenced
import Workloads

/// The whole channel over the loopback radio, beside an `AsyncStream` of arrays. What else the machine does counts here, so
/// the quickest of the rounds is judged.
func checkChannelSpeed(_ report: inout Report) async throws {
    report.heading("The whole channel over the loopback radio: messages of 1 MiB in chunks of 244 bytes")
    let stream = await StreamWorkload(messageSize: 1 << 20, chunkSize: 244).timed(rounds: 9, messages: 25).min() ?? 0
    report.line("an AsyncStream of arrays", "\(rounded(stream)) ns")
    let framings: [@Sendable () -> any Framing] = [
        { LengthPrefixFraming() }, { EndOfMessageFraming.unlimited }, { SequencedFraming() },
    ]
    for framing in framings {
        let rounds = try await ChannelWorkload(framing, attMTU: 247, messageSize: 1 << 20)
            .timed(rounds: 9, messages: 25)
        let elapsed = rounds.map { $0.elapsed / Double($0.chunks) }.min() ?? .infinity
        let processor = rounds.map { $0.processor / Double($0.chunks) }.min() ?? .infinity
        // The sequenced framing also acknowledges.
        let target = framing().name == "sequenced" ? 1.25 : 2
        report.line(
            framing().name, "\(rounded(1000 / elapsed)) million chunks a second",
            target: "at least \(rounded(target))", isMet: 1000 / elapsed >= target)
        report.line(
            "    per chunk",
            "\(rounded(elapsed)) ns, CPU \(rounded(processor)), \(rounded(stream / elapsed)) x the stream")
    }
}
