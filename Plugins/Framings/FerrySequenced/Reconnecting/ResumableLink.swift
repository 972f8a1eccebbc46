import Ferry
import Synchronization

/// A link that outlives the links beneath it: when one ends its receiver is told that it is suspended, and when another
/// takes its place, that it goes on.
///
/// Nothing is kept of what the old link had in flight. A channel with a framing that survives this goes on where it was;
/// any other ends at the first suspension. Who may take the old link's place is for others to decide
/// (``ReconnectingTransport``).
final class ResumableLink: Link {
    fileprivate enum Phase {
        /// Not activated yet; the link below waits.
        case idle(LinkPort)
        /// A link carries chunks.
        case open(LinkPort)
        /// The receiver is being told of the loss.
        case suspending
        case suspended
        /// The last link below is on its way out; the receiver is told when it has gone.
        case closing(LinkPort, FerryError)
        /// The end came while the receiver was told of the loss, and is told next.
        case closingWhileSuspending(FerryError)
        case closed(FerryError)
    }

    private struct State {
        var phase: Phase
        var receiver: (any LinkReceiver)?
        /// What takes the place of the link below when that has ended.
        var next: LinkPort?
        var isReceiving = true
        var hasReceived = false
        var latestSize: Int
        var latestPeer: PeerIdentity
    }

    /// The events of the link, for the transport that reconnects it.
    enum Event: Sendable {
        /// The first chunk of a link below.
        case firstChunk([UInt8])
        /// It has no link below, and its receiver has survived that.
        case suspended(FerryError)
        /// It goes on.
        case resumed
        /// It has ended; nothing follows. What waited to take its place is given back, with the chunks that it has kept.
        case ended(unused: LinkPort?)
    }

    /// The first link's below; those that take its place have the same.
    let role: LinkRole?

    private let state: Mutex<State>
    private let onEvent: @Sendable (Event) -> Void

    convenience init(over link: any Link, onEvent: @escaping @Sendable (Event) -> Void) {
        self.init(over: LinkPort(link), onEvent: onEvent)
    }

    init(over port: LinkPort, onEvent: @escaping @Sendable (Event) -> Void) {
        role = port.link.role
        state = Mutex(
            State(phase: .idle(port), latestSize: port.link.maximumChunkSize, latestPeer: port.link.peer))
        source = port.link.source
        self.onEvent = onEvent
    }

    // MARK: Link

    /// That of the first connection.
    let source: LinkSource

    /// The surest that was known of the peer so far.
    var peer: PeerIdentity { state.withLock { Self.notePeer(&$0) } }

    private static func notePeer(_ state: inout State) -> PeerIdentity {
        if let port = state.phase.port {
            let peer = port.link.peer
            if peer.certainty >= state.latestPeer.certainty { state.latestPeer = peer }
        }
        return state.latestPeer
    }

    /// The link's below; while there is none, the last one's.
    var maximumChunkSize: Int {
        state.withLock { state in
            if let port = state.phase.port { state.latestSize = port.link.maximumChunkSize }
            return state.latestSize
        }
    }

    func activate(_ receiver: any LinkReceiver) {
        let phase = state.withLock { state -> Phase in
            defer { if case .idle(let port) = state.phase { state.phase = .open(port) } }
            state.receiver = receiver
            return state.phase
        }
        switch phase {
        case .idle(let port): port.attach(to: self, isReceiving: state.withLock { $0.isReceiving })
        case .closed(let reason): receiver.linkDidClose(reason)
        default: break
        }
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let phase = state.withLock { $0.phase }
        switch phase {
        case .idle(let port), .open(let port):
            do {
                return try port.link.trySend(chunk)
            } catch  where error.code == .chunkTooLarge || error.code == .emptyChunk {
                throw error
            } catch {
                // The link has ended and will say so.
                return false
            }
        case .suspending, .suspended: return false
        case .closing(_, let reason), .closingWhileSuspending(let reason), .closed(let reason): throw reason
        }
    }

    func setReceiving(_ isReceiving: Bool) {
        let port = state.withLock { state in
            state.isReceiving = isReceiving
            if case .open(let port) = state.phase { return port as LinkPort? }
            return nil
        }
        port?.link.setReceiving(isReceiving)
    }

    /// Closes the connection, whose end brings the next one in.
    func replaceConnection() -> Bool {
        switch state.withLock({ $0.phase }) {
        case .idle(let port), .open(let port): port.link.close()
        case .suspending, .suspended: break
        case .closing, .closingWhileSuspending, .closed: return false
        }
        return true
    }

    func close() { end(FerryError(.closed, "This side closed the link.")) }

    /// Ends the link for good.
    func end(_ reason: FerryError) {
        var below: LinkPort?
        var told: (any LinkReceiver)?
        var next: LinkPort?
        let isFirst = state.withLock { state -> Bool in
            _ = Self.notePeer(&state)
            switch state.phase {
            case .idle(let port):
                below = port
                state.phase = .closed(reason)
            case .open(let port):
                below = port
                state.phase = .closing(port, reason)
            case .suspending: state.phase = .closingWhileSuspending(reason)
            case .suspended:
                told = state.receiver
                state.phase = .closed(reason)
            case .closing, .closingWhileSuspending, .closed: return false
            }
            next = state.next.take()
            return true
        }
        guard isFirst else { return }
        below?.link.close()
        told?.linkDidClose(reason)
        if told != nil { state.withLock { $0.receiver = nil } }
        onEvent(.ended(unused: next))
    }

    // MARK: Links below

    /// Puts another link in place of the one that ended, or is about to. Returns false when this link has ended for good.
    func adopt(_ link: any Link) -> Bool { adopt(LinkPort(link)) }

    func adopt(_ port: LinkPort) -> Bool {
        var replaced: [LinkPort] = []
        var attaches = false
        let isWanted = state.withLock { state -> Bool in
            switch state.phase {
            case .suspended:
                state.phase = .open(port)
                attaches = true
            case .suspending:
                if let waiting = state.next { replaced.append(waiting) }
                state.next = port
            case .idle(let old), .open(let old):
                // The peer has noticed before us. The old link's end brings the new one in.
                if let waiting = state.next { replaced.append(waiting) }
                state.next = port
                replaced.append(old)
            case .closing, .closingWhileSuspending, .closed: return false
            }
            return true
        }
        for port in replaced { port.link.close() }
        if attaches { attach(port) }
        return isWanted
    }

    private func attach(_ port: LinkPort) {
        let (receiver, isReceiving) = state.withLock { state in
            state.hasReceived = false
            return (state.receiver, state.isReceiving)
        }
        onEvent(.resumed)
        receiver?.linkDidResume()
        port.attach(to: self, isReceiving: isReceiving)
    }

    /// The receiver, if the link that speaks is the present one.
    private func receiver(of port: LinkPort) -> (any LinkReceiver)? {
        state.withLock { $0.phase.port === port ? $0.receiver : nil }
    }

    func portIsReady(_ port: LinkPort) { receiver(of: port)?.linkIsReady() }

    func portDidReceive(_ chunk: RawSpan, _ port: LinkPort) {
        let (receiver, isFirst) = state.withLock { state -> ((any LinkReceiver)?, Bool) in
            guard state.phase.port === port else { return (nil, false) }
            defer { state.hasReceived = true }
            return (state.receiver, !state.hasReceived)
        }
        if isFirst { onEvent(.firstChunk(chunk.withUnsafeBytes { Array($0) })) }
        receiver?.linkDidReceive(chunk)
    }

    func portDidClose(_ reason: FerryError, _ port: LinkPort) {
        enum Step { case none, suspend, close(FerryError) }
        let (receiver, step) = state.withLock { state -> ((any LinkReceiver)?, Step) in
            guard state.phase.port === port else { return (nil, .none) }
            _ = Self.notePeer(&state)
            if case .closing(_, let ending) = state.phase {
                state.phase = .closed(ending)
                return (state.receiver.take(), .close(ending))
            }
            state.phase = .suspending
            return (state.receiver, .suspend)
        }
        switch step {
        case .none: return
        case .close(let ending): receiver?.linkDidClose(ending)
        case .suspend:
            receiver?.linkDidSuspend(reason)
            settle(reason)
        }
    }

    /// The receiver has been told of the loss: goes on with the next link, if it is there already.
    private func settle(_ reason: FerryError) {
        enum Step { case resume(LinkPort), wait, close((any LinkReceiver)?, FerryError) }
        let step = state.withLock { state -> Step in
            if case .closingWhileSuspending(let ending) = state.phase {
                state.phase = .closed(ending)
                return .close(state.receiver.take(), ending)
            }
            guard let next = state.next.take() else {
                state.phase = .suspended
                return .wait
            }
            state.phase = .open(next)
            return .resume(next)
        }
        switch step {
        case .resume(let next): attach(next)
        case .wait: onEvent(.suspended(reason))
        case .close(let receiver, let ending): receiver?.linkDidClose(ending)
        }
    }
}

extension ResumableLink.Phase {
    /// The link below.
    fileprivate var port: LinkPort? {
        switch self {
        case .idle(let port), .open(let port), .closing(let port, _): port
        case .suspending, .suspended, .closingWhileSuspending, .closed: nil
        }
    }
}
