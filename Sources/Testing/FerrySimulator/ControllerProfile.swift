public import Ferry

/// What a controller and its host make of a connection's parameters: the part that no specification fixes.
public struct ControllerProfile: Sendable, Hashable {
    /// The name to choose it by.
    public var name: String
    /// Where the figures come from, and which of them were fitted.
    public var source: String
    /// Most exchanges in one connection event; nil for as many as fit.
    public var packetsPerEvent: Int?
    /// Longest connection event; nil for the whole interval.
    public var eventLength: Duration?
    /// Packets that each controller buffers on their way to the air.
    public var controllerBuffers: Int
    /// Whether the controller tells its host of sent packets only when the event closes, so that buffers are filled
    /// again for the next event only; otherwise at each acknowledgement.
    public var reportsAtEventEnd: Bool
    /// Time between the host's queueing a unit and its being ready for the air. Makes an acknowledged operation take
    /// two connection events: the answer is too late for the event that brought the request.
    public var hostLatency: Duration

    /// Describes a controller.
    public init(
        name: String, source: String, packetsPerEvent: Int? = nil, eventLength: Duration? = nil,
        controllerBuffers: Int = 8, reportsAtEventEnd: Bool = false, hostLatency: Duration = .microseconds(500)
    ) {
        self.name = name
        self.source = source
        self.packetsPerEvent = packetsPerEvent
        self.eventLength = eventLength
        self.controllerBuffers = controllerBuffers
        self.reportsAtEventEnd = reportsAtEventEnd
        self.hostLatency = hostLatency
    }

    /// Checks the profile.
    ///
    /// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration`, the value and the legal range.
    public func validate() throws(FerryError) {
        let own = "controller profile '\(name)'"
        if let packetsPerEvent {
            try LinkParameters.check(
                (1...1_000).contains(packetsPerEvent), "A cap of \(packetsPerEvent) packets per event", "1 to 1000", own
            )
        }
        if let eventLength {
            try LinkParameters.check(
                eventLength >= .microseconds(1_250) && eventLength <= .seconds(4),
                "An event length of \(eventLength.milliseconds) ms", "1.25 ms to 4000 ms", own)
        }
        try LinkParameters.check(
            (1...1_024).contains(controllerBuffers), "A count of \(controllerBuffers) controller buffers", "1 to 1024",
            own)
        try LinkParameters.check(
            hostLatency >= .zero && hostLatency <= .seconds(1), "A host latency of \(hostLatency.milliseconds) ms",
            "0 to 1000 ms", own)
    }
}

extension ControllerProfile {
    /// As many packets as fit into the interval: what the arithmetic of published limits assumes.
    public static let ideal = ControllerProfile(name: "ideal", source: "arithmetic; packets fill the interval")

    /// CC254x: 4 packets per event.
    public static let cc254x = ControllerProfile(
        name: "cc254x", source: "Gomez, Oller, Paradells, Sensors 2012: at most 4 per event", packetsPerEvent: 4)

    /// iPhone of 2017: 7 packets of 27 bytes per event.
    public static let ios2017 = ControllerProfile(
        name: "ios-2017", source: "WWDC 2017 session 712; 7 packets per event inferred from its 37 kbps",
        packetsPerEvent: 7)

    /// iPhone of 2017 with extended data length: 3 packets of 251 bytes per event.
    public static let ios2017ExtendedDataLength = ControllerProfile(
        name: "ios-2017-dle", source: "WWDC 2017 session 712; 3 packets per event inferred from its 135 and 197 kbps",
        packetsPerEvent: 3)

    /// Nordic S132 at ATT_MTU 23 and 7.5 ms.
    public static let s132Short = ControllerProfile(
        name: "nordic-s132-mtu23", source: "Nordic S132 v7.1 throughput table; fitted: 9 packets per event",
        packetsPerEvent: 9)

    /// Nordic S132 at ATT_MTU 247, 50 ms, LE 1M.
    public static let s132Long1M = ControllerProfile(
        name: "nordic-s132-1m", source: "Nordic S132 v7.1 throughput table; fitted: 18 packets per event",
        packetsPerEvent: 18)

    /// Nordic S132 at ATT_MTU 247, 50 ms, LE 2M.
    public static let s132Long2M = ControllerProfile(
        name: "nordic-s132-2m", source: "Nordic S132 v7.1 throughput table; fitted: 34 packets per event",
        packetsPerEvent: 34)

    /// nRF Connect SDK throughput sample at 400 ms, LE 2M.
    public static let nrfConnect = ControllerProfile(
        name: "nrf-connect", source: "nRF Connect SDK throughput sample; fitted: 275 packets per event of 400 ms",
        packetsPerEvent: 275)

    /// Adafruit nRF52 library at ATT_MTU 23.
    public static let adafruitShort = ControllerProfile(
        name: "adafruit-nrf52-mtu23", source: "Adafruit nRF52 throughput example; fitted: 9 packets per event",
        packetsPerEvent: 9)

    /// Adafruit nRF52 library at ATT_MTU 247.
    public static let adafruitLong = ControllerProfile(
        name: "adafruit-nrf52-mtu247", source: "Adafruit nRF52 throughput example; fitted: 3 packets per event",
        packetsPerEvent: 3)

    /// Adafruit nRF52 library with LE 2M and long events.
    public static let adafruit2M = ControllerProfile(
        name: "adafruit-nrf52-2m",
        source: "adafruit/Adafruit_nRF52_Arduino#318; fitted: 132 packets per event of 187.5 ms", packetsPerEvent: 132)

    /// iPhone with extended data length: 3 packets of up to 251 bytes per event, at 15 ms and more.
    public static let ios = ControllerProfile(
        name: "ios",
        source: "WWDC 2017 session 712: 3 packets per event; figures 29 to 32 imply 3 to 4 (Documentation/Method.md)",
        packetsPerEvent: 3)

    /// Android 14 and later as met in the field: about 6 packets per event.
    public static let android = ControllerProfile(
        name: "android",
        source: "assumed: 6 packets per event; figures 33 and 34 imply 7 and 8 (Documentation/Method.md)",
        packetsPerEvent: 6)

    /// Linux with BlueZ: nothing published caps the event; the controller's buffers of a common USB dongle do.
    public static let bluez = ControllerProfile(
        name: "bluez", source: "no published cap; 10 controller buffers assumed", controllerBuffers: 10)

    /// Every profile that comes with Ferry.
    public static let all: [ControllerProfile] = [
        .ideal, .ios, .android, .bluez, .cc254x, .ios2017, .ios2017ExtendedDataLength, .s132Short, .s132Long1M,
        .s132Long2M, .nrfConnect, .adafruitShort, .adafruitLong, .adafruit2M,
    ]

    /// The profile of that name.
    public static func named(_ name: String) -> ControllerProfile? { all.first { $0.name == name } }
}
