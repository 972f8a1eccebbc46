import Foundation

/// How well controllers hear one another: signal and loss of each pair, as set or by where they stand.
package struct Air: Sendable {
    /// What lies between two controllers.
    package struct Path: Sendable, Equatable {
        /// The signal's strength at the other in dBm, -127 to 20 (Core Specification 5.4, Vol 4, Part E, 7.7.65.2); nil out of reach.
        package var signal: Int8?
        /// How many of a hundred advertisements and connection events are lost.
        package var loss: Int

        package init(signal: Int8?, loss: Int = 0) {
            self.signal = signal
            self.loss = loss
        }
    }

    /// What has been set for a pair; what has not goes by places, and without those as ``usual``.
    private struct Setting {
        var hasSignal = false
        var signal: Int8?
        var loss: Int?
    }

    /// In metres.
    package struct Place: Sendable, Equatable {
        package var x: Double
        package var y: Double

        package init(x: Double, y: Double) {
            self.x = x
            self.y = y
        }
    }

    /// A pair, the lower number first.
    private struct Pair: Hashable {
        let low: Int
        let high: Int

        init(_ first: Int, _ second: Int) { (low, high) = (min(first, second), max(first, second)) }
    }

    /// Receivers hear nothing that is weaker, in dBm: the worst that the specification allows is -70 (Vol 6, Part A, 4.1), and
    /// chips of today have about this.
    package static let sensitivity = -95.0
    /// In dBm, at one metre.
    package static let signalAtOneMetre = -50.0
    /// Decibels for ten times the distance, divided by ten: 2 in the open, 2 to 3 in halls (ITU-R P.1238).
    package static let exponent = 2.5

    /// Between all that have neither a setting nor a place.
    package var usual = Path(signal: -50)
    private var settings: [Pair: Setting] = [:]
    private var places: [Int: Place] = [:]

    package init() {}

    /// What lies between two controllers, the same both ways.
    package func path(_ first: Int, _ second: Int) -> Path {
        let setting = settings.isEmpty ? nil : settings[Pair(first, second)]
        let loss = setting?.loss ?? usual.loss
        if let setting, setting.hasSignal { return Path(signal: setting.signal, loss: loss) }
        guard let here = places[first], let there = places[second] else {
            return Path(signal: usual.signal, loss: loss)
        }
        let distance = ((here.x - there.x) * (here.x - there.x) + (here.y - there.y) * (here.y - there.y)).squareRoot()
        return Path(signal: Self.signal(at: distance), loss: loss)
    }

    /// The signal so many metres away by the log-distance model, nil where it is too weak. Nearer than 10 cm nothing changes.
    package static func signal(at metres: Double) -> Int8? {
        let signal = signalAtOneMetre - 10 * exponent * log10(max(metres, 0.1))
        return signal < sensitivity ? nil : Int8(signal.rounded())
    }

    /// Sets a pair's signal, nil for out of reach.
    package mutating func setSignal(_ signal: Int8?, _ first: Int, _ second: Int) {
        settings[Pair(first, second), default: Setting()].hasSignal = true
        settings[Pair(first, second)]?.signal = signal
    }

    /// Leaves a pair's signal to places again.
    package mutating func clearSignal(_ first: Int, _ second: Int) {
        settings[Pair(first, second)]?.hasSignal = false
    }

    package mutating func setLoss(_ loss: Int, _ first: Int, _ second: Int) {
        settings[Pair(first, second), default: Setting()].loss = loss
    }

    package mutating func setPlace(_ place: Place, of controller: Int) { places[controller] = place }
}
