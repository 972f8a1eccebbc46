#if NATS
    import CNATS
    public import Ferry
    import Synchronization

    /// Publishes to a JetStream stream, many messages at a time: each is answered when the stream has it.
    ///
    /// A server's answer comes before its disk has synced what it answers for. Who must not lose anything keeps its messages until
    /// then, and publishes them again when the server has restarted (``NATSServerWatch``).
    public final class NATSPublisher: Sendable {
        /// A message on its way to a stream.
        public struct Publication: Sendable, Hashable {
            /// The message to publish.
            public let message: NATSMessage
            /// Its name (`Nats-Msg-Id`): within the stream's duplicate window a second one of the same name is answered, and not
            /// stored.
            public let id: String
            /// The place in the stream of the last message that its subject has; refused with `natsConflict` where that is
            /// another one. Nil for any.
            public let predecessor: UInt64?
            /// The name of the message that must be the last of the whole stream; refused with `natsConflict` where that is another one.
            /// Nil for any. So several messages can be on their way whose order holds at any outcome of each.
            public let follows: String?

            /// Names a message.
            public init(_ message: NATSMessage, id: String, predecessor: UInt64? = nil, follows: String? = nil) {
                self.message = message
                self.id = id
                self.predecessor = predecessor
                self.follows = follows
            }
        }

        /// The server's word that a stream has a message.
        public struct Receipt: Sendable, Hashable {
            /// Its place in the stream: 1 and more.
            public let sequence: UInt64
            /// Whether the stream had it already, at this place.
            public let isDuplicate: Bool
        }

        /// A message that a ``Feed`` gives, under its number.
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

        /// The result of publishing a ``Feed``'s message.
        public struct Ended: Sendable {
            /// What the feed calls it.
            public let token: UInt64
            /// Whether the stream has it; fails with what ``publish(_:)`` throws.
            public let result: Result<Receipt, FerryError>
        }

        /// Takes the results since its last call, and adds the next messages to an empty array, in their order: it is
        /// called until it adds none. Calls come one at a time, for many messages each; it must not block. Where there is no room for
        /// all, the last ones end with `queueFull`.
        public typealias Feed = @Sendable (_ ended: [Ended], _ orders: inout [Order]) -> Void

        /// The stream's name.
        public let stream: String
        /// How many messages may be on their way at once.
        public let maximumInFlight: Int
        private let connection: NATSConnection
        private let desk: AckDesk
        private let inbox: NATSInbox
        private let timeout: Duration
        private let time = SystemTime()
        private let feed: Feed?
        /// Of one turn after the other, for each large array that is made anew has the memory's allocator tidy up.
        private let turns = Mutex(Turn())

        private struct Turn: Sendable {
            var ended: [Ended] = []
            var orders: [Order] = []
            /// Those of the answers.
            var numbers: [UInt64] = []
        }

        /// Prepares publishing to a stream. Nothing is asked of the server yet.
        ///
        /// - Parameters:
        ///   - connection: what it goes over.
        ///   - stream: the stream's name: an answer of another stream is an error.
        ///   - maximumInFlight: how many messages may be on their way at once, 1 to 65 536.
        ///   - timeout: how long an answer may take. After that it is unknown whether the stream has the message: publish it
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
            inbox = try await connection.perform(on: connection.publishing) { handle throws(FerryError) in
                try NATSInbox(handle) { answers in
                    desk.hear(answers.map { ($0, PublishAnswer.read($1)) })
                }
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
                let number = desk.expect(publication, until: time.now + timeout) { continuation.resume(returning: $0) }
                connection.submit { [self] handle in natsMsg_Destroy(send(publication, number, handle)) }
            }
            return try result.get()
        }

        /// Has the feed called soon: it has something to publish. It is called by itself when messages have ended.
        public func turn() { desk.wantTurn()?() }

        private func scheduleTurn() { connection.submit { [self] in takeTurn($0) } }

        private func takeTurn(_ handle: NATSHandle?) {
            guard let feed else { return }
            turns.withLock { turn in
                desk.beginTurn(&turn.ended)
                feed(turn.ended, &turn.orders)
                desk.admit(turn.orders, until: time.now + timeout, &turn.numbers)
                let sent = zip(turn.orders, turn.numbers).map { send($0.publication, $1, handle) }
                // Not each at once: libnats wakes a thread to release messages.
                for message in sent { natsMsg_Destroy(message) }
                // What else the connection has to do comes between.
                if !turn.orders.isEmpty { self.turn() }
                turn.ended.removeAll(keepingCapacity: true)
                turn.orders.removeAll(keepingCapacity: true)
                turn.numbers.removeAll(keepingCapacity: true)
            }
        }

        /// - Parameter number: its answer's.
        /// - Returns: the library's message, which the caller destroys.
        private func send(_ publication: Publication, _ number: UInt64, _ handle: NATSHandle?) -> OpaquePointer? {
            var message: OpaquePointer?
            do throws(FerryError) {
                guard let handle else { throw NATSConnection.closed }
                message = try make(publication, number)
                try require(
                    natsConnection_PublishMsg(handle.connection, message),
                    "A message to \(publication.message.subject) cannot be published")
            } catch {
                desk.fail(number, error)
            }
            return message
        }

        private func make(_ publication: Publication, _ number: UInt64) throws(FerryError) -> OpaquePointer {
            guard !publication.id.isEmpty, publication.id.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(publication.id.debugDescription) is no name for a message: it must be visible characters without spaces."
                )
            }
            let message = try publication.message.make(replyingTo: inbox.subject(number))
            var status = natsMsgHeader_Set(message, "Nats-Msg-Id", publication.id)
            if status == NATS_OK { status = natsMsgHeader_Set(message, "Nats-Expected-Stream", stream) }
            if status == NATS_OK, let predecessor = publication.predecessor {
                status = natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", String(predecessor))
            }
            if status == NATS_OK, let follows = publication.follows {
                status = natsMsgHeader_Set(message, "Nats-Expected-Last-Msg-Id", follows)
            }
            guard status == NATS_OK else {
                natsMsg_Destroy(message)
                throw NATSFailure(status).error("A message to \(publication.message.subject) cannot be made")
            }
            return message
        }
    }
#endif
