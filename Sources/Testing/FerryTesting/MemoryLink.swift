import DequeModule
public import Ferry
import Synchronization

/// One end of a pair of links in memory, for tests of code above a link.
///
/// Nothing moves by itself: chunks wait in the sender's transmit queue until ``deliver(_:signalsReady:)`` takes them to
/// the other end. A test thus decides at every chunk what happens next, and can do to it what radios do.
public final class MemoryLink: Link {
    /// What becomes of a chunk on its way.
    public enum Fate: Sendable, Hashable {
        /// It arrives.
        case arrives
        /// It is lost.
        case isLost
        /// It arrives twice.
        case isDoubled
        /// Only its first bytes arrive; with 0 nothing does.
        case isTruncated(to: Int)
        /// It arrives after the chunk that follows it, if one waits.
        case isOvertaken
    }

    private struct State {
        var receiver: (any LinkReceiver)?
        var isActivated = false
        var queue: Deque<[UInt8]> = []
        var queueDepth: Int
        var maximumChunkSize: Int
        var owesReady = false
        var isReceiving = true
        var reason: FerryError?
    }

    /// Who is at the other end, as the test says.
    public let peer: PeerIdentity
    /// The first end of a pair is the initiator.
    public let role: LinkRole?

    private let state: Mutex<State>
    private let other = Mutex<WeakPeer>(WeakPeer())

    private struct WeakPeer { weak var link: MemoryLink? }

    private init(maximumChunkSize: Int, queueDepth: Int, peer: PeerIdentity, role: LinkRole) {
        self.peer = peer
        self.role = role
        state = Mutex(State(queueDepth: max(1, queueDepth), maximumChunkSize: max(1, maximumChunkSize)))
    }

    /// Two ends, each with a transmit queue of `queueDepth` chunks. Keep both for as long as either is in use. The first
    /// one's peer is `far`, the second's `near`; the first is the one that connected.
    public static func makePair(
        maximumChunkSize: Int, queueDepth: Int = 8, near: PeerIdentity = PeerIdentity("near", certainty: .address),
        far: PeerIdentity = PeerIdentity("far", certainty: .address)
    ) -> (MemoryLink, MemoryLink) {
        let a = MemoryLink(maximumChunkSize: maximumChunkSize, queueDepth: queueDepth, peer: far, role: .initiator)
        let b = MemoryLink(maximumChunkSize: maximumChunkSize, queueDepth: queueDepth, peer: near, role: .responder)
        a.other.withLock { $0.link = b }
        b.other.withLock { $0.link = a }
        return (a, b)
    }

    // MARK: Link

    /// The largest chunk, in bytes; see ``setMaximumChunkSize(_:)``.
    public var maximumChunkSize: Int { state.withLock { $0.maximumChunkSize } }

    /// Names the receiver. Called a second time it traps: a link has one owner.
    public func activate(_ receiver: any LinkReceiver) {
        let reason = state.withLock { state -> FerryError? in
            precondition(!state.isActivated, "A link is activated once, by one receiver.")
            state.isActivated = true
            if state.reason == nil { state.receiver = receiver }
            return state.reason
        }
        if let reason { receiver.linkDidClose(reason) }
    }

    /// Queues a chunk for ``deliver(_:signalsReady:)``.
    public func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let outcome = state.withLock { state -> Result<Bool, FerryError> in
            if let reason = state.reason { return .failure(reason) }
            guard chunk.byteCount > 0 else { return .failure(FerryError(.emptyChunk, "The chunk is empty.")) }
            guard chunk.byteCount <= state.maximumChunkSize else {
                let text = "The chunk has \(chunk.byteCount) bytes; the link takes \(state.maximumChunkSize)."
                return .failure(FerryError(.chunkTooLarge, text))
            }
            guard state.queue.count < state.queueDepth else {
                state.owesReady = true
                return .success(false)
            }
            state.queue.append(chunk.withUnsafeBytes { Array($0) })
            return .success(true)
        }
        return try outcome.get()
    }

    /// Notes the wish; ``deliver(_:signalsReady:)`` at the other end honours it.
    public func setReceiving(_ isReceiving: Bool) { state.withLock { $0.isReceiving = isReceiving } }

    /// Delivers this end's queued chunks and ends both.
    public func close() {
        while deliver() {}
        let other = self.other.withLock { $0.link }
        end(FerryError(.closed, "This side closed the link."))
        other?.end(FerryError(.disconnected, "The other side closed the link."))
    }

    // MARK: The test's hand

    /// Takes the oldest waiting chunk to the other end and then says that there is space, if a chunk was refused.
    ///
    /// - Parameters:
    ///   - fate: what happens to the chunk.
    ///   - signalsReady: whether a refused sender is told.
    /// - Returns: false when nothing waits, the other end is paused, or the link has ended.
    @discardableResult
    public func deliver(_ fate: Fate = .arrives, signalsReady: Bool = true) -> Bool {
        guard let other = self.other.withLock({ $0.link }) else { return false }
        guard let receiver = other.state.withLock({ $0.isReceiving ? $0.receiver : nil }) else { return false }
        let chunks = state.withLock { state -> [[UInt8]]? in
            guard state.reason == nil, let chunk = state.queue.popFirst() else { return nil }
            switch fate {
            case .arrives: return [chunk]
            case .isLost: return []
            case .isDoubled: return [chunk, chunk]
            case .isTruncated(let count): return count > 0 ? [Array(chunk.prefix(count))] : []
            case .isOvertaken:
                guard let next = state.queue.popFirst() else { return [chunk] }
                return [next, chunk]
            }
        }
        guard let chunks else { return false }
        for chunk in chunks { receiver.linkDidReceive(chunk.span.bytes) }
        if signalsReady { signalReady() }
        return true
    }

    /// Tells a sender that was refused that there may be space.
    public func signalReady() {
        let receiver = state.withLock { state -> (any LinkReceiver)? in
            guard state.owesReady else { return nil }
            state.owesReady = false
            return state.receiver
        }
        receiver?.linkIsReady()
    }

    /// Calls `linkIsReady` although no chunk was refused: a signal that comes too early.
    public func signalReadyTooEarly() { state.withLock { $0.receiver }?.linkIsReady() }

    /// How many chunks wait in this end's transmit queue.
    public var waitingChunks: Int { state.withLock { $0.queue.count } }

    /// Whether the receiver at this end takes chunks.
    public var isReceiving: Bool { state.withLock { $0.isReceiving } }

    /// Changes the largest chunk, as a new ATT_MTU does. Chunks that wait already keep their size.
    public func setMaximumChunkSize(_ size: Int) { state.withLock { $0.maximumChunkSize = max(1, size) } }

    /// Ends both ends as when the peer goes out of range; chunks that wait are lost.
    public func disconnect(_ reason: FerryError = FerryError(.disconnected, "The peer is gone.")) {
        let other = self.other.withLock { $0.link }
        end(reason)
        other?.end(reason)
    }

    private func end(_ reason: FerryError) {
        let receiver = state.withLock { state -> (any LinkReceiver)? in
            guard state.reason == nil else { return nil }
            state.reason = reason
            state.queue = []
            defer { state.receiver = nil }
            return state.receiver
        }
        receiver?.linkDidClose(reason)
    }
}
