import CoreBluetooth
import Ferry
import FerryBluetooth

extension PeerID {
    init(_ identifier: UUID) {
        self.init(rawValue: withUnsafeBytes(of: identifier.uuid) { $0.reduce(0) { $0 << 8 | UInt128($1) } })
    }

    /// The identifier that CoreBluetooth has for the peer.
    var identifier: UUID {
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            withUnsafeBytes(of: rawValue.bigEndian) { bytes.copyMemory(from: $0) }
        }
        return UUID(uuid: bytes)
    }
}

extension PeerIdentity {
    private static let suffix = "/corebluetooth"

    /// The system gives a peer one identifier for as long as it takes it for the same: by its bond, or by an address that
    /// lasts. An app is not told which.
    init(_ identifier: UUID) { self.init(identifier.uuidString + Self.suffix, certainty: .address) }

    /// The system's identifier, if this is one.
    var identifier: UUID? {
        guard certainty > .connection, name.hasSuffix(Self.suffix) else { return nil }
        return UUID(uuidString: String(name.dropLast(Self.suffix.count)))
    }
}

extension CBUUID {
    convenience init(_ uuid: BluetoothUUID) { self.init(string: uuid.uuidString) }

    var bluetooth: BluetoothUUID? { try? BluetoothUUID(bigEndianBytes: data) }
}

extension AdapterState {
    init(_ state: CBManagerState) { self = AdapterState(rawValue: state.rawValue) ?? .unknown }

    /// What an app's author has to do.
    var advice: String {
        switch self {
        case .poweredOn: "Nothing is wrong."
        case .poweredOff: "Ask the person to switch Bluetooth on, and wait for poweredOn."
        case .unauthorized:
            "Add NSBluetoothAlwaysUsageDescription to Info.plist (on a Mac the app sandbox's Bluetooth entitlement too), and ask "
                + "the person to allow Bluetooth for the app in Settings."
        case .unsupported: "This machine has no Bluetooth LE; the iOS simulator has none either."
        case .unknown, .resetting: "Wait for poweredOn."
        }
    }
}

extension BluetoothError {
    static func notPoweredOn(_ state: AdapterState) -> BluetoothError {
        BluetoothError(.notPoweredOn, "Bluetooth is \(state). \(state.advice)")
    }

    /// What CoreBluetooth has said, with a hint where there is one.
    init(_ error: any Error, doing what: String, otherwise: Code = .connectionFailed) {
        let error = error as NSError
        if error.domain == CBATTErrorDomain {
            let code = ATTError(rawValue: UInt8(truncatingIfNeeded: error.code))
            self.init(.att(code), "\(what): \(code.explanation)")
            return
        }
        let code = error.domain == CBErrorDomain ? CBError.Code(rawValue: error.code) : nil
        let kind: Code =
            switch code {
            case .connectionTimeout: .connectionTimeout
            case .peripheralDisconnected: .disconnectedByPeer
            case .notConnected: .notConnected
            case .invalidHandle: .unknownAttribute
            case .invalidParameters, .uuidNotAllowed: .invalidArgument
            case .unknownDevice: .unknownPeer
            case .operationNotSupported: .notSupported
            case .operationCancelled: .cancelled
            case .outOfSpace: .outOfResources
            default: otherwise
            }
        self.init(kind, "\(what): \(error.localizedDescription)\(Self.hint(code))")
    }

    private static func hint(_ code: CBError.Code?) -> String {
        switch code {
        case .peerRemovedPairingInformation:
            " The peer has forgotten the bond: ask the person to forget it in Settings, too, and pair again."
        case .encryptionTimedOut: " Ask the person to forget the peer in Settings and to pair again."
        case .connectionLimitReached: " Disconnect another peripheral first."
        case .uuidNotAllowed: " The system keeps this service to itself; use another UUID."
        default: ""
        }
    }
}

extension AdvertisementData {
    init(_ data: [String: Any]) {
        func uuids(_ key: String) -> [BluetoothUUID] { (data[key] as? [CBUUID] ?? []).compactMap(\.bluetooth) }
        self.init(
            localName: data[CBAdvertisementDataLocalNameKey] as? String,
            services: uuids(CBAdvertisementDataServiceUUIDsKey),
            overflowServices: uuids(CBAdvertisementDataOverflowServiceUUIDsKey),
            txPower: (data[CBAdvertisementDataTxPowerLevelKey] as? NSNumber)?.intValue,
            isConnectable: (data[CBAdvertisementDataIsConnectable] as? NSNumber)?.boolValue ?? true,
            manufacturerData: (data[CBAdvertisementDataManufacturerDataKey] as? Data).map { Array($0) },
            serviceData: Dictionary(
                (data[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data] ?? [:]).compactMap { uuid, data in
                    uuid.bluetooth.map { ($0, Array(data)) }
                }, uniquingKeysWith: { $1 }))
    }
}

extension RawSpan {
    var data: Data { withUnsafeBytes { Data($0) } }
}

extension Data {
    /// Lends the bytes for the length of a call.
    func lend<Result>(_ body: (RawSpan) -> Result) -> Result { withUnsafeBytes { body($0.bytes) } }
}
