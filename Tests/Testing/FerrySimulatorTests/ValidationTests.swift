import Ferry
import FerrySimulator
import TestSupport
import Testing

@Suite("Illegal parameters", .tags(.simulator)) struct ValidationTests {
    private struct Case: Sendable {
        var change: @Sendable (inout LinkParameters) -> Void
        var range: String
    }

    private static let cases: [Case] = [
        Case(change: { $0.attMTU = 22 }, range: "23 to 517"),
        Case(change: { $0.attMTU = 518 }, range: "23 to 517"),
        Case(change: { $0.connectionInterval = .milliseconds(5) }, range: "7.5 ms to 4000 ms in steps of 1.25 ms"),
        Case(change: { $0.connectionInterval = .milliseconds(31) }, range: "7.5 ms to 4000 ms in steps of 1.25 ms"),
        Case(change: { $0.connectionInterval = .seconds(1 << 40) }, range: "7.5 ms to 4000 ms in steps of 1.25 ms"),
        Case(
            change: {
                $0.phy = .codedS8
                $0.dataLength = 26
            }, range: "27 to 251 bytes"),
        Case(
            change: {
                $0.phy = .codedS2
                $0.dataLength = 252
            }, range: "27 to 251 bytes"),
        Case(change: { $0.peripheralLatency = 500 }, range: "0 to 499"),
        Case(change: { $0.peripheralLatency = -1 }, range: "0 to 499"),
        Case(change: { $0.supervisionTimeout = .milliseconds(99) }, range: "100 ms to 32 s"),
        Case(change: { $0.peripheralLatency = 100 }, range: "more than 2 x (1 + latency) x interval"),
        Case(change: { $0.loss = .packetErrorRate(1.5) }, range: "0 to 1"),
        Case(change: { $0.loss = .bitErrorRate(-.nan) }, range: "0 to 1"),
    ]

    @Test("are refused with the legal range and its source", arguments: cases.indices)
    func refused(index: Int) {
        var parameters = LinkParameters()
        Self.cases[index].change(&parameters)
        let error = #expect(throws: FerryError.self) { _ = try RadioSimulator(parameters) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains(Self.cases[index].range) == true, "\(error?.message ?? "")")
    }

    @Test("Controllers too") func profiles() {
        for profile in [
            ControllerProfile(name: "a", source: "", packetsPerEvent: 0),
            ControllerProfile(name: "b", source: "", eventLength: .zero),
            ControllerProfile(name: "c", source: "", controllerBuffers: 0),
            ControllerProfile(name: "d", source: "", hostLatency: .seconds(-1)),
        ] {
            #expect(throws: FerryError.self, "\(profile.name)") {
                _ = try RadioSimulator(LinkParameters(), profile: profile)
            }
        }
    }

    @Test("Every profile that comes along is legal and has its own name") func namedProfiles() throws {
        for profile in ControllerProfile.all { try profile.validate() }
        #expect(Set(ControllerProfile.all.map(\.name)).count == ControllerProfile.all.count)
        #expect(ControllerProfile.named("ios")?.packetsPerEvent == 3)
    }
}
