import CFerry
import FerryC
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing)) struct BadInputTests {
    @Test func nullIsAnArgumentErrorInEveryFunction() {
        var session: OpaquePointer?
        var limits = smallLimits
        var (count, at, event, byte, text) = (0, Int64(0), ferry_event(), UInt8(0), CChar(0))
        let wrong = Int32(FERRY_ERROR_ARGUMENT)
        #expect(ferry_limits_default(nil) == wrong)
        #expect(ferry_create_end_of_message(nil, nil, 0, 0, &session) == wrong && session == nil)
        #expect(ferry_create_end_of_message(&limits, nil, 0, 0, nil) == wrong)
        #expect(ferry_create_length_prefix(nil, 0, &session) == wrong && session == nil)
        #expect(ferry_create_length_prefix(&limits, 0, nil) == wrong)
        #expect(ferry_create_sequenced(nil, 1, 8, &session) == wrong && session == nil)
        #expect(ferry_create_sequenced(&limits, 1, 8, nil) == wrong)
        #expect(ferry_create_sequenced_for(nil, 1, 8, 0, &session) == wrong && session == nil)
        #expect(ferry_create_sequenced_for(&limits, 1, 8, 0, nil) == wrong)
        #expect(ferry_link_opened(nil, 0) == wrong && ferry_link_closed(nil, 0) == wrong)
        #expect(ferry_enqueue(nil, &byte, 1, nil, 0) == wrong && ferry_cancel(nil, 0, 0) == wrong)
        #expect(ferry_next_chunk(nil, &byte, 1, &count, 0) == wrong && ferry_receive(nil, &byte, 1, 0) == wrong)
        #expect(ferry_next_event(nil, &event, &byte, 1, 0) == wrong && ferry_deadline(nil, &at) == wrong)
        #expect(ferry_wake(nil, 0) == wrong && ferry_error_text(nil, &text, 1) == wrong)
        ferry_destroy(nil)
    }

    @Test(arguments: Choice.allCases) func nullBuffersAndImpossibleSizesChangeNothing(_ choice: Choice) {
        let side = CSide(choice)
        let session = side.session
        #expect(side.open(0) == "0")
        let wrong = Int32(FERRY_ERROR_ARGUMENT)
        var (count, event, byte, text) = (0, ferry_event(), UInt8(0), CChar(0))
        #expect(ferry_enqueue(session, nil, 1, nil, 0) == wrong && ferry_enqueue(session, &byte, -1, nil, 0) == wrong)
        #expect(ferry_receive(session, nil, 1, 0) == wrong && ferry_receive(session, &byte, .min, 0) == wrong)
        #expect(ferry_next_chunk(session, nil, 1, &count, 0) == wrong)
        #expect(ferry_next_chunk(session, &byte, 1, nil, 0) == wrong)
        #expect(ferry_next_event(session, nil, &byte, 1, 0) == wrong)
        #expect(ferry_next_event(session, &event, nil, 1, 0) == wrong)
        #expect(ferry_deadline(session, nil) == wrong)
        #expect(ferry_error_text(session, nil, 1) == wrong && ferry_error_text(session, &text, 0) == wrong)
        #expect(side.enqueue([1, 2, 3], 0) == "number 0")
    }

    @Test func limitsAndChoicesOutOfRangeAreRefused() {
        var session: OpaquePointer?
        let wrong = Int32(FERRY_ERROR_ARGUMENT)
        for change: (inout ferry_limits) -> Void in [
            { $0.message_bytes = 16 << 20 + 1 }, { $0.outbound_messages = 0 }, { $0.outbound_bytes = .max },
            { $0.inbound_bytes = .max }, { $0.stall_nanoseconds = 0 }, { $0.stall_nanoseconds = .min },
        ] {
            var limits = smallLimits
            change(&limits)
            #expect(ferry_create_length_prefix(&limits, 0, &session) == wrong && session == nil)
        }
        var limits = smallLimits
        for prefix: Int32 in [-1, 5, .max] { #expect(ferry_create_length_prefix(&limits, prefix, &session) == wrong) }
        for window: UInt32 in [0, 65, .max] { #expect(ferry_create_sequenced(&limits, 1, window, &session) == wrong) }
        for codec: UInt32 in [6, 63, 256, .max] {
            #expect(ferry_create_sequenced_for(&limits, 1, 8, codec, &session) == wrong && session == nil)
        }
        let marker = [UInt8](repeating: 7, count: 30)
        for count in [0, 1, 21, -1] {
            #expect(ferry_create_end_of_message(&limits, marker, count, 0, &session) == wrong)
        }
        #expect(ferry_create_end_of_message(&limits, marker, 20, 19, &session) == wrong && session == nil)
        #expect(ferry_create_end_of_message(&limits, nil, 0, .max, &session) == wrong && session == nil)
    }

    @Test(arguments: [FERRY_CODEC_UNTOLD, FERRY_CODEC_JSON, 64, 255])
    func sequencedSessionTellsItsCodec(_ codec: Int) throws {
        var (session, limits, count) = (OpaquePointer?.none, smallLimits, 0)
        #expect(ferry_create_sequenced_for(&limits, 1, 8, UInt32(codec), &session) == FERRY_OK)
        defer { ferry_destroy(session) }
        var chunk = [UInt8](repeating: 0, count: 20)
        #expect(ferry_link_opened(session, 0) == FERRY_OK)
        #expect(ferry_next_chunk(session, &chunk, 20, &count, 0) == FERRY_OK && count == 11)
        // Sequenced.md: byte 9 of a hello.
        #expect(chunk[9] == UInt8(codec) && chunk[10] == 0)
    }

    @Test(arguments: Choice.allCases) func callsInTheWrongOrderAreRefused(_ choice: Choice) {
        let side = CSide(choice)
        #expect(side.close(0) == "-3" && side.receive([1], 0) == "-3" && side.wake(0) == "-3")
        #expect(side.chunk(atMost: 20, 0).answer == "-3" && side.deadline == "-3" && side.events(0) == [])
        #expect(side.open(0) == "0" && side.open(0) == "-3" && side.close(0) == "0" && side.close(0) == "-3")
        #expect(side.open(0) == (choice == .sequenced ? "0" : "-3"))
    }

    @Test func messageStaysUntilItsBufferIsLargeEnough() {
        let (sender, receiver) = (CSide(.varint), CSide(.varint))
        #expect(sender.open(0) == "0" && receiver.open(0) == "0" && sender.enqueue([1, 2, 3], 0) == "number 0")
        #expect(receiver.receive(sender.chunk(atMost: 20, 0).bytes ?? [], 0) == "0")
        var (event, small) = (ferry_event(), [UInt8](repeating: 9, count: 3))
        for _ in 0..<3 {
            #expect(ferry_next_event(receiver.session, &event, &small, 2, 0) == FERRY_ERROR_BUFFER && event.count == 3)
            #expect(small == [9, 9, 9])
        }
        #expect(ferry_next_event(receiver.session, &event, &small, 3, 0) == FERRY_OK && small == [1, 2, 3])
        #expect(ferry_next_event(receiver.session, &event, nil, 0, 0) == FERRY_NOTHING)
    }

    @Test func bufferBelowTheFramingsMinimumSaysHowMuchItNeeds() {
        for (choice, minimum) in [(Choice.endOfMessage, 3), (.varint, 1), (.sequenced, 20)] {
            let side = CSide(choice)
            #expect(side.open(0) == "0" && side.enqueue([5], 0) == "number 0")
            var (buffer, count) = ([UInt8](repeating: 0, count: 20), 0)
            #expect(ferry_next_chunk(side.session, &buffer, minimum - 1, &count, 0) == FERRY_ERROR_BUFFER)
            #expect(count == minimum)
            #expect(ferry_next_chunk(side.session, &buffer, minimum, &count, 0) == FERRY_OK && count > 0)
        }
    }

    @Test func queueIsFullAtItsLimitAndHasRoomAfterAnEnd() {
        let side = CSide(.varint)
        #expect(side.open(0) == "0")
        for number in 0..<6 { #expect(side.enqueue([1], 0) == "number \(number)") }
        #expect(side.enqueue([1], 0) == "-4" && side.cancel(5, 0) == "0" && side.enqueue([2], 0) == "number 6")
        #expect(side.chunk(atMost: 100, 0).answer == "0")
        #expect(side.enqueue([1], 0) == "-4", "The ends of messages have not been fetched.")
        #expect(side.events(0).count { $0.hasPrefix("sent") } == 6 && side.enqueue([1], 0) == "number 7")
    }

    @Test func receiverThatFetchesNothingIsBounded() {
        let side = CSide(.varint)
        #expect(side.open(0) == "0")
        // Twenty messages of no bytes in each chunk.
        let chunk = [UInt8](repeating: 0, count: 20)
        let taken = (0..<1000).count { _ in side.receive(chunk, 0) == "0" }
        // Each message counts 64 bytes, and the last chunk may pass the limit.
        #expect(taken == 4096 / (36 + 20 * 64) + 1)
        #expect(side.events(0).count == 20 * taken && side.receive(chunk, 0) == "0")
    }

    @Test func errorOfThePeerStaysAndHasItsText() {
        let side = CSide(.varint)
        #expect(side.open(0) == "0")
        let error = side.receive([0xFF, 0xFF, 0x7F], 0)
        #expect(error.hasPrefix("-16 Message 1 from the peer announces 2097151 bytes"))
        #expect(side.receive([0], 0) == error && side.wake(0) == error && side.enqueue([1], 0) == "-16")
        var text: [CChar] = [1, 1, 1, 1]
        #expect(ferry_error_text(side.session, &text, 3) == FERRY_OK && text == [77, 101, 0, 1])
    }
}
