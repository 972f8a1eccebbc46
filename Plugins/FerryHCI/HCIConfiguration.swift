#if HCI
    /// How an adapter on an HCI controller is to behave.
    public struct HCIConfiguration: Sendable {
        /// The low 48 bits become the static random address of the adapter; random when nil.
        public var address: UInt64?
        /// The value of the Device Name characteristic, at most 248 bytes of UTF-8.
        public var deviceName = "Ferry"
        /// The ATT_MTU to ask for and agree to, 23 to 517.
        public var maximumMTU = 517
        /// The range of connection intervals to connect with as central, in units of 1.25 ms (6 to 3200).
        public var connectionInterval: ClosedRange<UInt16> = 12...24

        /// The defaults.
        public init() {}

        var connectionIntervalWithinBounds: ClosedRange<UInt16> { connectionInterval.clamped(to: 6...3200) }
    }
#endif
