/// Which of the links that come to a listener have a place: a value without I/O, clock or randomness.
///
///     came -> greeting -> placed (checking -> guest -> proven) -> gone
///                  \-> leaving ------------------------------/
///
/// A link waits, beside the places, until its peer has greeted; it has ``Configuration/greeting`` for that. A peer that has greeted takes a
/// place. Once its server has looked up who it is, it is a guest until it has brought something or proven who it is. When links or places run out, the oldest of the
/// source that has the most gives way: first links whose peers have not greeted, then guests. A proven peer keeps its place. Of a user's
/// processes each is a source then, so that one of them that connects without end keeps no other out.
package struct AcceptingPlan: Sendable {
    /// The bounds of a listener.
    package struct Configuration: Sendable, Hashable {
        /// The most peers that have a place at once.
        package var places: Int
        /// The most links that wait for a greeting or are being ended. Default 64.
        package var greetings = 64
        /// The time from a link's coming to its peer's greeting. Default 10 s.
        package var greeting = Duration.seconds(10)
        /// The time that a peer has to hear why it is refused. Default 5 s.
        package var farewell = Duration.seconds(5)
        /// The most places of one address, user or peer; at least 1. Default: three quarters of ``places``.
        package var placesPerSource: Int
        /// The most places of one key: a peer that comes again while its old link is dying. The newest stays. Default 2.
        package var placesPerKey = 2

        /// The defaults.
        package init(places: Int) {
            self.places = max(1, places)
            placesPerSource = max(1, self.places - self.places / 4)
        }
    }

    /// One link that has come.
    package struct Comer: Sendable, Hashable {
        /// Counted from 1.
        package let number: Int
    }

    /// Why a peer that has greeted gets no place.
    package enum Refusal: Sendable, Hashable {
        /// Proven peers have all places.
        case full(places: Int)
        /// Its source has as many as a source may.
        case sourceIsFull(places: Int)
        /// Its link has given way, or was too late.
        case late

        /// What the peer is told.
        package var message: String {
            switch self {
            case .full(let places):
                places == 1
                    ? "The only place is taken. Try again later." : "All \(places) places are taken. Try again later."
            case .sourceIsFull(let places):
                "Peers from the same address, user or key have \(places) places, as many as they may. Try again later."
            case .late: "Other peers needed the place. Try again later."
            }
        }
    }

    /// What becomes of a peer that has greeted.
    package enum Admission: Sendable, Hashable {
        /// It has a place, which a guest had before where `instead` names one: that link is to be ended.
        case admitted(instead: Comer?)
        /// It has none. It is to be told, and its link ended, within ``Configuration/farewell``.
        case refused(Refusal)
    }

    private enum Stage {
        case greeting(until: Timestamp)
        /// Its server looks up who it is, which takes milliseconds: a known peer does not give way to a stranger meanwhile.
        case checking
        case guest
        case proven
        case leaving(until: Timestamp)

        var deadline: Timestamp? {
            switch self {
            case .greeting(let until), .leaving(let until): until
            case .checking, .guest, .proven: nil
            }
        }

        var hasPlace: Bool { deadline == nil }
        var isGuest: Bool { if case .guest = self { true } else { false } }
    }

    private struct Entry {
        var source: LinkSource
        var stage: Stage
    }

    package let configuration: Configuration
    private var entries: [Comer: Entry] = [:]
    private var last = 0

    package init(_ configuration: Configuration) { self.configuration = configuration }

    /// How many links there are, in all stages.
    package var count: Int { entries.count }
    /// How many peers have places.
    package var placed: Int { entries.values.count { $0.stage.hasPlace } }

    /// A link has come.
    ///
    /// - Returns: the link's number, and the link that is to be closed for it at once, if there were too many.
    package mutating func came(from source: LinkSource, at now: Timestamp) -> (comer: Comer, closed: Comer?) {
        var closed: Comer?
        let waiting = entries.filter { !$0.value.stage.hasPlace }
        if waiting.count >= configuration.greetings {
            closed = Self.oldestOfLargest(waiting)
            if let closed { entries[closed] = nil }
        }
        last += 1
        let comer = Comer(number: last)
        entries[comer] = Entry(source: source, stage: .greeting(until: now + configuration.greeting))
        return (comer, closed)
    }

    /// A peer has greeted.
    ///
    /// - Parameters:
    ///   - source: what it counts as now: a key, where it has proven one.
    ///   - isChecked: whether its server knows already who it is; otherwise ``checked(_:)`` follows.
    ///   - places: how many places there are at present; nil for the configuration's.
    package mutating func greeted(
        _ comer: Comer, from source: LinkSource, isChecked: Bool = true, places: Int? = nil, at now: Timestamp
    ) -> Admission {
        guard case .greeting? = entries[comer]?.stage else {
            if entries[comer]?.stage.hasPlace == true { return .admitted(instead: nil) }
            return .refused(.late)
        }
        let room = min(places ?? configuration.places, configuration.places)
        let placed = entries.filter { $0.value.stage.hasPlace }
        let ofSource = placed.filter { $0.value.source.account == source.account }
        var instead: Comer?
        if case .key = source, ofSource.count >= configuration.placesPerKey {
            instead = ofSource.keys.min { $0.number < $1.number }
        } else if ofSource.count >= configuration.placesPerSource {
            instead = Self.oldestOfLargest(ofSource.filter(\.value.stage.isGuest))
            guard instead != nil else {
                let isFull = placed.count >= room
                return refuse(comer, isFull ? .full(places: room) : .sourceIsFull(places: ofSource.count), at: now)
            }
        } else if placed.count >= room {
            instead = Self.oldestOfLargest(placed.filter(\.value.stage.isGuest))
            guard instead != nil else { return refuse(comer, .full(places: room), at: now) }
        }
        if let instead { entries[instead]?.stage = .leaving(until: now + configuration.farewell) }
        entries[comer] = Entry(source: source, stage: isChecked ? .guest : .checking)
        return .admitted(instead: instead)
    }

    /// A peer's server has looked up who it is.
    package mutating func checked(_ comer: Comer) {
        if case .checking? = entries[comer]?.stage { entries[comer]?.stage = .guest }
    }

    private mutating func refuse(_ comer: Comer, _ refusal: Refusal, at now: Timestamp) -> Admission {
        entries[comer]?.stage = .leaving(until: now + configuration.farewell)
        return .refused(refusal)
    }

    /// A peer has brought something, or is known: it keeps its place.
    package mutating func proved(_ comer: Comer) {
        switch entries[comer]?.stage {
        case .checking, .guest: entries[comer]?.stage = .proven
        case .greeting, .proven, .leaving, nil: break
        }
    }

    /// A link has ended.
    package mutating func left(_ comer: Comer) { entries[comer] = nil }

    /// The links whose time is over: they are to be closed at once, and are forgotten.
    package mutating func overdue(at now: Timestamp) -> [Comer] {
        let overdue = entries.filter { $0.value.stage.deadline.map { $0 <= now } ?? false }.keys
        for comer in overdue { entries[comer] = nil }
        return overdue.sorted { $0.number < $1.number }
    }

    /// When to look for overdue links again; nil for when something happens.
    package var nextDeadline: Timestamp? { entries.values.compactMap(\.stage.deadline).min() }

    /// The oldest link of the source that has the most of these.
    private static func oldestOfLargest(_ entries: [Comer: Entry]) -> Comer? {
        LinkSource.oldestOfLargest(entries.lazy.map { ($0.key.number, $0.value.source) }).map {
            Comer(number: $0.number)
        }
    }
}
