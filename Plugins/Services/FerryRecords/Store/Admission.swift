#if Records
    import Ferry
    import Synchronization

    /// Who may append: the pending records of each peer, kept between the water marks.
    final class Admission: Sendable {
        private struct Peer {
            var count = 0
            var bytes = 0
            /// Above the high-water mark, and not yet below the low one.
            var isFull = false
            var waiting: [Waiter] = []
        }

        private struct Waiter {
            let number: Int
            let count: Int
            let bytes: Int
            let timer: ScheduledTimer
            let answer: @Sendable (FerryError?) -> Void
        }

        private struct State {
            var peers: [String: Peer] = [:]
            var nextNumber = 0
            var isClosed = false
        }

        private let state = Mutex(State())
        private let configuration: RecordStore.Configuration

        init(_ configuration: RecordStore.Configuration, _ book: Book) {
            self.configuration = configuration
            state.withLock { state in
                for stream in book.outbound.values {
                    guard let name = book.peers[stream.peer]?.name else { continue }
                    state.peers[name, default: Peer()].count += stream.count
                    state.peers[name, default: Peer()].bytes += stream.bytes
                }
                for name in state.peers.keys {
                    state.peers[name].map { state.peers[name]?.isFull = !fits(0, 0, $0) }
                }
            }
        }

        /// A number for ``enter(_:_:_:for:_:_:_:)``.
        func makeNumber() -> Int {
            state.withLock { state in
                state.nextNumber += 1
                return state.nextNumber
            }
        }

        /// Takes room for records, at once or when there is some.
        ///
        /// - Parameters:
        ///   - number: names the call for ``cancel(_:_:)``.
        ///   - answer: called once: with nil when there is room, or the store is closed, in the order of the calls for the peer
        ///     and with the lock held; with `outboxFull`, `cancelled` or `closed` when there is none.
        func enter(
            _ number: Int, _ count: Int, _ bytes: Int, for peer: String, _ whenFull: RecordStore.WhenFull,
            _ time: any TimeSource, _ answer: @escaping @Sendable (FerryError?) -> Void
        ) {
            let isDecided = state.withLock { state in
                if case .wait = whenFull, Task.isCancelled { return false }
                if state.isClosed || tryEnter(count, bytes, peer, &state) {
                    answer(nil)
                    return true
                }
                guard case .wait(let patience) = whenFull else { return false }
                let timer = time.schedule(at: time.now + patience) { [self] in
                    leave(number, peer, full(peer, "There was no room for \(patience)."))
                }
                state.peers[peer, default: Peer()].waiting.append(
                    Waiter(number: number, count: count, bytes: bytes, timer: timer, answer: answer))
                return true
            }
            if isDecided { return }
            answer(
                whenFull == .refuse ? full(peer, "Try again later, or cancel or expire some of them.") : cancelled)
        }

        /// The task of a call that waits for room is cancelled.
        func cancel(_ number: Int, _ peer: String) { leave(number, peer, cancelled) }

        private var cancelled: FerryError {
            FerryError(
                .cancelled, "The task was cancelled while its record waited for room in the outbox.", fate: .nothingSent
            )
        }

        /// Gives room back: records have gone, or were not stored.
        func leave(_ count: Int, _ bytes: Int, of peer: String) {
            state.withLock { state in
                guard var entry = state.peers[peer] else { return }
                entry.count -= count
                entry.bytes -= bytes
                if entry.count <= configuration.lowWaterRecords && entry.bytes <= configuration.lowWaterBytes {
                    entry.isFull = false
                }
                while let next = entry.waiting.first, !entry.isFull, fits(next.count, next.bytes, entry) {
                    entry.count += next.count
                    entry.bytes += next.bytes
                    entry.waiting.removeFirst()
                    next.timer.cancel()
                    next.answer(nil)
                }
                if !entry.waiting.isEmpty { entry.isFull = entry.count > 0 }
                state.peers[peer] = entry
            }
        }

        /// The store is closed, or has failed.
        func close(_ reason: FerryError) {
            let waiting = state.withLock { state in
                state.isClosed = true
                defer { for name in state.peers.keys { state.peers[name]?.waiting = [] } }
                return state.peers.values.flatMap(\.waiting)
            }
            for waiter in waiting {
                waiter.timer.cancel()
                waiter.answer(FerryError(reason.code, reason.message, cause: reason.cause, fate: .nothingSent))
            }
        }

        private func leave(_ number: Int, _ peer: String, _ error: FerryError) {
            let waiter = state.withLock { state -> Waiter? in
                guard let place = state.peers[peer]?.waiting.firstIndex(where: { $0.number == number }) else {
                    return nil
                }
                return state.peers[peer]?.waiting.remove(at: place)
            }
            guard let waiter else { return }
            waiter.timer.cancel()
            waiter.answer(error)
            // The next one may need less.
            leave(0, 0, of: peer)
        }

        private func tryEnter(_ count: Int, _ bytes: Int, _ peer: String, _ state: inout State) -> Bool {
            var entry = state.peers[peer] ?? Peer()
            if entry.waiting.isEmpty, !entry.isFull, fits(count, bytes, entry) {
                entry.count += count
                entry.bytes += bytes
                state.peers[peer] = entry
                return true
            }
            entry.isFull = entry.count > 0
            state.peers[peer] = entry
            return false
        }

        /// An empty outbox takes a record of any size, so that none is refused for ever.
        private func fits(_ count: Int, _ bytes: Int, _ entry: Peer) -> Bool {
            entry.count == 0
                || (entry.count <= configuration.highWaterRecords - count
                    && entry.bytes <= configuration.highWaterBytes - bytes)
        }

        private func full(_ peer: String, _ advice: String) -> FerryError {
            let (count, bytes) = state.withLock { ($0.peers[peer]?.count ?? 0, $0.peers[peer]?.bytes ?? 0) }
            return FerryError(
                .outboxFull,
                "\(count) records of \(bytes) bytes wait for peer \(peer), and the outbox takes "
                    + "\(configuration.highWaterRecords) records and \(configuration.highWaterBytes) bytes. \(advice)",
                fate: .nothingSent)
        }
    }
#endif
