#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import Foundation
    #if MQTT
        import FerryMQTT
    #endif

    /// Where a gateway publishes to.
    enum GatewayDestination: Sendable {
        case nats(Gateway.Configuration)
        case outlet(OutletDestination)

        /// The gateway's name.
        var name: String {
            switch self {
            case .nats(let configuration): configuration.name
            case .outlet(let outlet): outlet.bounds.name
            }
        }
    }

    /// An outlet that is no stream of NATS.
    struct OutletDestination: Sendable {
        let bounds: OutletGateway.Configuration
        /// The broker, without secrets.
        let address: String
        /// Opens it.
        let open: @Sendable () async throws(FerryError) -> any Outlet
        /// Opens it beside a gateway that runs, which keeps its connection.
        let openForLook: @Sendable () async throws(FerryError) -> any Outlet
    }

    /// The object `outlet` of a gateway's configuration.
    struct OutletSettings: Codable, Equatable {
        var mqtt: String
        var prefix: String?
        var client: String?
        var authorities: String?
        var certificate: String?
        var key: String?
        var homeAssistant: HomeAssistantSettings?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case mqtt, prefix, client, authorities, certificate, key, homeAssistant
        }

        init(mqtt: String) { self.mqtt = mqtt }

        #if MQTT
            func destination(_ bounds: OutletGateway.Configuration, answer: Duration?) throws -> OutletDestination {
                var broker = try MQTTConfiguration(mqtt)
                broker.prefix = prefix ?? broker.prefix
                broker.clientID = client ?? "ferry-\(OutletAddress.level(bounds.name))"
                broker.authoritiesFile = authorities
                broker.certificateFile = certificate
                broker.keyFile = key
                broker.timeout = answer ?? broker.timeout
                broker.homeAssistant = try homeAssistant?.description()
                var bounds = bounds
                bounds.maximumInFlight = broker.maximumInFlight
                // A broker ends the connection of a client when another one of its name comes.
                var guest = broker
                guest.clientID += "-check"
                return OutletDestination(
                    bounds: bounds, address: broker.publicAddress,
                    open: { [broker] () throws(FerryError) in
                        try await MQTTOutlet.open(broker) { note("ferry: \($0.message)") }
                    },
                    openForLook: { [guest] () throws(FerryError) in try await MQTTOutlet.open(guest) })
            }
        #else
            func destination(_ bounds: OutletGateway.Configuration, answer: Duration?) throws -> OutletDestination {
                throw CommandFailure(
                    "MQTT is not part of this build. Install libmosquitto-dev, and build with the trait MQTT.")
            }
        #endif
    }

    /// The object `homeAssistant` of an outlet's configuration.
    struct HomeAssistantSettings: Codable, Equatable {
        struct Sensor: Codable, Equatable {
            var stream: String?
            var field: String
            var name: String
            var unit: String?
            var deviceClass: String?
            var stateClass: String?
            var expireSeconds: Double?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case stream, field, name, unit, deviceClass, stateClass, expireSeconds
            }
        }

        var prefix: String?
        var sensors: [Sensor]

        enum CodingKeys: String, CodingKey, CaseIterable { case prefix, sensors }

        #if MQTT
            func description() throws -> HomeAssistant {
                let known = HomeAssistant.StateClass.allCases.map(\.rawValue)
                var home = HomeAssistant(
                    sensors: try sensors.map { settings in
                        var sensor = HomeAssistant.Sensor(
                            stream: settings.stream ?? "", field: settings.field, name: settings.name)
                        sensor.unit = settings.unit
                        sensor.deviceClass = settings.deviceClass
                        sensor.stateClass = try settings.stateClass.map { text in
                            guard let value = HomeAssistant.StateClass(rawValue: text) else {
                                throw CommandFailure(
                                    "The sensor \(settings.name.debugDescription) has the state class \(text.debugDescription). There are: "
                                        + "\(known.joined(separator: ", ")).")
                            }
                            return value
                        }
                        guard settings.expireSeconds.map({ (1...31_536_000).contains($0) }) ?? true else {
                            throw CommandFailure(
                                "expireSeconds of the sensor \(settings.name.debugDescription) is \(settings.expireSeconds ?? 0); give 1 to "
                                    + "31536000.")
                        }
                        sensor.expireAfter = settings.expireSeconds.map { .seconds($0) }
                        return sensor
                    })
                home.prefix = prefix ?? home.prefix
                do throws(FerryError) { try home.check() } catch { throw CommandFailure(error.message) }
                return home
            }
        #endif
    }

    extension GatewaySettings {
        /// Where to: `nats` or `outlet`.
        func destination() throws -> GatewayDestination {
            guard let outlet else { return .nats(try gateway()) }
            let others: [(String, Bool)] = [
                ("nats", nats != nil), ("credentials", credentials != nil), ("authorities", authorities != nil),
                ("certificate", certificate != nil), ("key", key != nil), ("stream", stream != nil),
                ("prefix", prefix != nil), ("createStream", createStream != nil), ("streamBytes", streamBytes != nil),
                ("streamReplicas", streamReplicas != nil), ("downlink", downlink != nil), ("fleet", fleet != nil),
                ("allow", allow != nil),
            ]
            for (key, isThere) in others where isThere {
                throw CommandFailure(
                    "\(key) is of NATS, and the outlet is MQTT. Leave one of them out; an outlet's own keys are inside outlet."
                )
            }
            var bounds = OutletGateway.Configuration(name: name ?? ProcessInfo.processInfo.hostName)
            if let keepSeconds {
                try require((1...86_000).contains(keepSeconds), "keepSeconds", keepSeconds, "1 to 86000")
                bounds.retention = .seconds(keepSeconds)
                bounds.lookInterval = min(bounds.lookInterval, bounds.retention / 4)
            }
            if let answerSeconds {
                try require((0.1...3600).contains(answerSeconds), "answerSeconds", answerSeconds, "0.1 to 3600")
            }
            return .outlet(try outlet.destination(bounds, answer: answerSeconds.map { .seconds($0) }))
        }
    }
#endif
