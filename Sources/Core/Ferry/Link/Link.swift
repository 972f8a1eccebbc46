/// A two-way pipe of chunks to one peer: CoreBluetooth's transmit contract made safe.
///
/// ## The contract
/// - A chunk has 1 to ``maximumChunkSize`` bytes and arrives whole and in order, or the link reports its end.
/// - ``trySend(_:)`` never waits. After it has returned false the link calls ``LinkReceiver/linkIsReady()`` at least
///   once when there is space again. Readiness is a level: a call too many does no harm, and the receiver answers every
///   call by trying again. The channel probes on its own when the call never comes.
/// - The receiver is never called from within ``trySend(_:)``, ``setReceiving(_:)`` or ``maximumChunkSize``, and never
///   with a lock held that those need: the caller may hold its own lock while it calls them.
/// - Calls of one receiver do not overlap, except that ``LinkReceiver/linkIsReady()`` may come at any time.
/// - An ended link is inert: it sends nothing, ends nothing and asks for nothing, whichever peer connects afterwards.
/// - One owner: a link is activated once, by one receiver, and every chunk goes through that owner, so nothing
///   overtakes the queue.
///
/// `FerryTesting.LinkConformance` checks all of it.
public protocol Link: AnyObject, Sendable {
    /// Who is at the other end. It may become surer while the link lives, when the two sides pair, and is never another
    /// peer. It can be asked after the end.
    var peer: PeerIdentity { get }

    /// Which side of the link this one is; nil where the link cannot tell. It never changes. A framing that
    /// ``Framing/needsRole`` cannot be used over a link that says nil.
    var role: LinkRole? { get }

    /// What a listener counts this link by, so that one machine or user does not take every place. By default the peer.
    var source: LinkSource { get }

    /// The most bytes that ``trySend(_:)`` takes at present. It may change at any time, as ATT_MTU does; it is never
    /// less than 1 and is asked before each chunk.
    var maximumChunkSize: Int { get }

    /// Names the receiver and starts the flow of events. Chunks that arrived before are delivered first. The link keeps
    /// the receiver alive until it has called ``LinkReceiver/linkDidClose(_:)``.
    func activate(_ receiver: any LinkReceiver)

    /// Queues one chunk, copying it, or returns false when the transmit queue is full.
    ///
    /// - Throws: ``FerryError`` with `emptyChunk`, `chunkTooLarge`, or the reason the link has ended.
    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool

    /// Asks the peer to pause (false) or go on (true). A link that cannot tell its peer goes on delivering.
    func setReceiving(_ isReceiving: Bool)

    /// Gives the connection up for another, to the same peer: ``LinkReceiver/linkDidSuspend(_:)`` follows. Returns false,
    /// and does nothing, where that cannot be done; only links that reconnect can.
    func replaceConnection() -> Bool

    /// Ends the link after what it has already queued is sent as far as the link can tell; then, or at once when it has
    /// already ended, calls ``LinkReceiver/linkDidClose(_:)`` with code `closed`. A second call does nothing.
    func close()
}

extension Link {
    /// Not told.
    public var role: LinkRole? { nil }
    /// False.
    public func replaceConnection() -> Bool { false }
}

/// The owner of a ``Link``. Called by the link on a thread of its choosing; it must not block.
public protocol LinkReceiver: AnyObject, Sendable {
    /// There may be space in the transmit queue again.
    func linkIsReady()

    /// One chunk arrived, as the peer cut it. The bytes are valid during the call only.
    func linkDidReceive(_ chunk: RawSpan)

    /// The link has ended; nothing follows. Called exactly once for each activated link.
    func linkDidClose(_ reason: FerryError)

    /// The link has lost its connection and may get another: chunks in flight are lost, and the link takes none until
    /// ``linkDidResume()``. Only links that reconnect call it (FerrySequenced has a transport of such links).
    func linkDidSuspend(_ reason: FerryError)

    /// A suspended link has a connection again, to the same peer.
    func linkDidResume()
}

extension LinkReceiver {
    /// Takes the loss of the connection for the end.
    public func linkDidSuspend(_ reason: FerryError) { linkDidClose(reason) }
    /// Does nothing.
    public func linkDidResume() {}
}
