#if BlueZ
    /// How ``BlueZAdapter`` uses BlueZ.
    public struct BlueZConfiguration: Sendable, Hashable {
        /// The bus's address (D-Bus Specification, "Server Addresses"); nil for the system bus, which
        /// `DBUS_SYSTEM_BUS_ADDRESS` may name.
        public var busAddress: String?
        /// The most values that may be on their way to one peer before one that comes later has shown that they passed.
        ///
        /// As many are on their way as have lately passed in a second, at least 32 and at most this; of writes at most 60,
        /// more than which a peripheral on BlueZ may lose. Default 512; at least 1, with which nothing can overtake anything.
        ///
        /// A larger window is quicker where values pass by the hundred in a second. A smaller one bounds what a central on
        /// BlueZ is given at once after its bluetoothd has stood still: some 160 values of 512 bytes, or 270 small ones, fit
        /// into the socket to its program, and what does not is lost unless the program reads meanwhile, as Ferry does.
        public var window = 512
        /// Whether values may overtake one another. Default false.
        ///
        /// bluetoothd with several ATT bearers, which is what BlueZ 5.54 to 5.66 has unless it is configured otherwise, delivers
        /// values in another order than they were sent in. While this is false, only one is on its way at a time there, which
        /// is slow. Set it when the order does not matter: `SequencedFraming` puts chunks back into theirs.
        public var allowsReordering = false
        /// Where bluetoothd's own configuration is, which says how many ATT bearers there are (`Channels` under `[GATT]`).
        /// Default `/etc/bluetooth/main.conf`. Where it cannot be read or does not say, BlueZ's version tells.
        public var daemonConfiguration = "/etc/bluetooth/main.conf"
        /// How many bytes a second values towards a central are assumed to pass with, where the central offers nothing
        /// that tells. Default 40 000, what a phone with 15 ms between connection events takes.
        public var assumedRate = 40_000
        /// How long a call to bluetoothd may take. Default 30 s, as long as an ATT transaction.
        public var callTimeout = Duration.seconds(30)
        /// The most bytes that a peer may send at once through an L2CAP channel (its MTU; Core Specification 5.4, Vol 3,
        /// Part A, 4.22). Default 8192; at least 64. The most that this side sends is the peer's MTU, at most 4096.
        public var channelMTU: UInt16 = 8192

        /// The defaults.
        public init() {}
    }
#endif
