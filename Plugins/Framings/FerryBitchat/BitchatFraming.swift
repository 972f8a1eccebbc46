public import Ferry
public import FerryBluetooth

/// Packets of bitchat's mesh, whole or as fragments.
///
/// Use it with the layout `GATTConfiguration.bitchat`. A message is a packet (``BitchatPacket/bytes()``), and both sides do the same. A
/// packet that does not fit into a value goes as fragments, packets themselves, which its receiver puts together; as packets are passed
/// on, fragments of several of them may come between one another, in any order. The app gets whole packets and no fragments; one that it
/// passes on is cut anew for each neighbour.
///
/// ## What it can notice, and what it does then
/// A value that is no packet, a fragment that contradicts the ones before it, one whose packet would be too large, and a packet of which
/// fragments have not come within ``Configuration/assemblyTimeout``: each is told (`receiveFailed`), and the link goes on, for a neighbour
/// passes on what strangers send. There is no acknowledgement. What the number of fragments is, the first one says: bitchat goes by the
/// last one, so that one fragment of a stranger's damages a packet of another.
public struct BitchatFraming: Framing {
    /// The most fragments that a packet may have.
    public static let mostFragments = 10_000
    /// The fewest bytes of a value, those of a fragment to one peer with a few bytes of data.
    public static let smallestValue = 64

    /// What can be chosen.
    public var configuration: Configuration

    /// `bitchat`.
    public var name: String { "bitchat" }

    /// Makes the framing.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(configuration, limits) }

    /// What can be chosen.
    public struct Configuration: Sendable, Hashable {
        /// Whether a packet that fits is made as long as the next of 256, 512, 1024 and 2048 bytes, where it fits too and at most 255 are
        /// missing: so bitchat hides the length of private messages. Default false.
        public var pads = false
        /// The most fragments that a packet is sent in. Default 256: bitchat on Android drops packets of more, and on iOS those of more
        /// than ``BitchatFraming/mostFragments``.
        public var maximumFragments = 256 {
            didSet { maximumFragments = min(max(1, maximumFragments), BitchatFraming.mostFragments) }
        }
        /// How many packets may be put together at once, 1 to 1024. For another one the oldest is given up. Default 128, bitchat's.
        public var maximumAssemblies = 128 { didSet { maximumAssemblies = min(max(1, maximumAssemblies), 1024) } }
        /// How long a packet's fragments may take. Default 30 s, bitchat's.
        public var assemblyTimeout = Duration.seconds(30)
        /// What the numbers of fragmented packets are made from, beside the packets. By default it is drawn.
        public var seed = UInt64.random(in: 0 ... .max)

        /// The defaults.
        public init() {}
    }
}

extension GATTConfiguration {
    /// bitchat's service: one characteristic that is written and notifies.
    ///
    /// Source: permissionlesstech/bitchat 9b84b361, `BLEService.swift`. Its development builds have a service of their own, which ends in `5A`.
    public static var bitchat: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0xF47B_5E2D_4A9E_4C5A_9B3F_8E1D_2C3A_4B5C as UInt128),
            characteristic: BluetoothUUID(0xA1B2_C3D4_E5F6_4A5B_8C9D_0E1F_2A3B_4C5D as UInt128))
    }
}
