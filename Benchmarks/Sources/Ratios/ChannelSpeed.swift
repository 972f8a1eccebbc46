import Ferry
import FerrySequenced
import Workloads

/// The whole channel over the loopback radio, beside the framing alone, both ends on one core, and beside an `AsyncStream` of arrays.
/// What else the machine does counts here, so the quickest of the rounds is judged, and by the framing: that also only computes, while a
/// stream switches tasks, which machines do at very different speeds.
func checkChannelSpeed(_ report: inout Report) async throws {
    report.heading("The whole channel over the loopback radio: messages of 1 MiB in chunks of 244 bytes")
    let stream = await StreamWorkload(messageSize: 1 << 20, chunkSize: 244).timed(rounds: 9, messages: 25).min() ?? 0
    report.line("an AsyncStream of arrays", "\(rounded(stream)) ns")
    try await check(&report, stream, atMost: 25) { LengthPrefixFraming() }
    try await check(&report, stream, atMost: 12) { EndOfMessageFraming.unlimited }
    try await check(&report, stream, atMost: 8) { SequencedFraming() }
}

/// - Parameter limit: how many times the framing's own time the channel and the radio may take with it.
private func check<F: Framing>(
    _ report: inout Report, _ stream: Double, atMost limit: Double, _ framing: @escaping @Sendable () -> F
) async throws {
    let exchange = try Workload.exchange(
        framing().name, framing(), messageSize: 16 << 10, messageCount: 16, chunkSize: 244
    ).workload
    let passes = 400_000 / exchange.chunksPerPass
    let alone = try (0..<5).map { _ in try exchange.nanosecondsPerChunk(passes: passes) }.min() ?? .infinity
    let rounds = try await ChannelWorkload(framing, attMTU: 247, messageSize: 1 << 20).timed(rounds: 9, messages: 25)
    let elapsed = rounds.map { $0.elapsed / Double($0.chunks) }.min() ?? .infinity
    let processor = rounds.map { $0.processor / Double($0.chunks) }.min() ?? .infinity
    let ratio = processor / alone
    report.line(
        framing().name, "\(rounded(1000 / elapsed)) million chunks a second, \(rounded(ratio)) x the framing alone",
        target: "at most \(rounded(limit)) x", isMet: ratio <= limit)
    report.line(
        "    per chunk", "\(rounded(elapsed)) ns, CPU \(rounded(processor)), \(rounded(stream / elapsed)) x the stream")
}
