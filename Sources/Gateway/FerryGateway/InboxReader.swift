#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import FerryRecords
    import Synchronization

    /// Reads a store's inbox for a gateway, as it has room, and names what it reads.
    ///
    /// Reading begins with the oldest record that is not done, and again whenever the gateway says so.
    final class InboxReader: Sendable {
        /// What names have in common.
        struct Naming: Sendable {
            let gateway: String
            /// What subjects begin with.
            let prefix: String
            /// Under which token a peer is this gateway's; nil where it is not, or where there are no leases.
            let token: @Sendable (_ peer: String) -> FencingToken?
        }

        /// A record and what it is called.
        struct Entry: Sendable {
            let record: ArrivedRecord
            let names: StreamNames
            let id: String
            let read: Timestamp
            /// What an observer was told of it; nil without one.
            var seen: GatewayEvent.Record?
            /// What an observer has it carry besides.
            var more: [NATSMessage.Header] = []

            var headers: [NATSMessage.Header] {
                more.isEmpty ? names.headers(record.id) : names.headers(record.id) + more
            }
        }

        /// Whom it reads for.
        protocol Owner: AnyObject, Sendable {
            /// Whether there is room for more records.
            var hasRoom: Bool { get }
            /// Takes the next records.
            func add(_ entries: [Entry])
            /// Reading has ended by itself.
            func readingFailed(_ error: FerryError)
        }

        /// The same, not kept alive.
        private struct Work: Sendable {
            let hasRoom: @Sendable () -> Bool
            let take: @Sendable ([Entry]) -> Void
            let failed: @Sendable (FerryError) -> Void

            init(_ owner: some Owner) {
                hasRoom = { [weak owner] in owner?.hasRoom ?? false }
                take = { [weak owner] in owner?.add($0) }
                failed = { [weak owner] in owner?.readingFailed($0) }
            }
        }

        private enum State: Sendable {
            case idle
            /// The bell wakes the task when there is room.
            case reading(Task<Void, Never>?, Bell)
        }

        private let store: RecordStore
        private let naming: Naming
        private let time: any TimeSource
        private let observer: (any GatewayObserver)?
        private let work: Work
        private let state = Mutex(State.idle)

        init(
            _ store: RecordStore, _ naming: Naming, time: any TimeSource, observer: (any GatewayObserver)?,
            for owner: some Owner
        ) {
            self.store = store
            self.naming = naming
            self.time = time
            self.observer = observer
            work = Work(owner)
        }

        /// Whether reading has begun.
        var isReading: Bool {
            state.withLock { state in
                if case .reading = state { true } else { false }
            }
        }

        /// Begins to read, with the oldest record.
        ///
        /// - Parameter prepare: called when nothing is read any more, and before anything is read again.
        func begin(_ prepare: () -> Void) async throws(FerryError) {
            await end()
            prepare()
            observer?.observe(.readingBegins)
            try await store.readAgain()
            let bell = Bell()
            // Before the task looks for room, for it waits where there is none.
            state.withLock { $0 = .reading(nil, bell) }
            let task = Task { await read(bell) }
            state.withLock { $0 = .reading(task, bell) }
        }

        /// Reads no more.
        func end() async {
            let task = state.withLock { state -> Task<Void, Never>? in
                defer { state = .idle }
                if case .reading(let task, _) = state { return task }
                return nil
            }
            task?.cancel()
            await task?.value
        }

        /// There is room, or there was some already.
        func ring() {
            let bell = state.withLock { state -> Bell? in
                if case .reading(_, let bell) = state { bell } else { nil }
            }
            bell?.ring()
        }

        private func read(_ room: Bell) async {
            var failure = FerryError(.closed, "The store \(store.path) was closed.")
            do throws(FerryError) { try await fill(room) } catch { failure = error }
            if !Task.isCancelled { work.failed(failure) }
        }

        /// Until the task is cancelled or the store closed.
        private func fill(_ room: Bell) async throws(FerryError) {
            var inbox = store.inbox.makeAsyncIterator()
            var known: [Int64: StreamNames] = [:]
            while !Task.isCancelled {
                while !work.hasRoom() {
                    guard await room.wait() else { return }
                }
                guard let records = try await inbox.page() else { return }
                let now = time.now
                var entries = records.map { record in
                    let names = names(of: record, &known)
                    return Entry(record: record, names: names, id: names.id(record.id), read: now)
                }
                // It hears of them before they can be published.
                if let observer { entries = Self.show(entries, observer) }
                work.take(entries)
            }
        }

        private static func show(_ entries: [Entry], _ observer: any GatewayObserver) -> [Entry] {
            let records = entries.map { entry in
                GatewayEvent.Record(
                    id: entry.record.id, name: entry.id, peer: entry.record.peer, token: entry.names.token,
                    bytes: entry.record.bytes.count)
            }
            observer.observe(.read(records))
            return zip(entries, records).map { entry, record in
                var entry = entry
                entry.seen = record
                entry.more = ObserverHeaders.fit(observer.headers(for: record))
                return entry
            }
        }

        /// Those of its stream, made anew where an epoch, a peer's name or a token has changed.
        private func names(of record: ArrivedRecord, _ known: inout [Int64: StreamNames]) -> StreamNames {
            let token = naming.token(record.peer)
            if let names = known[record.place.stream],
                names.fit(record.id, peer: record.peer, key: record.key, token: token)
            {
                return names
            }
            let names = StreamNames(
                record.id, peer: record.peer, key: record.key, gateway: naming.gateway, prefix: naming.prefix,
                token: token)
            if known.count >= 4_096 { known = [:] }
            known[record.place.stream] = names
            return names
        }
    }
#endif
