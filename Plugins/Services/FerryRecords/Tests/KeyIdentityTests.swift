#if Records
    import Ferry
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Stores whose peers prove keys: what a peer says of itself is bound to its key.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct KeyIdentityTests {
        let tests: ExchangeTests
        private let victim = "victim-key"
        private let mallory = "mallory-key"

        init() throws { tests = try ExchangeTests() }

        /// Exchanges of `store` with `other`, which has proven a key, or none, until nothing waits in `other`.
        private func meet(_ store: RecordStore, _ other: RecordStore, key: String?) async throws {
            repeat {
                try await meetOnce(store, other, key: key)
            } while try await other.waiting().contains { $0.count > 0 }
        }

        private func meetOnce(_ store: RecordStore, _ other: RecordStore, key: String?) async throws {
            let identity =
                key.map { PeerIdentity($0, certainty: .key) } ?? PeerIdentity("tcp:1", certainty: .connection)
            let (near, far) = PacketLink.pair(near: PeerIdentity("hub", certainty: .connection), far: identity)
            async let theirs = Result {
                try await other.exchange(
                    over: MessageChannel(over: far, codec: BytesCodec()), with: "hub", endingWhenIdle: .milliseconds(50)
                )
            }
            let channel = try MessageChannel(over: near, codec: BytesCodec())
            #expect(channel.peer == identity)
            let ours = await Result { try await store.exchange(over: channel, endingWhenIdle: .milliseconds(50)) }
            _ = await theirs
            _ = try ours.get()
        }

        /// One that says the victim's store, with bytes of the test's own.
        private func claim(
            _ store: RecordStore, _ other: StoreID, key: String?, _ body: (HostilePeerTests.Peer) async throws -> Void
        ) async throws -> FerryError? {
            let identity =
                key.map { PeerIdentity($0, certainty: .key) } ?? PeerIdentity("tcp:2", certainty: .connection)
            let (near, far) = PacketLink.pair(near: PeerIdentity("hub", certainty: .connection), far: identity)
            let channel = try MessageChannel(over: near, codec: BytesCodec())
            let exchange = Task { try await store.exchange(over: channel) }
            let peer = try HostilePeerTests.Peer(far, id: other)
            try await body(peer)
            peer.channel.close()
            do {
                _ = try await exchange.value
                return nil
            } catch { return error as? FerryError }
        }

        private func store(_ name: String, strangers: Bool = true) throws -> RecordStore {
            try tests.open(name) { $0.acceptsStrangers = strangers }
        }

        /// `gateway/impersonate`: a stranger that says the victim's store learns its epoch, forges a sequence far ahead, and takes what
        /// waits for the victim.
        @Test(arguments: ["mallory-key", nil] as [String?]) func anotherKeyIsRefusedAndToldNothing(_ key: String?)
            async throws
        {
            let (gateway, peer) = (try store("gateway"), try store("peer"))
            try await peer.append(bytes("1"), to: "hub")
            try await meet(gateway, peer, key: victim)
            #expect(try await gateway.peers().map(\.name) == ["key:\(victim)"])
            #expect(try await gateway.peers().map(\.key) == [victim])
            try await gateway.append(bytes("for the victim alone"), to: "key:\(victim)")
            let error = try await claim(gateway, peer.id, key: key) { stranger in
                try await stranger.greet()
                var isMet = false
                var code: UInt8?
                var messages = stranger.channel.messages.makeAsyncIterator()
                while let message = try await messages.next() {
                    switch try RecordsMessage(message) {
                    case .met, .open, .records: isMet = true
                    case .end(let ending, let text):
                        code = ending
                        #expect(!text.contains(victim) && !text.contains("\(peer.id)"), "\(text)")
                    default: break
                    }
                }
                #expect(!isMet && code == RecordsMessage.EndCode.identity.rawValue)
            }
            #expect(error?.code == .strangePeer)
            #expect(error?.message.contains(victim) == true, "\(String(describing: error))")
            #expect(error?.message.contains(key ?? "no key") == true)
            // The honest peer loses nothing: its next records arrive, and the order is its.
            try await peer.append(bytes("2"), to: "hub")
            try await meet(gateway, peer, key: victim)
            #expect(try await tests.take(2, from: gateway) == ["1", "2"])
            try await until("the order is there") {
                try await meetOnce(gateway, peer, key: victim)
                return try await peer.undone() == 1
            }
            #expect(try await tests.take(1, from: peer) == ["for the victim alone"])
            await gateway.close()
            await peer.close()
        }

        /// The name is the caller's, as in a fleet: the key is bound to it, and nobody without the key is let in under it.
        @Test func aNameThatIsGivenIsBoundToTheKey() async throws {
            let (gateway, peer) = (try store("gateway"), try store("peer"))
            func visit(_ key: String?) async throws {
                let identity =
                    key.map { PeerIdentity($0, certainty: .key) } ?? PeerIdentity("tcp:1", certainty: .connection)
                let (near, far) = PacketLink.pair(near: PeerIdentity("hub", certainty: .connection), far: identity)
                async let theirs = Result {
                    try await peer.exchange(
                        over: MessageChannel(over: far, codec: BytesCodec()), with: "hub",
                        endingWhenIdle: .milliseconds(50))
                }
                let ours = await Result {
                    try await gateway.exchange(
                        over: MessageChannel(over: near, codec: BytesCodec()), with: "press-7",
                        endingWhenIdle: .milliseconds(50))
                }
                _ = await theirs
                _ = try ours.get()
            }
            try await visit(nil)
            try await visit(victim)
            for key in [mallory, nil] {
                let error = await #expect(throws: FerryError.self) { try await visit(key) }
                #expect(error?.code == .strangePeer && error?.message.contains("press-7") == true)
            }
            try await gateway.forgetIdentity(of: "press-7")
            try await visit(mallory)
            await gateway.close()
            await peer.close()
        }

        /// A store of before keys: its peer is told apart, and is not taken over by whoever has any key.
        @Test func aPeerOfBeforeKeysIsToldApart() async throws {
            let (gateway, peer) = (try store("gateway"), try store("peer"))
            try await peer.append(bytes("1"), to: "hub")
            try await meet(gateway, peer, key: nil)
            let error = await #expect(throws: FerryError.self) { try await meet(gateway, peer, key: victim) }
            #expect(error?.code == .strangePeer && error?.message.contains("store:\(peer.id)") == true)
            try await gateway.forgetIdentity(of: "store:\(peer.id)")
            try await peer.append(bytes("2"), to: "hub")
            try await meet(gateway, peer, key: victim)
            #expect(try await gateway.peers().map(\.name) == ["key:\(victim)", "store:\(peer.id)"])
            #expect(try await gateway.peers().map(\.key) == [victim, nil])
            #expect(try await tests.take(2, from: gateway).sorted() == ["1", "2"])
            await gateway.close()
            await peer.close()
        }

        @Test func aStrangersKeyIsAStranger() async throws {
            let (gateway, peer) = (try store("gateway", strangers: false), try store("peer"))
            try await peer.append(bytes("1"), to: "hub")
            let error = await #expect(throws: FerryError.self) { try await meet(gateway, peer, key: mallory) }
            #expect(error?.code == .strangePeer)
            #expect(try await gateway.peers().isEmpty)
            await gateway.close()
            await peer.close()
        }

        @Test func schema3OpensAndItsRowsHold() async throws {
            let path = tests.folder.file("old")
            let peer = try store("peer")
            let known = Book.Peer(id: 1, name: "known")
            let database = try DatabaseQueue(path: path)
            try await database.writeWithoutTransaction { database in
                try Schema.prepare(database, at: path, Array(Schema.migrations.dropLast()))
                try database.execute(
                    sql: "INSERT INTO ferry_peer (id, name, checksum) VALUES (1, 'known', ?)",
                    arguments: [known.checksum.column])
            }
            try database.close()
            let new = try RecordStore.open(path)
            try await peer.append(bytes("1"), to: "hub")
            try await meet(new, peer, key: victim)
            #expect(try await new.peers().map(\.key) == [victim, nil])
            await new.close()
            await peer.close()
        }
    }

    extension Result where Failure == any Error {
        fileprivate init(_ body: () async throws -> Success) async {
            do { self = .success(try await body()) } catch { self = .failure(error) }
        }
    }
#endif
