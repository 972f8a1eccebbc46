#if HTTP
    import DequeModule
    import Ferry
    import FerryFleet

    /// Which events go with which request, and what becomes of them: no I/O and no clock.
    ///
    /// A request begins as soon as fewer than `maximumRequests` are on their way; messages that come meanwhile go together with the next one. After
    /// an answer that is about the server and not about its events nothing is sent for a while, and nothing waits: all is answered with
    /// that trouble.
    struct HTTPBatches {
        struct Event: Equatable {
            let token: UInt64
            let bytes: [UInt8]
            let deadline: Timestamp
        }

        struct Request: Equatable {
            let number: UInt64
            let events: [Event]
            /// The first of its events'.
            let deadline: Timestamp
        }

        /// The outcome of a request.
        enum Reply {
            /// The server answered with this status, and perhaps when to come again.
            case status(Int, text: String, retryAfter: Duration?)
            /// There was no connection, so that nothing was sent.
            case gone(FerryError)
            /// It may have arrived.
            case unanswered(FerryError)
        }

        typealias Answers = [(token: UInt64, answer: OutletAnswer)]

        private enum Phase {
            case open
            /// Nothing is sent before the moment.
            case pausing(until: Timestamp, OutletAnswer)
            case closed
        }

        /// Pauses double from the first to the longest; one that the server asks for is at most `longestRetryAfter`.
        static let firstPause = Duration.milliseconds(250)
        static let longestPause = Duration.seconds(15)
        static let longestRetryAfter = Duration.seconds(300)

        private let configuration: HTTPConfiguration
        private var phase = Phase.open
        private var pause = Self.firstPause
        private var nextNumber: UInt64 = 0
        private var waiting: Deque<Event> = []
        /// Parts of a refused request, which are sent before the waiting messages.
        private var parts: Deque<[Event]> = []
        private var sent: [UInt64: [Event]] = [:]
        private(set) var count = 0

        init(_ configuration: HTTPConfiguration) { self.configuration = configuration }

        /// Where requests go, for messages.
        private var address: String { configuration.publicAddress }

        /// - Returns: an answer when the event is not taken up.
        mutating func add(_ token: UInt64, _ bytes: [UInt8], at now: Timestamp) -> OutletAnswer? {
            switch phase {
            case .closed: return .gone(FerryError(.closed, "The outlet was closed."))
            case .pausing(let end, let trouble):
                guard now >= end else { return trouble }
                phase = .open
            case .open: break
            }
            guard count < configuration.maximumInFlight else {
                return .full(
                    FerryError(
                        .queueFull,
                        "\(count) records are on their way to \(address), and no more may be. It is tried again."))
            }
            count += 1
            waiting.append(Event(token: token, bytes: bytes, deadline: now + configuration.timeout))
            return nil
        }

        /// The next request to send now.
        mutating func next() -> Request? {
            guard case .open = phase, sent.count < configuration.maximumRequests else { return nil }
            let events = parts.popFirst() ?? gather()
            guard let deadline = events.lazy.map(\.deadline).min() else { return nil }
            nextNumber += 1
            sent[nextNumber] = events
            return Request(number: nextNumber, events: events, deadline: deadline)
        }

        private mutating func gather() -> [Event] {
            var events: [Event] = []
            var bytes = 0
            while let event = waiting.first, events.count < configuration.maximumBatch,
                events.isEmpty || bytes + event.bytes.count <= configuration.maximumBatchBytes
            {
                waiting.removeFirst()
                bytes += event.bytes.count
                events.append(event)
            }
            return events
        }

        /// - Returns: answers to the request's events, and to others that do not wait any longer.
        mutating func ended(_ number: UInt64, _ reply: Reply, at now: Timestamp) -> Answers {
            guard let events = sent.removeValue(forKey: number) else { return [] }
            let answer: OutletAnswer
            switch reply {
            case .gone(let error): answer = .gone(error)
            case .unanswered(let error): answer = .unanswered(error)
            case .status(let status, let text, let retryAfter):
                switch HTTPVerdict(status) {
                case .taken:
                    pause = Self.firstPause
                    return leave(events, .taken(isDuplicate: false))
                case .refused where events.count > 1:
                    // Which of them it is shows when they come in parts.
                    pause = Self.firstPause
                    parts.append(Array(events[..<(events.count / 2)]))
                    parts.append(Array(events[(events.count / 2)...]))
                    return late(at: now)
                case .refused:
                    pause = Self.firstPause
                    return leave(
                        events, .refused(failure(status, text, "Look at what the server says and the record is.")))
                case .full: answer = .full(failure(status, text, "It is tried again."))
                case .unanswered: answer = .unanswered(failure(status, text, "It is tried again."))
                case .misled(let advice): answer = .gone(failure(status, text, advice))
                }
                return leave(events, answer) + hold(answer, for: retryAfter, at: now)
            }
            return leave(events, answer) + hold(answer, for: nil, at: now)
        }

        /// Nothing is taken up from now on.
        mutating func close() -> Answers {
            phase = .closed
            let answers = leave(Array(waiting) + parts.joined(), .gone(FerryError(.closed, "The outlet was closed.")))
            waiting = []
            parts = []
            return answers
        }

        private func failure(_ status: Int, _ text: String, _ advice: String) -> FerryError {
            FerryError(
                status == 401 || status == 403 ? .httpRefused : .httpFailed,
                "The server at \(address) answers with the status \(status)\(text.isEmpty ? "" : ": \(text)"). \(advice)"
            )
        }

        private mutating func leave(_ events: [Event], _ answer: OutletAnswer) -> Answers {
            count -= events.count
            return events.map { ($0.token, answer) }
        }

        /// Nothing is sent for a while. Requests on their way are awaited.
        private mutating func hold(_ trouble: OutletAnswer, for asked: Duration?, at now: Timestamp) -> Answers {
            guard case .closed = phase else {
                let length = max(pause, min(asked ?? .zero, Self.longestRetryAfter))
                pause = min(pause * 2, Self.longestPause)
                // Unsent bytes cannot have arrived.
                let unsent: OutletAnswer =
                    if case .unanswered(let error) = trouble { .gone(error) } else { trouble }
                phase = .pausing(until: now + length, unsent)
                let answers = leave(Array(waiting) + parts.joined(), unsent)
                waiting = []
                parts = []
                return answers
            }
            return []
        }

        /// Parts of a refused request whose time is over: the server answers, so that there will be room.
        private mutating func late(at now: Timestamp) -> Answers {
            let late = parts.joined().filter { $0.deadline <= now }
            guard !late.isEmpty else { return [] }
            parts = Deque(parts.map { $0.filter { $0.deadline > now } }.filter { !$0.isEmpty })
            return leave(
                late, .full(FerryError(.timedOut, "The server at \(address) was too slow. It is tried again.")))
        }
    }

    /// What a status means for the events of its request (RFC 9110, 15; RFC 6585).
    enum HTTPVerdict: Equatable {
        case taken
        /// The server cannot take these events, at any time.
        case refused
        /// Later.
        case full
        /// A server in between may have passed them on.
        case unanswered
        /// The server does not take events there, or not from this client.
        case misled(String)

        init(_ status: Int) {
            switch status {
            case 200..<300: self = .taken
            case 300..<400: self = .misled("It moved; give its present address.")
            case 401, 403: self = .misled("Look at the user, the token or the certificate.")
            case 404, 405, 410: self = .misled("Look at the address.")
            case 408, 425: self = .unanswered
            case 429: self = .full
            case 400..<500: self = .refused
            case 503, 507: self = .full
            default: self = .unanswered
            }
        }
    }
#endif
