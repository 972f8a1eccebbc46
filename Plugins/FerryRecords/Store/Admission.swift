#if Records
    import Ferry
    import Synchronization

    /// Who may append: what waits for each peer, kept between the water marks.
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
            let continuation: CheckedContinuation<FerryError?, Never>
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

        /// Takes room for records, at once or when there is some.
        ///
        /// - Throws: `outboxFull`, `cancelled`, `closed`.
        func enter(
            _ count: Int, _ bytes: Int, for peer: String, _ whenFull: RecordStore.WhenFull, _ time: any TimeSource
        ) async throws(FerryError) {
            guard case .wait(let patience) = whenFull else {
                let isIn = state.withLock { $0.isClosed || tryEnter(count, bytes, peer, &$0) }
                guard isIn else { throw full(peer, "Try again later, or cancel or expire some of them.") }
                return
            }
            let number = state.withLock { state in
                state.nextNumber += 1
                return state.nextNumber
            }
            let timer = time.schedule(at: time.now + patience) { [self] in
                leave(number, peer, full(peer, "There was no room for \(patience)."))
            }
            defer { timer.cancel() }
            let error = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let answer = state.withLock { state -> FerryError?? in
                        if Task.isCancelled { return cancelled }
                        if state.isClosed || tryEnter(count, bytes, peer, &state) { return .some(nil) }
                        state.peers[peer, default: Peer()].waiting.append(
                            Waiter(number: number, count: count, bytes: bytes, continuation: continuation))
                        return nil
                    }
                    if let answer { continuation.resume(returning: answer) }
                }
            } onCancel: {
                leave(number, peer, cancelled)
            }
            if let error { throw error }
        }

        private var cancelled: FerryError {
            FerryError(
                .cancelled, "The task was cancelled while its record waited for room in the outbox.", fate: .nothingSent
            )
        }

        /// Gives room back: records have gone, or were not stored.
        func leave(_ count: Int, _ bytes: Int, of peer: String) {
            let admitted = state.withLock { state -> [Waiter] in
                guard var entry = state.peers[peer] else { return [] }
                entry.count -= count
                entry.bytes -= bytes
                if entry.count <= configuration.lowWaterRecords && entry.bytes <= configuration.lowWaterBytes {
                    entry.isFull = false
                }
                var admitted: [Waiter] = []
                while let next = entry.waiting.first, !entry.isFull, fits(next.count, next.bytes, entry) {
                    entry.count += next.count
                    entry.bytes += next.bytes
                    admitted.append(entry.waiting.removeFirst())
                }
                if !entry.waiting.isEmpty { entry.isFull = entry.count > 0 }
                state.peers[peer] = entry
                return admitted
            }
            for waiter in admitted { waiter.continuation.resume(returning: nil) }
        }

        /// The store is closed, or has failed.
        func close(_ reason: FerryError) {
            let waiting = state.withLock { state in
                state.isClosed = true
                defer { for name in state.peers.keys { state.peers[name]?.waiting = [] } }
                return state.peers.values.flatMap(\.waiting)
            }
            for waiter in waiting {
                waiter.continuation.resume(
                    returning: FerryError(reason.code, reason.message, cause: reason.cause, fate: .nothingSent))
            }
        }

        private func leave(_ number: Int, _ peer: String, _ error: FerryError) {
            let waiter = state.withLock { state -> Waiter? in
                guard let place = state.peers[peer]?.waiting.firstIndex(where: { $0.number == number }) else {
                    return nil
                }
                return state.peers[peer]?.waiting.remove(at: place)
            }
            waiter?.continuation.resume(returning: error)
            // Whoever is next may need less.
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

        /// What waits for nobody is always taken, so that nothing can be too much for ever.
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
