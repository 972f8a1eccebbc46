package import Ferry
package import FerrySimulator

/// One point of a sweep: everything that is measured together.
package struct BenchSettings: Codable, Hashable, Sendable {
    package var attMTU: Int
    /// Connection interval in milliseconds.
    package var interval: Double
    package var phy: String
    package var dataLength: Int
    var isEncrypted: Bool
    var framing: FramingChoice
    package var compression: CompressionChoice
    package var messageSize: Int
    /// Upper bound of the chunks; nil for ATT_MTU - 3.
    var chunkSize: Int?
    /// Whether the sender never pauses, or sends one message at a time with pauses of random length between them.
    package var pace = PaceChoice.saturated
    package var queueDepth: Int
    package var direction: DirectionChoice
    package var centrals: Int
    /// Probability that a packet is damaged.
    var packetErrorRate: Double
    package var profile: ControllerSettings
    /// Simulated time, or real time on other transports, in seconds.
    package var seconds: Double
    var seed: UInt64

    package init(
        attMTU: Int, interval: Double, phy: String, dataLength: Int, isEncrypted: Bool, framing: FramingChoice,
        compression: CompressionChoice, messageSize: Int, chunkSize: Int? = nil, pace: PaceChoice = .saturated,
        queueDepth: Int, direction: DirectionChoice, centrals: Int, packetErrorRate: Double,
        profile: ControllerSettings, seconds: Double, seed: UInt64
    ) {
        self.attMTU = attMTU
        self.interval = interval
        self.phy = phy
        self.dataLength = dataLength
        self.isEncrypted = isEncrypted
        self.framing = framing
        self.compression = compression
        self.messageSize = messageSize
        self.chunkSize = chunkSize
        self.pace = pace
        self.queueDepth = queueDepth
        self.direction = direction
        self.centrals = centrals
        self.packetErrorRate = packetErrorRate
        self.profile = profile
        self.seconds = seconds
        self.seed = seed
    }

    /// A second of what most links are like, to change one setting or another of.
    package static var usual: BenchSettings {
        BenchSettings(
            attMTU: 185, interval: 30, phy: "1M", dataLength: 251, isEncrypted: true, framing: .length,
            compression: .none,
            messageSize: 400, queueDepth: 8, direction: .notify, centrals: 1, packetErrorRate: 0,
            profile: ControllerSettings(.ideal), seconds: 1, seed: 1)
    }

    /// The link's parameters, checked.
    package func linkParameters() throws(FerryError) -> LinkParameters {
        guard let phy = PHY(rawValue: phy) else {
            let all = PHY.allCases.map(\.rawValue).joined(separator: ", ")
            throw FerryError(
                .invalidConfiguration,
                "The PHY '\(phy)' is not known: \(all) (Core Specification 5.4, Vol 6, Part A, 2).")
        }
        var parameters = LinkParameters()
        guard interval > 0, interval <= 1e6 else {
            throw FerryError(
                .invalidConfiguration,
                "A connection interval of \(interval) ms is not legal: 7.5 ms to 4000 ms in steps of 1.25 ms "
                    + "(Core Specification 5.4, Vol 6, Part B, 4.5.1).")
        }
        parameters.connectionInterval = .microseconds(Int64((interval * 1_000).rounded()))
        parameters.supervisionTimeout = .seconds(32)
        parameters.phy = phy
        parameters.dataLength = dataLength
        parameters.isEncrypted = isEncrypted
        parameters.attMTU = attMTU
        if packetErrorRate != 0 { parameters.loss = .packetErrorRate(packetErrorRate) }
        try parameters.validate()
        return parameters
    }

    /// Checks the settings that are not the link's.
    package func validate() throws(FerryError) {
        _ = try linkParameters()
        _ = try profile.controllerProfile()
        if let chunkSize { try Self.check(chunkSize, 4...512, "chunk size", "an attribute value's length") }
        try Self.check(messageSize, 0...(16 << 20), "message size", "Limits.maximumMessageSize")
        try framing.check(self)
        try Self.check(queueDepth, 1...4_096, "queue depth", "LoopbackRadio.Configuration.transmitQueueDepth")
        try Self.check(centrals, 1...20, "number of centrals", "one radio's simulated connections")
        guard seconds >= 0.1, seconds <= 86_400 else {
            throw FerryError(.invalidConfiguration, "A duration of \(seconds) s is not usable: 0.1 to 86400 (a day).")
        }
    }

    static func check(_ value: Int, _ range: ClosedRange<Int>, _ name: String, _ source: String)
        throws(FerryError)
    {
        guard range.contains(value) else {
            throw FerryError(
                .invalidConfiguration,
                "A \(name) of \(value) is not legal: \(range.lowerBound) to \(range.upperBound) (\(source)).")
        }
    }
}

/// The compressions that can be compared.
package enum CompressionChoice: String, Codable, CaseIterable, Sendable {
    case none
    case zlib
}

/// When messages are sent.
package enum PaceChoice: String, Codable, CaseIterable, Sendable {
    /// One after the other without a pause: shows throughput.
    case saturated
    /// One at a time on an idle link: shows latency.
    case spaced
}

/// Who sends.
package enum DirectionChoice: String, Codable, CaseIterable, Sendable {
    /// The peripheral notifies its centrals.
    case notify
    /// The centrals write to the peripheral without response.
    case write
}

/// A controller profile as it stands in a file: measured on real hardware, or a copy of a built-in one.
package struct ControllerSettings: Codable, Hashable, Sendable {
    package var name: String
    package var source: String
    package var packetsPerEvent: Int?
    /// In milliseconds.
    var eventLength: Double?
    var controllerBuffers: Int?
    var reportsAtEventEnd: Bool?
    /// In milliseconds.
    var hostLatency: Double?
    /// The measurement that it was made of, by `ferry bench --peer --keep`.
    package var measured: MeasuredHere?

    package init(_ profile: ControllerProfile) {
        name = profile.name
        source = profile.source
        packetsPerEvent = profile.packetsPerEvent
        eventLength = profile.eventLength?.milliseconds
        controllerBuffers = profile.controllerBuffers
        reportsAtEventEnd = profile.reportsAtEventEnd
        hostLatency = profile.hostLatency.milliseconds
    }

    /// The profile, checked.
    package func controllerProfile() throws(FerryError) -> ControllerProfile {
        var profile = ControllerProfile(name: name, source: source)
        profile.packetsPerEvent = packetsPerEvent
        profile.eventLength = try eventLength.map { value throws(FerryError) in
            try Self.duration(value, "event length")
        }
        if let controllerBuffers { profile.controllerBuffers = controllerBuffers }
        if let reportsAtEventEnd { profile.reportsAtEventEnd = reportsAtEventEnd }
        if let hostLatency { profile.hostLatency = try Self.duration(hostLatency, "host latency") }
        try profile.validate()
        return profile
    }

    private static func duration(_ milliseconds: Double, _ name: String) throws(FerryError) -> Duration {
        guard milliseconds >= 0, milliseconds <= 1e6 else {
            throw FerryError(.invalidConfiguration, "A profile's \(name) of \(milliseconds) ms is not usable.")
        }
        return .microseconds(Int64((milliseconds * 1_000).rounded()))
    }
}
