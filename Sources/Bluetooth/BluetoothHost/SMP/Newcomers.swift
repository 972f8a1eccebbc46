/// Peers whose keys were made without a number and that are not known to come back. One device can be as many of them as there are
/// addresses, so their number is bounded, and they are the first to make room.
struct Newcomers: Sendable {
    /// For how long a peer counts as new, in nanoseconds: an hour.
    static let probation: Int64 = 3_600_000_000_000
    /// Newcomers that have room within that time however few peers are kept.
    static let leastRoom = 4

    /// The pairings whose keys may be kept.
    enum Room: Sendable, Equatable {
        case forAll
        /// Only those of a pairing with a number.
        case forAuthenticated(Reason)
        case none

        enum Reason: Sendable { case full, tooManyStrangers }
    }

    private struct Entry: Sendable {
        let peer: Address
        let since: Int64
        var hasComeBack = false
    }

    /// The oldest first.
    private var entries: [Entry] = []

    /// Returns the pairings whose keys there is room for.
    ///
    /// - Parameters:
    ///   - count: peers that are kept.
    ///   - maximum: peers that are kept at most.
    ///   - isStranger: whether the peer has asked, as a central that comes to this side may at any time.
    ///   - now: the time.
    func room(beside count: Int, of maximum: Int, isStranger: Bool, at now: Int64) -> Room {
        if count >= maximum, replaceable(byAuthenticated: false, at: now) == nil {
            return replaceable(byAuthenticated: true, at: now) == nil ? .none : .forAuthenticated(.full)
        }
        let young = entries.count { now - $0.since < Self.probation }
        return isStranger && young >= max(Self.leastRoom, maximum / 4) ? .forAuthenticated(.tooManyStrangers) : .forAll
    }

    /// Returns the peer whose keys make room first: the oldest that has not come back within an hour or, for a pairing with a
    /// number, that has not come back yet; nil for none.
    func replaceable(byAuthenticated isAuthenticated: Bool, at now: Int64) -> Address? {
        entries.first { !$0.hasComeBack && (isAuthenticated || now - $0.since >= Self.probation) }?.peer
    }

    mutating func add(_ peer: Address, at now: Int64) { entries.append(Entry(peer: peer, since: now)) }

    /// A peer that comes back counts as known, once its first hour is over.
    mutating func didComeBack(_ peer: Address, at now: Int64) {
        if let place = entries.firstIndex(where: { $0.peer == peer }) { entries[place].hasComeBack = true }
        entries.removeAll { $0.hasComeBack && now - $0.since >= Self.probation }
    }

    /// Removes the peers whose keys are not kept any more.
    mutating func keep(_ bonds: [Bond]) { entries.removeAll { entry in !bonds.contains { $0.peer == entry.peer } } }
}
