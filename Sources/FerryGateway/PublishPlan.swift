#if NATS && Records
    import DequeModule
    import Ferry
    import FerryFleet
    import FerryNATS

    /// Which record is published next: a value without I/O, clock or randomness.
    ///
    /// A lane is one peer's stream. Of each lane one message is on its way at a time, so that nothing of the lane
    /// overtakes a message that is refused or lost; lanes go independently. A message names the place of the one before it in its lane, so that
    /// a server that has lost that one refuses it.
    struct PublishPlan<Place: Sendable>: Sendable {
        /// One object, for it is handed on several times on its way.
        final class Item: Sendable {
            let lane: Int64
            let id: String
            let message: NATSMessage
            let place: Place
            /// What an observer is told of it; nil without one.
            let seen: SeenRecord?
            /// The lane's name, for outlets; nil where the message has its subject.
            let outletLane: OutletMessage.Lane?

            init(
                lane: Int64, id: String, message: NATSMessage, place: Place, seen: SeenRecord? = nil,
                outletLane: OutletMessage.Lane? = nil
            ) {
                self.outletLane = outletLane
                self.lane = lane
                self.id = id
                self.message = message
                self.place = place
                self.seen = seen
            }
        }

        typealias Order = NATSPublisher.Order

        enum Outcome: Sendable, Hashable {
            /// The stream has it, at this place.
            case stored(UInt64)
            /// The stream had it already, at this place: its subject may go on after that.
            case had(UInt64)
            /// Not now: the stream is full, the server away, no answer came.
            case later
            /// The last message of its subject is not the one that it should be.
            case outOfPlace
            /// It can never be stored as things are.
            case refused

            /// What an error means.
            init(_ error: FerryError) {
                self =
                    switch error.code {
                    case .natsConflict: .outOfPlace
                    case .messageTooLarge, .invalidConfiguration: .refused
                    default: .later
                    }
            }
        }

        /// Records are added a page at a time, so that there may be one page more of them.
        struct Bounds: Sendable {
            var records = 16_384
            var bytes = 32 << 20
            var inFlight = 1024
            var firstPause = Duration.milliseconds(100)
            var longestPause = Duration.seconds(5)
        }

        private struct Lane: Sendable {
            var waiting: Deque<Item> = []
            var isInFlight = false
            var predecessor: UInt64?
            /// It waits for ``follow(_:after:)``.
            var isDisplaced = false
            /// How often in a row it was.
            var displacements = 0
            /// Not published until reading begins again; later records stay on disk.
            var isParked = false

            mutating func add(_ item: Item) -> Bool {
                if !isParked { waiting.append(item) }
                return !isParked
            }

            var isReady: Bool { !waiting.isEmpty && !isInFlight && !isParked && !isDisplaced }
            var hasBecomeReady: Bool { waiting.count == 1 && isReady }
        }

        private static var ordersAtOnce: Int { 256 }
        private let bounds: Bounds
        private var lanes: [Int64: Lane] = [:]
        /// Lanes in which something waits and nothing is on its way, in their turn.
        private var ready: Deque<Int64> = []
        private var inFlight: [UInt64: Item] = [:]
        private var lastToken: UInt64 = 0
        private(set) var records = 0
        private var bytes = 0
        private var failures = 0
        private var pausedUntil: Timestamp?
        /// Whether the server is known to be the one that was looked at last.
        var isOpen = false
        /// Whether messages name the place of the one before: not where consumers take messages out as they read.
        var namesPlaces = true
        /// Lanes whose last message was not the expected one, and their subjects: each waits for ``follow(_:after:)``.
        private(set) var displaced: [Int64: String] = [:]
        /// How many lanes have a message that the server never takes.
        private(set) var refusedLanes = 0

        init(_ bounds: Bounds = Bounds()) { self.bounds = bounds }

        var hasRoom: Bool { records < bounds.records && bytes < bounds.bytes }
        var inFlightCount: Int { inFlight.count }

        /// The item in flight under a token.
        func item(_ token: UInt64) -> Item? { inFlight[token] }

        /// The next record of its lane.
        mutating func add(_ item: Item) {
            if lanes.count > 65_536 {
                lanes = lanes.filter { !$0.value.waiting.isEmpty || $0.value.isInFlight || $0.value.isParked }
            }
            guard lanes[item.lane, default: Lane()].add(item) else { return }
            records += 1
            bytes += item.message.bytes.count
            if lanes[item.lane]?.hasBecomeReady == true { ready.append(item.lane) }
        }

        /// Adds messages to publish now, in this order: some of them, and none only when there is none.
        mutating func order(_ orders: inout [Order], at now: Timestamp) {
            guard isOpen else { return }
            if let pausedUntil {
                guard now >= pausedUntil else { return }
                self.pausedUntil = nil
            }
            // After a failure one message tries whether it goes again.
            let most = failures > 0 ? 1 : bounds.inFlight
            let count = min(most - inFlight.count, ready.count, Self.ordersAtOnce)
            while orders.count < count, let number = ready.popFirst() {
                guard let index = lanes.index(forKey: number), let item = lanes.values[index].waiting.popFirst() else {
                    continue
                }
                lanes.values[index].isInFlight = true
                lastToken += 1
                inFlight[lastToken] = item
                orders.append(
                    Order(
                        token: lastToken,
                        NATSPublisher.Publication(
                            item.message, id: item.id, predecessor: namesPlaces ? lanes.values[index].predecessor : nil)
                    ))
            }
        }

        /// Notes the outcome of a message.
        ///
        /// - Returns: the record, when the stream has it; nil also for an order of before reading began again.
        mutating func ended(_ token: UInt64, _ outcome: Outcome, at now: Timestamp) -> Item? {
            guard let item = inFlight.removeValue(forKey: token), let index = lanes.index(forKey: item.lane) else {
                return nil
            }
            lanes.values[index].isInFlight = false
            defer { if lanes.values[index].isReady { ready.append(item.lane) } }
            switch outcome {
            case .stored(let sequence):
                lanes.values[index].predecessor = sequence
                return arrived(item, at: index)
            case .had(let sequence):
                // Newer servers look at the place first, so that where the subject ends is not to be forgotten.
                lanes.values[index].predecessor = lanes.values[index].predecessor.map { max($0, sequence) }
                return arrived(item, at: index)
            case .later:
                // Those that were on their way together fail together, and count as one.
                if pausedUntil == nil {
                    pausedUntil = now + min(bounds.firstPause * (1 << min(failures, 20)), bounds.longestPause)
                    failures += 1
                }
                // The server may have it and only have failed to say so: then its subject ends with it.
                lanes.values[index].predecessor = nil
                lanes.values[index].waiting.prepend(item)
            case .outOfPlace:
                lanes.values[index].waiting.prepend(item)
                lanes.values[index].isDisplaced = true
                lanes.values[index].displacements += 1
                displaced[item.lane] = item.message.subject
            case .refused:
                refusedLanes += 1
                lanes.values[index].isParked = true
                for item in [item] + lanes.values[index].waiting { forget(item) }
                lanes.values[index].waiting = []
            }
            return nil
        }

        /// The server was seen to have lost nothing, and its subject ends here: others have written there, or consumers have taken
        /// messages out.
        ///
        /// - Parameter last: the place of the subject's last message; 0 for none.
        mutating func follow(_ number: Int64, after last: UInt64) {
            displaced[number] = nil
            guard var lane = lanes[number], lane.isDisplaced else { return }
            lane.isDisplaced = false
            // Where other writers change it all the time, no predecessor is expected.
            lane.predecessor = lane.displacements > 3 ? nil : last
            lanes[number] = lane
            if !lane.isInFlight && !lane.waiting.isEmpty { ready.append(number) }
        }

        private mutating func arrived(_ item: Item, at index: Dictionary<Int64, Lane>.Index) -> Item {
            failures = 0
            lanes.values[index].displacements = 0
            forget(item)
            return item
        }

        private mutating func forget(_ item: Item) {
            records -= 1
            bytes -= item.message.bytes.count
        }

        /// Reading begins again: records that are not done come once more.
        mutating func beginAgain() {
            lanes = [:]
            ready = []
            inFlight = [:]
            records = 0
            bytes = 0
            displaced = [:]
            refusedLanes = 0
        }

        /// When to ask for orders again, though nothing happens.
        var nextDeadline: Timestamp? { isOpen && !ready.isEmpty ? pausedUntil : nil }
    }
#endif
