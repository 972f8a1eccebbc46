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

        /// A link that says nothing takes no slot, and a peer for which there is no slot is told so.
        @Test func aSilentLinkTakesNoSlot() async throws {
            let transport = HeldListeners()
            let (store, other) = try (RecordStore.open(folder.file("hub")), RecordStore.open(folder.file("peer")))
            let third = try RecordStore.open(folder.file("third"))
            var configuration = RecordHub.Configuration()
            configuration.slots = 1
            configuration.slotsForComers = 0
            configuration.idle = .unreached
            configuration.turn = .seconds(86_400)
            let hub = try RecordHub(store, over: transport, configuration: configuration)
            let running = Task { await #expect(throws: FerryError.self) { try await hub.run() } }
            try await until("the hub listens") { transport.count == 1 }
            func come() throws -> any Link {
                let (near, far) = PacketLink.pair()
                #expect(transport.last?.offer(near) == true)
                return far
            }
            let silent = try MessageChannel(over: come(), codec: BytesCodec())
            try await other.append(bytes("1"), to: "hub")
            let first = Task {
                try await other.exchange(over: try MessageChannel(over: come(), codec: BytesCodec()), with: "hub")
            }
            try await until("the peer's record is there") { try await store.undone() == 1 }
            try await third.append(bytes("1"), to: "hub")
            let refused = try await third.exchange(
                over: try MessageChannel(over: come(), codec: BytesCodec()), with: "hub")
            #expect(refused.ending.reason?.contains("The only place is taken. Try again later.") == true, "\(refused)")
            #expect(silent.closeReason == nil)
            running.cancel()
            _ = await running.value
            _ = try? await first.value
            silent.close()
            for store in [store, other, third] { await store.close() }
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
