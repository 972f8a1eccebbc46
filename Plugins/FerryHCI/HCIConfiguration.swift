#if HCI
    public import BluetoothHost

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
        /// What to ask of centrals as peripheral: long intervals or latency for a device on a battery. Nil for no wish.
        public var preferredParameters: PreferredParameters?

        /// How to pair; nil not to: whatever needs an encrypted link is refused then.
        public var pairing: HCIPairing? = HCIPairing()
        /// A file for a capture of all packets (btsnoop, for Wireshark), in place of one that is there; nil for none. Keys
        /// and everything that is sent can be read in it.
        public var capture: String?
        /// Takes sentences for people who look for a fault: errors and reasons by their names. Called on the adapter's
        /// event loop; must not wait.
        public var log: (@Sendable (String) -> Void)?

        /// The defaults.
        public init() {}

        var connectionIntervalWithinBounds: ClosedRange<UInt16> { connectionInterval.clamped(to: 6...3200) }
    }
#endif
