import DequeModule
import Ferry
import Synchronization

/// The receiver of one link below a ``ResumableLink``: buffers incoming chunks, within bounds, until the link's session
/// is known.
final class LinkPort: LinkReceiver {
    let link: any Link

    private enum Event { case chunk([UInt8]), close(FerryError) }

    private enum Mode {
        /// The link is not activated.
        case idle
        /// Unclaimed; buffers incoming chunks.
        case holding
        /// Delivers the buffered chunks to an owner.
        case draining(ResumableLink)
        /// Events go straight through.
        case direct(ResumableLink)
    }

    private struct State {
        var mode = Mode.idle
        var held: Deque<Event> = []
        var heldBytes = 0
        var isOver = false
        var onFirst: (@Sendable ([UInt8]?) -> Void)?
    }

    private let state = Mutex(State())
    /// More bytes than this end the link, which would lose them otherwise.
    private static let maximumHeldBytes = 64 << 10

    init(_ link: any Link) { self.link = link }

    /// Activates the link without an owner, to see its first chunk. Calls `onFirst` once: with that chunk, or with nil
    /// if the link ends before. Asks the peer to pause after it.
    func peek(onFirst: @escaping @Sendable ([UInt8]?) -> Void) {
        state.withLock { state in
            state.mode = .holding
            state.onFirst = onFirst
        }
        link.activate(self)
    }

    /// Stops waiting for the first chunk. Returns whether `onFirst` was still pending.
    func stopPeeking() -> Bool { state.withLock { $0.onFirst.take() != nil } }

    /// Delivers the buffered chunks and all later ones.
    func attach(to owner: ResumableLink, isReceiving: Bool) {
        let wasIdle = state.withLock { state in
            if case .idle = state.mode {
                state.mode = .direct(owner)
                return true
            }
            state.mode = .draining(owner)
            return false
        }
        if wasIdle {
            if !isReceiving { link.setReceiving(false) }
            return link.activate(self)
        }
        while let event = nextHeld(for: owner) { pass(event, to: owner) }
        if isReceiving { link.setReceiving(true) }
    }

    private func nextHeld(for owner: ResumableLink) -> Event? {
        state.withLock { state in
            if let event = state.held.popFirst() { return event }
            state.mode = .direct(owner)
            return nil
        }
    }

    private func pass(_ event: Event, to owner: ResumableLink) {
        switch event {
        case .chunk(let bytes): owner.portDidReceive(bytes.span.bytes, self)
        case .close(let reason): owner.portDidClose(reason, self)
        }
    }

    // MARK: LinkReceiver

    func linkIsReady() {
        switch state.withLock({ $0.mode }) {
        case .idle, .holding: break
        case .draining(let owner), .direct(let owner): owner.portIsReady(self)
        }
    }

    func linkDidReceive(_ chunk: RawSpan) {
        if case .direct(let owner) = state.withLock({ $0.mode }) { return owner.portDidReceive(chunk, self) }
        keep(.chunk(chunk.withUnsafeBytes { Array($0) }))
    }

    func linkDidClose(_ reason: FerryError) {
        if case .direct(let owner) = state.withLock({ $0.mode }) { return owner.portDidClose(reason, self) }
        keep(.close(reason))
    }

    private func keep(_ event: Event) {
        var owner: ResumableLink?
        var onFirst: (@Sendable ([UInt8]?) -> Void)?
        var isFull = false
        state.withLock { state in
            // The owner may have caught up between the two looks.
            if case .direct(let direct) = state.mode {
                owner = direct
                return
            }
            guard !state.isOver else { return }
            if case .chunk(let bytes) = event {
                isFull = state.heldBytes + bytes.count > Self.maximumHeldBytes
                state.heldBytes += bytes.count
            }
            let kept = isFull ? .close(Self.tooMuchHeld) : event
            if case .close = kept { state.isOver = true }
            state.held.append(kept)
            onFirst = state.onFirst.take()
        }
        if let owner { return pass(event, to: owner) }
        if isFull { return link.close() }
        guard let onFirst else { return }
        switch event {
        case .chunk(let bytes):
            link.setReceiving(false)
            onFirst(bytes)
        case .close: onFirst(nil)
        }
    }

    private static var tooMuchHeld: FerryError {
        FerryError(
            .queueFull,
            "More than \(maximumHeldBytes) bytes arrived before it was known for which link they are. Take links as soon as "
                + "they are there.")
    }
}
