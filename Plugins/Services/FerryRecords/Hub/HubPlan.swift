#if Records
    import Ferry
    import HeapModule

    /// Whom a hub connects to next, and whose turn is over: a value without I/O, clock or randomness.
    ///
    /// Its shell tells it of pending records, of peers that come, and of the beginning and end of visits. After every call, and at
    /// ``nextDeadline``, it carries out ``steps(at:)``. A slot is taken from the step that says so, or the comer that is let in,
    /// until ``ended(_:at:chance:)``, also when the link ends in between.
    struct HubPlan: Sendable {
        /// One link that is there, or being set up: what takes a slot.
        struct Visit: Sendable, Hashable { let number: Int }

        enum Step: Sendable, Hashable {
            /// Set up a link to this peer, and exchange.
            case connect(Visit, peer: Int64)
            /// Give up the link, or the attempt.
            case end(Visit)
        }

        private struct Peer: Sendable {
            var isReachable = false
            var count = 0
            var priority: UInt8 = 0
            /// Since when something has waited for a turn.
            var since = Timestamp.zero
            /// Not to be tried before.
            var notBefore: Timestamp?
            var failures = 0
            /// The visit that this side pays.
            var visit: Visit?
            /// Running exchanges, whichever side connected.
            var meetings = 0
            /// How often its turn was over before anything had got through: a record may take longer than a turn.
            var cutShort = 0
            /// Records have crossed since the last visit of this side began.
            var hasProgressed = false
            /// Tells its place in a queue from older ones.
            var ticket: UInt64 = 0
        }

        private struct Slot: Sendable {
            /// Nil for a peer that has come, and is not known by its link.
            let peer: Int64?
            let isOwn: Bool
            var state: State

            enum State: Equatable {
                /// This side's attempt is under way.
                case connecting
                /// An exchange with the peer has begun on another link, and this attempt is to end.
                case needless
                /// That has been asked for.
                case calledOff
                case linked(since: Timestamp)
                /// Its turn is over: its end has been asked for.
                case ending
            }

            var isConnecting: Bool {
                switch state {
                case .connecting, .needless, .calledOff: true
                case .linked, .ending: false
                }
            }

            var isEnding: Bool {
                switch state {
                case .calledOff, .ending: true
                case .connecting, .needless, .linked: false
                }
            }
        }

        private struct Place: Sendable, Comparable {
            let key: Timestamp
            let ticket: UInt64
            let peer: Int64
            static func < (a: Place, b: Place) -> Bool { (a.key, a.ticket) < (b.key, b.ticket) }
        }

        let configuration: RecordHub.Configuration
        private var peers: [Int64: Peer] = [:]
        private var slots: [Visit: Slot] = [:]
        /// The number of the visit that began last.
        private(set) var lastVisit = 0
        private var nextTicket: UInt64 = 0
        /// Those whose turn could be, by how long they have waited; a level of priority is worth so much waiting.
        private var ready = Heap<Place>()
        /// Those to be tried again, by when.
        private var later = Heap<Place>()
        /// When a peer last came without a slot for it.
        private var turnedAway: Timestamp?

        init(_ configuration: RecordHub.Configuration) { self.configuration = configuration }

        /// How many slots are taken.
        var taken: Int { slots.count }

        /// How many places its queues keep, with those that no longer hold.
        var places: Int { ready.count + later.count }

        /// How many slots peers that come may have at present.
        var placesForComers: Int { configuration.slots - own }

        // MARK: What the shell tells

        /// Sets the pending records of a peer, and whether this side can connect to it.
        mutating func waiting(
            _ count: Int, priority: UInt8, for id: Int64, isReachable: Bool, at now: Timestamp
        ) {
            var peer = peers[id] ?? Peer()
            let isNew = count > 0 && peer.count == 0
            if count < peer.count { peer.hasProgressed = true }
            let isOther = isNew || priority != peer.priority || isReachable != peer.isReachable
            peer.count = count
            peer.priority = priority
            peer.isReachable = isReachable
            if isNew { peer.since = now }
            peers[id] = peer
            if isOther { queue(id, at: now) }
        }

        /// An exchange with a peer has begun, whichever side connected.
        mutating func met(_ id: Int64) {
            var peer = peers[id] ?? Peer()
            peer.meetings += 1
            if let visit = peer.visit, slots[visit]?.state == .connecting { slots[visit]?.state = .needless }
            peers[id] = peer
        }

        /// An exchange has ended, which carried `records` records.
        mutating func parted(_ id: Int64, records: Int, at now: Timestamp) {
            guard var peer = peers[id], peer.meetings > 0 else { return }
            peer.meetings -= 1
            peer.since = now
            if records > 0 {
                peer.hasProgressed = true
                peer.failures = 0
                peer.notBefore = nil
            }
            peers[id] = peer
            queue(id, at: now)
        }

        /// A peer that has come has greeted; which one, where its link tells.
        ///
        /// - Returns: the visit; nil when there is no slot, so that the peer is to be turned away.
        mutating func came(_ peer: Int64?, at now: Timestamp) -> Visit? {
            guard slots.count < configuration.slots else {
                turnAway(at: now)
                return nil
            }
            if let peer { peers[peer]?.hasProgressed = false }
            return take(Slot(peer: peer, isOwn: false, state: .linked(since: now)))
        }

        /// There was no slot for a peer that came: a turn may be over because of that.
        mutating func turnAway(at now: Timestamp) { turnedAway = now }

        /// Another peer has the slot of one that came, whose link is being ended.
        mutating func gaveWay(_ visit: Visit) { slots[visit] = nil }

        /// The link to a peer is there.
        mutating func connected(_ visit: Visit, at now: Timestamp) {
            guard slots[visit]?.state == .connecting else { return }
            slots[visit]?.state = .linked(since: now)
        }

        /// The link is gone, or the attempt failed. The peer's pending records were set before.
        ///
        /// - Parameter chance: 0 to 1, drawn anew: how much of the second half of the backoff is waited, so that hubs do not
        ///   retry in step.
        mutating func ended(_ visit: Visit, at now: Timestamp, chance: Double) {
            guard let slot = slots.removeValue(forKey: visit), let id = slot.peer, var peer = peers[id] else { return }
            let wasNeedless = slot.state == .needless || slot.state == .calledOff || peer.meetings > 0
            if peer.count == 0 {
                peer.cutShort = 0
            } else if slot.state == .ending && !peer.hasProgressed {
                peer.cutShort += 1
            }
            if slot.isOwn {
                peer.visit = nil
                peer.since = now
            }
            if slot.isOwn && peer.count > 0 && !peer.hasProgressed && !wasNeedless {
                let backoff = configuration.firstBackoff * (1 << min(peer.failures, 20))
                peer.failures += 1
                let wait = min(backoff, configuration.longestBackoff) * (0.5 + 0.5 * max(0, min(1, chance)))
                peer.notBefore = now + wait
                peer.since = now + wait
            }
            peers[id] = peer
            queue(id, at: now)
        }

        // MARK: Steps

        /// The steps to carry out now.
        mutating func steps(at now: Timestamp) -> [Step] {
            var steps: [Step] = []
            let needless = slots.compactMap { visit, slot in slot.state == .needless ? visit : nil }
            for visit in needless.sorted(by: { $0.number < $1.number }) {
                slots[visit]?.state = .calledOff
                steps.append(.end(visit))
            }
            while let place = top(\.later), place.key <= now {
                _ = later.popMin()
                peers[place.peer]?.notBefore = nil
                queue(place.peer, at: now)
            }
            while canConnect, let place = top(\.ready) {
                _ = ready.popMin()
                let visit = take(Slot(peer: place.peer, isOwn: true, state: .connecting))
                peers[place.peer]?.visit = visit
                peers[place.peer]?.hasProgressed = false
                steps.append(.connect(visit, peer: place.peer))
            }
            if wantsSlot(at: now), let (visit, end) = nextTurnOver, end <= now {
                slots[visit]?.state = .ending
                steps.append(.end(visit))
            }
            return steps
        }

        /// When to look again; nil for when something happens. After ``steps(at:)``.
        mutating func nextDeadline(at now: Timestamp) -> Timestamp? {
            let turnOver = wantsSlot(at: now) ? nextTurnOver?.end : nil
            return [top(\.later)?.key, turnOver].compactMap(\.self).min()
        }

        private var connecting: Int { slots.values.count(where: \.isConnecting) }
        private var own: Int { slots.values.count(where: \.isOwn) }

        private var canConnect: Bool {
            slots.count < configuration.slots && own < configuration.slots - configuration.slotsForComers
                && connecting < configuration.attempts
        }

        /// Whether a peer lacks nothing but a slot, and none is about to be free.
        private mutating func wantsSlot(at now: Timestamp) -> Bool {
            guard !slots.values.contains(where: \.isEnding) else { return false }
            if slots.count >= configuration.slots, let turnedAway, now - turnedAway < configuration.turn { return true }
            let isFull =
                slots.count >= configuration.slots || own >= configuration.slots - configuration.slotsForComers
            return isFull && connecting < configuration.attempts && top(\.ready) != nil
        }

        /// Of the visits whose end would help, the one whose turn is over first.
        private var nextTurnOver: (visit: Visit, end: Timestamp)? {
            let isFull = slots.count >= configuration.slots
            var next: (visit: Visit, end: Timestamp)?
            for (visit, slot) in slots where isFull || slot.isOwn {
                guard case .linked(let since) = slot.state else { continue }
                let cutShort = slot.peer.flatMap { peers[$0]?.cutShort } ?? 0
                let longer = min(configuration.turn * (1 << min(cutShort, 20)), configuration.longestBackoff / 4)
                let end = since + max(configuration.turn, longer)
                if next.map({ (end, visit.number) < ($0.end, $0.visit.number) }) ?? true { next = (visit, end) }
            }
            return next
        }

        // MARK: Queues

        private mutating func take(_ slot: Slot) -> Visit {
            lastVisit += 1
            let visit = Visit(number: lastVisit)
            slots[visit] = slot
            return visit
        }

        /// Gives a peer its place anew.
        private mutating func queue(_ id: Int64, at now: Timestamp) {
            guard var peer = peers[id] else { return }
            nextTicket += 1
            peer.ticket = nextTicket
            peers[id] = peer
            guard peer.count > 0, peer.isReachable, peer.visit == nil, peer.meetings == 0 else { return }
            if let notBefore = peer.notBefore, notBefore > now {
                later.insert(Place(key: notBefore, ticket: nextTicket, peer: id))
            } else {
                let head = configuration.waitingWorthPriority * -Int(peer.priority)
                ready.insert(Place(key: peer.since + head, ticket: nextTicket, peer: id))
            }
            sweep(\.ready)
            sweep(\.later)
        }

        /// The first place that still holds.
        private mutating func top(_ heap: WritableKeyPath<HubPlan, Heap<Place>>) -> Place? {
            while let place = self[keyPath: heap].min, !holds(place) { _ = self[keyPath: heap].popMin() }
            return self[keyPath: heap].min
        }

        private func holds(_ place: Place) -> Bool {
            guard let peer = peers[place.peer] else { return false }
            return peer.ticket == place.ticket && peer.visit == nil && peer.meetings == 0
        }

        /// Places that no longer hold are not kept beyond measure.
        private mutating func sweep(_ heap: WritableKeyPath<HubPlan, Heap<Place>>) {
            guard self[keyPath: heap].count > 2 * peers.count + 32 else { return }
            let places = self[keyPath: heap].unordered.filter(holds)
            self[keyPath: heap] = Heap(places)
        }

        // MARK: States

        /// What a peer is at; nil for one that was never told of.
        func phase(of id: Int64, at now: Timestamp) -> RecordHub.Phase? {
            guard let peer = peers[id] else { return nil }
            if peer.meetings > 0 { return .exchanging }
            if let visit = peer.visit { return slots[visit]?.isConnecting == true ? .connecting : .exchanging }
            guard peer.count > 0 else { return .idle }
            guard peer.isReachable else { return .expected }
            if let notBefore = peer.notBefore, notBefore > now {
                return .backingOff(failures: peer.failures, for: notBefore - now)
            }
            return .ready(for: max(.zero, now - peer.since))
        }
    }
#endif
