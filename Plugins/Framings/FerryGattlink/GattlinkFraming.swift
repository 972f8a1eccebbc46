public import Ferry
public import FerryBluetooth

/// Gattlink, by which devices on Fitbit's Golden Gate carry IP over Bluetooth LE: a stream of bytes in numbered packets, which are
/// acknowledged and sent again.
///
/// Use it with the layout `GATTConfiguration.gattlink`. Both sides do the same.
///
/// It behaves as Golden Gate's implementation does (`xp/gattlink/gg_gattlink.c`, Fitbit/golden-gate e516ea82), of which there is no
/// specification. Golden Gate can be set up to shorten the heads of datagrams; such a stream is ``Content/stream`` here.
///
/// ## What it can notice, and what it does then
/// A packet that is lost or doubled, by its number: it goes again after ``Configuration/resendInterval``, and so do all behind it. A
/// peer that acknowledges nothing for ``Configuration/acknowledgementTimeout``, or does not begin within
/// ``Configuration/resetTimeout``, ends the link. A peer that begins anew on the same link has lost what it had: a message that had
/// arrived in part is told as `truncatedMessage`, and those that it has not acknowledged are sent again from their begin, so that one
/// may arrive twice. There is no checksum.
public struct GattlinkFraming: Framing {
    /// What the stream carries.
    public enum Content: Sendable, Hashable {
        /// IPv4 datagrams, a message each, told apart by the length in their heads (RFC 791, 3.1).
        case datagrams
        /// Bytes. A message is a part of the stream, and the parts that arrive are others than those that were sent.
        case stream
    }

    /// The most packets without an acknowledgement that two sides can agree on.
    public static let windows = 1...31
    /// The fewest bytes of a datagram: its head.
    public static let shortestDatagram = 20

    /// What the stream carries.
    public let content: Content
    /// What can be chosen.
    public var configuration: Configuration

    /// Makes the framing.
    public init(_ content: Content = .datagrams, _ configuration: Configuration = Configuration()) {
        self.content = content
        self.configuration = configuration
    }

    /// `gattlink`.
    public var name: String { "gattlink" }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(self, limits) }

    /// What can be chosen. Times are Golden Gate's, where it has them.
    public struct Configuration: Sendable, Hashable {
        /// The most packets that this side sends, and takes, without an acknowledgement, 1 to 31. Default 8. Of each direction the
        /// smaller of the two sides' counts.
        public var window = 8 {
            didSet { window = min(max(window, GattlinkFraming.windows.lowerBound), GattlinkFraming.windows.upperBound) }
        }
        /// How long an acknowledgement waits for more packets. It goes at once for more than half of a window. Default 200 ms.
        public var acknowledgementDelay = Duration.milliseconds(200)
        /// When packets go again that were not acknowledged. Default 4 s.
        public var resendInterval = Duration.seconds(4)
        /// How long the peer may acknowledge nothing, and how long it may be silent within a datagram where
        /// ``/Ferry/Limits/inboundStallTimeout`` is shorter. Default 60 s; Golden Gate waits for ever.
        public var acknowledgementTimeout = Duration.seconds(60)
        /// How long the two sides may take to begin. Default 30 s; Golden Gate waits for ever.
        public var resetTimeout = Duration.seconds(30)

        /// The defaults.
        public init() {}
    }
}

extension GATTConfiguration {
    /// Gattlink's service, as devices with Golden Gate have it: values are written without response and notified.
    ///
    /// Source: Fitbit/golden-gate, `platform/android/.../GattlinkService.kt`. Where a device has it under the member number `FD62`, give
    /// that to ``/FerryBluetooth/GATTConfiguration/service``.
    public static var gattlink: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0xABBA_FF00_E56A_484C_B832_8B17_CF6C_BFE8 as UInt128),
            characteristic: BluetoothUUID(0xABBA_FF02_E56A_484C_B832_8B17_CF6C_BFE8 as UInt128),
            writeCharacteristic: BluetoothUUID(0xABBA_FF01_E56A_484C_B832_8B17_CF6C_BFE8 as UInt128))
    }
}

extension FerryError.Code {
    /// A message that Gattlink cannot say: an empty one, or one that is no IPv4 datagram where the stream carries them.
    public static let notADatagram = FerryError.Code("gattlink.notADatagram")
}
