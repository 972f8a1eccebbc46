#if Records
    import Ferry
    import Synchronization

    /// Who wants to hear what happens in the store: exchanges of new records, callers of progress.
    final class Watch: Sendable {
        /// What a hub has to know.
        enum Event: Sendable {
            /// New records wait for a peer.
            case offered(Int64)
            /// An exchange with a peer has begun.
            case met(Int64)
            /// One has ended.
            case parted(Int64, records: Int)
            /// The store was closed, or has failed.
            case ended(FerryError)
        }

        private struct State {
            var listeners: [Int: @Sendable (Event) -> Void] = [:]
            var exchanges: [Int64: WeakExchange] = [:]
            var watchers: [Int: AsyncStream<Void>.Continuation] = [:]
            var next = 0
            /// Why nothing happens any more.
            var end: FerryError?
        }

        private struct WeakExchange { weak var exchange: Exchange? }

        private let state = Mutex(State())

        /// The exchange with a peer; one that there was is told to end, for its link is likely dead.
        func begin(_ exchange: Exchange, with peer: Int64) {
            let (older, end) = state.withLock { state in
                defer { state.exchanges[peer] = WeakExchange(exchange: exchange) }
                return (state.exchanges[peer]?.exchange, state.end)
            }
            if let older, older !== exchange {
                older.fail(FerryError(.closed, "A newer exchange with the same peer has begun."))
            }
            if let end { exchange.fail(end) }
        }

        func end(_ exchange: Exchange, with peer: Int64) {
            state.withLock { state in
                if state.exchanges[peer]?.exchange === exchange { state.exchanges[peer] = nil }
            }
        }

        /// Those with peers that the store knows.
        var exchanges: [Exchange] { state.withLock { $0.exchanges.values.compactMap(\.exchange) } }

        func exchange(with peer: Int64) -> Exchange? { state.withLock { $0.exchanges[peer]?.exchange } }

        /// New records wait in a stream.
        func offer(_ stream: Int64, to peer: Int64) {
            exchange(with: peer)?.offer(stream)
            tell(.offered(peer))
        }

        /// Has `listener` called with what happens, from any thread; it must not block.
        ///
        /// - Returns: what ends that.
        func listen(_ listener: @escaping @Sendable (Event) -> Void) -> @Sendable () -> Void {
            let number = state.withLock { state in
                state.next += 1
                state.listeners[state.next] = listener
                return state.next
            }
            return { [weak self] in _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) } }
        }

        func tell(_ event: Event) {
            for listener in state.withLock({ Array($0.listeners.values) }) { listener(event) }
        }

        /// The app has done records of a peer's.
        func release(_ cost: Int, of peer: Int64) { exchange(with: peer)?.release(cost) }

        /// Records have gone.
        func progress() {
            for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.yield() }
        }

        /// An element each time that records have gone.
        func watch() -> AsyncStream<Void> {
            let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            let number = state.withLock { state -> Int? in
                guard state.end == nil else { return nil }
                state.next += 1
                state.watchers[state.next] = continuation
                return state.next
            }
            guard let number else {
                continuation.finish()
                return stream
            }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
            }
            return stream
        }

        /// The store is closed, or has failed: exchanges end for this reason, and with them all who watch.
        func end(_ reason: FerryError) {
            let (exchanges, watchers) = state.withLock { state in
                state.end = state.end ?? reason
                defer { state.watchers = [:] }
                return (state.exchanges.values.compactMap(\.exchange), Array(state.watchers.values))
            }
            for exchange in exchanges { exchange.fail(reason) }
            for watcher in watchers { watcher.finish() }
            tell(.ended(reason))
        }
    }
#endif
