/// What makes links: waiting for peers, or going to one.
public protocol Transport: Sendable {
    /// Starts to wait for peers (advertising, for Bluetooth) and returns once they can find this side.
    ///
    /// - Throws: ``FerryError`` with `transportUnavailable` and what is missing.
    func listen() async throws(FerryError) -> LinkListener

    /// Finds a peer and opens a link to it.
    ///
    /// - Parameter timeout: how long to look and to set up, at most.
    /// - Throws: ``FerryError`` with `peerNotFound`, `timedOut`, `disconnected`, `cancelled` or `transportUnavailable`.
    func connect(timeout: Duration) async throws(FerryError) -> any Link

    /// Finds this peer, and no other, and opens a link to it: ``PeerIdentity/recognizes(_:)`` holds of ``Link/peer``.
    ///
    /// - Parameters:
    ///   - peer: the ``Link/peer`` of an earlier link of the same transport.
    ///   - timeout: how long to look and to set up, at most.
    /// - Throws: ``FerryError`` as ``connect(timeout:)``; `peerNotFound` for an identity that is good for one connection
    ///   only (``PeerIdentity/Certainty/connection``).
    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link
}

extension FerryError {
    /// What ``Transport/connect(to:timeout:)`` throws for an identity that cannot be found again.
    public static func cannotBeRecognized(_ peer: PeerIdentity) -> FerryError {
        FerryError(
            .peerNotFound,
            "Peer \(peer) was known for one connection only and cannot be recognised again. Pair with it, or connect to "
                + "whoever offers the service.")
    }
}

/// A transport that is waiting for peers. Iterate over ``links`` for one link per peer.
///
/// Listening ends with ``close()`` or when the listener is no longer referenced; links already made go on.
public final class LinkListener: Sendable {
    /// One link per peer, as they come. For one consumer.
    public let links: AsyncStream<any Link>

    private let onClose: @Sendable () -> Void
    private let continuation: AsyncStream<any Link>.Continuation

    /// Makes a listener for a transport.
    ///
    /// - Parameters:
    ///   - maximumWaiting: how many links may wait to be taken; further ones are closed by the transport, which learns
    ///     of it from ``offer(_:)``.
    ///   - onClose: stops the transport from listening; it may be called more than once.
    public init(maximumWaiting: Int = 64, onClose: @escaping @Sendable () -> Void) {
        self.onClose = onClose
        (links, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(maximumWaiting))
    }

    deinit { close() }

    /// Hands a new link to whoever iterates over ``links``. Returns false when too many wait already.
    public func offer(_ link: any Link) -> Bool {
        if case .enqueued = continuation.yield(link) { return true }
        return false
    }

    /// Stops listening. Links already made go on.
    public func close() {
        continuation.finish()
        onClose()
    }
}
