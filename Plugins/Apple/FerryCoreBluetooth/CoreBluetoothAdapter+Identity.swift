public import CoreBluetooth
public import Ferry

extension CoreBluetoothAdapter {
    /// Returns who a peer is by the identifier that the system gave the app: that of a `CBPeripheral`, or an accessory's
    /// `bluetoothIdentifier` of AccessorySetupKit. With it `connect(to:timeout:)` of a transport needs no scan. An identifier is
    /// valid for this app on this device.
    public static func identity(of identifier: UUID) -> PeerIdentity { PeerIdentity(identifier) }
}
