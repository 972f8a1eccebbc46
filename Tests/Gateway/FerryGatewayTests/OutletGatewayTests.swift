#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import GatewayRig
    import Synchronization
    import TestSupport
    import Testing

    /// A peer, and a gateway to an outlet in memory, whose server forgets, halts, is full and refuses.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct OutletGatewayTests {
        /// A server and the outlet to it.
        private final class Memory: Outlet {
            struct State {
                var taken: [OutletMessage] = []
                var connections: UInt64 = 1
                /// What each message is answered with, beginning with the first; `taken` when there is none left.
                var answers: [OutletAnswer] = []
                /// Streams whose messages are refused.
                var refused: Set<String> = []
                var onTheirWay: Set<OutletMessage.Lane> = []
                var overlaps = 0
                var isClosed = false
            }

            let state = Mutex(State())

            var connections: UInt64 { state.withLock { $0.connections } }

            func publish(_ message: OutletMessage) async -> OutletAnswer {
                state.withLock { state in
                    if !state.onTheirWay.insert(message.lane).inserted { state.overlaps += 1 }
                }
                await Task.yield()
                return state.withLock { state in
                    state.onTheirWay.remove(message.lane)
                    if state.isClosed { return .gone(FerryError(.closed, "It is closed.")) }
                    if state.refused.contains(message.lane.stream) {
                        return .refused(FerryError(.messageTooLarge, "It is too large."))
                    }
                    let answer = state.answers.isEmpty ? .taken(isDuplicate: false) : state.answers.removeFirst()
                    if answer.isTaken { state.taken.append(message) }
                    return answer
                }
            }

            func close() async { state.withLock { $0.isClosed = true } }

            /// The server loses what it has taken from this place on, and is connected to again.
            func lose(from place: Int) {
                state.withLock { state in
                    state.taken.removeSubrange(min(place, state.taken.count)...)
                    state.connections += 1
                }
            }

            /// The numbers of each stream in the order of their first arrival.
            var numbers: [String: [Int]] {
                var keys: Set<String> = []
                return state.withLock { $0.taken }.reduce(into: [:]) { numbers, message in
                    guard keys.insert(message.key).inserted else { return }
                    let number = Int(String(decoding: message.bytes, as: UTF8.self)) ?? -1
                    numbers[message.lane.stream, default: []].append(number)
                }
            }
        }

        private static var bounds: OutletGateway.Configuration {
            var bounds = OutletGateway.Configuration(name: "attic")
            bounds.retention = .milliseconds(300)
            bounds.lookInterval = .milliseconds(20)
            bounds.pause = .milliseconds(10)
            return bounds
        }

        private func end(_ running: Task<Void, any Error>, _ setting: GatewaySetting) async {
            running.cancel()
            let error = await #expect(throws: FerryError.self) { try await running.value }
            #expect(error?.code == .cancelled)
            await setting.close()
        }

        @Test func everyRecordArrivesInOrderThoughTheServerAnswersLateOrNot() async throws {
            let setting = try GatewaySetting()
            let memory = Memory()
            let error = FerryError(.timedOut, "Not now.")
            memory.state.withLock {
                $0.answers = [.full(error), .taken(isDuplicate: false), .unanswered(error), .gone(error)]
            }
            let gateway = try OutletGateway(setting.store, Self.bounds) { memory }
            let running = Task<Void, any Error> { try await gateway.run() }
            try await setting.append(0..<120)
            try await setting.collect()
            try await until("all of them") { try await gateway.status().published == 120 }
            #expect(memory.numbers == GatewaySetting.expected(0..<120))
            #expect(memory.state.withLock { $0.overlaps } == 0)
            let first = try #require(memory.state.withLock { $0.taken.first })
            #expect(first.fields.contains(.init("Ferry-Gateway", "attic")))
            #expect(first.key.hasPrefix(first.lane.sender + "/"))
            // They leave when the server had them for long enough.
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
            #expect(try await gateway.status().kept == 0)
            await end(running, setting)
            #expect(memory.state.withLock { $0.isClosed })
        }

        @Test func whatAServerForgetsIsPublishedAgain() async throws {
            let setting = try GatewaySetting()
            let memory = Memory()
            var bounds = Self.bounds
            bounds.retention = .seconds(3600)
            let gateway = try OutletGateway(setting.store, bounds) { memory }
            let running = Task<Void, any Error> { try await gateway.run() }
            try await setting.append(0..<60)
            try await setting.collect()
            try await until("60 records") { try await gateway.status().published == 60 }
            #expect(try await gateway.status().waiting == 60)
            memory.lose(from: 30)
            try await until("all of them") { memory.numbers.values.reduce(0) { $0 + $1.count } == 60 }
            #expect(memory.numbers == GatewaySetting.expected(0..<60))
            #expect(try await gateway.status().repetitions == 1)
            await end(running, setting)
        }

        @Test func aRefusedRecordHoldsItsStreamOnly() async throws {
            let setting = try GatewaySetting()
            let memory = Memory()
            memory.state.withLock { $0.refused = ["s1"] }
            let gateway = try OutletGateway(setting.store, Self.bounds) { memory }
            let running = Task<Void, any Error> { try await gateway.run() }
            try await setting.append(0..<30)
            try await setting.collect()
            try await until("the other streams") { try await gateway.status().published == 20 }
            var wanted = GatewaySetting.expected(0..<30)
            wanted["s1"] = nil
            #expect(memory.numbers == wanted)
            #expect(try await gateway.status().trouble == "It is too large.")
            await end(running, setting)
        }

        @Test func anObserverHearsOfEachRecord() async throws {
            let setting = try GatewaySetting()
            let memory = Memory()
            memory.state.withLock {
                $0.answers = [.full(FerryError(.queueFull, "There is no room."))]
                $0.refused = ["s1"]
            }
            let journal = GatewayJournal { [.init("x-name", $0.name)] }
            let gateway = try OutletGateway(setting.store, Self.bounds, observer: journal) { memory }
            let running = Task<Void, any Error> { try await gateway.run() }
            try await setting.append(0..<30)
            try await setting.collect()
            try await until("the other streams") { try await gateway.status().published == 20 }
            let status = try await gateway.status()
            #expect(status.held == 1 && status.oldest > .zero)
            try await until("each is told") { journal.published.count == 20 }
            #expect(Set(journal.read.map(\.name)).count == 30)
            #expect(
                journal.published.allSatisfy { $0.sequence == nil && !$0.isDuplicate && $0.sinceRead >= $0.publishing })
            #expect(Set(journal.putOff.map(\.error)) == [.queueFull, .messageTooLarge])
            #expect(journal.putOff.filter(\.isHeld).map(\.error) == [.messageTooLarge])
            // What it gives a record goes with it.
            let taken = memory.state.withLock { $0.taken }
            #expect(taken.allSatisfy { $0.fields.contains(.init("x-name", $0.key)) })
            try await until("what was answered for has left") { journal.released == 20 }
            memory.lose(from: 0)
            try await until("all is published again") {
                journal.events.contains { if case .repeats = $0 { true } else { false } }
            }
            await end(running, setting)
            #expect(journal.servers(.stream) == [""])
        }

        @Test func anOutletThatCannotBeOpenedIsOpenedLater() async throws {
            let setting = try GatewaySetting()
            let memory = Memory()
            let attempts = Mutex(0)
            let gateway = try OutletGateway(setting.store, Self.bounds) { () throws(FerryError) in
                let attempt = attempts.withLock { attempts in
                    attempts += 1
                    return attempts
                }
                guard attempt > 2 else { throw FerryError(.timedOut, "Nobody answers.") }
                return memory
            }
            let running = Task<Void, any Error> { try await gateway.run() }
            try await setting.append(0..<3)
            try await setting.collect()
            try await until("three records") { try await gateway.status().published == 3 }
            #expect(attempts.withLock { $0 } == 3)
            await end(running, setting)
        }

        @Test func boundsAreChecked() throws {
            let setting = try GatewaySetting()
            let changes: [(inout OutletGateway.Configuration) -> Void] = [
                { $0.name = "" }, { $0.retention = .seconds(-1) }, { $0.lookInterval = .zero },
                { $0.maximumInFlight = 0 }, { $0.pause = .zero },
            ]
            for change in changes {
                var bounds = Self.bounds
                change(&bounds)
                let error = #expect(throws: FerryError.self) {
                    _ = try OutletGateway(setting.store, bounds) { Memory() }
                }
                #expect(error?.code == .invalidConfiguration)
            }
        }
    }
#endif
