import FerryBluetooth
import Foundation

/// Whether Bluetooth can be used now.
@frozen public enum CBManagerState: Int, Sendable {
    /// Not known yet; an update follows.
    case unknown = 0
    /// The connection to the system service was lost; an update follows.
    case resetting = 1
    /// The machine has no Bluetooth LE, or no adapter was found.
    case unsupported = 2
    /// This process may not use Bluetooth.
    case unauthorized = 3
    /// Switched off.
    case poweredOff = 4
    /// Ready for use.
    case poweredOn = 5

    init(_ state: AdapterState) { self = CBManagerState(rawValue: state.rawValue) ?? .unknown }
}

/// The former name of ``CBManagerState``.
@available(*, deprecated, renamed: "CBManagerState")
public typealias CBCentralManagerState = CBManagerState

/// The former name of ``CBManagerState``.
@available(*, deprecated, renamed: "CBManagerState")
public typealias CBPeripheralManagerState = CBManagerState

/// Whether people have allowed the program to use Bluetooth. On Linux that is settled by permissions: always allowed.
@frozen public enum CBManagerAuthorization: Int, Sendable {
    /// The user has not been asked yet.
    case notDetermined = 0
    /// Not allowed by policy.
    case restricted = 1
    /// Refused.
    case denied = 2
    /// Allowed.
    case allowedAlways = 3
}

/// The former form of ``CBManagerAuthorization``.
@frozen public enum CBPeripheralManagerAuthorizationStatus: Int, Sendable {
    /// The user has not been asked yet.
    case notDetermined = 0
    /// Not allowed by policy.
    case restricted = 1
    /// Refused.
    case denied = 2
    /// Allowed.
    case authorized = 3
}

/// How far a peripheral is connected.
@frozen public enum CBPeripheralState: Int, Sendable {
    /// Not connected.
    case disconnected = 0
    /// A connection is being made, or waits until the peripheral is heard.
    case connecting = 1
    /// Connected.
    case connected = 2
    /// The connection is being ended.
    case disconnecting = 3
}

/// Whether a write is answered.
@frozen public enum CBCharacteristicWriteType: Int, Sendable {
    /// The peripheral answers.
    case withResponse = 0
    /// The peripheral does not answer.
    case withoutResponse = 1
}

/// A change of a connection.
@frozen public enum CBConnectionEvent: Int, Sendable {
    /// The peripheral has disconnected.
    case peerDisconnected = 0
    /// The peripheral has connected.
    case peerConnected = 1
}

/// How quickly a connection should answer.
@frozen public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
    /// Quickly, at the cost of power.
    case low = 0
    /// In between.
    case medium = 1
    /// Slowly, to save power.
    case high = 2
}

/// What a characteristic offers; raw values as in the Core Specification, 5.4, Vol 3, Part G, table 3.5.
public struct CBCharacteristicProperties: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Makes a set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value may be broadcast. Not allowed for local characteristics.
    public static let broadcast = Self(rawValue: 0x01)
    /// The value can be read.
    public static let read = Self(rawValue: 0x02)
    /// The value can be written without a response.
    public static let writeWithoutResponse = Self(rawValue: 0x04)
    /// The value can be written, with a response.
    public static let write = Self(rawValue: 0x08)
    /// The value is sent to subscribers without confirmation.
    public static let notify = Self(rawValue: 0x10)
    /// The value is sent to subscribers, who confirm it.
    public static let indicate = Self(rawValue: 0x20)
    /// The value can be written with a signature.
    public static let authenticatedSignedWrites = Self(rawValue: 0x40)
    /// More properties stand in a descriptor. Not allowed for local characteristics.
    public static let extendedProperties = Self(rawValue: 0x80)
    /// Only trusted peers may subscribe to notifications.
    public static let notifyEncryptionRequired = Self(rawValue: 0x100)
    /// Only trusted peers may subscribe to indications.
    public static let indicateEncryptionRequired = Self(rawValue: 0x200)

    var bluetooth: CharacteristicProperties { CharacteristicProperties(rawValue: UInt16(truncatingIfNeeded: rawValue)) }
}

/// Who may read and write a characteristic's value.
public struct CBAttributePermissions: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Makes a set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Everyone may read.
    public static let readable = Self(rawValue: 0x01)
    /// Everyone may write.
    public static let writeable = Self(rawValue: 0x02)
    /// Only a trusted peer may read.
    public static let readEncryptionRequired = Self(rawValue: 0x04)
    /// Only a trusted peer may write.
    public static let writeEncryptionRequired = Self(rawValue: 0x08)

    var bluetooth: AttributePermissions { AttributePermissions(rawValue: UInt8(truncatingIfNeeded: rawValue)) }
}

/// The number by which an L2CAP channel is opened.
public typealias CBL2CAPPSM = UInt16

// What apps take from Core Foundation, which Foundation on Linux lacks.
#if !canImport(Darwin)
    /// Seconds since the reference date of 1 January 2001, as Core Foundation counts them.
    public typealias CFAbsoluteTime = CFTimeInterval
    /// Seconds, as Core Foundation counts them.
    public typealias CFTimeInterval = Double
    /// The seconds from the reference date of 1 January 2001 to now, by the system's clock, which may be set.
    public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date.timeIntervalSinceReferenceDate }
#endif
