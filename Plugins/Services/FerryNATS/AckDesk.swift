#if NATS
    import CNATS
    import DequeModule
    import Ferry
    import Synchronization

    /// The waiters for answers, each under its number and until its deadline: a value without I/O and clock. Places are
    /// used again, so that it is as large as the most waiters at once.
    struct AnswerSlots<Waiting: Sendable>: Sendable {
        private struct Slot: Sendable {
            var waiting: Waiting?
            var deadline: Timestamp
            /// The number of whom it has, or had last.
            var number: UInt64
        }

        /// A number ends with its slot's.
        private static var bits: UInt64 { 20 }
        private var slots: [Slot] = []
        private var free: [Int] = []

        /// - Returns: the number that the answer is to have; no other had it before.
        mutating func expect(_ waiting: Waiting, until deadline: Timestamp) -> UInt64 {
            guard let index = free.popLast() else {
                let number = UInt64(slots.count)
                slots.append(Slot(waiting: waiting, deadline: deadline, number: number))
                return number
            }
            let number = slots[index].number + 1 << Self.bits
            slots[index] = Slot(waiting: waiting, deadline: deadline, number: number)
            return number
        }

        /// - Returns: the waiter for the answer with this number; nil for none.
        mutating func end(_ number: UInt64) -> Waiting? {
            let index = Int(number & (1 << Self.bits - 1))
            guard index < slots.count, slots[index].number == number else { return nil }
            return end(at: index)
        }

        /// Those who have waited long enough.
        mutating func takeDue(at now: Timestamp) -> [Waiting] {
            slots.indices.compactMap { slots[$0].deadline <= now ? end(at: $0) : nil }
        }

        /// The earliest deadline.
        var nextDeadline: Timestamp? { slots.lazy.filter { $0.waiting != nil }.map(\.deadline).min() }

        private mutating func end(at index: Int) -> Waiting? {
            guard let waiting = slots[index].waiting else { return nil }
            slots[index].waiting = nil
            free.append(index)
            return waiting
        }
    }

    /// Who waits for which of a stream's answers. Places are taken before a message is sent, and given back when it has ended.
    final class AckDesk: Sendable {
        typealias Answer = Result<NATSPublisher.Receipt, NATSFailure>
        typealias Ending = @Sendable (Result<NATSPublisher.Receipt, FerryError>) -> Void

        private struct Waiting: Sendable {
            enum Kind: Sendable {
                case call(Ending)
                case token(UInt64)
            }

            let subject: String
            let kind: Kind
        }

        private struct State {
            var taken = 0
            var slots = AnswerSlots<Waiting>()
            /// Whether a timer is set for the earliest deadline.
            var isTimed = false
            var entering: Deque<CheckedContinuation<Void, Never>> = []
            /// What the feed has not been told.
            var ended: [NATSPublisher.Ended] = []
            var isTurnDue = false
            var wake: (@Sendable () -> Void)?

            /// Gives a free place to the next task that waits for one.
            mutating func leave(_ later: inout [@Sendable () -> Void]) {
                guard let next = entering.popFirst() else { return taken -= 1 }
                later.append { next.resume() }
            }

            mutating func end(
                _ waiting: Waiting, _ result: Result<NATSPublisher.Receipt, FerryError>,
                _ later: inout [@Sendable () -> Void]
            ) {
                leave(&later)
                switch waiting.kind {
                case .call(let call): later.append { call(result) }
                case .token(let token): ended.append(NATSPublisher.Ended(token: token, result: result))
                }
            }

            /// What schedules a turn, unless one is scheduled.
            mutating func wantTurn() -> (@Sendable () -> Void)? {
                guard !isTurnDue else { return nil }
                isTurnDue = true
                return wake
            }
        }

        private let state = Mutex(State())
        private let places: Int
        private let time = SystemTime()

        init(_ places: Int) { self.places = places }

        var count: Int { state.withLock { $0.taken } }

        /// What a change has others do, when the lock is free.
        private func change(_ body: (inout State, inout [@Sendable () -> Void]) -> Void) {
            var later: [@Sendable () -> Void] = []
            state.withLock { state in
                body(&state, &later)
                if !state.ended.isEmpty, let wake = state.wantTurn() { later.append(wake) }
            }
            for each in later { each() }
        }

        // MARK: Turns

        func setWake(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

        func wantTurn() -> (@Sendable () -> Void)? { state.withLock { $0.wantTurn() } }

        /// What ended since the last turn, in the place of nothing. What happens from here on is of the next one.
        func beginTurn(_ ended: inout [NATSPublisher.Ended]) {
            state.withLock { state in
                state.isTurnDue = false
                swap(&ended, &state.ended)
            }
        }

        // MARK: Places

        /// Every place is given back in time, for every answer has its deadline.
        func enter() async {
            await withCheckedContinuation { continuation in
                let isIn = state.withLock { state in
                    guard state.taken < places, state.entering.isEmpty else {
                        state.entering.append(continuation)
                        return false
                    }
                    state.taken += 1
                    return true
                }
                if isIn { continuation.resume() }
            }
        }

        /// Gives an entered task the number of its answer.
        func expect(
            _ publication: NATSPublisher.Publication, until deadline: Timestamp, _ ending: @escaping Ending
        ) -> UInt64 {
            let waiting = Waiting(subject: publication.message.subject, kind: .call(ending))
            let number = state.withLock { $0.slots.expect(waiting, until: deadline) }
            watch(deadline)
            return number
        }

        /// Takes places for the first of these messages, as many as there are. The others have ended.
        ///
        /// - Parameter numbers: gets the numbers of their answers.
        func admit(_ orders: [NATSPublisher.Order], until deadline: Timestamp, _ numbers: inout [UInt64]) {
            guard !orders.isEmpty else { return }
            change { state, _ in
                for order in orders {
                    guard state.taken < places, state.entering.isEmpty else {
                        let error = FerryError(
                            .queueFull, "\(places) messages are on their way to the stream, as many as may be.",
                            fate: .nothingSent)
                        state.ended.append(NATSPublisher.Ended(token: order.token, result: .failure(error)))
                        continue
                    }
                    state.taken += 1
                    let subject = order.publication.message.subject
                    numbers.append(
                        state.slots.expect(Waiting(subject: subject, kind: .token(order.token)), until: deadline))
                }
            }
            watch(deadline)
        }

        // MARK: Ends

        /// It could not be sent. If its time is over already, that was the end of it.
        func fail(_ number: UInt64, _ error: FerryError) {
            change { state, later in
                if let waiting = state.slots.end(number) { state.end(waiting, .failure(error), &later) }
            }
        }

        /// Answers and their numbers. Those that come together are told together, for each turn wakes a thread.
        func hear(_ answers: [(UInt64, Answer)]) {
            change { state, later in
                for (number, answer) in answers {
                    guard let waiting = state.slots.end(number) else { continue }
                    state.end(waiting, Self.result(answer, waiting), &later)
                }
            }
        }

        private static func result(
            _ answer: Answer, _ waiting: Waiting
        ) -> Result<NATSPublisher.Receipt, FerryError> {
            answer.mapError { $0.error("A message to \(waiting.subject) was not stored") }
        }

        /// Sets a timer for the earliest deadline, unless there is one: a later answer has a later one.
        private func watch(_ deadline: Timestamp) {
            let isTimed = state.withLock { state in
                defer { state.isTimed = true }
                return state.isTimed
            }
            if !isTimed { expire(at: deadline) }
        }

        private func expire(at deadline: Timestamp) {
            time.schedule(at: deadline) { [weak self, time] in
                var next: Timestamp?
                self?.change { state, later in
                    for waiting in state.slots.takeDue(at: time.now) {
                        state.end(waiting, Self.result(.failure(NATSFailure(NATS_TIMEOUT)), waiting), &later)
                    }
                    next = state.slots.nextDeadline
                    state.isTimed = next != nil
                }
                if let next { self?.expire(at: next) }
            }
        }
    }
#endif
