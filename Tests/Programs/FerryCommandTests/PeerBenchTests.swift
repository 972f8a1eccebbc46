import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySimulator
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

/// `ferry bench --peer` against the services of others, rebuilt, over the simulated link in virtual time.
@Suite("ferry bench --peer", .tags(.program, .gatt)) struct PeerBenchTests {
    private static func parameters(_ interval: Double, _ phy: PHY, attMTU: Int = 247) -> LinkParameters {
        var parameters = LinkParameters()
        parameters.attMTU = attMTU
        parameters.connectionInterval = .microseconds(Int64(interval * 1_000))
        parameters.supervisionTimeout = .seconds(32)
        parameters.phy = phy
        return parameters
    }

    /// Measures with a peer of that kind.
    private static func measure(
        _ kind: PeerService, _ parameters: LinkParameters, _ profile: ControllerProfile, seconds: Double = 2,
        packets: UInt32 = 0
    ) throws -> (outcomes: [PeerOutcome], peer: ThroughputPeer) {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = parameters.attMTU
        configuration.supervisionTimeout = .seconds(32)
        configuration.linkLayer = try RadioSimulator(parameters, profile: profile, seed: 1)
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        return try VirtualRun.run(under: time) {
            let peer = ThroughputPeer(kind, time, packets: packets)
            try await peer.start(on: radio.makeAdapter())
            let finder = Finder()
            let role = radio.makeAdapter().openCentral(finder)
            try role.startScan(ScanRequest())
            while finder.found == nil { try await time.sleep(for: .milliseconds(10)) }
            role.stopScan()
            let events = VisitEvents(time: time)
            let connection = try await role.connect(to: try #require(finder.found), events: events)
            while connection.attMTU < parameters.attMTU { try await time.sleep(for: .milliseconds(10)) }
            let outcomes = try await PeerBench(connection: connection, events: events, time: time)
                .run(packets > 0 ? [.notify] : nil, seconds: seconds)
            // The answer may still be on its way.
            try await time.sleep(for: .seconds(1))
            return (outcomes, peer)
        }
    }

    private final class Finder: CentralRoleEvents {
        private let peripheral = Mutex<PeerID?>(nil)
        var found: PeerID? { peripheral.withLock { $0 } }
        func centralDidDiscover(_ discovery: Discovery) { peripheral.withLock { $0 = discovery.peripheral } }
    }

    @Test(
        "What is measured, what the peer measures of the same and what is simulated lie within 5 %",
        arguments: PeerService.allCases, [(15.0, PHY.le1M, 247), (50.0, .le2M, 247), (30.0, .le1M, 23)])
    func agreement(_ kind: PeerService, _ link: (interval: Double, phy: PHY, attMTU: Int)) throws {
        let parameters = Self.parameters(link.interval, link.phy, attMTU: link.attMTU)
        let (outcomes, peer) = try Self.measure(kind, parameters, .android)
        #expect(outcomes.map(\.direction) == kind.usual)
        for outcome in outcomes {
            let simulated = try outcome.simulated(parameters, .android)
            #expect(abs(outcome.goodput / simulated - 1) < 0.05, "\(outcome) against \(simulated)")
            #expect(outcome.service == kind && outcome.valueLength == link.attMTU - 3)
            #expect(outcome.packetsPerEvent(parameters) == (kind == .bumble ? nil : 6), "\(outcome)")
        }
        let (write, byPeer) = (try #require(outcomes.first), peer.rate / 1_000)
        #expect(peer.unexpected == 0)
        #expect(abs(write.goodput / byPeer - 1) < 0.05, "\(write) against \(byPeer)")
        #expect((write.byPeer != nil) == (kind == .nordic))
        if let told = write.byPeer { #expect(abs(told / byPeer - 1) < 0.01) }
    }

    @Test("What bumble-bench sends is measured, and its last packet answered") func sender() throws {
        let parameters = Self.parameters(30, .le2M)
        let (outcomes, peer) = try Self.measure(.bumble, parameters, .android, packets: 1_000)
        let outcome = try #require(outcomes.first)
        let simulated = try outcome.simulated(parameters, .android)
        #expect(outcome.direction == .notify && outcome.bytes == 244_000 && peer.isAnswered)
        #expect(abs(outcome.goodput / simulated - 1) < 0.05, "\(outcome) against \(simulated)")
    }

    @Test("The profile that is kept gives what was measured") func keep() throws {
        let parameters = Self.parameters(30, .le1M)
        let (outcomes, _) = try Self.measure(.nordic, parameters, .cc254x)
        let outcome = try #require(outcomes.first)
        let bench = settings { ($0.interval, $0.phy, $0.dataLength, $0.isEncrypted) = (30, "1M", 251, true) }
        let kept = try Bench.profile(of: "board", outcome, bench, on: "2026-01-31")
        #expect(kept.packetsPerEvent == 4 && kept.name == "board" && kept.source.contains("nordic, write"))
        let again = try outcome.simulated(parameters, kept.controllerProfile())
        #expect(abs(again / outcome.goodput - 1) < 0.05)
    }

    @Test("Advice by the profile that is kept says what was measured, when and how, and holds it in its range")
    func measuredHere() throws {
        let parameters = Self.parameters(30, .le1M)
        let (outcomes, _) = try Self.measure(.nordic, parameters, .cc254x)
        let outcome = try #require(outcomes.first)
        let bench = settings { ($0.interval, $0.phy, $0.dataLength, $0.isEncrypted) = (30, "1M", 251, true) }
        // As a file carries it.
        let kept = try JSONDecoder().decode(
            ControllerSettings.self,
            from: Data(try JSONFile.text(Bench.profile(of: "board", outcome, bench, on: "2026-01-31")).utf8))
        let evidence = try Evidence(kept, isCoded: false)
        let here = try #require(evidence.here)
        #expect(here.measured.goodput == outcome.goodput && here.measured.seconds == outcome.seconds)
        #expect(abs(here.simulated / here.measured.goodput - 1) < 0.05, "\(here)")
        #expect(evidence.complete.isEmpty && evidence.part.isEmpty)
        for words in [
            "Measured here on 2026-01-31 with board (write 244 B, ATT_MTU 247, 30 ms, LE 1M, data length 251): "
                + number(outcome.goodput, 1) + " kbit/s", "simulated \(number(here.simulated, 1))",
        ] { #expect(evidence.words.contains(words), "\(evidence.words)") }
        // At the interval of the measurement the range is what was measured; at another one the event may scale or not.
        #expect(evidence.bound(kept, interval: 30, isLowest: false).packetsPerEvent ?? 0 <= 5)
        #expect(evidence.bound(kept, interval: 60, isLowest: true).packetsPerEvent ?? 9 <= 4)
        #expect(evidence.bound(kept, interval: 60, isLowest: false).packetsPerEvent ?? 0 >= 8)
        #expect(evidence.bound(kept, interval: 15, isLowest: true).packetsPerEvent ?? 9 <= 2)
        var advice = try adviser(sizes: "2000", profile: kept).advise()
        #expect(advice.text().contains("- Measured here on 2026-01-31 with board"), "\(advice.text())")
        advice = try adviser(sizes: "2000", profile: ControllerSettings(.cc254x)).advise()
        #expect(!advice.text().contains("Measured here"))
    }

    @Test("A measurement that was changed by hand is refused", arguments: [-1, .nan, .infinity])
    func forged(rate: Double) throws {
        var profile = ControllerSettings(.ideal)
        profile.measured = MeasuredHere(
            date: "2026-01-31", peer: "board", service: .nordic, direction: .write, attMTU: 247, valueLength: 244,
            interval: 30, phy: "1M", dataLength: 251, seconds: 1, goodput: rate)
        #expect(throws: FerryError.self) { try Evidence(profile, isCoded: false) }
        profile.measured?.goodput = 100
        profile.measured?.valueLength = 0
        #expect(throws: FerryError.self) { try Evidence(profile, isCoded: false) }
        profile.measured?.valueLength = 244
        profile.measured?.interval = -1
        #expect(throws: FerryError.self) { try Evidence(profile, isCoded: false) }
    }

    private func adviser(sizes: String, profile: ControllerSettings) throws -> Adviser {
        let base = settings { $0.profile = profile }
        var adviser = Adviser(
            sizes: try MessageSizes(distribution: sizes), peer: try Peer(named: "custom", controller: profile),
            base: base, deadline: nil)
        adviser.seconds = 1
        return adviser
    }

    @Test(
        "What does not go with --peer is refused",
        arguments: [
            (["--peer", "x"], "needs one Bluetooth adapter"), (["--keep", "f"], "--keep goes with --peer"),
            (["--peer", "x", "--transport", "unix:./s"], "needs one Bluetooth adapter"),
        ])
    func refused(_ arguments: [String], _ words: String) {
        let error = #expect(throws: (any Error).self) { _ = try FerryCommand.parsed(["bench"] + arguments) }
        #expect(error.map { FerryCommand.message(for: $0).contains(words) } == true)
    }
}
