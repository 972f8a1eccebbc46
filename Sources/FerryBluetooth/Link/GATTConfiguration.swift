/// How a link is laid over GATT: the service, its one or two characteristics, and how values travel.
///
/// Both sides use the same configuration. A peripheral publishes what it says; a central looks for it.
public struct GATTConfiguration: Sendable, Hashable {
    /// The service that is advertised and looked for.
    public var service: BluetoothUUID
    /// The characteristic that carries chunks towards the central.
    public var characteristic: BluetoothUUID
    /// The characteristic that carries chunks towards the peripheral; nil for the same one.
    public var writeCharacteristic: BluetoothUUID?
    /// Whether chunks towards the central are confirmed one by one. Notifications by default; indications take two
    /// connection intervals each.
    public var subscription: Subscription
    /// Whether chunks towards the peripheral are answered one by one. Without response by default.
    public var writeType: WriteType
    /// The most bytes of a chunk towards the peripheral that is written without response, whatever ATT_MTU allows: 510, as
    /// a peripheral on BlueZ 5.66 drops longer ones and tells nobody. An ATT_MTU of 514 or 515 and more allows 511 and 512,
    /// which a central may use whose peripherals are known to take them. Writes with response are not affected.
    public var maximumWriteWithoutResponse: Int
    /// Whether the link must be encrypted.
    public var encryptionRequired: Bool
    /// The name a peripheral advertises, and that a central looks for; nil for none and any.
    public var localName: String?
    /// The signal strengths, in dBm, within which a central connects; nil for any.
    public var rssi: ClosedRange<Int>?

    /// Describes a layout.
    public init(
        service: BluetoothUUID, characteristic: BluetoothUUID, writeCharacteristic: BluetoothUUID? = nil,
        subscription: Subscription = .notify, writeType: WriteType = .withoutResponse,
        maximumWriteWithoutResponse: Int = 510, encryptionRequired: Bool = false, localName: String? = nil,
        rssi: ClosedRange<Int>? = nil
    ) {
        self.service = service
        self.characteristic = characteristic
        self.writeCharacteristic = writeCharacteristic
        self.subscription = subscription
        self.writeType = writeType
        self.maximumWriteWithoutResponse = maximumWriteWithoutResponse
        self.encryptionRequired = encryptionRequired
        self.localName = localName
        self.rssi = rssi
    }
}

extension GATTConfiguration {
    /// The service as a peripheral publishes it: the first characteristic is the one that notifies.
    var definition: ServiceDefinition {
        let updates: CharacteristicProperties =
            switch (subscription, encryptionRequired) {
            case (.notify, false): .notify
            case (.notify, true): [.notify, .notifyEncryptionRequired]
            case (.indicate, false): .indicate
            case (.indicate, true): [.indicate, .indicateEncryptionRequired]
            }
        let writes: CharacteristicProperties = [.write, .writeWithoutResponse]
        let permissions: AttributePermissions = encryptionRequired ? .writeEncryptionRequired : .writeable
        guard let writeCharacteristic, writeCharacteristic != characteristic else {
            let both = CharacteristicDefinition(
                characteristic, properties: updates.union(writes), permissions: permissions)
            return ServiceDefinition(service, characteristics: [both])
        }
        return ServiceDefinition(
            service,
            characteristics: [
                CharacteristicDefinition(characteristic, properties: updates, permissions: []),
                CharacteristicDefinition(writeCharacteristic, properties: writes, permissions: permissions),
            ])
    }
}
