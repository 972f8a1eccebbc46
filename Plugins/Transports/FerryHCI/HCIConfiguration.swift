#if HCI
    public import BluetoothHost

    /// How an adapter keeps those who listen from following it: it is called by a resolvable private address, in both roles,
    /// which only peers that bonded can resolve (Core Specification 5.4, Vol 3, Part C, 10.7).
    ///
    /// The key that they are given, and the address that they know, are in ``HCIPairing/bondFile``; without one both are new with
    /// each adapter.
    public struct HCIPrivacy: Sendable {
        /// How long an address serves: 1 s to 1 h. Advertising, scans and attempts to connect pause for the change;
        /// connections go on.
        public var rotation = Duration.seconds(900)

        /// A new address every 15 minutes.
        public init() {}
    }

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
        /// The longest connection interval that a peripheral is given when it asks for one, in units of 1.25 ms. It is not given
        /// a shorter one than ``connectionInterval`` begins with. Default 500 ms.
        public var slowestInterval: UInt16 = 400
        /// What to ask of centrals as peripheral: long intervals or latency for a device on a battery. Nil for no wish.
        public var preferredParameters: PreferredParameters?

        /// Whether to look for peripherals and connect to them on the LE Coded physical layer too, for distance: where the
        /// controller has it. It takes half of the time from listening on LE 1M.
        public var usesCodedPHY = false
        /// Whether to use enhanced ATT bearers, by which a request that waits holds up no other: with each peer that has them, over
        /// encrypted connections. A central that uses several, as BlueZ does, may send write commands out of order.
        public var usesEnhancedBearers = false
        /// How the adapter's address changes, so that only bonded peers recognise the adapter; nil to use one address
        /// always.
        public var privacy: HCIPrivacy?
        /// How to pair; nil not to: attributes that need an encrypted link are refused then.
        public var pairing: HCIPairing? = HCIPairing()
        /// A file for a capture of all packets (btsnoop, for Wireshark), in place of one that is there; nil for none. Keys
        /// and everything that is sent can be read in it.
        public var capture: String?
        /// Takes a sentence for people when the capture cannot be written any further, as on a full disk: the file's
        /// packets are whole, and the adapter continues. Called once at most, on the adapter's event loop; must not
        /// wait.
        public var onCaptureFailure: (@Sendable (String) -> Void)?
        /// Takes sentences for people who look for a fault: errors and reasons by their names. Called on the adapter's
        /// event loop; must not wait.
        public var log: (@Sendable (String) -> Void)?

        /// The defaults.
        public init() {}

        /// What the host is to do. The keys come from the bond file, where there is one.
        func hostConfiguration(_ address: Address, resolvingKey: [UInt8]) -> HostConfiguration {
            var configuration = HostConfiguration(address: address)
            configuration.pairing = pairing?.options
            configuration.cryptography = LibraryCryptography()
            configuration.deviceName = deviceName
            configuration.maximumMTU = maximumMTU
            configuration.connectionInterval = connectionIntervalWithinBounds
            configuration.slowestInterval = slowestInterval
            configuration.preferredParameters = preferredParameters
            configuration.usesCodedPHY = usesCodedPHY
            configuration.usesEnhancedBearers = usesEnhancedBearers
            configuration.privacy = privacy.map { privacy in
                var options = PrivacyOptions(resolvingKey: resolvingKey)
                let (seconds, attoseconds) = privacy.rotation.components
                let bounded = min(max(seconds, 0), 86_400)
                options.rotation = bounded * 1_000_000_000 + attoseconds / 1_000_000_000
                return options
            }
            return configuration
        }

        var connectionIntervalWithinBounds: ClosedRange<UInt16> { connectionInterval.clamped(to: 6...3200) }
    }
#endif
