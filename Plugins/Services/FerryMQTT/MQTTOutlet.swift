#if MQTT
    public import Ferry
    public import FerryFleet
    import Synchronization

    /// The outlet to an MQTT broker: messages of quality of service 1 to `prefix/sender/stream`.
    ///
    /// The record's key is the user property `Ferry-Record` of MQTT 5. A message whose time is over stays with libmosquitto, and counts as
    /// one of ``MQTTConfiguration/maximumInFlight``, until the broker has answered or the connection ends. Nothing is sent again by
    /// itself at the next connection, so that what a broker has lost can be published before it.
    public final class MQTTOutlet: Outlet {
        /// The user property with a record's key.
        public static let keyProperty = "Ferry-Record"

        /// Whether the broker keeps descriptions of sensors.
        private enum Permission {
            case unknown
            /// The first one is on its way.
            case asked
            case given
            /// Nothing is described any more: mosquitto 2.0 ends the connection at each refusal.
            case refused
        }

        private struct Described {
            var permission = Permission.unknown
            /// In which connection: a broker that was connected to again may have lost what it kept.
            var connection: UInt64 = 0
            var lanes: Set<OutletMessage.Lane> = []

            /// More are described once more.
            static let maximumLanes = 10_000

            /// How a lane is to be described now; it counts as described from then on.
            mutating func begin(_ lane: OutletMessage.Lane, in connection: UInt64) -> Permission? {
                if connection != self.connection || lanes.count >= Self.maximumLanes {
                    self.connection = connection
                    lanes = []
                }
                switch permission {
                case .asked, .refused: return nil
                case .unknown:
                    permission = .asked
                    lanes.insert(lane)
                    return .unknown
                case .given: return lanes.insert(lane).inserted ? .given : nil
                }
            }
        }

        private let client: MQTTClient
        private let described = Mutex(Described())
        private let tellRefusal: @Sendable (FerryError) -> Void

        private init(_ client: MQTTClient, _ tellRefusal: @escaping @Sendable (FerryError) -> Void) {
            self.client = client
            self.tellRefusal = tellRefusal
        }

        deinit {
            let client = client
            Task { await client.close() }
        }

        /// Connects.
        ///
        /// - Parameters:
        ///   - configuration: the broker, and what it is told.
        ///   - tellRefusal: called once when the broker refuses to keep what Home Assistant is told
        ///     (``MQTTConfiguration/homeAssistant``). Nothing is told any more then; records are published all the same. It must not
        ///     block.
        /// - Throws: `mqttNoServer`, `mqttRefused`, `mqttInsecure`, `timedOut`, `invalidConfiguration`, `mqttFailed`.
        public static func open(
            _ configuration: MQTTConfiguration, tellRefusal: @escaping @Sendable (FerryError) -> Void = { _ in }
        ) async throws(FerryError) -> MQTTOutlet {
            try configuration.check()
            let client = try MQTTClient(configuration)
            do throws(FerryError) { try await client.connect() } catch {
                // A connection that is being made ends when the system says so.
                Task { await client.close() }
                throw error
            }
            return MQTTOutlet(client, tellRefusal)
        }

        /// Whether there is a connection now.
        public var isConnected: Bool { client.isConnected }

        /// How many connections there have been, the first included.
        public var connections: UInt64 { client.connections }

        /// The topic of a lane.
        public func topic(_ lane: OutletMessage.Lane) -> String {
            "\(client.configuration.prefix)/\(OutletAddress.level(lane.sender))/\(OutletAddress.level(lane.stream))"
        }

        /// Publishes a message, and waits for the broker's acknowledgement.
        public func publish(_ message: OutletMessage) async -> OutletAnswer {
            if let answer = await describe(message.lane) { return answer }
            return await client.publish(
                MQTTClient.Publication(
                    topic: topic(message.lane), bytes: message.bytes, isRetained: false,
                    properties: [(Self.keyProperty, message.key)] + message.fields.map { ($0.name, $0.value) },
                    title: "The record \(message.key)", prefix: client.configuration.prefix))
        }

        /// Tells Home Assistant of a lane's sensors, before the lane's first record in this connection. Waits for the
        /// broker's answer until the broker has taken one description. A later description that fails is sent again with the lane's next
        /// record.
        ///
        /// - Returns: why the record cannot be published either.
        private func describe(_ lane: OutletMessage.Lane) async -> OutletAnswer? {
            guard let home = client.configuration.homeAssistant,
                home.sensors.contains(where: { $0.stream == lane.stream })
            else { return nil }
            let connection = client.connections
            guard let permission = described.withLock({ $0.begin(lane, in: connection) }) else { return nil }
            var messages = home.descriptions(of: lane, at: topic(lane)).map { description in
                MQTTClient.Publication(
                    topic: description.topic, bytes: description.payload, isRetained: true,
                    title: "The description of a sensor", prefix: home.prefix)
            }[...]
            if case .unknown = permission, let first = messages.popFirst() {
                let answer = await client.publish(first)
                heard(answer, of: lane)
                guard case .taken = answer else {
                    if case .refused = answer { return nil }
                    return answer
                }
            }
            let sent = messages.map { client.send($0) }
            Task { [self] in for sent in sent { heard(await client.answer(to: sent), of: lane) } }
            return nil
        }

        private func heard(_ answer: OutletAnswer, of lane: OutletMessage.Lane) {
            let refusal = described.withLock { described -> FerryError? in
                switch answer {
                case .taken: if described.permission == .asked { described.permission = .given }
                case .refused(let error):
                    defer { described.permission = .refused }
                    return described.permission == .refused ? nil : error
                case .full, .gone, .unanswered:
                    described.lanes.remove(lane)
                    if described.permission == .asked { described.permission = .unknown }
                }
                return nil
            }
            if let refusal { tellRefusal(refusal) }
        }

        /// Disconnects. Messages without an answer are answered with `unanswered`: the broker may have them.
        public func close() async { await client.close() }
    }
#endif
