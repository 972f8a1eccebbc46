public import Ferry
public import FerryBluetooth

/// Matter's transport over Bluetooth LE, BTP (Matter Core Specification 1.4, 4.19), version 4: a handshake, packets with numbers and
/// acknowledgements, and messages of at most 65 535 bytes.
///
/// Use it with the layout `GATTConfiguration.matterBTP`. The side that connected is Matter's commissioner or administrator, the other
/// one the device; neither has to be told (``needsRole``). What messages hold is Matter's business, and not this module's.
///
/// It behaves as connectedhomeip does, where the specification leaves it open: see `Documentation/BTP.md`.
///
/// ## What it can notice
/// A packet that is lost, doubled or overtaken, an acknowledgement of a packet that was not sent, a peer that acknowledges nothing for
/// ``Configuration/acknowledgementTimeout`` or sends more than its window, a message without its end, and a peer with another version.
/// There is no repair: each ends the link.
public struct BTPFraming: Framing {
    /// The version that is spoken.
    public static let version: UInt8 = 4
    /// The bytes of a packet: the fewest a link must take, and the most that are sent.
    public static let packetSizes = 20...244
    /// The windows that work: with fewer than 3 places acknowledgements would answer each other without end.
    public static let windows = 3...255
    /// The most bytes of a message. connectedhomeip takes 1583 bytes at most.
    public static let maximumMessageSize = 65_535

    /// What can be chosen.
    public var configuration: Configuration

    /// `btp`.
    public var name: String { "btp" }

    /// True: the side that connected sends the handshake, and the two sides count from different numbers.
    public var needsRole: Bool { true }

    /// Makes the framing.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// The state for a new link of the side that connected.
    public func makeSession(limits: Limits) -> Session {
        makeSession(limits: limits, payloads: PayloadFormat(), role: .initiator)
    }

    /// The state for a new link.
    public func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session {
        Session(role, configuration, limits)
    }

    /// What can be chosen.
    public struct Configuration: Sendable, Hashable {
        /// The most packets without an acknowledgement, 3 to 255. Default 6, connectedhomeip's. The smaller of the two sides' counts.
        public var window = 6 {
            didSet { window = min(max(window, BTPFraming.windows.lowerBound), BTPFraming.windows.upperBound) }
        }
        /// How long the handshake may take. Default 15 s, connectedhomeip's; the specification has 5 s.
        public var handshakeTimeout: Duration = .seconds(15)
        /// How long the peer may leave a packet without acknowledgement. Default 15 s.
        public var acknowledgementTimeout: Duration = .seconds(15)
        /// How long an acknowledgement waits for a packet to ride on. Default 2.5 s. It is also what keeps an idle link alive:
        /// acknowledgements are acknowledged.
        public var acknowledgementDelay: Duration = .milliseconds(2500)

        /// The defaults.
        public init() {}
    }
}

extension GATTConfiguration {
    /// Matter's service, 0xFFF6: the central writes the handshake with response, subscribes to indications, and is answered.
    ///
    /// A device sets ``/FerryBluetooth/GATTConfiguration/advertisedData`` to its discriminator, vendor and product (Matter Core
    /// Specification 1.4, 5.4.2.5.6), without which no commissioner finds it.
    public static var matterBTP: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0xFFF6 as UInt16),
            characteristic: BluetoothUUID(0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D12 as UInt128),
            writeCharacteristic: BluetoothUUID(0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D11 as UInt128),
            subscription: .indicate, writeType: .withResponse, opening: .firstWrite, offersBothWriteTypes: false)
    }

    /// The same with additional commissioning data, which a commissioner may read from a third characteristic (5.4.2.5.7).
    ///
    /// - Parameter data: at most 512 bytes.
    public static func matterBTP(additionalData data: [UInt8]) -> GATTConfiguration {
        var layout = matterBTP
        layout.sides.values = [.init(BluetoothUUID(0x6463_0238_8772_45F2_B87D_748A_8321_8F04 as UInt128), bytes: data)]
        return layout
    }
}
