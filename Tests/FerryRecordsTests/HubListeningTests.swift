#if Records
    import Ferry
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords

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
            #expect(told.withLock { $0 } == ["off", "again", "gone", "refused", "again"])

            transport.last?.interrupt(FerryError(.transportUnavailable, "off"))
            try await until("the interruption") { hub.interruption != nil }
            hub.onInterruption { reason in told.withLock { $0 = [reason?.message ?? "again"] } }
            #expect(told.withLock { $0 } == ["off"])
            running.cancel()
            #expect(await running.value?.code == .cancelled)
            await store.close()
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
