import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTransports
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

/// Adapters that `--transport` names, played by those of one loopback radio.
@Suite("ferry bench over adapters", .tags(.program), .timeLimit(.minutes(5))) struct AdapterTests {
    private func adapters(_ count: Int, attMTU: Int = 185) throws -> [NamedTransport] {
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        configuration.connectionInterval = .milliseconds(10)
        let radio = try LoopbackRadio(configuration: configuration)
        return (0..<count).map { index in
            NamedTransport(
                "air:\(index)",
                .adapters { (_) throws(FerryError) in
                    { (role) throws(FerryError) in OpenedAdapter(radio.makeAdapter(name: role)) }
                })
        }
    }

    @Test("Measures in real time, with as many centrals as there are adapters") func measures() async throws {
        let point = settings {
            $0.centrals = 2
            $0.seconds = 2
        }
        let result = try await BenchRun.adapters(point, adapters(3)).result
        #expect(result.messages > 0 && result.goodput > 0)
        #expect(result.fairness.goodputs.count == 2)
        #expect(BenchTransport.adapters(try adapters(2)).name == "air:0,air:1")
    }

    @Test("Too few adapters are refused before anything is opened") func tooFew() async throws {
        let error = await #expect(throws: FerryError.self) {
            _ = try await BenchRun.adapters(settings { $0.centrals = 2 }, try adapters(2))
        }
        #expect(error?.message.contains("need 3 adapters, comma-separated; --transport names 2") == true)
    }

    @Test("What an adapter leaves no choice of is not swept") func onlyMTU() throws {
        #expect(BenchTransport.sim.defaultMTUs.count == 4)
        #expect(BenchTransport.adapters(try adapters(2)).defaultMTUs.count == 4)
        let stubborn = NamedTransport("air", attMTU: 517, try adapters(1)[0].opening)
        #expect(BenchTransport.adapters([stubborn, stubborn]).defaultMTUs == [517])
    }

    @Test("Points that need no adapters need none") func others() throws {
        try BenchTransport.sim.check(settings())
        try BenchTransport.loopback.check(settings { $0.centrals = 9 })
    }
}
