#if NATS && Records
    public import Ferry
    public import FerryFleet
    public import FerryNATS
    import Synchronization

    /// The outlet to a JetStream stream of NATS.
    ///
    /// A message goes to `prefix.sender.stream`, with its key as `Nats-Msg-Id`: within the stream's duplicate window the server stores it
    /// once. A stream that is full refuses new messages (`discard: new`) and so answers `OutletAnswer.full`.
    public final class NATSOutlet: Outlet {
        private enum Phase: Sendable {
            case open(NATSConnection, NATSPublisher)
            /// libnats has ended the connection for good; the keeper opens another one.
            case away(FerryError)
            case closed
        }

        private struct State: Sendable {
            var phase: Phase
            var inFlight = 0
        }

        /// Shared with the keeper, which does not keep the outlet.
        private final class Box: Sendable {
            let state: Mutex<State>
            init(_ phase: Phase) { state = Mutex(State(phase: phase)) }
        }

        private let prefix: String
        private let maximumInFlight: Int
        private let box: Box
        private let keeper: Task<Void, Never>

        /// Connects, and opens the stream.
        ///
        /// - Parameters:
        ///   - servers: the servers.
        ///   - stream: the stream, which has the subjects `prefix.>`.
        ///   - creates: whether to make the stream where there is none.
        ///   - prefix: what subjects begin with: words of letters, digits, `-` and `_`, with dots between them.
        ///   - maximumInFlight: the most messages without an answer, 1 to 32 768.
        ///   - timeout: how long an answer may take.
        /// - Throws: `natsNoServer`, `natsRefused`, `natsInsecure`, `natsWrongShape`, `natsNotFound`, `natsNotReady`, `timedOut`,
        ///   `invalidConfiguration`, `natsFailed`.
        public static func open(
            _ servers: NATSConfiguration, stream: NATSStream, creates: Bool = true, prefix: String = "ferry.records",
            maximumInFlight: Int = 1024, timeout: Duration = .seconds(10)
        ) async throws(FerryError) -> NATSOutlet {
            try RecordNames.check(prefix: prefix, stream: stream.name)
            guard (1...32_768).contains(maximumInFlight) else {
                throw FerryError(
                    .invalidConfiguration, "maximumInFlight is \(maximumInFlight). Give 1 to 32768.")
            }
            @Sendable func connect() async throws(FerryError) -> (NATSConnection, NATSPublisher) {
                let connection = try await NATSConnection.connect(servers)
                do throws(FerryError) {
                    try await connection.open(stream, creates: creates)
                    return (
                        connection,
                        try await NATSPublisher(
                            connection, to: stream.name, maximumInFlight: maximumInFlight, timeout: timeout)
                    )
                } catch {
                    await connection.close()
                    throw error
                }
            }
            let (connection, publisher) = try await connect()
            let box = Box(.open(connection, publisher))
            let keeper = Task {
                var events = connection.events()
                while !Task.isCancelled {
                    for await event in events {
                        guard case .closed(let reason) = event else { continue }
                        box.state.withLock { state in
                            guard case .open = state.phase else { return }
                            state.phase = .away(
                                FerryError(.natsNoServer, "NATS ended the connection (\(reason)). It is made anew."))
                        }
                    }
                    try? await Task.sleep(for: servers.reconnectDelay)
                    guard !Task.isCancelled, let (connection, publisher) = try? await connect() else { continue }
                    events = connection.events()
                    let isWanted = box.state.withLock { state in
                        guard case .away = state.phase else { return false }
                        state.phase = .open(connection, publisher)
                        return true
                    }
                    if !isWanted { await connection.close() }
                }
            }
            return NATSOutlet(prefix, maximumInFlight, box, keeper)
        }

        private init(_ prefix: String, _ maximumInFlight: Int, _ box: Box, _ keeper: Task<Void, Never>) {
            (self.prefix, self.maximumInFlight) = (prefix, maximumInFlight)
            (self.box, self.keeper) = (box, keeper)
        }

        deinit { keeper.cancel() }

        /// The subject of a lane.
        public func subject(_ lane: OutletMessage.Lane) -> String {
            "\(prefix).\(OutletAddress.level(lane.sender)).\(OutletAddress.level(lane.stream))"
        }

        /// Publishes a message, and waits for the stream's answer.
        public func publish(_ message: OutletMessage) async -> OutletAnswer {
            let publisher: NATSPublisher
            do throws(FerryError) { publisher = try enter() } catch {
                return error.code == .queueFull ? .full(error) : .gone(error)
            }
            defer { box.state.withLock { $0.inFlight -= 1 } }
            let headers = message.fields.map { NATSMessage.Header($0.name, $0.value) }
            let publication = NATSPublisher.Publication(
                NATSMessage(subject(message.lane), headers: headers, bytes: message.bytes), id: message.key)
            do throws(FerryError) {
                return .taken(isDuplicate: try await publisher.publish(publication).isDuplicate)
            } catch {
                return Self.answer(error)
            }
        }

        /// Counts a message, which the caller takes back.
        private func enter() throws(FerryError) -> NATSPublisher {
            try box.state.withLock { state throws(FerryError) in
                switch state.phase {
                case .closed: throw FerryError(.closed, "The outlet was closed. Open another one.")
                case .away(let error): throw error
                case .open(let connection, let publisher):
                    guard connection.isConnected else { throw Connecting.ended }
                    guard state.inFlight < maximumInFlight else {
                        throw FerryError(
                            .queueFull,
                            "\(maximumInFlight) messages are without an answer. Publish again when one has ended.")
                    }
                    state.inFlight += 1
                    return publisher
                }
            }
        }

        private static func answer(_ error: FerryError) -> OutletAnswer {
            switch error.code {
            case .natsStreamFull: .full(error)
            case .messageTooLarge, .invalidConfiguration: .refused(error)
            case .natsNotReady: .gone(error)
            default: .unanswered(error)
            }
        }

        /// Disconnects.
        public func close() async {
            keeper.cancel()
            let old = box.state.withLock { state in
                defer { state.phase = .closed }
                return state.phase
            }
            if case .open(let connection, _) = old { await connection.close() }
        }
    }
#endif
