import Ferry
import FerrySequenced
import Workloads

/// What one message of 1 MiB may cost on its way through both channels, GATT links and the loopback radio with ATT_MTU 247.
private struct ChannelThreshold {
    var framing: @Sendable () -> any Framing
    /// Chunks and bytes that the sender's link takes.
    var chunks: Int
    var bytes: Int
    /// At most so many allocations, among them the message's own as it grows, its task's and its sender's.
    var allocations: Double
    /// Bytes moved for each byte of payload by memcpy and memmove, both copies of the payload (into the radio's queue, into the
    /// message) and the bookkeeping of each chunk included.
    var copies: Double
}

/// With a full queue nothing grows, however long it lasts.
func checkHour(_ report: inout Report) throws {
    report.heading(
        "An hour of simulated radio time: a sender that never pauses, 30 ms, ATT_MTU 185, messages of 2000 bytes")
    let (chunks, waits, growth) = try ChannelWorkload({ LengthPrefixFraming() }, attMTU: 185, messageSize: 2_000).hour()
    report.line(
        "chunks, waits for ready", "\(chunks), \(waits)", target: "at least 100000 waits", isMet: waits >= 100_000)
    guard let growth else { return report.line("growth of resident memory", "not told by this platform") }
    report.line(
        "growth of resident memory", "\(growth >> 10) KiB", target: "at most 256 KiB", isMet: growth <= 256 << 10)
}

func checkChannels(_ report: inout Report) throws {
    let messages = 20
    let thresholds = [
        ChannelThreshold(
            framing: { LengthPrefixFraming() }, chunks: 4298, bytes: 1_048_579, allocations: 20, copies: 6.2),
        ChannelThreshold(
            framing: { EndOfMessageFraming.unlimited }, chunks: 4299, bytes: 1_048_579, allocations: 20, copies: 6.2),
        ChannelThreshold(
            framing: { SequencedFraming() }, chunks: 4316, bytes: 1_053_034, allocations: 24, copies: 9.6),
    ]
    report.heading("One message of 1 MiB through the whole channel, mean of \(messages)")
    for threshold in thresholds {
        let framing = threshold.framing().name
        let outcome = try ChannelWorkload(threshold.framing, attMTU: 247, messageSize: 1 << 20)
            .exact(messages: messages)
        let (chunks, bytes) = (outcome.chunks / messages, outcome.bytes / messages)
        report.line(
            "\(framing), on the wire", "\(bytes) B in \(chunks) chunks",
            target: "\(threshold.bytes) B in \(threshold.chunks)",
            isMet: bytes == threshold.bytes && chunks == threshold.chunks)
        guard allocationsAreCounted, copiesAreCounted else { continue }
        let allocations = Double(outcome.allocations) / Double(messages)
        report.line(
            "\(framing), allocations", "\(rounded(allocations))", target: "at most \(Int(threshold.allocations))",
            isMet: allocations <= threshold.allocations)
        let copies = Double(outcome.copiedBytes) / Double(messages << 20)
        report.line(
            "\(framing), bytes moved per byte", rounded(copies), target: "at most \(rounded(threshold.copies))",
            isMet: copies <= threshold.copies)
    }
}
