/// ACL data of connections that the host does not know yet. Events and data come by different ways on some buses, on USB
/// above all, so that the first data of a connection may overtake its Connection Complete.
struct EarlyData: Sendable {
    /// Bytes to keep, and for how long, in nanoseconds: older ones belong to a connection that has ended.
    static let byteLimit = 4096
    static let lifetime: Int64 = 1_000_000_000

    private var packets: [(handle: UInt16, arrived: Int64, bytes: [UInt8])] = []

    mutating func keep(_ packet: RawSpan, of handle: UInt16, at now: Int64) {
        packets.removeAll { now - $0.arrived >= Self.lifetime }
        let held = packets.reduce(0) { $0 + $1.bytes.count }
        guard held + packet.byteCount <= Self.byteLimit else { return }
        packets.append((handle, now, [UInt8](copying: packet)))
    }

    /// What came for a connection that is there now, in order.
    mutating func take(_ handle: UInt16, at now: Int64) -> [[UInt8]] {
        guard !packets.isEmpty else { return [] }
        let found = packets.filter { $0.handle == handle && now - $0.arrived < Self.lifetime }.map(\.bytes)
        drop(handle)
        return found
    }

    mutating func drop(_ handle: UInt16) { packets.removeAll { $0.handle == handle } }
}
