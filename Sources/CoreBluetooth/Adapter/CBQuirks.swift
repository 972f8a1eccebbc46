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
}
