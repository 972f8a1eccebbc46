/// What an attribute holds.
enum AttributeContent: Sendable, Equatable {
    /// A value that the host answers with.
    case fixed([UInt8])
    /// A value that the application is asked for.
    case application
    /// A Client Characteristic Configuration: one value for each client.
    case configuration(of: UInt16)
    /// Client Supported Features: one value for each client.
    case clientFeatures
    /// The Database Hash.
    case databaseHash
}

/// Who may read and write an attribute.
public struct AttributeAccess: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: UInt8
    /// Makes a set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It can be read.
    public static let read = AttributeAccess(rawValue: 0x01)
    /// It can be written, with response.
    public static let write = AttributeAccess(rawValue: 0x02)
    /// It can be written without response.
    public static let writeCommand = AttributeAccess(rawValue: 0x04)
    /// Reading needs an encrypted link.
    public static let readEncrypted = AttributeAccess(rawValue: 0x08)
    /// Writing, or for a configuration subscribing, needs an encrypted link.
    public static let writeEncrypted = AttributeAccess(rawValue: 0x10)
    /// Every access that needs an encrypted link needs one whose key a person took part in (Core Specification 5.4, Vol
    /// 3, Part C, 10.2.1: security mode 1, level 3).
    public static let authenticated = AttributeAccess(rawValue: 0x20)
    /// Every access that needs an encrypted link needs an authenticated key of LE Secure Connections (level 4).
    public static let secureConnections = AttributeAccess(rawValue: 0x40)
}

struct Attribute: Sendable {
    let handle: UInt16
    let type: UUID
    let content: AttributeContent
    let access: AttributeAccess
    /// For a service its last handle; for a configuration the properties of its characteristic; else 0.
    var group: UInt16 = 0
    /// For a characteristic's value its properties.
    var properties: UInt8 = 0
}

/// A characteristic to be added to the database.
public struct CharacteristicSpecification: Sendable {
    /// The characteristic's type.
    public var uuid: UUID
    /// Characteristic properties (Core Specification 5.4, Vol 3, Part G, 3.3.1.1), without signed writes, which are not
    /// offered. Extended ones add their descriptor (3.3.3.1), unless ``descriptors`` has it: reliable writes where the value
    /// can be written.
    public var properties: UInt8
    /// Who may use the value.
    public var access: AttributeAccess
    /// A fixed value of at most 512 bytes, or nil when the application answers.
    public var value: [UInt8]?
    /// Whether subscribing needs an encrypted link, as strong as ``access`` says.
    public var subscriptionNeedsEncryption: Bool
    /// Further descriptors with fixed values.
    public var descriptors: [(uuid: UUID, value: [UInt8])]

    /// Describes a characteristic.
    public init(
        _ uuid: UUID, properties: UInt8, access: AttributeAccess, value: [UInt8]? = nil,
        subscriptionNeedsEncryption: Bool = false, descriptors: [(uuid: UUID, value: [UInt8])] = []
    ) {
        self.uuid = uuid
        self.properties = properties
        self.access = access
        self.value = value
        self.subscriptionNeedsEncryption = subscriptionNeedsEncryption
        self.descriptors = descriptors
    }
}

/// A service to be added to the database.
public struct ServiceSpecification: Sendable {
    /// The service's type.
    public var uuid: UUID
    /// Primary or secondary.
    public var isPrimary: Bool
    /// Handles of services that it includes.
    public var includes: [UInt16]
    /// Its characteristics, in order.
    public var characteristics: [CharacteristicSpecification]

    /// Describes a service.
    public init(
        _ uuid: UUID, isPrimary: Bool = true, includes: [UInt16] = [], characteristics: [CharacteristicSpecification]
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
        self.characteristics = characteristics
    }
}

/// Where a service was put.
public struct ServiceHandles: Sendable, Hashable {
    /// The service declaration.
    public let service: UInt16
    /// The service's last attribute.
    public let end: UInt16
    /// The values of its characteristics, in order.
    public let characteristics: [UInt16]
}

/// The server's attributes in order of their handles (Core Specification 5.4, Vol 3, Part G, 2.5 and 3).
///
/// Handles are not used again while there are others, so that a client's stale handle finds nothing rather than
/// something else.
struct AttributeDatabase: Sendable {
    private(set) var attributes: [Attribute] = [] { didSet { knownHash = nil } }
    private var nextHandle: UInt16 = 1
    /// The handle of the characteristic Service Changed; 0 where there is none.
    private(set) var serviceChanged: UInt16 = 0
    /// The hash of the present services, once it has been asked for.
    var knownHash: [UInt8]?

    /// The services that every server has (Core Specification 5.4, Vol 3, Part C, 12 and Part G, 7).
    init(genericServicesOf configuration: HostConfiguration) {
        let name = Array(configuration.deviceName.utf8.prefix(248))
        var access = [
            CharacteristicSpecification(.deviceName, properties: 0x02, access: .read, value: name),
            CharacteristicSpecification(.appearance, properties: 0x02, access: .read, value: [0, 0]),
        ]
        if let preferred = configuration.preferredParameters, preferred.isValid {
            access.append(
                CharacteristicSpecification(
                    .preferredParameters, properties: 0x02, access: .read, value: preferred.bytes))
        }
        _ = add(ServiceSpecification(.genericAccess, characteristics: access))
        var characteristics = [
            CharacteristicSpecification(.serviceChanged, properties: 0x20, access: []),
            CharacteristicSpecification(.clientSupportedFeatures, properties: 0x0A, access: [.read, .write]),
        ]
        if configuration.usesEnhancedBearers {
            // Bit 0: they are taken (Vol 3, Part G, 7.4).
            characteristics.append(
                CharacteristicSpecification(.serverSupportedFeatures, properties: 0x02, access: .read, value: [0x01]))
        }
        if configuration.cryptography != nil {
            characteristics.append(CharacteristicSpecification(.databaseHash, properties: 0x02, access: .read))
        }
        let attribute = add(
            ServiceSpecification(.genericAttribute, characteristics: characteristics),
            contents: [.clientSupportedFeatures: .clientFeatures, .databaseHash: .databaseHash])
        serviceChanged = attribute?.characteristics.first ?? 0
    }

    /// Adds a service, or returns nil when there are no handles left for it. `contents` takes the place of what values of
    /// these types would hold.
    mutating func add(_ service: ServiceSpecification, contents: [UUID: AttributeContent] = [:]) -> ServiceHandles? {
        let before = (attributes.count, nextHandle)
        let index = attributes.count
        var characteristics: [UInt16] = []
        var isFull = false
        func append(
            _ type: UUID, _ content: AttributeContent, _ access: AttributeAccess, group: UInt16 = 0,
            properties: UInt8 = 0
        ) -> UInt16 {
            let handle = nextHandle
            isFull = isFull || handle == .max
            attributes.append(
                Attribute(
                    handle: handle, type: type, content: content, access: access, group: group, properties: properties))
            if !isFull { nextHandle += 1 }
            return handle
        }
        let start = append(
            service.isPrimary ? .primaryService : .secondaryService, .fixed(service.uuid.bytes), .read)
        for include in service.includes {
            guard let other = attribute(include) else { continue }
            var value: [UInt8] = []
            value.append(u16: include)
            value.append(u16: other.group)
            if case .fixed(let uuid) = other.content, uuid.count == 2 { value += uuid }
            _ = append(.include, .fixed(value), .read)
        }
        for characteristic in service.characteristics {
            var declaration = [characteristic.properties]
            declaration.append(u16: nextHandle &+ 1)
            _ = append(.characteristic, .fixed(declaration + characteristic.uuid.bytes), .read)
            let value = append(
                characteristic.uuid,
                contents[characteristic.uuid] ?? characteristic.value.map { .fixed($0) } ?? .application,
                characteristic.access,
                properties: characteristic.properties)
            characteristics.append(value)
            if characteristic.properties & 0x30 != 0 {
                var access: AttributeAccess = [.read, .write, .writeCommand]
                if characteristic.subscriptionNeedsEncryption {
                    access.formUnion(characteristic.access.intersection([.authenticated, .secureConnections]))
                    access.insert(.writeEncrypted)
                }
                _ = append(
                    .clientConfiguration, .configuration(of: value), access, group: UInt16(characteristic.properties))
            }
            // A prepared write is answered with its own bytes, and all of them are executed or none: reliable writes.
            if characteristic.properties & 0x80 != 0,
                !characteristic.descriptors.contains(where: { $0.uuid == .extendedProperties })
            {
                let isWritable = characteristic.access.contains(.write)
                _ = append(.extendedProperties, .fixed([isWritable ? 1 : 0, 0]), .read)
            }
            for descriptor in characteristic.descriptors {
                _ = append(descriptor.uuid, .fixed(descriptor.value), .read)
            }
        }
        guard !isFull, let end = attributes.last?.handle else {
            attributes.removeSubrange(before.0...)
            nextHandle = before.1
            return nil
        }
        attributes[index].group = end
        return ServiceHandles(service: start, end: end, characteristics: characteristics)
    }

    /// Removes a service; returns its range, or nil when there is none at that handle.
    mutating func remove(_ service: UInt16) -> ClosedRange<UInt16>? {
        guard let found = attribute(service), isService(found) else { return nil }
        let range = service...found.group
        attributes.removeAll { range.contains($0.handle) }
        return range
    }

    func isService(_ attribute: Attribute) -> Bool {
        attribute.type == .primaryService || attribute.type == .secondaryService
    }

    func attribute(_ handle: UInt16) -> Attribute? {
        let index = firstIndex(from: handle)
        guard index < attributes.count, attributes[index].handle == handle else { return nil }
        return attributes[index]
    }

    /// The attributes within `range`, in order.
    func attributes(in range: ClosedRange<UInt16>) -> ArraySlice<Attribute> {
        let start = firstIndex(from: range.lowerBound)
        let end = range.upperBound == .max ? attributes.count : firstIndex(from: range.upperBound + 1)
        return attributes[start..<end]
    }

    /// The handle of a characteristic's Client Characteristic Configuration, which follows its value.
    func configuration(of value: UInt16) -> UInt16? {
        guard value < .max, let next = attribute(value + 1), next.content == .configuration(of: value) else {
            return nil
        }
        return next.handle
    }

    private func firstIndex(from handle: UInt16) -> Int {
        var low = 0
        var high = attributes.count
        while low < high {
            let middle = (low + high) / 2
            if attributes[middle].handle < handle { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
