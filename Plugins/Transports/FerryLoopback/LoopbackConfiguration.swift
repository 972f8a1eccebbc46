import Ferry
public import FerryBluetooth

extension LoopbackRadio {
    /// How a ``LoopbackRadio`` behaves. Everything has a default that suits a test which wants to be quick; values
    /// outside the stated ranges are refused by ``LoopbackRadio/init(time:configuration:)``.
    public struct Configuration: Sendable {
        /// Places of a peripheral's transmit queue, in values, shared by all centrals; also the places of a connection's
        /// queue of writes. 1 to 4096, default 8.
        ///
        /// The sharing rule: a central holds at most `max(1, transmitQueueDepth / n)` places, where `n` counts the
        /// centrals that are subscribed or still have values queued. So a central that takes nothing costs the others
        /// its share and no more, and every central always has one place. Places that a central holds already are not
        /// taken away when another one joins. A value for several centrals takes one place of each, or none at all.
        public var transmitQueueDepth = 8

        /// Time between the connection events of a connection. Default zero: as fast as values are queued. Otherwise
        /// 1 ms to 4 s; Bluetooth's own are 7.5 ms to 4 s (Core Specification 5.4, Vol 6, Part B, 4.5.1).
        public var connectionInterval: Duration = .zero

        /// Most packets (values, requests, responses, L2CAP frames) of one connection and direction in one connection
        /// event; 1 or more. Default nil: all that are queued when the event begins. It is not used when
        /// ``connectionInterval`` is zero.
        public var packetsPerEvent: Int?

        /// A model of the link layer, which then decides when packets cross, and whether; ``connectionInterval`` and
        /// ``packetsPerEvent`` are not used. All connections of the radio share its air. Default nil.
        public var linkLayer: (any LinkLayerModel)?

        /// ATT_MTU after the exchange, which begins as soon as a connection is made; before it is done ATT_MTU is 23.
        /// 23 to 517, default 185 as on many phones.
        public var attMTU = 185

        /// How strongly adapters hear one another unless ``LoopbackRadio/setRSSI(_:between:and:)`` says otherwise. In
        /// dBm, -127 to 20, default -40.
        public var rssi = -40

        /// Time between the advertising events of an advertiser. 1 ms to 10.24 s, default 20 ms (Core Specification
        /// 5.4, Vol 6, Part B, 4.4.2.2).
        public var advertisingInterval: Duration = .milliseconds(20)

        /// How long a connection outlives the peer's going out of range. 1 ms to 32 s, default 2 s (Core Specification
        /// 5.4, Vol 6, Part B, 4.5.2). It also bounds how long a disconnection waits for the queue before it, and how
        /// long a closed L2CAP channel waits while nothing of its queue leaves.
        public var supervisionTimeout: Duration = .seconds(2)

        /// How long an ATT request or indication may wait for its answer before the connection is given up. 1 ms to
        /// 1 hour, default 30 s (Core Specification 5.4, Vol 3, Part F, 3.3.3).
        public var requestTimeout: Duration = .seconds(30)

        /// Largest SDU of an L2CAP channel, in bytes: 23 to 65 535, default 2048.
        public var l2capMTU = 2048

        /// Largest K-frame payload of an L2CAP channel, in bytes: 23 to 65 533, default 247. A frame costs one credit
        /// (Core Specification 5.4, Vol 3, Part A, 4.22).
        public var l2capMPS = 247

        /// Credits that each side of an L2CAP channel grants: the frames it is ready to hold. 1 to 1024, default 16.
        /// ``l2capMTU`` times this is at most 16 MiB.
        public var l2capCredits = 16

        /// Injected faults. Default: none.
        public var faults = Faults()

        /// The defaults.
        public init() {}

        /// Refuses values outside their ranges.
        func validate() throws(FerryError) {
            try check("transmitQueueDepth", transmitQueueDepth, 1...4096)
            if connectionInterval != .zero {
                try check("connectionInterval", connectionInterval, .milliseconds(1) ... .seconds(4))
            }
            if let packetsPerEvent { try check("packetsPerEvent", packetsPerEvent, 1...Int(Int32.max)) }
            try check("attMTU", attMTU, 23...517)
            try check("rssi", rssi, -127...20)
            try check("advertisingInterval", advertisingInterval, .milliseconds(1) ... .milliseconds(10_240))
            try check("supervisionTimeout", supervisionTimeout, .milliseconds(1) ... .seconds(32))
            try check("requestTimeout", requestTimeout, .milliseconds(1) ... .seconds(3600))
            try check("l2capMTU", l2capMTU, 23...65_535)
            try check("l2capMPS", l2capMPS, 23...65_533)
            try check("l2capCredits", l2capCredits, 1...1024)
            guard l2capMTU * l2capCredits <= 16 << 20 else {
                throw FerryError(
                    .invalidConfiguration,
                    "LoopbackRadio: l2capMTU x l2capCredits is \(l2capMTU * l2capCredits) bytes; choose at most 16 MiB")
            }
            try faults.validate()
        }
    }
}

/// Refuses a value outside its range, naming the setting.
func check<Value: Comparable>(_ name: String, _ value: Value, _ range: ClosedRange<Value>) throws(FerryError) {
    guard !range.contains(value) else { return }
    throw FerryError(
        .invalidConfiguration,
        "LoopbackRadio: \(name) is \(value); choose one from \(range.lowerBound) to \(range.upperBound)")
}
