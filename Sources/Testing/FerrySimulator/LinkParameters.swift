public import Ferry

/// What the two ends of a connection have agreed on, and how often packets are lost.
///
/// ``validate()`` refuses what no controller may use, naming the legal range and where it stands.
public struct LinkParameters: Sendable, Hashable {
    /// Time between connection events. Default 30 ms.
    public var connectionInterval: Duration = .milliseconds(30)
    /// Connection events that the peripheral may sleep through when it has nothing to send. Default 0.
    public var peripheralLatency = 0
    /// Silence after which the connection counts as lost. Default 4 s.
    public var supervisionTimeout: Duration = .seconds(4)
    /// The PHY of both directions. Default LE 1M.
    public var phy: PHY = .le1M
    /// Most payload bytes in one link-layer packet, in both directions: 27, up to 251 with data length extension.
    /// Default 251.
    public var dataLength = 251
    /// Whether packets carry a 4-byte MIC. Default true.
    public var isEncrypted = true
    /// ATT_MTU. Default 247.
    public var attMTU = 247
    /// How often packets are damaged. Default never.
    public var loss: PacketLoss = .none

    /// The defaults.
    public init() {}

    /// Legal connection intervals, in steps of 1.25 ms.
    public static let connectionIntervals: ClosedRange<Duration> = .microseconds(7_500) ... .seconds(4)
    /// Legal peripheral latencies, in events.
    public static let peripheralLatencies = 0...499
    /// Legal supervision timeouts, in steps of 10 ms.
    public static let supervisionTimeouts: ClosedRange<Duration> = .milliseconds(100) ... .seconds(32)
    /// Legal data lengths in bytes.
    public static let dataLengths = 27...251
    /// Legal values of ATT_MTU: above 517 nothing is gained, as a value has at most 512 bytes.
    public static let attMTUs = 23...517

    /// Checks every parameter.
    ///
    /// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration`, the value, the legal range and its source.
    public func validate() throws(FerryError) {
        try Self.validate(connectionInterval: connectionInterval)
        try Self.validate(attMTU: attMTU)
        try Self.validate(dataLength: dataLength)
        try Self.check(
            Self.peripheralLatencies.contains(peripheralLatency), "A peripheral latency of \(peripheralLatency) events",
            "0 to 499 events", "Core Specification 5.4, Vol 6, Part B, 4.5.1")
        try Self.check(
            Self.supervisionTimeouts.contains(supervisionTimeout)
                && supervisionTimeout.wholeNanoseconds % 10_000_000 == 0,
            "A supervision timeout of \(supervisionTimeout.milliseconds) ms", "100 ms to 32 s in steps of 10 ms",
            "Core Specification 5.4, Vol 6, Part B, 4.5.2")
        let shortest = connectionInterval * (2 * (1 + peripheralLatency))
        try Self.check(
            supervisionTimeout > shortest, "A supervision timeout of \(supervisionTimeout.milliseconds) ms",
            "more than 2 x (1 + latency) x interval, here \(shortest.milliseconds) ms",
            "Core Specification 5.4, Vol 6, Part B, 4.5.2")
        try loss.validate()
    }

    /// Checks a connection interval alone.
    ///
    /// - Throws: as ``validate()``.
    public static func validate(connectionInterval interval: Duration) throws(FerryError) {
        try check(
            connectionIntervals.contains(interval) && interval.wholeNanoseconds % 1_250_000 == 0,
            "A connection interval of \(interval.milliseconds) ms", "7.5 ms to 4000 ms in steps of 1.25 ms",
            "Core Specification 5.4, Vol 6, Part B, 4.5.1")
    }

    /// Checks an ATT_MTU alone.
    ///
    /// - Throws: as ``validate()``.
    public static func validate(attMTU: Int) throws(FerryError) {
        try check(
            attMTUs.contains(attMTU), "An ATT_MTU of \(attMTU)", "23 to 517",
            "Core Specification 5.4, Vol 3, Part G, 5.2.1 for 23; Vol 3, Part F, 3.2.9: a value has at most 512 bytes")
    }

    /// Checks a data length alone.
    ///
    /// - Throws: as ``validate()``.
    public static func validate(dataLength: Int) throws(FerryError) {
        try check(
            dataLengths.contains(dataLength), "A data length of \(dataLength) bytes", "27 to 251 bytes on every PHY",
            "Core Specification 5.4, Vol 6, Part B, 4.5.10")
    }

    static func check(_ isLegal: Bool, _ what: String, _ range: String, _ source: String) throws(FerryError) {
        guard isLegal else {
            throw FerryError(.invalidConfiguration, "\(what) is not legal: \(range) (\(source)).")
        }
    }
}

/// How often packets arrive damaged. Losses are independent of one another.
public enum PacketLoss: Sendable, Hashable {
    /// Never.
    case none
    /// The same probability, 0 to 1, for every packet, however long.
    case packetErrorRate(Double)
    /// A probability, 0 to 1, per bit, so that long packets are lost more often.
    case bitErrorRate(Double)

    func validate() throws(FerryError) {
        switch self {
        case .none: break
        case .packetErrorRate(let rate), .bitErrorRate(let rate):
            try LinkParameters.check(
                rate >= 0 && rate <= 1, "An error rate of \(rate)", "0 to 1", "a probability")
        }
    }
}

extension Duration {
    /// In milliseconds.
    public var milliseconds: Double { Double(wholeNanoseconds) / 1e6 }
}
