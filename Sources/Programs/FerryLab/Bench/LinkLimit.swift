import Ferry
import FerryBluetooth
import FerrySimulator

/// What a link could carry at the very most.
enum LinkLimit {
    /// In kbit/s: values of the best length up to ATT_MTU - 3, one after the other without a gap, within what the
    /// controller's profile lets into a connection event. Nothing is lost and no event ends too early for another value.
    static func goodput(_ settings: BenchSettings) throws(FerryError) -> Double {
        let parameters = try settings.linkParameters()
        let profile = try settings.profile.controllerProfile()
        let interval = parameters.connectionInterval
        let eventShare = min(1, (profile.eventLength ?? interval) / interval)
        let best = (1...valueLength(settings)).map { length in
            // 3 bytes of ATT and 4 of L2CAP go with each value.
            let (whole, rest) = (length + 7).quotientAndRemainder(dividingBy: parameters.dataLength)
            func time(_ payload: Int) -> Double {
                Double(parameters.phy.exchangeTime(payload: payload, isEncrypted: parameters.isEncrypted))
            }
            let airTime = Double(whole) * time(parameters.dataLength) + (rest > 0 ? time(rest) : 0)
            let byAir = Double(length * 8) / airTime * 1e6 * eventShare
            guard let cap = profile.packetsPerEvent else { return byAir }
            let packets = Double(whole + (rest > 0 ? 1 : 0))
            return min(byAir, Double(cap * length * 8) / packets / interval.milliseconds)
        }
        return best.max() ?? 0
    }

    /// Whole values that cross in one connection event.
    static func valuesPerEvent(_ settings: BenchSettings) throws(FerryError) -> Int {
        let run = try stream(settings)
        let interval = try settings.linkParameters().connectionInterval.wholeNanoseconds
        let events = run.duration.wholeNanoseconds / max(1, interval)
        let perEvent = Int((Double(run.units) / Double(max(1, events)) + 1e-9).rounded(.down))
        guard perEvent > 0 else {
            throw FerryError(
                .invalidConfiguration,
                "The loopback radio paces whole values, at least one per connection event; with ATT_MTU "
                    + "\(settings.attMTU) and a data length of \(settings.dataLength) a value takes longer than "
                    + "\(settings.interval) ms. Use --transport sim.")
        }
        return perEvent
    }

    private static func valueLength(_ settings: BenchSettings) -> Int { min(settings.attMTU - 3, 512) }

    private static func stream(_ settings: BenchSettings) throws(FerryError) -> RadioMeasurement {
        let traffic: Traffic =
            switch settings.direction {
            case .notify: .notifications(valueLength: valueLength(settings), queueDepth: 32)
            case .write: .writeCommands(valueLength: valueLength(settings), queueDepth: 32)
            }
        let events = max(20, min(400, Int(4_000 / settings.interval)))
        return try FerrySimulator.measure(
            traffic, on: settings.linkParameters(), profile: settings.profile.controllerProfile(), seed: settings.seed,
            events: events)
    }
}
