#if MQTT
    public import Ferry
    public import FerryFleet

    /// The outlet to an MQTT broker: messages of quality of service 1 to `prefix/sender/stream`.
    ///
    /// The record's key is the user property `Ferry-Record` of MQTT 5. A message whose time is over stays with libmosquitto, which sends
    /// it again when it has connected again, before any later one: it counts as one of ``MQTTConfiguration/maximumInFlight`` until the
    /// broker has answered.
    public final class MQTTOutlet: Outlet {
        /// The user property with a record's key.
        public static let keyProperty = "Ferry-Record"

        private let client: MQTTClient

        private init(_ client: MQTTClient) { self.client = client }

        deinit {
            let client = client
            Task { await client.close() }
        }

        /// Connects.
        ///
        /// - Throws: `mqttNoServer`, `mqttRefused`, `mqttInsecure`, `timedOut`, `invalidConfiguration`, `mqttFailed`.
        public static func open(_ configuration: MQTTConfiguration) async throws(FerryError) -> MQTTOutlet {
            try configuration.check()
            let client = try MQTTClient(configuration)
            do throws(FerryError) { try await client.connect() } catch {
                // A connection that is being made ends when the system says so.
                Task { await client.close() }
                throw error
            }
            return MQTTOutlet(client)
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
            await client.publish(message, to: topic(message.lane))
        }

        /// Disconnects. Messages without an answer are answered with `unanswered`: the broker may have them.
        public func close() async { await client.close() }
    }
#endif
