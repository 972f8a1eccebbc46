@testable import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// What is called back while a channel is in the middle of something may cancel what uses the channel, and close it.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct CallbackTests {
    /// When the observer acts: the channel's lock is held at both.
    enum Moment: CaseIterable, Sendable { case sent, refused }

    typealias Channel = MessageChannel<String, String>

    /// A channel over a tapped link with room for one chunk, and the other end's link.
    private func makeChannel(_ meddler: Meddler) throws -> (Channel, MemoryLink, MemoryLink) {
        let links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 1)
        let tapped = TappedLink(links.0, observer: meddler)
        return (try Channel(over: tapped, codec: TextCodec(), time: VirtualTime()), links.0, links.1)
    }

    private static let long = String(repeating: "a", count: 100)

    @Test(arguments: Moment.allCases) func anObserverCancelsWhatIsSent(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let (channel, near, far) = try makeChannel(meddler)
        let task = Mutex<Task<Void, any Error>?>(nil)
        meddler.action.withLock { $0.body = { task.withLock { $0 }?.cancel() } }
        let gate = AsyncStream<Void>.makeStream()
        let sending = Task {
            for await _ in gate.stream {}
            try await channel.send(Self.long)
        }
        task.withLock { $0 = sending }
        gate.continuation.finish()
        let error = await #expect(throws: FerryError.self) { try await sending.value }
        #expect(error?.code == .cancelled)
        #expect(error?.fate == .mayHaveArrived)
        #expect(channel.closeReason == nil)
        withExtendedLifetime((near, far)) {}
    }

    @Test(arguments: Moment.allCases) func anObserverClosesTheChannel(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let (channel, near, far) = try makeChannel(meddler)
        meddler.action.withLock { $0.body = { channel.close() } }
        let error = await #expect(throws: FerryError.self) { try await channel.send(Self.long) }
        #expect(error?.code == .closed)
        #expect(channel.closeReason?.code == .closed)
        withExtendedLifetime((near, far)) {}
    }

    @Test(arguments: Moment.allCases) func anObserverCancelsWhatWatchesAndReads(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let (channel, near, far) = try makeChannel(meddler)
        let watching = [
            Task { for await _ in channel.statuses {} }, Task { for await _ in channel.arrivals {} },
            Task { _ = await channel.closed }, Task { for await _ in channel.results {} },
        ]
        // They wait by then, or look whether they have been cancelled before they do.
        await Task.yield()
        let cancelAll: @Sendable () -> Void = { for task in watching { task.cancel() } }
        meddler.action.withLock { $0.body = cancelAll }
        let sending = Task { try await channel.send(Self.long) }
        for task in watching { await task.value }
        #expect(channel.closeReason == nil)
        channel.close()
        _ = await sending.result
        withExtendedLifetime((near, far)) {}
    }

    @Test(arguments: Moment.allCases) func anObserverCancelsARequest(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 1)
        let channel = try RequestChannel<String, String>(
            over: TappedLink(links.0, observer: meddler), requests: TextCodec(), responses: TextCodec(),
            time: VirtualTime())
        let task = Mutex<Task<String, any Error>?>(nil)
        meddler.action.withLock { $0.body = { task.withLock { $0 }?.cancel() } }
        let gate = AsyncStream<Void>.makeStream()
        let asking = Task {
            for await _ in gate.stream {}
            return try await channel.request(Self.long)
        }
        task.withLock { $0 = asking }
        gate.continuation.finish()
        let error = await #expect(throws: FerryError.self) { try await asking.value }
        #expect(error?.code == .cancelled)
        withExtendedLifetime(links) {}
    }

    /// The last reference goes from within.
    @Test(arguments: Moment.allCases) func anObserverReleasesTheChannel(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 1)
        let last = Mutex<Channel?>(
            try Channel(over: TappedLink(links.0, observer: meddler), codec: TextCodec(), time: VirtualTime()))
        let receiver = try Channel(over: links.1, codec: TextCodec(), time: VirtualTime())
        let outcome = try #require(try last.withLock { try $0?.enqueue(Self.long) })
        meddler.action.withLock { $0.body = { _ = last.withLock { $0.take() } } }
        #expect(links.0.deliver())
        let error = await #expect(throws: FerryError.self) { try await outcome.sent() }
        #expect(error?.code == .closed)
        #expect(receiver.closeReason?.code == .truncatedMessage)
    }

    @Test(arguments: Moment.allCases) func anObserverEnqueues(_ moment: Moment) async throws {
        let meddler = Meddler(moment)
        let (channel, near, far) = try makeChannel(meddler)
        let receiver = try Channel(over: far, codec: TextCodec(), time: VirtualTime())
        let queued = Mutex<QueuedMessage?>(nil)
        meddler.action.withLock { $0.body = { queued.withLock { $0 = try? channel.enqueue("from within") } } }
        let long = try channel.enqueue(Self.long)
        let last = try channel.enqueue("last")
        while near.deliver() {}
        for message in [long, try #require(queued.withLock { $0 }), last] { try await message.sent() }
        var messages = receiver.messages.makeAsyncIterator()
        for text in [Self.long, "from within", "last"] { #expect(try await messages.next() == text) }
    }

    /// Progress is told with the lock free: all may be called.
    @Test func whatIsToldOfProgressMayDoAnything() async throws {
        let links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 1)
        let channel = try Channel(over: links.0, codec: TextCodec(), time: VirtualTime())
        let steps = Atomic(0)
        let queued = Mutex<[QueuedMessage]>([])
        let long = try channel.enqueue(Self.long) { _ in
            steps.add(1, ordering: .relaxed)
            _ = (channel.status, channel.statistics, channel.closeReason, channel.arriving)
            queued.withLock { if let message = try? channel.enqueue("more") { $0.append(message) } }
            channel.close()
        }
        let error = await #expect(throws: FerryError.self) { try await long.sent() }
        #expect(error?.code == .closed)
        #expect(steps.load(ordering: .relaxed) > 0 && channel.closeReason?.code == .closed)
        for message in queued.withLock({ $0 }) { await #expect(throws: FerryError.self) { try await message.sent() } }
    }
}

/// Does something once, at its moment.
private final class Meddler: LinkObserver {
    let moment: CallbackTests.Moment
    struct Action: Sendable { var body: (@Sendable () -> Void)? }
    let action = Mutex(Action())

    init(_ moment: CallbackTests.Moment) { self.moment = moment }

    func linkDidSend(_ chunk: RawSpan) { if moment == .sent { act() } }
    func linkDidRefuse(_ chunk: RawSpan) { if moment == .refused { act() } }

    private func act() {
        let action = action.withLock { action in
            defer { action.body = nil }
            return action.body
        }
        action?()
    }
}
