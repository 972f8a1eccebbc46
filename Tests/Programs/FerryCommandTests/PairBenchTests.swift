import Ferry
import Foundation
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

/// What the two processes of a measurement say to one another, and what is counted.
@Suite("ferry bench --serve and --connect: messages", .tags(.program)) struct PairMessageTests {
    @Test("Every message comes back as it was") func roundTrips() throws {
        let run = PairMessage.Run(direction: .write, messageSize: 100, seconds: 0.5)
        let result = PairMessage.Result(messages: 3, bytes: 300, seconds: 0.25)
        for message in [PairMessage.run(run), .end, .result(result), .ping] {
            #expect(try PairMessage(message.encoded()) == message)
        }
        let filler = SampleText.bytes(count: 100, seed: 1)
        for size in [1, 2, 100] {
            let bytes = PairMessage.data(count: size).encoded(filler: filler)
            #expect(bytes.count == size)
            #expect(try PairMessage(bytes) == .data(count: size))
        }
        #expect(result.goodput == 9.6)
    }

    @Test(
        "What is none of them is refused",
        arguments: [
            "", "\u{2}x", "\u{4}x", "\u{5}", "\0{}", "\0{\"direction\":\"write\",\"messageSize\":0,\"seconds\":1}",
            "\0{\"direction\":\"write\",\"messageSize\":1,\"seconds\":1e9}",
            "\0{\"direction\":\"both\",\"messageSize\":1,\"seconds\":1}",
            "\u{3}{\"messages\":-1,\"bytes\":0,\"seconds\":0}", "\0" + String(repeating: " ", count: 1100),
        ])
    func malformed(_ text: String) {
        let error = #expect(throws: FerryError.self) { try PairMessage(Array(text.utf8)) }
        #expect(error?.code == .decodingFailed)
    }

    @Test("A line a second, and what has arrived by the last arrival") func meter() {
        func at(_ seconds: Double) -> Timestamp { .zero + .seconds(seconds) }
        var meter = PairMeter(start: at(10))
        meter.take(1000, at: at(10.5))
        #expect(meter.line(at: at(10.9)) == nil)
        meter.take(1000, at: at(12))
        #expect(meter.line(at: at(12)) == PairProgress(seconds: 2, goodput: 8, messages: 2))
        meter.take(125, at: at(12.5))
        #expect(meter.line(at: at(12.9)) == nil)
        #expect(meter.line(at: at(13)) == PairProgress(seconds: 3, goodput: 1, messages: 1))
        #expect(meter.result == PairMessage.Result(messages: 3, bytes: 2125, seconds: 2.5))
        #expect(PairMeter(start: at(10)).result.goodput == 0)
        #expect(
            PairProgress(seconds: 3, goodput: 1234.56, messages: 7).text("received")
                == "    3.0 s  received      1234.6 kbit/s  7 messages")
    }
}

/// The same between two processes.
@Suite("ferry bench --serve and --connect", .tags(.program), .timeLimit(.minutes(5))) struct PairBenchTests {
    private func run(_ script: String, _ transport: String = "unix:./s") async throws -> String {
        try await ProgramShell.run(script, ["T": "--transport \(transport)"])
    }

    /// Waits until the server listens, connects for a second or more, and ends the server.
    private let together = """
        $FERRY bench --serve $T $S > served 2>&1 & s=$!
        until_size served 0
        $FERRY bench --connect $T --seconds $N.2 $C; echo "connected $?"
        kill -INT $s; wait $s; echo "served $?"; cat served
        """

    @Test(
        "Both directions, two sizes, a line a second, over Unix sockets and TCP",
        arguments: ["unix:./s", "tcp:\(OwnAddress.text):20002"])
    func bothDirections(_ transport: String) async throws {
        let measured = try ["notify", "write"].flatMap { what in
            try [100, 4096].map { size in
                try Regex("(?m)^\(what), messages of \(size) bytes: [1-9][0-9.]* kbit/s, [1-9]")
            }
        }
        // A side writes a line a second for as long as it sends or receives.
        let live = try ["received", "sent"].map { what in
            try Regex("(?m)^ +\\d+\\.\\d s  \(what) +\\d+\\.\\d kbit/s  \\d+ messages$")
        }
        let ends = "connected 0\nserved 130\n"
        let output = try await ProgramShell.run(
            together, ["T": "--transport \(transport)", "S": "", "C": "--message-size 100,4096"]
        ) { output in
            measured.allSatisfy { output.ranges(of: $0).count == 2 }
                && output.components(separatedBy: ends).allSatisfy { side in live.allSatisfy { side.contains($0) } }
        }
        let sides = output.components(separatedBy: ends)
        try #require(sides.count == 2, "\(output)")
        for side in sides {
            for regex in measured + live { #expect(side.contains(regex), "\(output)") }
        }
        #expect(sides[0].contains(#/(?m)^round trip of one byte: \d+\.\d\d ms, the median of 9$/#), "\(output)")
    }

    @Test("JSON by the line, and acknowledged chunks") func json() async throws {
        let output = try await ProgramShell.run(
            together,
            [
                "T": "--transport unix:./s", "S": "--framing sequenced",
                "C": "--framing sequenced --json --direction write",
            ]
        ) { $0.contains(#/"goodput":[1-9]/#) }
        #expect(output.contains(#/(?m)^\{"chunkSize":/#), "\(output)")
        #expect(output.contains(#/"direction":"write","event":"result","goodput":[1-9]/#), "\(output)")
        #expect(output.contains("connected 0\nserved 130\n"), "\(output)")
    }

    @Test("A client that is killed does not end the server") func killed() async throws {
        let output = try await run(
            """
            $FERRY bench --serve $T > served 2>&1 & s=$!
            until_size served 0
            $FERRY bench --connect $T --seconds 60 > first & c=$!
            # The client is connected before it has said anything, and a visit begins with its first word.
            until_there served ' is here'; kill -9 $c; wait $c 2> /dev/null
            until_there served 'has failed'
            $FERRY bench --connect $T --seconds 1 --direction write > /dev/null; echo "connected $?"
            kill -INT $s; wait $s; echo "served $?"; grep -c 'The visit has failed: ' served
            """)
        #expect(output.hasSuffix("connected 0\nserved 130\n1\n"), "\(output)")
    }

    @Test(
        "Wrong usage ends with 64, nobody there with 1",
        arguments: [
            ("--serve", 64, "one transport that reaches another process"), ("--serve --connect $T", 64, "Choose one"),
            ("--serve --transport loopback", 64, "one transport that reaches"),
            ("--connect $T --csv", 64, "here there is --json"),
            ("--connect $T --framing eom,length", 64, "one framing"),
            ("--connect $T --seconds 0", 64, "0.1 to 3600"), ("--connect $T --message-size 0", 64, "1 to 1048576"),
            ("--connect $T --interval nan", 64, "7.5 to 4000"), ("$T", 64, "give --serve to one"),
            ("--transport unix:a,unix:b", 64, "no single Bluetooth adapter"),
            ("--serve --transport unix:./none/s", 1, "none"),
        ])
    func wrong(_ arguments: String, _ status: Int, _ words: String) async throws {
        let output = try await run("$FERRY bench \(arguments); echo \"status $?\"")
        #expect(output.contains(words), "\(output)")
        #expect(output.hasSuffix("status \(status)\n"), "\(output)")
    }
}
