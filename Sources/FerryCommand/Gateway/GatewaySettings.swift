#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import FerryTransports
    import Foundation

    /// The file of `ferry gateway --config`: one JSON object. `Documentation/Gateway.md` has it.
    struct GatewaySettings: Codable, Equatable {
        var transport: String?
        var store: String?
        var nats: [String]?
        var outlet: OutletSettings?
        var credentials: String?
        var authorities: String?
        var certificate: String?
        var key: String?
        var name: String?
        var stream: String?
        var prefix: String?
        var createStream: Bool?
        var streamBytes: Int64?
        var streamReplicas: Int?
        var keepSeconds: Double?
        var answerSeconds: Double?
        var statusSeconds: Double?
        var slots: Int?
        var peerBytes: Int?
        var largestRecord: Int?
        var downlink: String?
        var downlinkPrefix: String?
        var downlinkBytes: Int64?
        var fleet: String?
        var leaseSeconds: Double?
        var capacity: Int?
        var storeBytes: Int?
        var peers: [String: String]?
        var allow: String?
        var acceptsStrangers: Bool?
        var metrics: String?
        var logLevel: String?
        var logFormat: String?
        var sealed: Bool?
        var plain: Bool?
        var identity: String?
        var trusted: String?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case transport, store, nats, outlet, credentials, authorities, certificate, key, name, stream, prefix,
                createStream
            case streamBytes, streamReplicas, keepSeconds, answerSeconds, statusSeconds, slots, peerBytes, largestRecord
            case downlink, downlinkPrefix, downlinkBytes, fleet, leaseSeconds, capacity, storeBytes, peers, allow,
                acceptsStrangers, metrics, logLevel, logFormat, sealed, plain, identity, trusted
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
                let outlet = object[CodingKeys.outlet.rawValue] as? [String: Any]
                try refuseUnknown(outlet, OutletSettings.CodingKeys.self, path, "outlet.")
                let home = outlet?[OutletSettings.CodingKeys.homeAssistant.rawValue] as? [String: Any]
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
        func trust() throws -> TrustRequest {
            var request = TrustRequest()
            (request.isSealed, request.isPlain) = (sealed ?? false, plain ?? false)
            (request.identity, request.trusted) = (identity, trusted)
            guard !(request.isSealed && request.isPlain) else {
                throw CommandFailure("sealed and plain exclude each other; give one of them.")
            }
            // Its output is a log; `ferry invite` makes codes.
            request.showsCode = false
            return request
        }

        /// Where to, and how.
        func gateway() throws -> Gateway.Configuration {
            guard let nats, !nats.isEmpty else {
                throw CommandFailure(
                    "No NATS server is named. Give --nats nats://HOST:4222, or nats in the configuration; or --mqtt for a broker, or --http for a server."
                )
            }
            let name = name ?? ProcessInfo.processInfo.hostName
            var configuration = Gateway.Configuration(
                servers: nats, name: name, stream: stream ?? "ferry", prefix: prefix ?? "ferry.records")
            configuration.servers.credentialsFile = credentials
            configuration.servers.authoritiesFile = authorities
            configuration.servers.certificateFile = certificate
            configuration.servers.keyFile = key
            configuration.createsStream = createStream ?? true
            if let streamBytes {
                try require(streamBytes > 0, "streamBytes", streamBytes, "at least 1")
                configuration.stream.maximumBytes = streamBytes
            }
            if let streamReplicas {
                try require((1...5).contains(streamReplicas), "streamReplicas", streamReplicas, "1 to 5")
                configuration.stream.replicas = streamReplicas
            }
            if let answerSeconds {
                try require((0.1...3600).contains(answerSeconds), "answerSeconds", answerSeconds, "0.1 to 3600")
                configuration.servers.connectTimeout = .seconds(answerSeconds)
                configuration.servers.requestTimeout = .seconds(answerSeconds)
                configuration.patience = .seconds(answerSeconds)
            }
            if let keepSeconds {
                try require((1...86_000).contains(keepSeconds), "keepSeconds", keepSeconds, "1 to 86000")
                configuration.retention = .seconds(keepSeconds)
                configuration.lookInterval = min(configuration.lookInterval, configuration.retention / 4)
                let window = (configuration.retention + configuration.lookInterval).components.seconds + 1
                configuration.stream.duplicateWindow = max(.seconds(600), .seconds(window))
            }
            if fleet != nil { configuration.stream.subjects.append("\(Self.claims).>") }
            return configuration
        }

        /// What subjects begin with on which gateways of a fleet say whose peer they have.
        static let claims = "ferry.owners"

        /// Where messages for peers come from; nil where none are carried.
        func messages() throws -> Downlink.Configuration? {
            guard let downlink else {
                for (key, isThere) in [
                    ("downlinkPrefix", downlinkPrefix != nil), ("downlinkBytes", downlinkBytes != nil),
                ] where isThere {
                    throw CommandFailure("\(key) goes with downlink; name the stream of messages for peers.")
                }
                return nil
            }
            let gateway = try gateway()
            var configuration = Downlink.Configuration(
                servers: gateway.servers.servers, stream: downlink, prefix: downlinkPrefix ?? "ferry.commands")
            configuration.servers = gateway.servers
            configuration.createsStream = gateway.createsStream
            configuration.stream.replicas = gateway.stream.replicas
            if let downlinkBytes {
                try require(downlinkBytes > 0, "downlinkBytes", downlinkBytes, "at least 1")
                configuration.stream.maximumBytes = downlinkBytes
            }
            guard downlink != gateway.stream.name else {
                throw CommandFailure(
                    "downlink and stream are both \(downlink); records and messages need streams of their own.")
            }
            return configuration
        }

        /// By which leases; nil without a fleet.
        func leases() throws -> LeaseKeeper.Configuration? {
            guard let fleet else {
                for (key, isThere) in [
                    ("leaseSeconds", leaseSeconds != nil), ("capacity", capacity != nil),
                    ("storeBytes", storeBytes != nil), ("peers", peers != nil),
                ] {
                    guard !isThere else {
                        throw CommandFailure("\(key) goes with fleet; name the bucket of its leases.")
                    }
                }
                return nil
            }
            let gateway = try gateway()
            var configuration = LeaseKeeper.Configuration(
                servers: gateway.servers.servers, name: gateway.name, bucket: fleet)
            configuration.servers = gateway.servers
            configuration.replicas = gateway.stream.replicas
            configuration.createsBucket = gateway.createsStream
            configuration.claims = Self.claims
            if let capacity {
                try require((1...100_000).contains(capacity), "capacity", capacity, "1 to 100000")
                configuration.capacity = capacity
            }
            let leaseSeconds = leaseSeconds ?? 30
            try require((2...3600).contains(leaseSeconds), "leaseSeconds", leaseSeconds, "2 to 3600")
            configuration.policy = .lasting(.seconds(leaseSeconds))
            return configuration
        }

        /// The keys whose peers are taken; nil where no list is named.
        func allowed() throws -> AllowedKeys.Configuration? { try allow.map(allowed(in:)) }

        /// The list of keys in a bucket.
        func allowed(in bucket: String) throws -> AllowedKeys.Configuration {
            let gateway = try gateway()
            var configuration = AllowedKeys.Configuration(servers: gateway.servers, bucket: bucket)
            configuration.createsBucket = gateway.createsStream
            configuration.replicas = gateway.stream.replicas
            configuration.acceptsStrangers = acceptsStrangers ?? false
            return configuration
        }

        /// Whether peers are taken that are neither known nor allowed: false unless it is said, or only this machine can come and no
        /// list says who may.
        func takesStrangers(over transport: NamedTransport?) -> Bool {
            acceptsStrangers ?? (allow == nil && transport?.isOfThisMachine == true)
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
            if let storeBytes {
                try require(storeBytes >= 1 << 20, "storeBytes", storeBytes, "at least 1048576")
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
