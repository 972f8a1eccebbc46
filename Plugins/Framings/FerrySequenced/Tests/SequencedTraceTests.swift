import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// What the decoder prints of a captured exchange.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedTraceTests {
    /// The exchange of the format's page: sixty bytes one way, in chunks of 20.
    private static let captured = [
        "> e1100102030438a8780000", "< e1130506070838a87800000102030400000000",
        "> e1130102030438a87800000506070800000000", "> a80023003c0102030405060708090a0b0c0d0e0f",
        "> 01101112131415161718191a1b1c1d1e1f202122", "> 02232425262728292a2b2c2d2e2f303132333435",
        "> 8603363738393a3b3cb0bb39fe", "< e004fe1f",
    ]

    private func bytes(_ line: String) -> [UInt8] {
        let digits = Array(line.dropFirst(2))
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<$0 + 2]), radix: 16) }
    }

    private func describe(_ lines: [String]) -> [String] {
        var trace = SequencedTrace()
        return lines.map { line in
            trace.describe(bytes(line).span.bytes, from: line.hasPrefix(">") ? .first : .second)
        }
    }

    @Test func messagesAndAcknowledgements() {
        #expect(
            describe(Self.captured) == [
                "> 11 bytes: hello of session 67305985, window 56, messages to 16777216, credit 262144, codec 0, "
                    + "compression 0",
                "< 19 bytes: hello of session 134678021, window 56, messages to 16777216, credit 262144, codec 0, "
                    + "compression 0, has 0 chunks of session 67305985, has met",
                "> 19 bytes: hello of session 67305985, window 56, messages to 16777216, credit 262144, codec 0, "
                    + "compression 0, has 0 chunks of session 134678021, has met",
                "> 20 bytes: chunk 0; message 1 of 60 bytes begins in slot 0; 15 bytes of message 1",
                "> 20 bytes: chunk 1; 19 bytes of message 1",
                "> 20 bytes: chunk 2; 19 bytes of message 1",
                "> 13 bytes: chunk 3; 11 bytes of message 1, which ends; asks for an acknowledgement",
                "< 4 bytes: has all before 4, credit for 262016 bytes",
            ])
    }

    @Test func gapsAndRepetitions() {
        let chunks = Array(Self.captured[3...6])
        #expect(
            describe([chunks[0], chunks[2], chunks[2], chunks[1], chunks[3], chunks[0]]) == [
                "> 20 bytes: chunk 0; message 1 of 60 bytes begins in slot 0; 15 bytes of message 1",
                "> 20 bytes: chunk 2; after a gap of 1",
                "> 20 bytes: chunk 2; again",
                "> 20 bytes: chunk 1; 19 bytes of message 1; with it chunk 2; 19 bytes of message 1",
                "> 13 bytes: chunk 3; 11 bytes of message 1, which ends; asks for an acknowledgement",
                "> 20 bytes: chunk 0; again",
            ])
    }

    @Test func theOtherKinds() {
        #expect(
            describe(["> e20203", "< e3", "> e083010105", "> e0830109", "> e48302aabb", "< e1", "> c580", "> ff"]) == [
                "> 3 bytes: refusal, reason 2, value 3",
                "< 1 bytes: probe: is there credit?",
                "> 5 bytes: has all before 3 and 4, 6, credit for 64 bytes",
                "> 4 bytes: not understood (An acknowledgement's bitmap has 9 bytes; 1 to 8 are possible.)",
                "> 5 bytes: piece of chunk 3 from byte 2, the last",
                "< 1 bytes: cut short",
                "> 2 bytes: chunk 0; 0 bytes of a message that began before the capture",
                "> 1 bytes: not understood (A sequenced chunk begins with 255, an unknown type of control chunk. The "
                    + "peer is newer, or does not use the sequenced framing.)",
            ])
    }

    @Test func creditBeyondAllBounds() {
        let line = "> e000" + String(repeating: "ff", count: 9) + "01"
        #expect(describe([line]) == ["> 12 bytes: has all before 0, credit beyond all bounds"])
    }

    @Test func aCancelledMessage() {
        // A message of 5 bytes begins with 2 of them, and is cancelled by a record of kind 2.
        #expect(
            describe(["> a800080005aabb", "> a8010240"]) == [
                "> 7 bytes: chunk 0; message 1 of 5 bytes begins in slot 0; 2 bytes of message 1",
                "> 4 bytes: chunk 1; message 1 is cancelled",
            ])
    }
}
