#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryFleet
    import FerryGateway
    import FerryLoopback
    import FerryRecords
    import Foundation
    import GatewayRig
    import Synchronization
    import TestSupport
    import Testing

    /// What an observer is told of leases and visits, beside what the keeper counts itself.
    @Suite(
        .tags(.records, .fleet), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct FleetObserverTests {
        @Test func leasesAndVisitsAreToldFromBeginToEnd() async throws {
            let setting = try GatewaySetting()
            try await setting.server.start()
            let radio = LoopbackRadio()
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let transport = GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
            let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
            let serving = Task {
                for await link in listener.links {
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    _ = try? await setting.peer.exchange(over: channel, with: "gateway")
                }
            }
            try await setting.append(0..<50)

            let journal = GatewayJournal()
            let keeper = try LeaseKeeper(.init(short: "one", setting.server), observer: journal)
            var bounds = PeerRounds.Configuration()
            bounds.interval = .milliseconds(50)
            bounds.idle = .milliseconds(200)
            bounds.connectTimeout = .unreached
            let isGone = Atomic(false)
            let rounds = try PeerRounds(setting.store, keeper, configuration: bounds, observer: journal) {
                (_, timeout) throws(FerryError) in
                guard !isGone.load(ordering: .relaxed) else { throw FerryError(.peerNotFound, "It has gone home.") }
                return try await transport.connect(timeout: timeout)
            }
            let running = Task {
                async let ears: Void = repeatedly { keeper.heard("press-7", signal: -50) }
                try await keeper.run(rounds)
                await ears
            }
            try await setting.peer.drained("gateway", within: .unreached)
            try await until("50 records of visits") { journal.visits.reduce(0) { $0 + ($1.received ?? 0) } == 50 }
            #expect(journal.visits.allSatisfy { $0.failure == nil ? $0.sent == 0 : $0.sent == nil })
            isGone.store(true, ordering: .relaxed)
            try await until("a visit in vain") { journal.visits.contains { $0.failure == .peerNotFound } }
            let failed = try #require(journal.visits.first { $0.failure == .peerNotFound })
            #expect(failed.message == "It has gone home." && failed.received == nil)
            running.cancel()
            _ = await running.result

            try await until("the end of each lease") {
                journal.events.count { if case .leaseEnded = $0 { true } else { false } } == keeper.status.begun
            }

            // Of a lease, what began and ended under which token; and how often the bucket was asked.
            var open: [String: FencingToken] = [:], begun = 0, late = 0, visits = 0
            var answers: [LeaseAnswer] = []
            for event in journal.events {
                switch event {
                case .leaseBegan(let peer, let token):
                    #expect(open.updateValue(token, forKey: peer) == nil)
                    begun += 1
                case .leaseEnded(let peer, let token, let isLate):
                    #expect(token != nil && open.removeValue(forKey: peer) == token)
                    late += isLate ? 1 : 0
                case .leaseAnswered(let peer, let answer):
                    #expect(peer == "press-7")
                    answers.append(answer)
                case .visitBegan(let peer):
                    #expect(open[peer] != nil)
                    visits += 1
                default: break
                }
            }
            let status = keeper.status
            #expect(open.isEmpty && begun == status.begun && begun >= 1 && late == status.late)
            let stored = answers.count { if case .stored = $0 { true } else { false } }
            #expect(stored == status.stored && answers.count { $0 == .refused } == status.refused)
            #expect(answers.count { $0 == .unknown } == status.unanswered && visits == journal.visits.count)
            #expect(journal.servers(.leases).count >= 1)
            let last = journal.events.last { if case .disconnected = $0 { true } else { false } }
            guard case .disconnected(.leases, isEnding: true)? = last else {
                Issue.record("it ended with \(String(describing: last))")
                return
            }
            listener.close()
            serving.cancel()
            _ = await serving.result
            await setting.close()
        }
    }
#endif
