public import FerryBluetooth

extension GATTConfiguration {
    /// How the protobufs of a Meshtastic radio lie over GATT: `ToRadio` is written with response, `FromRadio` is read until it is empty, after
    /// each notification of `FromNum` and after each write.
    ///
    /// Source: meshtastic/firmware 77540685 (`BluetoothCommon.h`), PyPI meshtastic 2.7.11 (`ble_interface.py`).
    public static var meshtastic: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0x6BA1_B218_15A8_461F_9FA8_5DCA_E273_EAFD as UInt128),
            characteristic: BluetoothUUID(0xED9D_A18C_A800_4F66_A670_AA75_47E3_4453 as UInt128),
            writeCharacteristic: BluetoothUUID(0xF75C_76D2_129E_4DAD_A1DD_7866_1244_01E7 as UInt128),
            writeType: .withResponse, offersBothWriteTypes: false,
            sides: SideCharacteristics(queue: BluetoothUUID(0x2C55_E69E_4993_11ED_B878_0242_AC12_0002 as UInt128)))
    }
}
