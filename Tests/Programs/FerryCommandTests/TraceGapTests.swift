import Foundation
import TestSupport
import Testing

@testable import FerryCommand
@testable import FerryLab

/// What `ferry trace` says of what a capture does not have, and of writes that had no effect.
@Suite(.tags(.program)) struct TraceGapTests {
    /// A capture of one connection, made by hand: btsnoop of datalink type 1002.
    private struct Capture {
        var bytes = TraceCaptures.header
        var drops: UInt32 = 0
        /// In microseconds.
        var time: UInt64 = 0x00E3_3E9A_8547_95C1

        init() {
            let event: [UInt8] = [0x01, 0, 0x40, 0, 0, 0, 6, 5, 4, 3, 2, 1, 24, 0, 0, 0, 72, 0, 0]
            record([0x04, 0x3E, UInt8(event.count)] + event, isReceived: true)
        }

        mutating func record(_ packet: [UInt8], isReceived: Bool, kept: Int? = nil) {
            func number(_ value: UInt64, _ count: Int) -> [UInt8] {
                (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
            }
            time += 1000
            let kept = min(kept ?? packet.count, packet.count)
            bytes += number(UInt64(packet.count), 4) + number(UInt64(kept), 4)
            bytes += number(isReceived ? 1 : 0, 4) + number(UInt64(drops), 4) + number(time, 8) + packet[..<kept]
        }

        mutating func data(_ fragment: [UInt8], isReceived: Bool, continues: Bool = false, kept: Int? = nil) {
            let flags: UInt8 = continues ? 0x10 : isReceived ? 0x20 : 0
            record([0x02, 0x40, flags, UInt8(fragment.count), 0] + fragment, isReceived: isReceived, kept: kept)
        }

        mutating func frame(_ channel: UInt8, _ payload: [UInt8], isReceived: Bool, kept: Int? = nil) {
            data([UInt8(payload.count), 0, channel, 0] + payload, isReceived: isReceived, kept: kept)
        }

        mutating func pdu(_ bytes: [UInt8], isReceived: Bool, kept: Int? = nil) {
            frame(4, bytes, isReceived: isReceived, kept: kept)
        }

        mutating func notify(_ value: [UInt8], kept: Int? = nil) {
            pdu([0x1B, 3, 0] + value, isReceived: true, kept: kept)
        }
        mutating func write(_ value: [UInt8]) { pdu([0x12, 3, 0] + value, isReceived: false) }
        mutating func answer(_ bytes: [UInt8]) { pdu(bytes, isReceived: true) }
        mutating func disconnect() { record([0x04, 0x05, 4, 0, 0x40, 0, 0x13], isReceived: true) }
    }

    private static let bytes = [UInt8](repeating: 7, count: 20)
    private static let marker = Array("EOM".utf8)

    private func trace(_ capture: Capture, framing: TraceFraming = .eom, handles: Set<Int> = [3]) throws -> (
        lines: [String], complaint: String?
    ) {
        var reader = TraceReader(framing: framing, handles: handles)
        let lines = try reader.feed(capture.bytes) + reader.finish()
        return (lines, reader.complaint)
    }

    private func expectGap(
        _ capture: Capture, _ line: String, _ sentence: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let answer = try trace(capture)
        #expect(
            answer.lines.contains { $0.contains("! ") && $0.contains(line) }, "\(answer)",
            sourceLocation: sourceLocation)
        #expect(answer.complaint?.contains(sentence) == true, "\(answer)", sourceLocation: sourceLocation)
        #expect(
            answer.lines.last?.contains("1 gap in the capture") == true, "\(answer)", sourceLocation: sourceLocation)
    }

    @Test(arguments: [5, 9, 13, 20]) func aPacketThatTheCaptureCut(kept: Int) throws {
        var capture = Capture()
        capture.notify(Self.bytes)
        capture.notify(Self.bytes, kept: kept)
        capture.notify(Self.bytes)
        capture.notify(Self.marker)
        capture.disconnect()
        try expectGap(capture, "< a packet of 31 bytes was cut to \(kept - 1) by the capture", "1 packet was cut")
        let lines = try trace(capture).lines
        #expect(
            lines.contains { $0.contains("= message <1: 3 chunks") && $0.contains("perhaps not all of them captured") })
    }

    /// Of a packet with less than its connection nothing is known, and a packet may be short without the file saying so.
    @Test func aPacketThatIsAlmostGoneOrCutWithoutAWord() throws {
        var gone = Capture()
        gone.notify(Self.bytes)
        gone.notify(Self.bytes, kept: 2)
        try expectGap(gone, "1 packet was lost by the capture before this", "1 packet was lost")
        var short = Capture()
        short.notify(Self.bytes)
        short.record([0x02, 0x40, 0x20, 27, 0, 23, 0, 4, 0, 0x1B, 3, 0, 7], isReceived: true)
        try expectGap(short, "< a packet of 31 bytes was cut to 12", "1 packet was cut")
    }

    @Test func theRestOfACutFrameIsNoFrame() throws {
        var capture = Capture()
        capture.notify(Self.bytes)
        capture.data([23, 0, 4, 0, 0x1B, 3, 0] + Self.bytes[..<10], isReceived: true, kept: 12)
        capture.data(Array(Self.bytes[10...]), isReceived: true, continues: true)
        capture.notify(Self.bytes)
        try expectGap(capture, "was cut to 11", "1 packet was cut")
        #expect(try trace(capture).lines.count { $0.contains("< 20 bytes") } == 2)
    }

    @Test func whatCarriesNoValueMayBeCut() throws {
        var capture = Capture()
        capture.notify(Self.bytes)
        capture.notify(Self.marker)
        // A Read Response, a channel of an app's own, and a command.
        capture.pdu([0x0B] + Self.bytes, isReceived: true, kept: 12)
        capture.frame(0x60, Self.bytes, isReceived: true, kept: 12)
        capture.record([0x01, 0x03, 0x0C] + Self.bytes, isReceived: false, kept: 3)
        #expect(try trace(capture).complaint == nil)
    }

    @Test("An answer to a read that is followed is missed where it was cut, and no other")
    func cutAnswers() throws {
        for (handle, isMissed) in [(3 as UInt8, true), (4, false)] {
            var capture = Capture()
            capture.pdu([0x1B, 3, 0] + Self.bytes, isReceived: true)
            capture.pdu([0x0A, handle, 0], isReceived: false)
            capture.pdu([0x0B] + Self.bytes, isReceived: true, kept: 14)
            let answer = try trace(capture)
            #expect((answer.complaint?.contains("cut") == true) == isMissed, "\(answer)")
        }
    }

    @Test(arguments: [1, 7] as [UInt32]) func packetsThatTheCaptureLost(_ count: UInt32) throws {
        var capture = Capture()
        capture.drops = 4
        capture.bytes = TraceCaptures.header
        capture.notify(Self.bytes)
        capture.drops += count
        capture.notify(Self.bytes)
        capture.notify(Self.marker)
        let answer = try trace(capture)
        // What was lost before the first packet counts as well.
        let sentence = "The capture does not tell all: \(4 + count) packets were lost. Lines with ! say where."
        #expect(answer.complaint == sentence, "\(answer)")
        #expect(answer.lines.contains { $0.contains("! \(count) packet") }, "\(answer)")
    }

    @Test(arguments: ["disconnect", "frame", "end"]) func aFrameThatDoesNotEnd(how: String) throws {
        var capture = Capture()
        capture.notify(Self.bytes)
        capture.data([23, 0, 4, 0, 0x1B, 3, 0] + Self.bytes[..<10], isReceived: true)
        if how == "disconnect" { capture.disconnect() }
        if how == "frame" { capture.notify(Self.bytes) }
        try expectGap(capture, "< a frame has no end", "1 frame is not whole")
    }

    @Test func aFrameThatDoesNotBegin() throws {
        var capture = Capture()
        // The rest of what was sent before the capture is no gap.
        capture.data(Self.bytes, isReceived: true, continues: true)
        capture.notify(Self.bytes)
        #expect(try trace(capture).complaint == nil)
        capture.data(Self.bytes, isReceived: true, continues: true)
        capture.data(Self.bytes, isReceived: true, continues: true)
        try expectGap(capture, "< a frame has no beginning", "1 frame is not whole")
    }

    @Test func anEnhancedBearersFramesMayBeMissing() throws {
        var capture = Capture()
        capture.frame(5, [0x17, 9, 10, 0, 0x27, 0, 64, 0, 64, 0, 5, 0, 0x41, 0], isReceived: false)
        capture.frame(5, [0x18, 9, 10, 0, 64, 0, 64, 0, 5, 0, 0, 0, 0x51, 0], isReceived: true)
        capture.frame(0x41, [8, 0, 0x1B, 3, 0, 1, 2, 3, 4, 5], isReceived: true)
        #expect(try trace(capture).complaint == nil)
        var open = capture
        open.frame(0x41, [8, 0, 0x1B, 3, 0], isReceived: true)
        try expectGap(open, "< a frame has no end", "1 frame is not whole")
        var long = capture
        long.frame(0x41, [8, 0, 0x1B, 3, 0], isReceived: true)
        long.frame(0x41, [8, 0, 0x1B, 3, 0, 1, 2, 3, 4, 5], isReceived: true)
        try expectGap(long, "< a frame has no end", "1 frame is not whole")
        // Its writes are answered on the other end of the same bearer.
        capture.frame(0x51, [5, 0, 0x12, 3, 0, 1, 2], isReceived: false)
        capture.frame(0x41, [5, 0, 0x01, 0x12, 3, 0, 0x0E], isReceived: true)
        #expect(try trace(capture).lines.contains { $0.contains("- > a write of 2 bytes was refused") } == false)
        capture.frame(0x51, [5, 0, 0x12, 3, 0, 1, 2], isReceived: false)
        capture.frame(0x41, [1, 0, 0x13], isReceived: true)
        let answer = try trace(capture)
        #expect(answer.complaint == nil && answer.lines.contains { $0.contains("> 2 bytes") }, "\(answer)")
    }

    @Test func aRefusedWriteIsNotSent() throws {
        var capture = Capture()
        capture.write(Self.bytes)
        capture.answer([0x13])
        capture.write(Self.bytes)
        capture.answer([0x01, 0x12, 3, 0, 0x0E])
        // An error for another request is no answer to this one.
        capture.write(Self.bytes)
        capture.answer([0x01, 0x0A, 3, 0, 0x0E])
        capture.answer([0x13])
        capture.write(Self.marker)
        capture.answer([0x13])
        let answer = try trace(capture)
        #expect(answer.complaint == nil)
        #expect(answer.lines.contains { $0.contains("the marker: message 1 of 40 bytes ends") }, "\(answer)")
        #expect(answer.lines.contains { $0.contains("- > a write of 20 bytes was refused, error 0xe") }, "\(answer)")
    }

    @Test(arguments: ["disconnect", "write", "end"]) func aWriteWithoutAnAnswer(how: String) throws {
        var capture = Capture()
        capture.write(Self.bytes)
        capture.answer([0x13])
        capture.write(Self.bytes)
        if how == "disconnect" { capture.disconnect() }
        if how == "write" {
            capture.write(Self.bytes)
            capture.answer([0x13])
        }
        try expectGap(capture, "> a write of 20 bytes has no answer", "1 write has no answer")
    }

    @Test func aLongWriteIsOneValue() throws {
        func prepare(_ offset: UInt8, _ part: [UInt8], _ capture: inout Capture) {
            capture.pdu([0x16, 3, 0, offset, 0] + part, isReceived: false)
            capture.answer([0x17, 3, 0, offset, 0] + part)
        }
        var capture = Capture()
        prepare(0, Self.bytes, &capture)
        prepare(20, Self.bytes, &capture)
        // One that is refused is in no queue.
        capture.pdu([0x16, 3, 0, 40, 0] + Self.bytes, isReceived: false)
        capture.answer([0x01, 0x16, 3, 0, 0x09])
        capture.pdu([0x18, 1], isReceived: false)
        capture.answer([0x19])
        // Called off, and refused.
        prepare(0, Self.bytes, &capture)
        capture.pdu([0x18, 0], isReceived: false)
        capture.answer([0x19])
        prepare(0, Self.bytes, &capture)
        let unanswered = capture
        capture.pdu([0x18, 1], isReceived: false)
        capture.answer([0x01, 0x18, 0, 0, 0x0D])
        capture.write(Self.marker)
        capture.answer([0x13])
        let answer = try trace(capture)
        #expect(answer.complaint == nil)
        #expect(answer.lines.contains { $0.contains("the marker: message 1 of 40 bytes ends") }, "\(answer)")
        #expect(answer.lines.contains { $0.contains("a write of 20 bytes was refused, error 0xd") }, "\(answer)")
        var other = unanswered
        other.pdu([0x18, 1], isReceived: false)
        try expectGap(other, "> a write of 20 bytes has no answer", "1 write has no answer")
    }

    @Test func aClockThatWasSetBack() throws {
        var capture = Capture()
        capture.notify(Self.bytes)
        // Threads that write one file may be a little out of order.
        capture.time -= 50_000
        capture.notify(Self.bytes)
        #expect(try trace(capture).complaint == nil)
        capture.time -= 3_600_000_000
        capture.notify(Self.marker)
        try expectGap(capture, "the clock was set back by", "1 time the clock was set back")
        let lines = try trace(capture).lines
        #expect(lines.contains { $0.contains("= message <1: 3 chunks, perhaps") }, "\(lines)")
    }

    @Test func aLogsClockMayBeSetBackWhereAnotherLogBegins() throws {
        let log = "# framing eom\n5000 ms  link1  connected\n5001 ms  link1  sent  2 bytes  4142\n"
        func complaint(_ text: String) throws -> String? {
            var reader = TraceReader(framing: nil, handles: [])
            _ = try reader.feed(Array(text.utf8)) + reader.finish()
            return reader.complaint
        }
        #expect(try complaint(log + log) == nil)
        #expect(try complaint(log + "1 ms  link1  sent  2 bytes  4142\n")?.contains("the clock was set back") == true)
    }
}
