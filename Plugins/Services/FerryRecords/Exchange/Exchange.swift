#if Records
    import Ferry
    import Foundation
    import GRDB

    /// The shell of one ``RecordsSession``: the channel at one end, the store at the other.
    final class Exchange: Sendable {
        /// Whom the store takes the peer for.
        private enum Party {
            /// It has not said who it is, or that is being looked up.
            case unknown
            /// A stranger that has brought nothing: nothing of it is on the disk. `seen` is where it says that it met this store.
            case guest(name: String, RecordsMessage.Hello, seen: Epoch?)
            /// The store's number of the peer, and its name.
            case peer(Int64, name: String)

            var name: String? {
                switch self {
                case .unknown: nil
                case .guest(let name, _, _), .peer(_, let name): name
                }
            }

            var number: Int64? { if case .peer(let number, _) = self { number } else { nil } }
        }

        /// A stream of the peer's.
        private enum Stream {
            /// The store's number of it.
            case kept(Int64)
            /// A guest's, of which the store has nothing. Its name, and what the guest says that this store has committed of it.
            case named(String, acknowledged: Position?)
        }

        /// What a transaction has given a guest, which is undone with it.
        private struct Enrolment {
            let transaction: UInt64
            /// The store's numbers of the peer and of its streams, by their index.
            var peer: Int64?
            var streams: [Int: Int64] = [:]
            /// Records were not stored: those that follow them in the same transaction would leave a gap.
            var hasFailed = false
        }

        private struct State {
            var session: RecordsSession
            var party = Party.unknown
            /// The peer's streams, by their index.
            var streams: [Int: Stream] = [:]
            /// By the last transaction that stored records.
            var enrolment = Enrolment(transaction: 0)
            var failure: FerryError?
            /// The store has failed at a request: a later one would leave a gap, and must not be carried out.
            var hasStoreFailed = false
            /// Since when nothing was to be done; nil while there is something.
            var idleSince: Timestamp?
            var committed = 0
            var received = 0
            /// Whether others have been told that it began.
            var isTold = false
        }

        private let store: RecordStore
        private let channel: MessageChannel<[UInt8], [UInt8]>
        private let name: String?
        private let idleTimeout: Duration?
        private let gate: ExchangeGate
        private let shell: Shell<State>
        private var time: any TimeSource { shell.time }

        init(
            _ store: RecordStore, _ channel: MessageChannel<[UInt8], [UInt8]>, _ name: String?, idleTimeout: Duration?,
            gate: ExchangeGate = ExchangeGate()
        ) {
            self.store = store
            self.channel = channel
            self.name = name
            self.idleTimeout = idleTimeout
            self.gate = gate
            var configuration = RecordsSession.Configuration()
            configuration.largestRecord = store.configuration.largestRecord
            configuration.capacity = store.configuration.inboxCapacity
            configuration.batch = store.configuration.batchBytes
            configuration.patience = store.configuration.patience
            configuration.greeting = store.configuration.greeting
            let session = RecordsSession(
                store: store.id, epoch: store.epoch, configuration: configuration, at: store.time.now)
            shell = Shell(State(session: session), time: store.time)
        }

        /// The peer's name, once it has said who it is.
        var peerName: String? { shell.withLock { $0.party.name } }

        /// Who the peer has proven to be, or who its link says it is.
        var identity: PeerIdentity { channel.peer }

        /// Until the exchange has ended; returns what went through.
        ///
        /// - Throws: why it ended, where a side did not leave of itself.
        func run() async throws(FerryError) -> RecordStore.Summary {
            do {
                // The peer remembers this opening from its first message on.
                if !store.committer.isEpochWritten {
                    try await store.committer.perform { database, book in try book.writeEpoch(database) }
                }
            } catch {
                channel.close()
                throw storeError(error, at: store.path)
            }
            await withTaskCancellationHandler {
                await withTaskGroup { group in
                    group.addTask { await self.read() }
                    group.addTask { await self.write() }
                    await group.waitForAll()
                }
            } onCancel: {
                fail(FerryError(.cancelled, "The task was cancelled, and the exchange with it."))
            }
            // What the peer has committed by now is forgotten here too, or it would be sent again.
            shell.withLock { state in for request in state.session.takeUnforgotten() { carryOut(request, state) } }
            // What the store was asked for comes to its end, and counts; nothing more is asked of it.
            _ = try? await store.committer.perform { _, _ in }
            let (party, isTold, failure, committed, received, heldUp) = shell.withLock {
                ($0.party, $0.isTold, $0.failure, $0.committed, $0.received, $0.session.heldUp)
            }
            if let number = party.number {
                if isTold { store.watch.tell(.parted(number, records: committed + received)) }
                store.watch.end(self, with: number)
            }
            let reason = failure ?? FerryError(.closed, "The exchange has ended.")
            let ending: RecordStore.Summary.Ending
            switch reason.code {
            case .exchangeIdle: ending = .complete
            case .exchangeEnded, .noPlace: ending = .calledOff(reason.message)
            case .disconnected: ending = .linkLost(reason.message)
            default: throw reason
            }
            return RecordStore.Summary(
                peer: party.name, committed: committed, received: received, ending: ending, heldUp: heldUp)
        }

        /// Ends the exchange: sends the peer the last messages, and closes the channel.
        func fail(_ error: FerryError) {
            shell.change { state, _ in
                guard state.failure == nil else { return }
                state.failure = error
                let (code, text) = Self.farewell(error)
                state.session.end(code, text)
            }
        }

        private static func farewell(_ error: FerryError) -> (RecordsMessage.EndCode, String) {
            switch error.code {
            // In words that tell a stranger neither which store it should have had nor where this one is.
            case .strangePeer:
                (
                    .identity,
                    "This peer is not taken here: it is unknown or not allowed, or its name or store belongs to another. The operator "
                        + "here is told which, and can allow it or forget the other."
                )
            case .incompatiblePeer: (.version, error.message)
            case .misbehavingPeer: (.protocolError, error.message)
            case .diskFull: (.storage, "The disk is full here.")
            case .storeFailed, .storeNotWritable, .storeDamaged, .storeRefused:
                (.storage, "The store failed here. Its operator is told why.")
            case .closed: (.other, "The store is closed here, or a newer exchange with the same peer has begun.")
            case .exchangeIdle: (.done, "")
            default: (.other, error.message)
            }
        }

        // MARK: Tasks

        private func read() async {
            var messages = channel.messages.makeAsyncIterator()
            do throws(FerryError) {
                while let message = try await messages.next() {
                    try act { state, now throws(FerryError) in
                        state.idleSince = nil
                        try state.session.receive(message, at: now)
                    }
                }
                fail(channel.closeReason ?? FerryError(.disconnected, "The channel has ended."))
            } catch {
                fail(error)
            }
        }

        private func write() async {
            while true {
                let now = time.now
                let (message, deadline, isOver) = shell.withLock { state in
                    let message = state.session.nextMessage(at: now)
                    return (message, nextLook(&state, at: now), state.failure != nil)
                }
                if let message {
                    do throws(FerryError) {
                        // A receipt of the peer's is not needed: the next exchange sends again the records that were not committed.
                        try await channel.send(
                            message, options: SendOptions(receipt: .handedOver), timeout: isOver ? .seconds(5) : nil)
                        shell.withLock { $0.session.left(after: time.now - now) }
                    } catch {
                        // A peer that closes says why before: the reader finds that, and fails the exchange for it.
                        if error.code != .disconnected { fail(error) }
                        break
                    }
                    continue
                }
                guard !isOver else { break }
                await shell.wait(until: deadline)
                if Task.isCancelled {
                    fail(FerryError(.cancelled, "The task was cancelled, and the exchange with it."))
                } else {
                    wake()
                }
            }
            // Sent messages reach the peer before the link ends.
            try? await channel.closeAfterSending(timeout: .seconds(5))
            channel.close()
        }

        /// When to look again.
        private func nextLook(_ state: inout State, at now: Timestamp) -> Timestamp? {
            guard let idleTimeout, state.session.isIdle else {
                state.idleSince = nil
                return state.session.nextDeadline
            }
            let since = state.idleSince ?? now
            state.idleSince = since
            return min(since + idleTimeout, state.session.nextDeadline ?? .distantFuture)
        }

        private func wake() {
            let now = time.now
            let error = shell.withLock { state -> FerryError? in
                if let idleTimeout, let since = state.idleSince, state.session.isIdle, since + idleTimeout <= now {
                    return FerryError(.exchangeIdle, "Nothing was to be exchanged for \(idleTimeout).")
                }
                do throws(FerryError) {
                    try state.session.wake(at: now)
                    return nil
                } catch { return error }
            }
            if let error { fail(error) }
        }

        // MARK: Between session and store

        /// New records wait in a stream.
        func offer(_ stream: Int64) {
            store.committer.submit(as: .repeatable) { _, book in
                book.outbound[stream]
            } finish: { [weak self] result in
                guard let self, case .success(let stream?) = result else { return }
                act { state in
                    state.session.offer(
                        stream.id, name: stream.name, priority: stream.priority, acknowledged: stream.acknowledged)
                }
            }
        }

        /// The app has done records.
        func release(_ cost: Int) { act { $0.session.released(cost) } }

        private func act(_ body: (inout State) -> Void) {
            do throws(FerryError) {
                try act { state, _ throws(FerryError) in body(&state) }
            } catch {
                fail(error)
            }
        }

        /// Tells the session something, and has done what it wants then. Requests are submitted under the lock, in their order.
        private func act(_ body: (inout State, Timestamp) throws(FerryError) -> Void) throws(FerryError) {
            let error = shell.change { state, now -> FerryError? in
                guard state.failure == nil else { return nil }
                do throws(FerryError) { try body(&state, now) } catch { return error }
                for request in state.session.takeRequests() {
                    if case .meet = request {
                        do throws(FerryError) { try gate.greets(channel.peer) } catch { return error }
                    }
                    carryOut(request, state)
                }
                return nil
            }
            if let error { throw error }
        }

        private func carryOut(_ request: RecordsSession.Request, _ state: State) {
            let store = store
            switch request {
            case .meet(let hello):
                store.committer.submit { [self] database, book in
                    let identity = channel.peer
                    if gate.replaces, let name { try store.release(name, database, &book) }
                    let meeting = try store.meet(
                        hello, identity, named: name, trust: store.trust(identity), database, &book)
                    // What follows in the same transaction needs to know already.
                    self.shell.withLock { state in
                        state.party =
                            meeting.peer.map { .peer($0, name: meeting.name) }
                            ?? .guest(name: meeting.name, hello, seen: nil)
                    }
                    return meeting
                } finish: { [self] result in
                    met(result)
                }
            case .check(let seen):
                store.committer.submit { [self] database, book in
                    let name = self.shell.withLock { state -> String? in
                        guard case .guest(let name, let hello, _) = state.party else { return state.party.name }
                        state.party = .guest(name: name, hello, seen: seen)
                        return nil
                    }
                    if let name { try store.checkOwn(seen, by: name, database, book) }
                } finish: { [self] result in
                    conclude(result) { _, _ in }
                }
            case .find(let index, let name, let acknowledged):
                store.committer.submit { [self] database, book -> (Stream, Position?) in
                    switch self.shell.withLock({ $0.party }) {
                    case .unknown: throw FerryError(.closed, "The exchange ended before it knew its peer.")
                    case .guest: return (.named(name, acknowledged: acknowledged), nil)
                    case .peer(let number, _):
                        let found = try store.position(
                            of: name, from: number, acknowledged: acknowledged, database, &book)
                        return (.kept(found.stream), found.position)
                    }
                } finish: { [self] result in
                    conclude(result) { state, found in
                        state.streams[index] = found.0
                        state.session.found(found.1, of: index)
                    }
                }
            case .store(let index, let epoch, let items):
                guard let last = items.last?.sequence else { return }
                store.committer.submit(as: .growing) { [self] database, book in
                    let hasFailed = self.shell.withLock { state in
                        if state.enrolment.transaction != book.transaction {
                            state.enrolment = Enrolment(transaction: book.transaction)
                        }
                        return state.hasStoreFailed || state.enrolment.hasFailed
                    }
                    guard !hasFailed else {
                        throw FerryError(.closed, "The exchange ended before these records were stored.")
                    }
                    do {
                        let (number, meeting) = try number(of: index, for: items, database, &book)
                        return (try store.store(items, epoch, in: number, database, &book), number, meeting)
                    } catch {
                        self.shell.withLock { $0.enrolment.hasFailed = true }
                        throw error
                    }
                } finish: { [self] result in
                    let cost = items.reduce(0) { $0 + RecordsMessage.cost(of: $1.bytes.count) }
                    if case .success(let (_, number, meeting)) = result {
                        self.shell.withLock { state in
                            state.received += items.count
                            state.streams[index] = .kept(number)
                            if let meeting, let peer = meeting.peer { state.party = .peer(peer, name: meeting.name) }
                        }
                        if let meeting { enrolled(meeting) }
                    }
                    conclude(result) { state, stored in
                        state.session.stored(index, through: last, cost: cost, kept: stored.0)
                    }
                    if case .success(let (kept, number, _)) = result, kept > 0 { store.desk.arrive(in: number) }
                }
            case .adopt(let stream, let position):
                store.committer.submit(as: .repeatable) { database, book in
                    try store.adopt(position, of: stream, database, &book)
                } finish: { [self] result in
                    forgotten(result, position, of: stream, isAwaited: false)
                }
            case .acknowledge(let stream, let position): acknowledge(position, of: stream, isAwaited: true)
            case .load(let stream, let after, let bytes):
                store.committer.submit(as: .repeatable) { database, book in
                    try store.load(stream, after: after, bytes: bytes, database, &book)
                } finish: { [self] result in
                    let records = result.flatMap { loaded in
                        loaded.damage.map { .failure($0) } ?? .success(loaded.records)
                    }
                    conclude(records) { state, records in state.session.loaded(records, of: stream) }
                    if case .success(let loaded) = result { store.leave(loaded.expired) }
                }
            }
        }

        private func met(_ result: Result<RecordStore.Meeting, any Error>) {
            switch result {
            case .success(let meeting):
                // First, so that a peer that is known is never a guest.
                if meeting.peer != nil { tellOf(meeting) }
                gate.met()
            // Its number went with the transaction: jobs behind it must not use that.
            case .failure: shell.withLock { $0.party = .unknown }
            }
            conclude(result) { state, meeting in
                state.session.admit(seen: meeting.seen, stored: meeting.stored)
                Self.offer(meeting, &state)
            }
        }

        /// A guest has brought something, and is a peer of the store now.
        private func enrolled(_ meeting: RecordStore.Meeting) {
            tellOf(meeting)
            act { Self.offer(meeting, &$0) }
        }

        private func tellOf(_ meeting: RecordStore.Meeting) {
            guard let number = meeting.peer else { return }
            shell.withLock { $0.isTold = true }
            gate.proves()
            store.watch.tell(.met(number))
            store.watch.begin(self, with: number)
        }

        private static func offer(_ meeting: RecordStore.Meeting, _ state: inout State) {
            for offer in meeting.offers {
                state.session.offer(
                    offer.id, name: offer.name, priority: offer.priority, acknowledged: offer.acknowledged)
            }
        }

        /// The store's number of a stream into which records have come. A guest is written to the disk with its first records.
        ///
        /// - Returns: the number, and the result of meeting the peer where it was a guest until now.
        private func number(
            of index: Int, for items: [RecordsMessage.Item], _ database: Database, _ book: inout Book
        ) throws -> (Int64, RecordStore.Meeting?) {
            let (stream, party, enrolment) = shell.withLock { ($0.streams[index], $0.party, $0.enrolment) }
            guard case .named(let name, let acknowledged)? = stream else {
                guard case .kept(let number)? = stream else {
                    throw FerryError(.closed, "The exchange ended before it knew the stream.")
                }
                return (number, nil)
            }
            if let number = enrolment.streams[index] { return (number, nil) }
            // What a stranger sends is looked at before anything is written for it.
            if RelayStream(name) != nil { for item in items { _ = try RelayedRecord(decoding: item.bytes) } }
            var meeting: RecordStore.Meeting?
            var peer = party.number ?? enrolment.peer
            if peer == nil, case .guest(_, let hello, let seen) = party {
                let identity = channel.peer
                let trust = store.trust(identity)
                let met = try store.meet(
                    hello, identity, named: self.name, trust: trust == .stranger ? .trusted : trust, database, &book)
                try store.checkOwn(seen, by: met.name, database, book)
                (meeting, peer) = (met, met.peer)
            }
            guard let peer else {
                throw FerryError(.closed, "The exchange ended before it knew its peer.")
            }
            let number = try store.position(of: name, from: peer, acknowledged: acknowledged, database, &book).stream
            shell.withLock { state in
                if let meeting { state.enrolment.peer = meeting.peer }
                state.enrolment.streams[index] = number
            }
            return (number, meeting)
        }

        /// - Parameter isAwaited: whether the session wants to know when it is done.
        private func acknowledge(_ position: Position, of stream: Int64, isAwaited: Bool) {
            store.committer.submit(as: .repeatable) { [store] database, book in
                try store.acknowledge(position, of: stream, database, &book)
            } finish: { [self] result in
                forgotten(result, position, of: stream, isAwaited: isAwaited)
            }
        }

        private func forgotten(
            _ result: Result<RecordStore.Forgotten, any Error>, _ position: Position?, of stream: Int64, isAwaited: Bool
        ) {
            conclude(result) { _, _ in }
            guard case .success(let forgotten) = result else { return }
            shell.withLock { $0.committed += forgotten.parts.reduce(0) { $0 + $1.count } }
            store.leave(forgotten.parts)
            if !forgotten.isComplete, let position {
                acknowledge(position, of: stream, isAwaited: isAwaited)
            } else if isAwaited {
                act { $0.session.forgotten(of: stream) }
            }
        }

        /// Tells the session what came of a request; a store that failed ends the exchange.
        private func conclude<Value>(_ result: Result<Value, any Error>, _ body: (inout State, Value) -> Void) {
            switch result {
            case .success(let value): act { state in body(&state, value) }
            case .failure(let error):
                // On the writer's queue, before its next transaction.
                shell.withLock { $0.hasStoreFailed = true }
                fail(storeError(error, at: store.path))
            }
        }
    }
#endif
