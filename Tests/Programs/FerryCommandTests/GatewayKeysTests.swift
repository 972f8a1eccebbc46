#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// `ferry gateway keys`, `allow`, `revoke`, `peers` and `forget`, as people run them.
    @Suite("ferry gateway keys and peers", .tags(.program, .records, .hostility), .timeLimit(.minutes(5)))
    struct GatewayKeysTests {
        private func read(_ text: String) throws -> GatewaySettings {
            try GatewaySettings.read(Data(text.utf8), "gateway.json")
        }

        @Test("A key is allowed, revoked and allowed again", .enabled(if: NATSServer.isHere, "needs nats-server"))
        func list() async throws {
            let server = try NATSServer()
            try await server.start()
            let output = try await ProgramShell.run(
                """
                k() { $FERRY gateway "$@" --nats "$NATS"; }
                k keys
                k allow WNHCMK27-78AN1JDP-C99ZT7MV-2D886NF7 'press 7'
                k allow 0000000000000000000000000000000a
                k revoke 0000000000000000000000000000000a left
                k keys
                k revoke wnhcmk2778an1jdpc99zt7mv2d886nf7 > /dev/null; k keys | grep -c revoked
                k allow wnhcmk2778an1jdpc99zt7mv2d886nf7 > /dev/null; k keys | grep -c revoked
                k keys --bucket others
                printf '{"nats": {"servers": ["%s"]}, "trust": {"allow": "others"}}' "$NATS" > gateway.json
                $FERRY gateway allow --config gateway.json 0000000000000000000000000000000a
                $FERRY gateway keys --config gateway.json | grep -c allowed; k keys --bucket others | grep -c allowed
                $FERRY gateway keys 2>&1 | grep -o 'No NATS server is named'
                export HOME=$PWD; key=$($FERRY key 2> told)
                f=$(grep -o 'Fingerprint .*[a-z0-9]' told | sed 's/Fingerprint //; s/-//g')
                k allow $key 'by its key' | sed "s/$f/F/"; k keys | sed "s/$f/F/" | grep -o 'F *allowed *by its key'
                k revoke $key | sed "s/$f/F/"; k allow ${key}0 2>&1 | grep -o '54 are needed.*'; k allow ${key}0 2> /dev/null; echo "ended with $?"
                k allow press-7 2>&1 | grep -o 'is neither a public key'; k allow "$key press-7" 2>&1 | grep -o 'A name is a separate argument'
                k allow press-7 2> /dev/null; echo "ended with $?"
                $FERRY gateway --check --nats "$NATS" --transport unix:s --store s.store --allow ferry-keys | grep -o 'bucket ferry-keys has 3'
                $FERRY gateway revoke --nats nats://127.0.0.1:1 0000000000000000000000000000000a 2> told; echo "ended with $?"
                grep -c 'Check that nats-server runs there' told
                """, ["NATS": server.url])
            #expect(
                output == """
                    No key is on the list.
                    wnhcmk2778an1jdpc99zt7mv2d886nf7 is allowed
                    0000000000000000000000000000000a is allowed
                    0000000000000000000000000000000a is revoked
                    fingerprint                       standing  name
                    0000000000000000000000000000000a  revoked   left
                    wnhcmk2778an1jdpc99zt7mv2d886nf7  allowed   press 7
                    2
                    1
                    No key is on the list.
                    0000000000000000000000000000000a is allowed
                    1
                    1
                    No NATS server is named
                    F is allowed
                    F  allowed   by its key
                    F is revoked
                    54 are needed. Copy it again, whole. A name is a separate argument, behind the key.
                    ended with 64
                    is neither a public key
                    A name is a separate argument
                    ended with 64
                    bucket ferry-keys has 3
                    ended with 1
                    1

                    """, "\(output)")
        }

        @Test("Who has come is listed, and forgotten") func peers() async throws {
            let output = try await ProgramShell.run(
                """
                echo hello > lines
                $FERRY receive --transport unix:./s --timeout 3600 --store in.store > /dev/null 2>&1 & r=$!
                $FERRY send --transport unix:./s --timeout 3600 --store out.store --lines lines; wait $r
                $FERRY gateway peers in.store | awk '{ print $1 == "peer" ? $0 : substr($1, 1, 6), $4 }' | tail -n +2
                p=$($FERRY gateway peers in.store | awk 'NR == 2 { print $1 }')
                $FERRY gateway forget in.store "$p" | sed "s/$p/P/"
                $FERRY gateway forget in.store nobody 2>&1 | grep -o 'knows no peer'
                $FERRY gateway forget in.store nobody 2> /dev/null; echo "ended with $?"
                $FERRY gateway peers none.store 2> /dev/null; echo "ended with $?"; ls none.store 2> /dev/null
                """)
            #expect(
                output == """
                    store: connection
                    P can come with another store
                    knows no peer
                    ended with 1
                    ended with 1

                    """, "\(output)")
        }

        @Test(
            "The configuration says whom a gateway takes",
            arguments: [
                (#""transport": "unix:s""#, nil, false, true),
                (#""transport": "tcp:127.0.0.1:7070""#, nil, false, true),
                (#""transport": "tcp:0.0.0.0:7070""#, nil, false, false),
                (#""transport": "tcp:0.0.0.0:7070", "trust": {"seal": "never"}"#, nil, false, false),
                (#""transport": "tcp:0.0.0.0:7070", "trust": {"acceptsStrangers": true}"#, nil, false, true),
                (#""transport": "hci:user:0""#, nil, false, false),
                (#""fleet": {"bucket": "f", "peers": {"a": "unix:s"}}"#, nil, false, false),
                (#""transport": "unix:s", "trust": {"acceptsStrangers": false}"#, nil, false, false),
                (#""transport": "unix:s", "trust": {"allow": "k"}"#, "k", false, false),
                (#""transport": "unix:s", "trust": {"allow": "k", "acceptsStrangers": true}"#, "k", true, true),
            ] as [(String, String?, Bool, Bool)])
        func configuration(_ text: String, _ bucket: String?, _ listTakes: Bool, _ storeTakes: Bool) throws {
            let settings = try read(
                #"{"nats": {"servers": ["nats://a"]}, "name": "g", "store": "s", \#(text)}"#)
            let plan = try GatewayRun(settings)
            #expect(plan.allowed?.bucket == bucket)
            #expect(plan.allowed.map(\.acceptsStrangers) ?? false == listTakes)
            #expect(plan.allowed.map(\.interval) ?? .seconds(5) == .seconds(5))
            #expect(plan.store.acceptsStrangers == storeTakes)
        }

        @Test("What is wrong about it in the configuration is told") func wrong() {
            for (text, words) in [
                (#"{"trust": {"acceptsStrangers": "no"}}"#, "'trust.acceptsStrangers' must be"),
                (#"{"trust": {"allow": 1}}"#, "'trust.allow' must be text"),
            ] {
                let error = #expect(throws: CommandFailure.self) { _ = try read(text) }
                #expect(error?.description.contains(words) == true, "\(String(describing: error))")
            }
        }
    }
#endif
