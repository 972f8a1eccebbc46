import FerryBluetooth
public import Foundation

/// A service that this program publishes. Fixed once it has been given to ``CBPeripheralManager/add(_:)``.
open class CBMutableService: CBService {
    let publication = Guarded(Publication())

    /// A service without characteristics.
    public init(type UUID: CBUUID, primary isPrimary: Bool) {
        super.init(type: UUID, isPrimary: isPrimary)
    }

    /// Services that it includes; they are to be added first.
    open override var includedServices: [CBService]? {
        get { super.includedServices }
        set {
            guard isOpen() else { return }
            contents { $0.included = newValue }
        }
    }

    /// Its characteristics, in the order in which peers see them.
    open override var characteristics: [CBCharacteristic]? {
        get { super.characteristics }
        set {
            guard isOpen() else { return }
            for characteristic in newValue ?? [] { characteristic.owner.object = self }
            contents { $0.characteristics = newValue }
        }
    }

    private func isOpen(_ function: String = #function) -> Bool {
        guard publication.current.isFrozen else { return true }
        Misuse.report("CBMutableService.\(function) cannot be changed after the service has been added")
        return false
    }
}

/// Where a local attribute is published.
struct Publication {
    var isFrozen = false
    var id: AttributeID?
    weak var manager: CBPeripheralManager?
}

/// A characteristic that this program publishes. Fixed once its service has been added.
open class CBMutableCharacteristic: CBCharacteristic {
    let publication = Guarded(Publication())
    private let access: Guarded<CBAttributePermissions>
    let subscribers = Guarded<[CBCentral]>([])

    /// Describes a characteristic.
    ///
    /// - Parameters:
    ///   - UUID: its type.
    ///   - properties: what it offers.
    ///   - value: a fixed value, with which reads are answered by themselves; the characteristic must then be
    ///     read-only. Nil: each read and write comes as a request.
    ///   - permissions: who may read and write the value.
    public init(
        type UUID: CBUUID, properties: CBCharacteristicProperties, value: Data?, permissions: CBAttributePermissions
    ) {
        access = Guarded(permissions)
        super.init(type: UUID, properties: properties, value: value)
    }

    /// Who may read and write the value.
    open var permissions: CBAttributePermissions {
        get { access.current }
        set { if isOpen() { access.current = newValue } }
    }
    /// The centrals that are subscribed at present.
    open var subscribedCentrals: [CBCentral]? { subscribers.current }
    /// What the characteristic offers.
    open override var properties: CBCharacteristicProperties {
        get { super.properties }
        set { if isOpen() { contents { $0.properties = newValue } } }
    }
    /// The value. Setting it after the service has been added only concerns this object: peers are told by
    /// ``CBPeripheralManager/updateValue(_:for:onSubscribedCentrals:)``.
    open override var value: Data? {
        get { super.value }
        set { contents { $0.value = newValue } }
    }
    /// User descriptions and presentation formats; the other descriptors are added by themselves.
    open override var descriptors: [CBDescriptor]? {
        get { super.descriptors }
        set {
            guard isOpen() else { return }
            for descriptor in newValue ?? [] { descriptor.owner.object = self }
            contents { $0.descriptors = newValue }
        }
    }

    private func isOpen(_ function: String = #function) -> Bool {
        guard publication.current.isFrozen else { return true }
        Misuse.report("CBMutableCharacteristic.\(function) cannot be changed after the service has been added")
        return false
    }
}

/// A descriptor that this program publishes: a User Description or a Presentation Format.
open class CBMutableDescriptor: CBDescriptor {
    /// Describes a descriptor.
    ///
    /// - Parameters:
    ///   - UUID: its type.
    ///   - value: a `String` for a User Description, a `Data` for a Presentation Format.
    public init(type UUID: CBUUID, value: Any?) {
        super.init(type: UUID, value: value)
    }
}

extension CBMutableService {
    /// The service as adapters take it.
    func definition(on manager: CBPeripheralManager) throws(CBError) -> ServiceDefinition {
        var included: [AttributeID] = []
        for service in includedServices ?? [] {
            guard let published = (service as? CBMutableService)?.publication.current, published.manager === manager,
                let id = published.id
            else {
                throw CBError(
                    .invalidParameters, "The included service \(service.uuid) is not published; add it first.")
            }
            included.append(id)
        }
        var definitions: [CharacteristicDefinition] = []
        for characteristic in characteristics ?? [] {
            guard let mutable = characteristic as? CBMutableCharacteristic else {
                throw CBError(.invalidParameters, "The characteristic \(characteristic.uuid) is not a mutable one.")
            }
            definitions.append(try mutable.definition())
        }
        return ServiceDefinition(
            uuid.bluetooth, isPrimary: isPrimary, includedServices: included, characteristics: definitions)
    }
}

extension CBMutableCharacteristic {
    fileprivate func definition() throws(CBError) -> CharacteristicDefinition {
        guard properties.isDisjoint(with: [.broadcast, .extendedProperties]) else {
            throw CBError(
                .invalidParameters,
                "\(uuid): broadcast and extendedProperties are not for local characteristics.")
        }
        if value != nil {
            guard properties == .read, permissions.isDisjoint(with: [.writeable, .writeEncryptionRequired]) else {
                throw CBError(.invalidParameters, "\(uuid): Characteristics with cached values must be read-only.")
            }
        }
        var added: [DescriptorDefinition] = []
        for descriptor in descriptors ?? [] {
            let bytes: [UInt8]? =
                switch descriptor.value {
                case let text as String: Array(text.utf8)
                case let data as Data: Array(data)
                default: nil
                }
            guard
                let bytes,
                [CBUUIDCharacteristicUserDescriptionString, CBUUIDCharacteristicFormatString]
                    .contains(descriptor.uuid.uuidString)
            else {
                throw CBError(
                    .invalidParameters,
                    "\(uuid): only User Description (a String) and Presentation Format (a Data) can be added."
                )
            }
            added.append(DescriptorDefinition(descriptor.uuid.bluetooth, value: bytes))
        }
        return CharacteristicDefinition(
            uuid.bluetooth, properties: properties.bluetooth, permissions: permissions.bluetooth,
            value: value.map { [UInt8]($0) }, descriptors: added)
    }
}

/// A central's wish to read or write a value.
open class CBATTRequest: NSObject {
    /// The answer that is due, which the requests of one group share; nil for a write without response.
    let answer: PendingAnswer?
    private let source: CBCentral
    private let target: CBCharacteristic
    private let start: Int
    private let contents: Guarded<Data?>

    init(
        _ answer: PendingAnswer?, _ central: CBCentral, _ characteristic: CBCharacteristic, offset: Int, value: Data?
    ) {
        self.answer = answer
        source = central
        target = characteristic
        start = offset
        contents = Guarded(value)
    }

    /// Who asks.
    open var central: CBCentral { source }
    /// For which value.
    open var characteristic: CBCharacteristic { target }
    /// From which byte on.
    open var offset: Int { start }
    /// The value to write; for a read: set it to the value from ``offset`` on before answering.
    open var value: Data? {
        get { contents.current }
        set { contents.current = newValue }
    }
}

/// An answer that a central waits for; it is given once.
final class PendingAnswer: Sendable {
    let isRead: Bool
    private let id: RequestID
    private let role: any PeripheralRole
    private let isGiven = Guarded(false)

    init(_ id: RequestID, isRead: Bool, _ role: any PeripheralRole) {
        self.id = id
        self.isRead = isRead
        self.role = role
    }

    /// False when it has been given before.
    @discardableResult func give(_ response: Result<[UInt8], ATTError>) -> Bool {
        let isFirst = isGiven { isGiven in
            defer { isGiven = true }
            return !isGiven
        }
        if isFirst { role.respond(to: id, with: response) }
        return isFirst
    }
}
