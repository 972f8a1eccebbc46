/// How one message is sent, as far as the framing has a choice. The two simple framings have none: they send messages
/// whole, in the order of sending.
public struct SendOptions: Sendable, Hashable {
    /// The order in which messages are sent.
    public struct Priority: RawRepresentable, Sendable, Hashable, Comparable {
        /// 0 to 3; more goes first.
        public let rawValue: UInt8

        /// Makes a priority; values above 3 count as 3.
        public init(rawValue: UInt8) { self.rawValue = min(rawValue, 3) }

        /// When nothing else is waiting.
        public static let background = Priority(rawValue: 0)
        /// As usual.
        public static let normal = Priority(rawValue: 1)
        /// Before messages of the usual priority.
        public static let high = Priority(rawValue: 2)
        /// At the next chunk.
        public static let urgent = Priority(rawValue: 3)

        /// Orders by urgency.
        public static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
    }

    /// What counts as sent.
    public enum Receipt: Sendable, Hashable {
        /// What the framing is configured to wait for.
        case asConfigured
        /// The peer has the whole message.
        case delivered
        /// The link has taken the whole message. If the session loses it later, that is not reported.
        case handedOver
    }

    /// The message's place in the order of sending.
    public var priority: Priority
    /// The share of the link among messages of equal priority: one of weight 2 gets twice what one of weight 1 gets. At
    /// least 1.
    public var weight: UInt8
    /// What counts as sent.
    public var receipt: Receipt

    /// Makes options; the defaults are what a plain send uses.
    public init(priority: Priority = .normal, weight: UInt8 = 1, receipt: Receipt = .asConfigured) {
        self.priority = priority
        self.weight = max(1, weight)
        self.receipt = receipt
    }
}
