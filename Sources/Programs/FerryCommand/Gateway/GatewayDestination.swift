#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import Foundation
    #if HTTP
        import FerryHTTP
    #endif
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
        /// The line for the log once the server or broker accepts the gateway; without secrets.
        let welcome: String
        /// Opens it.
        let open: @Sendable () async throws(FerryError) -> any Outlet
        /// Opens it beside a gateway that runs, which keeps its connection.
        let openForLook: @Sendable () async throws(FerryError) -> any Outlet
    }

    /// The object `outlet` of a gateway's configuration: `mqtt` or `http`, and its settings.
    struct OutletSettings: Codable, Equatable {
        var mqtt: String?
        var http: String?
        var prefix: String?
        var client: String?
        var homeAssistant: HomeAssistantSettings?
        var contentType: String?
        var eventType: String?
        var token: String?
        var authorities: String?
        var certificate: String?
        var key: String?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case mqtt, http, prefix, client, homeAssistant, contentType, eventType, token, authorities, certificate, key
        }

        func destination(_ bounds: OutletGateway.Configuration, answer: Duration?) throws -> OutletDestination {
            switch (mqtt, http) {
            case (let mqtt?, nil):
                try refuse(
                    [("contentType", contentType), ("eventType", eventType), ("token", token)], of: "HTTP", "MQTT")
                return try broker(mqtt, bounds, answer)
            case (nil, let http?):
                try refuse(
                    [("prefix", prefix), ("client", client), ("homeAssistant", homeAssistant.map { _ in "" })],
                    of: "MQTT", "HTTP")
                return try server(http, bounds, answer)
            case (nil, nil):
                throw CommandFailure("The outlet has no address. Give it mqtt, a broker, or http, a server.")
            case (_?, _?):
                throw CommandFailure("The outlet has mqtt and http, and is one of them. Leave the other out.")
            }
        }

        private func refuse(_ keys: [(String, String?)], of other: String, _ kind: String) throws {
            for (key, value) in keys where value != nil {
                throw CommandFailure("outlet.\(key) is of \(other), and the outlet is \(kind). Leave it out.")
            }
        }

        #if MQTT
            private func broker(
                _ address: String, _ bounds: OutletGateway.Configuration, _ answer: Duration?
            ) throws -> OutletDestination {
                var broker = try MQTTConfiguration(address)
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
                    bounds: bounds, welcome: "the broker at \(broker.publicAddress) lets the gateway in",
                    open: { [broker] () throws(FerryError) in
                        try await MQTTOutlet.open(broker) { note("ferry: \($0.message)") }
                    },
                    openForLook: { [guest] () throws(FerryError) in try await MQTTOutlet.open(guest) })
            }
        #else
            private func broker(
                _ address: String, _ bounds: OutletGateway.Configuration, _ answer: Duration?
            ) throws -> OutletDestination {
                throw CommandFailure(
                    "MQTT is not part of this build. Install libmosquitto-dev, and build with the trait MQTT.")
            }
        #endif

        #if HTTP
            private func server(
                _ address: String, _ bounds: OutletGateway.Configuration, _ answer: Duration?
            ) throws -> OutletDestination {
                var server = try HTTPConfiguration(address)
                server.contentType = contentType ?? server.contentType
                server.eventType = eventType ?? server.eventType
                server.tokenFile = token
                server.authoritiesFile = authorities
                server.certificateFile = certificate
                server.keyFile = key
                server.timeout = answer ?? server.timeout
                var bounds = bounds
                bounds.maximumInFlight = server.maximumInFlight
                let open = { @Sendable [server] () async throws(FerryError) -> any Outlet in
                    try await HTTPOutlet.open(server)
                }
                return OutletDestination(
                    bounds: bounds, welcome: "the server at \(server.publicAddress) answers", open: open,
                    openForLook: open)
            }
        #else
            private func server(
                _ address: String, _ bounds: OutletGateway.Configuration, _ answer: Duration?
            ) throws -> OutletDestination {
                throw CommandFailure("HTTP is not part of this build. Build with the trait HTTP.")
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
            for (key, isThere) in [
                ("nats", nats != nil), ("downlink", downlink != nil), ("fleet", fleet != nil),
                ("trust.allow", trust?.allow != nil),
            ] where isThere {
                throw CommandFailure(
                    "\(key) is of NATS, and there is an outlet. Leave one of them out; an outlet's own keys are inside outlet."
                )
            }
            var bounds = OutletGateway.Configuration(name: gatewayName)
            if let retention = try retention() {
                bounds.retention = retention
                bounds.lookInterval = min(bounds.lookInterval, bounds.retention / 4)
            }
            return .outlet(try outlet.destination(bounds, answer: try answerTime()))
        }
    }
#endif
