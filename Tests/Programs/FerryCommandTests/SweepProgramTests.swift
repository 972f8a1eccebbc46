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
        #expect(output.contains("\nferry: messages of 4000000 bytes: No message of 4000000 bytes arrived"), "\(output)")
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

    @Test("Ctrl-C ends a simulated point at once, however long it is") func simulated() async throws {
        let output = try await ProgramShell.run(
            """
            set -m; $FERRY bench --mtu 23,247 --seconds 86400 --message-size 20 --interval 7.5 > out 2> errors & p=$!
            until_there errors ' of 2'
            kill -INT $p; timeout 20 tail --pid=$p -f /dev/null || echo late; wait $p; echo "status $?"
            """)
        #expect(output.hasSuffix("status 130\n") && !output.contains("late"), "\(output)")
    }

    @Test("Each second of a point in real time is told") func seconds() async throws {
        let output = try await ProgramShell.run(
            "$FERRY bench --transport loopback --mtu 247 --seconds 3.5 --message-size 100 2>&1 > out; grep -c goodput out"
        )
        #expect(output.matches(of: /received +[0-9.]+ kbit\/s  [0-9]+ messages/).count >= 2, "\(output)")
        #expect(output.hasSuffix("1\n"), "\(output)")
    }

    @Test("A transfer that has come to a standstill says so each second") func standstill() async throws {
        let output = try await ProgramShell.run(
            """
            $FERRY receive --transport unix:./s --timeout 3600 - > got 2> received & r=$!
            (head -c 100000 /dev/zero; until_there events '"bytesPerSecondNow":0,'; head -c 10 /dev/zero) \\
                | $FERRY send --transport unix:./s --timeout 3600 --json - > events; echo "sent $?"; wait $r; stat -c %s got
            """)
        #expect(output.hasSuffix("sent 0\n100010\n"), "\(output)")
    }
}
