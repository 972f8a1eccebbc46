import FerryBluetooth
public import Foundation

/// A UUID as Bluetooth uses it: 16, 32 or 128 bits. Two are equal when their 128-bit values are.
open class CBUUID: NSObject, NSCopying {
    let bluetooth: BluetoothUUID

    /// Reads 4 or 8 hexadecimal digits, or the 36 characters of the 128-bit form.
    ///
    /// Apple's raises an exception for anything else; here that is reported as misuse and gives the UUID of all zeros,
    /// which no peer has.
    public init(string theString: String) {
        do throws(BluetoothError) { bluetooth = try BluetoothUUID(theString) } catch {
            Misuse.report("CBUUID(string:): \(error.message)")
            bluetooth = BluetoothUUID(0 as UInt128)
        }
    }

    /// Reads 2, 4 or 16 bytes, most significant first. Any other count is treated as by ``init(string:)``.
    public init(data theData: Data) {
        do throws(BluetoothError) { bluetooth = try BluetoothUUID(bigEndianBytes: theData) } catch {
            Misuse.report("CBUUID(data:): \(error.message)")
            bluetooth = BluetoothUUID(0 as UInt128)
        }
    }

    /// Takes the 128 bits of a Foundation UUID.
    public init(nsuuid theUUID: UUID) {
        bluetooth = BluetoothUUID(theUUID.bits)
    }

    /// The UUID of all zeros, which no peer has.
    public override init() { bluetooth = BluetoothUUID(0 as UInt128) }

    init(_ bluetooth: BluetoothUUID) { self.bluetooth = bluetooth }

    /// The shortest form's 2, 4 or 16 bytes, most significant first.
    open var data: Data { Data(bluetooth.bigEndianBytes) }

    /// The shortest form: 4 or 8 digits, or 36 characters, in capitals.
    open var uuidString: String { bluetooth.description }

    /// The name that the Bluetooth SIG has given to the UUID, such as `Heart Rate`, or ``uuidString``.
    open override var description: String { bluetooth.name ?? bluetooth.description }

    /// As ``description``.
    open override var debugDescription: String { description }

    /// Whether the other object is a UUID of the same 128-bit value.
    open override func isEqual(_ object: Any?) -> Bool { (object as? CBUUID)?.bluetooth == bluetooth }

    /// Equal for equal UUIDs.
    open override var hash: Int { bluetooth.hashValue }

    /// The UUID itself, which cannot change.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// The UUID of the Characteristic Extended Properties descriptor, as a string.
public let CBUUIDCharacteristicExtendedPropertiesString: String = "2900"
/// The UUID of the Characteristic User Description descriptor, as a string.
public let CBUUIDCharacteristicUserDescriptionString: String = "2901"
/// The UUID of the Client Characteristic Configuration descriptor, as a string.
public let CBUUIDClientCharacteristicConfigurationString: String = "2902"
/// The UUID of the Server Characteristic Configuration descriptor, as a string.
public let CBUUIDServerCharacteristicConfigurationString: String = "2903"
/// The UUID of the Characteristic Presentation Format descriptor, as a string.
public let CBUUIDCharacteristicFormatString: String = "2904"
/// The UUID of the Characteristic Aggregate Format descriptor, as a string.
public let CBUUIDCharacteristicAggregateFormatString: String = "2905"
/// The UUID of the Valid Range descriptor, as a string.
public let CBUUIDCharacteristicValidRangeString: String = "2906"
/// The UUID of the Observation Schedule descriptor, as a string.
public let CBUUIDCharacteristicObservationScheduleString: String = "2910"
/// The UUID of a characteristic that holds the PSM of an L2CAP channel, as a string.
public let CBUUIDL2CAPPSMCharacteristicString: String = "ABDD3056-28FA-441D-A470-55A75A52553A"
