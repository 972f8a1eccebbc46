public import FerryBluetooth

extension GATTConfiguration {
    /// How SMP lies over GATT: a service with one characteristic, which is written without response and notifies.
    ///
    /// Source: Zephyr, `subsys/mgmt/mcumgr/transport/src/smp_bt.c`.
    public static var smp: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0x8D53_DC1D_1DB7_4CD3_868B_8A52_7460_AA84 as UInt128),
            characteristic: BluetoothUUID(0xDA2E_7828_FBCE_4E01_AE9E_2611_7499_7C48 as UInt128))
    }
}
