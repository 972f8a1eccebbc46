import CoreBluetooth
import Ferry
import FerryBluetooth

/// The peripheral role where the system has none for apps: tvOS and watchOS, whose frameworks lack its initialisers.
///
/// It reports `unsupported`, and each of its calls fails with `notSupported`.
final class UnsupportedPeripheralRole: PeripheralRole {
    static let error = BluetoothError(
        .notSupported,
        "tvOS and watchOS have no peripheral role for apps. Let the other side advertise, and connect to it from this one."
    )

    init(_ events: any PeripheralRoleEvents) {
        DispatchQueue(label: "FerryCoreBluetooth peripheral").async { [weak events] in
            events?.peripheralAdapterDidChange(.unsupported)
        }
    }

    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService { throw Self.error }
    func unpublish(_ service: AttributeID) {}
    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
        throw Self.error
    }
    func stopAdvertising() {}
    func tryUpdateValue(_ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients)
        throws(BluetoothError) -> Bool
    {
        throw Self.error
    }
    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? { nil }
    func identity(of central: ConnectedCentral) -> PeerIdentity? { nil }
    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {}
    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {}
    func disconnect(_ central: ConnectedCentral) {}
    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM { throw Self.error }
    func unpublishL2CAPChannel(_ psm: PSM) {}
    func close() {}
}
