#if BlueZ
    import Ferry
    import Glibc
    import Synchronization
    import Testing

    /// Sends chunks of one size through a link as fast as it takes them, and tells how long they took to arrive.
    final class Meter: Sendable {
        let size: Int
        private let link: any Link
        private let sender = Witness()
        private let counter: Counter
        private let left = Mutex(0)

        /// - Parameters:
        ///   - size: in bytes; the most that the link takes unless given.
        ///   - delay: how long the receiver takes for each chunk, in microseconds.
        init(from link: any Link, to other: any Link, size: Int? = nil, delay: UInt32 = 0) {
            self.link = link
            counter = Counter(delay)
            self.size = size ?? link.maximumChunkSize
            sender.onReady = { [weak self] in self?.fill() }
            other.activate(counter)
            link.activate(sender)
        }

        /// Seconds from the first chunk's sending to the last one's arrival.
        ///
        /// It does not look in between, on which the emulated processor would spend a tenth of its time.
        func send(_ count: Int) async throws -> Double {
            let end = counter.expect(count * size)
            left.withLock { $0 = count }
            let began = SystemTime().now
            fill()
            let last = await end.first { _ in true }
            return (try #require(last, "the chunks have not arrived") - began) / .seconds(1)
        }

        private func fill() {
            let chunk = [UInt8](repeating: 7, count: size)
            left.withLock { left in
                while left > 0, (try? link.trySend(chunk.span.bytes)) == true { left -= 1 }
            }
        }

        private final class Counter: LinkReceiver, Sendable {
            private let delay: UInt32
            private let state = Mutex<(left: Int, end: AsyncStream<Timestamp>.Continuation?)>((0, nil))

            init(_ delay: UInt32) { self.delay = delay }

            /// The time at which the last of so many bytes arrives.
            func expect(_ count: Int) -> AsyncStream<Timestamp> {
                let (end, continuation) = AsyncStream<Timestamp>.makeStream()
                state.withLock { $0 = (count, continuation) }
                return end
            }

            func linkIsReady() {}
            func linkDidReceive(_ chunk: RawSpan) {
                if delay > 0 { usleep(delay) }
                let end = state.withLock { state in
                    state.left -= chunk.byteCount
                    return state.left == 0 ? state.end : nil
                }
                end?.yield(SystemTime().now)
            }
            func linkDidClose(_ reason: FerryError) { state.withLock { $0.end }?.finish() }
        }
    }
#endif
