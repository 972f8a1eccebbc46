/// The retransmission timeout from measured round trips: RFC 6298, sections 2 and 5, on times passed in. All in
/// nanoseconds.
///
/// Three things differ from the RFC, which has the internet in mind: the floor is 250 ms rather than 1 s (a connection
/// interval is 7.5 ms to 4 s), the ceiling 10 s rather than at least 60 s, for a person is waiting, and any progress ends
/// the backing off, as the link below has its own congestion control.
struct RoundTripEstimator: Hashable {
    private var trips: Trips?
    private var backoff: Int64 = 0

    /// Known once a round trip has been measured.
    private struct Trips: Hashable {
        var smoothed: Int64
        var variation: Int64
        var shortest: Int64
    }

    /// The shortest round trip seen.
    var shortest: Int64? { trips?.shortest }

    static let initial: Int64 = 1_000_000_000
    static let floor: Int64 = 250_000_000
    static let ceiling: Int64 = 10_000_000_000

    /// How long to wait for an acknowledgement.
    var timeout: Int64 {
        let base = trips.map { max($0.smoothed + 4 * $0.variation, Self.floor) } ?? Self.initial
        return min(min(base, Self.ceiling) << backoff, Self.ceiling)
    }

    /// Takes the round trip of a chunk that was sent once (Karn's algorithm: a repeated one's says nothing).
    mutating func measured(_ sample: Int64) {
        let sample = min(max(sample, 0), 16 * Self.ceiling)
        guard let old = trips else {
            trips = Trips(smoothed: sample, variation: sample / 2, shortest: sample)
            return
        }
        trips = Trips(
            smoothed: (7 * old.smoothed + sample) / 8,
            variation: (3 * old.variation + abs(old.smoothed - sample)) / 4, shortest: min(old.shortest, sample))
    }

    /// The timer has come: wait twice as long next time.
    mutating func expired() { backoff = min(backoff + 1, 6) }

    /// The peer answered.
    mutating func progressed() { backoff = 0 }
}
