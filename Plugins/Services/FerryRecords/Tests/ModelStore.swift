#if Records
    import Ferry

    @testable import FerryRecords

    /// What a store does for a session, as a value: everything in it is on disk.
    struct ModelStore: Hashable {
        struct Record: Hashable {
            var epoch: Epoch
            var sequence: UInt64
            var value: UInt8
            var stream: Int64
        }

        let id: StoreID
        var openings: [Epoch]
        var waiting: [Record] = []
        var last: [Int64: UInt64] = [:]
        var acknowledged: [Int64: Position] = [:]
        var positions: [String: [Epoch: UInt64]] = [:]
        var newest: [String: Position] = [:]
        /// What was committed, by stream, and how much of all the app has left undone.
        var arrived: [String: [UInt8]] = [:]
        var undone = 0
        var seen: Epoch?
        var notices = 0

        init(_ number: UInt64) {
            id = StoreID(high: number, low: number)
            openings = [Epoch(generation: 1, nonce: number)]
        }

        var epoch: Epoch { openings[openings.count - 1] }

        mutating func reopen(nonce: UInt64) {
            openings.append(Epoch(generation: UInt64(openings.count + 1), nonce: nonce))
        }

        mutating func append(_ value: UInt8, stream: Int64) {
            last[stream, default: 0] += 1
            waiting.append(Record(epoch: epoch, sequence: last[stream, default: 0], value: value, stream: stream))
        }

        /// Carries out what a session wants, and answers it.
        mutating func carryOut(
            _ request: RecordsSession.Request, for session: inout RecordsSession, names: [Int: String]
        )
            -> [Int: String]
        {
            var names = names
            switch request {
            case .meet(let hello):
                session.admit(seen: seen, stored: undone * RecordsMessage.cost(of: 1))
                seen = hello.epoch
                for stream in Set(waiting.map(\.stream)).sorted() { offer(stream, to: &session) }
            case .check(let seen):
                if let seen, !openings.contains(seen) { notices += 1 }
            case .find(let index, let name, let acknowledged):
                names[index] = name
                if let acknowledged, positions[name]?[acknowledged.epoch] ?? 0 < acknowledged.sequence { notices += 1 }
                session.found(newest[name], of: index)
            case .store(let index, let epoch, let items):
                let name = names[index] ?? "?"
                let before = positions[name]?[epoch] ?? 0
                let new = items.filter { $0.sequence > before }
                arrived[name, default: []] += new.map { $0.bytes[0] }
                undone += new.count
                let last = items.last?.sequence ?? 0
                if !new.isEmpty {
                    positions[name, default: [:]][epoch] = last
                    newest[name] = Position(epoch: epoch, sequence: last)
                }
                session.stored(
                    index, through: last, cost: items.reduce(0) { $0 + RecordsMessage.cost(of: $1.bytes.count) },
                    kept: new.reduce(0) { $0 + RecordsMessage.cost(of: $1.bytes.count) })
            case .adopt(let stream, let position):
                if let position, openings.contains(position.epoch) {
                    forget(stream, position)
                } else if position != nil || acknowledged[stream] != nil {
                    notices += 1
                }
            case .load(let stream, let after, _):
                // One at a time, for more steps.
                let next = waiting.first { $0.stream == stream && $0.sequence > after }
                session.loaded(
                    next.map {
                        [.init(epoch: $0.epoch, item: .init(sequence: $0.sequence, bytes: [$0.value]))]
                    } ?? [], of: stream)
            case .acknowledge(let stream, let position):
                forget(stream, position)
                session.forgotten(of: stream)
            }
            return names
        }

        func offer(_ stream: Int64, to session: inout RecordsSession) {
            session.offer(stream, name: "s\(stream)", priority: 1, acknowledged: acknowledged[stream])
        }

        private mutating func forget(_ stream: Int64, _ position: Position) {
            acknowledged[stream] = position
            waiting.removeAll {
                $0.stream == stream && $0.sequence <= position.sequence
                    && $0.epoch.generation <= position.epoch.generation
            }
        }
    }

    /// Two stores and a channel between them, which a test breaks and whose processes it ends.
    struct ModelPair: Hashable {
        var stores = [ModelStore(1), ModelStore(2)]
        var sessions: [RecordsSession] = []
        var requests: [[RecordsSession.Request]] = [[], []]
        var names: [[Int: String]] = [[:], [:]]
        /// Messages on their way, from either side.
        var wires: [[[UInt8]]] = [[], []]
        /// What was appended at either side, by stream: accepted.
        var accepted: [[String: [UInt8]]] = [[:], [:]]
        var capacity: Int
        var openings: UInt64 = 10

        init(capacity: Int = RecordsMessage.cost(of: 1) * 2) {
            self.capacity = capacity
            connect()
        }

        /// A new exchange; what was on its way, and what was not yet on disk, is lost.
        mutating func connect() {
            var configuration = RecordsSession.Configuration()
            configuration.largestRecord = 1
            configuration.capacity = capacity
            configuration.batch = 2
            configuration.largestReadAhead = 2
            sessions = stores.map {
                RecordsSession(store: $0.id, epoch: $0.epoch, configuration: configuration, at: .zero)
            }
            requests = [[], []]
            names = [[:], [:]]
            wires = [[], []]
        }

        mutating func crash(_ side: Int) {
            openings += 1
            stores[side].reopen(nonce: openings)
            connect()
        }

        mutating func append(_ side: Int, _ value: UInt8, stream: Int64) {
            stores[side].append(value, stream: stream)
            accepted[side]["s\(stream)", default: []].append(value)
            if sessions[side].isAdmitted { stores[side].offer(stream, to: &sessions[side]) }
            collect(side)
        }

        /// Whether there was a message to send.
        mutating func send(_ side: Int) -> Bool {
            guard let message = sessions[side].nextMessage(at: .zero) else { return false }
            wires[side].append(message)
            collect(side)
            return true
        }

        mutating func deliver(from side: Int) throws -> Bool {
            guard !wires[side].isEmpty else { return false }
            try sessions[1 - side].receive(wires[side].removeFirst(), at: .zero)
            collect(1 - side)
            return true
        }

        mutating func carryOut(_ side: Int) -> Bool {
            guard !requests[side].isEmpty else { return false }
            let request = requests[side].removeFirst()
            names[side] = stores[side].carryOut(request, for: &sessions[side], names: names[side])
            collect(side)
            return true
        }

        /// The app has done a record.
        mutating func finish(_ side: Int) -> Bool {
            guard stores[side].undone > 0 else { return false }
            stores[side].undone -= 1
            sessions[side].released(RecordsMessage.cost(of: 1))
            return true
        }

        private mutating func collect(_ side: Int) { requests[side] += sessions[side].takeRequests() }

        /// Until nothing more happens.
        mutating func settle() throws {
            for _ in 0..<10_000 {
                var isBusy = false
                for side in 0...1 {
                    isBusy = send(side) || isBusy
                    isBusy = try deliver(from: side) || isBusy
                    isBusy = carryOut(side) || isBusy
                    isBusy = finish(side) || isBusy
                }
                if !isBusy { return }
            }
            throw FerryError(.timedOut, "It does not come to an end.")
        }

        /// What does not hold, if anything: nothing lost, nothing doubled, in order; bounded.
        func violation(isFinal: Bool) -> String? {
            for side in 0...1 {
                for (name, values) in accepted[side] {
                    let arrived = stores[1 - side].arrived[name] ?? []
                    guard Array(values.prefix(arrived.count)) == arrived else {
                        return "of \(values) of side \(side) arrived \(arrived)"
                    }
                    let waiting = Set(stores[side].waiting.filter { "s\($0.stream)" == name }.map(\.value))
                    guard values.dropFirst(arrived.count).allSatisfy(waiting.contains) else {
                        return "of \(values) of side \(side) arrived \(arrived), and only \(waiting) still wait"
                    }
                    if isFinal && (arrived != values || !waiting.isEmpty) {
                        return "in the end, of \(values) of side \(side) arrived \(arrived); \(waiting) wait"
                    }
                }
                guard stores[side].undone * RecordsMessage.cost(of: 1) <= capacity else {
                    return "side \(side) holds \(stores[side].undone) records"
                }
                guard stores[side].notices == 0 else { return "side \(side) takes a store for a copy" }
                if isFinal && !sessions[side].isIdle { return "side \(side) is not idle" }
            }
            return nil
        }
    }
#endif
