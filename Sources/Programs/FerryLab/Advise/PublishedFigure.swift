import Ferry
import FerryBluetooth
import FerrySimulator

/// One published throughput figure, with its source and conditions, and the simulation of them.
struct PublishedFigure: Sendable {
    /// How much a figure shows about the simulator.
    enum Kind: String, Codable, Sendable {
        /// It follows from its conditions by arithmetic; nothing was measured.
        case arithmetic
        /// Measured, and published with all conditions that the simulation needs. The simulation was not fitted to it.
        case complete
        /// Measured, and published without some conditions, which are assumed. The simulation was not fitted to it.
        case part
        /// The controller's free parameter was fitted to this figure: agreement shows nothing.
        case fitted
    }

    /// The values that were sent, over and over.
    enum Sent: Sendable {
        /// Notifications of this many bytes.
        case notify(Int)
        /// Write commands of this many bytes.
        case write(Int)
        /// Write requests of this many bytes, each answered.
        case request(Int)
        /// Link-layer packets of this many bytes from the peripheral.
        case raw(Int)
        /// SDUs of an L2CAP channel with an MPS of 247 bytes, from the central.
        case channel(Int)
    }

    /// What decides how many packets a connection event has.
    enum Controller: Sendable {
        /// The source says it, or nothing limits it.
        case stated(ControllerProfile)
        /// A device with one free parameter, fitted on the device's first figure in ``all``.
        case device(Device)
    }

    /// Identifies the figure in Documentation/Method.md.
    var number: String
    var source: String
    var sent: Sent
    var attMTU = 23
    /// In ms.
    var interval: Double
    var phy = PHY.le1M
    var dataLength = 27
    var isEncrypted = false
    /// Probability that a packet is damaged.
    var packetErrorRate = 0.0
    var controller: Controller
    var kind: Kind
    /// Conditions that the source does not give; empty for none.
    var assumed = ""
    /// In kbit/s; the middle where the source gives a range.
    var published: Double

    /// Bytes that count in each value.
    var size: Int {
        switch sent {
        case .notify(let size), .write(let size), .request(let size), .raw(let size), .channel(let size): size
        }
    }

    /// The conditions as text.
    var conditions: String {
        let what =
            switch sent {
            case .notify(let size): "notify \(size) B"
            case .write(let size): "write \(size) B"
            case .request(let size): "write request \(size) B"
            case .raw(let size): "link-layer packets of \(size) B"
            case .channel(let size): "L2CAP channel, SDUs of \(size) B"
            }
        let mtu =
            switch sent {
            case .notify, .write, .request: ", ATT_MTU \(attMTU)"
            case .raw, .channel: ""
            }
        return "\(what)\(mtu), \(short(interval)) ms, LE \(phy.rawValue), data length \(dataLength)"
            + (isEncrypted ? ", encrypted" : "")
    }

    /// What the model gives under the figure's conditions, in kbit/s.
    ///
    /// - Parameters:
    ///   - profile: the controllers'; `nil` for the figure's own.
    ///   - events: connection events to simulate.
    func simulated(_ profile: ControllerProfile? = nil, events: Int? = nil) throws(FerryError) -> Double {
        var parameters = LinkParameters()
        parameters.attMTU = attMTU
        parameters.connectionInterval = .microseconds(Int64(interval * 1_000))
        parameters.supervisionTimeout = .seconds(32)
        parameters.phy = phy
        parameters.dataLength = dataLength
        parameters.isEncrypted = isEncrypted
        if packetErrorRate > 0 { parameters.loss = .packetErrorRate(packetErrorRate) }
        let traffic: Traffic =
            switch sent {
            case .notify(let size): .notifications(valueLength: size)
            case .write(let size): .writeCommands(valueLength: size)
            case .request(let size): .writeRequests(valueLength: size)
            case .raw(let size): Traffic(sender: .peripheral, unit: .raw(size))
            case .channel(let size): Traffic(sender: .central, unit: .sdu(length: size, maximumPayloadSize: 247))
            }
        let used: ControllerProfile
        if let profile {
            used = profile
        } else {
            switch controller {
            case .stated(let stated): used = stated
            case .device(let device): used = try device.profile(at: interval)
            }
        }
        // Long events have many packets each; damage needs many events for a steady mean.
        let count = events ?? (packetErrorRate > 0 ? 2_000 : max(4, min(60, Int(1_000 / interval))))
        let run = try FerrySimulator.measure(traffic, on: parameters, profile: used, events: count)
        return run.goodput(bytesPerUnit: size) / 1_000
    }

    /// The figure whose conditions are all those of `settings`, with a built-in profile; `nil` for none.
    ///
    /// No source states whether its link was encrypted, so encryption is not compared.
    static func matching(_ settings: BenchSettings) -> (figure: PublishedFigure, profile: ControllerProfile)? {
        guard let profile = try? settings.profile.controllerProfile(), settings.packetErrorRate == 0 else { return nil }
        let numbers = [
            ControllerProfile.ideal.name: ["1"], ControllerProfile.ios2017.name: ["7"],
            ControllerProfile.s132Long1M.name: ["12"], ControllerProfile.s132Long2M.name: ["13"],
            ControllerProfile.nrfConnect.name: ["15"],
        ]
        // A profile of the same name with another cap is another one.
        guard ControllerProfile.named(profile.name) == profile, let known = numbers[profile.name] else { return nil }
        for figure in all where known.contains(figure.number) && figure.isMet(by: settings) { return (figure, profile) }
        return nil
    }

    private func isMet(by settings: BenchSettings) -> Bool {
        let direction: DirectionChoice? =
            switch sent {
            case .notify: .notify
            case .write: .write
            case .request, .raw, .channel: nil
            }
        return attMTU == settings.attMTU && interval == settings.interval && phy.rawValue == settings.phy
            && dataLength == settings.dataLength && direction == settings.direction
    }
}
