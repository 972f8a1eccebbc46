#if Records
    import Ferry
    import TestSupport
    import Testing

    @testable import FerryRecords

    extension RecordsSession {
        struct NoMessage: Error {}

        fileprivate mutating func next() throws -> RecordsMessage {
            guard let message = nextMessage(at: .zero) else { throw NoMessage() }
            return try RecordsMessage(message)
        }
    }

    /// What the session does in its own right, message by message.
    @Suite(.tags(.records)) struct SessionTests {
        private let epoch = Epoch(generation: 1, nonce: 7)
        private let peers = Epoch(generation: 3, nonce: 1)

        private func session(_ change: (inout RecordsSession.Configuration) -> Void = { _ in }) -> RecordsSession {
            var configuration = RecordsSession.Configuration()
            change(&configuration)
            return RecordsSession(
                store: StoreID(high: 1, low: 1), epoch: epoch, configuration: configuration, at: .zero)
        }

        /// One that has met its peer, which granted so much.
        private func met(granted: UInt64 = 1000, _ change: (inout RecordsSession.Configuration) -> Void = { _ in })
            throws
            -> RecordsSession
        {
            var session = session(change)
            _ = session.nextMessage(at: .zero)
            let hello = RecordsMessage.hello(.init(store: StoreID(high: 2, low: 2), epoch: peers, largestRecord: 100))
            try session.receive(hello.encoded, at: .zero)
            session.admit(seen: nil, stored: 0)
            _ = session.nextMessage(at: .zero)
            try session.receive(RecordsMessage.met(seen: nil, granted: granted).encoded, at: .zero)
            _ = session.takeRequests()
            return session
        }

        private func offer(_ session: inout RecordsSession, _ id: Int64, _ priority: UInt8, records: Int) throws {
            session.offer(id, name: "s\(id)", priority: priority, acknowledged: nil)
            guard case .open(let index, _, _) = try session.next() else { return }
            try session.receive(RecordsMessage.position(index: index, nil).encoded, at: .zero)
            let loaded = (1...UInt64(records)).map {
                RecordsSession.Loaded(epoch: epoch, item: .init(sequence: $0, bytes: [UInt8(id)]))
            }
            session.loaded(loaded, of: id)
            _ = session.takeRequests()
        }

        @Test func urgentStreamsGoFirstAndEqualOnesTakeTurns() throws {
            var session = try met { $0.batch = 1 }
            try offer(&session, 1, 0, records: 2)
            try offer(&session, 2, 3, records: 2)
            try offer(&session, 3, 3, records: 2)
            var order: [Int] = []
            while let message = session.nextMessage(at: .zero) {
                if case .records(let index, _, _, _) = try RecordsMessage(message) { order.append(index) }
            }
            #expect(order == [1, 2, 1, 2, 0, 0])
        }

        /// What is asked of the store at once grows when the peer could have had more meanwhile, and not otherwise.
        @Test(arguments: [false, true]) func readsAheadForAQuickPeer(isQuick: Bool) throws {
            var session = try met(granted: 1_000_000) {
                $0.batch = 10
                $0.largestReadAhead = 30
            }
            session.offer(1, name: "s1", priority: 1, acknowledged: nil)
            _ = session.nextMessage(at: .zero)
            try session.receive(RecordsMessage.position(index: 0, nil).encoded, at: .zero)
            var asked: [Int] = []
            var next: UInt64 = 1
            for _ in 0..<8 {
                // A quick one takes all that there is before more has been loaded.
                while session.nextMessage(at: .zero) != nil && isQuick {}
                for case .load(_, _, let bytes) in session.takeRequests() {
                    asked.append(bytes)
                    let records = (next..<next + UInt64(bytes)).map {
                        RecordsSession.Loaded(epoch: epoch, item: .init(sequence: $0, bytes: [1]))
                    }
                    next += UInt64(bytes)
                    session.loaded(records, of: 1)
                }
            }
            #expect(asked.count > 4 && asked.first == 10)
            #expect(asked.max() == (isQuick ? 30 : 10), "\(asked)")
        }

        @Test func noMoreThanGrantedIsSent() throws {
            var session = try met(granted: UInt64(RecordsMessage.cost(of: 1) * 3 + 1))
            try offer(&session, 1, 0, records: 9)
            let message = try session.next()
            guard case .records(_, _, 0, let items) = message else { return #expect(Bool(false), "\(message)") }
            #expect(items.map(\.sequence) == [1, 2, 3])
            #expect(session.nextMessage(at: .zero) == nil)
            let more = RecordsMessage.committed(
                granted: UInt64(RecordsMessage.cost(of: 1) * 4), through: [.init(index: 0, sequence: 2)])
            try session.receive(more.encoded, at: .zero)
            #expect(
                session.takeRequests().first
                    == .acknowledge(stream: 1, through: Position(epoch: epoch, sequence: 2)))
            let next = try session.next()
            #expect(next == .records(index: 0, epoch: epoch, previous: 3, [.init(sequence: 4, bytes: [1])]))
        }

        @Test func whatIsOwedHasADeadline() throws {
            var silent = session()
            let (greeting, patience) = (
                RecordsSession.Configuration().greeting, RecordsSession.Configuration().patience
            )
            #expect(greeting < patience && silent.nextDeadline == Timestamp.zero + greeting)
            try silent.wake(at: .zero + (greeting - .nanoseconds(1)))
            #expect(throws: FerryError.self) { try silent.wake(at: .zero + greeting) }
            // Who has said who it is may wait for its disk before it says that it knows this side.
            let hello = RecordsMessage.hello(.init(store: StoreID(high: 2, low: 2), epoch: peers, largestRecord: 100))
            try silent.receive(hello.encoded, at: .zero + .seconds(1))
            #expect(silent.nextDeadline == Timestamp.zero + .seconds(1) + patience)
            #expect(session { $0.patience = .seconds(1) }.nextDeadline == Timestamp.zero + .seconds(1))

            var session = try met()
            #expect(session.nextDeadline == nil)
            try offer(&session, 1, 0, records: 2)
            #expect(session.nextDeadline == nil)
            _ = session.nextMessage(at: .zero + .seconds(5))
            #expect(session.nextDeadline == Timestamp.zero + .seconds(5) + patience)
            // A grant alone is no answer; half of an answer gives as much time again.
            try session.receive(RecordsMessage.committed(granted: 1000, through: []).encoded, at: .zero + .seconds(9))
            #expect(session.nextDeadline == Timestamp.zero + .seconds(5) + patience)
            let half = RecordsMessage.committed(granted: 1000, through: [.init(index: 0, sequence: 1)])
            try session.receive(half.encoded, at: .zero + .seconds(10))
            #expect(session.nextDeadline == Timestamp.zero + .seconds(10) + patience)
            let rest = RecordsMessage.committed(granted: 1000, through: [.init(index: 0, sequence: 2)])
            try session.receive(rest.encoded, at: .zero + .seconds(11))
            #expect(session.nextDeadline == nil)
        }

        static let offences: [(String, [RecordsMessage])] = [
            (
                "HELLO comes twice",
                [
                    .hello(
                        .init(store: StoreID(high: 2, low: 2), epoch: Epoch(generation: 1, nonce: 7), largestRecord: 1))
                ]
            ),
            ("MET comes twice", [.met(seen: nil, granted: 0)]),
            ("stream 1 is opened, and the next one is 0", [.open(index: 1, name: "", acknowledged: nil)]),
            ("a position of stream 0 comes, which was not asked for", [.position(index: 0, nil)]),
            (
                "before its position was told",
                [
                    .records(
                        index: 0, epoch: Epoch(generation: 1, nonce: 1), previous: 0, [.init(sequence: 1, bytes: [])])
                ]
            ),
            (
                "record 5 of stream 0 is acknowledged, and was not sent",
                [.committed(granted: 1000, through: [.init(index: 0, sequence: 5)])]
            ),
            ("granted bytes are taken back", [.committed(granted: 999, through: [])]),
        ]

        @Test(arguments: offences.indices) func offencesAreNamed(_ index: Int) throws {
            var session = try met()
            let (what, messages) = Self.offences[index]
            let error = #expect(throws: FerryError.self) {
                for message in messages { try session.receive(message.encoded, at: .zero) }
            }
            #expect(
                error?.code == .misbehavingPeer && error?.message.contains(what) == true, "\(String(describing: error))"
            )
        }

        @Test func aHoleInAStreamIsNoticed() throws {
            var session = try met { $0.capacity = 2 * RecordsMessage.cost(of: 1) }
            try session.receive(RecordsMessage.open(index: 0, name: "s", acknowledged: nil).encoded, at: .zero)
            session.found(nil, of: 0)
            _ = session.nextMessage(at: .zero)
            func records(
                _ previous: UInt64, _ sequence: UInt64, _ generation: UInt64 = 1, nonce: UInt64 = 1
            ) -> [UInt8] {
                RecordsMessage.records(
                    index: 0, epoch: Epoch(generation: generation, nonce: nonce), previous: previous,
                    [.init(sequence: sequence, bytes: [1])]
                ).encoded
            }
            try session.receive(records(0, 5, 2), at: .zero)
            var other = session
            #expect(throws: FerryError.self) { try other.receive(records(6, 7, 2), at: .zero) }
            other = session
            #expect(throws: FerryError.self) { try other.receive(records(5, 6, 1), at: .zero) }
            other = session
            // Later than the opening in which the peer says that it is, and another opening of that number.
            #expect(throws: FerryError.self) { try other.receive(records(5, 6, 4), at: .zero) }
            other = session
            #expect(throws: FerryError.self) { try other.receive(records(5, 6, 3, nonce: 2), at: .zero) }
            try session.receive(records(5, 6, 2), at: .zero)
            // The third is more than was granted.
            #expect(throws: FerryError.self) { try session.receive(records(6, 7, 2), at: .zero) }
        }

        /// However many acknowledgements come, the store is asked for one thing at a time, and has the last in the end.
        @Test func aFloodOfAcknowledgementsMakesNothingGrow() throws {
            var session = try met(granted: 1 << 40)
            try offer(&session, 1, 1, records: 100)
            while session.nextMessage(at: .zero) != nil {}
            _ = session.takeRequests()
            func acknowledge(_ sequence: UInt64) throws {
                let message = RecordsMessage.committed(
                    granted: 1 << 40, through: [.init(index: 0, sequence: sequence)])
                try session.receive(message.encoded, at: .zero)
            }
            for sequence in 1...50 { try acknowledge(UInt64(sequence)) }
            for _ in 0..<10_000 { try acknowledge(50) }
            #expect(
                session.takeRequests() == [.acknowledge(stream: 1, through: Position(epoch: epoch, sequence: 1))])
            session.forgotten(of: 1)
            let rest = RecordsSession.Request.acknowledge(stream: 1, through: Position(epoch: epoch, sequence: 50))
            #expect(session.takeRequests() == [rest])
            #expect(throws: FerryError.self) {
                var other = session
                let back = RecordsMessage.committed(granted: 1 << 40, through: [.init(index: 0, sequence: 49)])
                try other.receive(back.encoded, at: .zero)
            }
            // The exchange ends while the store still forgets.
            try acknowledge(60)
            try acknowledge(70)
            #expect(session.takeRequests().isEmpty)
            let last = RecordsSession.Request.acknowledge(stream: 1, through: Position(epoch: epoch, sequence: 70))
            #expect(session.takeUnforgotten() == [last] && session.takeUnforgotten().isEmpty)
            session.forgotten(of: 1)
            session.forgotten(of: 1)
            try acknowledge(80)
            #expect(session.takeRequests().count == 1)
        }

        /// A large record on a slow link: what counts is when it has left.
        @Test func anAnswerIsAwaitedFromWhenTheMessageHasLeft() throws {
            var session = try met()
            try offer(&session, 1, 1, records: 1)
            #expect(session.nextDeadline == nil)
            _ = session.nextMessage(at: .zero)
            let patience = RecordsSession.Configuration().patience
            #expect(session.nextDeadline == Timestamp.zero + patience)
            session.left(after: .seconds(200))
            try session.wake(at: .zero + .seconds(200))
            #expect(session.nextDeadline == Timestamp.zero + .seconds(200) + patience)
            try session.receive(
                RecordsMessage.committed(granted: 1000, through: [.init(index: 0, sequence: 1)]).encoded, at: .zero)
            session.left(after: .seconds(100))
            #expect(session.nextDeadline == nil)
        }

        /// A peer that is stopped takes what its controller takes, and answers nothing.
        @Test func whoSendsOnAndOnDoesNotWaitForEver() throws {
            var session = try met()
            let patience = RecordsSession.Configuration().patience
            try offer(&session, 1, 1, records: 1)
            _ = session.nextMessage(at: .zero)
            session.left(after: .zero)
            for second in 1...20 {
                session.offer(1, name: "s1", priority: 1, acknowledged: nil)
                let item = RecordsMessage.Item(sequence: UInt64(second) + 1, bytes: [1])
                session.loaded([.init(epoch: epoch, item: item)], of: 1)
                #expect(session.nextMessage(at: .zero + .seconds(second)) != nil)
                session.left(after: .milliseconds(1))
            }
            let deadline = try #require(session.nextDeadline)
            #expect(deadline <= Timestamp.zero + patience + .milliseconds(20))
            #expect(throws: FerryError.self) { try session.wake(at: deadline) }
        }

        @Test func otherVersionsAreRefusedAndTold() throws {
            var session = session()
            let hello = RecordsMessage.hello(
                .init(
                    lowestVersion: 2, highestVersion: 3, store: StoreID(high: 2, low: 2), epoch: epoch, largestRecord: 1
                ))
            let error = #expect(throws: FerryError.self) { try session.receive(hello.encoded, at: .zero) }
            #expect(error?.code == .incompatiblePeer)
            _ = session.nextMessage(at: .zero)
            let farewell = try session.next()
            guard case .end(1, _) = farewell else { return #expect(Bool(false), "\(farewell)") }
            #expect(session.nextMessage(at: .zero) == nil)
        }

        @Test func aLaterVersionThatSpeaksThisOneIsTaken() throws {
            var session = session()
            var hello = RecordsMessage.hello(
                .init(highestVersion: 9, store: StoreID(high: 2, low: 2), epoch: epoch, largestRecord: 1)
            ).encoded
            hello += [1, 2, 3]
            try session.receive(hello, at: .zero)
            #expect(session.takeRequests().count == 1)
        }
    }
#endif
