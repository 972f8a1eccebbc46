import Foundation
import TestSupport
import Testing

/// The tools that only read and compute, as a person runs them: what they print, where, and how they end.
@Suite("ferry trace, advise, fleet and dictionary", .tags(.program), .timeLimit(.minutes(5))) struct ToolProgramTests {
    @Test("A dictionary is trained, shown and used, and what cannot be is told") func dictionary() async throws {
        let output = try await ProgramShell.run(
            #"""
            for i in $(seq 40); do echo "{\"sensor\":$((i % 5)),\"celsius\":$((i * 37 % 40)).5,\"place\":\"roof\"}"; done > records
            $FERRY dictionary train --lines records -o made --size 256; echo "train $?"
            $FERRY dictionary train --lines records -o again --size 256 --json | grep -c '"withDictionary"'; cmp made again; echo "same $?"
            $FERRY dictionary show made | head -3 | tr '\n' ' '; $FERRY dictionary show made --json | grep -c checksum
            python3 -c 'import zlib, sys; print("crc %08x" % zlib.crc32(open("made", "rb").read()))'
            $FERRY advise --records records --dictionary made --peer ios --seconds 1 | grep -c 'Protocol Buffers\|dictionary [0-9a-f]\{8\}:'
            $FERRY bench --records readings --batch 5 --mtu 185 --seconds 1 --json | grep -c '"recordsPerSecond"'
            $FERRY bench --records readings --csv; echo "csv $?"
            $FERRY bench --batch 5; echo "batch $?"
            $FERRY advise --records readings --message-size 5; echo "two $?"
            $FERRY dictionary train --lines none -o x; echo "none $?"
            $FERRY dictionary train --lines records -o none/x; echo "folder $?"
            $FERRY dictionary train --lines records -o x --size 10; echo "size $?"
            : > empty; $FERRY dictionary show empty; echo "empty $?"
            printf 'a\nbc\n' > short; $FERRY dictionary train --lines short -o x; echo "short $?"; ls x 2> /dev/null
            """#)
        for line in [
            "train 0", "same 0", "2", "csv 64", "batch 64", "two 64", "none 1", "folder 1", "size 64", "empty 1",
            "short 1",
        ] {
            #expect(output.contains("\(line)\n"), "\(line): \(output)")
        }
        let checksum = try #require(output.firstMatch(of: /checksum  ([0-9a-f]{8})/)?.1)
        #expect(output.contains("crc \(checksum)"), "\(output)")
        #expect(output.hasPrefix("\(checksum)  "), "\(output)")
        for words in [
            "Every second sample: ", "--records compares codecs on the simulated link", "name these too",
            "which is no dictionary", "share no", "there is no such file", "its folder does not exist",
            "give 64 to 32768",
        ] {
            #expect(output.contains(words), "\(words): \(output)")
        }
        #expect(!output.contains("Optional("))
    }

    @Test("A transfer's log is traced, in a pipe and on a terminal, and a chunk nobody understands fails")
    func trace() async throws {
        let output = try await ProgramShell.run(
            """
            head -c 100000 /dev/urandom > big
            both '$FERRY receive --transport unix:./s --timeout 3600 out' '$FERRY send --transport unix:./s --timeout 3600 --log log big' > /dev/null
            $FERRY trace log > traced; echo "log $?"; grep -c '= message' traced; tail -n 1 traced
            $FERRY trace < log | cmp - traced; echo "pipe $?"
            script -qefc "$FERRY trace log" typescript > /dev/null; echo "terminal $?"; tr -d '\\r' < typescript | grep -c '= message'
            printf '> ff\\n' | $FERRY trace > /dev/null; echo "unknown $?"
            $FERRY trace nothing; echo "none $?"
            printf '1 ms  a\\033[2J  connected\\n2 ms  a\\033[2J  sent  1 bytes  41\\n3 ms  a\\033[2J  ended: a\\033]0;title\\007b\\n' > escapes
            echo "escapes $($FERRY trace --framing length escapes 2>&1 | grep -c $'\\033\\|\\007')"
            $FERRY trace --framing odd log; echo "usage $?"
            head -c 100 /dev/urandom > noise; $FERRY trace noise > /dev/null; echo "noise $?"
            """)
        for line in ["log 0", "pipe 0", "terminal 0", "unknown 1", "none 1", "escapes 0", "usage 64", "noise 1"] {
            #expect(output.contains("\(line)\n"), "\(line): \(output)")
        }
        #expect(output.contains("9 messages to the end, 0 open"), "\(output)")
        #expect(output.split(separator: "\n").count { $0 == "9" } == 2, "\(output)")
        #expect(output.contains("1 chunk was not understood."), "\(output)")
        #expect(output.contains("There is no framing 'odd'. Use length, eom, sequenced, smp"), "\(output)")
    }

    static let endings: [(arguments: String, status: Int, words: String)] = {
        var endings: [(String, Int, String)] = [
            ("advise --sizes-file none --peer ios", 1, "Cannot read 'none': there is no such file."),
            ("advise --sample none --peer ios", 1, "Cannot read 'none': there is no such file."),
            ("advise --sizes-file list --peer ios", 1, "list"), ("bench --compare none", 1, "there is no such file."),
            ("bench --compare bad", 1, "it is not JSON"),
            ("bench --report none/page", 1, "its folder does not exist"),
            ("bench --report list", 1, "Cannot write 'list': it is a folder."),
            ("help recieve", 64, "Did you mean 'ferry receive'?"), ("version", 64, "Did you mean 'ferry --version'?"),
            ("bench --json --csv", 64, "Choose one of --json and --csv."), ("trace none", 1, "No such file"),
            ("send --transport unix:list bad", 1, "there is a file of that name that is no socket"),
            ("send --transport unix:none/s bad", 1, "its folder does not exist"),
            ("receive --transport unix:./s --log none/log", 1, "The log 'none/log' cannot be written"),
            ("trace $'\\xff'", 64, "Argument 2 is not UTF-8"),
            ("send --transport unix:./s --name ../x -", 64, "no name that can be sent"),
        ]
        #if NATS && Records
            endings += [
                ("gateway --transport unix:./s --store g", 64, "Usage: ferry gateway"),
                (
                    "gateway --transport unix:./s --store g --nats nats://127.0.0.1:1 --check", 1,
                    "cannot be connected to (No server available for connection)."
                ),
            ]
        #endif
        #if Records
            endings += [
                ("outbox list none", 1, "There is no store none."),
                ("outbox list bad", 1, "The file bad is damaged, or is no store of records."),
                ("send --store store --to p --transport unix:./s --timeout 60 nothing", 1, "'nothing' cannot be read"),
                (
                    "send --store store --to p --transport unix:./s --timeout 60 list", 1,
                    "is a folder, which is no record"
                ),
                ("outbox show list p --limit 0", 64, "give 1 to 100000"),
            ]
        #endif
        #if HCI
            endings += [
                (
                    "scan --transport hci:tcp:127.0.0.1:1 --seconds 1", 1, "hci:tcp:127.0.0.1:1: Connection refused."
                )
            ]
        #endif
        return endings
    }()

    @Test(
        "What is wrong with the arguments ends with 64, a file that is not there with 1, and neither tells internals",
        arguments: endings)
    func ends(_ arguments: String, _ status: Int, _ words: String) async throws {
        let output = try await ProgramShell.run(
            "printf '{' > bad; mkdir list; $FERRY \(arguments) < /dev/null; echo \"status $?\"")
        #expect(output.contains(words), "\(output)")
        #expect(output.hasSuffix("status \(status)\n"), "\(output)")
        for word in ["NSCocoa", "errno", "SingleConnectionFailure", "FerryError", "Optional(", "conn.c"] {
            #expect(!output.contains(word), "\(output)")
        }
    }

    #if Records
        @Test("A minus sign in a record's place is standard input") func standardInput() async throws {
            let output = try await ProgramShell.run(
                """
                printf 'one\\ntwo\\n' | $FERRY outbox send store peer -
                $FERRY outbox show store peer | grep -c 'one$\\|two$'
                """)
            #expect(output == "2 appended\n2\n", "\(output)")
        }
    #endif

    @Test("Advice that cannot be kept fails, and a peer that is not known is named") func advise() async throws {
        let output = try await ProgramShell.run(
            """
            $FERRY advise --message-size 2000 --peer ios --within 500 --seconds 2 > /dev/null; echo "kept $?"
            $FERRY advise --message-size 2000 --peer ios --within 20 --seconds 2; echo "missed $?"
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

    @Test("What standard output does not take is a failure, whichever command prints it") func fullDisk() async throws {
        let output = try await ProgramShell.run(
            """
            printf '> ff\\n' > log
            for command in 'advise --message-size 100 --peer ios --seconds 1' 'bench --mtu 185' 'fleet simulate --gateways 2 --peers 9 --minutes 1' \
                'scan --transport loopback --seconds 0.2' 'trace log'; do
                $FERRY $command > /dev/full 2> errors; echo "$? ${command%% *}"; grep -c 'Standard output cannot be written to' errors
            done
            # As on a terminal, where lines are written one by one and nothing is left to write in the end.
            for command in 'advise --message-size 100 --peer ios --seconds 1' 'fleet simulate --gateways 2 --peers 9 --minutes 1'; do
                stdbuf -oL $FERRY $command > /dev/full 2> errors; echo "$? lines"; cat errors
            done
            $FERRY advise --message-size 100 --peer ios --seconds 1 >&- 2> errors; echo "closed $?"
            """)
        #expect(
            output.split(separator: "\n") == [
                "1 advise", "1", "1 bench", "1", "1 fleet", "1", "1 scan", "1", "1 trace", "0",
                "1 lines", "Error: Standard output cannot be written to.",
                "1 lines", "Error: Standard output cannot be written to.", "closed 1",
            ], "\(output)")
    }

    @Test("What a fleet is simulated with is checked, in the words of the options") func fleetUsage() async throws {
        let wrong = [
            ("--gateways 0", "--gateways is 0; give 1 to 10000."), ("--peers 9999999", "--peers is 9999999; give 1 to"),
            ("--capacity 0", "--capacity is 0; give 1 to"), ("--minutes 0", "--minutes is 0; give 1 to 1440."),
            ("--time-to-live 2", "--time-to-live is 2; give 8 to"), ("--poll 0", "--poll is 0; give 1 to"),
            ("--startup=-1", "--startup is -1; give 0 to"), ("--outage 0", "--outage is 0; give 1 to"),
            ("--failures nan", "--failures is nan; give 0 to 100."), ("--moves=-1", "--moves is -1.0; give 0 to 100."),
            ("--partitioned 101", "--partitioned is 101.0; give 0 to 100."), ("--seed x", "--seed"),
        ]
        let output = try await ProgramShell.run(
            wrong.map { "$FERRY fleet simulate \($0.0); echo \"status $?\"" }.joined(separator: "\n")
                + "\n$FERRY fleet simulate --time-to-live 8 --gateways 2 --peers 9 --minutes 1 | grep -c after")
        for (_, words) in wrong { #expect(output.contains(words), "\(words): \(output)") }
        #expect(output.components(separatedBy: "status 64\n").count == wrong.count + 1, "\(output)")
        #expect(output.components(separatedBy: "Usage: ferry fleet simulate").count == wrong.count + 1, "\(output)")
        #expect(output.hasSuffix("\n1\n"), "\(output)")
    }

    @Test("Phases that are over are there when a simulation is ended, in a pipe and on a terminal")
    func fleetInterrupted() async throws {
        let output = try await ProgramShell.run(
            """
            # The start takes a moment, the days after it longer than anybody waits.
            LONG="$FERRY fleet simulate --gateways 10 --peers 1000 --minutes 1440"
            for signal in TERM KILL; do
                $LONG > lines & p=$!
                until_there lines ' start'; kill -$signal $p; wait $p 2> /dev/null; echo "$signal $?"; grep -c ' start' lines; rm lines
            done
            # Ctrl-C, as somebody types it.
            { until_there typed ' start'; printf '\\003'; sleep 1; } | script -qefc "$LONG" typed > /dev/null; echo "typed $?"; grep -c ' start' typed
            """)
        for line in ["TERM 143\n1", "KILL 137\n1", "typed 130\n1"] {
            #expect(output.contains("\(line)\n"), "\(line): \(output)")
        }
    }
}
