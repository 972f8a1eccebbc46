public import FerryBluetooth

extension GATTConfiguration {
    /// The Nordic UART service: one characteristic that is written, one that notifies, and nothing else.
    ///
    /// Source: Nordic's `services/nus.h`; PyPI `ble-serial`, `bluetooth/constants.py`.
    public static var nordicUART: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0x6E40_0001_B5A3_F393_E0A9_E50E_24DC_CA9E as UInt128),
            characteristic: BluetoothUUID(0x6E40_0003_B5A3_F393_E0A9_E50E_24DC_CA9E as UInt128),
            writeCharacteristic: BluetoothUUID(0x6E40_0002_B5A3_F393_E0A9_E50E_24DC_CA9E as UInt128))
    }
}
