#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// A store and a peer of which every byte is the test's own.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct HostilePeerTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        /// The peer: it says what it is told to, and reads what comes.
        final class Peer: Sendable {
            let channel: MessageChannel<[UInt8], [UInt8]>
            let hello: RecordsMessage.Hello

            init(
                _ link: any Link, store: UInt64 = 9, id: StoreID? = nil, generation: UInt64 = 1, nonce: UInt64 = 7
            ) throws {
                channel = try MessageChannel(over: link, codec: BytesCodec())
                hello = .init(
                    store: id ?? StoreID(high: store, low: store), epoch: Epoch(generation: generation, nonce: nonce),
                    largestRecord: 1 << 20)
            }

            func say(_ messages: RecordsMessage...) async throws {
                for message in messages { try await channel.send(message.encoded) }
            }

            func greet() async throws {
                try await say(.hello(hello), .met(seen: nil, granted: 1 << 40))
            }

            /// The next message that `match` takes; others are passed over.
            func next<Value>(_ match: (RecordsMessage) -> Value?) async throws -> Value {
                var messages = channel.messages.makeAsyncIterator()
                while let bytes = try await messages.next() {
                    if let value = match(try RecordsMessage(bytes)) { return value }
                }
                throw NotYet("the exchange ended before the message came")
            }

            /// Answers the first OPEN.
            func tell(_ position: Position?) async throws {
                _ = try await next { if case .open = $0 { true } else { nil } }
                try await say(.position(index: 0, position))
            }

            func end() async throws -> (code: UInt8, text: String) {
                try await next { if case .end(let code, let text) = $0 { (code, text) } else { nil } }
            }
        }

        /// An exchange of a store with such a peer.
        private func meet(
            _ store: RecordStore, as name: String? = "p", _ make: (any Link) throws -> Peer = { try Peer($0) },
            _ body: (Peer) async throws -> Void
        ) async throws -> Result<RecordStore.Summary, FerryError> {
            let (near, far) = PacketLink.pair()
            let channel = try MessageChannel(over: near, codec: BytesCodec())
            let exchange = Task { () async -> Result<RecordStore.Summary, FerryError> in
                do throws(FerryError) { return .success(try await store.exchange(over: channel, with: name)) } catch {
                    return .failure(error)
                }
            }
            let peer = try make(far)
            do { try await body(peer) } catch {
                peer.channel.close()
                throw error
            }
            let result = await exchange.value
            peer.channel.close()
            return result
        }

        private func code(_ result: Result<RecordStore.Summary, FerryError>) -> FerryError.Code? {
            if case .failure(let error) = result { error.code } else { nil }
        }

        // MARK: Names

        static let badNames = ["\0", "a\0", "a\0b", String(repeating: "x", count: 128) + "\0"]

        @Test(arguments: badNames) func aNULInAStreamsNameEndsOneExchangeOnly(_ name: String) async throws {
            let store = try tests.open("a")
            let result = try await meet(store) { peer in
                try await peer.greet()
                try await peer.say(
                    .open(index: 0, name: "", acknowledged: nil), .open(index: 1, name: name, acknowledged: nil))
                #expect(try await peer.end().code == RecordsMessage.EndCode.protocolError.rawValue)
            }
            #expect(code(result) == .misbehavingPeer)
            try await store.append(bytes("goes on"), to: "p")
            await store.close()
        }

        @Test(arguments: badNames) func namesThatNoStoreKeepsAreRefused(_ name: String) async throws {
            let store = try tests.open("a")
            let calls: [() async throws -> Void] = [
                { try await store.append([1], to: "p", stream: name) },
                { try await store.append([1], to: name) },
                { try await store.relay([.init(sequence: 1, time: 1, bytes: [])], from: "o", stream: name, to: "p") },
                { try await store.relay([.init(sequence: 1, time: 1, bytes: [])], from: name, stream: "s", to: "p") },
                { try await store.relay([.init(sequence: 1, time: 1, bytes: [])], from: "o", stream: "s", to: name) },
            ]
            for call in calls where name.utf8.count <= 128 {
                let error = await #expect(throws: FerryError.self) { try await call() }
                #expect(error?.code == .invalidConfiguration)
            }
            let result = try await meet(store, as: name) { $0.channel.close() }
            #expect(code(result) == .invalidConfiguration)
            #expect(try await store.waiting().isEmpty)
            await store.close()
        }

        @Test func oneStreamIsOpenedOnce() async throws {
            let store = try tests.open("a")
            let result = try await meet(store) { peer in
                try await peer.greet()
                try await peer.say(
                    .open(index: 0, name: "s", acknowledged: nil), .open(index: 1, name: "s", acknowledged: nil))
                _ = try await peer.end()
            }
            #expect(code(result) == .misbehavingPeer)
            await store.close()
        }

        /// The peer calls the exchange off and closes, and this side's next message cannot leave any more: the peer's reason is told.
        @Test func whatThePeerSaidBeforeItClosedIsTold() async throws {
            let store = try tests.open("a")
            for _ in 0..<50 {
                let (near, far) = PacketLink.pair()
                let channel = try MessageChannel(over: near, codec: BytesCodec())
                let peer = try Peer(far)
                try await peer.say(.end(code: RecordsMessage.EndCode.other.rawValue, text: "Not today."))
                peer.channel.close()
                try await until("the link has ended") { channel.closeReason != nil }
                let summary = try await store.exchange(over: channel, with: "p")
                guard case .calledOff(let reason) = summary.ending, reason.contains("Not today.") else {
                    Issue.record("\(summary)")
                    break
                }
            }
            await store.close()
        }

        // MARK: A piece of a transaction that the database refuses

        @Test func aConstraintFailsOnePieceOnly() async throws {
            let store = try tests.open("a")
            try await store.append([1], to: "p", stream: "s")
            let gate = try await store.holdWriter()
            async let before = store.append([2], to: "p", stream: "s")
            let refused = Task {
                try await store.read { database, book in
                    // The book and the file differ: what the book has changed goes with the row.
                    book.change(outbound: 1) { $0.count += 100 }
                    try database.execute(sql: "INSERT INTO ferry_outbound SELECT * FROM ferry_outbound")
                }
            }
            async let after = store.append([3], to: "q", stream: "s")
            try await until("all wait for one transaction") { store.committer.waitingPieces >= 3 }
            gate.signal()
            let ids = try await [before, after]
            #expect(Set(ids.map(\.stream)) == ["s"])
            let error = await #expect(throws: FerryError.self) { try await refused.value }
            #expect(error?.code == .storeRefused)
            #expect(try await store.waiting().map(\.count) == [2, 1])
            await store.close()
        }

        /// Fails transactions that make a peer, as a full disk does, once the first may go on.
        private final class PeersFindNoRoom: TransactionObserver, Sendable {
            private let state = Mutex((makesPeer: false, isReached: false))
            /// Whether the next one finds room again.
            private let isOnce: Bool

            init(once: Bool = false) { isOnce = once }

            let mayGoOn = DispatchSemaphore(value: 0)

            func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { kind.tableName == "ferry_peer" }
            func databaseDidChange(with event: DatabaseEvent) { state.withLock { $0.makesPeer = true } }
            func databaseWillCommit() throws {
                let (makesPeer, wasReached) = state.withLock { state in
                    defer { state.isReached = state.makesPeer || state.isReached }
                    return state
                }
                guard makesPeer, !(isOnce && wasReached) else { return }
                if !wasReached { mayGoOn.wait() }
                throw DatabaseError(resultCode: .SQLITE_FULL)
            }
            func databaseDidCommit(_ database: Database) {}
            func databaseDidRollback(_ database: Database) { state.withLock { $0.makesPeer = false } }
            var isReached: Bool { state.withLock { $0.isReached } }
        }

        /// Its streams wait for the disk behind it, and would be those of a peer that is not in the file: it could not be opened again.
        @Test func aPeerThatFoundNoRoomHasNoStreams() async throws {
            var store = try tests.open("a")
            let disk = PeersFindNoRoom()
            try await store.read { database, _ in database.add(transactionObserver: disk) }
            let result = try await meet(store) { [store] peer in
                try await peer.say(.hello(peer.hello))
                try await until("the peer is about to be stored") { disk.isReached }
                try await peer.say(.met(seen: nil, granted: 1 << 40), .open(index: 0, name: "s", acknowledged: nil))
                try await until("MET and OPEN wait") { store.committer.waitingPieces >= 2 }
                disk.mayGoOn.signal()
                #expect(try await peer.end().code == RecordsMessage.EndCode.storage.rawValue)
            }
            #expect(code(result) == .diskFull)
            await store.close()
            store = try tests.open("a")
            #expect(try await store.peers().isEmpty)
            await store.close()
        }

        /// What the transaction had given the guest is undone with it: the peer is made again, and nothing is lost.
        @Test func aGuestsFirstRecordsOutliveATransactionThatIsUndone() async throws {
            var store = try tests.open("a")
            let disk = PeersFindNoRoom(once: true)
            try await store.read { database, _ in database.add(transactionObserver: disk) }
            _ = try await meet(store, as: nil) { [store] peer in
                try await peer.greet()
                try await peer.say(
                    .open(index: 0, name: "s", acknowledged: nil), .open(index: 1, name: "t", acknowledged: nil))
                for index in 0...1 {
                    _ = try await peer.next { if case .position(index, _) = $0 { true } else { nil } }
                }
                let gate = try await store.holdWriter()
                let epoch = peer.hello.epoch
                try await peer.say(
                    .records(index: 0, epoch: epoch, previous: 0, [.init(sequence: 1, bytes: [1])]),
                    .records(index: 1, epoch: epoch, previous: 0, [.init(sequence: 1, bytes: [2])]),
                    .records(index: 0, epoch: epoch, previous: 1, [.init(sequence: 2, bytes: [3])]))
                try await until("they wait for one transaction") { store.committer.waitingPieces >= 3 }
                disk.mayGoOn.signal()
                gate.signal()
                try await until("they are stored") { try await store.undone() == 3 }
                #expect(disk.isReached)
                peer.channel.close()
            }
            #expect(try await store.peers().map(\.undone) == [3])
            await store.close()
            store = try tests.open("a")
            #expect(try await store.peers().map(\.undone) == [3])
            await store.close()
        }

        /// A number of before the transaction was undone, or of before the peer was forgotten.
        @Test func aPeerThatIsNotThereGetsNoStream() async throws {
            let store = try tests.open("a")
            let calls: [@Sendable (Database, inout Book) throws -> Void] = [
                { _ = try $1.makeInbound("s", of: 7, $0) }, { _ = try $1.makeOutbound("s", of: 7, $0) },
                { _ = try store.store([.init(sequence: 1, bytes: [1])], store.epoch, in: 7, $0, &$1) },
            ]
            for call in calls {
                let error = await #expect(throws: FerryError.self) {
                    try await store.read { database, book in try call(database, &book) }
                }
                #expect(error?.code == .closed)
            }
            await store.close()
        }

        /// Who waits for what cannot come any more.
        @Test func aFailedStoreEndsAllThatWait() async throws {
            struct Trouble: Error {}
            let store = try tests.open("a") {
                $0.highWaterRecords = 1
                $0.lowWaterRecords = 0
            }
            try await store.append([1], to: "p")
            let reader = Task {
                var iterator = store.inbox.makeAsyncIterator()
                return try await iterator.next()
            }
            let waiter = Task { try await store.append([2], to: "p", whenFull: .wait(atMost: .seconds(86_400))) }
            let watcher = Task { try await store.drained("p", within: .seconds(86_400)) }
            let hub = try RecordHub(store, over: SilentTransport())
            let running = Task { try await hub.run() }
            let result = try await meet(store, as: "q") { peer in
                try await peer.greet()
                _ = try await peer.next { if case .met = $0 { true } else { nil } }
                store.committer.submit({ _, _ in throw Trouble() }, finish: { _ in })
                let end = try await peer.end()
                #expect(end.code == RecordsMessage.EndCode.storage.rawValue && !end.text.contains(store.path))
            }
            #expect(code(result) == .storeFailed)
            for error in [
                await #expect(throws: FerryError.self) { _ = try await reader.value },
                await #expect(throws: FerryError.self) { _ = try await waiter.value },
                await #expect(throws: FerryError.self) { try await watcher.value },
                await #expect(throws: FerryError.self) { try await running.value },
                await #expect(throws: FerryError.self) { for try await _ in store.inbox {} },
            ] {
                #expect(error?.code == .storeFailed)
            }
            await store.close()
        }

        /// Neither connects nor is connected to.
        private struct SilentTransport: Transport {
            func connect(timeout: Duration) async throws(FerryError) -> any Link {
                throw FerryError(.timedOut, "Silence.")
            }
            func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
                try await connect(timeout: timeout)
            }
            func listen() async throws(FerryError) -> LinkListener { LinkListener {} }
        }

        // MARK: Acknowledgements and positions

        @Test func anAcknowledgementOfZeroIsRefused() async throws {
            let store = try tests.open("a")
            try await store.append(contentsOf: [[1], [2]], to: "p")
            let result = try await meet(store) { peer in
                try await peer.greet()
                try await peer.tell(nil)
                _ = try await peer.next { if case .records = $0 { true } else { nil } }
                try await peer.channel.send([0x06, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x00, 0x00])
                _ = try await peer.end()
            }
            #expect(code(result) == .misbehavingPeer)
            #expect(try await store.waiting().map(\.committedThrough) == [0])
            await store.close()
        }

        /// Ferry has written it to its disks, and asked peers to take it then.
        @Test func anAcknowledgementOfZeroOnTheDiskJamsNothing() async throws {
            var (a, b) = (try tests.open("a"), try tests.open("b"))
            try await a.append([1], to: "b")
            await a.close()
            try edit(
                tests.folder.file("a"),
                "UPDATE ferry_outbound SET checksum = NULL, acknowledged = 0, generation = 1, nonce = 1")
            a = try tests.open("a")
            try await tests.meet(a, b)
            #expect(try await a.waiting().map(\.count) == [0])
            await a.close()
            await b.close()
        }

        /// What lies before a position is forgotten, so a position must have been sent.
        @Test(arguments: [1, 2]) func aPositionThatWasNeverSentIsRefused(opening: UInt64) async throws {
            var store = try tests.open("a")
            let first = store.epoch
            try await store.append(contentsOf: [[1], [2], [3]], to: "p")
            if opening == 2 {
                await store.close()
                store = try tests.open("a")
                try await store.append(contentsOf: [[4]], to: "p")
            }
            let last = opening == 2 ? Position(epoch: first, sequence: 4) : Position(epoch: first, sequence: 1)
            let result = try await meet(store) { peer in
                try await peer.greet()
                try await peer.tell(last)
                _ = try await peer.end()
            }
            #expect(code(result) == .misbehavingPeer)
            #expect(try await store.waiting().map(\.count) == [opening == 2 ? 4 : 3])
            #expect(try await store.waiting().map(\.committedThrough) == [0])
            // What was sent in earlier openings is not known one by one, and taken.
            if opening == 2 {
                _ = try await meet(store) { peer in
                    try await peer.greet()
                    try await peer.tell(Position(epoch: first, sequence: 3))
                    let items = try await peer.next {
                        if case .records(_, _, _, let items) = $0 { items } else { nil }
                    }
                    #expect(items.map(\.sequence) == [4])
                    peer.channel.close()
                }
                #expect(try await store.waiting().map(\.count) == [1])
            }
            await store.close()
        }

        /// A receiver that comes from a backup commits again what it had committed.
        @Test func acknowledgementsDoNotMoveBackwards() async throws {
            let store = try tests.open("a")
            for _ in 0..<2 {
                try await store.append(contentsOf: [[1], [2], [3]], to: "p")
                _ = try await meet(store) { peer in
                    try await peer.greet()
                    try await peer.tell(nil)
                    let items = try await peer.next {
                        if case .records(_, _, _, let items) = $0 { items } else { nil }
                    }
                    let last = try #require(items.last?.sequence)
                    try await peer.say(.committed(granted: 1 << 40, through: [.init(index: 0, sequence: last)]))
                    try await until("all is forgotten") { try await store.waiting().map(\.count) == [0] }
                    peer.channel.close()
                }
            }
            #expect(try await store.waiting().map(\.committedThrough) == [6])
            let epoch = store.epoch
            _ = try await store.read { database, book in
                try store.acknowledge(Position(epoch: epoch, sequence: 2), of: 1, database, &book)
            }
            #expect(try await store.waiting().map(\.committedThrough) == [6])
            await store.close()
        }

        // MARK: Epochs

        static let strangeEpochs = [
            Epoch(generation: 5, nonce: 8), Epoch(generation: 6, nonce: 7),
            Epoch(generation: UInt64(Int64.max), nonce: 7),
        ]

        @Test(arguments: strangeEpochs) func recordsOfAnEpochThatCannotBeAreRefused(_ epoch: Epoch) async throws {
            let store = try tests.open("a")
            let result = try await meet(store, as: "p", { try Peer($0, generation: 5, nonce: 7) }) { peer in
                try await peer.greet()
                try await peer.say(.open(index: 0, name: "s", acknowledged: nil))
                _ = try await peer.next { if case .position = $0 { true } else { nil } }
                try await peer.say(.records(index: 0, epoch: epoch, previous: 0, [.init(sequence: 1, bytes: [])]))
                _ = try await peer.end()
            }
            #expect(code(result) == .misbehavingPeer)
            #expect(try await store.undone() == 0)
            await store.close()
        }

        /// A sender that draws a new epoch for each record.
        @Test func epochsOfAStreamAreBounded() async throws {
            let store = try tests.open("a")
            let most = RecordStore.largestEpochCount
            try await store.read { database, book in
                let peer = try book.peer(named: "p", database)
                let stream = try book.makeInbound("s", of: peer, database)
                for number in 1...UInt64(most + 100) {
                    let epoch = Epoch(generation: number, nonce: number)
                    _ = try store.store([.init(sequence: 1, bytes: [1])], epoch, in: stream, database, &book)
                }
            }
            let (count, oldest) = try await store.read { database, _ in
                let row = try Row.fetchOne(
                    database, sql: "SELECT count(*) AS n, min(generation) AS g FROM ferry_position")
                return (row?["n"] ?? 0, row?["g"] ?? 0) as (Int, Int)
            }
            #expect(count == most && oldest == 101)
            #expect(try await store.undone() == most + 100)
            await store.close()
        }
    }
#endif
