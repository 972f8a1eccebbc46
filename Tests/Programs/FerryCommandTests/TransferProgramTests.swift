import Foundation
import TestSupport
import Testing

/// `ferry send` and `ferry receive` as people run them: two processes, a shell between them.
@Suite("ferry send and receive", .tags(.program), .timeLimit(.minutes(5))) struct TransferProgramTests {
    func run(_ script: String, transport: String = "unix:./s") async throws -> String {
        try await ProgramShell.run(script, ["T": "--transport \(transport) --timeout 3600"])
    }

    @Test("A folder crosses whole, with its permissions") func folder() async throws {
        let output = try await run(
            """
            mkdir -p src/deep/er src/empty; echo hello > src/a; seq 50000 > src/deep/er/b; : > src/c; chmod 755 src/a
            touch -d @1700000000 src/a
            both '$FERRY receive $T out' '$FERRY send $T src'
            diff -r src out/src && stat -c '%a %Y' out/src/a; ls -A out
            """)
        #expect(output == "sent 0\nreceived 0\n755 1700000000\nsrc\n")
    }

    @Test("A pipe through tar, over Unix sockets and TCP", arguments: ["unix:./s", "tcp:\(OwnAddress.text):20001"])
    func pipe(_ transport: String) async throws {
        let output = try await run(
            """
            mkdir -p src/d dst; seq 100000 > src/d/b
            both '$FERRY receive $T - | tar x -C dst' 'tar c -C src . | $FERRY send $T -'
            diff -r src dst && echo same
            """, transport: transport)
        #expect(output == "sent 0\nreceived 0\nsame\n")
    }

    /// A hundred that say nothing, and one that speaks something else: whoever listens serves the one that comes after them.
    @Test(
        "Connections that say nothing keep nobody out",
        arguments: [
            ("receive $T out", "send $T f"), ("send $T --listen f", "receive $T --connect out"),
            ("receive $T --store in > lines", "send $T --store out.store --lines f"),
            ("send $T --store out.store --listen --lines f", "receive $T --store in --connect > lines"),
        ])
    func silent(_ listening: String, _ connecting: String) async throws {
        let port = 20100 + (listening.hasPrefix("send") ? 1 : 0) + (listening.contains("--store") ? 2 : 0)
        let output = try await run(
            """
            echo hello > f; H=/dev/tcp/\(OwnAddress.text)/\(port)
            $FERRY \(listening) 2> told & l=$!
            until (exec 3<> $H) 2> /dev/null; do sleep 0.05; done
            for i in $(seq 100); do exec {fd}<> $H; done
            printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&$fd
            $FERRY \(connecting) 2>> told; echo "connected $?"; wait $l; echo "listened $?"
            cat out/f lines 2> /dev/null
            [ $(wc -l < told) -lt 20 ] || cat told
            """, transport: "tcp:\(OwnAddress.text):\(port)")
        #expect(output == "connected 0\nlistened 0\nhello\n", "\(output)")
    }

    /// The receiver has a sender that takes its time: the other waits for its turn, and says what for.
    @Test("A sender that is refused waits and says why") func refused() async throws {
        let output = try await run(
            """
            mkfifo in; echo hello > f
            $FERRY receive $T out 2> /dev/null & r=$!
            $FERRY send $T --name slow - < in & s=$!
            exec 3> in; echo begin >&3
            until_size out/.slow.ferry-part 0
            $FERRY send $T --timeout 0.5 f 2> told 3>&-; echo "refused $?"
            $FERRY send $T --timeout 300 f 2> later 3>&- & o=$!
            until_there later 'The only place is taken'; until_there later 'Trying again'
            exec 3>&-; wait $s; echo "sent $?"; wait $r; echo "received $?"
            $FERRY receive $T out & r=$!
            wait $o; echo "sent $?"; kill -INT $r 2> /dev/null; wait $r; cat out/f
            """)
        #expect(
            output == "refused 1\nsent 0\nreceived 0\nsent 0\nhello\n", "\(output)")
    }

    @Test("Lines arrive as they are written, one by one") func lines() async throws {
        let output = try await run(
            """
            mkfifo in
            $FERRY receive $T - > out & r=$!
            $FERRY send $T --lines - < in & s=$!
            exec 3> in
            echo '{"a":1}' >&3
            until_size out 7; cat out
            printf '\\nlast' >&3; exec 3>&-
            wait $s; echo "sent $?"; wait $r; echo "received $?"; tail -n 2 out
            """)
        #expect(output == "{\"a\":1}\nsent 0\nreceived 0\n\nlast\n")
    }

    @Test("A killed side is started again and goes on where it was", arguments: ["receiver", "sender"])
    func killed(_ who: String) async throws {
        // In small chunks, so that the kill comes in the middle.
        let output = try await run(
            """
            mkdir out; head -c 40000000 /dev/urandom > big
            if [ \(who) = receiver ]; then
                $FERRY send $T --chunk 100 big 2>/dev/null & s=$!
                $FERRY receive $T out & r=$!; until_size out/.big.ferry-part 1000000; kill -STOP $r; kill -9 $r; wait $r 2>/dev/null
                $FERRY receive $T --json out | grep begin; wait $s; echo "sent $?"
            else
                $FERRY receive $T out 2>/dev/null & r=$!
                $FERRY send $T --chunk 20 big & s=$!; until_size out/.big.ferry-part 1000000; kill -STOP $s; kill -9 $s; wait $s 2>/dev/null
                $FERRY send $T --json big | grep begin; wait $r; echo "received $?"
            fi 2>/dev/null
            cmp big out/big && echo same; ls -A out
            """)
        let offset = try #require(output.firstMatch(of: #/"offset":(\d+)/#).flatMap { Int($0.1) })
        #expect(offset >= 1_000_000 && offset < 40_000_000, "\(output)")
        #expect(output.hasSuffix("\(who == "receiver" ? "sent" : "received") 0\nsame\nbig\n"), "\(output)")
    }

    /// The part that is there is of another file of that name.
    @Test("A part that does not fit is sent anew") func staleParts() async throws {
        let output = try await run(
            """
            mkdir out; seq 100000 > big; seq 7 1000 > out/.big.ferry-part
            both '$FERRY receive $T out' '$FERRY send $T --json big | grep begin'
            cmp big out/big && echo same
            """)
        #expect(output.contains("\"offset\":0"))
        #expect(output.hasSuffix("received 0\nsame\n"), "\(output)")
    }

    @Test("What is there is not replaced unless asked") func overwriting() async throws {
        let output = try await run(
            """
            mkdir out; echo new > a; echo old > out/a
            both '$FERRY receive $T out' '$FERRY send $T a' 2>/dev/null; cat out/a
            both '$FERRY receive $T --overwrite out' '$FERRY send $T a' 2>/dev/null; cat out/a
            both '$FERRY receive $T out' '$FERRY send $T --json a | grep -c unchanged' 2>/dev/null; cat out/a
            echo stream | $FERRY send $T --name a - 2>/dev/null & $FERRY receive $T out 2>/dev/null; echo $?; cat out/a
            """)
        #expect(
            output == "sent 1\nreceived 1\nold\nsent 0\nreceived 0\nnew\n1\nsent 0\nreceived 0\nnew\n1\nnew\n",
            "\(output)")
    }

    @Test("Links in the receiver's folder lead nowhere") func links() async throws {
        let output = try await run(
            """
            mkdir -p out precious src; echo old > precious/a; echo new > src/a; echo x > b
            ln -s ../precious out/src; ln -s ../precious/a out/b; ln -s ../precious/a out/.c.ferry-part; echo y > c
            both '$FERRY receive $T --overwrite out' '$FERRY send $T src b c' 2>/dev/null
            cat precious/a; ls precious
            """)
        #expect(output == "sent 1\nreceived 1\nold\na\n", "\(output)")
    }

    @Test("What is not sent ends both sides with 1, and names are bytes") func skipped() async throws {
        let output = try await run(
            """
            mkdir src; echo x > src/plain; ln -s plain src/link; mkfifo src/pipe; echo y > 'src/back\\slash'
            echo one > $'src/\\xff'; echo other > $'src/\\xef\\xbf\\xbd'
            both '$FERRY receive $T out 2> receiver' '$FERRY send $T src 2> sender'
            ls out/src | wc -l; cat $'out/src/\\xef\\xbf\\xbd'; grep -c ': it ' sender receiver
            grep -o 'src/%FF: it has a name that cannot be sent' sender receiver
            """)
        #expect(
            output == """
                sent 1
                received 1
                2
                other
                sender:4
                receiver:4
                sender:src/%FF: it has a name that cannot be sent
                receiver:src/%FF: it has a name that cannot be sent

                """)
    }

    @Test("A file that changes while it is sent does not arrive", arguments: ["", "; touch -d @1700000000 big"])
    func torn(_ afterwards: String) async throws {
        let output = try await run(
            """
            head -c 20000000 /dev/urandom > big; touch -d @1700000000 big
            $FERRY receive $T out 2> receiver & r=$!
            $FERRY send $T --chunk 100 big 2> sender & s=$!
            until_size out/.big.ferry-part 100000; printf changed | dd of=big conv=notrunc 2>/dev/null\(afterwards)
            wait $s; echo "sent $?"; wait $r; echo "received $?"; ls -A out; grep -c 'it changed while it was sent' sender receiver
            """)
        #expect(output == "sent 1\nreceived 1\n.big.ferry-part\nsender:1\nreceiver:1\n")
    }

    @Test("Permissions are the sender's without what the receiver's umask takes away") func permissions() async throws {
        let output = try await run(
            """
            mkdir -m 700 src; mkdir -m 777 src/d; echo a > src/d/a; echo b > src/b; chmod 777 src/d/a; chmod 604 src/b
            both '(umask 027; $FERRY receive $T out)' '$FERRY send $T src'
            cd out; stat -c '%a %n' src src/d src/d/a src/b
            """)
        #expect(output == "sent 0\nreceived 0\n700 src\n750 src/d\n750 src/d/a\n600 src/b\n")
    }

    @Test("A sender hears why the receiver cannot write") func fullDisk() async throws {
        // The limit on a file's size stands in for a full disk.
        let output = try await run(
            """
            head -c 3000000 /dev/zero > big; echo small > small
            both "(trap '' XFSZ; ulimit -f 1000; exec $FERRY receive $T out)" '$FERRY send $T big small' 2> errors
            sort -u errors | cut -d' ' -f 2-; cat out/small
            """)
        #expect(output.contains("sent 1\nreceived 1\n"), "\(output)")
        #expect(output.contains("big: it cannot be written: File too large"), "\(output)")
        #expect(output.hasSuffix("small\n"), "\(output)")
    }

    @Test("Several senders at once, and Ctrl-C") func several() async throws {
        let output = try await run(
            """
            $FERRY receive $T --keep out & r=$!
            for i in 1 2 3 4 5; do head -c 3000000 /dev/urandom > f$i; done
            for i in 1 2 3 4 5; do $FERRY send $T f$i & p="$p $!"; done
            for q in $p; do wait $q; echo $?; done
            kill -INT $r; wait $r; echo "received $?"
            for i in 1 2 3 4 5; do cmp f$i out/f$i || echo differs; done; ls s 2>/dev/null
            """)
        #expect(output.hasPrefix("0\n0\n0\n0\n0\n"), "\(output)")
        #expect(output.hasSuffix("received 130\n"), "\(output)")
    }

    @Test(
        "Whoever reads the output goes, or the disk is full: both sides say so",
        arguments: ["| head -c 10 > /dev/null", "> /dev/full"])
    func outputs(_ end: String) async throws {
        let output = try await run(
            """
            set -o pipefail; head -c 5000000 /dev/zero > big
            both '$FERRY receive $T - \(end)' '$FERRY send $T big' 2> errors; sort -u errors
            """)
        let cause = end.contains("full") ? "No space left" : "Broken pipe"
        #expect(output.contains("sent 1\nreceived 1\n"), "\(output)")
        #expect(output.contains("ferry: big: it cannot be written: \(cause)"), "\(output)")
    }

    @Test(
        "Wrong usage is told and ends with 64, what goes wrong later with 1",
        arguments: [
            ("send a", 64, "--transport"), ("send --transport unix:s", 64, "paths"),
            ("send --transport frob:s a", 64, "There is no transport"), ("send $T --chunk 3 a", 64, "4 to 65535"),
            ("send $T --timeout 0 a", 64, "0.1 to 86400"),
            ("receive --transport loopback", 64, "ends with this process"),
            ("receive $T --keep -", 64, "needs a folder"), ("receive $T --keep --connect", 64, "Choose one"),
            ("send $T none", 1, "'none' cannot be read: No such file"), ("send $T a b/a", 1, "would be one"),
            ("send $T /dev/log /", 1, "cannot"), ("send $T --lines b", 1, "has no lines"),
            ("send --transport tcp:127.0.0.1:00 a", 64, "has port 0, by which a listener"),
            ("send $T --timeout 0.2 a", 1, "No program listens at unix:./s"),
            ("receive $T --timeout 0.2", 1, "No sender has connected within 0.2 s"),
            ("receive $T a", 1, "cannot be opened: Not a directory"),
            ("send --transport unix:./\(String(repeating: "x", count: 200)) a", 64, "system takes 107"),
        ])
    func wrongUsage(_ arguments: String, _ status: Int, _ words: String) async throws {
        let output = try await run("mkdir b; touch a b/a; $FERRY \(arguments); echo \"status $?\"")
        #expect(output.contains(words), "\(output)")
        #expect(output.hasSuffix("status \(status)\n"), "\(output)")
    }

    @Test("On a terminal progress is a line with rate and time left; in a pipe there is none") func terminal()
        async throws
    {
        let output = try await run(
            """
            head -c 30000000 /dev/urandom > big
            $FERRY receive $T out > quiet 2>&1 & r=$!
            script -qec "$FERRY send $T --chunk 300 big" /dev/null | tr '\\r' '\\n'; wait $r; wc -c < quiet
            """)
        #expect(output.contains(#/big  \d+ %  [\d.]+ [kM]?B of 30.0 MB  [\d.]+ [kM]B/s  [\d.]+ s left/#), "\(output)")
        #expect(output.contains("Sent 1 item, 30.0 MB in "), "\(output)")
        #expect(output.hasSuffix("\n0\n"), "\(output)")
    }

    @Test("A port that the system chose is told, and what is waited for") func waiting() async throws {
        let output = try await run(
            """
            echo x > a
            $FERRY receive --transport tcp:127.0.0.1:0 --timeout 3600 out 2> receiver & r=$!
            until_there receiver 'Listening at'; port=$(grep -o '[0-9]*[.]$' receiver | tr -d .)
            $FERRY send --transport tcp:127.0.0.1:$port --timeout 3600 a; echo "sent $?"; wait $r; echo "received $?"; cat out/a
            script -qec "$FERRY receive $T --timeout 2" /dev/null | tr -d '\\r'
            $FERRY send $T --json --timeout 2 a 2> /dev/null | grep -o '"event":"waiting",.*'
            $FERRY receive $T --timeout 2 2>&1
            """)
        #expect(
            output == """
                sent 0
                received 0
                x
                ferry: Waiting for up to 2.0 s for a connection at unix:./s.
                Received 0 items, 0 B in 0.0 s, 0 B/s
                Error: No sender has connected within 2.0 s.
                "event":"waiting","reason":"Waiting for up to 2.0 s to connect to unix:./s."}
                Error: No sender has connected within 2.0 s.

                """, "\(output)")
    }

    @Test("Ctrl-C keeps what has come, and says how to go on") func interrupted() async throws {
        let output = try await run(
            """
            head -c 40000000 /dev/urandom > big
            $FERRY receive $T out 2>/dev/null & r=$!
            $FERRY send $T --chunk 20 big & s=$!; until_size out/.big.ferry-part 100000; kill -INT $s; wait $s; echo "sent $?"
            $FERRY send $T big; echo "sent $?"; wait $r; echo "received $?"; cmp big out/big && echo same
            """)
        #expect(
            output
                == "ferry: interrupted; the same command goes on where it was.\nsent 130\nsent 0\nreceived 0\nsame\n",
            "\(output)")
    }

    @Test("Another framing at the other end is told as such") func mismatch() async throws {
        // It is known when a timeout ends.
        let output = try await ProgramShell.run(
            "touch a; both '$FERRY receive $T --framing sequenced --timeout $N out' '$FERRY send $T --timeout $N a' 2>&1",
            ["T": "--transport unix:./s"]
        ) { $0.contains("same --framing") }
        #expect(output.contains("sent 1\n") && output.contains("received 1\n"), "\(output)")
    }
}
