#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryLab
    import FerryNATS
    import FerryTransports
    import Foundation

    /// The file of `ferry gateway --config`: one JSON object. `Documentation/Gateway.md` has it.
    struct GatewaySettings: Codable, Equatable {
        var name: String?
        var transport: String?
        var store: String?
        var nats: NATSSettings?
        var outlet: OutletSettings?
        var downlink: DownlinkSettings?
        var fleet: FleetSettings?
        var trust: TrustSettings?
        var log: LogSettings?
        var metrics: String?
        var slots: Int?
        var peerBytes: Int?
        var largestRecord: Int?
        var keepSeconds: Double?
        var answerSeconds: Double?
        var statusSeconds: Double?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case name, transport, store, nats, outlet, downlink, fleet, trust, log, metrics, slots, peerBytes,
                largestRecord
            case keepSeconds, answerSeconds, statusSeconds
        }

        /// Reads a file.
        static func read(_ path: String) throws -> GatewaySettings {
            let data: Data
            do { data = try Data(contentsOf: URL(filePath: path)) } catch {
                throw CommandFailure("The configuration \(path) cannot be read: \(FileProblem.text(error)).")
            }
            return try read(data, path)
        }

        static func read(_ data: Data, _ path: String) throws -> GatewaySettings {
            do {
                guard let object = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
                    throw CommandFailure("The configuration \(path) is not one JSON object.")
                }
                try refuseUnknown(object, CodingKeys.self, path)
                func part(_ key: CodingKeys) -> [String: Any]? { object[key.rawValue] as? [String: Any] }
                try refuseUnknown(part(.nats), NATSSettings.CodingKeys.self, path, "nats.")
                try refuseUnknown(part(.downlink), DownlinkSettings.CodingKeys.self, path, "downlink.")
                try refuseUnknown(part(.fleet), FleetSettings.CodingKeys.self, path, "fleet.")
                try refuseUnknown(part(.trust), TrustSettings.CodingKeys.self, path, "trust.")
                try refuseUnknown(part(.log), LogSettings.CodingKeys.self, path, "log.")
                try refuseUnknown(part(.outlet), OutletSettings.CodingKeys.self, path, "outlet.")
                let home = part(.outlet)?[OutletSettings.CodingKeys.homeAssistant.rawValue] as? [String: Any]
                try refuseUnknown(home, HomeAssistantSettings.CodingKeys.self, path, "outlet.homeAssistant.")
                for sensor in home?[HomeAssistantSettings.CodingKeys.sensors.rawValue] as? [[String: Any]] ?? [] {
                    try refuseUnknown(
                        sensor, HomeAssistantSettings.Sensor.CodingKeys.self, path, "outlet.homeAssistant.sensors.")
                }
            } catch let failure as CommandFailure { throw failure } catch {
                throw CommandFailure("The configuration \(path) is no JSON: \(FileProblem.text(error)).")
            }
            do { return try JSONDecoder().decode(GatewaySettings.self, from: data) } catch DecodingError.typeMismatch(
                let type, let context)
            {
                let place = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(
                    separator: ".")
                throw CommandFailure("In the configuration \(path), '\(place)' must be \(FileProblem.name(of: type)).")
            } catch { throw CommandFailure("The configuration \(path) cannot be read: \(FileProblem.text(error)).") }
        }

        /// A key that means nothing is a typing error, or of another version.
        private static func refuseUnknown<Key: CodingKey & CaseIterable>(
            _ object: [String: Any]?, _ known: Key.Type, _ path: String, _ place: String = ""
        ) throws {
            let known = Key.allCases.map(\.stringValue)
            guard let unknown = object?.keys.sorted().first(where: { !known.contains($0) }) else { return }
            throw CommandFailure(
                "The configuration \(path) has '\(place)\(unknown)', which means nothing. There are: \(known.joined(separator: ", "))."
            )
        }

        func require(_ holds: Bool, _ key: String, _ value: some Any, _ range: String) throws {
            guard holds else { throw CommandFailure("\(key) is \(value); give \(range).") }
        }

        /// Who is trusted.
        func trustRequest() throws -> TrustRequest {
            var request = TrustRequest()
            switch trust?.seal {
            case nil: break
            case "always": request.sealing = .always
            case "never": request.sealing = .never
            case let other?:
                throw CommandFailure("trust.seal is \(other.debugDescription); give always or never, or leave it out.")
            }
            (request.identity, request.trusted) = (trust?.identity, trust?.trusted)
            // Its output is a log; `ferry invite` makes codes.
            request.showsCode = false
            return request
        }

        /// Where to, and how.
        func gateway() throws -> Gateway.Configuration {
            guard let nats, let servers = nats.servers, !servers.isEmpty else {
                throw CommandFailure(
                    "No NATS server is named. Give --nats nats://HOST:4222, or nats.servers in the configuration; or --mqtt for a broker, or "
                        + "--http for a server.")
            }
            var configuration = Gateway.Configuration(
                servers: servers, name: gatewayName, stream: nats.stream ?? "ferry",
                prefix: nats.prefix ?? "ferry.records")
            configuration.servers.credentialsFile = nats.credentials
            configuration.servers.authoritiesFile = nats.authorities
            configuration.servers.certificateFile = nats.certificate
            configuration.servers.keyFile = nats.key
            configuration.createsStream = nats.createStream ?? true
            if let bytes = nats.streamBytes {
                try require(bytes > 0, "nats.streamBytes", bytes, "at least 1")
                configuration.stream.maximumBytes = bytes
            }
            if let replicas = nats.streamReplicas {
                try require((1...5).contains(replicas), "nats.streamReplicas", replicas, "1 to 5")
                configuration.stream.replicas = replicas
            }
            if let answer = try answerTime() {
                configuration.servers.connectTimeout = answer
                configuration.servers.requestTimeout = answer
                configuration.patience = answer
            }
            if let retention = try retention() {
                configuration.retention = retention
                configuration.lookInterval = min(configuration.lookInterval, configuration.retention / 4)
                let window = (configuration.retention + configuration.lookInterval).components.seconds + 1
                configuration.stream.duplicateWindow = max(.seconds(600), .seconds(window))
            }
            if fleet != nil { configuration.stream.subjects.append("\(Self.claims).>") }
            return configuration
        }

        var gatewayName: String { name ?? ProcessInfo.processInfo.hostName }

        /// How long an answer of a server may take; nil where it is not said.
        func answerTime() throws -> Duration? {
            guard let answerSeconds else { return nil }
            try require((0.1...3600).contains(answerSeconds), "answerSeconds", answerSeconds, "0.1 to 3600")
            return .seconds(answerSeconds)
        }

        /// How long a record is kept after the server's answer; nil where it is not said.
        func retention() throws -> Duration? {
            guard let keepSeconds else { return nil }
            try require((1...86_000).contains(keepSeconds), "keepSeconds", keepSeconds, "1 to 86000")
            return .seconds(keepSeconds)
        }

        /// What subjects begin with on which gateways of a fleet say whose peer they have.
        static let claims = "ferry.owners"

        /// Where messages for peers come from; nil where none are carried.
        func messages() throws -> Downlink.Configuration? {
            guard let downlink else { return nil }
            guard let stream = downlink.stream else {
                throw CommandFailure("downlink has no stream; name the stream of messages for peers.")
            }
            let gateway = try gateway()
            var configuration = Downlink.Configuration(
                servers: gateway.servers.servers, stream: stream, prefix: downlink.prefix ?? "ferry.commands")
            configuration.servers = gateway.servers
            configuration.createsStream = gateway.createsStream
            configuration.stream.replicas = gateway.stream.replicas
            if let bytes = downlink.streamBytes {
                try require(bytes > 0, "downlink.streamBytes", bytes, "at least 1")
                configuration.stream.maximumBytes = bytes
            }
            guard stream != gateway.stream.name else {
                throw CommandFailure(
                    "downlink.stream and nats.stream are both \(stream). Name two: one for records, one for messages.")
            }
            return configuration
        }

        /// By which leases; nil without a fleet.
        func leases() throws -> LeaseKeeper.Configuration? {
            guard let fleet else { return nil }
            guard let bucket = fleet.bucket else {
                throw CommandFailure("fleet has no bucket; name the bucket of its leases.")
            }
            let gateway = try gateway()
            var configuration = LeaseKeeper.Configuration(
                servers: gateway.servers.servers, name: gateway.name, bucket: bucket)
            configuration.servers = gateway.servers
            configuration.replicas = gateway.stream.replicas
            configuration.createsBucket = gateway.createsStream
            configuration.claims = Self.claims
            if let capacity = fleet.capacity {
                try require((1...100_000).contains(capacity), "fleet.capacity", capacity, "1 to 100000")
                configuration.capacity = capacity
            }
            let leaseSeconds = fleet.leaseSeconds ?? 30
            try require((2...3600).contains(leaseSeconds), "fleet.leaseSeconds", leaseSeconds, "2 to 3600")
            configuration.policy = .lasting(.seconds(leaseSeconds))
            return configuration
        }

        /// The keys whose peers are taken; nil where no list is named.
        func allowed() throws -> AllowedKeys.Configuration? { try trust?.allow.map(allowed(in:)) }

        /// The list of keys in a bucket.
        func allowed(in bucket: String) throws -> AllowedKeys.Configuration {
            let gateway = try gateway()
            var configuration = AllowedKeys.Configuration(servers: gateway.servers, bucket: bucket)
            configuration.createsBucket = gateway.createsStream
            configuration.replicas = gateway.stream.replicas
            configuration.acceptsStrangers = trust?.acceptsStrangers ?? false
            return configuration
        }

        /// Whether peers are taken that are neither known nor allowed: false unless it is said, or only this machine can come and no
        /// list says who may.
        func takesStrangers(over transport: NamedTransport?) -> Bool {
            trust?.acceptsStrangers ?? (trust?.allow == nil && transport?.isOfThisMachine == true)
        }

        /// How many peers are served at once; nil where it is not said.
        func peersAtOnce() throws -> Int? {
            if let slots { try require((1...10_000).contains(slots), "slots", slots, "1 to 10000") }
            return slots
        }

        /// How many bytes of records one peer may have in the store; nil where it is not said.
        func bytesOfAPeer() throws -> Int? {
            if let peerBytes {
                try require((1 << 16...1 << 40).contains(peerBytes), "peerBytes", peerBytes, "65536 to 2^40")
            }
            return peerBytes
        }

        /// How peers of a fleet are visited.
        func rounds() throws -> PeerRounds.Configuration {
            var bounds = PeerRounds.Configuration()
            bounds.slots = try peersAtOnce() ?? bounds.slots
            if let storeBytes = fleet?.storeBytes {
                try require(storeBytes >= 1 << 20, "fleet.storeBytes", storeBytes, "at least 1048576")
                bounds.highWaterBytes = storeBytes
            }
            return bounds
        }

        /// How often a line of status is printed.
        func status() throws -> Duration {
            let seconds = statusSeconds ?? 60
            try require((0.1...86_400).contains(seconds), "statusSeconds", seconds, "0.1 to 86400")
            return .seconds(seconds)
        }
    }

    /// The object `nats`: the servers, and the stream that gets the records.
    struct NATSSettings: Codable, Equatable {
        var servers: [String]?
        var credentials: String?
        var authorities: String?
        var certificate: String?
        var key: String?
        var stream: String?
        var prefix: String?
        var createStream: Bool?
        var streamBytes: Int64?
        var streamReplicas: Int?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case servers, credentials, authorities, certificate, key, stream, prefix, createStream, streamBytes,
                streamReplicas
        }
    }

    /// The object `downlink`: messages for peers.
    struct DownlinkSettings: Codable, Equatable {
        var stream: String?
        var prefix: String?
        var streamBytes: Int64?

        enum CodingKeys: String, CodingKey, CaseIterable { case stream, prefix, streamBytes }
    }

    /// The object `fleet`: gateways that share their peers.
    struct FleetSettings: Codable, Equatable {
        var bucket: String?
        var leaseSeconds: Double?
        var capacity: Int?
        var storeBytes: Int?
        var peers: [String: String]?

        enum CodingKeys: String, CodingKey, CaseIterable { case bucket, leaseSeconds, capacity, storeBytes, peers }
    }

    /// The object `trust`: who may come, and how that is proven.
    struct TrustSettings: Codable, Equatable {
        var seal: String?
        var identity: String?
        var trusted: String?
        var allow: String?
        var acceptsStrangers: Bool?

        enum CodingKeys: String, CodingKey, CaseIterable { case seal, identity, trusted, allow, acceptsStrangers }
    }

    /// The object `log`.
    struct LogSettings: Codable, Equatable {
        var level: String?
        var format: String?

        enum CodingKeys: String, CodingKey, CaseIterable { case level, format }
    }

    extension LeasePolicy {
        /// The rules by a lease's time, which the other times follow below 30 s.
        static func lasting(_ time: Duration) -> LeasePolicy {
            var policy = LeasePolicy()
            policy.timeToLive = time
            policy.startup = .seconds(20)
            let part = min(1, time / .seconds(30))
            policy.serverSkew = policy.serverSkew * part
            policy.stopping = policy.stopping * part
            policy.requestTimeout = policy.requestTimeout * part
            policy.poll = policy.poll * part
            policy.spread = policy.spread * part
            policy.reservation = policy.reservation * part
            policy.startup = policy.startup * part
            return policy
        }
    }
#endif
