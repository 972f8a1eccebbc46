#if Records
    import Ferry

    /// The records protocol with one peer, from its first message to its last: a value without I/O, clock or randomness.
    ///
    /// Its shell does three things, in any order: it hands over what arrives (``receive(_:at:)``), it sends what
    /// ``nextMessage(at:)`` answers, one after the other, and it carries out ``takeRequests()`` in their order, answering each.
    /// After every call it looks at all three again. At ``nextDeadline`` it calls ``wake(at:)``. A call that throws ends the
    /// exchange; the next one begins with what the two disks have.
    struct RecordsSession: Sendable, Hashable {
        private(set) var configuration: Configuration
        private(set) var isAdmitted = false
        private var requests: [Request] = []
        /// This side's HELLO and MET, until they have left.
        private var introduction: [RecordsMessage]
        private var greeting: Greeting
        private var ending = Ending.none

        // What this side sends.
        var outbound: [OutboundStream] = []
        private var turn = 0
        /// How many bytes to ask of the store at once, for all streams together.
        private var readAhead: Int
        private var sentCost: UInt64 = 0
        private var granted: UInt64 = 0
        private var answerDeadline: Timestamp?

        // What this side receives.
        private var inbound: [InboundStream] = []
        private var receivedCost: UInt64 = 0
        private var grantTold: UInt64 = 0
        private var occupied = 0
        private var owesAcknowledgement = false

        /// How far the peer's introduction has come, and when the rest of it is due.
        private enum Greeting: Hashable {
            case awaitsHello(by: Timestamp)
            case awaitsMet(RecordsMessage.Hello, by: Timestamp)
            case complete(RecordsMessage.Hello)
        }

        private enum Ending: Hashable { case none, owed(RecordsMessage), told }

        private struct InboundStream: Hashable {
            enum Phase: Hashable {
                /// The disk is asked how far the stream has arrived.
                case sought
                /// The peer is owed the answer.
                case found(Position?)
                case open
            }
            let name: String
            var phase = Phase.sought
            /// The last sequence that came, and the epoch that it came in.
            var received: UInt64 = 0
            var epoch: Epoch?
            var isCommittedDue = false
            var committed: UInt64 = 0
        }

        /// Begins; the other side does the same.
        ///
        /// - Parameters:
        ///   - store: this side's store.
        ///   - epoch: its present opening.
        ///   - configuration: what it takes.
        ///   - now: the present.
        init(store: StoreID, epoch: Epoch, configuration: Configuration, at now: Timestamp) {
            self.configuration = configuration
            readAhead = configuration.batch
            introduction = [.hello(.init(store: store, epoch: epoch, largestRecord: configuration.largestRecord))]
            greeting = .awaitsHello(by: now + min(configuration.greeting, configuration.patience))
        }

        /// What the peer has said of itself; nil before its HELLO.
        var peer: RecordsMessage.Hello? {
            switch greeting {
            case .awaitsHello: nil
            case .awaitsMet(let hello, _), .complete(let hello): hello
            }
        }

        private var isMet: Bool { if case .complete = greeting { true } else { false } }

        // MARK: What the shell asks

        /// The requests to carry out, in this order.
        mutating func takeRequests() -> [Request] {
            defer { requests.removeAll(keepingCapacity: true) }
            return requests
        }

        /// When ``wake(at:)`` is due; nil for never.
        var nextDeadline: Timestamp? {
            switch greeting {
            case .awaitsHello(let deadline), .awaitsMet(_, let deadline): min(deadline, answerDeadline ?? deadline)
            case .complete: answerDeadline
            }
        }

        /// Whether the peer has committed all that was offered, and nothing is owed to it.
        var isIdle: Bool {
            isAdmitted && isMet && !owesAcknowledgement
                && outbound.allSatisfy { $0.phase == .open && !$0.isLoading && ($0.isDone || isBlocked($0)) }
                && inbound.allSatisfy { $0.phase == .open && $0.committed == $0.received }
        }

        /// The time that the last message took to leave: on a slow link a large record may take longer than the peer has for its answer.
        /// No more is added, since a side that sends without pause would wait for ever for a peer that answers nothing.
        mutating func left(after time: Duration) {
            if let deadline = answerDeadline { answerDeadline = deadline + time }
        }

        /// - Throws: `timedOut` when the peer owes an answer for too long.
        mutating func wake(at now: Timestamp) throws(FerryError) {
            guard let deadline = nextDeadline, deadline <= now else { return }
            let (what, limit) =
                switch greeting {
                case .awaitsHello: ("has not said who it is", min(configuration.greeting, configuration.patience))
                case .awaitsMet: ("has not said that it knows this side", configuration.patience)
                case .complete: ("has not acknowledged the last records", configuration.patience)
                }
            throw FerryError(
                .timedOut,
                "The peer \(what) for \(limit). What it has not committed stays in the outbox; exchange again.")
        }

        /// Ends the exchange: the next message tells the peer why, and none follows.
        mutating func end(_ code: RecordsMessage.EndCode, _ text: String) {
            if ending == .none { ending = .owed(.end(code: code.rawValue, text: text)) }
        }

        // MARK: What the store answers

        /// The peer is who it should be, and was met before in the epoch `seen` of its store; records that cost `stored` lie
        /// there since then.
        mutating func admit(seen: Epoch?, stored: Int) {
            isAdmitted = true
            occupied += stored
            grantTold = grant
            introduction.append(.met(seen: seen, granted: grantTold))
        }

        /// A stream has records for the peer, or new ones. It is opened when it is new.
        mutating func offer(_ id: Int64, name: String, priority: UInt8, acknowledged: Position?) {
            if let index = outbound.firstIndex(where: { $0.id == id }) {
                outbound[index].priority = priority
                switch outbound[index].loading {
                // It may have looked too early.
                case .underWay(_, let slow): outbound[index].loading = .underWay(outdated: true, slow: slow)
                case .idle, .exhausted: outbound[index].loading = .idle
                }
                load(index)
            } else if outbound.count < RecordsMessage.maximumStreams {
                // Ferry has written acknowledgements of 0 to its stores, which no peer takes (issue 36).
                let before = acknowledged.flatMap { $0.sequence > 0 ? $0 : nil }
                outbound.append(OutboundStream(id: id, name: name, priority: priority, acknowledgedBefore: before))
            }
        }

        /// The records that a request to load asked for; fewer bytes may come, and none at the end of the stream.
        mutating func loaded(_ records: [Loaded], of id: Int64) {
            guard let index = outbound.firstIndex(where: { $0.id == id }),
                case .underWay(let outdated, let slow) = outbound[index].loading
            else { return }
            outbound[index].loading = .idle
            if let last = records.last {
                let bytes = records.reduce(0) { $0 + $1.item.bytes.count }
                outbound[index].read = last.item.sequence
                outbound[index].loaded += records
                outbound[index].loadedBytes += bytes
                // More at once for a link that is quicker than the store. For a slow one few are loaded ahead, since a
                // loaded record is sent though it be cancelled.
                if slow, bytes >= loadSize / 2 {
                    readAhead = max(readAhead, min(readAhead * 2, configuration.largestReadAhead))
                }
            } else if !outdated {
                outbound[index].loading = .exhausted
            }
            load(index)
        }

        /// The store has forgotten what the peer had committed of a stream.
        mutating func forgotten(of id: Int64) {
            guard let index = outbound.firstIndex(where: { $0.id == id }) else { return }
            guard case .underWay(let next?) = outbound[index].forgetting else {
                outbound[index].forgetting = .idle
                return
            }
            outbound[index].forgetting = .underWay(next: nil)
            requests.append(.acknowledge(stream: id, through: next))
        }

        /// What the peer has committed and the store was not told, once the exchange is over.
        mutating func takeUnforgotten() -> [Request] {
            outbound.indices.compactMap { index in
                guard case .underWay(let next?) = outbound[index].forgetting else { return nil }
                outbound[index].forgetting = .underWay(next: nil)
                return .acknowledge(stream: outbound[index].id, through: next)
            }
        }

        /// What the disk has of the peer's stream; nil for nothing.
        mutating func found(_ position: Position?, of index: Int) {
            guard inbound.indices.contains(index) else { return }
            inbound[index].phase = .found(position)
        }

        /// All up to `through` is on disk; `kept` is the cost of the new records, out of `cost`.
        mutating func stored(_ index: Int, through: UInt64, cost: Int, kept: Int) {
            guard inbound.indices.contains(index) else { return }
            inbound[index].committed = through
            inbound[index].isCommittedDue = true
            owesAcknowledgement = true
            occupied -= cost - kept
        }

        /// The app has done records of this cost.
        mutating func released(_ cost: Int) {
            // Records that were done before the admission are not counted.
            guard isAdmitted else { return }
            occupied -= cost
            // Not for each record, unless the peer may be waiting for as much.
            let quarter = UInt64(configuration.capacity / 4)
            let enough = max(quarter, UInt64(RecordsMessage.cost(of: configuration.largestRecord)))
            if grant - grantTold >= quarter || (grant > grantTold && grantTold - receivedCost < enough) {
                owesAcknowledgement = true
            }
        }

        /// What the peer may send in all.
        private var grant: UInt64 {
            max(grantTold, receivedCost + UInt64(max(0, configuration.capacity - max(0, occupied))))
        }

        // MARK: What arrives

        /// Takes a message of the peer's.
        ///
        /// - Throws: `misbehavingPeer`, `incompatiblePeer`, or with what the peer says why it ended the exchange.
        mutating func receive(_ bytes: [UInt8], at now: Timestamp) throws(FerryError) {
            let message = try RecordsMessage(bytes)
            if case .end(let code, let text) = message { throw Self.ended(code, text) }
            if case .hello(let hello) = message { return try receive(hello, at: now) }
            guard let peer else { throw broken("a message came before HELLO") }
            if case .met(let seen, let granted) = message {
                guard !isMet else { throw broken("MET comes twice") }
                greeting = .complete(peer)
                self.granted = granted
                requests.append(.check(seen))
                return
            }
            guard isMet else { throw broken("a message came before MET") }
            switch message {
            case .open(let index, let name, let acknowledged):
                guard index == inbound.count else {
                    throw broken("stream \(index) is opened, and the next one is \(inbound.count)")
                }
                guard !inbound.contains(where: { $0.name == name }) else {
                    throw broken("stream \(index) has the name of another")
                }
                inbound.append(InboundStream(name: name))
                requests.append(.find(index: index, name: name, acknowledged: acknowledged))
            case .position(let index, let position):
                guard outbound.indices.contains(index), outbound[index].phase == .opening else {
                    throw broken("a position of stream \(index) comes, which was not asked for")
                }
                outbound[index].phase = .open
                requests.append(.adopt(stream: outbound[index].id, position))
                load(index)
                expectAnswer(at: now)
            case .records(let index, let epoch, let previous, let items):
                try receive(items, of: index, epoch, previous)
            case .committed(let granted, let through):
                try receive(through, granted, at: now)
            case .hello, .met, .end: break
            }
        }

        private mutating func receive(_ hello: RecordsMessage.Hello, at now: Timestamp) throws(FerryError) {
            guard peer == nil else { throw broken("HELLO comes twice") }
            guard hello.lowestVersion <= 1, hello.highestVersion >= 1 else {
                let spoken = "\(hello.lowestVersion) to \(hello.highestVersion)"
                end(.version, "This side speaks version 1 of the records protocol, not \(spoken).")
                throw FerryError(
                    .incompatiblePeer,
                    "The peer speaks versions \(spoken) of the records protocol and this side version 1. Update this side."
                )
            }
            greeting = .awaitsMet(hello, by: now + configuration.patience)
            requests.append(.meet(hello))
        }

        private mutating func receive(
            _ items: [RecordsMessage.Item], of index: Int, _ epoch: Epoch, _ previous: UInt64
        ) throws(FerryError) {
            guard inbound.indices.contains(index), inbound[index].phase == .open else {
                throw broken("records of stream \(index) come before its position was told")
            }
            guard previous == inbound[index].received else {
                throw broken(
                    "stream \(index) goes on after record \(previous), and record \(inbound[index].received) was the last"
                )
            }
            try check(epoch, after: inbound[index].epoch, of: index)
            var cost = 0
            for item in items {
                guard item.bytes.count <= configuration.largestRecord else {
                    throw broken(
                        "a record has \(item.bytes.count) bytes, and at most \(configuration.largestRecord) are taken")
                }
                cost += RecordsMessage.cost(of: item.bytes.count)
                inbound[index].received = item.sequence
            }
            inbound[index].epoch = epoch
            receivedCost += UInt64(cost)
            guard receivedCost <= grantTold else { throw broken("more records come than were granted") }
            occupied += cost
            requests.append(.store(index: index, epoch: epoch, items))
        }

        /// A store sends in its present opening what it appended in this one and in earlier ones, in their order.
        private func check(_ epoch: Epoch, after last: Epoch?, of index: Int) throws(FerryError) {
            guard let present = peer?.epoch, epoch == present || epoch.generation < present.generation else {
                throw broken("records of stream \(index) come from epoch \(epoch), which its HELLO leaves no room for")
            }
            guard last == nil || epoch == last || epoch.generation > last?.generation ?? 0 else {
                throw broken("stream \(index) goes back to epoch \(epoch)")
            }
        }

        private mutating func receive(
            _ through: [RecordsMessage.Acknowledgement], _ granted: UInt64, at now: Timestamp
        ) throws(FerryError) {
            guard granted >= self.granted else { throw broken("granted bytes are taken back") }
            self.granted = granted
            for acknowledgement in through {
                let index = acknowledgement.index
                guard outbound.indices.contains(index), acknowledgement.sequence <= outbound[index].sent,
                    acknowledgement.sequence >= outbound[index].acknowledged
                else {
                    throw broken(
                        "record \(acknowledgement.sequence) of stream \(index) is acknowledged, and was not sent")
                }
                // Said once more, it is no news to the disk.
                guard acknowledgement.sequence > outbound[index].acknowledged else { continue }
                outbound[index].acknowledged = acknowledgement.sequence
                outbound[index].runs.removeAll { $0.sequence < acknowledgement.sequence }
                guard let epoch = outbound[index].runs.first?.epoch else { continue }
                let position = Position(epoch: epoch, sequence: acknowledgement.sequence)
                switch outbound[index].forgetting {
                case .idle:
                    outbound[index].forgetting = .underWay(next: nil)
                    requests.append(.acknowledge(stream: outbound[index].id, through: position))
                case .underWay: outbound[index].forgetting = .underWay(next: position)
                }
            }
            // A grant alone is no answer.
            if !through.isEmpty { expectAnswer(at: now) }
        }

        /// The peer owes an answer as long as something was asked or sent.
        private mutating func expectAnswer(at now: Timestamp) {
            let owes = outbound.contains { $0.phase == .opening || $0.acknowledged < $0.sent }
            answerDeadline = owes ? now + configuration.patience : nil
        }

        private func broken(_ what: String) -> FerryError {
            FerryError(
                .misbehavingPeer,
                "The peer breaks the rules of the records protocol: \(what). Nothing that is on disk is lost.")
        }

        private static func ended(_ code: UInt8, _ text: String) -> FerryError {
            switch RecordsMessage.EndCode(rawValue: code) ?? .other {
            case .done: FerryError(.exchangeIdle, "The peer has nothing more to exchange.")
            case .version: FerryError(.incompatiblePeer, "The peer ended the exchange: \(text)")
            case .storage: FerryError(.peerCannotStore, "The peer cannot store records: \(text)")
            case .identity: FerryError(.strangePeer, "The peer does not take this side for who it should be: \(text)")
            case .protocolError, .other: FerryError(.exchangeEnded, "The peer ended the exchange: \(text)")
            }
        }
    }

    // MARK: Sending

    extension RecordsSession {
        /// The next message, once the one before has left; nil when there is none at present.
        mutating func nextMessage(at now: Timestamp) -> [UInt8]? {
            // An end comes after HELLO, in place of all else.
            if case .hello = introduction.first { return introduction.removeFirst().encoded }
            switch ending {
            case .none: break
            case .owed(let message):
                ending = .told
                return message.encoded
            case .told: return nil
            }
            if !introduction.isEmpty { return introduction.removeFirst().encoded }
            guard isAdmitted else { return nil }
            for index in inbound.indices {
                guard case .found(let position) = inbound[index].phase else { continue }
                inbound[index].phase = .open
                return RecordsMessage.position(index: index, position).encoded
            }
            if owesAcknowledgement { return acknowledgement() }
            if let index = outbound.firstIndex(where: { $0.phase == .offered }) {
                outbound[index].phase = .opening
                if answerDeadline == nil { answerDeadline = now + configuration.patience }
                let stream = outbound[index]
                return RecordsMessage.open(index: index, name: stream.name, acknowledged: stream.acknowledgedBefore)
                    .encoded
            }
            return records(at: now)
        }

        private mutating func acknowledgement() -> [UInt8] {
            owesAcknowledgement = false
            grantTold = grant
            var through: [RecordsMessage.Acknowledgement] = []
            for index in inbound.indices where inbound[index].isCommittedDue {
                inbound[index].isCommittedDue = false
                through.append(.init(index: index, sequence: inbound[index].committed))
            }
            return RecordsMessage.committed(granted: grantTold, through: through).encoded
        }

        /// Of the streams of the highest priority that can go on, each in its turn.
        private mutating func records(at now: Timestamp) -> [UInt8]? {
            var chosen: Int?
            for offset in outbound.indices {
                let index = (turn + offset) % outbound.count
                guard canSend(outbound[index]) else { continue }
                if chosen.map({ outbound[$0].priority < outbound[index].priority }) ?? true { chosen = index }
            }
            guard let index = chosen else {
                guard readAhead < configuration.largestReadAhead, granted > sentCost else { return nil }
                for index in outbound.indices where outbound[index].loaded.isEmpty {
                    guard case .underWay(let outdated, _) = outbound[index].loading else { continue }
                    outbound[index].loading = .underWay(outdated: outdated, slow: outbound[index].sent > 0)
                }
                return nil
            }
            turn = (index + 1) % outbound.count
            let epoch = outbound[index].loaded[0].epoch
            var items: [RecordsMessage.Item] = []
            var bytes = 0
            for record in outbound[index].loaded {
                let cost = UInt64(RecordsMessage.cost(of: record.item.bytes.count))
                guard record.epoch == epoch, granted - sentCost >= cost else { break }
                guard items.isEmpty || bytes + record.item.bytes.count <= configuration.batch else { break }
                bytes += record.item.bytes.count
                sentCost += cost
                items.append(record.item)
            }
            let previous = outbound[index].sent
            outbound[index].loaded.removeFirst(items.count)
            outbound[index].loadedBytes -= bytes
            outbound[index].sent = items.last?.sequence ?? previous
            if outbound[index].runs.last?.epoch == epoch { outbound[index].runs.removeLast() }
            outbound[index].runs.append(Position(epoch: epoch, sequence: outbound[index].sent))
            load(index)
            if answerDeadline == nil { answerDeadline = now + configuration.patience }
            return RecordsMessage.records(index: index, epoch: epoch, previous: previous, items).encoded
        }

        private func canSend(_ stream: OutboundStream) -> Bool {
            guard stream.phase == .open, let first = stream.loaded.first, let peer else { return false }
            let count = first.item.bytes.count
            return count <= peer.largestRecord && granted - sentCost >= UInt64(RecordsMessage.cost(of: count))
        }

        /// The records that the peer never takes, each the next of its stream.
        var heldUp: [RecordStore.Summary.HeldUp] {
            outbound.filter(isBlocked).compactMap { stream in
                guard let item = stream.loaded.first?.item, let peer else { return nil }
                return .init(
                    stream: stream.name, sequence: item.sequence, bytes: item.bytes.count, largest: peer.largestRecord)
            }
        }

        private func isBlocked(_ stream: OutboundStream) -> Bool {
            guard let item = stream.loaded.first?.item, let peer else { return false }
            return item.bytes.count > peer.largestRecord
        }

        /// A stream's share of the records read ahead.
        private var loadSize: Int { max(configuration.batch, readAhead / max(1, outbound.count)) }

        /// Loads ahead, so that records can be sent while more are being loaded: between one and two loads.
        private mutating func load(_ index: Int) {
            let stream = outbound[index]
            guard stream.phase == .open, stream.loading == .idle, stream.loadedBytes < loadSize,
                stream.loaded.count < 4096
            else { return }
            outbound[index].loading = .underWay(outdated: false, slow: false)
            requests.append(.load(stream: stream.id, after: stream.read, bytes: loadSize))
        }
    }
#endif
