import TestSupport
import Testing

/// The same commands as people run them, on the demonstration.
@Suite("ferry scan, inspect, read, write, watch", .tags(.program, .gatt), .timeLimit(.minutes(5)))
struct ExploreProgramTests {
    private func run(_ script: String) async throws -> String {
        try await ProgramShell.run(
            script, ["T": "--transport loopback", "P": "--transport loopback --timeout 3600"])
    }

    /// Scans for longer each time, until both peripherals have been heard.
    private func scan(_ script: String, heard names: [String] = ["Ferry room", "Ferry belt"]) async throws -> String {
        try await ProgramShell.run(script, ["T": "--transport loopback"]) { output in
            names.allSatisfy { output.contains($0) }
        }
    }

    @Test("In a pipe a scan is a table at the end, and JSON by the line") func scan() async throws {
        let output = try await scan("$FERRY scan $T --seconds $N; echo $?")
        #expect(output.contains(#/(?m)^NAME +ADDRESS +RSSI +AGE +SERVICES$/#), "\(output)")
        #expect(
            output.contains(
                #/(?m)^Ferry room +C0:FE:00:00:00:00\/random +-40 +\d\.\d s +Device Information, Battery, Environmental Sensing$/#
            ),
            "\(output)")
        #expect(
            output.contains("Ferry belt") && output.contains("Heart Rate") && output.hasSuffix("\n0\n"), "\(output)")
        #expect(!output.contains("\u{1B}"))
        let filtered = try await scan(
            "$FERRY scan $T --seconds $N --service 'heart rate' --json; echo $?", heard: ["Ferry belt"])
        #expect(filtered.contains("\"name\":\"Ferry belt\""), "\(filtered)")
        #expect(filtered.contains("\"serviceNames\":[\"Heart Rate\"]") && !filtered.contains("room"), "\(filtered)")
    }

    @Test("On a terminal the table is drawn anew; Ctrl-C leaves it there") func live() async throws {
        let drawn = try await scan(#"script -qec "$FERRY scan $T --seconds $N" /dev/null"#, heard: ["\u{1B}[3A\r"])
        #expect(drawn.contains("Ferry room") && drawn.contains("Ferry belt"), "\(drawn)")
        let output = try await scan(
            """
            $FERRY scan $T --seconds 3600 > out & p=$!
            # Until it catches SIGINT, which ends it without a word before.
            until (( 0x$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$p/status) & 2 )); do sleep 0.05; done
            sleep $N; kill -INT $p; wait $p; echo "ended $?"; cat out
            """)
        #expect(output.contains("ended 130\n") && output.hasSuffix("Heart Rate\n"), "\(output)")
    }

    @Test("Descriptors are read and written, and one that is not there is answered with those that are")
    func descriptors()
        async throws
    {
        let note = "E07F0AE8-00BB-47F5-94F4-4A7174EA3051"
        let output = try await run(
            """
            $FERRY read $P 'Ferry room' \(note) --descriptor 'Characteristic User Description' --as text; echo $?
            $FERRY read $P 'Ferry room' \(note) --descriptor 2902; echo $?
            $FERRY write $P 'Ferry room' \(note) --descriptor 2901 00 ; echo $?
            """)
        #expect(output.contains("A note\"\n0\n") || output.contains("A note\n0\n"), "\(output)")
        #expect(output.contains("has no descriptor \"2902\". There are: Characteristic User Description"), "\(output)")
        #expect(output.contains("The peripheral refuses: "), "\(output)")
    }

    @Test("A peripheral's tree, by its name and its address", arguments: ["'Ferry room'", "c0:fe:00:00:00:00"])
    func inspect(_ peripheral: String) async throws {
        let output = try await run("$FERRY inspect $P \(peripheral); echo $?")
        #expect(output.contains("ATT_MTU 185\n"), "\(output)")
        #expect(
            output.contains(
                """
                Device Information  180A
                  Manufacturer Name String  2A29  read
                    = "Ferry"

                """), "\(output)")
        #expect(
            output.contains(#/Battery  180F\n  Battery Level  2A19  read, notify\n    = 57 \(87 %\)\n/#), "\(output)")
        #expect(
            output.contains(
                "E07F0AE8-00BB-47F5-94F4-4A7174EA3051  read, write without response, write\n      A note\n    = (empty)\n"
            ),
            "\(output)")
        #expect(output.hasSuffix("\n0\n"), "\(output)")
    }

    @Test("Values are read, written and watched") func values() async throws {
        let output = try await run(
            """
            N=E07F0AE8-00BB-47F5-94F4-4A7174EA3051
            $FERRY read $P 'Ferry room' 'battery level' --as uint8
            $FERRY read $P 'Ferry room' 180A/2A29 --json
            $FERRY write $P 'Ferry room' $N --as text 'Hello there' --read-back
            $FERRY write $P 'Ferry room' $N 00ff --without-response --read-back
            $FERRY watch $P 'Ferry room' Temperature --as int16 --count 2 2>&1 | sed 's/^[0-9.]* //'
            $FERRY watch $P 'Ferry belt' --seconds 3600 --json 2>/dev/null | head -n 1 | grep -c '"name":"Heart Rate Measurement"'
            """)
        // A step that takes more than a second says so.
        let waits = ["ferry: Looking for ", "ferry: Connecting to "]
        let lines = output.split(separator: "\n").map(String.init).filter { line in
            !waits.contains { line.hasPrefix($0) }
        }
        try #require(lines.count == 8, "\(output)")
        #expect(lines[0] == "87")
        #expect(
            lines[1]
                == #"{"characteristic":"2A29","hex":"46 65 72 72 79","name":"Manufacturer Name String","service":"180A","value":"\"Ferry\""}"#
        )
        #expect(lines[2] == "\"Hello there\"" && lines[3] == "00 FF", "\(output)")
        #expect(lines[4] == "ferry: watching Temperature", "\(output)")
        #expect(
            lines[5].contains(#/^ ?Temperature  2\d\d\d$/#) && lines[6].contains(#/^ ?Temperature  2\d\d\d$/#),
            "\(output)")
        #expect(lines[7] == "1", "\(output)")
    }

    @Test(
        "What is wrong is told, with 64 for usage and 1 for the rest",
        arguments: [
            ("scan", 64, "--transport"), ("scan --transport unix:x", 64, "is no Bluetooth adapter"),
            ("scan $T --seconds 0", 64, "0.1 to 86400"), ("scan $T --rssi 30", 64, "-127 to 20"),
            ("scan $T --service frob", 64, "is not a Bluetooth UUID"),
            ("inspect $T nobody --timeout 0", 64, "0.1 to 3600"),
            ("read $P 'Ferry room' frob", 1, "There is no characteristic \"frob\". There are: 180A/2A29"),
            ("read $P 'Ferry room' 2A29 --as uint16", 1, "The value is no uint16: 5 bytes"),
            ("read $P 'Ferry room' 2A29 --as frob", 64, "frob"), ("read $P 'Ferry belt' 2A37", 1, "Read Not Permitted"),
            ("write $P 'Ferry room' 2A19 5", 64, "1 hexadecimal digits"),
            ("write $P 'Ferry room' 2A19 05", 1, "Battery Level takes no such writes; it offers: read, notify"),
            ("watch $P 'Ferry room' 2A29", 1, "neither notifies nor indicates"),
            ("watch $P 'Ferry room' --count 0", 64, "1 or more"),
        ])
    func wrong(_ arguments: String, _ status: Int, _ words: String) async throws {
        let output = try await run("$FERRY \(arguments); echo \"status $?\"")
        #expect(output.contains(words), "\(output)")
        #expect(output.hasSuffix("status \(status)\n"), "\(output)")
    }

    @Test("A name that is not heard is told, and who is") func unheard() async throws {
        let output = try await scan(
            "$FERRY inspect $T nobody --timeout $N; echo \"status $?\"", heard: ["heard: Ferry "])
        #expect(output.contains(#/"nobody" was not heard within \d+\.0 s; heard: Ferry /#), "\(output)")
        #expect(output.hasSuffix("status 1\n"), "\(output)")
    }

    @Test("A reader of the output may go, and a full disk is told") func brokenPipe() async throws {
        let output = try await run(
            """
            set -o pipefail; $FERRY watch $P 'Ferry room' Temperature | head -n 1 >/dev/null; echo "status $?"
            $FERRY watch $P 'Ferry room' Temperature > /dev/full; echo "status $?"
            """)
        #expect(!output.contains("Standard output cannot be written to.\nstatus 0\n"), "\(output)")
        #expect(output.contains("status 0\n"), "\(output)")
        #expect(output.hasSuffix("Standard output cannot be written to.\nstatus 1\n"), "\(output)")
    }
}
