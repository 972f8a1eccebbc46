package import Ferry
import FerrySimulator

/// The device at the other end: its controller, and the choices that it leaves an app.
package struct Peer {
    var name: String
    package var profile: ControllerSettings
    /// ATT_MTU that it agrees to.
    package var attMTU: Int
    /// Connection intervals in ms that it grants.
    package var intervals: [Double]
    /// Where it grants multiples of something only, of what, in ms.
    let intervalStep: Double?
    /// Bytes of ATT_MTU that a value must leave free: 3, or more where the peer cuts longer values.
    var reserve = 3
    /// What to mention.
    var remark: String

    static let names = ["ios", "android", "bluez", "custom"]

    package init(named name: String, controller: ControllerSettings) throws(FerryError) {
        self.name = name
        intervalStep = name == "ios" ? 15 : nil
        switch name {
        case "ios":
            profile = ControllerSettings(.ios)
            attMTU = 185
            intervals = [15, 30, 45, 60, 90]
            remark =
                "iOS grants intervals of 15 ms and more, in steps of 15 ms; ATT_MTU 185 on older devices, up to 527 seen."
        case "android":
            profile = ControllerSettings(.android)
            attMTU = 517
            intervals = [11.25, 15, 30, 48.75, 100]
            remark = "Android 14 and later ask for ATT_MTU 517; 11.25 ms is its high-priority interval."
        case "bluez":
            profile = ControllerSettings(.bluez)
            attMTU = 517
            intervals = [7.5, 15, 30, 50, 100]
            reserve = 5
            remark = "BlueZ may cut values above ATT_MTU - 5 without a word when the central takes several at once."
        case "custom":
            profile = controller
            attMTU = 247
            intervals = [7.5, 15, 30, 50, 100]
            remark = "Controller profile \(controller.name): \(controller.source)."
        default:
            throw FerryError(
                .invalidConfiguration,
                "The peer '\(name)' is not known. Choose from: \(Self.names.joined(separator: ", ")).")
        }
    }

    /// Chooses among these intervals, as far as the peer grants them.
    ///
    /// - Throws: `invalidConfiguration` when it grants none of them.
    package mutating func choose(from wanted: [Double]) throws(FerryError) {
        intervals = wanted.sorted()
        guard let step = intervalStep else { return }
        let granted = intervals.filter { $0 >= step && ($0 / step).rounded() * step == $0 }
        let refused = intervals.filter { !granted.contains($0) }.map(short).joined(separator: ", ")
        guard !granted.isEmpty || intervals.isEmpty else {
            throw FerryError(
                .invalidConfiguration,
                "--interval \(refused): the peer \(name) grants multiples of \(short(step)) ms only. Give one of those."
            )
        }
        intervals = granted
        if !refused.isEmpty { remark += " Left out, because it does not grant them: \(refused) ms." }
    }
}
