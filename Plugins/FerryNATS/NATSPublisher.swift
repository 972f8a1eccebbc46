#if NATS
    import CNATS
    import DequeModule
    public import Ferry
    import Synchronization

    /// Publishes to a JetStream stream, many messages at a time: each is answered when the stream has it.
    ///
    /// A server's answer comes before its disk has synced what it answers for. Who must not lose anything keeps its messages until
    /// then, and publishes them again when the server has restarted (``NATSServerWatch``).
    public final class NATSPublisher: Sendable {
        /// A message on its way to a stream.
        public struct Publication: Sendable, Hashable {
            /// What is published.
            public let message: NATSMessage
            /// Its name (`Nats-Msg-Id`): within the stream's duplicate window a second one of the same name is answered, and not
            /// stored.
            public let id: String
            /// The place in the stream of the last message that its subject has; refused with `natsConflict` where that is
            /// another one. Nil for any.
            public let predecessor: UInt64?

            /// Names a message.
            public init(_ message: NATSMessage, id: String, predecessor: UInt64? = nil) {
                self.message = message
                self.id = id
                self.predecessor = predecessor
            }
        }

        /// The server's word that a stream has a message.
        public struct Receipt: Sendable, Hashable {
            /// Its place in the stream: 1 and more.
            public let sequence: UInt64
            /// Whether the stream had it already, at this place.
            public let isDuplicate: Bool
        }

        /// A message that a ``Feed`` gives, under a number of its own.
        public struct Order: Sendable {
            /// What the feed calls it.
            public let token: UInt64
            /// The message.
            public let publication: Publication

            /// Numbers a message.
            public init(token: UInt64, _ publication: Publication) {
                self.token = token
                self.publication = publication
            }
        }

        /// What became of a ``Feed``'s message.
        public struct Ended: Sendable {
            /// What the feed calls it.
            public let token: UInt64
            /// Whether the stream has it; fails with what ``publish(_:)`` throws.
            public let result: Result<Receipt, FerryError>
        }

        /// Takes what became of messages since its last call, and gives those that go next, in their order: it is called until it
        /// gives none. Calls come one at a time, for many messages each; it must not block. Messages for which there is no room end
        /// with `queueFull`.
        public typealias Feed = @Sendable ([Ended]) -> [Order]

        /// The stream's name.
        public let stream: String
        /// How many messages may be on their way at once.
        public let maximumInFlight: Int
        private let connection: NATSConnection
        private let desk: AckDesk
        private let context: NATSContext
        private let timeout: Duration
        private let feed: Feed?

        /// Prepares publishing to a stream. Nothing is asked of the server yet.
        ///
        /// - Parameters:
        ///   - connection: what it goes over.
        ///   - stream: the stream's name: an answer of another stream is an error.
        ///   - maximumInFlight: how many messages may be on their way at once, 1 to 65 536.
        ///   - timeout: how long an answer may take. After that nobody knows whether the stream has the message: publish it
        ///     again, under its name.
        ///   - feed: what gives messages after each ``turn()``, and whenever some have ended; nil where ``publish(_:)`` is all.
        /// - Throws: `closed`, `natsFailed`, `invalidConfiguration`.
        public init(
            _ connection: NATSConnection, to stream: String, maximumInFlight: Int = 1024,
            timeout: Duration = .seconds(10), feed: Feed? = nil
        ) async throws(FerryError) {
            guard (1...65_536).contains(maximumInFlight) else {
                throw FerryError(
                    .invalidConfiguration, "maximumInFlight is \(maximumInFlight); it must be 1 to 65536.")
            }
            self.connection = connection
            self.stream = stream
            self.maximumInFlight = maximumInFlight
            self.timeout = timeout
            self.feed = feed
            let desk = AckDesk(maximumInFlight)
            self.desk = desk
            context = try await connection.perform(on: connection.publishing) { handle throws(FerryError) in
                try NATSContext(handle, desk, maximumInFlight)
            }
            desk.setWake { [weak self] in self?.scheduleTurn() }
        }

        /// How many messages are on their way.
        public var inFlight: Int { desk.count }

        /// Publishes a message, and waits until the stream has it. Where as many as may be are on their way, it waits for one of
        /// them to end first.
        ///
        /// - Throws: `natsStreamFull`, `natsConflict`, `natsNotReady`, `natsNoServer`, `messageTooLarge`, `timedOut`, `closed`,
        ///   `invalidConfiguration` for what cannot be a subject, a header or a name, `natsFailed`.
        public func publish(_ publication: Publication) async throws(FerryError) -> Receipt {
            await desk.enter()
            let result = await withCheckedContinuation { continuation in
                connection.submit { [self] handle in
                    do throws(FerryError) {
                        guard handle != nil else { throw NATSConnection.closed }
                        try send(publication, .ending({ continuation.resume(returning: $0) }))
                    } catch {
                        desk.leave()
                        continuation.resume(returning: .failure(error))
                    }
                }
            }
            return try result.get()
        }

        /// Has the feed called soon: it has something to publish. It is called by itself when messages have ended.
        public func turn() { desk.wantTurn()?() }

        private func scheduleTurn() { connection.submit { [self] in takeTurn($0) } }

        private func takeTurn(_ handle: NATSHandle?) {
            guard let feed else { return }
            let orders = feed(desk.beginTurn())
            for order in orders { send(order, handle) }
            // What else the connection has to do comes between.
            if !orders.isEmpty { turn() }
        }

        private func send(_ order: Order, _ handle: NATSHandle?) {
            do throws(FerryError) {
                guard handle != nil else { throw NATSConnection.closed }
                guard desk.tryEnter() else {
                    throw FerryError(
                        .queueFull,
                        "\(maximumInFlight) messages are on their way to stream \(stream), as many as may be.",
                        fate: .nothingSent)
                }
                do throws(FerryError) { try send(order.publication, .token(order.token)) } catch {
                    desk.leave()
                    throw error
                }
            } catch {
                desk.fail(order.token, error)?()
            }
        }

        private func send(_ publication: Publication, _ waiting: AckDesk.Waiting) throws(FerryError) {
            guard !publication.id.isEmpty, publication.id.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(publication.id.debugDescription) is no name for a message: it must be visible characters without spaces."
                )
            }
            var message: OpaquePointer? = try publication.message.make()
            let number = UInt(bitPattern: message)
            desk.expect(number, waiting)
            var options = jsPubOptions()
            jsPubOptions_Init(&options)
            options.MaxWait = timeout.milliseconds
            // An expectation of 0 is none to the library; that there is no message yet has a flag of its own.
            if let predecessor = publication.predecessor {
                if predecessor == 0 {
                    options.ExpectNoMessage = true
                } else {
                    options.ExpectLastSubjectSeq = predecessor
                }
            }
            let status = publication.id.withCString { id in
                stream.withCString { stream in
                    options.MsgId = id
                    options.ExpectStream = stream
                    return js_PublishMsgAsync(context.raw, &message, &options)
                }
            }
            guard status != NATS_OK else { return }
            natsMsg_Destroy(message)
            // Its answer cannot come any more; if it has come, that was the end of it.
            guard desk.forget(number) else { return }
            throw NATSFailure(status).error("A message to \(publication.message.subject) cannot be published")
        }
    }

    /// A JetStream context whose answers go to a desk.
    final class NATSContext: @unchecked Sendable {
        let raw: OpaquePointer
        private let closure: UnsafeMutableRawPointer?

        init(_ handle: NATSHandle, _ desk: AckDesk, _ maximumInFlight: Int) throws(FerryError) {
            closure = Registry.add(desk)
            var options = jsOptions()
            jsOptions_Init(&options)
            // The library counts a message as pending until after the callback, so that it must never be at its bound.
            options.PublishAsync.MaxPending = Int64(maximumInFlight) * 2 + 1024
            options.PublishAsync.StallWait = 1
            options.PublishAsync.AckHandlerClosure = closure
            options.PublishAsync.AckHandler = { _, message, receipt, failure, closure in
                defer { natsMsg_Destroy(message) }
                guard let desk: AckDesk = Registry.find(closure) else { return }
                let result: Result<NATSPublisher.Receipt, FerryError>
                if let receipt = receipt?.pointee {
                    result = .success(
                        NATSPublisher.Receipt(sequence: receipt.Sequence, isDuplicate: receipt.Duplicate))
                } else if let failure = failure?.pointee {
                    let subject = message.flatMap { natsMsg_GetSubject($0) }.map { String(cString: $0) } ?? ""
                    result = .failure(NATSFailure(failure).error("A message to \(subject) was not stored"))
                } else {
                    result = .failure(FerryError(.natsFailed, "libnats tells nothing of a message."))
                }
                desk.end(UInt(bitPattern: message), result)
            }
            var context: OpaquePointer?
            let status = natsConnection_JetStream(&context, handle.connection, &options)
            guard status == NATS_OK, let context else {
                Registry.remove(closure)
                throw NATSFailure(status).error("JetStream cannot be used")
            }
            raw = context
        }

        deinit {
            Registry.remove(closure)
            jsCtx_Destroy(raw)
        }
    }

    /// Who waits for which answer. Places are taken before a message is sent, and given back when it has ended.
    final class AckDesk: Sendable {
        enum Waiting {
            case ending(@Sendable (Result<NATSPublisher.Receipt, FerryError>) -> Void)
            case token(UInt64)
        }

        private struct State {
            var taken = 0
            var expected: [UInt: Waiting] = [:]
            var waiting: Deque<CheckedContinuation<Void, Never>> = []
            /// What the feed has not been told.
            var ended: [NATSPublisher.Ended] = []
            var isTurnDue = false
            var wake: (@Sendable () -> Void)?

            mutating func leave() -> CheckedContinuation<Void, Never>? {
                if let next = waiting.popFirst() { return next }
                taken -= 1
                return nil
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

        init(_ places: Int) { self.places = places }

        var count: Int { state.withLock { $0.taken } }

        // MARK: Turns

        func setWake(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

        func wantTurn() -> (@Sendable () -> Void)? { state.withLock { $0.wantTurn() } }

        /// What ended since the last turn. What happens from here on is of the next one.
        func beginTurn() -> [NATSPublisher.Ended] {
            state.withLock { state in
                defer { state.ended = [] }
                state.isTurnDue = false
                return state.ended
            }
        }

        func fail(_ token: UInt64, _ error: FerryError) -> (@Sendable () -> Void)? {
            state.withLock { state in
                state.ended.append(NATSPublisher.Ended(token: token, result: .failure(error)))
                return state.wantTurn()
            }
        }

        // MARK: Places

        func tryEnter() -> Bool {
            state.withLock { state in
                guard state.taken < places, state.waiting.isEmpty else { return false }
                state.taken += 1
                return true
            }
        }

        /// Every place is given back in time, for every answer has its deadline.
        func enter() async {
            await withCheckedContinuation { continuation in
                let isIn = state.withLock { state in
                    guard state.taken < places, state.waiting.isEmpty else {
                        state.waiting.append(continuation)
                        return false
                    }
                    state.taken += 1
                    return true
                }
                if isIn { continuation.resume() }
            }
        }

        func leave() { state.withLock { $0.leave() }?.resume() }

        // MARK: Answers

        func expect(_ number: UInt, _ waiting: Waiting) { state.withLock { $0.expected[number] = waiting } }

        /// - Returns: whether somebody still waited.
        func forget(_ number: UInt) -> Bool { state.withLock { $0.expected.removeValue(forKey: number) } != nil }

        /// An answer, on a thread of the library's.
        func end(_ number: UInt, _ result: Result<NATSPublisher.Receipt, FerryError>) {
            let (waiting, next, wake) = state.withLock { state in
                guard let waiting = state.expected.removeValue(forKey: number) else {
                    return (Waiting?.none, CheckedContinuation<Void, Never>?.none, (@Sendable () -> Void)?.none)
                }
                let next = state.leave()
                guard case .token(let token) = waiting else { return (waiting, next, nil) }
                state.ended.append(NATSPublisher.Ended(token: token, result: result))
                return (waiting, next, state.wantTurn())
            }
            next?.resume()
            wake?()
            if case .ending(let ending)? = waiting { ending(result) }
        }
    }
#endif
