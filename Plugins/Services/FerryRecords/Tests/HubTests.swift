#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    @Suite(.tags(.records, .recovery), .timeLimit(.minutes(5))) struct HubTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        private var configuration: RecordHub.Configuration {
            var configuration = RecordHub.Configuration()
            configuration.turn = .milliseconds(100)
            configuration.idle = .milliseconds(20)
            configuration.firstBackoff = .milliseconds(10)
            configuration.longestBackoff = .milliseconds(80)
            return configuration
        }

        /// `FERRY_HUB_PEERS` for more: half are connected to, half come, and one takes links and never says a word.
        @Test func everybodyGetsEverythingOnce() async throws {
            let count = ProcessInfo.processInfo.environment["FERRY_HUB_PEERS"].flatMap(Int.init) ?? 10
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SplitMix64(seed: seed)
            let air = HubAir()
            let store = try RecordStore.open(folder.file("hub"))
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let taken = Shared<[String: [Int]]>([:])
            let taking = HubMember.take(store, into: taken)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            let members = try (0..<count).map { number in
                try HubMember("p\(number)", folder.file("p\(number)"), air, comes: number % 2 == 1)
            }
            let silent = air.listen("silent")
            let held = Task {
                var channels: [MessageChannel<[UInt8], [UInt8]>] = []
                for await link in silent.links {
                    if let channel = try? MessageChannel(over: link, codec: BytesCodec()) { channels.append(channel) }
                }
            }
            try await store.append(bytes("0"), to: "address:silent")

            let rounds = 20
            for round in 0..<rounds {
                for member in members {
                    air.setAway(member.name, random.chance(33))
                    try await store.append(
                        bytes("\(round)"), to: "address:\(member.name)", stream: "s\(random.below(2))",
                        priority: random.chance(10) ? .urgent : .normal)
                    if random.chance(30) { try await member.store.append(bytes("\(round)"), to: "address:hub") }
                }
                let states = try await hub.states()
                let busy = states.count { [.connecting, .exchanging].contains($0.phase) }
                #expect(busy <= configuration.slots, "seed \(seed): \(states)")
            }
            for member in members { air.setAway(member.name, false) }
            for member in members {
                try await store.drained("address:\(member.name)", within: .unreached)
                // What a peer that is connected to has, goes with what waits for it.
                if member.comes { try await member.store.drained("address:hub", within: .unreached) }
            }
            for member in members {
                let all = { member.taken.value.values.joined().sorted() }
                try await until("\(member.name)'s records") { all().count >= rounds }
                #expect(all() == Array(0..<rounds), "seed \(seed): \(member.name) has \(member.taken.value)")
                for numbers in member.taken.value.values {
                    #expect(numbers == numbers.sorted(), "seed \(seed): \(member.name)")
                }
            }
            for (name, numbers) in taken.value {
                #expect(numbers == Array(Set(numbers)).sorted(), "seed \(seed): \(name) has sent \(numbers)")
            }
            #expect(air.mostAttempts <= configuration.attempts + count / 2)
            let left = try await hub.states().filter { $0.records > 0 }
            #expect(left.map(\.peer) == ["address:silent"], "seed \(seed): \(left)")

            running.cancel()
            #expect(await running.value?.code == .cancelled)
            silent.close()
            held.cancel()
            taking.cancel()
            for member in members { await member.end() }
            await taking.value
            await store.close()
        }

        @Test func statesSayWhatIsTheMatter() async throws {
            let air = HubAir()
            let store = try RecordStore.open(folder.file("hub"))
            try await store.append(bytes("1"), to: "address:nobody")
            try await store.append(bytes("1"), to: "some name")
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            func state(_ peer: String) async throws -> RecordHub.PeerState? {
                try await hub.states().first { $0.peer == peer }
            }
            try await until("the failure") { try await state("address:nobody")?.failure != nil }
            #expect(try await state("address:nobody")?.failure?.code == .peerNotFound)
            let expected = try #require(try await state("some name"))
            #expect(expected.phase == .expected && expected.records == 1 && expected.bytes == 1)
            await #expect(throws: FerryError.self) { try await hub.run() }
            // The hub ends with its store.
            await store.close()
            #expect(await running.value?.code == .closed)
        }

        /// One slot, and two peers that stay: the one whose turn is over is told so, and has not failed.
        @Test func aTurnThatIsOverIsNoFailure() async throws {
            let air = HubAir()
            let store = try RecordStore.open(folder.file("hub"))
            var configuration = configuration
            (configuration.slots, configuration.idle) = (2, .seconds(600))
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            let endings = Shared<[RecordStore.Summary]>([])
            let peers = try ["a", "b"].map { name in
                let peer = try RecordStore.open(folder.file(name))
                let listener = air.listen(name)
                return (
                    peer, listener,
                    Task {
                        for await link in listener.links {
                            let channel = try MessageChannel(over: link, codec: BytesCodec())
                            let summary = try await peer.exchange(over: channel, with: "address:hub")
                            endings.value.append(summary)
                        }
                    }
                )
            }
            for name in ["a", "b", "a", "b"] {
                try await store.append(bytes("1"), to: "address:\(name)")
                try await store.drained("address:\(name)", within: .unreached)
            }
            try await until("three turns are over") { endings.value.count >= 3 }
            // A machine that stands still for a turn makes that one of no record.
            #expect(endings.value.allSatisfy { !$0.isComplete && $0.received <= 1 }, "\(endings.value)")
            let failures = try await hub.states().compactMap(\.failure)
            #expect(failures.isEmpty, "\(failures)")
            running.cancel()
            #expect(await running.value?.code == .cancelled)
            for (peer, listener, task) in peers {
                listener.close()
                try await task.value
                await peer.close()
            }
            await store.close()
        }

        /// A link that takes nothing cannot carry a farewell, and holds its slot for 5 s more.
        @Test func aFarewellHasFiveSeconds() async throws {
            let (time, transport) = (VirtualTime(), DeafPeers())
            let store = try RecordStore.open(folder.file("hub"), time: time)
            var configuration = configuration
            configuration.slots = 2
            let hub = try RecordHub(store, over: transport, configuration: configuration)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            try await store.append(bytes("1"), to: "address:a")
            try await until("a is connected to") { transport.connected.value == ["a"] }
            try await store.append(bytes("1"), to: "address:b")
            // The turn is over, and then the farewell is.
            try await until("the turn") { time.nextDeadline == .zero + configuration.turn }
            time.advance(by: configuration.turn)
            try await until("the farewell") { time.nextDeadline == time.now + .seconds(5) }
            time.advance(by: .milliseconds(4_999))
            #expect(transport.closed.value == 0)
            time.advance(by: .milliseconds(1))
            try await until("a is left for b") {
                transport.connected.value == ["a", "b"] && transport.closed.value == 1
            }
            running.cancel()
            #expect(await running.value?.code == .cancelled)
            await store.close()
        }

        @Test func everyVisitIsTold() async throws {
            let air = HubAir()
            let store = try RecordStore.open(folder.file("hub"))
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let visits = Shared<[RecordHub.Visit]>([])
            hub.onVisit { visits.value.append($0) }
            func first(_ isIt: (RecordHub.Visit) -> Bool) async throws -> RecordHub.Visit? {
                try await until("a visit") { visits.value.contains(where: isIt) }
                return visits.value.first(where: isIt)
            }
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            let members = try [true, false].map { try HubMember("\($0)", folder.file("\($0)"), air, comes: $0) }
            try await store.append(bytes("1"), to: "address:false")
            try await members[0].store.append(bytes("1"), to: "address:hub")
            let paid = try await first { $0.peer == "address:false" && (try? $0.result.get().committed) == 1 }
            #expect(paid?.hasCome == false)
            let came = try await first { $0.peer == "address:true" && (try? $0.result.get().received) == 1 }
            #expect(came?.hasCome == true && came.map { $0.duration > .zero } == true)

            try await store.append(bytes("1"), to: "address:nobody")
            let absent = try await first { $0.peer == "address:nobody" }
            #expect(absent?.hasCome == false && absent?.identity.name == "nobody")
            #expect(#expect(throws: FerryError.self) { try absent?.result.get() }?.code == .peerNotFound)

            // Somebody who never says who it is, and speaks something else.
            let link = try await air.connect("mallory", to: "hub")
            let channel = try MessageChannel(over: link, codec: BytesCodec())
            try await channel.send(bytes("GET / HTTP/1.1"))
            let strange = try await first { $0.identity.name == "mallory" }
            #expect(strange?.hasCome == true && strange?.peer == nil)
            #expect(#expect(throws: FerryError.self) { try strange?.result.get() }?.code == .misbehavingPeer)
            channel.close()

            running.cancel()
            #expect(await running.value?.code == .cancelled)
            #expect(visits.value.count { $0.identity.name == "mallory" } == 1)
            for member in members { await member.end() }
            await store.close()
        }

        @Test func configurationsOfHubsAreChecked() async throws {
            let store = try RecordStore.open(folder.file("hub"))
            let changes: [(inout RecordHub.Configuration) -> Void] = [
                { $0.slots = 0 }, { $0.slotsForComers = 4 }, { $0.attempts = 0 }, { $0.turn = .zero },
                { $0.longestBackoff = .seconds(1_000_000) }, { $0.waitingWorthPriority = .seconds(-1) },
            ]
            for change in changes {
                var configuration = RecordHub.Configuration()
                change(&configuration)
                let error = #expect(throws: FerryError.self) {
                    try RecordHub(store, over: HubAir().transport(of: "hub"), configuration: configuration)
                }
                #expect(error?.code == .invalidConfiguration)
            }
            await store.close()
        }
    }

    /// Everybody can be connected to, and no link takes anything.
    private struct DeafPeers: Transport {
        let connected = Shared<[String]>([])
        let closed = Shared(0)

        func listen() async throws(FerryError) -> LinkListener { LinkListener {} }

        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            throw FerryError(.peerNotFound, "Say whom to connect to.")
        }

        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            connected.value.append(peer.name)
            return DeafLink(peer: peer, closed: closed)
        }

        private final class DeafLink: Link {
            let peer: PeerIdentity
            let closed: Shared<Int>
            var maximumChunkSize: Int { 20 }

            init(peer: PeerIdentity, closed: Shared<Int>) { (self.peer, self.closed) = (peer, closed) }

            func activate(_ receiver: any LinkReceiver) {}
            func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { false }
            func setReceiving(_ isReceiving: Bool) {}
            func close() { closed.value += 1 }
        }
    }
#endif
