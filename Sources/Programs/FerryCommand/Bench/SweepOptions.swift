import ArgumentParser
import Ferry
import FerryLab
import FerrySimulator
import FoundationEssentials

/// What to measure: each option takes one value or several, separated by commas; every combination is a point.
struct SweepOptions: ParsableArguments {
    @Option(name: .long, help: "ATT_MTU in bytes, 23 to 517. (default: 23,185,247,517; over BlueZ 517)")
    var mtu: CommaList<Int>?

    @Option(name: .long, help: "Connection interval in ms, 7.5 to 4000 in steps of 1.25.")
    var interval = CommaList([30.0])

    @Option(name: .long, help: "PHY: 1M, 2M, coded-S2, coded-S8.")
    var phy = CommaList(["1M"])

    @Option(name: .long, help: "Link-layer data length in bytes, 27 to 251.")
    var dataLength = CommaList([251])

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Framing: length, eom, eom-20 (chunks of 20 bytes, as in the classic sample), sequenced; of devices, each over its "
                + "own service: mdoc, btp, pftp, slip, cobs, lines, smp, gattlink, bitchat, meshtastic."))
    var framing = CommaList(["length"])

    @Option(name: .long, help: "Compression: none, zlib.")
    var compression = CommaList(["none"])

    @Option(name: .long, help: "Message size in bytes.")
    var messageSize = CommaList([4_096])

    @Option(name: .long, help: "Places in the transmit queue, 1 to 4096.")
    var queueDepth = CommaList([8])

    @Option(name: .long, help: "Centrals that share the air, 1 to 20.")
    var centrals = CommaList([1])

    @Option(
        name: .long,
        help: "Who sends: notify (the peripheral), write (the centrals). (default: notify; with --connect both)")
    var direction: CommaList<String>?

    @Option(name: .long, help: "Probability that a packet is damaged, 0 to 1.")
    var errorRate = CommaList([0.0])

    @Flag(name: .customLong("no-encryption"), help: "Packets carry no MIC.")
    var isPlain = false

    @OptionGroup var controller: ControllerOptions

    @Option(name: .long, help: "Seconds to measure each point for: of simulated time, or real time otherwise.")
    var seconds: Double?

    @Option(name: .long, help: "Seed of damage and messages.")
    var seed: UInt64 = 1

    /// Most points in one sweep.
    private static let mostPoints = 10_000

    /// Every combination, checked.
    func points(defaultSeconds: Double, defaultMTUs: [Int]) throws(FerryError) -> [BenchSettings] {
        let mtus = mtu?.elements ?? defaultMTUs
        let directions = direction?.elements ?? [DirectionChoice.notify.rawValue]
        // With explicit types, here and below: the type checker needs half a minute for this function without them.
        let counts: [(String, Int)] = [
            ("mtu", mtus.count), ("interval", interval.elements.count), ("phy", phy.elements.count),
            ("data-length", dataLength.elements.count), ("framing", framing.elements.count),
            ("compression", compression.elements.count), ("message-size", messageSize.elements.count),
            ("queue-depth", queueDepth.elements.count), ("centrals", centrals.elements.count),
            ("direction", directions.count), ("error-rate", errorRate.elements.count),
        ]
        if let empty = counts.first(where: { $0.1 == 0 }) {
            throw FerryError(
                .invalidConfiguration, "The sweep is empty: --\(empty.0) names no value. Give at least one.")
        }
        var product = 1
        for (_, count) in counts {
            product = product.multipliedReportingOverflow(by: count).partialValue
            guard product > 0, product <= Self.mostPoints else {
                throw FerryError(
                    .invalidConfiguration,
                    "The sweep has more than \(Self.mostPoints) points; leave out some values.")
            }
        }
        let profile = try controller.settings()
        let measuredSeconds: Double = seconds ?? defaultSeconds
        var points: [BenchSettings] = []
        for phy in phy.elements {
            for interval in interval.elements {
                for mtu in mtus {
                    for length in dataLength.elements {
                        for framing in framing.elements {
                            let chosenFraming: FramingChoice = try Self.choice(framing, "framing")
                            for compression in compression.elements {
                                let chosenCompression: CompressionChoice = try Self.choice(compression, "compression")
                                for size in messageSize.elements {
                                    for depth in queueDepth.elements {
                                        for count in centrals.elements {
                                            for direction in directions {
                                                let chosenDirection: DirectionChoice = try Self.choice(
                                                    direction, "direction")
                                                for rate in errorRate.elements {
                                                    points.append(
                                                        BenchSettings(
                                                            attMTU: mtu, interval: interval, phy: phy,
                                                            dataLength: length, isEncrypted: !isPlain,
                                                            framing: chosenFraming, compression: chosenCompression,
                                                            messageSize: size, queueDepth: depth,
                                                            direction: chosenDirection, centrals: count,
                                                            packetErrorRate: rate, profile: profile,
                                                            seconds: measuredSeconds, seed: seed))
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        for point in points { try point.validate() }
        return points
    }

    /// What to measure between two processes, checked.
    func pairRuns() throws(FerryError) -> (framing: FramingChoice, runs: [PairMessage.Run]) {
        guard let name = framing.elements.first, framing.elements.count == 1 else {
            throw FerryError(
                .invalidConfiguration, "Both sides use one framing: give --framing one value, the same on both.")
        }
        let framing: FramingChoice = try Self.choice(name, "framing")
        guard framing.takesAnyBytes else {
            throw FerryError(
                .invalidConfiguration,
                "Messages by \(name) have a form of their own, and two processes tell each other more. Leave --serve and --connect out, "
                    + "or choose from: \(FramingChoice.allCases.filter(\.takesAnyBytes).map(\.rawValue).joined(separator: ", "))."
            )
        }
        let time = seconds ?? 5
        guard PairMessage.Run.times.contains(time) else {
            throw FerryError(.invalidConfiguration, "--seconds is \(time); between two processes give 0.1 to 3600.")
        }
        var runs: [PairMessage.Run] = []
        for direction in direction?.elements ?? DirectionChoice.allCases.map(\.rawValue) {
            let direction: DirectionChoice = try Self.choice(direction, "direction")
            for size in messageSize.elements {
                guard PairMessage.Run.sizes.contains(size) else {
                    throw FerryError(
                        .invalidConfiguration,
                        "--message-size is \(size); between two processes give 1 to 1048576 bytes.")
                }
                runs.append(PairMessage.Run(direction: direction, messageSize: size, seconds: time))
            }
        }
        guard !runs.isEmpty else {
            throw FerryError(
                .invalidConfiguration, "There is nothing to measure: --direction or --message-size names no value.")
        }
        return (framing, runs)
    }

    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(_ name: String, _ option: String)
        throws(FerryError) -> Choice
    {
        if let choice = Choice(rawValue: name) { return choice }
        let all = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        throw FerryError(.invalidConfiguration, "The \(option) '\(name)' is not known. Choose from: \(all).")
    }
}

/// Which controller the radio behaves like.
struct ControllerOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Controller profile: \(ControllerProfile.all.map(\.name).joined(separator: ", ")). (default: ideal)",
            valueName: "name"))
    var controller: String?

    @Option(name: .long, help: ArgumentHelp("Controller profile from a JSON file, as measured.", valueName: "file"))
    var profileFile: String?

    /// The option that was given, as typed; `nil` for neither.
    var given: String? { controller != nil ? "--controller" : profileFile != nil ? "--profile-file" : nil }

    /// The profile, checked.
    func settings() throws(FerryError) -> ControllerSettings {
        guard controller == nil || profileFile == nil else {
            throw FerryError(
                .invalidConfiguration,
                "--controller and --profile-file both name a controller profile. Leave one of them out.")
        }
        guard let profileFile else {
            let controller = controller ?? "ideal"
            guard let profile = ControllerProfile.named(controller) else {
                let all = ControllerProfile.all.map(\.name).joined(separator: ", ")
                throw FerryError(
                    .invalidConfiguration, "The controller '\(controller)' is not known. Choose from: \(all).")
            }
            return ControllerSettings(profile)
        }
        let settings: ControllerSettings = try JSONFile.read(profileFile, "controller profile")
        _ = try settings.controllerProfile()
        return settings
    }
}
