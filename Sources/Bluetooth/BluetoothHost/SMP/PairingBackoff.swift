/// How long peers whose pairings failed have to wait for the next (Core Specification 5.4, Vol 3, Part H, 2.3.6). It
/// outlives connections: otherwise a guessing peer would only have to reconnect.
struct PairingBackoff: Sendable {
    /// Pairings that may fail before the peer has to wait: people make mistakes.
    static let freeFailures = 3
    /// The first wait, in nanoseconds; each further failure doubles it.
    static let firstWait: Int64 = 4_000_000_000
    /// The longest wait, in nanoseconds. A peer without a failure for that long begins anew.
    static let longestWait: Int64 = 3_600_000_000_000
    /// Peers that are kept account of; the one that failed longest ago is forgotten first.
    static let peerLimit = 64

    private struct Entry: Sendable {
        let address: Address
        var failures: Int
        var last: Int64
    }

    private var entries: [Entry] = []

    private static func wait(after failures: Int) -> Int64 {
        guard failures >= freeFailures else { return 0 }
        return min(firstWait << Int64(min(failures - freeFailures, 20)), longestWait)
    }

    /// Whether the peer may not pair yet.
    func isWaiting(_ address: Address, at now: Int64) -> Bool {
        guard let entry = entries.first(where: { $0.address == address }) else { return false }
        return now - entry.last < Self.wait(after: entry.failures)
    }

    mutating func didFail(_ address: Address, at now: Int64) {
        entries.removeAll { now - $0.last >= Self.longestWait }
        let place = entries.firstIndex { $0.address == address }
        let failures = (place.map { entries.remove(at: $0).failures } ?? 0) + 1
        entries.append(Entry(address: address, failures: min(failures, 64), last: now))
        if entries.count > Self.peerLimit { entries.removeFirst() }
    }

    mutating func didSucceed(_ address: Address) { entries.removeAll { $0.address == address } }
}
