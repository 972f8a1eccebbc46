import ArgumentParser
import TestSupport
import Testing

@testable import FerryCommand

/// Command lines that people mistype: each ends with 64, and a sentence that says what to do.
@Suite("Command lines", .tags(.program)) struct CommandLineTests {
    static let bad: [(line: String, words: String)] = [
        ("advise --mesage-size 100", "'ferry advise' has no option '--mesage-size'. Did you mean '--message-size'?"),
        ("send --transprot unix:./s f", "'ferry send' has no option '--transprot'. Did you mean '--transport'?"),
        ("receive --trasnport=unix:./s", "Did you mean '--transport'?"),
        ("scan --second 3", "Did you mean '--seconds'?"), ("scan --Seconds 3", "Did you mean '--seconds'?"),
        ("bench --mtuu 23", "Did you mean '--mtu'?"), ("bench --no-encrypt", "Did you mean '--no-encryption'?"),
        ("bench --verbose", "'ferry bench' has no option '--verbose'. 'ferry bench --help' lists them."),
        ("fleet simulate --gateway 2", "'ferry fleet simulate' has no option '--gateway'. Did you mean '--gateways'?"),
        ("--hlep", "Did you mean '--help'?"), ("advise --hepl", "Did you mean '--help'?"),
        ("advise --\u{1B}[2J", "has no option"), ("read --transport loopback a b --is hex", "Did you mean"),
        ("write --transport loopback a b 00 --without-respons", "Did you mean '--without-response'?"),
        ("watch --transport loopback a --counts 4", "Did you mean '--count'?"),
        ("inspect --transport loopback a --timout 4", "Did you mean '--timeout'?"),
        ("capture --transport hci:monitor", "Missing expected argument '<file>'"),
        ("trace f --framings length", "Did you mean '--framing'?"),
        ("bench --seconds -1", "The value -1 of --seconds begins with a minus sign"),
        ("bench --interval -7.5", "write --interval=-7.5"), ("bench --message-size -1", "--message-size=-1"),
        ("advise --message-size 100 --within -3", "The value -3 of --within"),
        ("send --transport unix:./s f --timeout -4", "The value -4 of --timeout"),
        ("bench --seconds=-1", "0.1 to 86400"), ("advise", "--sample and --records"),
        ("advise --message-size", "Missing value for '--message-size"),
        ("advise --message-size abc", "write 2000, or 60:70,2000:30"),
        ("advise --message-size 100:0", "'100:0' is not a message size"),
        ("advise --message-size 100 --peer iOS", "Choose from: ios, android, bluez, custom."),
        ("advise --message-size 100 --phy LE2M", "1M, 2M, coded-S2, coded-S8"),
        ("advise --message-size 100 --data-length 20", "27 to 251"),
        ("advise --message-size 100 --error-rate nan", "0 to 1"),
        ("advise --message-size 100 --seconds 0", "0.1 to 86400"),
        ("advise --message-size 100 --direction read", "notify, write"),
        ("advise --message-size 100 --controller foo", "Choose from: ideal, ios"),
        ("advise --message-size 100 extra", "Unexpected argument 'extra'"),
        ("advise --score --peer ios", "--score prints figures"),
        ("bench --mtu 22", "23 to 517"), ("bench --mtu abc", "The value 'abc' is invalid for '--mtu"),
        ("bench --interval 5000", "7.5 ms to 4000 ms"),
        ("bench --framing foo", "length, eom, eom-20, sequenced, mdoc, btp, pftp, slip, cobs"),
        ("bench --compression gzip", "none, zlib"), ("bench --queue-depth 0", "1 to 4096"),
        ("bench --centrals 99", "1 to 20"), ("bench --transport foo", "There is no transport"),
        ("bench --transport unix:/tmp/x", "give --serve to one and --connect to the other"),
        ("bench --serve", "need one transport that reaches another process"),
        ("bench --json --csv", "Choose one of --json and --csv."),
        ("send --transport unix: f", "the path is missing"),
        ("send --transport tcp:localhost f", "the port is missing"),
        ("send --transport tcp:localhost:99999 f", "a number from 0 to 65535"),
        ("send --transport loopback f", "ends with this process"),
        ("send --transport unix:./s f --chunk 0", "from 4 to 65535"),
        ("send --transport unix:./s", "Name the items to send"),
        ("scan --transport unix:./s", "is no Bluetooth adapter"),
        ("scan --transport loopback --rssi 99", "-127 to 20 dBm"),
        ("scan --transport loopback --rssi -200", "--rssi is -200; give -127 to 20 dBm."),
        ("scan --transport loopback --service 180", "Write 4 or 8 hexadecimal digits"),
        ("read --transport loopback a", "Missing expected argument '<characteristic>'"),
        ("read --transport loopback a b --as float", "The value 'float' is invalid"),
        ("write --transport loopback a b 0", "Give pairs, such as 01 FF."),
        ("write --transport loopback a b 300 --as uint8", "give 0 to 255"),
        ("write --transport loopback a b 00 --descriptor 2902 --without-response", "Leave --without-response out."),
        ("watch --transport loopback a --count 0", "give 1 or more"), ("hlep", "'ferry' has no command 'hlep'"),
        ("fleet simulate --gateways 0", "give 1 to 10000"), ("-x", "Unknown option '-x'"),
        ("scan --transport loopback --bonds f", "takes no file of keys"),
        ("serve --transport loopback --service 180F 2A19=01", "ends with this process"),
        ("pipe --transport unix:./s a", "is no Bluetooth adapter"),
    ]
    #if HCI
        static let badOverHCI: [(line: String, words: String)] = [
            ("serve --transport hci:unix:./x --service 180F 2A19", "Write CHARACTERISTIC=VALUE"),
            ("serve --transport hci:unix:./x --service 180F 2A19=1", "Give pairs, such as 01 FF."),
            ("serve --transport hci:unix:./x --service 180F 2A19=uint8:300", "give 0 to 255"),
            ("serve --transport hci:unix:./x --service 180F 2A19=00 2A19=01", "is given twice"),
            ("serve --transport hci:unix:./x --service Foo 2A19=00", "is not a Bluetooth UUID"),
            ("serve --transport hci:unix:./x 2A19=00", "Missing expected argument '--service"),
            ("pipe --transport hci:unix:./x", "Name the peripheral to connect to, or --listen"),
            ("pipe --transport hci:unix:./x --listen a", "and not both"),
            ("pipe --transport hci:unix:./x a --psm 0", "give 1 to 255"),
            ("pipe --transport hci:unix:./x --listen --psm 128", "Leave --psm out"),
            ("pipe --transport hci:unix:./x a --encrypted", "goes with --listen"),
            ("pair --transport hci:unix:./x a", "Name the file of keys with --bonds"),
            ("bonds --transport hci:unix:./x", "Name the file of keys with --bonds"),
            ("unbond --transport hci:unix:./x --bonds f", "Missing expected argument '<address>'"),
            ("bench --peer x --transport hci:unix:./x --interval 15,30", "give --interval and --phy one value"),
            ("bench --peer x --transport hci:unix:./x --csv", "do not go with --peer"),
        ]

        @Test("What is wrong for an adapter is named, with what to do", arguments: badOverHCI)
        func refusedOverHCI(_ line: String, _ words: String) { refused(line, words) }
    #endif

    @Test("What is wrong is named, with what to do", arguments: bad) func refused(_ line: String, _ words: String) {
        let error = #expect(throws: (any Error).self) {
            _ = try FerryCommand.parsed(line.split(separator: " ").map(String.init))
        }
        guard let error else { return }
        let message = FerryCommand.message(for: error)
        #expect(message.contains(words), "\(message)")
        #expect(!message.contains("\u{1B}"))
        #expect(error is UsageProblem || FerryCommand.exitCode(for: error).rawValue == UsageProblem.status)
    }

    @Test(
        "What is right is not refused",
        arguments: [
            "scan --transport loopback --rssi -70", "advise --score", "bench --seconds 1", "advise --message-size 9",
        ]) func taken(_ line: String) throws
    {
        _ = try FerryCommand.parsed(line.split(separator: " ").map(String.init))
    }

    @Test("Help is help", arguments: ["--help", "bench --help", "help bench", "--version"]) func help(_ line: String) {
        let error = #expect(throws: (any Error).self) {
            var command = try FerryCommand.parsed(line.split(separator: " ").map(String.init))
            try command.run()
        }
        guard let error else { return }
        #expect(FerryCommand.exitCode(for: error) == .success)
    }
}
