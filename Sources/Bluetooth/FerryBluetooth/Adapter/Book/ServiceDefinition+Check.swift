extension ServiceDefinition {
    /// Refuses what no adapter can publish.
    ///
    /// - Parameter isPublished: whether a service that is to be included is published by the same role.
    /// - Throws: `invalidArgument` with the defect and the remedy.
    public func check(isPublished: (AttributeID) -> Bool) throws(BluetoothError) {
        func refuse(_ message: String) -> BluetoothError {
            BluetoothError(.invalidArgument, "Service \(uuid): \(message).")
        }
        for included in includedServices where !isPublished(included) {
            throw refuse("the included service \(included.rawValue) is not published here; publish it first")
        }
        for characteristic in characteristics {
            let place = "characteristic \(characteristic.uuid)"
            let writing: AttributePermissions = [.writeable, .writeEncryptionRequired]
            if let value = characteristic.value {
                guard characteristic.properties == .read, characteristic.permissions.isDisjoint(with: writing) else {
                    throw refuse(
                        "\(place) has a fixed value, so it can only be read; give it the property read alone, or no value"
                    )
                }
                guard value.count <= 512 else {
                    throw refuse("\(place) has a value of \(value.count) bytes; 512 are the most")
                }
            }
            for descriptor in characteristic.descriptors {
                guard descriptor.value.count <= 512 else {
                    throw refuse("a descriptor of \(place) has \(descriptor.value.count) bytes; 512 are the most")
                }
                guard
                    ![.clientCharacteristicConfiguration, .characteristicExtendedProperties].contains(descriptor.uuid)
                else {
                    throw refuse("\(place) names the descriptor \(descriptor.uuid), which the adapter adds itself")
                }
            }
        }
    }
}

extension CharacteristicProperties {
    /// Those that are sent to peers: the two that CoreBluetooth adds are hints for the publishing side.
    public var onAir: Self {
        var seen = intersection(Self(rawValue: 0xFF))
        if contains(.notifyEncryptionRequired) { seen.insert(.notify) }
        if contains(.indicateEncryptionRequired) { seen.insert(.indicate) }
        return seen
    }

    /// Whether a central can subscribe.
    public var offersSubscription: Bool { !onAir.isDisjoint(with: [.notify, .indicate]) }

    /// Whether a central can subscribe in this way.
    public func offers(_ subscription: Subscription) -> Bool {
        onAir.contains(subscription == .notify ? .notify : .indicate)
    }

    /// Whether only an encrypted link may subscribe in this way.
    public func requiresEncryption(for subscription: Subscription) -> Bool {
        contains(subscription == .notify ? .notifyEncryptionRequired : .indicateEncryptionRequired)
    }
}
