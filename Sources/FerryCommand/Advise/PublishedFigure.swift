import Ferry
import FerryBluetooth
import FerrySimulator

/// A published throughput figure that the model is checked against, here those that advice may lean on.
struct PublishedFigure {
    /// How a figure relates to the profile that simulates it.
    enum Kind: String, Codable, Sendable {
        /// It follows from its conditions; the profile has no free parameter.
        case exact
        /// The profile's packets per event are inferred from another figure of the same source.
        case inferred
        /// The profile was fitted to this figure: agreement shows nothing.
        case fitted
    }

    var source: String
    var kind: Kind
    var direction = DirectionChoice.notify
    var attMTU: Int
    var interval: Double
    var phy: PHY
    var dataLength: Int
    var profile: ControllerProfile
    /// In kbit/s.
    var published: Double

    static let all = [
        PublishedFigure(
            source: "Gomez, Oller, Paradells, Sensors 2012", kind: .exact, attMTU: 23, interval: 4_000, phy: .le1M,
            dataLength: 27,
            profile: .ideal, published: 236.7),
        PublishedFigure(
            source: "WWDC 2017 session 712", kind: .inferred, direction: .write, attMTU: 185, interval: 30, phy: .le1M,
            dataLength: 27, profile: .ios2017,
            published: 48),
        PublishedFigure(
            source: "Nordic S132 v7.1", kind: .fitted, attMTU: 247, interval: 50, phy: .le1M, dataLength: 251,
            profile: .s132Long1M,
            published: 702.8),
        PublishedFigure(
            source: "Nordic S132 v7.1", kind: .fitted, attMTU: 247, interval: 50, phy: .le2M, dataLength: 251,
            profile: .s132Long2M,
            published: 1_327.5),
        PublishedFigure(
            source: "nRF Connect SDK throughput sample", kind: .fitted, attMTU: 498, interval: 400, phy: .le2M,
            dataLength: 251,
            profile: .nrfConnect, published: 1_363),
    ]

    /// The figure whose stated conditions are all those of `settings`; `nil` for none.
    ///
    /// No source states whether its link was encrypted, so encryption is not compared; ``conditions`` names it.
    static func matching(_ settings: BenchSettings) -> PublishedFigure? {
        guard let profile = try? settings.profile.controllerProfile() else { return nil }
        return all.first {
            $0.profile == profile && $0.attMTU == settings.attMTU && $0.interval == settings.interval
                && $0.phy.rawValue == settings.phy && $0.dataLength == settings.dataLength
                && $0.direction == settings.direction && settings.packetErrorRate == 0
        }
    }

    /// The conditions as text.
    var conditions: String {
        "\(direction.rawValue), ATT_MTU \(attMTU), \(short(interval)) ms, LE \(phy.rawValue), data length \(dataLength), "
            + "simulated without encryption"
    }

    /// What the model gives under the figure's conditions, in kbit/s.
    ///
    /// - Parameter events: connection events to simulate.
    func simulated(events: Int = 20) throws(FerryError) -> Double {
        var parameters = LinkParameters()
        parameters.attMTU = attMTU
        parameters.connectionInterval = .microseconds(Int64(interval * 1_000))
        parameters.supervisionTimeout = .seconds(32)
        parameters.phy = phy
        parameters.dataLength = dataLength
        parameters.isEncrypted = false
        let traffic: Traffic =
            direction == .notify
            ? .notifications(valueLength: attMTU - 3) : .writeCommands(valueLength: attMTU - 3)
        let run = try FerrySimulator.measure(traffic, on: parameters, profile: profile, events: events)
        return run.goodput(bytesPerUnit: attMTU - 3) / 1_000
    }
}
