#if Records
    import Ferry
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// A hub with 200 peers, each with a store of its own on disk, in virtual time.
    ///
    /// Between them are real tasks, threads and files, so time passes only while nothing moves: no chunk crosses and no store has
    /// anything to do. Were a slow machine to let it pass too early, that visit would only take longer.
    @Suite(.tags(.records, .recovery, .slow), .timeLimit(.minutes(10)))
    struct HubStoresTests {
        let folder: Folder

        /// In memory where that can be: 201 files are made and synced, and what a disk keeps is seen elsewhere.
        init() throws { folder = try Folder(inMemory: true) }

        private static var environment: [String: String] { ProcessInfo.processInfo.environment }

        private var configuration: RecordHub.Configuration {
            var configuration = RecordHub.Configuration()
            configuration.slots = 6
            configuration.attempts = 3
            configuration.slotsForComers = 2
            configuration.idle = .seconds(1)
            return configuration
        }

        /// Lets time pass to the next timer whenever nothing moves; while there are links, by no more than half a second.
        private func passing(
            _ time: VirtualTime, _ air: HubAir, _ stores: Shared<[RecordStore]>, _ isHeld: Shared<Bool>
        ) -> Task<Void, Never> {
            Task {
                var (seen, quiet) = (0, 0)
                try? await until("the end of the test") {
                    let chunks = air.chunks
                    let isQuiet = chunks == seen && !isHeld.value && stores.value.allSatisfy(\.committer.isIdle)
                    quiet = isQuiet ? quiet + 1 : 0
                    seen = chunks
                    guard quiet >= 2, let next = time.nextDeadline else { return false }
                    quiet = 0
                    time.advance(to: air.slots > 0 ? min(next, time.now + .milliseconds(500)) : next)
                    return false
                }
            }
        }

        /// Each is away for five minutes of fifteen, so that a third is at any moment and equals have equal chances; 20 come by
        /// themselves, 20 are urgent, and 5 take links and never say a word. `FERRY_HUB_HOURS` of virtual time.
        @Test(.enabled(if: environment["FERRY_HUB_HOURS"] != nil)) func twoHundredPeersWithStores() async throws {
            let rounds = 6 * (try #require(Self.environment["FERRY_HUB_HOURS"].flatMap(Int.init)))
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SplitMix64(seed: seed)
            let time = VirtualTime()
            let air = HubAir(time, setUp: .seconds(1), search: .seconds(5))
            let (isHeld, stores) = (Shared(true), Shared<[RecordStore]>([]))
            let pump = passing(time, air, stores, isHeld)
            defer { pump.cancel() }
            var settings = RecordStore.Configuration()
            (settings.greeting, settings.patience) = (.seconds(600), .seconds(600))
            let store = try RecordStore.open(folder.file("hub"), configuration: settings, time: time)
            let comers = Set((0..<20).map { "address:p\($0)" })
            let hub = try RecordHub(
                store, over: air.transport(of: "hub"), configuration: configuration,
                reach: { comers.contains($0) ? nil : PeerIdentity($0) },
                channel: { link throws(FerryError) in
                    try MessageChannel(over: link, codec: BytesCodec(), time: time)
                })
            let taken = Shared<[String: [Int]]>([:])
            let taking = HubMember.take(store, into: taken)
            let members = try (0..<195).map { number in
                try HubMember(
                    "p\(number)", folder.file("p\(number)"), air, comes: number < 20, every: .seconds(300),
                    idle: .seconds(1), configuration: settings)
            }
            stores.value = members.map(\.store) + [store]
            let damaged = (0..<5).map { air.listen("damaged\($0)") }
            let held = damaged.map { listener in
                Task {
                    var channels: [MessageChannel<[UInt8], [UInt8]>] = []
                    for await link in listener.links {
                        if let channel = try? MessageChannel(over: link, codec: BytesCodec(), time: time) {
                            channels.append(channel)
                        }
                    }
                }
            }
            for index in damaged.indices { try await store.append(bytes("0"), to: "address:damaged\(index)") }
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }

            var given = [Int](repeating: 0, count: members.count)
            let phases = members.map { _ in random.below(15) }
            for round in 0..<rounds {
                isHeld.value = true
                for (index, member) in members.enumerated() {
                    try await store.append(
                        bytes("\(round)"), to: "address:\(member.name)", stream: "s\(random.below(2))",
                        priority: (20..<40).contains(index) ? .urgent : .normal)
                    if random.chance(20) {
                        try await member.store.append(bytes("\(given[index])"), to: "address:hub")
                        given[index] += 1
                    }
                }
                isHeld.value = false
                for minute in round * 10..<round * 10 + 10 {
                    for (member, phase) in zip(members, phases) {
                        air.setAway(member.name, (minute + phase) % 15 < 5)
                    }
                    try await time.sleep(for: .seconds(60))
                }
            }
            let equals = members[40...].map { Double($0.taken.value.values.reduce(0) { $0 + $1.count }) }
            let fairness = jain(equals)
            #expect(fairness > 0.95, "seed \(seed): \(equals)")

            // Everybody stays near, until nothing waits any more but for the damaged.
            for member in members { air.setAway(member.name, false) }
            let end = time.now + .seconds(4 * 3600)
            var left: [RecordHub.PeerState] = []
            repeat {
                try await time.sleep(for: .seconds(60))
                left = try await hub.states().filter { $0.records > 0 && !$0.peer.hasPrefix("address:damaged") }
            } while time.now < end && !left.isEmpty
            #expect(left.isEmpty, "seed \(seed): \(left)")
            for (index, member) in members.enumerated() {
                let all = { member.taken.value.values.joined().sorted() }
                try await until("\(member.name)'s records") { all().count >= rounds }
                #expect(
                    all() == Array(0..<rounds), "seed \(seed): \(member.name) has \(member.taken.value)")
                for numbers in member.taken.value.values {
                    #expect(numbers == numbers.sorted(), "seed \(seed): \(member.name)")
                }
                // What it has given is with the hub, or waits.
                let waiting = try await member.store.waiting().reduce(0) { $0 + $1.count }
                let (name, expected) = ("address:\(member.name) ", given[index])
                try await until("the records of \(member.name)") {
                    let numbers = taken.value[name] ?? []
                    return numbers == Array(0..<numbers.count) && numbers.count + waiting >= expected
                }
                #expect(taken.value[name]?.count ?? 0 <= expected, "seed \(seed): \(member.name)")
            }
            // Beside the slots are links whose peers have not said who they are, or are told that there is no slot.
            let most = configuration.slots + AcceptingPlan.Configuration(places: 1).greetings
            #expect((4...most).contains(air.mostSlots), "seed \(seed): \(air.mostSlots) links")
            print(
                "hub, 200 stores, \(rounds / 6) hours, seed \(seed): \(members.count * rounds) records arrived, Jain's index",
                "\(fairness) at \(Int(equals.reduce(0, +))) of \(equals.count * rounds), at most \(air.mostSlots) links at once"
            )

            running.cancel()
            #expect(await running.value?.code == .cancelled)
            for listener in damaged { listener.close() }
            for task in held { task.cancel() }
            taking.cancel()
            for member in members { await member.end() }
            await taking.value
            await store.close()
            pump.cancel()
            await pump.value
        }
    }
#endif
