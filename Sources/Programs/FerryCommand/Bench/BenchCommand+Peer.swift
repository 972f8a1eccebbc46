import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import FerrySimulator
import FerryTransports
import Foundation

/// `ferry bench --peer`: the client of throughput services that others have made.
extension Bench {
    /// One line of `--json`.
    struct PeerLine: Encodable {
        var measured: PeerOutcome
        /// In kbit/s.
        var simulated: Double
        var controller: String
        /// What the measured figure implies.
        var packetsPerEvent: Int?
    }

    /// What the measurement is made and simulated with, checked.
    func peerSettings() throws(FerryError) -> (transport: NamedTransport, settings: BenchSettings) {
        guard case .side(let named) = transport, case .adapters = named.opening else {
            throw FerryError(
                .invalidConfiguration,
                "--peer needs one Bluetooth adapter. Use one of: \(PeripheralOptions.forms.joined(separator: ", ")).")
        }
        guard !serve, !connect, report == nil, compare == nil, !csv, !cpu else {
            throw FerryError(
                .invalidConfiguration,
                "--serve, --connect, --report, --compare, --csv and --cpu do not go with --peer, which prints a line for "
                    + "each direction, or --json.")
        }
        let points = try sweep.points(defaultSeconds: 5, defaultMTUs: [247])
        guard let settings = points.first,
            points.allSatisfy({ $0.interval == settings.interval && $0.phy == settings.phy })
        else {
            throw FerryError(
                .invalidConfiguration, "--peer measures one connection: give --interval and --phy one value.")
        }
        return (named, settings)
    }

    func runPeer(_ name: String) async throws {
        let (named, settings) = try peerSettings()
        let wanted = sweep.direction == nil ? nil : [settings.direction]
        let (isJSON, keep) = (json, keep)
        try await PeripheralOptions.run {
            guard case .adapters(let make) = named.opening else { return }
            var radio = RadioOptions()
            radio.attMTU = settings.attMTU
            radio.connectionInterval = .microseconds(Int64((settings.interval * 1_000).rounded()))
            radio.onAdvice = { note($0) }
            let explorer = try await Explorer.open(try await make(radio)("client"))
            defer { explorer.close() }
            let visit = try await explorer.visit(name, within: .seconds(60))
            let outcomes: [PeerOutcome]
            do {
                outcomes = try await PeerBench(
                    connection: visit.connection, events: visit.events, time: SystemTime()
                ).run(wanted, seconds: settings.seconds)
            } catch {
                await visit.end()
                throw error
            }
            await visit.end()
            for outcome in outcomes { try Self.show(outcome, settings, isJSON: isJSON) }
            if keep != nil, outcomes.allSatisfy(\.isAcknowledged) {
                throw CommandFailure(
                    "The peer answers each write, which does not tell how many packets an event has: no profile is written."
                )
            }
            if let keep, let best = outcomes.max(by: { $0.goodput < $1.goodput }) {
                try JSONFile.write(try JSONFile.text(Self.profile(of: name, best, settings, on: Self.today)), to: keep)
                note("ferry: the profile is in \(keep); give it to ferry bench and advise with --profile-file.")
            }
        }
    }

    private static func show(_ outcome: PeerOutcome, _ settings: BenchSettings, isJSON: Bool) throws {
        let parameters = try settings.linkParameters()
        let profile = try settings.profile.controllerProfile()
        let line = PeerLine(
            measured: outcome, simulated: try outcome.simulated(parameters, profile), controller: profile.name,
            packetsPerEvent: outcome.packetsPerEvent(parameters))
        if isJSON { return try Output.line(line) }
        let peer = outcome.byPeer.map { ", \(number($0, 1)) by the peer" } ?? ""
        try Output.print(
            "\(outcome.service.rawValue), \(outcome.direction.rawValue), values of \(outcome.valueLength) bytes: "
                + "measured \(number(outcome.goodput, 1)) kbit/s\(peer); simulated \(number(line.simulated, 1)) "
                + "(controller \(profile.name), \(short(settings.interval)) ms, LE \(settings.phy), data length "
                + "\(settings.dataLength)). "
                + (line.packetsPerEvent.map { "About \($0) packets per event.\n" } ?? "Each write was answered.\n"))
    }

    /// A profile to keep and share.
    ///
    /// - Parameter date: the day, as 2026-01-31.
    static func profile(
        of peer: String, _ outcome: PeerOutcome, _ settings: BenchSettings, on date: String
    ) throws(FerryError) -> ControllerSettings {
        var profile = ControllerSettings(.ideal)
        profile.name = peer.forTerminal
        let measured = MeasuredHere(
            date: date, peer: peer.forTerminal, service: outcome.service, direction: outcome.direction,
            attMTU: outcome.attMTU, valueLength: outcome.valueLength, interval: settings.interval, phy: settings.phy,
            dataLength: settings.dataLength, seconds: outcome.seconds, goodput: outcome.goodput)
        profile.source =
            "measured by ferry bench --peer on \(date): \(outcome.service.rawValue), \(measured.conditions), "
            + "\(number(outcome.goodput, 1)) kbit/s in \(number(outcome.seconds, 1)) s"
        profile.packetsPerEvent = outcome.packetsPerEvent(try settings.linkParameters())
        profile.measured = measured
        return profile
    }

    private static var today: String {
        Date.now.formatted(.iso8601.year().month().day())
    }
}
