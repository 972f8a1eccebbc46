#if Observability
    import Ferry
    import FerryObservability
    import FerryTesting
    import InMemoryLogging
    import Logging
    import MetricsTestKit
    import Synchronization
    import TestSupport
    import Testing

    /// A link's traffic and life, beside what the link itself has seen.
    @Suite(.tags(.channel)) struct ObservedLinkTests {
        private let figures = TestMetrics()
        private let log = InMemoryLogHandler()

        private var logger: Logger {
            var logger = Logger(label: "test") { _ in log }
            logger.logLevel = .trace
            return logger
        }

        private func total(_ name: String) throws -> Int64 {
            try figures.expectCounter("ferry_link_\(name)_total", [("transport", "memory")]).totalValue
        }

        @Test func chunksAreCountedBothWays() throws {
            let (near, far) = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: 2)
            let metrics = LinkMetrics(transport: "memory", factory: figures)
            let link = ObservedLink(near, metrics, logger: logger)
            let receivers = (Ears(), Ears())
            link.activate(receivers.0)
            far.activate(receivers.1)
            let gauge = try figures.expectGauge("ferry_links", [("transport", "memory")])
            #expect(gauge.lastValue == 1)

            #expect(link.maximumChunkSize == 20 && link.peer == near.peer)
            #expect(try link.trySend(pattern(20).span.bytes) && link.trySend(pattern(7).span.bytes))
            #expect(try !link.trySend(pattern(3).span.bytes))
            #expect(far.deliverFrom(near) && far.deliverFrom(near))
            #expect(try far.trySend(pattern(5).span.bytes))
            #expect(far.deliver())
            #expect(receivers.1.calls == ["received 20", "received 7"])
            #expect(try total("sent_chunks") == 2 && total("sent_bytes") == 27)
            #expect(try total("received_chunks") == 1 && total("received_bytes") == 5)
            #expect(try total("refused_chunks") == 1)
            let ready = receivers.0.calls.count { $0 == "ready" }
            #expect(try ready >= 1 && total("ready") == Int64(ready))

            near.disconnect()
            #expect(gauge.lastValue == 0)
            let ends = try figures.expectCounter(
                "ferry_link_ends_total", [("transport", "memory"), ("reason", "disconnected")])
            #expect(ends.totalValue == 1)
            #expect(log.entries.map(\.level) == [.debug, .debug])
            #expect(log.entries.last?.metadata == ["peer": "address:far", "reason": "disconnected"])
        }

        @Test func aLinkThatReconnectsStaysOne() throws {
            let inner = RecurringLink()
            let receiver = Ears()
            let link = ObservedLink(inner, LinkMetrics(transport: "memory", factory: figures), logger: logger)
            link.activate(receiver)
            #expect(link.replaceConnection())
            inner.resume()
            link.close()
            #expect(receiver.calls == ["suspended disconnected", "resumed", "closed closed"])
            #expect(try total("suspensions") == 1 && total("resumptions") == 1)
            #expect(log.entries.map(\.level) == [.debug, .info, .info, .debug])
            #expect(log.entries[1].metadata == ["peer": "connection:x", "reason": "disconnected"])
        }

        @Test func reasonsBeyondBoundAreOne() throws {
            let metrics = LinkMetrics(transport: "memory", factory: figures)
            for number in 0..<100 {
                let inner = RecurringLink()
                let link = ObservedLink(inner, metrics)
                link.activate(Ears())
                inner.end(FerryError(FerryError.Code("test.\(number)"), ""))
            }
            let counters = figures.counters(label: "ferry_link_ends_total")
            #expect(counters.count == 65)
            let other = [("transport", "memory"), ("reason", "other")]
            #expect(try figures.expectCounter("ferry_link_ends_total", other).totalValue == 36)
        }
    }

    extension MemoryLink {
        /// Takes the next chunk that the other end has sent.
        fileprivate func deliverFrom(_ other: MemoryLink) -> Bool { other.deliver() }
    }

    private final class Ears: LinkReceiver {
        private let state = Mutex<[String]>([])
        var calls: [String] { state.withLock { $0 } }
        private func note(_ call: String) { state.withLock { $0.append(call) } }

        func linkIsReady() { note("ready") }
        func linkDidReceive(_ chunk: RawSpan) { note("received \(chunk.byteCount)") }
        func linkDidClose(_ reason: FerryError) { note("closed \(reason.code)") }
        func linkDidSuspend(_ reason: FerryError) { note("suspended \(reason.code)") }
        func linkDidResume() { note("resumed") }
    }

    /// A link that loses its connection, and gets it again, when it is told to.
    private final class RecurringLink: Link {
        private let receiver = Mutex<(any LinkReceiver)?>(nil)
        let peer = PeerIdentity("x", certainty: .connection)
        let maximumChunkSize = 20

        func activate(_ receiver: any LinkReceiver) { self.receiver.withLock { $0 = receiver } }
        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { true }
        func setReceiving(_ isReceiving: Bool) {}
        func replaceConnection() -> Bool {
            receiver.withLock { $0 }?.linkDidSuspend(FerryError(.disconnected, "given up"))
            return true
        }
        func resume() { receiver.withLock { $0 }?.linkDidResume() }
        func end(_ reason: FerryError) { receiver.withLock { $0 }?.linkDidClose(reason) }
        func close() { end(FerryError(.closed, "closed")) }
    }
#endif
