import Ferry
import FerryBluetooth

/// What a central's owner has asked for, as a sequence of ATT requests of which one is outstanding per link.
struct ClientRequest {
    let client: Int
    var kind: Kind
    var completion: Completion
    /// When its answer is due; `nil` until it is sent.
    var deadline: Timestamp?

    enum Completion {
        /// The result is dropped.
        case none
        case waiter(Waiter<Outcome>)
        /// It came from `tryWriteValue`; the answer is an event.
        case queuedWrite(AttributeID)
    }

    enum Kind {
        case exchangeMTU
        case discover(Discover)
        case read(AttributeID, collected: [UInt8])
        case write(AttributeID, [UInt8])
        /// A long write: how much has been prepared.
        case longWrite(AttributeID, [UInt8], prepared: Int)
        case configure(AttributeID, Subscription?)
    }
}

/// One discovery procedure.
enum Discover {
    case services([BluetoothUUID]?)
    case includedServices([BluetoothUUID]?, of: AttributeID)
    case characteristics([BluetoothUUID]?, of: AttributeID)
    case descriptors(of: AttributeID)
}

/// A request as it goes over the air.
enum ATTRequest {
    case exchangeMTU
    case discover(Discover)
    case read(AttributeID, offset: Int)
    case write(AttributeID, [UInt8])
    case prepare(AttributeID, offset: Int, [UInt8])
    case execute
    case configure(AttributeID, Subscription?, client: Int)
}

/// What a request came to.
enum Outcome: Sendable {
    case done
    case services([RemoteService])
    case characteristics([RemoteCharacteristic])
    case descriptors([RemoteDescriptor])
    case value([UInt8])
}

extension BluetoothError {
    static func att(_ error: ATTError, _ what: String) -> BluetoothError {
        BluetoothError(
            .att(error), "the peripheral refused \(what) with ATT error 0x\(String(error.rawValue, radix: 16))")
    }
}
