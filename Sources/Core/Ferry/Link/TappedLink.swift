/// A link that tells an observer of everything that passes through another link, and changes nothing.
///
///     let channel = try MessageChannel(over: TappedLink(link, observer: log), codec: codec, framing: framing)
///
/// For logs, captures, counters and tests. Taps can be put around taps; each adds one call per chunk and no copy.
public final class TappedLink: Link {
    package let link: any Link
    package let observer: any LinkObserver

    /// Puts a tap around `link`, which must not be used directly from now on. The tap keeps `observer` alive.
    public init(_ link: any Link, observer: any LinkObserver) {
        self.link = link
        self.observer = observer
    }

    /// The link's own.
    public var peer: PeerIdentity { link.peer }

    /// The link's own.
    public var role: LinkRole? { link.role }

    /// The link's own.
    public var source: LinkSource { link.source }

    /// The link's own.
    public var maximumChunkSize: Int { link.maximumChunkSize }

    /// Activates the link; its events go to the observer first and then to `receiver`.
    public func activate(_ receiver: any LinkReceiver) {
        link.activate(Tap(receiver: receiver, observer: observer))
    }

    /// Offers the chunk to the link and tells the observer the result.
    ///
    /// - Throws: what the link throws; the observer is told of none of it.
    public func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let isAccepted = try link.trySend(chunk)
        if isAccepted { observer.linkDidSend(chunk) } else { observer.linkDidRefuse(chunk) }
        return isAccepted
    }

    /// Asks the link to pause or go on.
    public func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }

    /// Has the link replace its connection.
    public func replaceConnection() -> Bool { link.replaceConnection() }

    /// Closes the link; the observer is told when it has ended.
    public func close() { link.close() }

    private final class Tap: LinkReceiver {
        let receiver: any LinkReceiver
        let observer: any LinkObserver

        init(receiver: any LinkReceiver, observer: any LinkObserver) {
            self.receiver = receiver
            self.observer = observer
        }

        func linkIsReady() {
            observer.linkIsReady()
            receiver.linkIsReady()
        }

        func linkDidReceive(_ chunk: RawSpan) {
            observer.linkDidReceive(chunk)
            receiver.linkDidReceive(chunk)
        }

        func linkDidClose(_ reason: FerryError) {
            observer.linkDidClose(reason)
            receiver.linkDidClose(reason)
        }

        func linkDidSuspend(_ reason: FerryError) { receiver.linkDidSuspend(reason) }

        func linkDidResume() { receiver.linkDidResume() }
    }
}

/// Who is told what passes through a ``TappedLink``. Every call has an empty default.
///
/// The calls come on the thread of the link's owner or of the link, perhaps at the same time, perhaps with the owner's
/// lock held: they must not block and must not call the link. From within, a task that uses the owner may be cancelled,
/// and of a channel ``MessageChannel/close()`` and ``MessageChannel/enqueue(_:options:timeout:progress:)`` called, and
/// its last reference released: the channel acts after the chunks at hand. Its state must not be read within
/// ``linkDidSend(_:)`` and ``linkDidRefuse(_:)``. A chunk's bytes are valid during the call only.
public protocol LinkObserver: AnyObject, Sendable {
    /// The link took a chunk. Its peer may have received it already.
    func linkDidSend(_ chunk: RawSpan)
    /// The link had no space for a chunk; it will be offered again, perhaps cut differently.
    func linkDidRefuse(_ chunk: RawSpan)
    /// The link said that there may be space again.
    func linkIsReady()
    /// A chunk arrived.
    func linkDidReceive(_ chunk: RawSpan)
    /// The link ended; nothing follows.
    func linkDidClose(_ reason: FerryError)
}

extension LinkObserver {
    /// Does nothing.
    public func linkDidSend(_ chunk: RawSpan) {}
    /// Does nothing.
    public func linkDidRefuse(_ chunk: RawSpan) {}
    /// Does nothing.
    public func linkIsReady() {}
    /// Does nothing.
    public func linkDidReceive(_ chunk: RawSpan) {}
    /// Does nothing.
    public func linkDidClose(_ reason: FerryError) {}
}
