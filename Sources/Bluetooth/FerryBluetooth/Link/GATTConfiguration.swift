/// How a link is laid over GATT: the service, its one or two characteristics, and how values travel.
///
/// Both sides use the same configuration. A peripheral publishes what it says; a central looks for it. A module for a format of
/// others has that format's layout as a static member, such as `GATTConfiguration.matterBTP` in FerryBTP.
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
    /// The most bytes of a chunk towards the peripheral that is written without response, at any ATT_MTU: 510, as a
    /// peripheral on BlueZ 5.66 drops longer ones without a report. An ATT_MTU of 514 or 515 and more allows 511 and
    /// 512, which a central may use whose peripherals are known to take them. Writes with response are not affected.
    public var maximumWriteWithoutResponse: Int
    /// Whether the link must be encrypted.
    public var encryptionRequired: Bool
    /// The name a peripheral advertises, and that a central looks for; nil for none and any.
    public var localName: String?
    /// The signal strengths, in dBm, within which a central connects; nil for any.
    public var rssi: ClosedRange<Int>?
    /// What a central does first. It subscribes by default, and always where the layout has a state.
    public var opening: Opening
    /// Whether a peripheral offers both ways of writing, so that a central may choose; else ``writeType`` alone, as formats of
    /// others prescribe it.
    public var offersBothWriteTypes: Bool
    /// Data of the service in a peripheral's advertisement; nil for none.
    public var advertisedData: [UInt8]?
    /// Characteristics beside those that carry chunks.
    public var sides: SideCharacteristics

    /// What a central does first once it has found the service.
    @frozen public enum Opening: Sendable, Hashable {
        /// It subscribes, with which the link begins.
        case subscription
        /// It writes its first chunk and subscribes when that is answered, or has left where writes are not answered. On a
        /// peripheral the link begins with that chunk, and sends nothing until the central has subscribed. The framing must
        /// have the central send first (``/Ferry/Framing/needsRole``), and a deadline: no adapter tells a peripheral that a
        /// central has gone which never subscribed.
        case firstWrite
    }

    /// Describes a layout.
    public init(
        service: BluetoothUUID, characteristic: BluetoothUUID, writeCharacteristic: BluetoothUUID? = nil,
        subscription: Subscription = .notify, writeType: WriteType = .withoutResponse,
        maximumWriteWithoutResponse: Int = 510, encryptionRequired: Bool = false, localName: String? = nil,
        rssi: ClosedRange<Int>? = nil, opening: Opening = .subscription, offersBothWriteTypes: Bool = true,
        advertisedData: [UInt8]? = nil, sides: SideCharacteristics = SideCharacteristics()
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
        self.opening = opening
        self.offersBothWriteTypes = offersBothWriteTypes
        self.advertisedData = advertisedData
        self.sides = sides
    }
}

extension GATTConfiguration {
    /// ``opening``, where it counts.
    var firstStep: Opening { sides.state == nil ? opening : .subscription }

    /// The service as a peripheral publishes it: the first characteristic is the one that notifies.
    var definition: ServiceDefinition {
        let updates: CharacteristicProperties =
            switch (subscription, encryptionRequired) {
            case (.notify, false): .notify
            case (.notify, true): [.notify, .notifyEncryptionRequired]
            case (.indicate, false): .indicate
            case (.indicate, true): [.indicate, .indicateEncryptionRequired]
            }
        let writes: CharacteristicProperties =
            offersBothWriteTypes ? [.write, .writeWithoutResponse] : writeType.property
        let sides = sides.definitions(encryptionRequired: encryptionRequired)
        let permissions: AttributePermissions = encryptionRequired ? .writeEncryptionRequired : .writeable
        guard let writeCharacteristic, writeCharacteristic != characteristic else {
            let both = CharacteristicDefinition(
                characteristic, properties: updates.union(writes), permissions: permissions)
            return ServiceDefinition(service, characteristics: [both] + sides)
        }
        return ServiceDefinition(
            service,
            characteristics: [
                CharacteristicDefinition(characteristic, properties: updates, permissions: []),
                CharacteristicDefinition(writeCharacteristic, properties: writes, permissions: permissions),
            ] + sides)
    }
}

/// The attributes that a link is laid over.
struct GATTAttributes: Sendable {
    let service: AttributeID
    /// What carries chunks towards the central; a doorbell where there is a queue.
    let updates: AttributeID
    /// What carries chunks towards the peripheral.
    let writes: AttributeID
    let state: AttributeID?
    let queue: AttributeID?
    /// What carries the layout's notes, in their order.
    let notes: [AttributeID]
}

extension GATTAttributes {
    /// Those of a service that was published as `configuration` says.
    init?(_ published: PublishedService, of configuration: GATTConfiguration) {
        let uuids = configuration.definition.characteristics.map(\.uuid)
        func attribute(_ uuid: BluetoothUUID?) -> AttributeID? {
            uuid.flatMap { uuids.firstIndex(of: $0) }.flatMap {
                $0 < published.characteristics.count ? published.characteristics[$0] : nil
            }
        }
        guard let updates = attribute(configuration.characteristic) else { return nil }
        let notes = configuration.sides.notes.compactMap { attribute($0.uuid) }
        guard notes.count == configuration.sides.notes.count else { return nil }
        self.init(
            service: published.id, updates: updates,
            writes: attribute(configuration.writeCharacteristic) ?? updates,
            state: attribute(configuration.sides.state?.uuid), queue: attribute(configuration.sides.queue),
            notes: notes)
    }
}
