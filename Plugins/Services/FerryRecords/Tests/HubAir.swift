#if Records
    import Ferry
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Who can be reached at present, and the links between them.
    final class HubAir: Sendable {
        private struct State {
            var listeners: [String: LinkListener] = [:]
            var away: Set<String> = []
            var links: [String: [PacketLink]] = [:]
            var attempts = 0
            var mostAttempts = 0
            var slots = 0
            var mostSlots = 0
            var chunks = 0
        }

        let time: any TimeSource
        /// How long it takes to set a link up, and to find that somebody is away.
        private let setUp: Duration
        private let search: Duration
        private let state = Mutex(State())

        init(
            _ time: any TimeSource = SystemTime(), setUp: Duration = .milliseconds(2),
            search: Duration = .milliseconds(2)
        ) {
            (self.time, self.setUp, self.search) = (time, setUp, search)
        }

        var mostAttempts: Int { state.withLock { $0.mostAttempts } }
        /// How many links the hub has had at once, with those that were being set up.
        var mostSlots: Int { state.withLock { $0.mostSlots } }
        /// How many it has now.
        var slots: Int { state.withLock { $0.slots } }
        /// How many chunks have crossed the hub's links.
        var chunks: Int { state.withLock { $0.chunks } }

        func transport(of name: String) -> AirTransport { AirTransport(air: self, name: name) }

        func setAway(_ name: String, _ isAway: Bool) {
            let links = state.withLock { state -> [PacketLink] in
                if !isAway { state.away.remove(name) } else { state.away.insert(name) }
                return isAway ? state.links.removeValue(forKey: name) ?? [] : []
            }
            for link in links { link.close() }
        }

        func listen(_ name: String) -> LinkListener {
            let listener = LinkListener(time: time) { [weak self] in
                _ = self?.state.withLock { $0.listeners.removeValue(forKey: name) }
            }
            state.withLock { $0.listeners[name] = listener }
            return listener
        }

        fileprivate func occupy(_ change: Int) {
            state.withLock { state in
                state.slots += change
                state.mostSlots = max(state.mostSlots, state.slots)
            }
        }

        fileprivate func cross() { state.withLock { $0.chunks += 1 } }

        func connect(_ name: String, to other: String) async throws(FerryError) -> any Link {
            state.withLock { state in
                state.attempts += 1
                state.mostAttempts = max(state.mostAttempts, state.attempts)
            }
            defer { state.withLock { $0.attempts -= 1 } }
            let isHubs = name == "hub"
            if isHubs { occupy(1) }
            let isThere = {
                self.state.withLock { $0.away.isDisjoint(with: [name, other]) && $0.listeners[other] != nil }
            }
            try? await time.sleep(for: isThere() ? setUp : search)
            if isThere() {
                let (near, far) = PacketLink.pair(
                    near: PeerIdentity(name, certainty: .address), far: PeerIdentity(other, certainty: .address))
                let listener = state.withLock { state -> LinkListener? in
                    for end in [name, other] where end != "hub" {
                        state.links[end] = (state.links[end] ?? []).suffix(6) + [near, far]
                    }
                    return state.listeners[other]
                }
                if listener?.offer(isHubs ? far : HubLink(far, self)) == true {
                    return isHubs ? HubLink(near, self, isCounted: true) : near
                }
                for link in [near, far] { link.close() }
            }
            if isHubs { occupy(-1) }
            throw FerryError(.peerNotFound, "\(other) is away.")
        }
    }

    struct AirTransport: Transport {
        let air: HubAir
        let name: String

        func listen() async throws(FerryError) -> LinkListener { air.listen(name) }

        func connect(timeout: Duration) async throws(FerryError) -> any Link { try await air.connect(name, to: "hub") }

        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            try await air.connect(name, to: peer.name)
        }
    }

    /// The hub's end of a link. It takes a slot from when it is being set up, or is taken from those that came, to its end.
    private final class HubLink: Link, LinkReceiver {
        private struct State {
            var receiver: (any LinkReceiver)?
            var isCounted: Bool
        }

        private let link: PacketLink
        private let air: HubAir
        private let state: Mutex<State>

        init(_ link: PacketLink, _ air: HubAir, isCounted: Bool = false) {
            (self.link, self.air) = (link, air)
            state = Mutex(State(isCounted: isCounted))
        }

        var peer: PeerIdentity { link.peer }
        var maximumChunkSize: Int { link.maximumChunkSize }

        func activate(_ receiver: any LinkReceiver) {
            let isNew = state.withLock { state in
                defer { state.isCounted = true }
                state.receiver = receiver
                return !state.isCounted
            }
            if isNew { air.occupy(1) }
            link.activate(self)
        }

        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            air.cross()
            return try link.trySend(chunk)
        }

        func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }

        func close() {
            leave()
            link.close()
        }

        func linkIsReady() { state.withLock { $0.receiver }?.linkIsReady() }

        func linkDidReceive(_ chunk: RawSpan) {
            air.cross()
            state.withLock { $0.receiver }?.linkDidReceive(chunk)
        }

        func linkDidClose(_ reason: FerryError) {
            leave()
            let receiver = state.withLock { state in
                defer { state.receiver = nil }
                return state.receiver
            }
            receiver?.linkDidClose(reason)
        }

        private func leave() {
            let wasCounted = state.withLock { state in
                defer { state.isCounted = false }
                return state.isCounted
            }
            if wasCounted { air.occupy(-1) }
        }
    }

    /// A peer: its store, what its app has taken, and what runs for it.
    struct HubMember {
        let name: String
        let store: RecordStore
        let comes: Bool
        let taken = Shared<[String: [Int]]>([:])
        let tasks: [Task<Void, Never>]

        /// One that comes does so every `pause`.
        init(
            _ name: String, _ path: String, _ air: HubAir, comes: Bool, every pause: Duration = .milliseconds(5),
            idle: Duration = .milliseconds(20), configuration: RecordStore.Configuration = RecordStore.Configuration()
        ) throws {
            let time = air.time
            let store = try RecordStore.open(path, configuration: configuration, time: time)
            (self.name, self.store, self.comes) = (name, store, comes)
            let transport = air.transport(of: name)
            let serve = Task {
                while !Task.isCancelled {
                    if comes {
                        if let link = try? await transport.connect(timeout: .unreached) { await meet(link) }
                        try? await time.sleep(for: pause)
                    } else if let listener = try? await transport.listen() {
                        for await link in listener.links { await meet(link) }
                    }
                }
            }
            @Sendable func meet(_ link: any Link) async {
                guard let channel = try? MessageChannel(over: link, codec: BytesCodec(), time: time) else { return }
                // It ends with the link, which breaks or is ended by the hub.
                _ = try? await store.exchange(
                    over: channel, with: "address:hub", endingWhenIdle: comes ? idle : nil)
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

        func end() async {
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
            await store.close()
        }
    }
#endif
