import Ferry
import Foundation
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

@Suite("Output of commands", .tags(.program)) struct OutputTests {
    @Test("Progress tells the time that has gone by before it can tell what is left") func progress() {
        #expect(ProgressBar.text(0, of: 32, after: 0) == "0 of 32, after 0 s")
        #expect(ProgressBar.text(0, of: 32, after: 3.2) == "0 of 32, after 3 s")
        #expect(ProgressBar.text(8, of: 32, after: 10) == "8 of 32, about 30 s left")
        #expect(ProgressBar.text(31, of: 32, after: 1) == "31 of 32, about 1 s left")
    }

    @Test("A line on a terminal is never wider than it", arguments: [11, 20, 39, 79, 119]) func narrow(limit: Int) {
        for done in [0, 1, 16, 32] {
            #expect(ProgressBar.line(done, of: 32, after: 10, limit).count <= limit)
        }
        #expect(TerminalWidth.line(["a file with a long name", "14 %", "44.1 MB/s"], limit).count <= limit)
    }

    @Test("What does not fit is left out whole, the bar first made shorter") func fitted() {
        #expect(ProgressBar.line(16, of: 32, after: 10, 79) == "[" + bar(15, 15) + "] 16 of 32, about 10 s left")
        #expect(ProgressBar.line(16, of: 32, after: 10, 39) == "[" + bar(5, 6) + "] 16 of 32, about 10 s left")
        #expect(ProgressBar.line(16, of: 32, after: 10, 30) == "16 of 32, about 10 s left")
        #expect(TerminalWidth.line(["big", "14 %", "8.8 MB of 60.0 MB"], 12) == "big  14 %")
        #expect(TerminalWidth.line(["big", "14 %"], 2) == "bi")
        #expect(TerminalWidth.line(["big", "14 %"], 9) == "big  14 %")
    }

    private func bar(_ done: Int, _ left: Int) -> String {
        String(repeating: "#", count: done) + String(repeating: ".", count: left)
    }

    @Test(
        "What is wrong with a file is said in words",
        arguments: [
            ("", "it is not JSON"), ("{}", "'name' is missing"),
            (#"{"name": "a", "source": 3}"#, "at source, the value is not text"),
        ]) func fileProblems(text: String, problem: String) throws
    {
        let path = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UInt64.random(in: 0 ... .max)).json")
            .path()
        try JSONFile.write(text, to: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let error = #expect(throws: FerryError.self) { let _: ControllerSettings = try JSONFile.read(path, "profile") }
        #expect(error?.message.contains(problem) == true, "\(error.map(\.message) ?? "")")
        let missing = #expect(throws: FerryError.self) {
            let _: ControllerSettings = try JSONFile.read(path + "x", "profile")
        }
        #expect(missing?.message.hasSuffix("there is no such file.") == true)
        let unwritable = #expect(throws: FerryError.self) { try JSONFile.write("", to: path + "/x") }
        #expect(unwritable?.message.contains("Cannot write") == true)
    }
}
