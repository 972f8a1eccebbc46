@testable import Ferry
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

/// Messages leave in the order of the calls, wherever they are encoded.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct SendingOrderTests {
    @Test func bytes() async throws {
        try await expectOrder(BytesCodec()) { Array("\($0)".utf8) }
    }

    @Test func text() async throws {
        try await expectOrder(TextCodec()) { "\($0)" }
    }

    @Test func encodedElsewhere() async throws {
        try await expectOrder(UnevenCodec()) { "\($0)" }
    }

    /// Those that cannot be encoded leave no gap.
    @Test func failuresGiveUpTheirPlaces() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 244)
        let pump = carry(links)
        defer { pump.cancel() }
        let sender = try MessageChannel(over: links.0, codec: UnevenCodec(refused: "7"), time: VirtualTime())
        let receiver = try MessageChannel(over: links.1, codec: TextCodec(), time: VirtualTime())
        let texts = (0..<200).map(String.init)
        let tasks = await Caller(sender).sendAll(texts)
        var received: [String] = []
        let carried = texts.filter { !$0.contains("7") }
        for try await message in receiver.messages {
            received.append(message)
            if received.count == carried.count { break }
        }
        #expect(received == carried)
        for (text, task) in zip(texts, tasks) {
            let code = (await task.result).failure.map { ($0 as? FerryError)?.code }
            #expect(code == (text.contains("7") ? .encodingFailed : nil))
        }
    }

    // MARK: Places

    @Test func aMessageWaitsForThoseBeforeIt() {
        let rig = ChannelRig(queueDepth: 100)
        let places = (0..<3).map { _ in rig.a.reserve() }
        let last = rig.send([9])
        rig.a.submit([1], as: places[1]) { _ in }
        #expect(rig.links.a.waitingChunks == 0 && rig.outcome(last) == nil)
        rig.a.submit([0], as: places[0]) { _ in }
        rig.deliverAll()
        #expect(rig.messages() == [[0], [1]] && rig.outcome(last) == nil)
        rig.a.forfeit(places[2])
        rig.deliverAll()
        #expect(rig.messages() == [[9]] && rig.hasSucceeded(last))
    }

    @Test func aMessageThatIsTooLargeGivesUpItsPlace() {
        var limits = Limits()
        limits.maximumMessageSize = 8
        let rig = ChannelRig(queueDepth: 100, limits: limits)
        let place = rig.a.reserve()
        let next = rig.send([1])
        let error = Mutex<FerryError?>(nil)
        rig.a.submit(pattern(9), as: place) { result in
            if case .failure(let failure) = result { error.withLock { $0 = failure } }
        }
        #expect(error.withLock { $0?.code } == .messageTooLarge)
        #expect(rig.hasSucceeded(next))
    }

    @Test func whatWaitsForItsTurnIsTakenBack() {
        let rig = ChannelRig(queueDepth: 100)
        let place = rig.a.reserve()
        let (cancelled, late, next) = (rig.send([1]), rig.send([2], timeout: .seconds(1)), rig.send([3]))
        rig.a.cancel(cancelled)
        #expect(rig.error(cancelled)?.code == .cancelled && rig.error(cancelled)?.fate == .nothingSent)
        rig.time.advance(by: .seconds(1))
        #expect(rig.error(late)?.code == .timedOut && rig.error(late)?.fate == .nothingSent)
        rig.a.submit([0], as: place) { _ in }
        rig.deliverAll()
        #expect(rig.messages() == [[0], [3]] && rig.hasSucceeded(next))
    }

    @Test func theEndOfTheChannelEndsWhatWaitsForItsTurn() {
        let rig = ChannelRig()
        let place = rig.a.reserve()
        let waiting = rig.send([1])
        rig.a.finish(FerryError(.closed, "It is over."))
        #expect(rig.error(waiting)?.code == .closed && rig.error(waiting)?.fate == .nothingSent)
        let code = Mutex<FerryError.Code?>(nil)
        rig.a.submit([0], as: place) { result in
            if case .failure(let error) = result { code.withLock { $0 = error.code } }
        }
        #expect(code.withLock { $0 } == .closed)
        #expect(rig.messages() == [])
    }

    /// What waits counts as what is queued does.
    @Test func whatWaitsForItsTurnIsBounded() {
        var limits = Limits()
        limits.maximumOutboundBytes = 10
        let rig = ChannelRig(queueDepth: 100, limits: limits)
        let place = rig.a.reserve()
        let (first, second) = (rig.send(pattern(8)), rig.send(pattern(3)))
        #expect(rig.error(second)?.code == .queueFull)
        rig.a.forfeit(place)
        #expect(rig.hasSucceeded(first))
        #expect(rig.hasSucceeded(rig.send(pattern(10))))
    }

    /// A channel that closes after sending waits for what was called before, also while it is encoded.
    @Test(arguments: [true, false]) func closingAfterSendingWaitsForPlaces(_ isSent: Bool) {
        let rig = ChannelRig(queueDepth: 100)
        let place = rig.a.reserve()
        rig.a.drain()
        #expect(rig.error(rig.send([9]))?.code == .closed)
        // It takes no new places either.
        rig.a.submit([8], as: rig.a.reserve()) { _ in }
        #expect(rig.a.closeReason == nil)
        if isSent { rig.a.submit([0], as: place) { _ in } } else { rig.a.forfeit(place) }
        #expect(rig.a.closeReason?.code == .closed)
        #expect(rig.messages() == (isSent ? [[0]] : []))
    }

    // MARK: Without awaiting

    @Test func whatIsEnqueuedLeavesInTheOrderOfTheCalls() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20)
        let sender = try MessageChannel(over: links.0, codec: UnevenCodec(), time: VirtualTime())
        let receiver = try MessageChannel(over: links.1, codec: TextCodec(), time: VirtualTime())
        let place = sender.core.reserve()
        let queued = try (0..<100).map { try sender.enqueue("\($0)") }
        #expect(links.0.waitingChunks == 0)
        sender.core.forfeit(place)
        let pump = carry(links)
        defer { pump.cancel() }
        var messages = receiver.messages.makeAsyncIterator()
        for number in 0..<100 { #expect(try await messages.next() == "\(number)") }
        for message in queued { try await message.sent() }
        // Any number may wait, also afterwards.
        try await queued[0].sent()
    }

    @Test func whatIsEnqueuedCanBeCancelledAndFails() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 1)
        let channel = try MessageChannel(over: links.0, codec: UnevenCodec(refused: "7"), time: VirtualTime())
        let long = try channel.enqueue(String(repeating: "a", count: 100))
        let cancelled = try channel.enqueue("cancelled")
        let waiting = Task { try await channel.enqueue("waiting").sent() }
        cancelled.cancel()
        let error = await #expect(throws: FerryError.self) { try await cancelled.sent() }
        #expect(error?.code == .cancelled && error?.fate == .nothingSent)
        waiting.cancel()
        let other = await #expect(throws: FerryError.self) { try await waiting.value }
        #expect(other?.code == .cancelled && other?.fate == .nothingSent)
        let failed = #expect(throws: FerryError.self) { _ = try channel.enqueue("7") }
        #expect(failed?.code == .encodingFailed && failed?.fate == .nothingSent)
        channel.close()
        let ended = await #expect(throws: FerryError.self) { try await long.sent() }
        #expect(ended?.code == .closed)
    }

    // MARK: Requests

    @Test func requestsLeaveInTheOrderOfTheCalls() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 244)
        let pump = carry(links)
        defer { pump.cancel() }
        let asking = try RequestChannel<String, String>(
            over: links.0, requests: UnevenCodec(), responses: TextCodec(), time: VirtualTime())
        let far = try MessageChannel(over: links.1, codec: RequestMessageCodec(identifier: 0), time: VirtualTime())
        let tasks = await Asker(asking).ask((0..<500).map(String.init))
        var received: [String] = []
        for try await message in far.messages {
            received.append(String(decoding: message.payload, as: UTF8.self))
            if received.count == tasks.count { break }
        }
        let moved = zip(received, 0..<500).count { $0 != "\($1)" }
        #expect(moved == 0, "\(moved) of 500 requests are not in their places")
        asking.close()
        for task in tasks { _ = await task.result }
    }
}

/// Asks without awaiting.
private actor Asker {
    private let channel: RequestChannel<String, String>

    init(_ channel: RequestChannel<String, String>) { self.channel = channel }

    func ask(_ questions: [String]) -> [Task<String, any Error>] {
        questions.map { question in Task { try await answer(question) } }
    }

    private func answer(_ question: String) async throws -> String { try await channel.request(question) }
}

/// Text, encoded in a time that differs from message to message, but for what contains the refused.
private struct UnevenCodec: Codec {
    struct Refused: Error {}
    var refused: Character?

    func encode(_ message: String) throws -> [UInt8] {
        for _ in 0..<message.utf8.reduce(0, { ($0 &* 31 &+ Int($1)) & 15 }) { sched_yield() }
        if let refused, message.contains(refused) { throw Refused() }
        return Array(message.utf8)
    }

    func decode(_ payload: [UInt8]) throws -> String { try TextCodec().decode(payload) }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
