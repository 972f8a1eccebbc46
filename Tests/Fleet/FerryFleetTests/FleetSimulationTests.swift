import Ferry
import TestSupport
import Testing

@testable import FerryFleet

@Suite(.tags(.fleet)) struct FleetSimulationTests {
    /// Small and short; `ferry fleet simulate` runs the size that it is for.
    @Test func aSmallFleetKeepsItsPeers() throws {
        var setup = FleetSimulation.Setup()
        setup.gateways = 12
        setup.peers = 60
        setup.phase = .seconds(600)
        setup.failuresPerHour = 1
        setup.outage = .seconds(120)
        setup.partitioned = 0.2
        setup.movesPerHour = 2
        let report = try FleetSimulation(setup).run()
        #expect(report.violations == 0)
        #expect(report.unheard == 0)
        #expect(report.mostOwned <= 10)
        #expect(report.phases.map(\.name) == ["start", "failures", "partition", "after"])
        let failures = report.phases[1]
        #expect(failures.failures > 0 && failures.handOvers > 0)
        // Of all the time of all peers, less than a tenth is nobody's where somebody could have them.
        for phase in report.phases.dropFirst() {
            let avoidable = phase.orphanedMilliseconds / 1000 - Int64(phase.outOfReachSeconds)
            #expect(avoidable < Int64(phase.seconds) * 60 / 10, "\(phase)")
            #expect(phase.busiestSecond < 200, "\(phase)")
        }
        // The same again, by the same seed.
        setup.phase = .seconds(60)
        #expect(try FleetSimulation(setup).run() == FleetSimulation(setup).run())
    }

    @Test func refusesWhatCannotBe() {
        var setup = FleetSimulation.Setup()
        setup.gateways = 0
        let error = #expect(throws: FerryError.self) { try FleetSimulation(setup) }
        #expect(error?.message.contains("gateways is 0") == true)
        setup = FleetSimulation.Setup()
        setup.loss = .nan
        #expect(throws: FerryError.self) { try FleetSimulation(setup) }
    }
}
