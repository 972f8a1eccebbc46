import ArgumentParser
import Ferry
import FerrySequenced
import Foundation
import TestSupport
import Testing

@testable import FerryCommand

/// What `ferry trace` makes of lines, logs and captures.
@Suite(.tags(.program)) struct TraceTests {
    private func lines(_ text: String) throws -> [ChunkLogLines.Line] {
        var reader = ChunkLogLines()
        let lines = try text.split(separator: "\n", omittingEmptySubsequences: false)
            .compactMap { try reader.read(String($0)) }
        try reader.finish()
        return lines
    }

    private func trace(
        _ bytes: [UInt8], pieces: Int = .max, framing: TraceFraming? = nil, handles: Set<Int> = []
    ) throws -> (lines: [String], complaint: String?) {
        var reader = TraceReader(framing: framing, handles: handles)
        var lines: [String] = []
        for start in stride(from: 0, to: bytes.count, by: min(pieces, max(1, bytes.count))) {
            lines += try reader.feed(Array(bytes[start..<min(bytes.count, start + min(pieces, bytes.count))]))
        }
        lines += try reader.finish()
        return (lines, reader.complaint)
    }

    private func trace(_ text: String, framing: TraceFraming? = nil) throws -> (lines: [String], complaint: String?) {
        try trace(Array(text.utf8), framing: framing)
    }

    @Test func tracedLinesArePairsOfDigits() throws {
        func event(_ line: String) throws -> ChunkLogLines.Event? {
            var lines = ChunkLogLines()
            let read = try lines.read(line)
            try lines.finish()
            return read?.event
        }
        #expect(try event(" < e0 0 1ff") == .chunk(.second, [0xE0, 0x01, 0xFF]))
        #expect(try event(">") == .chunk(.first, []))
        #expect(try event("# > 00") == nil)
        for line in ["> 0", "> 0g", "00", "> +1"] { #expect(throws: (any Error).self) { try event(line) } }
    }

    @Test func linesBecomeChunks() throws {
        let read = try lines("> e0 01 FF1f\n<e3\n  \n# a remark\n").map(\.event)
        #expect(read == [.chunk(.first, [0xE0, 0x01, 0xFF, 0x1F]), .chunk(.second, [0xE3])])
    }

    @Test(arguments: ["> e", "> xy", "> +1", "e0 01"])
    func otherLinesAreRefusedByNumber(line: String) {
        let error = #expect(throws: ChunkLogLines.Malformed.self) {
            try lines(String(repeating: "> e3\n", count: 16) + line)
        }
        #expect(error?.description.contains("Line 17") == true)
    }

    /// Lines of a log: `count` chunks of `size` bytes in end-of-message framing, 10 ms apart, from `start` on, in ms.
    private func chunks(_ count: Int, of size: Int, from start: Int) -> String {
        (0..<count).map {
            "\(start + $0 * 10) ms  client  sent  \(size) bytes  \(String(repeating: "a", count: size))\n"
        }
        .joined()
    }

    @Test(arguments: [
        ("", 20, true), ("5000 ms  client  ended: lost\n5100 ms  client  connected\n", 20, true), ("", 19, false),
        ("", 30, false),
    ])
    func shorterChunksAfterAStallAreTold(_ between: String, _ size: Int, _ isTold: Bool) throws {
        let log =
            "Framing  the marker EOM\n0 ms  client  connected\n" + chunks(3, of: 60, from: 10) + between
            + chunks(20, of: size, from: 12_000) + chunks(2, of: 40, from: 12_500)
        let lines = try trace(log, framing: .eom).lines
        let told = lines.filter { $0.contains("at most 20 bytes a chunk since then, 60 before") }
        #expect(told.count == (isTold ? 1 : 0), "\(lines)")
        #expect(lines.contains { $0.contains("longer chunks again") } == isTold, "\(lines)")
    }

    @Test func aLogTellsChunksWaitsAndEnds() throws {
        let log = """
            Framing           the message's length before its first byte
            whatever else is printed
               1.5 ms  server  connected
              2.25 ms  server  sent        3 bytes  02 61 62
               2.5 ms  server  full: waiting for ready
                 1 s  server  ready
               1.2 s  server  received    4 bytes   abc
               1.3 s  server  ended: gone
            """
        #expect(
            try lines(log).map(\.event) == [
                .framing(.length), .connected, .chunk(.first, [2, 0x61, 0x62]), .full, .ready,
                .chunk(.second, Array(" abc".utf8)), .ended("gone"),
            ])
        #expect(try lines(log).compactMap(\.milliseconds) == [1.5, 2.25, 2.5, 1000, 1200, 1300])
    }

    @Test func aLogThatWasCutForATerminalIsRefused() {
        let error = #expect(throws: ChunkLogLines.Malformed.self) {
            try lines("1.5 ms  server  sent       64 bytes  a8 00 7b...")
        }
        #expect(error?.description.contains("Line 1 has a chunk's beginning only") == true)
        #expect(throws: ChunkLogLines.Malformed.self) { try lines("1.5 ms  server  sent        3 bytes  a8 00") }
    }

    @Test func theLifeOfAMessage() throws {
        let log = """
            # framing length
            0.1 ms  link1  connected
            1.0 ms  link1  sent  3 bytes  056162
            1.5 ms  link1  full: waiting for ready
            4.0 ms  link1  ready
            4.5 ms  link1  sent  3 bytes  636465
            2000.0 ms  link1  received  2 bytes  017a
            """
        #expect(
            try trace(log).lines == [
                "    0.100 ms  - connected",
                "    1.000 ms  > 3 bytes: message 1 of 5 bytes begins; 2 bytes of message 1",
                "    1.500 ms  - the link is full: waits for ready", "    4.000 ms  - ready after 2.500 ms",
                "    4.500 ms  > 3 bytes: 3 bytes of message 1, which ends",
                "    4.500 ms  = message >1 of 5 bytes: 2 chunks in 3.500 ms, 1 wait for ready of 2.500 ms in all",
                "              - nothing for 1995.500 ms",
                " 2000.000 ms  < 2 bytes: message 1 of 1 bytes begins; 1 bytes of message 1, which ends",
                " 2000.000 ms  = message <1 of 1 bytes: 1 chunk in 0.000 ms", "2 messages to the end, 0 open; 3 chunks",
            ])
    }

    @Test func aMarkerEndsAMessage() throws {
        let lines = try trace("> 6162\n> 63\n> 454f4d\n> 61\n", framing: .eom).lines
        #expect(lines.contains("= message >1: 3 chunks"), "\(lines)")
        #expect(lines.contains("= message >2: 1 chunk, not whole when the capture ends"), "\(lines)")
    }

    @Test func sequencedMessagesAreFollowedToTheirAcknowledgement() throws {
        let lines = try trace(
            """
            > e1100102030438a8780000
            < e1130506070838a87800000102030400000000
            > a80023003c0102030405060708090a0b0c0d0e0f
            > 02232425262728292a2b2c2d2e2f303132333435
            > 01101112131415161718191a1b1c1d1e1f202122
            > 01101112131415161718191a1b1c1d1e1f202122
            > 8603363738393a3b3cb0bb39fe
            < e004fe1f
            """
        ).lines
        #expect(
            lines[7...].contains("= message >1 of 60 bytes: 4 chunks, 1 chunk again meanwhile, acknowledged"),
            "\(lines)")
        #expect(lines.last == "1 message to the end, 0 open; 8 chunks, 1 before their turn, 1 again")
    }

    @Test("A message that is whole is told as whole, also where the capture has no times")
    func wholeWithoutTimes() throws {
        let lines = try trace(
            """
            > e1100102030438a8780000
            < e1130506070838a87800000102030400000000
            > a80023003c0102030405060708090a0b0c0d0e0f
            > 02232425262728292a2b2c2d2e2f303132333435
            > 01101112131415161718191a1b1c1d1e1f202122
            > 8603363738393a3b3cb0bb39fe
            """
        ).lines
        #expect(
            lines.contains("= message >1 of 60 bytes: 4 chunks, not acknowledged when the capture ends"), "\(lines)")
    }

    @Test func whatIsNotUnderstoodFails() throws {
        #expect(try trace("> e3\n").complaint == nil)
        #expect(try trace("> ff\n> e1\n").complaint == "2 chunks were not understood.")
        // A length of eleven bytes, and what follows it.
        let answer = try trace("> ffffffffffffffffffffff\n> 00\n", framing: .length)
        #expect(answer.complaint == "2 chunks were not understood.", "\(answer.lines)")
        #expect(try trace("").complaint == "There is no chunk in it.")
    }

    @Test(arguments: [Int.max, 1, 7, 100]) func aCaptureOfBtsnoop(pieces: Int) throws {
        let answer = try trace(TraceCaptures.btsnoop, pieces: pieces)
        #expect(answer.complaint == nil)
        #expect(answer.lines.first?.hasPrefix("hci0 with ") == true, "\(answer.lines)")
        let messages = answer.lines.filter { $0.contains("  = message") }
        #expect(
            messages.count == 1
                && messages[0].contains("= message >1 of 227 bytes: 1 chunk in 0.000 ms, acknowledged after"),
            "\(answer.lines)")
        #expect(answer.lines.contains { $0.hasSuffix("disconnected, reason 0x13") || $0.contains("disconnected") })
        #expect(answer.lines.last == "1 message to the end, 0 open; 5 chunks")
    }

    @Test func aCaptureOfPcapAsWiresharkWritesIt() throws {
        let answer = try trace(TraceCaptures.pcap)
        #expect(
            answer.complaint == nil && answer.lines.last == "1 message to the end, 0 open; 5 chunks", "\(answer.lines)")
    }

    @Test func aCaptureWithoutAHelloSaysWhatCrosses() throws {
        let answer = try trace(TraceCaptures.btsnoop, framing: .length)
        #expect(answer.complaint?.contains("Name the one that carries chunks with --handle") == true)
        #expect(answer.complaint?.contains("0x10 (") == true, "\(answer.complaint ?? "")")
        // Its hello is taken for a length of 97 bytes by that framing, or for nonsense: never for a whole message.
        #expect(try trace(TraceCaptures.btsnoop, framing: .sequenced, handles: [0x10]).complaint == nil)
    }

    /// One side asks for two bearers (Vol 3, Part A, 4.25), gets one, and a value crosses it in two K-frames.
    @Test(arguments: [false, true]) func anEnhancedBearerCarriesValues(isReceived: Bool) throws {
        func frame(_ channel: UInt8, _ payload: [UInt8], from isReceived: Bool) -> [UInt8] {
            let frame = [UInt8(payload.count), 0, channel, 0] + payload
            return TraceCaptures.record([0x02, 0x40, 0x20, UInt8(frame.count), 0] + frame, isReceived: isReceived)
        }
        let request: [UInt8] = [0x17, 9, 12, 0, 0x27, 0, 64, 0, 64, 0, 5, 0, 0x41, 0, 0x42, 0]
        let response: [UInt8] = [0x18, 9, 12, 0, 64, 0, 64, 0, 5, 0, 0, 0, 0x51, 0, 0, 0]
        let opened =
            TraceCaptures.header + frame(5, request, from: isReceived) + frame(5, response, from: !isReceived)
        // The text "hello" behind its length, as a notification of handle 0x0010.
        let value: [UInt8] = [9, 0, 0x1B, 0x10, 0, 5, 0x68]
        let rest: [UInt8] = [0x65, 0x6C, 0x6C, 0x6F]
        let arrow = isReceived ? "<" : ">"
        let to = try trace(
            opened + frame(0x51, value, from: isReceived) + frame(0x51, rest, from: isReceived), framing: .length,
            handles: [0x10])
        #expect(to.complaint == nil && to.lines.contains { $0.contains("= message \(arrow)1 of 5 bytes") }, "\(to)")
        // And the other way, on the end of the one who asked.
        let back = try trace(
            opened + frame(0x41, value, from: !isReceived) + frame(0x41, rest, from: !isReceived), framing: .length,
            handles: [0x10])
        #expect(back.complaint == nil && back.lines.contains { $0.contains("1 of 5 bytes") }, "\(back)")
        // Not on a channel that was refused, nor on one that was closed.
        let refused = try trace(opened + frame(0x42, value + rest, from: !isReceived), handles: [0x10])
        #expect(refused.complaint == "No value crosses in it.")
        let closing = frame(5, [0x06, 10, 4, 0, 0x51, 0, 0x41, 0], from: isReceived)
        let closed = frame(5, [0x07, 10, 4, 0, 0x51, 0, 0x41, 0], from: !isReceived)
        let late = try trace(
            opened + closing + closed + frame(0x51, value + rest, from: isReceived), framing: .length, handles: [0x10])
        #expect(late.complaint == "No value crosses in it.")
    }

    @Test func damagedAndOtherFilesAreNamed() {
        func problem(_ bytes: [UInt8]) -> String {
            do {
                let answer = try trace(bytes)
                return answer.complaint ?? "none"
            } catch { return (error as? TraceReader.Problem)?.description ?? "\(error)" }
        }
        #expect(
            problem(Array(TraceCaptures.btsnoop.dropLast(3))).hasPrefix(
                "The file ends in the middle of the record at byte "))
        #expect(
            problem(Array(TraceCaptures.pcap.dropLast(1))).hasPrefix(
                "The file ends in the middle of the record at byte "))
        #expect(problem(Array(TraceCaptures.btsnoop.prefix(12))) == "The capture is cut in its header.")
        var damaged = TraceCaptures.btsnoop
        damaged[20] = 0x7F
        #expect(problem(damaged).hasPrefix("The record at byte 16 says that it has "))
        var other = TraceCaptures.btsnoop
        other[15] = 0
        #expect(problem(other).contains("datalink type 768"))
        var serial = TraceCaptures.pcap
        serial[20] = 1
        #expect(problem(serial).contains("link type 1."))
        #expect(problem([0x0A, 0x0D, 0x0D, 0x0A] + [UInt8](repeating: 0, count: 40)).contains("editcap -F pcap"))
        #expect(problem(Array("\u{89}PNG".utf8) + [UInt8](repeating: 0, count: 40)).contains("neither a capture"))
        #expect(problem(Array("a letter\nto nobody\n".utf8)).hasPrefix("Line 1 begins with neither > nor <"))
    }

    /// Flips and cuts: an answer or an error, never a trap.
    @Test func anyBytesGetAnAnswer() throws {
        var state: UInt64 = 20
        func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        for capture in [TraceCaptures.btsnoop, TraceCaptures.pcap] {
            for _ in 0..<100 {
                var bytes = capture
                for _ in 0...next(4) { bytes[next(bytes.count)] = UInt8(next(256)) }
                bytes.removeLast(next(40))
                _ = try? trace(bytes, pieces: 1 + next(500))
                _ = try? trace(bytes, framing: .length, handles: [0x10])
            }
        }
    }
}
