import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Links that wait to be taken from a listener which has no more room.
@Suite(.tags(.core, .hostility), .timeLimit(.minutes(1))) struct WaitingLinksTests {
    /// A link from a peer that comes, and whether its listener has closed it.
    private final class Comer: LinkReceiver {
        let link: MemoryLink
        private let far: MemoryLink
        private let closed = Mutex(false)

        init(_ name: String) {
            (link, far) = MemoryLink.makePair(
                maximumChunkSize: 20, far: PeerIdentity(name, certainty: .address))
            far.activate(self)
        }

        var isClosed: Bool { closed.withLock { $0 } }

        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {}
        func linkDidClose(_ reason: FerryError) { closed.withLock { $0 = true } }
    }

    @Test func theSourceThatHasTheMostGivesWay() async {
        let listener = LinkListener(maximumWaiting: 3, time: VirtualTime()) {}
        let flood = ["a", "a", "a"].map(Comer.init)
        for comer in flood { #expect(listener.offer(comer.link)) }
        let (more, other, third, last) = (Comer("a"), Comer("b"), Comer("c"), Comer("d"))
        #expect(listener.offer(more.link))
        #expect(flood.map(\.isClosed) == [true, false, false])
        #expect(listener.offer(other.link))
        #expect(flood.map(\.isClosed) == [true, true, false])
        #expect(listener.offer(third.link))
        #expect(flood.map(\.isClosed) == [true, true, true] && !more.isClosed)
        // Each has one: who came first stays.
        #expect(!listener.offer(last.link))
        var links = listener.links.makeAsyncIterator()
        var taken: [String] = []
        for _ in 0..<3 { if let link = await links.next() { taken.append(link.peer.name) } }
        #expect(taken == ["a", "b", "c"])
        listener.close()
    }
}
