import Ferry
import FerryBluetooth
import FerrySimulator

/// A published throughput figure that the model is checked against, here those that advice may lean on.
struct PublishedFigure {
    var source: String
    var attMTU: Int
    var interval: Double
    var phy: PHY
    var dataLength: Int
    var profile: ControllerProfile
    /// In kbit/s.
    var published: Double

    static let all = [
        PublishedFigure(
            source: "Gomez, Oller, Paradells, Sensors 2012", attMTU: 23, interval: 4_000, phy: .le1M, dataLength: 27,
            profile: .ideal, published: 236.7),
        PublishedFigure(
            source: "WWDC 2017 session 712", attMTU: 185, interval: 30, phy: .le1M, dataLength: 27, profile: .ios2017,
            published: 48),
        PublishedFigure(
            source: "Nordic S132 v7.1", attMTU: 247, interval: 50, phy: .le1M, dataLength: 251, profile: .s132Long1M,
            published: 702.8),
        PublishedFigure(
            source: "Nordic S132 v7.1", attMTU: 247, interval: 50, phy: .le2M, dataLength: 251, profile: .s132Long2M,
            published: 1_327.5),
        PublishedFigure(
            source: "nRF Connect SDK throughput sample", attMTU: 498, interval: 400, phy: .le2M, dataLength: 251,
            profile: .nrfConnect, published: 1_363),
    ]

    /// The figure whose conditions are closest: the same PHY, then the nearest ATT_MTU.
    static func nearest(to settings: BenchSettings) -> PublishedFigure? {
        all.min { a, b in a.distance(to: settings) < b.distance(to: settings) }
    }

    private func distance(to settings: BenchSettings) -> Int {
        abs(attMTU - settings.attMTU) + (phy.rawValue == settings.phy ? 0 : 1_000)
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
        let run = try FerrySimulator.measure(
            .notifications(valueLength: attMTU - 3), on: parameters, profile: profile, events: events)
        return run.goodput(bytesPerUnit: attMTU - 3) / 1_000
    }
}
