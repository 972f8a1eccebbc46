#if BlueZ
    /// A socket's send buffer, in bytes as the kernel counts them (socket(7), `SO_SNDBUF`).
    struct SocketSpace: Equatable, Sendable {
        var free: Int32
        var size: Int32

        var isUnused: Bool { free >= size }
    }

    /// A channel that is closed once its SDUs have left the socket. Times are in microseconds, of ``BusThread/now``.
    struct SocketDrain: Sendable {
        /// How long nothing may leave. It ends nothing that moves, however slow the link is.
        static let pause: UInt64 = 5_000_000
        /// How long it may take in all, also with a peer that gives a credit now and then.
        static let limit: UInt64 = 60_000_000

        private let end: UInt64
        private var deadline: UInt64
        private var free: Int32?

        init(at now: UInt64) {
            end = now + Self.limit
            deadline = now + Self.pause
        }

        /// Whether to wait on: SDUs are left, and have time.
        mutating func goesOn(with space: SocketSpace?, at now: UInt64) -> Bool {
            guard let space, !space.isUnused else { return false }
            if let free, space.free > free { deadline = min(now + Self.pause, end) }
            free = space.free
            return now < deadline
        }
    }
#endif
