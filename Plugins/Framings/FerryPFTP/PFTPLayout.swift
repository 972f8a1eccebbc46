public import FerryBluetooth

extension GATTConfiguration {
    /// How requests and answers of PFTP lie over GATT: a characteristic that is written without response and notifies. For a
    /// device that wants an encrypted link set ``/FerryBluetooth/GATTConfiguration/encryptionRequired``.
    ///
    /// Source: PyPI polar-ble-tools 0.6.0, `polar/uuids.py`.
    public static var polarPFTP: GATTConfiguration {
        GATTConfiguration(service: .polar, characteristic: .pftp(0x51))
    }

    /// How notices of PFTP lie over GATT, which have no answer: those of the device notify, those of the host are written without response.
    ///
    /// Source: PyPI polar-ble-tools 0.6.0, `polar/uuids.py`.
    public static var polarNotices: GATTConfiguration {
        GATTConfiguration(
            service: .polar, characteristic: .pftp(0x52), writeCharacteristic: .pftp(0x53))
    }
}

extension BluetoothUUID {
    /// Polar Electro's.
    fileprivate static let polar = BluetoothUUID(0xFEEE as UInt16)

    fileprivate static func pftp(_ number: UInt8) -> BluetoothUUID {
        BluetoothUUID(0xFB00_5C00_02E7_F387_1CAD_8ACD_2D8D_F0C8 as UInt128 | UInt128(number) << 96)
    }
}
