import Synchronization

/// A link that outlives the links beneath it: when one ends its receiver is told that it is suspended, and when another
/// takes its place, that it goes on.
///
/// Nothing is kept of what the old link had in flight. A channel with a framing that survives this (``SequencedFraming``)
/// goes on where it was; any other ends at the first suspension.
package final class ResumableLink: Link {
    private enum Below {
        /// A link carries chunks.
        case open(any Link)
        /// The receiver is being told; the next link, if it is there already, waits so long.
        case suspending(next: LinkPort?)
        case suspended
        case closed
    }

    private struct State {
        var below: Below
        var receiver: (any LinkReceiver)?
        var first: LinkPort?
        var isReceiving = true
        var latestSize: Int
    }

    package let peer: PeerIdentity

    private let state: Mutex<State>
    /// Called after each suspension that the receiver has survived, and with nil once when the link is closed.
    private let onChange: @Sendable (FerryError?) -> Void

    package init(over port: LinkPort, onChange: @escaping @Sendable (FerryError?) -> Void) {
        peer = port.link.peer
        state = Mutex(State(below: .open(port.link), first: port, latestSize: port.link.maximumChunkSize))
        self.onChange = onChange
    }

    /// The link's below; while there is none, the last one's.
    package var maximumChunkSize: Int {
        state.withLock { state in
            if case .open(let link) = state.below { state.latestSize = link.maximumChunkSize }
            return state.latestSize
        }
    }

    package func activate(_ receiver: any LinkReceiver) {
        let (port, isClosed) = state.withLock { state in
            state.receiver = receiver
            defer { state.first = nil }
            if case .closed = state.below { return (state.first, true) }
            return (state.first, false)
        }
        if isClosed {
            receiver.linkDidClose(Self.closedError)
        } else {
            port?.forward(to: self)
        }
    }

    package func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let below = state.withLock { $0.below }
        switch below {
        case .open(let link):
            do {
                return try link.trySend(chunk)
            } catch  where error.code == .chunkTooLarge || error.code == .emptyChunk {
                throw error
            } catch {
                // The link has ended and will say so.
                return false
            }
        case .suspending, .suspended: return false
        case .closed: throw Self.closedError
        }
    }

    package func setReceiving(_ isReceiving: Bool) {
        let below = state.withLock { state in
            state.isReceiving = isReceiving
            return state.below
        }
        if case .open(let link) = below { link.setReceiving(isReceiving) }
    }

    /// Closes the connection, whose end brings the next one in.
    package func replaceConnection() -> Bool {
        switch state.withLock({ $0.below }) {
        case .open(let link): link.close()
        case .suspending, .suspended: break
        case .closed: return false
        }
        return true
    }

    package func close() { end(Self.closedError) }

    /// Ends the link for good.
    package func end(_ reason: FerryError) {
        let (below, receiver) = state.withLock { state in
            let before = state.below
            state.below = .closed
            let receiver = state.receiver
            if case .closed = before { return (Below.closed, nil as (any LinkReceiver)?) }
            // An open link reports its own end, after what it has queued.
            if case .open = before { return (before, nil) }
            state.receiver = nil
            return (before, receiver)
        }
        switch below {
        case .closed: return
        case .open(let link): link.close()
        case .suspending(let next): next?.link.close()
        case .suspended: break
        }
        receiver?.linkDidClose(reason)
        onChange(nil)
    }

    private static var closedError: FerryError { FerryError(.closed, "This side closed the link.") }

    // MARK: Links below

    /// Puts another link in place of the one that ended, or is about to. Closes it when nobody needs it any more.
    package func adopt(_ port: LinkPort) {
        enum Step { case attach, wait, replace(any Link), refuse }
        let step: Step = state.withLock { state in
            switch state.below {
            case .suspended:
                state.below = .open(port.link)
                return .attach
            case .suspending(let waiting):
                state.below = .suspending(next: port)
                return waiting.map { .replace($0.link) } ?? .wait
            case .open(let link):
                // The peer has noticed before us. The old link's end brings the new one in.
                state.first = port
                return .replace(link)
            case .closed:
                return .refuse
            }
        }
        switch step {
        case .attach: attach(port)
        case .wait: break
        case .replace(let old): old.close()
        case .refuse: port.link.close()
        }
    }

    private func attach(_ port: LinkPort) {
        let (receiver, isReceiving) = state.withLock { ($0.receiver, $0.isReceiving) }
        if !isReceiving { port.link.setReceiving(false) }
        receiver?.linkDidResume()
        port.forward(to: self)
    }

    fileprivate func portIsReady() { state.withLock { $0.receiver }?.linkIsReady() }

    fileprivate func portDidReceive(_ chunk: RawSpan) { state.withLock { $0.receiver }?.linkDidReceive(chunk) }

    fileprivate func portDidClose(_ reason: FerryError) {
        let (receiver, isOver) = state.withLock { state in
            guard case .open = state.below else {
                defer { state.receiver = nil }
                return (state.receiver, true)
            }
            state.below = .suspending(next: state.first)
            state.first = nil
            return (state.receiver, false)
        }
        if isOver {
            receiver?.linkDidClose(Self.closedError)
            return
        }
        receiver?.linkDidSuspend(reason)
        let next: LinkPort? = state.withLock { state in
            guard case .suspending(let next) = state.below else { return nil }
            state.below = next.map { .open($0.link) } ?? .suspended
            return next
        }
        if let next { return attach(next) }
        if case .suspended = state.withLock({ $0.below }) { onChange(reason) }
    }
}

/// The receiver of one link, which keeps what comes until it is known for whom it is.
package final class LinkPort: LinkReceiver {
    package let link: any Link

    private enum Event { case chunk([UInt8]), close(FerryError) }

    private struct State {
        var owner: ResumableLink?
        var waiting: [Event] = []
        var isDirect = false
        var onFirst: (@Sendable (LinkPort, [UInt8]?) -> Void)?
    }

    private let state = Mutex(State())
    /// More chunks than this are dropped before it is known whose they are; the framing sends them again.
    private static let maximumWaiting = 64

    package init(_ link: any Link) { self.link = link }

    /// Activates the link. `onFirst` is called once, with the first chunk, or with nil if the link ends before.
    package func activate(onFirst: (@Sendable (LinkPort, [UInt8]?) -> Void)? = nil) {
        state.withLock { $0.onFirst = onFirst }
        link.activate(self)
    }

    /// Hands over what has come and what will.
    package func forward(to owner: ResumableLink) {
        state.withLock { $0.owner = owner }
        while true {
            let event: Event? = state.withLock { state in
                if state.waiting.isEmpty {
                    state.isDirect = true
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let event else { return }
            switch event {
            case .chunk(let bytes): owner.portDidReceive(bytes.span.bytes)
            case .close(let reason): owner.portDidClose(reason)
            }
        }
    }

    package func linkIsReady() { state.withLock { $0.owner }?.portIsReady() }

    package func linkDidReceive(_ chunk: RawSpan) {
        let owner = state.withLock { $0.isDirect ? $0.owner : nil }
        if let owner { return owner.portDidReceive(chunk) }
        keep(.chunk(chunk.withUnsafeBytes { Array($0) }))
    }

    package func linkDidClose(_ reason: FerryError) {
        let owner = state.withLock { $0.isDirect ? $0.owner : nil }
        if let owner { return owner.portDidClose(reason) }
        keep(.close(reason))
    }

    private func keep(_ event: Event) {
        let (owner, onFirst) = state.withLock { state in
            // The owner may have caught up between the two looks.
            if state.isDirect { return (state.owner, nil as (@Sendable (LinkPort, [UInt8]?) -> Void)?) }
            if case .chunk = event, state.waiting.count >= Self.maximumWaiting { return (nil, nil) }
            state.waiting.append(event)
            defer { state.onFirst = nil }
            return (nil, state.onFirst)
        }
        switch event {
        case .chunk(let bytes):
            owner?.portDidReceive(bytes.span.bytes)
            onFirst?(self, bytes)
        case .close(let reason):
            owner?.portDidClose(reason)
            onFirst?(self, nil)
        }
    }
}
