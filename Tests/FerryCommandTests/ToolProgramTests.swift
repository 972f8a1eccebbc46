import TestSupport
import Testing

/// The tools that only read and compute, as a person runs them: what they print, where, and how they end.
@Suite("ferry trace, advise and fleet", .tags(.program), .timeLimit(.minutes(3))) struct ToolProgramTests {
    @Test("A transfer's log is traced, in a pipe and on a terminal, and a chunk nobody understands fails")
    func trace() async throws {
        let output = try await ProgramShell.run(
            """
            head -c 100000 /dev/urandom > big
            both '$FERRY receive --transport unix:./s out' '$FERRY send --transport unix:./s --log log big' > /dev/null
            $FERRY trace log > traced; echo "log $?"; grep -c '= message' traced; tail -n 1 traced
            $FERRY trace < log | cmp - traced; echo "pipe $?"
            script -qefc "$PROGRAM trace log" typescript > /dev/null; echo "terminal $?"; tr -d '\\r' < typescript | grep -c '= message'
            printf '> ff\\n' | $FERRY trace > /dev/null; echo "unknown $?"
            $FERRY trace nothing; echo "none $?"
            $FERRY trace --framing odd log; echo "usage $?"
            head -c 100 /dev/urandom > noise; $FERRY trace noise > /dev/null; echo "noise $?"
            """)
        for line in ["log 0", "pipe 0", "terminal 0", "unknown 1", "none 1", "usage 64", "noise 1"] {
            #expect(output.contains("\(line)\n"), "\(line): \(output)")
        }
        #expect(output.contains("9 messages to the end, 0 open"), "\(output)")
        #expect(output.split(separator: "\n").count { $0 == "9" } == 2, "\(output)")
        #expect(output.contains("1 chunk was not understood."), "\(output)")
        #expect(output.contains("There is no framing 'odd'. Use length, eom, sequenced."), "\(output)")
    }

    @Test("Advice that cannot be kept fails, and a peer that is not known is named") func advise() async throws {
        let output = try await ProgramShell.run(
            """
            $FERRY advise --message-size 2000 --peer ios --within 500 > /dev/null; echo "kept $?"
            $FERRY advise --message-size 2000 --peer ios --within 20; echo "missed $?"
            $FERRY advise --message-size 2000 --peer toaster; echo "peer $?"
            $FERRY --version; echo "version $?"
            """)
        for line in ["kept 0", "missed 1", "peer 64", "version 0"] {
            #expect(output.contains("\(line)\n"), "\(line): \(output)")
        }
        #expect(output.contains("still misses the 20 ms asked for"), "\(output)")
        #expect(output.contains("Choose from: ios, android, bluez, custom."), "\(output)")
    }

    @Test("A sweep shows that it goes on from the first second, and its lines are not among the results")
    func progress() async throws {
        let output = try await ProgramShell.run(
            """
            $FERRY bench --transport loopback --seconds 1.2 --mtu 23,185 --csv > out 2> errors; echo "status $?"
            grep -c ' of 2, ' errors; grep -c ' of 2, ' out; wc -l < out
            """)
        #expect(output.hasPrefix("status 0\n"), "\(output)")
        let counts = output.split(separator: "\n").dropFirst().map { Int($0.filter(\.isNumber)) ?? -1 }
        #expect(counts.count == 3 && counts[0] >= 1 && counts[1] == 0 && counts[2] >= 3, "\(output)")
    }
}
