import DequeModule
package import Ferry
import Synchronization

/// The way from an adapter's events to a link's receiver.
///
/// A link exists before its owner has activated it, and an adapter does not wait: events in between are held, in order
/// and within bounds, and delivered first. Later events go straight through.
package final class ReceiverGate: Sendable {
    private struct State {
        var flow = Flow.held(for: nil, end: nil)
        var held: Deque<[UInt8]> = []
        var heldBytes = 0
    }

    private enum Flow {
        /// Chunks queue up until the link is activated and has received the earlier ones. It is told the end last.
        case held(for: (any LinkReceiver)?, end: FerryError?)
        case open(any LinkReceiver)
        case ended(FerryError)

        var reason: FerryError? {
            switch self {
            case .held(_, let end): end
            case .open: nil
            case .ended(let reason): reason
            }
        }
    }

    private let state = Mutex(State())
    private let maximumHeldBytes: Int

    package init(maximumHeldBytes: Int = 64 << 10) { self.maximumHeldBytes = maximumHeldBytes }

    /// Why the flow has ended; nil before.
    package var reason: FerryError? { state.withLock { $0.flow.reason } }

    /// Names the receiver and delivers the held events. Later events queue up behind them.
    package func activate(_ receiver: any LinkReceiver) {
        while let next = nextHeld(for: receiver) {
            switch next {
            case .chunk(let bytes): receiver.linkDidReceive(bytes.span.bytes)
            case .close(let reason): receiver.linkDidClose(reason)
            }
        }
    }

    private enum Held {
        case chunk([UInt8])
        case close(FerryError)
    }

    private func nextHeld(for receiver: any LinkReceiver) -> Held? {
        state.withLock { state in
            guard case .held(_, let end) = state.flow else { return nil }
            if let bytes = state.held.popFirst() {
                state.flow = .held(for: receiver, end: end)
                state.heldBytes -= bytes.count
                return .chunk(bytes)
            }
            state.flow = end.map { .ended($0) } ?? .open(receiver)
            return end.map { .close($0) }
        }
    }

    /// Passes a chunk on. Returns false when the link is not activated and too much is held already: then the link has
    /// to end, since a chunk would be lost.
    package func receive(_ chunk: RawSpan) -> Bool {
        var isWithinBounds = true
        let receiver: (any LinkReceiver)? = state.withLock { state in
            switch state.flow {
            case .open(let receiver): return receiver
            case .ended, .held(_, end: .some): return nil
            case .held(_, end: nil): break
            }
            // One without bytes takes room too.
            isWithinBounds =
                state.heldBytes + chunk.byteCount <= maximumHeldBytes && state.held.count < maximumHeldBytes
            if isWithinBounds {
                state.held.append(chunk.withUnsafeBytes { Array($0) })
                state.heldBytes += chunk.byteCount
            }
            return nil
        }
        receiver?.linkDidReceive(chunk)
        return isWithinBounds
    }

    /// Passes the ready signal on; before activation there is no one to wake.
    package func ready() {
        let receiver: (any LinkReceiver)? = state.withLock { state in
            switch state.flow {
            case .open(let receiver): receiver
            case .held(let receiver, _): receiver
            case .ended: nil
            }
        }
        receiver?.linkIsReady()
    }

    /// Ends the flow. Only the first reason counts.
    package func close(_ reason: FerryError) {
        let receiver: (any LinkReceiver)? = state.withLock { state in
            switch state.flow {
            case .open(let receiver):
                state.flow = .ended(reason)
                return receiver
            case .held(let receiver, end: nil):
                state.flow = .held(for: receiver, end: reason)
                return nil
            case .ended, .held: return nil
            }
        }
        receiver?.linkDidClose(reason)
    }
}
