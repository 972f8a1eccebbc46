import TestSupport
import Testing
import VirtualControllers

/// The lines that change the air.
@Suite(.tags(.host)) struct AirLineTests {
    static let accepted: [(String, AirCommand)] = [
        ("signal 0 3 -71", .signal(0...0, 3...3, -71)),
        ("  signal  1-2   *  out ", .signal(1...2, 0...3, nil)),
        ("signal 3 0-3 auto", .automatic(3...3, 0...3)),
        ("loss 0 1 100", .loss(0...0, 1...1, 100)),
        ("place 2 -3.5 1e3", .place(2...2, Air.Place(x: -3.5, y: 1000))),
        ("pace 255", .pace(255)),
        ("pace off", .pace(nil)),
        ("show 3 0", .show(3, 0)),
        ("connections", .connections),
    ]

    @Test(arguments: accepted) func aLineIsRead(line: String, command: AirCommand) throws {
        #expect(try AirCommand.parse(line, count: 4) == command)
    }

    static let refused: [(String, String)] = [
        ("", "The line is empty. Write signal, loss, place, pace, show or connections."),
        ("sygnal 0 1 2", "There is no \"sygnal\". Write signal, loss, place, pace, show or connections."),
        ("signal 0 1", "The line has 3 words instead of 4. Write: signal A B DBM|out|auto"),
        ("signal 0 4 -50", "\"4\" is no controller. Write one of 0 to 3, two with - between, or *."),
        ("signal -1 3 -50", "\"-1\" is no controller. Write one of 0 to 3, two with - between, or *."),
        ("signal 3-1 0 -50", "\"3-1\" is no controller. Write one of 0 to 3, two with - between, or *."),
        ("signal 0-1-2 0 -50", "\"0-1-2\" is no controller. Write one of 0 to 3, two with - between, or *."),
        (
            "signal 99999999999999999999 0 -50",
            "\"99999999999999999999\" is no controller. Write one of 0 to 3, two with - between, or *."
        ),
        ("signal 0 1 21", "\"21\" is not a signal in dBm, out or auto. Numbers are from -127 to 20."),
        ("signal 0 1 near", "\"near\" is not a signal in dBm, out or auto. Numbers are from -127 to 20."),
        ("loss 0 1 101", "\"101\" is not a share in percent. Numbers are from 0 to 100."),
        ("place 0 nan 1", "\"nan\" is no place in metres. Numbers are from -1000000 to 1000000."),
        ("place 0 1 1e7", "\"1e7\" is no place in metres. Numbers are from -1000000 to 1000000."),
        ("pace 0", "\"0\" is not a number of packets, or off. Numbers are from 1 to 255."),
        ("show 0 *", "\"*\" is not a controller. Numbers are from 0 to 3."),
        ("connections 1", "The line has 2 words instead of 1. Write: connections"),
    ]

    @Test(arguments: refused) func aBadLineSaysWhat(line: String, reason: String) {
        var controllers = VirtualControllers(count: 4)
        #expect(controllers.obey(line) == ["error: \(reason)"])
    }

    @Test func linesAreCutWhereTheyEndAndBounded() {
        var reader = LineReader()
        #expect(reader.read(Array("pace 1\r\npa".utf8)) == ["pace 1"])
        #expect(reader.read(Array("ce 2\n\n".utf8)) == ["pace 2", ""])
        let long = [UInt8](repeating: 0x61, count: LineReader.limit)
        #expect(reader.read(long + [0x0A]) == [String(decoding: long, as: UTF8.self)])
        for _ in 0..<100 { #expect(reader.read(long) == []) }
        #expect(reader.read(Array("\npace 3\n".utf8)) == [nil, "pace 3"])
        var controllers = VirtualControllers(count: 4)
        #expect(controllers.obey(nil) == ["error: The line is longer than 1024 bytes."])
    }
}
