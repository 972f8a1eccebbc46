import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The public surface, with tasks: what an app sees.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct MessageChannelTests {
    private let time = VirtualTime()

    private func makeLinks(queueDepth: Int = 4) -> (MemoryLink, MemoryLink) {
        MemoryLink.makePair(maximumChunkSize: 20, queueDepth: queueDepth)
    }

    @Test func carriesMessagesBothWays() async throws {
        let links = makeLinks()
        let carrier = carry(links)
        defer { carrier.cancel() }
        let a = try MessageChannel(over: links.0, codec: TextCodec(), time: time)
        let b = try MessageChannel(over: links.1, codec: TextCodec(), time: time)
        let texts = (0..<50).map { String(repeating: "ferry ", count: $0) }
        async let echoed: Void = {
            var count = 0
            for try await text in b.messages {
                try await b.send(text.uppercased())
                count += 1
                if count == texts.count { return }
            }
        }()
        var answers = a.messages.makeAsyncIterator()
        for text in texts {
            try await a.send(text)
            #expect(try await answers.next() == text.uppercased())
        }
        try await echoed
        a.close()
        #expect(try await answers.next() == nil)
    }

    @Test func goesOnAfterAMessageThatCannotBeDecoded() async throws {
        let links = makeLinks()
        let carrier = carry(links)
        defer { carrier.cancel() }
        let sender = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let receiver = try MessageChannel(over: links.1, codec: TextCodec(), time: time)
        try await sender.send([0x68, 0x69])
        try await sender.send([0x68, 0xFF])
        try await sender.send([0x68, 0x6F])
        var messages = receiver.messages.makeAsyncIterator()
        #expect(try await messages.next() == "hi")
        await #expect { _ = try await messages.next() } throws: { error in
            (error as? FerryError)?.code == .notText && "\(error)".contains("byte 1 of 2")
        }
        #expect(try await messages.next() == "ho")
        #expect(receiver.closeReason == nil)
    }

    @Test func wrapsWhatACodecThrows() async throws {
        struct Picky: Codec {
            struct Refusal: Error {}
            func encode(_ message: Int) throws -> [UInt8] { throw Refusal() }
            func decode(_ payload: [UInt8]) throws -> Int { throw Refusal() }
        }
        let links = makeLinks()
        let channel = try MessageChannel(over: links.0, codec: Picky(), time: time)
        await #expect { try await channel.send(1) } throws: { error in
            (error as? FerryError)?.code == .encodingFailed && (error as? FerryError)?.cause is Picky.Refusal
        }
        links.1.activate(Silent())
        _ = try links.1.trySend(([1, 0] as [UInt8]).span.bytes)
        links.1.deliver()
        var messages = channel.messages.makeAsyncIterator()
        await #expect { _ = try await messages.next() } throws: { error in
            (error as? FerryError)?.code == .decodingFailed && (error as? FerryError)?.cause is Picky.Refusal
        }
        #expect(channel.closeReason == nil)
    }

    @Test func endsAReadWhenItsTaskIsCancelled() async throws {
        let links = makeLinks()
        let channel = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let reading = Task {
            var messages = channel.messages.makeAsyncIterator()
            return try await messages.next()
        }
        reading.cancel()
        #expect(try await reading.value == nil)
        // The message that comes later is not lost with the reader.
        links.1.activate(Silent())
        _ = try links.1.trySend(([1, 7] as [UInt8]).span.bytes)
        links.1.deliver()
        var messages = channel.messages.makeAsyncIterator()
        #expect(try await messages.next() == [7])
    }

    @Test func cancelsASendBeforeItsFirstChunk() async throws {
        let links = makeLinks(queueDepth: 1)
        links.1.activate(Silent())
        let channel = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let first = Task { try await channel.send(pattern(100)) }
        try await until("a chunk is under way") { links.0.waitingChunks > 0 }
        let second = Task { try await channel.send(pattern(30)) }
        second.cancel()
        await #expect { try await second.value } throws: { ($0 as? FerryError)?.code == .cancelled }
        let carrier = carry(links)
        defer { carrier.cancel() }
        try await first.value
        #expect(channel.statistics.messagesSent == 1)
    }

    @Test func closesTheLinkWhenNobodyRefersToIt() async throws {
        let links = makeLinks()
        let other = Silent()
        links.1.activate(other)
        do {
            let channel = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
            try await channel.send([1, 2, 3])
            #expect(other.reason == nil)
        }
        #expect(other.reason?.code == .disconnected)
    }

    @Test func throwsTheReasonOfAnUncleanEnd() async throws {
        let links = makeLinks()
        let channel = try MessageChannel(over: links.0, codec: BytesCodec(), time: time)
        let reading = Task { () -> [[UInt8]] in
            var all: [[UInt8]] = []
            for try await message in channel.messages { all.append(message) }
            return all
        }
        links.0.disconnect(FerryError(.timedOut, "Nothing was heard of the peer for 420 ms."))
        await #expect { _ = try await reading.value } throws: { ($0 as? FerryError)?.code == .timedOut }
        #expect(channel.closeReason?.code == .timedOut)
    }
}

/// A receiver that only notes the end.
private final class Silent: LinkReceiver {
    private let end = Mutex<FerryError?>(nil)
    var reason: FerryError? { end.withLock { $0 } }
    func linkIsReady() {}
    func linkDidReceive(_ chunk: RawSpan) {}
    func linkDidClose(_ reason: FerryError) { end.withLock { $0 = reason } }
}
