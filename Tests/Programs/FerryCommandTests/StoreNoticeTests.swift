#if NATS && Records
    import TestSupport
    import Testing

    /// What a store has lost, as those hear it who run a program on it.
    @Suite("Notices of stores", .tags(.program, .records), .timeLimit(.minutes(5))) struct StoreNoticeTests {
        /// A store `s` that has lost a record and does not know it yet.
        private static let lose = """
            $FERRY outbox send s p one > out; cp s backup; $FERRY outbox send s p two > out; cp backup s
            """

        @Test("A gateway prints what its store has lost, logs it and counts it, each once over all its runs")
        func gateway() async throws {
            let output = try await ProgramShell.run(
                """
                \(Self.lose)
                begin() {
                    : > out
                    $FERRY gateway --transport unix:./g --store s --nats nats://127.0.0.1:1 --name g --metrics 127.0.0.1:0 \
                        --log-level error --log-format json > out 2> err & p=$!
                    until_there out 'not connected'
                    port=$(grep -o 'at port [0-9]*' out | grep -o '[0-9]*$')
                    { printf 'GET /metrics HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3; } 3<> /dev/tcp/127.0.0.1/$port \
                        | grep '^ferry_gateway_notices_total'
                    kill -INT $p; wait $p
                }
                begin; grep -c 'are missing: sequences 2 to 2' out err; grep -c '"level":"error".*"peer":"p"' err
                begin; grep -c 'are missing' out err
                """)
            #expect(
                output == """
                    ferry_gateway_notices_total 1
                    out:1
                    err:1
                    1
                    ferry_gateway_notices_total 1
                    out:0
                    err:0

                    """, "\(output)")
        }

        @Test("A sender and a receiver print it on standard error, also when they end at once") func transfers()
            async throws
        {
            let output = try await ProgramShell.run(
                """
                \(Self.lose)
                $FERRY send --store s --to p --transport unix:./nobody --timeout 5 2> err; echo "send $?"; grep -c 'are missing' err
                $FERRY send --store s --to p --transport unix:./nobody --timeout 5 2> err; echo "again $?"; grep -c 'are missing' err
                rm s*; \(Self.lose)
                $FERRY receive --store s --connect --transport unix:./nobody --timeout 5 2> err; echo "receive $?"
                grep -c 'are missing' err
                """)
            #expect(output == "send 1\n1\nagain 1\n0\nreceive 1\n1\n", "\(output)")
        }
    }
#endif
