#if Records
    import TestSupport
    import Testing

    /// `ferry send --store` and `ferry receive --store` as people run them, in two processes.
    @Suite("ferry send and receive with stores", .tags(.program, .records), .timeLimit(.minutes(5)))
    struct RecordsTransferTests {
        private func run(_ script: String) async throws -> String { try await TransferProgramTests().run(script) }

        @Test("Lines and files become records, and records lines") func linesAndFiles() async throws {
            let output = try await run(
                """
                printf 'one\\ntwo' > file; seq 300 > lines
                both '$FERRY receive --store in $T > got' 'cat lines | $FERRY send --store out $T --lines -'
                cmp lines got && echo the same
                both '$FERRY receive --store in $T --json > got' '$FERRY send --store out $T --to receiver --stream s file'
                grep -c '"event":"record","id":"[0-9a-f]*/2\\.[0-9a-f]*/s/1"' got; grep -o '"text":.*' got
                $FERRY outbox list out | awk '{ print $1, $3 }' | tail -2
                """)
            #expect(
                output == """
                    sent 0
                    received 0
                    the same
                    sent 0
                    received 0
                    1
                    "text":"one\\ntwo"}
                    receiver 0
                    receiver 0

                    """, "\(output)")
        }

        @Test("Both sides are killed, and what was accepted is printed once") func killed() async throws {
            let output = try await run(
                """
                seq 1500 > lines
                $FERRY receive --store in $T > first & r=$!
                $FERRY send --store out $T --lines lines & s=$!
                until_size first 500; kill -9 $r $s; wait $r $s 2>/dev/null
                # All of them were accepted before the first was sent.
                both '$FERRY receive --store in $T > second' '$FERRY send --store out $T'
                # The last page that was printed before the kill may have been printed again.
                [ $(cat first second | wc -l) -le 1628 ] && cat first second | awk '!seen[$0]++' | cmp - lines && echo whole
                """)
            #expect(output.split(separator: "\n").suffix(3) == ["sent 0", "received 0", "whole"], "\(output)")
        }

        @Test("What the other side sends is written down") func inbox() async throws {
            let output = try await run(
                """
                echo one > lines
                both '$FERRY receive --store in $T --json > got' '$FERRY send --store out $T --lines lines'
                peer=$(sed -n 's/.*"peer":"\\([^"]*\\)".*/\\1/p' got)
                $FERRY outbox send in "$peer" back >/dev/null; $FERRY outbox send in "$peer" again >/dev/null
                echo before > written
                both '$FERRY receive --store in $T > got' '$FERRY send --store out $T --inbox written --lines lines'
                cat written got
                $FERRY outbox send in "$peer" last >/dev/null
                both '$FERRY receive --store in $T > got' '$FERRY send --store out $T --inbox - --lines lines > printed'
                cat printed
                $FERRY send --store out $T --inbox /nowhere/file lines 2>&1 | grep -o "'/nowhere/file' cannot be written"
                """)
            #expect(
                output == """
                    sent 0
                    received 0
                    sent 0
                    received 0
                    before
                    back
                    again
                    one
                    sent 0
                    received 0
                    last
                    '/nowhere/file' cannot be written

                    """, "\(output)")
        }

        @Test("What one of a fleet cannot store, another one gets") func oneOfAFleetCannotStore() async throws {
            let output = try await run(
                """
                for number in $(seq 2000); do printf '%01000d\\n' $number; done > lines
                $FERRY send --store out $T --listen --fleet --lines lines 2>/dev/null & s=$!
                # A file that must not grow is as good as a full disk.
                (trap '' XFSZ; ulimit -f 1000; $FERRY receive --store full $T --connect >/dev/null 2>&1; echo "received $?")
                # A slow machine says that the sender came again.
                $FERRY receive --store in $T --connect > got 2>/dev/null; echo "received $?"
                wait $s; echo "sent $?"
                [ -s got ] && tail -n 1 got | cmp - <(tail -n 1 lines) && echo the last
                """)
            #expect(output == "received 1\nreceived 0\nsent 0\nthe last\n", "\(output)")
        }

        @Test("What is wrong is told") func whatIsWrong() async throws {
            let output = try await run(
                """
                $FERRY send $T 2>/dev/null; echo $?
                : > file
                $FERRY send $T --to x file 2>/dev/null; echo $?
                $FERRY send $T --inbox x file 2>/dev/null; echo $?
                $FERRY receive --store in $T folder 2>/dev/null; echo $?
                $FERRY outbox send two a 1 >/dev/null; $FERRY outbox send two b 1 >/dev/null
                $FERRY send --store two $T 2>&1 | grep -o 'for a, b. Choose one'
                $FERRY send --store two $T --to a --timeout 0.5 2>/dev/null; echo $?
                """)
            #expect(output == "64\n64\n64\n64\nfor a, b. Choose one\n1\n", "\(output)")
        }
    }
#endif
