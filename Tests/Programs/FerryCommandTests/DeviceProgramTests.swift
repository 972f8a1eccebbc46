import TestSupport
import Testing

/// `ferry smp` and `ferry serial` as people run them, each against itself.
@Suite("ferry smp and ferry serial", .tags(.program), .timeLimit(.minutes(5))) struct DeviceProgramTests {
    private func run(_ script: String) async throws -> String {
        try await ProgramShell.run(script, ["T": "--transport unix:./s", "P": "--transport unix:./s --timeout 3600"])
    }

    @Test("A device's image, files and settings") func device() async throws {
        let output = try await run(
            """
            $FERRY smp serve $T 2>log & d=$!
            until_there log Serving
            $FERRY smp echo $P hello
            $FERRY smp info $P
            head -c 50000 /dev/urandom > image
            $FERRY smp image upload $P image 2>/dev/null; echo "uploaded $?"
            $FERRY smp fs put $P image /lfs/a 2>/dev/null && $FERRY smp fs get $P /lfs/a back && cmp image back && echo same
            $FERRY smp settings set $P a/b 0aFF && $FERRY smp settings get $P a/b
            $FERRY smp fs get $P /lfs/none; echo "none $?"
            $FERRY smp image test $P 0G; echo "hash $?"
            kill -INT $d; wait $d; echo "ended $?"
            """)
        // A busy machine makes one wait.
        let lines = output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            .filter { !$0.hasPrefix("ferry: Waiting") }
        #expect(
            lines.prefix(6) == ["hello", "Ferry", "4 buffers of 2475 bytes", "uploaded 0", "same", "0aff"], "\(output)")
        #expect(output.contains("no such file"), "\(output)")
        #expect(
            output.contains("none 1\n") && output.contains("hash 64\n") && output.contains("ended 130"), "\(output)")
    }

    @Test("Lines, SLIP and COBS through pipes, both ways", arguments: ["lines", "slip", "cobs"])
    func messages(framing: String) async throws {
        let output = try await run(
            """
            seq 2000 > a; seq 3000 5000 > b
            $FERRY serial $P --framing \(framing) --listen --wait 86400 < a > from-b 2>/dev/null & d=$!
            until [ -S s ]; do sleep 0.05; done
            $FERRY serial $P --framing \(framing) --wait 86400 < b > from-a 2> waits & s=$!
            until cmp -s a from-a && cmp -s b from-b; do sleep 0.05; done
            kill -INT $d; wait $d; echo "device $?"
            wait $s; echo "serial $?"
            """)
        #expect(output == "device 130\nserial 0\n")
    }

    @Test("Raw bytes as they come") func raw() async throws {
        let output = try await run(
            """
            head -c 100000 /dev/urandom > a
            $FERRY serial $P --listen --wait 86400 < /dev/null > got 2>/dev/null & d=$!
            until [ -S s ]; do sleep 0.05; done
            $FERRY serial $P --wait 0.2 < a 2> waits; echo "serial $?"
            wait $d; echo "device $?"; cmp a got && echo same
            """)
        #expect(output == "serial 0\ndevice 0\nsame\n")
    }
}
