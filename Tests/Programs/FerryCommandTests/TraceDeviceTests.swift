import FerrySequenced
import FerryTesting
import TestSupport
import Testing

@testable import FerryCommand

/// What `ferry trace` makes of the formats that devices speak; values are those of their reference implementations.
@Suite(.tags(.program)) struct TraceDeviceTests {
    private func trace(_ text: String, _ framing: TraceFraming) throws -> (lines: [String], complaint: String?) {
        var reader = TraceReader(framing: framing, handles: [])
        let lines = try reader.feed(Array(text.utf8)) + reader.finish()
        return (lines, reader.complaint)
    }

    private func trace(_ packets: [[UInt8]], framing: TraceFraming? = nil) throws -> (
        lines: [String], complaint: String?
    ) {
        var reader = TraceReader(framing: framing, handles: [])
        let lines = try reader.feed(TraceCaptures.header + packets.flatMap { $0 }) + reader.finish()
        return (lines, reader.complaint)
    }

    /// One PDU of ATT on the connection 0x040.
    private func pdu(_ bytes: [UInt8], isReceived: Bool) -> [UInt8] {
        let count = UInt8(bytes.count)
        let head: [UInt8] = [0x02, 0x40, isReceived ? 0x20 : 0x00, count + 4, 0, count, 0, 4, 0]
        return TraceCaptures.record(head + bytes, isReceived: isReceived)
    }

    private func write(_ handle: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        pdu([0x52, handle, 0] + bytes, isReceived: false)
    }

    private func notify(_ handle: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        pdu([0x1B, handle, 0] + bytes, isReceived: true)
    }

    /// A peer's characteristic, as discovery tells it.
    private func declare(_ handle: UInt8, _ uuid: UInt128) -> [UInt8] {
        let bytes = (0..<16).map { UInt8(truncatingIfNeeded: uuid >> UInt128(8 * $0)) }
        return pdu([0x09, 21, handle - 1, 0, 0x1C, handle, 0] + bytes, isReceived: true)
    }

    private static let echo: [UInt8] = [0x0A, 0, 0, 6, 0, 0, 0, 0, 0xA1, 0x61, 0x64, 0x62, 0x68, 0x69]
    private static let answer: [UInt8] = [0x0B, 0, 0, 6, 0, 0, 0, 0, 0xA1, 0x61, 0x72, 0x62, 0x68, 0x69]

    @Test func requestsOfSMPAndTheirAnswersAreNamed() throws {
        let text = """
            > 0a 00 00 06 00 00 00 00 a1 61
            > 64 62 68 69
            < 0b 00 00 06 00 00 00 00 a1 61 72 62 68 69
            """
        let (lines, complaint) = try trace(text, .smp)
        #expect(
            lines == [
                "> 10 bytes: write OS echo, sequence 0; 10 bytes of message 1",
                "> 4 bytes: 4 bytes of message 1, which ends",
                "= message >1 of 14 bytes: 2 chunks",
                "< 14 bytes: answer to write OS echo, sequence 0 to >1; 14 bytes of message 1, which ends",
                "= message <1 of 14 bytes: 1 chunk",
                "2 messages to the end, 0 open; 3 chunks",
            ])
        #expect(complaint == nil)
    }

    @Test func aDocumentsValuesAreJoined() throws {
        let (lines, complaint) = try trace("> 01 00 01 02\n> 00 03\n< 02 aa\n", .mdoc)
        #expect(lines.contains("> 2 bytes: 1 bytes: message 1 of 4 bytes ends"), "\(lines)")
        #expect(lines.contains("= message >1: 2 chunks"), "\(lines)")
        #expect(complaint == "1 chunk was not understood.")
    }

    @Test func chunksOfPFTPAreNumbered() throws {
        let text = """
            > 06 05 00 08 00 12
            > 13 01 2f
            < 00 67 00
            < 06 01 02
            < 37 03
            < 21 fe ff
            < 04 01
            < 06 01
            < 02 07
            """
        let (lines, complaint) = try trace(text, .pftp)
        #expect(
            lines.filter { !$0.hasPrefix("=") } == [
                "> 6 bytes: chunk 0: 5 bytes of message 1",
                "> 3 bytes: chunk 1: 2 bytes: message 1 of 7 bytes ends",
                "< 3 bytes: chunk 0: error 103 ends message 1",
                "< 3 bytes: chunk 0: 2 bytes of message 2",
                "< 2 bytes: chunk 3 (1 was due): 1 bytes of message 2",
                "< 3 bytes: chunk 2 (4 was due): error 65534 ends message 2",
                "< 2 bytes: not understood (the status is 2)",
                "< 2 bytes: chunk 0: 1 bytes of message 3",
                "< 2 bytes: chunk 0 (1 was due): 1 bytes: message 4 of 1 bytes ends",
                "4 messages to the end, 1 open; 9 chunks, 1 not understood",
            ], "\(lines)")
        #expect(complaint == "1 chunk was not understood.")
    }

    @Test func packetsOfImprovEndByTheirLength() throws {
        let (lines, complaint) = try trace(
            "> 01 0c 04 68 6f 6d\n> 65 06 73 65 63 72 65 74 46\n< 07 00 07\n< 01\n", .improv)
        #expect(
            lines.filter { !$0.hasPrefix("=") } == [
                "> 6 bytes: network settings; 6 bytes of message 1", "> 9 bytes: 9 bytes of message 1, which ends",
                "< 3 bytes: command 7; 3 bytes of message 1, which ends",
                "< 1 bytes: not understood (a packet of Improv begins with 2 bytes)",
                "2 messages to the end, 0 open; 4 chunks, 1 not understood",
            ], "\(lines)")
        #expect(complaint == "1 chunk was not understood.")
    }

    @Test func aValueOfMeshtasticIsAMessage() throws {
        let (lines, complaint) = try trace("> 18 2a\n> 3a 00\n", .meshtastic)
        #expect(lines.contains("> 2 bytes: 2 bytes of message 2, which ends"), "\(lines)")
        #expect(complaint == nil)
    }

    /// What the reference says where the third of three packets is sent again, and a datagram of 24 bytes ends in it.
    @Test func aStreamOfGattlinkIsDatagrams() throws {
        let (lines, complaint) = try trace(
            "> 80\n< 81 00 00 08 08\n> 81 00 00 08 08\n> 00 45 00\n> 01 00 18 01 02 03 04 05 06 07 08 09 0a\n> 03 00\n> 02 0b 0c 0d 0e 0f "
                + "10 11 12 13 14 45 00 00 14\n> 01 00\n< 42\n< 43 00 60 00 00 00\n< 82\n",
            .gattlink)
        #expect(
            lines.filter { !$0.hasPrefix("=") } == [
                "> 1 bytes: asks to begin anew", "< 5 bytes: begins: takes 8 packets, sends 8",
                "> 5 bytes: begins: takes 8 packets, sends 8", "> 3 bytes: packet 0: 2 bytes of a head",
                "> 13 bytes: packet 1: 12 bytes of message 1", "> 2 bytes: packet 3 (2 is missing)",
                "> 15 bytes: packet 2: 10 bytes of message 1, which ends; 4 bytes of message 2",
                "> 2 bytes: packet 1 again",
                "< 1 bytes: acknowledges 2",
                "< 6 bytes: acknowledges 3, packet 0: not understood (no IPv4 datagram)",
                "< 1 bytes: not understood (a control packet 0x82)",
                "1 message to the end, 1 open; 11 chunks, 2 not understood",
            ], "\(lines)")
        #expect(complaint == "2 chunks were not understood.")
    }

    @Test func packetsOfBitchatAreWholeOrFragments() throws {
        let (lines, complaint) = try trace(
            "> 0102070000018bcfe5680000000201020304050607086869\n"
                + "> 0120070000018bcfe5680000000f01020304050607081011121314151617"
                + "0001000202dead\n> 0120070000018bcfe5680000000e"
                + "01020304050607081011121314151617" + "0000000202de\n< 01\n",
            .bitchat)
        #expect(
            lines.filter { !$0.hasPrefix("=") } == [
                "> 24 bytes: type 2 from 0102030405060708: 24 bytes of message 1, which ends",
                "> 37 bytes: fragment 1 of 2 of type 2 from 0102030405060708: 2 bytes of message 2",
                "> 36 bytes: fragment 0 of 2 of type 2 from 0102030405060708: 1 bytes of message 2, which ends",
                "< 1 bytes: not understood (no packet of bitchat)",
                "2 messages to the end, 0 open; 4 chunks, 1 not understood",
            ], "\(lines)")
        #expect(complaint == "1 chunk was not understood.")
    }

    @Test func aCaptureNamesWhatNotesTell() throws {
        let (lines, complaint) = try trace([
            declare(3, 0x0046_7768_6228_2272_4663_2774_7826_8001),
            declare(5, 0x0046_7768_6228_2272_4663_2774_7826_8002),
            declare(7, 0x0046_7768_6228_2272_4663_2774_7826_8003),
            declare(9, 0xED9D_A18C_A800_4F66_A670_AA75_47E3_4453),
            notify(3, [2]), write(7, [2, 0, 2]), notify(5, [3]), notify(3, [9]), notify(9, [1, 0, 0, 0]),
        ])
        #expect(lines.contains("hci0 connection 64, improv:"), "\(lines)")
        #expect(lines.contains("hci0 connection 64, meshtastic:"), "\(lines)")
        for text in [
            "< state 02: takes settings", "identify; 3 bytes of message 1, which ends",
            "< error 03: the network cannot be reached", "< state 09: has no meaning",
            "< bell 01 00 00 00: messages wait to be read",
        ] {
            #expect(lines.contains { $0.hasSuffix(text) }, "\(text): \(lines)")
        }
        #expect(complaint == nil)
    }

    /// `FromRadio` at the handle 6, whose values are read until one is empty.
    private func read(_ handle: UInt8, offset: UInt8? = nil) -> [UInt8] {
        pdu(offset.map { [0x0C, handle, 0, $0, 0] } ?? [0x0A, handle, 0], isReceived: false)
    }

    private func answer(_ bytes: [UInt8], goesOn: Bool = false) -> [UInt8] {
        pdu([goesOn ? 0x0D : 0x0B] + bytes, isReceived: true)
    }

    @Test("What is read of a queue is a message, of one answer or of several; an empty value is none")
    func queueIsRead() throws {
        let fromRadio = declare(6, 0x2C55_E69E_4993_11ED_B878_0242_AC12_0002)
        let long = [UInt8](repeating: 7, count: 22)
        let (lines, complaint) = try trace([
            fromRadio, declare(9, 0xF75C_76D2_129E_4DAD_A1DD_7866_1244_01E7), write(9, [0x18, 0x2A]),
            read(6), answer([1, 2, 3]),
            // ATT_MTU is 23: a full answer may be followed by more, and this one is.
            read(6), answer(long), read(6, offset: 22), answer([8], goesOn: true),
            // Full, and nothing follows.
            read(6), answer(long), read(6, offset: 22), pdu([0x01, 0x0C, 6, 0, 0x0B], isReceived: true),
            read(6), answer(long), read(6, offset: 22), answer([], goesOn: true),
            read(6), answer(long), read(3), answer([5]),
            // Neither a value that is no queue, nor one that is refused, nor an answer that nobody asked for.
            read(6), pdu([0x01, 0x0A, 6, 0, 0x05], isReceived: true), answer([4]),
            read(6), answer([]),
        ])
        let read = lines.filter { $0.contains("= message <") }.map { $0.split(separator: "= message ")[1] }
        #expect(
            read == [
                "<1 of 3 bytes: 1 chunk in 0.000 ms", "<2 of 23 bytes: 1 chunk in 0.000 ms",
                "<3 of 22 bytes: 1 chunk in 0.000 ms", "<4 of 22 bytes: 1 chunk in 0.000 ms",
                "<5 of 22 bytes: 1 chunk in 0.000 ms",
            ], "\(lines)")
        #expect(lines.contains { $0.hasSuffix("< was read, and is empty") }, "\(lines)")
        #expect(lines.last?.hasPrefix("6 messages to the end, 0 open; 6 chunks") == true, "\(lines)")
        #expect(complaint == nil)
    }

    @Test("An answer is whole by the ATT_MTU that both sides agreed on, and a queue may be named by its handle")
    func queueIsReadByTheMTU() throws {
        let values = [[UInt8](repeating: 7, count: 46), [UInt8](repeating: 8, count: 40)]
        var reader = TraceReader(framing: .meshtastic, handles: [6])
        let packets =
            [pdu([0x02, 0x05, 2], isReceived: false), pdu([0x03, 47, 0], isReceived: true)]
            + [read(6), answer(values[0]), read(6, offset: 46), answer(values[1], goesOn: true)]
        let lines = try reader.feed(TraceCaptures.header + packets.flatMap { $0 })
        #expect(lines.contains { $0.contains("= message <1 of 86 bytes: 1 chunk") }, "\(lines)")
        // An open one is told at the end.
        let last = try reader.feed((read(6) + answer(values[0])).map { $0 }) + reader.finish()
        #expect(last.contains { $0.contains("= message <2 of 46 bytes") }, "\(last)")
        #expect(reader.complaint == nil)
    }

    @Test func packetsOfBTPAreNumbered() throws {
        let text = """
            > 65 6c 04 00 00 00 f7 00 06
            < 65 6c 04 f4 00 06
            > 0d 00 00 05 00 68 65 6c 6c 6f
            < 08 00 01
            > 01 03 28 00 00 01 02
            """
        let (lines, complaint) = try trace(text, .btp)
        #expect(lines[0] == "> 9 bytes: handshake: asks for an MTU of 247, window 6")
        #expect(lines[1] == "< 6 bytes: handshake: version 4, packets of 244 bytes, window 6")
        #expect(lines[2] == "> 10 bytes: packet 0, acknowledges 0: 5 bytes of message 1, which ends")
        #expect(lines.contains("< 3 bytes: packet 1, acknowledges 0"), "\(lines)")
        #expect(lines.contains("> 7 bytes: packet 3 (1 is missing): 3 bytes of message 2"), "\(lines)")
        #expect(complaint == nil)
    }

    @Test(arguments: [("66 0c", "68 69 c0", 1), ("c0 66", "c0 68 69 c0", 2)])
    func framesOfSLIPEndAtTheirEnd(first: String, second: String, messages: Int) throws {
        let (lines, complaint) = try trace("> \(first)\n> \(second)\n", .slip)
        #expect(lines.last?.hasPrefix("\(messages) message") == true, "\(lines)")
        #expect(complaint == nil)
    }

    @Test func linesEndAtTheirEnd() throws {
        let (lines, complaint) = try trace("> 41 54 0a 42\n> 0a 0a\n", .lines)
        #expect(lines.last == "3 messages to the end, 0 open; 2 chunks", "\(lines)")
        #expect(complaint == nil)
    }

    @Test func aCaptureNamesFormatsByTheirCharacteristics() throws {
        let (lines, complaint) = try trace([
            declare(3, 0x0000_0001_A123_48CE_896B_4C76_9733_73E6),
            declare(5, 0x0000_0002_A123_48CE_896B_4C76_9733_73E6),
            declare(9, 0x6E40_0002_B5A3_F393_E0A9_E50E_24DC_CA9E),
            declare(11, 0xFB00_5C51_02E7_F387_1CAD_8ACD_2D8D_F0C8), write(11, [0x02, 5, 0x80]),
            write(3, [1]), write(5, [0, 7, 7]), write(9, Array("AT\n".utf8)), write(3, [2]),
        ])
        #expect(lines.contains("hci0 connection 64, mdoc:"), "\(lines)")
        #expect(lines.contains { $0.hasSuffix("> state 01: begins") }, "\(lines)")
        #expect(lines.contains { $0.hasSuffix("> 3 bytes: 2 bytes: message 1 of 2 bytes ends") }, "\(lines)")
        #expect(lines.contains("hci0 connection 64, lines:"), "\(lines)")
        #expect(lines.contains("hci0 connection 64, pftp:"), "\(lines)")
        #expect(lines.contains { $0.hasSuffix("> state 02: ends") }, "\(lines)")
        #expect(complaint == nil)
    }

    @Test func aCaptureNamesSMPAndBTPByTheirContent() throws {
        let (lines, complaint) = try trace([
            write(7, Self.echo), notify(7, Self.answer), write(20, [0x65, 0x6C, 4, 0, 0, 0, 0xF7, 0, 6]),
            write(20, [0x05, 0, 1, 0, 0x7F]),
        ])
        #expect(lines.contains("hci0 connection 64, smp:"), "\(lines)")
        #expect(lines.contains { $0.contains("answer to write OS echo, sequence 0 to >1") }, "\(lines)")
        #expect(lines.contains("hci0 connection 64, btp:"), "\(lines)")
        #expect(lines.contains { $0.hasSuffix("packet 0: 1 bytes of message 1, which ends") }, "\(lines)")
        #expect(complaint == nil)
    }

    @Test func anotherFramingThatWasNamedIsTheOnlyOne() throws {
        let (lines, complaint) = try trace([write(7, Self.echo)], framing: .btp)
        #expect(lines.isEmpty)
        #expect(complaint?.contains("0x7 (1)") == true)
    }

    @Test(arguments: TraceFraming.allCases.filter(\.isOfDevices)) func anyBytesAreAnswered(framing: TraceFraming) {
        var random = SplitMix64(seed: 39)
        var trace = DeviceTrace(framing)
        for _ in 0..<20_000 {
            let count = Int(random.next() % 24)
            // Small values are heads more often.
            let chunk = (0..<count).map { _ in
                UInt8(truncatingIfNeeded: random.next() % (random.next() % 2 == 0 ? 16 : 256))
            }
            let finding = trace.read(chunk, from: random.next() % 2 == 0 ? .first : .second)
            #expect(!finding.text.isEmpty)
        }
    }
}
