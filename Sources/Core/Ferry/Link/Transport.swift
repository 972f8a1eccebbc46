/// What makes links: waiting for peers, or going to one.
public protocol Transport: Sendable {
    /// Starts to wait for peers (advertising, for Bluetooth) and returns once they can find this side.
    ///
    /// - Throws: ``FerryError`` with `transportUnavailable`, which names the missing part.
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
                + "any peer that offers the service.")
    }
}

/// A transport that is waiting for peers. Iterate over ``links`` for one link per peer.
///
/// Listening ends with ``close()``, when the listener is released, when a task that waits for a link is cancelled, or
/// when the transport fails: then ``interruption`` gives the reason. Accepted links stay open; links not yet accepted
/// are closed, so that their peers know.
public final class LinkListener: Sendable {
    /// One link per peer, in order of arrival. The task that takes a link owns it.
    public let links: AsyncStream<any Link>

    private let waitingLinks: WaitingLinks

    /// Makes a listener for a transport.
    ///
    /// - Parameters:
    ///   - maximumWaiting: how many links may wait to be taken; further ones are closed by the transport, which learns
    ///     of it from ``offer(_:)``. Where a ``LinkSource`` has several, the oldest of the source that has the most gives way.
    ///   - acceptTimeout: how long a link may wait to be taken before it is closed.
    ///   - time: where the time comes from.
    ///   - onClose: stops the transport from listening; called once.
    public init(
        maximumWaiting: Int = 64, acceptTimeout: Duration = .seconds(30), time: any TimeSource = SystemTime(),
        onClose: @escaping @Sendable () -> Void
    ) {
        let waitingLinks = WaitingLinks(maximumWaiting, acceptTimeout, time, onClose)
        self.waitingLinks = waitingLinks
        links = AsyncStream { await waitingLinks.next() }
    }

    deinit { close() }

    /// Passes a new link to the task that iterates over ``links``. Returns false when too many wait already, or when
    /// listening has ended: then the caller owns the link and closes it.
    public func offer(_ link: any Link) -> Bool { waitingLinks.offer(link) }

    /// Stops listening and closes the links that are not yet accepted.
    public func close() { waitingLinks.close() }

    // MARK: Interruptions

    /// Why no peer can connect: the adapter is switched off, say, or its service is gone. Nil while peers can connect.
    /// Its value at the end of listening stays: nil where this side ended it.
    public var interruption: FerryError? { waitingLinks.interruption }

    /// Names who is told of each change of ``interruption``, and, where there is one already, of that at once. There is one at
    /// a time; the next takes its place.
    ///
    /// - Parameter body: called by the transport with the reason, or with nil when peers can come again. It must not block.
    public func onInterruption(_ body: @escaping @Sendable (FerryError?) -> Void) { waitingLinks.onInterruption(body) }

    /// For transports: no peer can connect at present. Listening continues with ``resume()``.
    public func interrupt(_ reason: FerryError) { waitingLinks.interrupt(reason) }

    /// For transports: peers can come again.
    public func resume() { waitingLinks.interrupt(nil) }

    /// For transports: listening has ended, and will not go on by itself. Does what ``close()`` does, and says why.
    public func fail(_ reason: FerryError) {
        waitingLinks.interrupt(reason)
        waitingLinks.close()
    }
}
