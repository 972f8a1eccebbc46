import ArgumentParser
import Ferry
import TestSupport
import Testing

@testable import FerryCommand

@Suite("Arguments of ferry advise", .tags(.program)) struct AdviseArgumentTests {
    @Test(
        "Nonsense is refused",
        arguments: [
            (["--message-size", "100", "--sample", "x"], "one of"), ([], "one of"),
            (["--message-size", "100", "--peer", "toaster"], "ios, android, bluez, custom"),
            (["--message-size", "100", "--mtu", "22"], "23 to 517"),
            (["--message-size", "100", "--interval", "5"], "7.5 ms to 4000 ms"),
            (["--message-size", "100", "--interval", ","], "sweep is empty"),
            (["--message-size", "100", "--within", "0"], "more than 0"),
            (["--sizes-file", "/nonexistent"], "/nonexistent"),
            (
                ["--message-size", "100", "--peer", "ios", "--controller", "cc254x"],
                "--controller does not go with --peer ios"
            ),
            (
                ["--message-size", "100", "--controller", "cc254x", "--profile-file", "/nonexistent"],
                "both name a controller profile"
            ),
        ])
    func refused(arguments: [String], reason: String) {
        let error = #expect(throws: (any Error).self) { _ = try FerryCommand.parseAsRoot(["advise"] + arguments) }
        let message = error.map { FerryCommand.message(for: $0) } ?? ""
        #expect(message.contains(reason), "\(message)")
    }

    @Test("--score goes with --json alone") func options() throws {
        _ = try FerryCommand.parseAsRoot(["advise", "--score", "--json"])
        for other in [["--message-size", "9"], ["--peer", "ios"], ["--mtu", "185"], ["--within", "9"]] {
            #expect(throws: (any Error).self) { _ = try FerryCommand.parseAsRoot(["advise", "--score"] + other) }
        }
    }
}
