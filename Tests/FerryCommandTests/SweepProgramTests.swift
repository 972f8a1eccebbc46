import TestSupport
import Testing

/// Sweeps that do not go to their end.
@Suite("ferry bench, cut short", .tags(.program), .timeLimit(.minutes(5))) struct SweepProgramTests {
    @Test("A point that cannot be measured is named, and the others are measured") func badPoint() async throws {
        let output = try await ProgramShell.run(
            """
            $FERRY bench --mtu 23 --message-size 4000000,20 --seconds 0.1 2> errors; echo "status $?"; cat errors
            """)
        #expect(output.contains("message B 20, ") && output.contains("goodput kbit/s"), "\(output)")
        #expect(output.contains("\nferry: message B 4000000: No message of 4000000 bytes arrived"), "\(output)")
        #expect(output.contains("status 1\n"), "\(output)")
        #expect(output.contains("1 of 2 points in "), "\(output)")
        #expect(output.contains("1 of 2 points could not be measured"), "\(output)")
    }

    @Test("Ctrl-C prints what was measured") func interrupted() async throws {
        let output = try await ProgramShell.run(
            """
            cat > run <<'END'
            echo $$ > pid
            exec "$FERRY" bench --transport loopback --seconds 0.3 --mtu 23,185,247,517 --interval 7.5,15,30,60,90 > out
            END
            script -qfec "sh run" typescript > /dev/null & s=$!
            until_there typescript '\\] 2 of 20'
            kill -INT $(cat pid); wait $s; echo "status $?"; cat out
            """)
        #expect(output.hasPrefix("status 130\n"), "\(output)")
        // What is the same everywhere stands above, an empty line, headings, and two points at least.
        #expect(output.split(separator: "\n").count >= 5, "\(output)")
        #expect(output.contains("goodput kbit/s"), "\(output)")
        // What only the simulated link heeds is not told of another one.
        for setting in ["phy", "data length", "error rate", "controller"] { #expect(!output.contains(setting)) }
    }
}
