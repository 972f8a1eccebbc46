package import Ferry

/// A transport that writes down each attempt to find a peer again that has come to nothing.
package struct WatchedTransport<Base: Transport>: Transport {
    package let journal = Journal()
    private let base: Base

    package init(_ base: Base) { self.base = base }

    package func listen() async throws(FerryError) -> LinkListener { try await base.listen() }

    package func connect(timeout: Duration) async throws(FerryError) -> any Link {
        try await base.connect(timeout: timeout)
    }

    package func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        do {
            return try await base.connect(to: peer, timeout: timeout)
        } catch {
            journal.add("failed: \(error.message)")
            throw error
        }
    }
}
