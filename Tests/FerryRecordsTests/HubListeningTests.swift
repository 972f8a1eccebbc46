#if Records
    import Ferry
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// A hub says what is in the way of peers that would come, as a listener does.
    @Suite(.tags(.records, .recovery), .timeLimit(.minutes(5))) struct HubListeningTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        @Test func whyNobodyCanComeIsTold() async throws {
            let transport = HeldListeners()
            let store = try RecordStore.open(folder.file("hub"))
            var configuration = RecordHub.Configuration()
            configuration.firstBackoff = .milliseconds(1)
            configuration.longestBackoff = .milliseconds(1)
            let hub = try RecordHub(store, over: transport, configuration: configuration)
            let told = Mutex<[String]>([])
            hub.onInterruption { reason in told.withLock { $0.append(reason?.message ?? "again") } }
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }

            try await until("the hub listens") { transport.count == 1 }
            transport.last?.interrupt(FerryError(.transportUnavailable, "off"))
            try await until("the interruption") { hub.interruption?.message == "off" }
            transport.last?.resume()
            try await until("the end of the interruption") { hub.interruption == nil }
            // Listening ends, cannot begin anew twice, and then can.
            transport.refuse(2)
            transport.last?.fail(FerryError(.transportUnavailable, "gone"))
            try await until("the hub listens again") { transport.count == 2 }
            try await until("the end of the interruption") { hub.interruption == nil }
            let all = ["off", "again", "gone", "refused", "again"]
            try await until("all is told") { told.withLock { $0.count } >= all.count }
            #expect(told.withLock { $0 } == all)

            transport.last?.interrupt(FerryError(.transportUnavailable, "off"))
            try await until("the interruption") { hub.interruption != nil }
            hub.onInterruption { reason in told.withLock { $0 = [reason?.message ?? "again"] } }
            #expect(told.withLock { $0 } == ["off"])
            running.cancel()
            #expect(await running.value?.code == .cancelled)
            await store.close()
        }

        /// A link that says nothing has the only slot, until a peer needs it; and a peer without a slot is told so.
        @Test func aSilentLinkGivesItsSlotUp() async throws {
            let transport = HeldListeners()
            let (store, other) = try (RecordStore.open(folder.file("hub")), RecordStore.open(folder.file("peer")))
            var configuration = RecordHub.Configuration()
            configuration.slots = 1
            configuration.slotsForComers = 0
            let hub = try RecordHub(store, over: transport, configuration: configuration)
            let ended = Journal()
            hub.onVisit { ended.add("\($0.peer ?? "stranger")") }
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            try await until("the hub listens") { transport.count == 1 }
            func come() throws -> any Link {
                let (near, far) = PacketLink.pair()
                #expect(transport.last?.offer(near) == true)
                return far
            }
            let silent = try come()
            let farewell = try MessageChannel(over: silent, codec: BytesCodec())
            try await other.append(bytes("1"), to: "hub")
            var reasons: [String] = []
            try await until("the peer has a slot") {
                let channel = try MessageChannel(over: try come(), codec: BytesCodec())
                let summary = try await other.exchange(over: channel, with: "hub", endingWhenIdle: .milliseconds(300))
                if let reason = summary.ending.reason { reasons.append(reason) }
                return summary.committed == 1
            }
            #expect(reasons.first?.contains("All 1 slots are taken") == true, "\(reasons)")
            var texts: [String] = []
            for try await message in farewell.messages {
                if case .end(_, let text) = try RecordsMessage(message) { texts.append(text) }
            }
            #expect(texts == ["It has not said who it is, and another peer needs the slot."])
            try await ended.wait(for: "stranger")
            running.cancel()
            _ = await running.value
            await store.close()
            await other.close()
        }
    }

    /// Listens, and leaves it to the test what becomes of that.
    private final class HeldListeners: Transport {
        private let state = Mutex<(listeners: [LinkListener], refusals: Int)>(([], 0))

        var count: Int { state.withLock { $0.listeners.count } }
        var last: LinkListener? { state.withLock { $0.listeners.last } }
        /// The next attempts to listen, so many, fail.
        func refuse(_ count: Int) { state.withLock { $0.refusals = count } }

        func listen() async throws(FerryError) -> LinkListener {
            let isRefused = state.withLock { state in
                guard state.refusals > 0 else { return false }
                state.refusals -= 1
                return true
            }
            if isRefused { throw FerryError(.transportUnavailable, "refused") }
            let listener = LinkListener {}
            state.withLock { $0.listeners.append(listener) }
            return listener
        }

        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            throw FerryError(.peerNotFound, "Nobody is there.")
        }

        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            try await connect(timeout: timeout)
        }
    }
#endif
