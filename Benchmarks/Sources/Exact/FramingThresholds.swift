import Ferry
import FerrySequenced
import Workloads

/// What is the same on every machine: bytes and values on the wire, allocations. CI gates on these.
struct WireCost {
    var messageSize: Int
    var chunkSize: Int
    /// Bytes handed to the link / number of chunks.
    var endOfMessage: (bytes: Int, chunks: Int)
    var lengthPrefix: (bytes: Int, chunks: Int)

    static let thresholds = [
        WireCost(messageSize: 60, chunkSize: 20, endOfMessage: (63, 4), lengthPrefix: (61, 4)),
        WireCost(messageSize: 1024, chunkSize: 20, endOfMessage: (1027, 53), lengthPrefix: (1026, 52)),
        WireCost(messageSize: 60, chunkSize: 182, endOfMessage: (63, 2), lengthPrefix: (61, 1)),
        WireCost(messageSize: 400, chunkSize: 182, endOfMessage: (403, 4), lengthPrefix: (402, 3)),
        WireCost(messageSize: 1024, chunkSize: 244, endOfMessage: (1027, 6), lengthPrefix: (1026, 5)),
        WireCost(messageSize: 10_240, chunkSize: 244, endOfMessage: (10_243, 43), lengthPrefix: (10_242, 42)),
    ]
}

func checkWireCosts(_ report: inout Report) throws {
    report.heading("Bytes and chunks on the wire")
    for cost in WireCost.thresholds {
        func check(_ framing: some Framing, _ expected: (bytes: Int, chunks: Int)) throws {
            let stream = try ChunkStream(
                framing, messageSize: cost.messageSize, messageCount: 1, chunkSize: cost.chunkSize)
            report.line(
                "\(framing.name), \(cost.messageSize) B at \(cost.chunkSize)",
                "\(stream.bytes.count) B in \(stream.chunkCount)", target: "\(expected.bytes) B in \(expected.chunks)",
                isMet: stream.bytes.count == expected.bytes && stream.chunkCount == expected.chunks)
        }
        try check(EndOfMessageFraming.unlimited, cost.endOfMessage)
        try check(LengthPrefixFraming(), cost.lengthPrefix)
    }
}

/// Decoding takes the one allocation of each message that is delivered; encoding takes none. Either copies each byte once.
func checkFramings(_ report: inout Report) throws {
    guard allocationsAreCounted, copiesAreCounted else {
        return report.line("allocations and copies", "not counted on this platform")
    }
    report.heading("Allocations and bytes copied per byte of payload, 16 messages of 16 KiB ten times")
    for chunkSize in [20, 182, 244] {
        let decoders = try decoders(chunkSize) + deviceDecoders(chunkSize)
        for (workload, perMessage) in try encoders(chunkSize).map({ ($0, 0) }) + decoders.map({ ($0, 1) }) {
            let outcome = try workload.run(10)
            let expected = 10 * workload.messagesPerPass * perMessage
            let copies = Double(outcome.copiedBytes) / Double(outcome.bytes)
            report.line(
                "\(workload.name) at \(chunkSize)",
                "\(outcome.allocations) in \(10 * workload.chunksPerPass) chunks, \(rounded(copies)) copies",
                target: "\(expected), at most 1.1 copies", isMet: outcome.allocations == expected && copies <= 1.1)
        }
    }
}

/// The sequenced framing, both ends: what 16 messages of 16 KiB put on the wire both ways, acknowledgements included, and
/// what handling them takes.
func checkSequenced(_ report: inout Report) throws {
    report.heading("The sequenced framing: 16 messages of 16 KiB, both ends and both ways")
    for (chunkSize, bytes, chunks, perMessage) in [
        (20, 286_780, 15_741, 1.0), (182, 264_854, 1634, 1.1), (244, 264_204, 1217, 1.2),
    ] {
        let (workload, wire) = try Workload.exchange(
            "sequenced", SequencedFraming(), messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize)
        report.line(
            "on the wire at \(chunkSize)", "\(wire.bytes) B in \(wire.chunks) chunks",
            target: "at most \(bytes) B in \(chunks)", isMet: wire.bytes <= bytes && wire.chunks <= chunks)
        guard allocationsAreCounted else { continue }
        let outcome = try workload.run(10)
        let allocations = Double(outcome.allocations) / Double(10 * workload.messagesPerPass)
        report.line(
            "allocations per message at \(chunkSize)", rounded(allocations), target: "at most \(rounded(perMessage))",
            isMet: allocations <= perMessage)
    }
}

func checkPeakMemory(_ report: inout Report) throws {
    let size = 64 << 20
    report.heading("Peak memory while a message of 64 MiB crosses, both ends in this process")
    func check(_ framing: some Framing) throws {
        guard let growth = try PeakMemory.ofMessage(framing, messageSize: size, chunkSize: 244).growth else {
            return report.line(framing.name, "not told by this platform")
        }
        report.line(
            framing.name, "\(growth >> 20) MiB", target: "at most 144 MiB", isMet: growth <= 2 * size + 16 << 20)
    }
    try check(EndOfMessageFraming.unlimited)
    try check(LengthPrefixFraming())
}
