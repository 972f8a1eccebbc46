import Ferry
import FerrySimulator

/// What measurements say about predictions with one controller: how far they lie apart, and which they are.
struct Evidence: Codable, Sendable {
    /// Measured over simulated throughput of the judged figures, smallest and largest; 1 is between them.
    var lowest: Double
    var highest: Double
    /// The judged figures, by kind.
    var complete: [String]
    var part: [String]
    /// What the figures were measured with.
    var devices: String
    /// The measurement with this device; the published figures are not asked then.
    var here: Here?

    /// A measurement of `ferry bench --peer`, beside what the profile that was made of it gives for its conditions.
    struct Here: Codable, Sendable {
        var measured: MeasuredHere
        /// In kbit/s.
        var simulated: Double
    }

    /// - Parameters:
    ///   - profile: the simulated controller. A measurement in it is evidence; one of a built-in profile's name that differs from it is
    ///     a device that is not known.
    ///   - isCoded: whether it sends on LE Coded.
    /// - Throws: `invalidConfiguration` for a measurement that cannot be one.
    init(_ profile: ControllerSettings, isCoded: Bool) throws(FerryError) {
        let controller = try profile.controllerProfile()
        guard let measured = profile.measured else {
            let isBuiltIn = ControllerProfile.named(profile.name) == controller
            try self.init(controller: isBuiltIn ? profile.name : "", isCoded: isCoded)
            return
        }
        let simulated = try measured.simulated(controller)
        self.init(Here(measured: measured, simulated: simulated))
    }

    private init(_ here: Here) {
        let ratio = here.simulated > 0 ? here.measured.goodput / here.simulated : 1
        (lowest, highest, complete, part) = (min(1, ratio), max(1, ratio), [], [])
        devices = here.measured.peer
        self.here = here
    }

    /// - Parameters:
    ///   - controller: the name of the profile that is simulated.
    ///   - isCoded: whether it sends on LE Coded, whose events hold few packets.
    init(controller: String, isCoded: Bool = false) throws(FerryError) {
        let device: PublishedFigure.Device? =
            switch controller {
            case "ios", "ios-2017-dle": .phone
            case "ios-2017": .phone27
            case "nrf-connect": .nrfConnect
            case let name where name.hasPrefix("nordic-s132"): .softDevice
            case let name where name.hasPrefix("adafruit-nrf52"): .adafruit
            default: nil
            }
        let isAndroid = controller == ControllerProfile.android.name
        var figures = PublishedFigure.all.filter { figure in
            guard figure.kind == .complete || figure.kind == .part, isCoded == figure.phy.isCoded else { return false }
            // An acknowledged operation's pace says nothing about how full events are.
            if case .request = figure.sent { return false }
            switch figure.controller {
            case .device(let own): return device == nil && !isAndroid ? own.parameter != .packets : own == device
            case .stated(let profile): return device == nil && profile == (isAndroid ? .android : .ideal)
            }
        }
        if figures.count(where: { $0.kind == .complete }) >= 3 { figures.removeAll { $0.kind == .part } }
        complete = figures.filter { $0.kind == .complete }.map(\.number)
        part = figures.filter { $0.kind == .part }.map(\.number)
        (lowest, highest) = (1, 1)
        for figure in figures {
            // A device that is not known may fill its events as badly as the worst that is known.
            let ratio = figure.published / (try figure.simulated(device == nil && !isAndroid ? .ideal : nil))
            lowest = min(lowest, ratio)
            highest = max(highest, ratio)
        }
        devices = device?.name ?? (isAndroid ? "Android phones" : "chips and dongles other than this one")
    }

    /// The profile of a controller that is as slow, or as quick, as the figures show against the simulation.
    func bound(_ profile: ControllerSettings, interval: Double, isLowest: Bool) -> ControllerSettings {
        var bound = profile
        if let packets = profile.packetsPerEvent {
            var scaled = Double(packets) * (isLowest ? lowest : highest)
            // A measurement at one interval does not tell whether the number of packets is fixed or the part of the interval.
            if let here {
                let part = interval / here.measured.interval
                scaled *= isLowest ? min(1, part) : max(1, part)
            }
            bound.packetsPerEvent = max(1, Int(scaled.rounded(isLowest ? .down : .up)))
        } else if isLowest || profile.eventLength != nil {
            let scaled = (profile.eventLength ?? interval) * (isLowest ? lowest : highest)
            bound.eventLength = min(max(1.25, scaled), max(interval, profile.eventLength ?? 0))
        }
        return bound
    }

    /// Sentences for people.
    var words: String {
        if let here {
            let off = (here.simulated / here.measured.goodput - 1) * 100
            return
                "Measured here on \(here.measured.date) with \(here.measured.peer) (\(here.measured.conditions)): "
                + "\(number(here.measured.goodput, 1)) kbit/s; simulated \(number(here.simulated, 1)) "
                + "(\(off < 0 ? "" : "+")\(number(off, 1)) %), by a profile that was made of it. The ranges hold both, and at other "
                + "intervals events with as many packets and events that are longer or shorter in proportion."
        }
        let kinds = [("with all conditions", complete), ("in part", part)]
            .filter { !$0.1.isEmpty }.map { "published \($0.0): \($0.1.joined(separator: ", "))" }
        guard !kinds.isEmpty else {
            return
                "The ranges are the simulation alone: no measurement of \(devices) was published that it is not fitted to."
        }
        return
            "The ranges are simulated with events that are as short and as long as measurements of \(devices) show: "
            + "\(number(lowest * 100, 0)) to \(number(highest * 100, 0)) % of the simulated throughput "
            + "(\(kinds.joined(separator: "; ")); ferry advise --score lists them)."
    }
}

extension PHY {
    /// Whether it is LE Coded.
    var isCoded: Bool { self == .codedS2 || self == .codedS8 }
}
