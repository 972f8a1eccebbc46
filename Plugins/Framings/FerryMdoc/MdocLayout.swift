public import Ferry
public import FerryBluetooth
import FerryDigest

extension GATTConfiguration {
    /// The layout of mdoc peripheral server mode: the mobile document listens, its reader connects (ISO/IEC 18013-5:2021, 8.3.3.1.1.4,
    /// table 5).
    ///
    /// - Parameters:
    ///   - service: the UUID of the device engagement (key 10 of its Bluetooth LE options).
    ///   - psm: the number of an L2CAP channel that the document offers besides; nil for none.
    public static func mdocPeripheralServer(service: BluetoothUUID, psm: PSM? = nil) -> GATTConfiguration {
        .mdoc(
            service, state: 0x1, clientToServer: 0x2, serverToClient: 0x3,
            values: psm.map { [.init(.mdoc(0xA), bytes: $0.mdocValue)] } ?? [])
    }

    /// The layout of mdoc central client mode: the reader listens, the mobile document connects (ISO/IEC 18013-5:2021, 8.3.3.1.1.4,
    /// table 6).
    ///
    /// - Parameters:
    ///   - service: the UUID of the device engagement (key 11 of its Bluetooth LE options).
    ///   - ident: the 16 bytes that a reader offers and the document compares before it sends anything
    ///     (``MdocIdent/value(eDeviceKeyBytes:)``); nil to neither offer nor compare them. Readers in the field do not all offer
    ///     them.
    ///   - psm: the number of an L2CAP channel that the reader offers besides; nil for none.
    public static func mdocCentralClient(
        service: BluetoothUUID, ident: [UInt8]?, psm: PSM? = nil
    ) -> GATTConfiguration {
        var values: [SideCharacteristics.Value] = []
        if let ident { values.append(.init(.mdoc(0x8), bytes: ident, use: .compared)) }
        if let psm { values.append(.init(.mdoc(0xB), bytes: psm.mdocValue)) }
        return .mdoc(service, state: 0x5, clientToServer: 0x6, serverToClient: 0x7, values: values)
    }

    private static func mdoc(
        _ service: BluetoothUUID, state: UInt32, clientToServer: UInt32, serverToClient: UInt32,
        values: [SideCharacteristics.Value]
    ) -> GATTConfiguration {
        GATTConfiguration(
            service: service, characteristic: .mdoc(serverToClient), writeCharacteristic: .mdoc(clientToServer),
            maximumWriteWithoutResponse: MdocFraming.maximumChunkSize, offersBothWriteTypes: false,
            sides: SideCharacteristics(state: .init(.mdoc(state), start: [1], end: [2]), values: values))
    }
}

extension BluetoothUUID {
    /// A characteristic of either mode. They differ in the first 32 bits.
    static func mdoc(_ number: UInt32) -> BluetoothUUID {
        BluetoothUUID(UInt128(number) << 96 | 0xA123_48CE_896B_4C76_9733_73E6)
    }
}

extension PSM {
    /// The value of the characteristic that names an L2CAP channel: 4 bytes, the most significant first. (Apple's characteristic for
    /// PSMs has 2 bytes, the least significant first.)
    public var mdocValue: [UInt8] { [0, 0, UInt8(rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }

    /// Reads the value of the characteristic that names an L2CAP channel, of a peer's mdoc service.
    ///
    /// - Throws: `malformedStream` when it has not 4 bytes, or is no PSM of LE (0x0001 to 0x00FF; Core Specification 5.4, Vol 3,
    ///   Part A, 4.22).
    public init(mdocValue value: [UInt8]) throws(FerryError) {
        let number = value.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        guard value.count == 4, (1...0xFF).contains(number) else {
            throw FerryError(
                .malformedStream,
                "The peer's L2CAP characteristic has \(value.count) bytes (\(value.prefix(8))); 4 bytes with a PSM from 1 to 255 "
                    + "were expected. Use the GATT characteristics instead.")
        }
        self.init(rawValue: UInt16(number))
    }
}

/// How a reader in mdoc central client mode proves that it has read the device engagement.
public enum MdocIdent {
    /// The value of the reader's Ident characteristic: 16 bytes of HKDF-SHA-256 (RFC 5869) over the document's ephemeral key, without
    /// salt, with the info `BLEIdent` (ISO/IEC 18013-5:2021, 8.3.3.1.1.3).
    ///
    /// - Parameter eDeviceKeyBytes: `EDeviceKeyBytes` of the device engagement as they stand there: the CBOR item of tag 24 with all its
    ///   bytes, tag included.
    public static func value(eDeviceKeyBytes: [UInt8]) -> [UInt8] {
        let key = SHA256.authenticate(eDeviceKeyBytes, key: [UInt8](repeating: 0, count: SHA256.byteCount))
        return Array(SHA256.authenticate([UInt8]("BLEIdent".utf8) + [1], key: key).prefix(16))
    }
}
