public import Ferry
import Synchronization

/// What links have learnt about the length of values that peers take, for the links that follow.
///
/// A link whose connection lives but takes no value for ``stallTimeout``, or that is lost early with values above 20 bytes for
/// the second time in a row, goes on with values of 20 bytes. Values grow again, to twice the length, after 256 of them; a
/// length that has failed is tried after 1024, 4096, 16 384 and then each 65 536 values. Where values of 20 bytes fail too,
/// their length is not the reason, and the limit ends.
///
/// Limits:
/// - It knows up to `capacity` peers by an identity that lasts, and forgets the one that failed longest ago. It is not stored: a
///   new process begins without limits. For a peer that is known for one connection only, a limit lasts as long as the connection.
/// - A receiver that pauses its peer by the link layer's flow control looks the same as a stall, and costs the same steps.
/// - Values that a peer drops while it keeps the connection ready are not noticed.
/// - bluetoothd does not say whether a connection was lost or ended by the peer, so over BlueZ only stalls count.
public final class ValueSizeMemory: Sendable {
    /// A change of the length of values to one peer.
    public struct Change: Sendable, Equatable {
        /// Why it changed.
        public enum Cause: Sendable, Equatable {
            /// The connection took nothing for ``ValueSizeMemory/stallTimeout``.
            case stalled
            /// Connections were lost early.
            case lost
            /// Enough values have crossed.
            case passed
        }

        /// The peer.
        public let peer: PeerIdentity
        /// The most bytes of a value from now on; `nil` for as many as ATT_MTU allows.
        public let limit: Int?
        /// Why it changed.
        public let cause: Cause
    }

    /// How long a connection may take nothing, while a value waits, before the length of values is suspected. Default 10 s:
    /// above the supervision timeouts that phones use, and below `Limits.outboundStallTimeout`, which ends a channel.
    public let stallTimeout: Duration
    private let capacity: Int
    private let onChange: @Sendable (Change) -> Void
    private let known = Mutex(Known())

    private struct Known {
        var sizings: [String: ValueSizing] = [:]
        /// The peer that failed longest ago first.
        var order: [String] = []
    }

    /// Begins without limits.
    ///
    /// - Parameters:
    ///   - stallTimeout: see ``stallTimeout``; above zero.
    ///   - capacity: the most peers to remember, at least 1.
    ///   - onChange: called after each change, from the thread that offered or ended; it must not block.
    public init(
        stallTimeout: Duration = .seconds(10), capacity: Int = 256,
        onChange: @escaping @Sendable (Change) -> Void = { _ in }
    ) {
        self.stallTimeout = stallTimeout
        self.capacity = max(1, capacity)
        self.onChange = onChange
    }

    /// The most bytes of a value to the peer; `nil` where nothing is known against longer ones.
    public func limit(for peer: PeerIdentity) -> Int? { sizing(of: peer).limit }

    /// Forgets the size learnt for a peer, for links that begin from now on: after a change of its firmware.
    public func forget(_ peer: PeerIdentity) { remember(ValueSizing(), of: peer) }

    func sizing(of peer: PeerIdentity) -> ValueSizing {
        guard peer.certainty > .connection else { return ValueSizing() }
        return known.withLock { $0.sizings[peer.name] } ?? ValueSizing()
    }

    func remember(_ sizing: ValueSizing, of peer: PeerIdentity) {
        guard peer.certainty > .connection else { return }
        known.withLock { known in
            known.order.removeAll { $0 == peer.name }
            known.sizings[peer.name] = sizing.isClean ? nil : sizing
            guard !sizing.isClean else { return }
            known.order.append(peer.name)
            if known.order.count > capacity { known.sizings[known.order.removeFirst()] = nil }
        }
    }

    func tell(_ change: Change) { onChange(change) }
}
