#if Records
    import Ferry
    import FerryTesting
    import FerrySequenced
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    func + (a: RecordStore.Summary, b: RecordStore.Summary) -> RecordStore.Summary {
        .init(
            peer: a.peer ?? b.peer, committed: a.committed + b.committed, received: a.received + b.received,
            ending: b.ending, heldUp: b.heldUp)
    }

    extension RecordStore {
        /// Holds the writer up until the gate is signalled: all that is submitted until then shares the next transaction.
        func holdWriter() async throws -> DispatchSemaphore {
            let gate = DispatchSemaphore(value: 0)
            committer.submit({ _, _ in gate.wait() }, finish: { _ in })
            try await until("the writer is held up") { committer.waitingPieces == 0 }
            return gate
        }
    }

    /// Two stores in one process, with a channel over a socket between them.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct ExchangeTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        func open(_ name: String, _ change: (inout RecordStore.Configuration) -> Void = { _ in }) throws -> RecordStore
        {
            var configuration = RecordStore.Configuration()
            (configuration.greeting, configuration.patience) = (.unreached, .unreached)
            change(&configuration)
            return try RecordStore.open(folder.file(name), configuration: configuration)
        }

        /// Exchanges between two stores until nothing waits in either, however slow the machine is; returns what went through.
        @discardableResult
        func meet(
            _ a: RecordStore, _ b: RecordStore, framing: any Framing = LengthPrefixFraming(),
            names: (String?, String?) = ("b", "a"), idle: Duration? = .milliseconds(300), times: Int = .max
        ) async throws -> (RecordStore.Summary, RecordStore.Summary) {
            var sums = (
                RecordStore.Summary(peer: nil, committed: 0, received: 0),
                RecordStore.Summary(peer: nil, committed: 0, received: 0)
            )
            for _ in 0..<times {
                try Task.checkCancellation()
                let (near, far) = PacketLink.pair()
                let channels = try (
                    MessageChannel(over: near, codec: BytesCodec(), framing: framing),
                    MessageChannel(over: far, codec: BytesCodec(), framing: framing)
                )
                async let first = a.exchange(over: channels.0, with: names.0, endingWhenIdle: idle)
                async let second = b.exchange(over: channels.1, with: names.1, endingWhenIdle: idle)
                let summaries = try await (first, second)
                sums = (sums.0 + summaries.0, sums.1 + summaries.1)
                guard let theirs = summaries.0.peer, let ours = summaries.1.peer else { continue }
                let waiting =
                    try await a.waiting().filter { $0.peer == theirs } + b.waiting().filter { $0.peer == ours }
                if waiting.allSatisfy({ $0.count == 0 }) { break }
            }
            return sums
        }

        /// Takes so many records out of an inbox.
        func take(_ count: Int, from store: RecordStore) async throws -> [String] {
            var texts: [String] = []
            for try await record in store.inbox {
                texts.append(String(decoding: record.bytes, as: UTF8.self))
                try await record.done()
                if texts.count == count { break }
            }
            return texts
        }

        func leftOver(_ store: RecordStore) async throws -> Int {
            try await store.read { database, _ in
                try Int.fetchOne(database, sql: "SELECT count(*) FROM ferry_arrived") ?? -1
            }
        }

        enum Kind: CaseIterable { case lengthPrefix, endOfMessage, sequenced }

        static func framing(_ kind: Kind) -> any Framing {
            switch kind {
            case .lengthPrefix: LengthPrefixFraming()
            case .endOfMessage: EndOfMessageFraming()
            case .sequenced: SequencedFraming()
            }
        }

        @Test(arguments: Kind.allCases) func bothDirectionsOverAllFramings(_ kind: Kind) async throws {
            let (a, b) = (try open("a"), try open("b"))
            let records = (0..<500).map { bytes("record \($0)") }
            try await a.append(contentsOf: records, to: "b", stream: "up")
            try await b.append(contentsOf: records, to: "a", stream: "down")
            let (first, second) = try await meet(a, b, framing: Self.framing(kind))
            #expect(first == .init(peer: "b", committed: 500, received: 500))
            #expect(second == .init(peer: "a", committed: 500, received: 500))
            for store in [a, b] {
                #expect(try await store.waiting().map(\.count) == [0])
                #expect(try await take(500, from: store).map(bytes) == records)
                #expect(try await leftOver(store) == 0)
                #expect(try await store.notices().isEmpty)
            }
            await a.close()
            await b.close()
        }

        @Test func aRecordArrivesWhileTheExchangeRuns() async throws {
            let (a, b) = (try open("a"), try open("b"))
            async let met = meet(a, b, idle: nil, times: 1)
            try await a.append(bytes("one"), to: "b")
            #expect(try await take(1, from: b) == ["one"])
            let id = try await a.append(bytes("two"), to: "b", stream: "new")
            #expect(try await take(1, from: b) == ["two"])
            try await a.drained("b", within: .unreached)
            #expect(try await a.receipt(of: id, to: "b") == .committed)
            try await a.endExchange(with: "b")
            _ = try await met
            await a.close()
            await b.close()
        }

        /// The peer's HELLO, MET and OPEN wait for the disk together, and share a transaction.
        @Test func aPeerIsKnownBeforeItsStreams() async throws {
            let (a, b) = (try open("a"), try open("b"))
            try await a.append(bytes("1"), to: "b")
            // Its own HELLO waits for nothing.
            try await b.read { database, book in try book.writeEpoch(database) }
            let gate = try await b.holdWriter()
            async let met = meet(a, b)
            try await until("the peer is known") {
                try await a.read { _, book in book.peers.values.first?.store } != nil
            }
            try await until("HELLO, MET and OPEN wait") { b.committer.waitingPieces >= 3 }
            gate.signal()
            _ = try await met
            #expect(
                try await b.read { database, _ in
                    let sql = "SELECT count(*) FROM ferry_inbound WHERE peer NOT IN (SELECT id FROM ferry_peer)"
                    return try Int.fetchOne(database, sql: sql)
                } == 0)
            #expect(try await take(1, from: b) == ["1"])
            await a.close()
            await b.close()
        }

        @Test func whatIsNotDoneComesAgain() async throws {
            let a = try open("a")
            var b = try open("b")
            try await a.append(contentsOf: [bytes("1"), bytes("2"), bytes("3")], to: "b", stream: "s")
            try await meet(a, b)
            var iterator = b.inbox.makeAsyncIterator()
            let one = try #require(try await iterator.next())
            let two = try #require(try await iterator.next())
            #expect(try await two.done())
            #expect(try await two.done() == false)
            #expect(one.peer == "a" && one.id.sender == a.id && one.id.epoch == a.epoch && one.id.sequence == 1)
            await b.close()
            b = try open("b")
            #expect(try await take(2, from: b) == ["1", "3"])
            await b.close()
            await a.close()
        }

        @Test func doneWithinTheAppsTransaction() async throws {
            struct Trouble: Error {}
            let (a, b) = (try open("a"), try open("b"))
            try await a.append(bytes("1"), to: "b")
            try await meet(a, b)
            var iterator = b.inbox.makeAsyncIterator()
            let record = try #require(try await iterator.next())
            await #expect(throws: Trouble.self) {
                try await record.done { database in
                    try database.execute(sql: "CREATE TABLE reading (value TEXT)")
                    throw Trouble()
                }
            }
            #expect(try await leftOver(b) == 1)
            let wasThere = try await record.done { database in
                try database.execute(sql: "CREATE TABLE reading (value TEXT)")
                try database.execute(sql: "INSERT INTO reading VALUES ('1')")
            }
            #expect(wasThere)
            #expect(try await record.done { _ in throw Trouble() } == false)
            #expect(
                try await b.read { database, _ in try Int.fetchOne(database, sql: "SELECT count(*) FROM reading") } == 1
            )
            await b.close()
            await a.close()
        }

        @Test func aSlowAppStopsThePeer() async throws {
            let a = try open("a")
            let b = try open("b") {
                $0.largestRecord = 1000
                $0.inboxCapacity = 10 * RecordsMessage.cost(of: 1000)
            }
            let big = [UInt8](repeating: 1, count: 1000)
            try await a.append(contentsOf: Array(repeating: big, count: 100), to: "b")
            async let met = meet(a, b, idle: nil, times: 1)
            var iterator = b.inbox.makeAsyncIterator()
            var held: [ArrivedRecord] = []
            for _ in 0..<10 { if let record = try await iterator.next() { held.append(record) } }
            // Nothing more comes, however often it is looked.
            #expect(try await leftOver(b) == 10)
            for index in 10..<100 {
                try await (try #require(held.first)).done()
                held.removeFirst()
                #expect(try await leftOver(b) <= 10, "\(index)")
                if let record = try await iterator.next() { held.append(record) }
            }
            for record in held { try await record.done() }
            try await a.drained("b", within: .unreached)
            try await a.endExchange(with: "b")
            _ = try await met
            await a.close()
            await b.close()
        }

        @Test func allOfABulkArrivesBesideAnAlarm() async throws {
            let (a, b) = (try open("a"), try open("b"))
            try await a.append(
                contentsOf: (0..<3000).map { bytes("bulk \($0)") }, to: "b", stream: "bulk", priority: .background)
            try await a.append(bytes("fire"), to: "b", stream: "alarm", priority: .urgent)
            try await meet(a, b)
            #expect(try await take(3001, from: b).contains("fire"))
            await a.close()
            await b.close()
        }

        /// A full disk has no room for a large record, and room for the small ones behind it, which must not be taken for all.
        @Test func aFullDiskLeavesNoGap() async throws {
            let a = try open("a") { $0.batchBytes = 100 }
            let b = try open("b") { $0.batchBytes = 100 }
            try await a.append(bytes("first"), to: "b")
            try await meet(a, b)
            #expect(try await take(1, from: b) == ["first"])
            for round in 1...8 {
                // Larger each time, for the pages of the one before are free again.
                try await allow(2, pagesMoreIn: b)
                try await a.append([UInt8](repeating: 65, count: 30_000 * round), to: "b")
                for number in 0..<5 { try await a.append(bytes("\(number)"), to: "b") }
                await #expect(throws: FerryError.self) { try await meet(a, b) }
                try await allow(100_000, pagesMoreIn: b)
                try await meet(a, b)
                try #require(try await leftOver(b) == 6)
                #expect(try await take(6, from: b).map(\.count) == [30_000 * round, 1, 1, 1, 1, 1])
            }
            await a.close()
            await b.close()
        }

        /// The disk is full for one batch, and there is room again for the next, which has come meanwhile and waits for the writer.
        @Test func whatWaitsBehindAFailedBatchLeavesNoGap() async throws {
            let (a, b) = (try open("a"), try open("b"))
            try await a.append(bytes("first"), to: "b")
            try await meet(a, b)
            #expect(try await take(1, from: b) == ["first"])
            let gate = Gate()
            defer { gate.open() }
            try await b.read { database, _ in
                let fail = DatabaseFunction("no_room", argumentCount: 0) { _ in
                    gate.pass()
                    throw DatabaseError(resultCode: .SQLITE_FULL)
                }
                database.add(function: fail)
                try database.execute(
                    sql: """
                        CREATE TEMP TRIGGER full BEFORE INSERT ON ferry_arrived WHEN length(NEW.record) = 5000
                        BEGIN SELECT no_room(); END
                        """)
            }
            try await a.append([UInt8](repeating: 65, count: 5000), to: "b")
            let meeting = Task { try await meet(a, b, idle: nil) }
            try await until("the first batch is being stored") { gate.isReached }
            for number in 0..<3 { try await a.append(bytes("\(number)"), to: "b") }
            try await until("the next batch waits") { b.committer.waitingPieces > 0 }
            gate.open()
            await #expect(throws: FerryError.self) { try await meeting.value }
            try #require(try await leftOver(b) == 0)
            try await b.read { database, _ in try database.execute(sql: "DROP TRIGGER full") }
            try await meet(a, b)
            #expect(try await take(4, from: b).map(\.count) == [5000, 1, 1, 1])
            await a.close()
            await b.close()
        }

        /// Whoever ends an exchange says whether there may be more to do.
        @Test(arguments: [nil, "The turn is over."]) func anExchangeIsEnded(because reason: String?) async throws {
            let (a, b) = (try open("a"), try open("b"))
            try await a.append(bytes("1"), to: "b")
            async let met = meet(a, b, idle: nil, times: 1)
            #expect(try await take(1, from: b) == ["1"])
            try await a.drained("b", within: .unreached)
            try await a.endExchange(with: "b", because: reason)
            let (first, second) = try await met
            #expect(first.ending == reason.map { .calledOff($0) } ?? .complete)
            #expect(second.ending == reason.map { .calledOff("The peer ended the exchange: \($0)") } ?? .complete)
            #expect(second.received == 1)
            await a.close()
            await b.close()
        }

        /// A disk that takes longer than the exchange: what it was told to do by then is done, and counts.
        @Test func aSlowDiskIsCountedToo() async throws {
            let time = VirtualTime()
            let a = try RecordStore.open(folder.file("a"), time: time)
            let b = try RecordStore.open(folder.file("b"), time: time)
            let gates = (Gate(), Gate())
            defer {
                gates.0.open()
                gates.1.open()
            }
            func hold(_ store: RecordStore, _ event: String, at gate: Gate) async throws {
                try await store.read { database, _ in
                    let wait = DatabaseFunction("wait", argumentCount: 0) { _ in
                        gate.pass()
                        return nil
                    }
                    database.add(function: wait)
                    try database.execute(
                        sql: "CREATE TEMP TRIGGER slow BEFORE \(event) BEGIN SELECT wait(); END")
                }
            }
            func channels() throws -> [MessageChannel<[UInt8], [UInt8]>] {
                let (near, far) = PacketLink.pair()
                return try [near, far].map { try MessageChannel(over: $0, codec: BytesCodec()) }
            }
            // The peer has it, and is idle before it is forgotten here.
            try await hold(a, "DELETE ON ferry_waiting", at: gates.0)
            try await a.append(bytes("1"), to: "b")
            let first = try channels()
            let idle = Duration.milliseconds(100)
            async let committing = a.exchange(over: first[0], with: "b", endingWhenIdle: idle)
            async let storing = b.exchange(over: first[1], with: "a", endingWhenIdle: idle)
            try await until("the record is being forgotten while nothing else is to be done") {
                gates.0.isReached && time.nextDeadline.map { $0 <= time.now + idle } == true
            }
            time.advance(by: idle)
            gates.0.open()
            let summaries = try await (committing, storing)
            #expect(summaries.0.committed == 1 && summaries.1.received == 1)

            // The link is gone before it is on the disk.
            try await hold(b, "INSERT ON ferry_arrived", at: gates.1)
            try await a.append(bytes("2"), to: "b")
            let second = try channels()
            async let sent = a.exchange(over: second[0], with: "b")
            async let received = b.exchange(over: second[1], with: "a")
            try await until("the record is being stored") { gates.1.isReached }
            second[0].close()
            _ = await second[1].closed
            gates.1.open()
            #expect(try await received.received == 1)
            _ = try? await sent
            #expect(try await take(2, from: b) == ["1", "2"])
            await a.close()
            await b.close()
        }

        /// Lets a store's file grow by so many pages; then the disk is full for it.
        private func allow(_ count: Int, pagesMoreIn store: RecordStore) async throws {
            try await store.read { database, _ in
                let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
                _ = try Row.fetchOne(database, sql: "PRAGMA max_page_count = \(pages + count)")
            }
        }

        @Test func tooLargeForThePeerHoldsUpItsStreamAlone() async throws {
            let a = try open("a")
            let b = try open("b") { $0.largestRecord = 100 }
            let large = try await a.append([UInt8](repeating: 0, count: 101), to: "b", stream: "large")
            try await a.append(bytes("small"), to: "b", stream: "small")
            var heldUp: [RecordStore.Summary.HeldUp] = []
            // The large one waits for good, so that both meet until the small one is there, however slow the machine is.
            try await until("the small one arrives") {
                heldUp = try await meet(a, b, times: 1).0.heldUp
                return try await leftOver(b) > 0
            }
            #expect(heldUp == [.init(stream: "large", sequence: 1, bytes: 101, largest: 100)])
            #expect(try await take(1, from: b) == ["small"])
            #expect(try await a.receipt(of: large, to: "b") == .handedOver)
            // From now on it is known.
            await #expect(throws: FerryError.self) {
                try await a.append([UInt8](repeating: 0, count: 101), to: "b", stream: "large")
            }
            #expect(try await a.cancel(large, to: "b") == .mayHaveArrived)
            await a.close()
            await b.close()
        }

        @Test(arguments: [UInt64(1) << 32 - 3, UInt64(Int64.max) - 6]) func countersNearTheirEnds(_ last: UInt64)
            async throws
        {
            var a = try open("a")
            let b = try open("b")
            try await a.append(bytes("0"), to: "b")
            try await meet(a, b)
            await a.close()
            try edit(folder.file("a"), "UPDATE ferry_outbound SET checksum = NULL, last = \(last)")
            a = try open("a")
            for number in 1...5 { try await a.append(bytes("\(number)"), to: "b") }
            try await meet(a, b)
            #expect(try await take(6, from: b) == (0...5).map { "\($0)" })
            #expect(try await a.waiting().map(\.committedThrough) == [last + 5])
            await a.close()
            await b.close()
        }
    }
#endif
