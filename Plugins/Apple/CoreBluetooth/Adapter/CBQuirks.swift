/// What Apple's framework does in the field beyond its documentation, to be switched on so that a program can be tested
/// against it. Not part of Apple's API.
public struct CBQuirks: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Makes a set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// ``CBPeripheral/canSendWriteWithoutResponse`` is false on a new connection until something has been written
    /// without response, and nothing says that it is ready (deviceplug/btleplug 441, hbldh/bleak 1589).
    public static let cannotSendBeforeFirstWrite = Self(rawValue: 1)

    /// ``CBPeripheralDelegate/peripheralIsReady(toSendWriteWithoutResponse:)`` comes only after the queue was full, as the
    /// header's words can be read. By default it follows each write, as programs have come to rely on.
    public static let readyOnlyAfterFullQueue = Self(rawValue: 2)

    /// The queue of writes without response holds 20, as on phones of 2015 (openradar 20394802); further ones are lost.
    public static let shallowWriteQueue = Self(rawValue: 4)

    /// ``CBPeripheral/canSendWriteWithoutResponse`` is false and its call does not come, as in an app in the background, for
    /// which no app is woken; writing works all the same (developer forums 765444, 812376).
    public static let silentInBackground = Self(rawValue: 8)

    /// Every seventh call that says that there is room is lost, in both roles; in the field about one in 20 000
    /// (Polidea/RxBluetoothKit 282).
    public static let losesReadyCalls = Self(rawValue: 16)

    /// Peripherals that were restored as connecting stay so until the program connects them itself (LoopKit/CGMBLEKit 75).
    public static let restoredStaysConnecting = Self(rawValue: 32)

    /// Advertisements have no local name, as those of an app in the background (developer forums 814450).
    public static let namelessAdvertising = Self(rawValue: 64)

    /// Scans report nothing twice, and nothing at all unless they name services, as those of an app in the background.
    public static let quietScans = Self(rawValue: 128)

    /// L2CAP channels that are opened at once are answered in the opposite order, and all of them name the PSM that was asked
    /// for last (openradar 46227689, JuulLabs/kable 1231): open one at a time.
    public static let confusesChannels = Self(rawValue: 256)

    /// A PSM to which a channel was opened is refused on later connections, as one that is connected already, until the peer
    /// has published another (holepunchto/ble-swarm 10).
    public static let stalePSMs = Self(rawValue: 512)

    /// A connection first shows the services of the one before, without those that have come meanwhile and with those that
    /// have gone; the word of the change follows. A change that names no services leaves none until they are discovered
    /// again (openradar 28819540).
    public static let cachedServices = Self(rawValue: 1024)

    /// The longest values are those of ATT_MTU 23, in both roles, until three have been sent on a connection; nothing tells of
    /// the change.
    public static let lateATTMTU = Self(rawValue: 2048)

    /// ``CBPeripheralDelegate/peripheralIsReady(toSendWriteWithoutResponse:)`` never comes, in the foreground either, though
    /// ``CBPeripheral/canSendWriteWithoutResponse`` tells the truth: look at it again. Reported of iOS 26.5 and 26.5.1.
    public static let neverSaysReady = Self(rawValue: 4096)
}

extension CBQuirks {
    /// How many values go at the shortest length under ``lateATTMTU``.
    static let shortValues = 3
}

/// Counts calls that say that there is room.
struct ReadyCalls {
    private var count = 0

    mutating func isLost(_ quirks: CBQuirks) -> Bool {
        count += 1
        return quirks.contains(.losesReadyCalls) && count % 7 == 0
    }
}
