import Ferry
import FramingWorkloads

for chunkSize in [20, 182, 244] {
    let framing = LengthPrefixFraming(prefix: .uint32(.big))
    let stream = try ChunkStream(framing, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize)
    let eom = try EndOfMessageFraming(chunkSize: nil)
    let eomStream = try ChunkStream(eom, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize)
    let varint = LengthPrefixFraming()
    let varintStream = try ChunkStream(varint, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize)
    let workloads: [Workload] = [
        .copy("copy", stream), .nioDecode("nio", stream), .decode("length u32", framing, stream),
        .decode("varint", varint, varintStream),
        .decode("eom", eom, eomStream),
        try .encode("encode varint", varint, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize),
        try .encode("encode eom", eom, messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize),
    ]
    for w in workloads {
        var best = Double.infinity
        var allocs = 0
        for _ in 0..<5 {
            let passes = w.name == "nio" ? 20 : 200
            let o = try w.run(passes)
            precondition(o.bytes == w.bytesPerPass * passes, "\(o.bytes) \(w.bytesPerPass * passes)")
            best = min(best, Double(o.elapsed.components.attoseconds) / 1e9 / Double(passes * w.chunksPerPass))
            allocs = o.allocations / passes
        }
        print(chunkSize, w.name, best, "ns/chunk; allocs per pass of 16 messages", allocs)
    }
}
