import Ferry
import FerryBluetooth
import FerrySimulator

/// What `ferry bench --peer` has measured, as it stands in the profile file that `--keep` writes.
package struct MeasuredHere: Codable, Hashable, Sendable {
    /// The day, as 2026-01-31 (UTC).
    var date: String
    /// The peripheral, as it was named.
    var peer: String
    var service: PeerService
    var direction: DirectionChoice
    var attMTU: Int
    /// Bytes of each value.
    var valueLength: Int
    /// The interval that was asked for, in ms.
    var interval: Double
    /// The PHY and the data length that were given on the command line.
    var phy: String
    var dataLength: Int
    var seconds: Double
    /// In kbit/s.
    var goodput: Double

    package init(
        date: String, peer: String, service: PeerService, direction: DirectionChoice, attMTU: Int, valueLength: Int,
        interval: Double, phy: String, dataLength: Int, seconds: Double, goodput: Double
    ) {
        self.date = date
        self.peer = peer
        self.service = service
        self.direction = direction
        self.attMTU = attMTU
        self.valueLength = valueLength
        self.interval = interval
        self.phy = phy
        self.dataLength = dataLength
        self.seconds = seconds
        self.goodput = goodput
    }

    /// The conditions as text.
    package var conditions: String {
        "\(direction.rawValue) \(valueLength) B, ATT_MTU \(attMTU), \(short(interval)) ms, LE \(phy), data length \(dataLength)"
    }

    /// What the model gives for the same values, in kbit/s.
    ///
    /// - Throws: `invalidConfiguration` for conditions that no link has, as in a file that was changed by hand.
    func simulated(_ profile: ControllerProfile) throws(FerryError) -> Double {
        guard (1...512).contains(valueLength), goodput > 0, goodput.isFinite else {
            throw FerryError(
                .invalidConfiguration,
                "The measurement in the profile '\(profile.name)' has values of \(valueLength) bytes and \(goodput) kbit/s. "
                    + "Measure again with ferry bench --peer \(peer) --keep FILE.")
        }
        var settings = BenchSettings.usual
        (settings.attMTU, settings.interval, settings.phy) = (attMTU, interval, phy)
        settings.dataLength = dataLength
        let parameters = try settings.linkParameters()
        return try PeerOutcome.simulated(direction, isAcknowledged: false, valueLength, parameters, profile)
    }
}
