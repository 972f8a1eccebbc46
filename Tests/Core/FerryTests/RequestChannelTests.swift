@testable import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Requests find their answers, are cancelled, and end with their channel.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct RequestChannelTests {
    private typealias Channel = RequestChannel<String, String>

    private func link(
        _ link: any Link, _ handler: Channel.Handler? = nil, maximumServed: Int = 16,
        time: any TimeSource = VirtualTime()
    ) throws -> Channel {
        try Channel(
            over: link, requests: TextCodec(), responses: TextCodec(), maximumServed: maximumServed, time: time,
            answering: handler)
    }

    /// Two ends, and chunks that cross while the body runs.
    private func run(
        _ handler: Channel.Handler? = nil, back: Channel.Handler? = nil, maximumServed: Int = 16,
        time: any TimeSource = VirtualTime(), _ body: (Channel, Channel) async throws -> Void
    ) async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let pump = carry(links)
        defer { pump.cancel() }
        let asking = try link(links.0, back, time: time)
        let answering = try link(links.1, handler, maximumServed: maximumServed, time: time)
        try await body(asking, answering)
    }

    /// Never answers, and notes that it has begun and that it was cancelled.
    private final class SlowHandler: Sendable {
        let isAsked = Atomic(false)
        let isCancelled = Atomic(false)

        func answer(_ question: String) async throws -> String {
            isAsked.store(true, ordering: .relaxed)
            await untilCancelled()
            isCancelled.store(true, ordering: .relaxed)
            throw CancellationError()
        }
    }

    @Test func answersFindTheirRequestsInAnyOrder() async throws {
        let gates = Mutex<[String: CheckedContinuation<Void, Never>]>([:])
        let arrived = Atomic(0)
        try await run({ question in
            await withCheckedContinuation { gate in
                gates.withLock { $0[question] = gate }
                arrived.add(1, ordering: .relaxed)
            }
            return "answer to \(question)"
        }) { asking, _ in
            let names = ["a", "b", "c"]
            let tasks = names.map { name in Task { try await asking.request(name) } }
            try await until("three requests are being answered") { arrived.load(ordering: .relaxed) == 3 }
            for name in ["c", "a", "b"] { gates.withLock { $0[name] }?.resume() }
            for (name, task) in zip(names, tasks) {
                let answer = try await task.value
                #expect(answer == "answer to \(name)")
            }
        }
    }

    @Test func bothSidesMayAsk() async throws {
        try await run({ "there: \($0)" }, back: { "here: \($0)" }) { asking, answering in
            async let one = asking.request("1")
            async let two = answering.request("2")
            let answers = try await (one, two)
            #expect(answers == ("there: 1", "here: 2"))
        }
    }

    @Test func aHandlersErrorIsTold() async throws {
        struct Wet: Error, CustomStringConvertible { var description: String { "it is wet" } }
        try await run({ _ in throw Wet() }) { asking, answering in
            let error = await #expect(throws: FerryError.self) { try await asking.request("?") }
            #expect(error?.code == .requestFailed)
            #expect(error?.message.contains("it is wet") == true)
            let refused = await #expect(throws: FerryError.self) { try await answering.request("?") }
            #expect(refused?.message.contains("takes no requests") == true)
            #expect(asking.closeReason == nil)
        }
    }

    /// The task that answers is cancelled with the request, by its caller's task or its deadline.
    @Test(arguments: [true, false]) func aCancelledRequestCancelsItsHandler(_ byTask: Bool) async throws {
        let handler = SlowHandler()
        let time = VirtualTime()
        try await run({ try await handler.answer($0) }, time: time) { asking, _ in
            let task = Task { try await asking.request("?", timeout: .seconds(5)) }
            try await until("the request is being answered") { handler.isAsked.load(ordering: .relaxed) }
            if byTask { task.cancel() } else { time.advance(by: .seconds(5)) }
            await #expect { try await task.value } throws: { error in
                (error as? FerryError)?.code == (byTask ? .cancelled : .timedOut)
                    && (error as? FerryError)?.fate == .mayHaveArrived
            }
            try await until("the handler is cancelled") { handler.isCancelled.load(ordering: .relaxed) }
        }
    }

    @Test func theEndOfTheChannelEndsWhatWaits() async throws {
        let handler = SlowHandler()
        try await run({ try await handler.answer($0) }) { asking, answering in
            let task = Task { try await asking.request("?") }
            try await until("the request is being answered") { handler.isAsked.load(ordering: .relaxed) }
            answering.close()
            await #expect { try await task.value } throws: { ($0 as? FerryError)?.code == .disconnected }
            try await until("the handler is cancelled") { handler.isCancelled.load(ordering: .relaxed) }
            let late = await #expect(throws: FerryError.self) { try await asking.request("?") }
            #expect(late?.fate == .nothingSent)
        }
    }

    /// A peer that asks more at once than is served is told so, and what is under way goes on.
    @Test func servingIsBounded() async throws {
        let gate = Mutex<[CheckedContinuation<Void, Never>]>([])
        try await run(
            { question in
                await withCheckedContinuation { waiting in gate.withLock { $0.append(waiting) } }
                return question
            }, maximumServed: 2
        ) { asking, _ in
            let tasks = ["a", "b"].map { name in Task { try await asking.request(name) } }
            try await until("two requests are being answered") { gate.withLock { $0.count } == 2 }
            let error = await #expect(throws: FerryError.self) { try await asking.request("c") }
            #expect(error?.message.contains("2 requests are being answered already") == true)
            for waiting in gate.withLock({ $0 }) { waiting.resume() }
            let answers = try await [tasks[0].value, tasks[1].value]
            #expect(answers == ["a", "b"])
        }
    }

    /// A peer asks without end and takes no answer: what waits to be sent stays within bounds, and all are told in the end.
    @Test(arguments: [nil, 1]) func refusalsAreBounded(_ maximumServed: Int?) async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 244, queueDepth: 1)
        let handler = SlowHandler()
        let answer: Channel.Handler = { try await handler.answer($0) }
        let channel = try link(links.0, maximumServed == nil ? nil : answer, maximumServed: maximumServed ?? 1)
        defer { channel.close() }
        let far = ChannelCore(
            link: links.1, session: LengthPrefixFraming().makeSession(limits: Limits()), chunkSize: .max,
            limits: Limits(), time: VirtualTime())
        far.open()
        let codec = RequestMessageCodec(identifier: 2)
        let count = 20_000
        for number in 0..<count {
            let request = RequestMessage(kind: .request, number: UInt64(number), payload: [0x41])
            far.submit(codec.encode(request), as: far.makeID()) { _ in }
        }
        var most = 0
        let asking = keep { links.1.deliver() }
        try await until("all that can be read has been") {
            most = max(most, channel.unsentReplies)
            return channel.unsentReplies >= 64 || links.1.waitingChunks == 0
        }
        for _ in 0..<50 {
            most = max(most, channel.unsentReplies)
            await Task.yield()
        }
        #expect(most <= 64, "replies that waited to be sent at once")
        // Now the peer takes them.
        let answering = keep { links.0.deliver() }
        defer {
            asking.cancel()
            answering.cancel()
        }
        var refused: Set<UInt64> = []
        let served = maximumServed ?? 0
        try await until("a refusal of each request; \(refused.count) came") {
            while case .message(let payload)? = far.take() {
                let message = try codec.decode(payload)
                #expect(message.kind == .failure && refused.insert(message.number).inserted)
            }
            return refused.count == count - served
        }
        #expect(channel.closeReason == nil)
    }

    @Test(arguments: try vectorCases("requests")) func theFormatIsFixed(_ vector: VectorCase) throws {
        let kinds: [String: RequestMessage.Kind] = [
            "request": .request, "response": .response, "failure": .failure, "cancel": .cancel,
        ]
        let codec = RequestMessageCodec(identifier: 2)
        let bytes = try #require(vector.bytes(of: "bytes"))
        let meaning = try #require(vector.lines.first)
        guard meaning[0] != "error" else {
            let error = #expect(throws: FerryError.self) { try codec.decode(bytes) }
            #expect(error?.code.description == meaning[1])
            return
        }
        let message = RequestMessage(
            kind: try #require(kinds[meaning[0]]), number: try #require(UInt64(meaning[1])),
            payload: meaning.count > 2 ? vectorBytes(meaning[2]) : [])
        #expect(codec.encode(message) == bytes)
        #expect(try codec.decode(bytes) == message)
    }
}
