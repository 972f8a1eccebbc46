#if NATS
    /// Tells when a server may have lost what it had answered for: a value without I/O and clock.
    ///
    /// JetStream answers before its disk has synced; nats-server 2.9 syncs every 60 s. A server that was up all that time has
    /// synced; one that restarted may not. It is told by what can be seen from outside:
    ///
    /// - another `server_id` after connecting again: a server draws one at each start, and another server has another one;
    /// - another leader of the stream, or another stream of the same name;
    /// - a stream that ends before a place that it has answered with.
    public struct NATSServerWatch: Sendable, Hashable {
        /// What a look at the server means for messages that it acknowledged before.
        public enum Finding: Sendable, Hashable {
            /// The same server has been up since the last look.
            case steady
            /// It may have lost something, because of this: publish the kept messages again.
            case mayHaveLost(String)
        }

        private var last: Look?

        private struct Look: Hashable {
            let server: String
            let state: NATSStream.State
        }

        /// The last place that the stream has answered with: take it before you ask for the stream's state.
        public private(set) var lastAnswered: UInt64 = 0

        /// Nothing has been seen.
        public init() {}

        /// The stream has answered for a message at this place.
        public mutating func answered(_ sequence: UInt64) { lastAnswered = max(lastAnswered, sequence) }

        /// Notes the server's present state.
        ///
        /// - Parameters:
        ///   - server: the `server_id` of the connection.
        ///   - state: what it says of the stream.
        ///   - answered: ``lastAnswered`` before the question: what the stream answers meanwhile may come after the state was told. By
        ///     default as it is now, which is right where nothing is published meanwhile.
        public mutating func look(_ server: String, _ state: NATSStream.State, answered: UInt64? = nil) -> Finding {
            let (before, answered) = (last, answered ?? lastAnswered)
            last = Look(server: server, state: state)
            if answered > state.lastSequence || before.map({ $0.state.created != state.created }) ?? false {
                lastAnswered = state.lastSequence
            }
            guard let before else { return .steady }
            let last = before.state
            if last.created != state.created { return .mayHaveLost("the stream was made anew") }
            if state.lastSequence < max(answered, last.lastSequence) {
                return .mayHaveLost(
                    "the stream ends at \(state.lastSequence), after \(max(answered, last.lastSequence))")
            }
            if before.server != server { return .mayHaveLost("the server has restarted, or is another one") }
            if last.leader != state.leader {
                return .mayHaveLost("the stream's leader is \(state.leader ?? "none"), after \(last.leader ?? "none")")
            }
            return .steady
        }
    }
#endif
