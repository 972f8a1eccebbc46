public import Ferry
public import FerryBluetooth

/// What a host sends in a ``measure(_:on:profile:seed:events:)``.
public struct Traffic: Sendable, Hashable {
    /// Who sends.
    public var sender: LinkLayerRole
    /// What, over and over.
    public var unit: LinkLayerUnit
    /// How the next one follows.
    public var pace: Pace

    /// How one unit follows the other.
    public enum Pace: Sendable, Hashable {
        /// The host's queue is kept full at this depth, in units.
        case stream(queueDepth: Int)
        /// The peer's host answers each unit with an ATT PDU of `responseLength` bytes, and only then the next is sent.
        case acknowledged(responseLength: Int)
    }

    /// Describes traffic.
    public init(sender: LinkLayerRole, unit: LinkLayerUnit, pace: Pace = .stream(queueDepth: 8)) {
        self.sender = sender
        self.unit = unit
        self.pace = pace
    }

    /// Notifications of `valueLength` bytes, as fast as the link takes them (ATT adds 3 bytes).
    public static func notifications(valueLength: Int, queueDepth: Int = 8) -> Traffic {
        Traffic(
            sender: .peripheral, unit: .attribute(pduLength: valueLength + 3), pace: .stream(queueDepth: queueDepth))
    }

    /// Write commands of `valueLength` bytes, as fast as the link takes them.
    public static func writeCommands(valueLength: Int, queueDepth: Int = 8) -> Traffic {
        Traffic(sender: .central, unit: .attribute(pduLength: valueLength + 3), pace: .stream(queueDepth: queueDepth))
    }

    /// Write requests of `valueLength` bytes, each answered by a Write Response of 1 byte.
    public static func writeRequests(valueLength: Int) -> Traffic {
        Traffic(
            sender: .central, unit: .attribute(pduLength: valueLength + 3), pace: .acknowledged(responseLength: 1))
    }
}

/// What a measurement on the radio alone found.
public struct RadioMeasurement: Sendable, Hashable {
    /// How long it lasted, in simulated time: a whole number of connection intervals.
    public let duration: Duration
    /// Units that arrived whole.
    public let units: Int
    /// What happened on the air.
    public let statistics: ConnectionStatistics
    /// Link-layer events that were worked through.
    public let workedEvents: Int

    /// Bits per second of which each unit carries `byteCount` bytes.
    public func goodput(bytesPerUnit byteCount: Int) -> Double {
        Double(units * byteCount * 8) / (Double(duration.wholeNanoseconds) / 1e9)
    }
}

/// Runs one kind of traffic over one connection, hosts and apps taking no time beyond the profile's host latency.
///
/// - Parameters:
///   - traffic: who sends what.
///   - parameters: the link's.
///   - profile: the controllers'.
///   - seed: decides which packets are damaged.
///   - events: for how many connection intervals; the first, in which queues fill, is not counted.
/// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration` when a parameter is outside its legal range.
public func measure(
    _ traffic: Traffic, on parameters: LinkParameters, profile: ControllerProfile = .ideal, seed: UInt64 = 1,
    events: Int = 200
) throws(FerryError) -> RadioMeasurement {
    var radio = try RadioSimulator(parameters, profile: profile, seed: seed)
    let connection = LinkLayerConnection(rawValue: 0)
    let peer = traffic.sender.peer
    let interval = parameters.connectionInterval.wholeNanoseconds
    // Queued early enough before the second anchor point that the host latency has passed.
    let start = Timestamp(nanoseconds: interval)
    let end = start + .nanoseconds(interval * Int64(max(1, events)))
    radio.open(connection, at: .zero)

    let initialUnits = if case .stream(let depth) = traffic.pace { max(1, depth) } else { 1 }
    for _ in 0..<initialUnits { radio.enqueue(traffic.unit, from: traffic.sender, on: connection, at: .zero) }
    var units = 0
    var now = Timestamp.zero
    while let deadline = radio.deadline {
        now = max(now, deadline)
        guard now < end else { break }
        while let event = radio.poll(at: now) {
            switch (event, traffic.pace) {
            case (.accepted(_, traffic.sender), .stream):
                radio.enqueue(traffic.unit, from: traffic.sender, on: connection, at: now)
            case (.delivered(_, traffic.sender), let pace):
                if now >= start { units += 1 }
                if case .acknowledged(let length) = pace {
                    radio.enqueue(.attribute(pduLength: length), from: peer, on: connection, at: now)
                }
            case (.delivered, .acknowledged):
                radio.enqueue(traffic.unit, from: traffic.sender, on: connection, at: now)
            default: break
            }
        }
    }
    return RadioMeasurement(
        duration: end - start, units: units, statistics: radio.statistics(of: connection) ?? ConnectionStatistics(),
        workedEvents: radio.workedEvents)
}
