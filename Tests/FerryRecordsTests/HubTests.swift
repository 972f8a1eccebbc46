#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Who can be reached at present, and the links between them.
    private final class Air: Sendable {
        private struct State {
            var listeners: [String: LinkListener] = [:]
            var away: Set<String> = []
            var links: [String: [PacketLink]] = [:]
            var attempts = 0
            var mostAttempts = 0
        }

        private let state = Mutex(State())
        var mostAttempts: Int { state.withLock { $0.mostAttempts } }

        func transport(of name: String) -> AirTransport { AirTransport(air: self, name: name) }

        func setAway(_ name: String, _ isAway: Bool) {
            let links = state.withLock { state -> [PacketLink] in
                if !isAway { state.away.remove(name) } else { state.away.insert(name) }
                return isAway ? state.links.removeValue(forKey: name) ?? [] : []
            }
            for link in links { link.close() }
        }

        func listen(_ name: String) -> LinkListener {
            let listener = LinkListener { [weak self] in
                _ = self?.state.withLock { $0.listeners.removeValue(forKey: name) }
            }
            state.withLock { $0.listeners[name] = listener }
            return listener
        }

        func connect(_ name: String, to other: String) async throws(FerryError) -> any Link {
            state.withLock { state in
                state.attempts += 1
                state.mostAttempts = max(state.mostAttempts, state.attempts)
            }
            defer { state.withLock { $0.attempts -= 1 } }
            try? await Task.sleep(for: .milliseconds(2))
            let (near, far) = PacketLink.pair(
                near: PeerIdentity(name, certainty: .address), far: PeerIdentity(other, certainty: .address))
            let listener = state.withLock { state -> LinkListener? in
                guard state.away.isDisjoint(with: [name, other]) else { return nil }
                for end in [name, other] { state.links[end, default: []] += [near, far] }
                return state.listeners[other]
            }
            guard listener?.offer(far) == true else {
                for link in [near, far] { link.close() }
                throw FerryError(.peerNotFound, "\(other) is away.")
            }
            return near
        }
    }

    private struct AirTransport: Transport {
        let air: Air
        let name: String

        func listen() async throws(FerryError) -> LinkListener { air.listen(name) }

        func connect(timeout: Duration) async throws(FerryError) -> any Link { try await air.connect(name, to: "hub") }

        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            try await air.connect(name, to: peer.name)
        }
    }

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

        /// A peer: its store, what its app has taken, and what runs for it.
        private struct Member {
            let name: String
            let store: RecordStore
            let comes: Bool
            let taken = Shared<[String: [Int]]>([:])
            let tasks: [Task<Void, Never>]

            init(_ name: String, _ path: String, _ air: Air, comes: Bool) throws {
                let store = try RecordStore.open(path)
                (self.name, self.store, self.comes) = (name, store, comes)
                let transport = air.transport(of: name)
                let serve = Task {
                    while !Task.isCancelled {
                        if comes {
                            if let link = try? await transport.connect(timeout: .seconds(5)) { await meet(link) }
                            try? await Task.sleep(for: .milliseconds(5))
                        } else if let listener = try? await transport.listen() {
                            for await link in listener.links { await meet(link) }
                        }
                    }
                }
                @Sendable func meet(_ link: any Link) async {
                    guard let channel = try? MessageChannel(over: link, codec: BytesCodec()) else { return }
                    // It ends with the link, which breaks or is ended by the hub.
                    _ = try? await store.exchange(
                        over: channel, with: "address:hub", endingWhenIdle: comes ? .milliseconds(20) : nil)
                }
                tasks = [serve, Self.take(store, into: taken)]
            }

            /// What comes into an inbox, by sender and stream.
            static func take(_ store: RecordStore, into taken: Shared<[String: [Int]]>) -> Task<Void, Never> {
                Task {
                    do {
                        for try await record in store.inbox {
                            let number = Int(String(decoding: record.bytes, as: UTF8.self)) ?? -1
                            taken.value["\(record.peer) \(record.id.stream)", default: []].append(number)
                            try await record.done()
                        }
                    } catch { Issue.record(error) }
                }
            }
        }

        /// `FERRY_HUB_PEERS` for more: half are connected to, half come, and one takes links and never says a word.
        @Test func everybodyGetsEverythingOnce() async throws {
            let count = ProcessInfo.processInfo.environment["FERRY_HUB_PEERS"].flatMap(Int.init) ?? 10
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SplitMix64(seed: seed)
            let air = Air()
            let store = try RecordStore.open(folder.file("hub"))
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let taken = Shared<[String: [Int]]>([:])
            let taking = Member.take(store, into: taken)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            let members = try (0..<count).map { number in
                try Member("p\(number)", folder.file("p\(number)"), air, comes: number % 2 == 1)
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
                try await store.drained("address:\(member.name)", within: .seconds(60))
                // What a peer that is connected to has, goes with what waits for it.
                if member.comes { try await member.store.drained("address:hub", within: .seconds(60)) }
            }
            for member in members {
                let all = { member.taken.value.values.joined().sorted() }
                let isThere = await eventually { all().count >= rounds }
                #expect(isThere && all() == Array(0..<rounds), "seed \(seed): \(member.name) has \(member.taken.value)")
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
            for task in members.flatMap(\.tasks) + [taking] { task.cancel() }
            for member in members {
                for task in member.tasks { await task.value }
                await member.store.close()
            }
            await taking.value
            await store.close()
        }

        @Test func statesSayWhatIsTheMatter() async throws {
            let air = Air()
            let store = try RecordStore.open(folder.file("hub"))
            try await store.append(bytes("1"), to: "address:nobody")
            try await store.append(bytes("1"), to: "some name")
            let hub = try RecordHub(store, over: air.transport(of: "hub"), configuration: configuration)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            func state(_ peer: String) async throws -> RecordHub.PeerState? {
                try await hub.states().first { $0.peer == peer }
            }
            let deadline = ContinuousClock.now + .seconds(30)
            while try await state("address:nobody")?.failure == nil, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(try await state("address:nobody")?.failure?.code == .peerNotFound)
            let expected = try #require(try await state("some name"))
            #expect(expected.phase == .expected && expected.records == 1 && expected.bytes == 1)
            await #expect(throws: FerryError.self) { try await hub.run() }
            // The hub ends with its store.
            await store.close()
            #expect(await running.value?.code == .closed)
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
                    try RecordHub(store, over: Air().transport(of: "hub"), configuration: configuration)
                }
                #expect(error?.code == .invalidConfiguration)
            }
            await store.close()
        }
    }
#endif
