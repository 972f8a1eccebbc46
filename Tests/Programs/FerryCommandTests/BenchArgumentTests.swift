import ArgumentParser
import Ferry
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

/// One point, quick enough for a test.
func settings(_ change: (inout BenchSettings) -> Void = { _ in }) -> BenchSettings {
    var settings = BenchSettings.usual
    change(&settings)
    return settings
}

@Suite("Arguments of ferry bench", .tags(.program)) struct BenchArgumentTests {
    @Test(
        "Nonsense is refused with the legal range and its source",
        arguments: [
            (["--mtu", "22"], "23 to 517", "Core Specification"),
            (["--mtu", "23,518"], "23 to 517", "Core Specification"),
            (["--interval", "5"], "7.5 ms to 4000 ms in steps of 1.25 ms", "Core Specification"),
            (["--interval", "nan"], "7.5 ms to 4000 ms", "Core Specification"),
            (["--interval=-1"], "7.5 ms to 4000 ms", "Core Specification"),
            (["--phy", "coded-S8", "--data-length", "252"], "27 to 251", "Core Specification"),
            (["--phy", "coded-S2", "--data-length", "26"], "27 to 251", "Core Specification"),
            (["--phy", "3M"], "1M, 2M, coded-S2, coded-S8", "Core Specification"),
            (["--mtu", ","], "sweep is empty", "--mtu"),
            (["--queue-depth", "0"], "1 to 4096", "transmitQueueDepth"),
            (["--message-size=-1"], "0 to", "maximumMessageSize"),
            (["--centrals", "0"], "1 to 20", "radio"),
            (["--error-rate", "1.5"], "0 to 1", "probability"),
            (["--framing", "tlv"], "length, eom", "framing"),
            (["--controller", "cray"], "ideal", "controller"),
            (["--seconds", "0"], "0.1 to 86400", "duration"),
            (["--profile-file", "/nonexistent.json"], "/nonexistent.json", "profile"),
            (["--compare", "/nonexistent.json"], "/nonexistent.json", "result"),
            (["--report", "/nonexistent/report.html"], "/nonexistent/report.html", "folder"),
            (["--transport", "pigeon"], "sim, loopback", "transport"),
        ])
    func refused(arguments: [String], range: String, source: String) {
        let error = #expect(throws: (any Error).self) { _ = try FerryCommand.parseAsRoot(["bench"] + arguments) }
        let message = error.map { FerryCommand.message(for: $0) } ?? ""
        #expect(message.contains(range), "\(message)")
        #expect(message.contains(source), "\(message)")
    }

    @Test("A sweep is every combination, each value once") func sweep() throws {
        let command = try #require(
            try FerryCommand.parseAsRoot(["bench", "--mtu", "23, 185,23", "--interval", "7.5,15", "--phy", "1M,2M"])
                as? Bench)
        let points = try command.sweep.points(defaultSeconds: 1, defaultMTUs: [517])
        #expect(points.count == 8)
        #expect(Set(points).count == 8)
    }

    @Test("Too large a sweep is refused") func tooLarge() {
        let many = (23...517).map(String.init).joined(separator: ",")
        let sizes = (1...100).map(String.init).joined(separator: ",")
        #expect(throws: (any Error).self) {
            _ = try FerryCommand.parseAsRoot(["bench", "--mtu", many, "--message-size", sizes])
        }
    }

    @Test("Lists are read in order, each value once") func lists() {
        #expect(CommaList<Int>(argument: "3, 1,3,,2")?.elements == [3, 1, 2])
        #expect(CommaList<Int>(argument: "3,x") == nil)
        #expect(CommaList<Int>(argument: "")?.elements == [])
        #expect(CommaList([1, 2]).defaultValueDescription == "1,2")
    }
}
