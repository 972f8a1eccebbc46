#if Records
    import Ferry
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Strangers at a hub: what they cost, and what an honest peer notices of them.
    @Suite(.tags(.records, .hostility), .timeLimit(.minutes(5))) struct StrangerTests {
        let tests: ExchangeTests
        var folder: Folder { tests.folder }

        init() throws { tests = try ExchangeTests() }

        /// `FERRY_STRANGERS` for more: 100 000 is what the issue asks for.
        private static var count: Int {
            ProcessInfo.processInfo.environment["FERRY_STRANGERS"].flatMap(Int.init) ?? 300
        }

        /// A hub to whose listener links are handed.
        private struct Rig {
            let store: RecordStore
            let transport: Offered
            let running: Task<Void, Never>

            init(_ store: RecordStore, slots: Int) async throws {
                (self.store, transport) = (store, Offered())
                var configuration = RecordHub.Configuration()
                configuration.slots = slots
                configuration.slotsForComers = slots - 1
                let hub = try RecordHub(store, over: transport, configuration: configuration)
                running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
                let transport = transport
                try await until("the hub listens") { transport.listener.withLock { $0 } != nil }
            }

            /// The far end of a new link.
            func come(_ name: String = "x", _ certainty: PeerIdentity.Certainty = .connection) throws -> any Link {
                let (near, far) = PacketLink.pair(
                    near: PeerIdentity("hub", certainty: .connection), far: PeerIdentity(name, certainty: certainty))
                guard transport.listener.withLock({ $0 })?.offer(near) == true else {
                    near.close()
                    far.close()
                    throw NotYet("too many links wait to be taken")
                }
                return far
            }

            func end() async {
                running.cancel()
                await running.value
            }
        }

        private final class Offered: Transport {
            let listener = Mutex<LinkListener?>(nil)

            func listen() async throws(FerryError) -> LinkListener {
                let new = LinkListener {}
                listener.withLock { $0 = new }
                return new
            }
            func connect(timeout: Duration) async throws(FerryError) -> any Link {
                throw FerryError(.peerNotFound, "Nobody is there.")
            }
            func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
                try await connect(timeout: timeout)
            }
        }

        private func rows(_ store: RecordStore) async throws -> Int {
            try await store.read { database, _ in
                try ["ferry_peer", "ferry_inbound", "ferry_notice"].reduce(0) {
                    $0 + (try Int.fetchOne(database, sql: "SELECT count(*) FROM \($1)") ?? 0)
                }
            }
        }

        /// They say each another store's name, know this one from elsewhere, open a stream, and bring nothing.
        @Test func greetingsLeaveNothingOnTheDisk() async throws {
            let store = try tests.open("hub")
            let rig = try await Rig(store, slots: 4)
            var peers: [HostilePeerTests.Peer] = []
            for number in 1...UInt64(Self.count) {
                let peer = try HostilePeerTests.Peer(try await linkOnceThereIsRoom(rig), store: number)
                try? await peer.say(
                    .hello(peer.hello), .met(seen: Epoch(generation: 1, nonce: number), granted: 1 << 40),
                    .open(index: 0, name: "s", acknowledged: Position(epoch: peer.hello.epoch, sequence: 9)))
                // A quarter goes away, and the others stay as long as they may.
                if number % 4 == 0 { peer.channel.close() } else { peers.append(peer) }
                if peers.count > 200 { peers.removeFirst().channel.close() }
            }
            let honest = try tests.open("honest")
            try await honest.append(bytes("1"), to: "hub")
            // A guest with another's place may be told to come again.
            try await until("the honest peer gets through") {
                let channel = try MessageChannel(over: try await linkOnceThereIsRoom(rig), codec: BytesCodec())
                _ = try? await honest.exchange(over: channel, with: "hub", endingWhenIdle: .milliseconds(50))
                return try await honest.waiting().map(\.count) == [0]
            }
            #expect(try await store.peers().map(\.name) == ["store:\(honest.id)"])
            // Its peer and its stream, and nobody else's.
            #expect(try await rows(store) == 2)
            await rig.end()
            await store.close()
            await honest.close()
        }

        private func linkOnceThereIsRoom(_ rig: Rig) async throws -> any Link {
            var link: (any Link)?
            try await until("there is room for a link") {
                link = try? rig.come()
                return link != nil
            }
            return try #require(link)
        }

        /// Silent links, more than the hub has slots, from the same source: an honest peer is served at its first attempt.
        @Test func silentLinksTakeNoSlot() async throws {
            let store = try tests.open("hub")
            let rig = try await Rig(store, slots: 2)
            var silent: [any Link] = []
            for _ in 0..<Self.count {
                silent.append(try await linkOnceThereIsRoom(rig))
                // The hub has closed the oldest ones long since; each has three descriptors here.
                if silent.count > 400 { silent.removeFirst().close() }
            }
            let honest = try tests.open("honest")
            try await honest.append(bytes("1"), to: "hub")
            let channel = try MessageChannel(over: try await linkOnceThereIsRoom(rig), codec: BytesCodec())
            // A busy machine's hub may take a second to greet.
            let summary = try await honest.exchange(over: channel, with: "hub", endingWhenIdle: .seconds(5))
            #expect(summary.committed == 1)
            for link in silent { link.close() }
            await rig.end()
            await store.close()
            await honest.close()
        }

        /// A guest brings its first record: from then on it is a peer, and what waited for its name goes to it.
        @Test func aGuestBecomesAPeerWithItsFirstRecord() async throws {
            let store = try tests.open("hub")
            let other = try tests.open("other")
            let rig = try await Rig(store, slots: 2)
            // A hub on a busy machine may close a link whose greeting comes late; the peer comes again.
            let peer = Task {
                while !Task.isCancelled {
                    let channel = try MessageChannel(over: try await linkOnceThereIsRoom(rig), codec: BytesCodec())
                    _ = try? await other.exchange(over: channel, with: "hub")
                }
            }
            try await until("it is there") { other.watch.exchange(with: 1) != nil }
            #expect(try await store.peers().isEmpty)
            try await store.append(bytes("order"), to: "store:\(other.id)")
            try await other.append(bytes("1"), to: "hub")
            try await other.drained("hub", within: .unreached)
            try await until("the order arrives") { try await other.undone() == 1 }
            #expect(try await store.peers().map(\.undone) == [1])
            peer.cancel()
            await rig.end()
            _ = try? await peer.value
            await store.close()
            await other.close()
        }

        @Test func aRelayedRecordThatIsNoneWritesNothing() async throws {
            let store = try tests.open("hub")
            let rig = try await Rig(store, slots: 2)
            let peer = try HostilePeerTests.Peer(rig.come())
            try await peer.greet()
            try await peer.say(.open(index: 0, name: "ferry-relay:o:s", acknowledged: nil))
            _ = try await peer.next { if case .position = $0 { true } else { nil } }
            try await peer.say(
                .records(index: 0, epoch: peer.hello.epoch, previous: 0, [.init(sequence: 1, bytes: [0xFF])]))
            _ = try await peer.end()
            #expect(try await rows(store) == 0)
            await rig.end()
            await store.close()
        }

        /// A closure that is itself what a mutex holds is wrapped anew at each look, so that a call takes more stack each time: 100 000
        /// greetings had the next one end the process.
        @Test func askingWhomToTrustTakesNoMoreStackEachTime() async throws {
            let store = try tests.open("hub")
            let places = Mutex<[UInt]>([])
            store.decideTrust { _ in
                var local = 0
                withUnsafeMutablePointer(to: &local) { local in places.withLock { $0.append(UInt(bitPattern: local)) } }
                return .stranger
            }
            for _ in 0..<200 { _ = store.trust(PeerIdentity("x", certainty: .connection)) }
            let found = places.withLock { $0 }
            #expect(found.count == 200 && found.first == found.last)
            await store.close()
        }

        // MARK: Places in the store

        /// A store that knows as many peers as it may: those that left nothing make room, the others stay.
        @Test func peersThatLeftNothingGiveTheirPlacesBack() async throws {
            let store = try tests.open("a")
            try await store.read { database, book in
                for number in 0..<Book.maximumPeers {
                    let id = try book.peer(named: "p\(number)", database)
                    guard var peer = book.peers[id] else { return }
                    peer.met = Int64(Book.maximumPeers - number)
                    try book.setPeer(peer, database)
                }
            }
            try await store.append(bytes("1"), to: "p4095")
            try await store.append(bytes("1"), to: "new")
            let names = Set(try await store.peers().map(\.name))
            #expect(names.count == Book.maximumPeers && names.contains("new") && names.contains("p4095"))
            // Who was met longest ago, of those for whom nothing waits.
            #expect(!names.contains("p4094") && names.contains("p4093"))
            await store.close()
            let again = try tests.open("a")
            #expect(try await again.peers().count == Book.maximumPeers)
            await again.close()
        }

        @Test func forgettingAPeerThatLeftNothingRemovesIt() async throws {
            let (a, b) = (try tests.open("a"), try tests.open("b"))
            try await a.append(bytes("1"), to: "b")
            try await tests.meet(a, b)
            try await b.forgetIdentity(of: "a")
            // It left a record.
            #expect(try await b.peers().map(\.name) == ["a"])
            try await b.append(bytes("1"), to: "c")
            try await b.read { database, book in _ = try book.peer(named: "nobody", database) }
            try await b.forgetIdentity(of: "nobody")
            try await b.forgetIdentity(of: "c")
            #expect(try await b.peers().map(\.name) == ["a", "c"])
            await a.close()
            await b.close()
        }

        /// What comes of a peer that was forgotten meanwhile is not acknowledged.
        @Test func aPeerThatWasForgottenLosesNothing() async throws {
            let store = try tests.open("hub")
            let (near, far) = PacketLink.pair()
            let exchange = Task {
                try await store.exchange(over: try MessageChannel(over: near, codec: BytesCodec()), with: "p")
            }
            let peer = try HostilePeerTests.Peer(far)
            try await peer.greet()
            try await peer.say(.open(index: 0, name: "s", acknowledged: nil))
            _ = try await peer.next { if case .position = $0 { true } else { nil } }
            try await store.forgetIdentity(of: "p")
            #expect(try await store.peers().isEmpty)
            try await peer.say(
                .records(index: 0, epoch: peer.hello.epoch, previous: 0, [.init(sequence: 1, bytes: [1])]))
            _ = try await peer.end()
            let error = await #expect(throws: FerryError.self) { try await exchange.value }
            #expect(error?.code == .closed)
            #expect(try await store.undone() == 0)
            await store.close()
            let again = try tests.open("hub")
            await again.close()
        }
    }
#endif
