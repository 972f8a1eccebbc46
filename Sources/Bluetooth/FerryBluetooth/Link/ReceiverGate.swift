import DequeModule
package import Ferry
import Synchronization

/// The way from an adapter's events to a link's receiver.
///
/// A link exists before its owner has activated it, and an adapter does not wait: events in between are held, in order
/// and within bounds, and delivered first. Later events go straight through.
package final class ReceiverGate: Sendable {
    private struct State {
        var receiver: (any LinkReceiver)?
        var isOpen = false
        var hasEnded = false
        var held: Deque<[UInt8]> = []
        var heldBytes = 0
        var reason: FerryError?
    }

    private let state = Mutex(State())
    private let maximumHeldBytes: Int

    package init(maximumHeldBytes: Int = 64 << 10) { self.maximumHeldBytes = maximumHeldBytes }

    /// Why the flow has ended; nil before.
    package var reason: FerryError? { state.withLock { $0.reason } }

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
            state.receiver = receiver
            if let bytes = state.held.popFirst() {
                state.heldBytes -= bytes.count
                return .chunk(bytes)
            }
            if let reason = state.reason, !state.hasEnded {
                state.hasEnded = true
                state.receiver = nil
                return .close(reason)
            }
            state.isOpen = true
            return nil
        }
    }

    /// Passes a chunk on. Returns false when the link is not activated and too much is held already: then the link has
    /// to end, since a chunk would be lost.
    package func receive(_ chunk: RawSpan) -> Bool {
        var isWithinBounds = true
        let receiver: (any LinkReceiver)? = state.withLock { state in
            guard state.reason == nil else { return nil }
            if state.isOpen { return state.receiver }
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
        state.withLock { $0.receiver }?.linkIsReady()
    }

    /// Ends the flow. Only the first reason counts.
    package func close(_ reason: FerryError) {
        let receiver: (any LinkReceiver)? = state.withLock { state in
            guard state.reason == nil else { return nil }
            state.reason = reason
            guard state.isOpen else { return nil }
            state.hasEnded = true
            defer { state.receiver = nil }
            return state.receiver
        }
        receiver?.linkDidClose(reason)
    }
}
