import Ferry
import Synchronization

/// A listening side's links, and which of them a peer comes back to.
///
/// A peer without a link that could be meant is handed over at once, and so is every peer where the framing does not go on
/// over another link. Another's first chunk is looked at: if it names the session of such a link, the link goes on; anything
/// else, or silence, begins a new one.
final class SessionRegistry: Sendable {
    struct Limits: Sendable {
        /// How long a link may be without a connection.
        let patience: Duration
        /// How long to wait for a first chunk.
        let firstChunk: Duration
        /// How many links without a connection are kept.
        let maximumSuspended: Int
    }

    /// The session at the other end of a link, as far as it is known.
    private enum Session: Equatable {
        /// Nothing has been read yet.
        case unread
        case named(UInt64)
        /// Its framing does not go on over another link.
        case none
    }

    private struct Entry {
        weak var link: ResumableLink?
        var session = Session.unread
        /// Keeps a link without a connection, which nothing below refers to, until the timer has fired.
        var suspended: (link: ResumableLink, patience: ScheduledTimer)?
    }

    struct WeakListener { weak var listener: LinkListener? }

    /// Who takes new links; not kept alive.
    let outer = Mutex(WeakListener())
    private let entries = Mutex<[UInt64: Entry]>([:])
    private let isClosed = Atomic(false)
    private let nextKey = Atomic<UInt64>(0)
    private let framing: any Framing
    /// Whether a session can come back at all.
    private let survivesLinkLoss: Bool
    private let takesUnrecognized: Bool
    private let limits: Limits
    private let time: any TimeSource

    init(_ framing: any Framing, _ takesUnrecognized: Bool, _ limits: Limits, _ time: any TimeSource) {
        self.framing = framing
        survivesLinkLoss = framing.makeSession(limits: Ferry.Limits()).survivesLinkLoss
        self.takesUnrecognized = takesUnrecognized
        self.limits = limits
        self.time = time
    }

    /// A peer has connected.
    func accept(_ link: any Link) {
        let port = LinkPort(link)
        guard survivesLinkLoss, !candidates(for: link.peer).isEmpty else { return offer(port) }
        let timer = time.schedule(at: time.now + limits.firstChunk) { [self] in
            if port.stopPeeking() { offer(port) }
        }
        port.peek { [self] chunk in
            timer.cancel()
            guard let chunk else { return }
            sort(port, framing.sessionID(inFirstChunk: chunk.span.bytes))
        }
    }

    /// The link of the very session goes on, before any of which nothing is known; of those the latest, for a peer that has
    /// begun anew has left the others behind.
    private func sort(_ port: LinkPort, _ session: UInt64?) {
        guard let session else { return offer(port, .none) }
        let candidates = candidates(for: port.link.peer)
        let known = candidates.first { $0.session == .named(session) } ?? candidates.last { $0.session == .unread }
        guard let known, known.link.adopt(port) else { return offer(port, .named(session)) }
        entries.withLock { if $0[known.key]?.session == .unread { $0[known.key]?.session = .named(session) } }
    }

    /// The links that this peer may have come back to, in the order in which they were handed over.
    private func candidates(for peer: PeerIdentity) -> [(key: UInt64, link: ResumableLink, session: Session)] {
        let all = entries.withLock { entries in
            entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value.link, $0.value.session) }
        }
        return all.compactMap { key, link, session in
            guard let link, session != .none else { return nil }
            let former = link.peer
            let isSame = former.certainty > .connection ? former.recognizes(peer) : takesUnrecognized
            return isSame ? (key, link, session) : nil
        }
    }

    /// Offers a new link to the listener or to the session that it resumes.
    private func offer(_ port: LinkPort, _ session: Session = .unread) {
        let key = nextKey.add(1, ordering: .relaxed).oldValue
        let link = ResumableLink(over: port) { [self] event in note(event, key) }
        entries.withLock { $0[key] = Entry(link: link, session: session) }
        guard outer.withLock({ $0.listener })?.offer(link) != true else { return }
        link.close()
    }

    private func note(_ event: ResumableLink.Event, _ key: UInt64) {
        switch event {
        case .firstChunk(let chunk):
            let session = framing.sessionID(inFirstChunk: chunk.span.bytes).map(Session.named) ?? .none
            entries.withLock { $0[key]?.session = session }
        case .resumed:
            entries.withLock { entries in
                entries[key]?.suspended?.patience.cancel()
                entries[key]?.suspended = nil
            }
        case .suspended(let reason): suspend(key, reason)
        case .ended(let unused):
            entries.withLock { entries in
                entries[key]?.suspended?.patience.cancel()
                entries[key] = nil
            }
            // The peer is there all the same, and begins anew.
            if let unused { offer(unused) }
        }
    }

    private func suspend(_ key: UInt64, _ reason: FerryError) {
        let refused: ResumableLink? = entries.withLock { entries in
            guard let link = entries[key]?.link else { return nil }
            let isRecognizable = link.peer.certainty > .connection || takesUnrecognized
            guard isRecognizable, entries.values.count(where: { $0.suspended != nil }) < limits.maximumSuspended else {
                return link
            }
            let patience = time.schedule(at: time.now + limits.patience) { [self] in
                self.entries.withLock { $0[key]?.link }?.end(reason)
            }
            entries[key]?.suspended = (link, patience)
            return nil
        }
        refused?.end(reason)
        if isClosed.load(ordering: .acquiring) { close() }
    }

    /// The listener has ended: suspended links, now or later, cannot be resumed.
    func close() {
        isClosed.store(true, ordering: .releasing)
        let suspended = entries.withLock { entries in
            entries.sorted { $0.key < $1.key }.compactMap(\.value.suspended?.link)
        }
        for link in suspended {
            link.end(
                FerryError(
                    .disconnected,
                    "The connection was lost, and the peer cannot come back: the listener that it came by is closed."))
        }
    }
}
