#if HCI
    import Foundation
    import TestSupport
    import Testing

    /// The tools as people run them, over Ferry's own LE host and two controllers in another process.
    @Suite("ferry over Bluetooth controllers", .tags(.program, .gatt, .adapter), .timeLimit(.minutes(5)))
    struct RadioProgramTests {
        /// Runs the script with controllers for `$ONE`, where somebody serves, and `$TWO`. What it leaves running is ended.
        private func run(
            _ script: String, untilThere isThere: (String) throws -> Bool = { _ in true }
        ) async throws -> String {
            try await ProgramShell.run(
                """
                trap 'kill $(jobs -p) 2> /dev/null' EXIT
                "$(dirname $FERRY)/virtual-controllers" unix:./1 unix:./2 > controllers 2>&1 < /dev/null &
                until_there controllers 'Controller 1 serves'
                \(script)
                grep '^!!' controllers
                """, ["ONE": "--transport hci:unix:./1", "TWO": "--transport hci:unix:./2"], untilThere: isThere)
        }

        @Test("What a scan finds is looked at, read, written and watched") func explore() async throws {
            let output = try await run(
                """
                CARD=$(dirname $FERRY)/business-card
                $CARD serve $ONE --timeout 3600 > served 2>&1 & s=$!
                until_there served 'Waiting for visitors'
                $FERRY scan $TWO --seconds 3600 --service E07F0AE8-00BB-47F5-94F4-4A7174EA3032 --json > heard & h=$!
                until_there heard E07F; kill -INT $h; wait $h; echo "scanned $?"
                A=$(sed -E 's/.*"address":"([^"]*)".*/\\1/' heard | head -n 1)
                P="$TWO --timeout 3600 $A"
                $FERRY inspect $P; echo "inspected $?"
                $FERRY read $P 'Device Name'
                $FERRY write $P 2B29 01 --read-back
                $FERRY write $P 2A00 01; echo "refused $?"
                $FERRY watch $P 9D534E8B-2153-4F6D-B2B0-8C68665A7274 --as text --count 1; echo "watched $?"
                for n in 1 10 100; do
                    $FERRY inspect $TWO --timeout $n nobody > unknown 2>&1; u=$?
                    grep -q '; heard: ' unknown && break
                done; cat unknown; echo "unknown $u"
                $FERRY watch $P 9D534E8B-2153-4F6D-B2B0-8C68665A7274 > values & w=$!
                until_there values '"'; kill -9 $s; wait $s 2> /dev/null; wait $w; echo "left $?"
                """)
            for line in [
                "scanned 130", "Generic Access  1800", "E07F0AE8-00BB-47F5-94F4-4A7174EA3032",
                "  9D534E8B-2153-4F6D-B2B0-8C68665A7274  write without response, write, notify", "inspected 0",
                "\"Ferry\"", "01", "refused 1", "watched 0", "unknown 1", "left 1",
            ] { #expect(output.contains("\(line)\n"), "\(line): \(output)") }
            #expect(output.contains("Device Name takes no such writes; it offers: read."), "\(output)")
            #expect(output.contains(#/(?m)^\d+\.\d+  9D534E8B-[-0-9A-F]+  "\{"contact":"ada.love"$/#), "\(output)")
            #expect(output.contains(#/"nobody" was not heard within \d+\.0 s; heard: /#), "\(output)")
            #expect(output.contains("The connection has ended: "), "\(output)")
            #expect(!output.contains("\n!!"), "\(output)")
        }

        @Test("Both directions are measured, and a visit ends as one; so does one that is killed") func bench()
            async throws
        {
            let measured = try [("write", 100), ("write", 4096), ("notify", 100), ("notify", 4096)].map { what, size in
                try Regex("(?m)^\(what), messages of \(size) bytes: [1-9][0-9.]* kbit/s, [1-9]")
            }
            let output = try await run(
                """
                $FERRY bench --serve $ONE > served 2>&1 & s=$!
                until_there served 'Waiting for'
                $FERRY bench --connect $TWO --seconds $N --message-size 100,4096; echo "connected $?"
                $FERRY bench --connect $TWO --seconds 600 > first 2>&1 & c=$!
                until_there first ' s  '; kill -9 $c; wait $c 2> /dev/null
                until_there served 'has failed'
                $FERRY bench --connect $TWO --seconds 0.1 --direction write --message-size 500 > again; echo "again $?"
                until_there served 'messages of 500 bytes'; kill -INT $s; wait $s; echo "served $?"; cat served
                """
            ) { output in measured.allSatisfy { output.ranges(of: $0).count == 2 } }
            let sides = output.components(separatedBy: "connected 0\n")
            try #require(sides.count == 2, "\(output)")
            for side in sides {
                for regex in measured { #expect(side.contains(regex), "\(output)") }
            }
            #expect(sides[1].contains("again 0\n") && sides[1].contains("served 130\n"), "\(output)")
            // Only the visit that was killed.
            #expect(output.components(separatedBy: "The visit has failed: ").count == 2, "\(output)")
            #expect(!output.contains("\n!!"), "\(output)")
        }

        @Test("A capture is whole whatever ends it, and one that cannot be made is told") func captures() async throws {
            let output = try await run(
                """
                CARD=$(dirname $FERRY)/business-card
                exchange() {
                    $CARD serve $ONE --framing sequenced --timeout 3600 > served 2>&1 & s=$!
                    until_there served 'Waiting for visitors'
                    "$@" > received 2>&1; echo "received $?"
                    until_there served 'acknowledged the card'; kill -INT $s; wait $s
                }
                receive() { $CARD receive $TWO --framing sequenced --timeout 3600 --capture $1; }
                exchange receive whole.btsnoop
                $FERRY trace whole.btsnoop | grep -c '= message'; echo "whole ${PIPESTATUS[0]}"
                # The disk is full after 3 kB, in the middle of a record. The card arrives all the same.
                limited() { ( trap '' XFSZ; ulimit -f 3; receive cut.btsnoop 2>&1 | cat > output; exit ${PIPESTATUS[0]} ) }
                exchange limited
                [ "$(stat -c %s cut.btsnoop)" -gt 2500 ] && [ "$(stat -c %s cut.btsnoop)" -le 3072 ] && echo filled
                grep -c '^business-card: The capture cut.btsnoop is not written any further: File too large' output
                $FERRY trace cut.btsnoop > /dev/null 2> traced; [ $? -le 1 ] && echo read; grep -E 'damaged|ends in the middle' traced
                # Killed while it is written.
                $CARD serve $ONE --framing sequenced --timeout 3600 --capture killed.btsnoop > served 2>&1 & s=$!
                until_size killed.btsnoop 1000; kill -9 $s; wait $s 2> /dev/null
                $FERRY trace killed.btsnoop 2> traced; [ $? -le 1 ] && echo read; grep -E 'damaged|ends in the middle' traced
                for file in none/x /dev/full .; do $CARD receive $TWO --timeout 3600 --capture $file 2>&1; echo "file $?"; done
                """)
            for line in ["received 0\n1\nwhole 0", "filled\n1\nread\nread"] {
                #expect(output.contains("\(line)\n"), "\(line): \(output)")
            }
            #expect(output.components(separatedBy: "received 0\n").count == 3, "\(output)")
            #expect(!output.contains("damaged") && !output.contains("ends in the middle"), "\(output)")
            #expect(output.components(separatedBy: "file 1\n").count == 4, "\(output)")
            for why in ["No such file or directory", "No space left on device", "Is a directory"] {
                #expect(output.contains(" cannot be written: \(why)"), "\(output)")
            }
            #expect(!output.contains("\n!!"), "\(output)")
        }
    }
#endif
