#if NATS && Records
    import TestSupport
    import Testing

    /// `ferry gateway` and SIGHUP.
    @Suite("ferry gateway, reloaded", .tags(.program, .records), .timeLimit(.minutes(5))) struct GatewayReloadTests {
        @Test("SIGHUP has the configuration read again; one that is wrong changes nothing") func hangup() async throws {
            let output = try await ProgramShell.run(
                """
                configure() { printf '{"transport": "unix:%s", "store": "g.store", "nats": {"servers": ["nats://127.0.0.1:1"]}, "name": "g"}' $1 > g.json; }
                bring() { echo "$2" | $FERRY send --store ${3-p}.store --lines --transport unix:$1 --timeout 240 - 2> told; echo "$2 $?"; }
                configure a
                $FERRY gateway --config g.json > out 2> err & p=$!
                bring a one
                configure b; kill -HUP $p; until_there out 'was read again'
                bring b two
                ls a 2> /dev/null
                printf '{"transport": ' > g.json; kill -HUP $p; until_there err 'Nothing is changed'
                grep -o 'g.json is no JSON' err
                configure b; sed -i 's/g.store/h.store/' g.json; kill -HUP $p; until [ -e h.store ]; do sleep 0.05; done
                bring b three other
                kill -INT $p; wait $p; echo "ended $?"; grep -o 'stay in h.store' out
                """)
            #expect(
                output == """
                    one 0
                    two 0
                    g.json is no JSON
                    three 0
                    ended 0
                    stay in h.store

                    """, "\(output)")
        }

        @Test("Without a file there is nothing to read again, and the gateway goes on") func noFile() async throws {
            let output = try await ProgramShell.run(
                """
                $FERRY gateway --transport unix:a --store g.store --nats nats://127.0.0.1:1 --name g > out 2> err & p=$!
                until [ -S a ]; do sleep 0.05; done
                kill -HUP $p; until_there err 'start with --config'
                kill -INT $p; wait $p; echo "ended $?"
                """)
            #expect(output == "ended 0\n", "\(output)")
        }
    }
#endif
