#if NATS && Records
    import DequeModule
    import Ferry

    /// Which record is published next: a value without I/O, clock or randomness.
    ///
    /// A lane is one peer's stream; lanes go independently. Of each lane one burst is on its way at a time (``BurstLength``). Its first
    /// message names the place of the one before it in its lane, and each further one names the message before it, which must be the last
    /// that the stream has. A server that has lost or refused a message so refuses those behind it, and nothing overtakes anything.
    struct PublishPlan<Place: Sendable, Message: Sendable>: Sendable {
        /// One object, for it is handed on several times on its way.
        final class Item: Sendable {
            let lane: Int64
            let id: String
            let message: Message
            /// The record's size in bytes.
            let size: Int
            let place: Place
            /// When it was read.
            let read: Timestamp
            /// What an observer is told of it; nil without one.
            let seen: GatewayEvent.Record?

            init(
                lane: Int64, id: String, message: Message, size: Int, place: Place, read: Timestamp,
                seen: GatewayEvent.Record? = nil
            ) {
                self.lane = lane
                self.id = id
                self.message = message
                self.size = size
                self.place = place
                self.read = read
                self.seen = seen
            }
        }

        /// A message to publish, under its token, and what must be true for the server to take it.
        struct Order: Sendable {
            let token: UInt64
            let item: Item
            /// The place of the last message of its lane; nil for any.
            let predecessor: UInt64?
            /// The name of the last message of the stream; nil for any.
            let follows: String?
        }

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

            /// Whether the stream has it.
            var isThere: Bool {
                switch self {
                case .stored, .had: true
                case .later, .outOfPlace, .refused: false
                }
            }
        }

        /// Records are added a page at a time, so that there may be one page more of them.
        struct Bounds: Sendable {
            var records = 16_384
            var bytes = 32 << 20
            var inFlight = 1024
            /// How long a burst may be, and how many messages of all lanes may be on their way beside one of more than a message. 1 for
            /// servers that do not compare what messages name.
            var burst = 64
            var firstPause = Duration.milliseconds(100)
            var longestPause = Duration.seconds(5)
        }

        /// A record that the stream has.
        struct Arrived: Sendable {
            let item: Item
            /// Whether the stream had it before.
            let isDuplicate: Bool
        }

        private struct Flight: Sendable {
            let token: UInt64
            let item: Item
            /// Whether it names the one before it in its burst.
            let isFollower: Bool
            /// Nil until it is answered.
            var outcome: Outcome?
        }

        private struct Lane: Sendable {
            enum Standing: Sendable, Hashable {
                case open
                /// It waits for ``follow(_:after:)``.
                case displaced
                /// Not published until reading begins again, for a record that was read then can never be stored; later ones stay on disk.
                case parked(since: Timestamp)
            }

            var standing = Standing.open
            var waiting: Deque<Item> = []
            /// The burst that is on its way, from the first message on that is not known to be in the stream.
            var flights: Deque<Flight> = []
            var predecessor: UInt64?
            /// How often in a row it was displaced.
            var displacements = 0
            /// How many messages the latest burst had.
            var burst = 0

            mutating func add(_ item: Item) -> Bool {
                if case .parked = standing { return false }
                waiting.append(item)
                return true
            }

            var oldest: Timestamp? {
                if case .parked(let since) = standing { return since }
                return (flights.first?.item ?? waiting.first)?.read
            }
            var isIdle: Bool { oldest == nil }
            var isReady: Bool { standing == .open && !waiting.isEmpty && flights.isEmpty }
            var hasBecomeReady: Bool { waiting.count == 1 && isReady }
        }

        private static var ordersAtOnce: Int { 256 }
        private let bounds: Bounds
        private var lanes: [Int64: Lane] = [:]
        /// Lanes in which something waits and nothing is on its way, in their turn.
        private var ready: Deque<Int64> = []
        private var inFlight: [UInt64: Item] = [:]
        private var lastToken: UInt64 = 0
        private var burst: BurstLength
        private(set) var records = 0
        private var bytes = 0
        private var failures = 0
        private var pausedUntil: Timestamp?
        /// Whether the server is known to be the one that was looked at last.
        var isOpen = false
        /// Whether messages name the place of the one before: not where consumers take messages out as they read.
        var namesPlaces = true
        /// Lanes whose last message was not the expected one, and the next of each: they wait for ``follow(_:after:)``.
        private(set) var displaced: [Int64: Item] = [:]
        /// How many lanes have a message that the server never takes.
        private(set) var refusedLanes = 0

        init(_ bounds: Bounds = Bounds()) {
            self.bounds = bounds
            burst = BurstLength(most: bounds.burst)
        }

        var hasRoom: Bool { records < bounds.records && bytes < bounds.bytes }
        var inFlightCount: Int { inFlight.count }

        /// When the oldest record was read that is not known to be in the stream; nil when all that were read are.
        var oldest: Timestamp? { lanes.values.lazy.compactMap(\.oldest).min() }

        /// The item in flight under a token.
        func item(_ token: UInt64) -> Item? { inFlight[token] }

        /// Whether a message in flight names the one before it in its burst.
        func isFollower(_ token: UInt64) -> Bool {
            guard let item = inFlight[token] else { return false }
            return lanes[item.lane]?.flights.first { $0.token == token }?.isFollower == true
        }

        /// The next record of its lane.
        mutating func add(_ item: Item) {
            if lanes.count > 65_536 { lanes = lanes.filter { !$0.value.isIdle } }
            guard lanes[item.lane, default: Lane()].add(item) else { return }
            records += 1
            bytes += item.size
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
            let most = min(failures > 0 ? 1 : bounds.inFlight, inFlight.count + Self.ordersAtOnce - orders.count)
            while inFlight.count < most, let number = ready.popFirst() {
                guard let index = lanes.index(forKey: number), lanes.values[index].isReady else { continue }
                // Many lanes keep a server busy with single messages.
                let share = (bounds.burst - inFlight.count) / (ready.count + 1)
                let count = max(1, min(burst.now, share, most - inFlight.count))
                let predecessor = namesPlaces ? lanes.values[index].predecessor : nil
                var last: Item?
                for _ in 0..<count {
                    guard let item = lanes.values[index].waiting.popFirst() else { break }
                    lastToken += 1
                    inFlight[lastToken] = item
                    lanes.values[index].flights.append(Flight(token: lastToken, item: item, isFollower: last != nil))
                    orders.append(
                        Order(
                            token: lastToken, item: item, predecessor: last == nil ? predecessor : nil,
                            follows: last?.id))
                    last = item
                }
                lanes.values[index].burst = lanes.values[index].flights.count
            }
        }

        /// Notes the outcome of a message.
        ///
        /// - Parameter arrived: receives the records that the stream now has, with all records before them in their lanes; none for
        ///   an order of before reading began again.
        mutating func ended(_ token: UInt64, _ outcome: Outcome, at now: Timestamp, _ arrived: inout [Arrived]) {
            guard let item = inFlight.removeValue(forKey: token), let index = lanes.index(forKey: item.lane),
                let flight = lanes.values[index].flights.firstIndex(where: { $0.token == token })
            else { return }
            lanes.values[index].flights[flight].outcome = outcome
            defer { if lanes.values[index].isReady { ready.append(item.lane) } }
            while let first = lanes.values[index].flights.first, let outcome = first.outcome, outcome.isThere {
                lanes.values[index].flights.removeFirst()
                arrive(first.item, outcome, index, &arrived)
                if lanes.values[index].flights.isEmpty { burst.held(lanes.values[index].burst) }
            }
            // Messages behind one that failed go again behind it, at any outcome.
            let flights = lanes.values[index].flights
            guard let failure = flights.first?.outcome, flights.allSatisfy({ $0.outcome != nil }) else { return }
            lanes.values[index].flights = []
            fail(flights, failure, index, at: now)
        }

        private mutating func arrive(
            _ item: Item, _ outcome: Outcome, _ index: Dictionary<Int64, Lane>.Index, _ arrived: inout [Arrived]
        ) {
            var isDuplicate = false
            switch outcome {
            case .stored(let place): lanes.values[index].predecessor = place
            case .had(let place):
                // Newer servers look at the place first, so that where the subject ends is not to be forgotten.
                lanes.values[index].predecessor = lanes.values[index].predecessor.map { max($0, place) }
                isDuplicate = true
            case .later, .outOfPlace, .refused: return
            }
            failures = 0
            lanes.values[index].displacements = 0
            forget(item)
            arrived.append(Arrived(item: item, isDuplicate: isDuplicate))
        }

        /// None of these is known to be in the stream, for the first is not.
        private mutating func fail(
            _ flights: Deque<Flight>, _ outcome: Outcome, _ index: Dictionary<Int64, Lane>.Index, at now: Timestamp
        ) {
            lanes.values[index].waiting.prepend(contentsOf: flights.map(\.item))
            switch outcome {
            case .stored, .had: break
            case .later:
                // Those that were on their way together fail together, and count as one.
                if pausedUntil == nil {
                    pausedUntil = now + min(bounds.firstPause * (1 << min(failures, 20)), bounds.longestPause)
                    failures += 1
                }
                // The server may have it and only have failed to say so: then its subject ends with it.
                lanes.values[index].predecessor = nil
            case .outOfPlace:
                guard let first = flights.first, !first.isFollower else { return burst.broke() }
                lanes.values[index].standing = .displaced
                lanes.values[index].displacements += 1
                displaced[first.item.lane] = first.item
            case .refused:
                refusedLanes += 1
                lanes.values[index].standing = .parked(since: flights.first?.item.read ?? now)
                for item in lanes.values[index].waiting { forget(item) }
                lanes.values[index].waiting = []
            }
        }

        /// The server was seen to have lost nothing, and its subject ends here: others have written there, or consumers have taken
        /// messages out.
        ///
        /// - Parameter last: the place of the subject's last message; 0 for none.
        mutating func follow(_ number: Int64, after last: UInt64) {
            displaced[number] = nil
            guard let index = lanes.index(forKey: number), lanes.values[index].standing == .displaced else { return }
            lanes.values[index].standing = .open
            // Where other writers change it all the time, no predecessor is expected.
            lanes.values[index].predecessor = lanes.values[index].displacements > 3 ? nil : last
            if lanes.values[index].isReady { ready.append(number) }
        }

        private mutating func forget(_ item: Item) {
            records -= 1
            bytes -= item.size
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
