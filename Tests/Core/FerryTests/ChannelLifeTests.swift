import Dispatch
@testable import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// What an app sees of a channel's life, and how it reads and ends it.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct ChannelLifeTests {
    private let time = VirtualTime()

    private func pair(queueDepth: Int = 64) -> (MemoryLink, MemoryLink) {
        MemoryLink.makePair(maximumChunkSize: 20, queueDepth: queueDepth)
    }

    // MARK: Reading

    @Test func oneBadMessageDoesNotEndTheLoop() async throws {
        let links = pair()
        let sender = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let receiver = try MessageChannel(over: links.1, codec: TextCodec(), time: time)
        for message in [[0x61], [0xFF], [0x62]] as [[UInt8]] { try await sender.send(message) }
        exchange(links)
        sender.close()
        var texts: [String] = []
        var failures: [FerryError.Code] = []
        for await result in receiver.results {
            switch result {
            case .success(let text): texts.append(text)
            case .failure(let error): failures.append(error.code)
            }
        }
        #expect(texts == ["a", "b"])
        #expect(failures == [.notText])
    }

    /// The reason of a failed channel is the last result, once.
    @Test func theReasonIsTheLastResult() async throws {
        let links = pair()
        let receiver = try MessageChannel(over: links.1, codec: BytesCodec(), time: time)
        _ = try links.0.trySend([UInt8](arrayLiteral: 1, 7, 0x80, 0).span.bytes)
        links.0.deliver()
        var all: [String] = []
        for await result in receiver.results {
            switch result {
            case .success(let bytes): all.append("\(bytes)")
            case .failure(let error): all.append("\(error.code)")
            }
        }
        #expect(all == ["[7]", "malformedStream"])
    }

    @Test func eachDirectionHasItsOwnType() async throws {
        let links = pair()
        let asking = try MessageChannel(
            over: links.0, sending: TextCodec(), receiving: BytesCodec(), time: time)
        let answering = try MessageChannel(
            over: links.1, sending: BytesCodec(), receiving: TextCodec(), time: time)
        try await asking.send("how much?")
        exchange(links)
        var questions = answering.messages.makeAsyncIterator()
        #expect(try await questions.next() == "how much?")
        try await answering.send([42])
        exchange(links)
        var answers = asking.messages.makeAsyncIterator()
        #expect(try await answers.next() == [42])
    }

    @Test func aMessageThatArrivesTellsHowFarItIs() async throws {
        let links = pair()
        let sender = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let receiver = try MessageChannel(over: links.1, codec: BytesCodec(), time: time)
        #expect(receiver.arriving == nil)
        try await sender.send(pattern(100))
        var arrivals = receiver.arrivals.makeAsyncIterator()
        links.0.deliver()
        #expect(receiver.arriving == ReceiveProgress(receivedBytes: 19, totalBytes: 100))
        links.0.deliver()
        #expect(await arrivals.next() == ReceiveProgress(receivedBytes: 39, totalBytes: 100))
        exchange(links)
        #expect(receiver.arriving == nil)
        receiver.close()
        while await arrivals.next() != nil {}
    }

    // MARK: Life

    @Test func closingAfterSendingDrains() async throws {
        let links = pair(queueDepth: 1)
        let sender = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let receiver = try MessageChannel(over: links.1, codec: BytesCodec(), time: time)
        async let sent: Void = sender.send(pattern(200))
        try await until("a chunk is under way") { links.0.waitingChunks > 0 }
        async let closing: Void = sender.closeAfterSending(timeout: .seconds(10))
        try await until("the sender is closed") {
            links.0.deliver()
            return sender.closeReason != nil
        }
        try await sent
        try await closing
        exchange(links)
        var messages = receiver.messages.makeAsyncIterator()
        #expect(try await messages.next() == pattern(200))
    }

    @Test func aDrainingChannelTakesNothingMore() {
        let rig = ChannelRig(queueDepth: 1)
        let sent = rig.send(pattern(100))
        rig.a.drain()
        let late = rig.send([1])
        #expect(rig.error(late)?.code == .closed)
        #expect(rig.error(late)?.fate == .nothingSent)
        #expect(rig.a.closeReason == nil)
        rig.deliverAll()
        #expect(rig.hasSucceeded(sent))
        #expect(rig.a.closeReason?.code == .closed)
        #expect(rig.messages() == [pattern(100)])
        // With nothing to send it ends at once.
        let idle = ChannelRig()
        idle.a.drain()
        #expect(idle.a.closeReason?.code == .closed)
    }

    @Test func closingAfterSendingHasADeadline() async throws {
        let links = pair(queueDepth: 1)
        let sender = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let sending = Task { try await sender.send(pattern(200)) }
        try await until("a chunk is under way") { links.0.waitingChunks > 0 }
        let closing = Task { try await sender.closeAfterSending(timeout: .seconds(2)) }
        try await until("the sender is closed") {
            time.advance(by: .milliseconds(100))
            return sender.closeReason != nil
        }
        await #expect { try await closing.value } throws: { ($0 as? FerryError)?.code == .timedOut }
        await #expect { try await sending.value } throws: { ($0 as? FerryError)?.fate == .takenBack }
        #expect(time.now >= .zero + .seconds(2))
    }

    @Test func theScopedFormClosesEitherWay() async throws {
        struct Stop: Error {}
        let links = pair()
        let channel = try MessageChannel(over: links.0, codec: TextCodec(), time: time)
        let value = try await channel.use { channel in
            try await channel.send("hello")
            return 7
        }
        #expect(value == 7)
        #expect(channel.closeReason?.code == .closed)
        let other = try MessageChannel(over: pair().0, codec: TextCodec(), time: time)
        await #expect(throws: Stop.self) { try await other.use { _ in throw Stop() } }
        #expect(other.closeReason?.code == .closed)
    }

    // MARK: What is refused at once

    @Test func textFramingRefusesCompression() throws {
        struct Pass: Compression {
            func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) -> Bool { false }
            func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] { [] }
        }
        let links = pair()
        let framing = try EndOfMessageFraming(content: .text)
        let error = #expect(throws: FerryError.self) {
            try MessageChannel(over: links.0, codec: TextCodec(), framing: framing, compression: Pass())
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(throws: FerryError.self, "the link is closed") { try links.0.trySend([UInt8(1)].span.bytes) }
    }

    @Test func limitsOutOfRangeAreRefusedByName() throws {
        func refusal(_ change: (inout Limits) -> Void) -> String? {
            var limits = Limits()
            change(&limits)
            do {
                _ = try MessageChannel(over: pair().0, codec: TextCodec(), limits: limits, time: time)
                return nil
            } catch {
                return error.code == .invalidConfiguration ? error.message : "\(error.code)"
            }
        }
        #expect(refusal { _ in } == nil)
        #expect(refusal { $0.readinessProbeInterval = .zero }?.contains("readinessProbeInterval") == true)
        #expect(refusal { $0.readinessProbeInterval = .milliseconds(1) } == nil)
        #expect(refusal { $0.maximumMessageSize = -1 }?.contains("maximumMessageSize") == true)
        #expect(refusal { $0.maximumCompressionRatio = 0 }?.contains("maximumCompressionRatio") == true)
        #expect(refusal { $0.maximumInboundMessages = 0 }?.contains("maximumInboundMessages") == true)
        #expect(refusal { $0.outboundStallTimeout = .zero }?.contains("outboundStallTimeout") == true)
        #expect(refusal { $0.inboundStallTimeout = .zero }?.contains("inboundStallTimeout") == true)
        #expect(refusal { $0.maximumOutboundBytes = -1 }?.contains("maximumOutboundBytes") == true)
        #expect(refusal { $0.maximumInboundBytes = -1 }?.contains("maximumInboundBytes") == true)
        #expect(refusal { $0.maximumDecompressedSize = -1 }?.contains("maximumDecompressedSize") == true)
    }

    /// A plugin's own kind of failure.
    @Test func codesCanBeAdded() {
        let code = FerryError.Code("example.tooWet")
        #expect(code == FerryError.Code("example.tooWet"))
        #expect("\(FerryError(code, "It rains."))" == "It rains. [example.tooWet]")
    }

    // MARK: The caller's actor

    private static let mark: DispatchSpecificKey<Void> = {
        let key = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: key, value: ())
        return key
    }()

    /// The main actor's executor is the main queue.
    private static var isOnMainActor: Bool { DispatchQueue.getSpecific(key: mark) != nil }

    /// Notes whether it works on the main actor.
    private struct PlaceCodec: Codec {
        let inPlace: Notes
        let isTrivial: Bool
        func encode(_ message: [UInt8]) -> [UInt8] {
            inPlace.note(ChannelLifeTests.isOnMainActor)
            return message
        }
        func decode(_ payload: [UInt8]) -> [UInt8] {
            inPlace.note(ChannelLifeTests.isOnMainActor)
            return payload
        }
        final class Notes: Sendable {
            let seen = Mutex<[Bool]>([])
            func note(_ isMain: Bool) { seen.withLock { $0.append(isMain) } }
        }
    }

    /// Encoding, and decoding of what is large, leave the main actor free; what is trivial does not leave it.
    @Test @MainActor func workIsKeptOffTheCallersActor() async throws {
        for isTrivial in [false, true] {
            let links = pair(queueDepth: 2000)
            let notes = PlaceCodec.Notes()
            let codec = PlaceCodec(inPlace: notes, isTrivial: isTrivial)
            let a = try MessageChannel(over: links.0, codec: codec, time: time)
            let b = try MessageChannel(over: links.1, codec: codec, time: time)
            try await a.send(pattern(20_000))
            try await a.send(pattern(100))
            exchange(links)
            var messages = b.messages.makeAsyncIterator()
            let large = try await messages.next(isolation: MainActor.shared)
            let small = try await messages.next(isolation: MainActor.shared)
            #expect(large?.count == 20_000)
            #expect(small?.count == 100)
            let expected = isTrivial ? [true, true, true, true] : [false, false, false, true]
            #expect(notes.seen.withLock { $0 } == expected)
        }
    }
}
