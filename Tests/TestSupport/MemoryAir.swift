package import Ferry
package import FerryTesting
import Synchronization

/// Stations in memory that listen and connect to one another by name, under virtual time, and a pump that moves their chunks.
package final class MemoryAir: Sendable {
    private struct State {
        var listeners: [String: LinkListener] = [:]
        var pairs: [Pair] = []
        var connects = 0
    }

    package struct Pair: Sendable {
        package let near: MemoryLink
        package let far: MemoryLink
        package let server: String
    }

    package let time = VirtualTime()
    private let state = Mutex(State())
    /// How surely stations know one another.
    let certainty: PeerIdentity.Certainty

    package init(certainty: PeerIdentity.Certainty = .address) { self.certainty = certainty }

    package func station(_ name: String) -> Station { Station(air: self, name: name) }

    /// Ends the connections to a station, and lets nobody find it any more.
    package func takeAway(_ name: String) {
        let listener = state.withLock { $0.listeners.removeValue(forKey: name) }
        listener?.close()
        breakConnections(to: name)
    }

    package func breakConnections(to name: String) {
        // Whoever comes back meanwhile has a connection that is not among those.
        let broken = state.withLock { state in
            defer { state.pairs.removeAll { $0.server == name } }
            return state.pairs.filter { $0.server == name }
        }
        for pair in broken { pair.near.disconnect() }
    }

    package var connects: Int { state.withLock { $0.connects } }
    /// The connections that have been made and not broken by the test.
    package var pairs: [Pair] { state.withLock { $0.pairs } }

    fileprivate func listen(_ name: String) -> LinkListener {
        let listener = LinkListener(time: time) { [weak self] in
            self?.state.withLock { _ = $0.listeners.removeValue(forKey: name) }
        }
        state.withLock { $0.listeners[name] = listener }
        return listener
    }

    fileprivate func connect(_ client: String, to server: String?) throws(FerryError) -> any Link {
        let (name, listener) = state.withLock { state -> (String, LinkListener?) in
            state.connects += 1
            let name = server ?? state.listeners.keys.min() ?? ""
            return (name, state.listeners[name])
        }
        let (near, far) = MemoryLink.makePair(
            maximumChunkSize: 60, queueDepth: 8, near: PeerIdentity(client, certainty: certainty),
            far: PeerIdentity(name, certainty: certainty))
        guard let listener, listener.offer(far) else { throw FerryError(.peerNotFound, "\(name) is not there.") }
        state.withLock { $0.pairs.append(Pair(near: near, far: far, server: name)) }
        return near
    }

    /// Runs the body under virtual time, and moves chunks until it has returned.
    package func run(_ body: @escaping @Sendable () async throws -> Void) throws {
        try time.run(within: .seconds(3600)) { [self] in
            let pump = Task { await time.keep { [self] in deliver() } }
            defer { pump.cancel() }
            try await body()
        }
    }

    private func deliver() -> Bool {
        var hasMoved = false
        for pair in pairs {
            if pair.near.deliver() { hasMoved = true }
            if pair.far.deliver() { hasMoved = true }
        }
        return hasMoved
    }

    package struct Station: Transport {
        let air: MemoryAir
        let name: String

        package func listen() async throws(FerryError) -> LinkListener { air.listen(name) }

        package func connect(timeout: Duration) async throws(FerryError) -> any Link { try air.connect(name, to: nil) }

        package func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            guard peer.certainty > .connection else { throw .cannotBeRecognized(peer) }
            return try air.connect(name, to: peer.name)
        }
    }
}
