// The Database Hash and robust caching, for clients that keep what they have found (Core Specification 5.4, Vol 3, Part G,
// 2.5.2 and 7.1 to 7.3).

/// What a client has written to Client Supported Features (Vol 3, Part G, 7.2).
struct ClientFeatures: OptionSet, Sendable, Hashable, Codable {
    let rawValue: UInt8
    /// It wants to be told when what it asks for may not be what it has found.
    static let robustCaching = ClientFeatures(rawValue: 0x01)
    /// It uses enhanced bearers.
    static let enhancedBearers = ClientFeatures(rawValue: 0x02)
    /// It understands several values in one notification.
    static let multipleNotifications = ClientFeatures(rawValue: 0x04)
}

/// Whether a client knows the services as they are (2.5.2.1).
enum ChangeAwareness: Sendable, Hashable {
    case aware
    case unaware
    /// It has read the hash, or has been told that it is out of step: its next request shows that it knows.
    case learning
}

/// The server's memory of a bonded client between its connections.
struct RememberedClient: Sendable, Hashable, Codable {
    let address: Address
    let features: ClientFeatures
    /// The services as the client knows them; nil when it does not.
    let knownHash: [UInt8]?
    let wantsServiceChanged: Bool
    /// What it has subscribed to, by the handles of the configurations, as long as the services are the same.
    var configurations: [UInt16: UInt16] = [:]
}

extension AttributeDatabase {
    /// The bytes that the hash is made of (7.3.1): declarations with their values, standard descriptors without.
    static func hashInput(_ attributes: [Attribute]) -> [UInt8] {
        var bytes: [UInt8] = []
        for attribute in attributes {
            guard attribute.type.isShort else { continue }
            switch UInt16(truncatingIfNeeded: attribute.type.value >> 96) {
            case 0x2800...0x2803, 0x2900:
                bytes.append(u16: attribute.handle)
                bytes += attribute.type.bytes
                if case .fixed(let value) = attribute.content { bytes += value }
            case 0x2901...0x2905:
                bytes.append(u16: attribute.handle)
                bytes += attribute.type.bytes
            default: break
            }
        }
        return bytes
    }

    /// The value of the Database Hash characteristic: an AES-CMAC with the key 0, least significant octet first. Nothing without
    /// cryptography.
    func hash(by cryptography: (any PairingCryptography)?) -> [UInt8] {
        if let knownHash { return knownHash }
        let hash = cryptography?.aesCMAC(key: [UInt8](repeating: 0, count: 16), message: Self.hashInput(attributes))
        return hash?.reversed() ?? []
    }

    /// The same, kept until a service is another.
    mutating func keepHash(by cryptography: (any PairingCryptography)?) -> [UInt8] {
        let hash = hash(by: cryptography)
        knownHash = hash
        return hash
    }
}

extension LEHost {
    /// Bonded clients that are remembered, at most; the one that was away longest is forgotten first.
    static let rememberedLimit = 64

    /// Takes a client's features. A bit that was set stays so (7.2).
    mutating func writeFeatures(_ index: Int, _ handle: UInt16, _ value: [UInt8]) throws(ATTRequest.Refusal) {
        guard let first = value.first else {
            throw ATTRequest.Refusal(handle: handle, code: .invalidAttributeValueLength)
        }
        let features = ClientFeatures(rawValue: first)
        guard features.isSuperset(of: connections[index].clientFeatures) else {
            throw ATTRequest.Refusal(handle: handle, code: .valueNotAllowed)
        }
        connections[index].clientFeatures = features
    }

    // MARK: Robust caching

    /// Whether a client that asked for it is out of step.
    func isOutOfStep(_ index: Int) -> Bool {
        connections[index].awareness != .aware && connections[index].clientFeatures.contains(.robustCaching)
    }

    /// Refuses what names an attribute, once, while the client is out of step.
    mutating func checkAwareness(_ index: Int, _ request: ATTRequest) throws(ATTRequest.Refusal) {
        switch connections[index].awareness {
        case .aware: break
        case .learning:
            connections[index].awareness = .aware
        case .unaware:
            guard isOutOfStep(index), let handle = request.namedHandle else { return }
            connections[index].awareness = .learning
            throw ATTRequest.Refusal(handle: handle, code: .databaseOutOfSync)
        }
    }

    /// Tells those who send values that there is a client again that takes them.
    private mutating func wake(_ index: Int) {
        guard connections[index].wantsReady, connections[index].indication == .none else { return }
        connections[index].wantsReady = false
        pending.events.append(.readyToSend(connections[index].id))
    }

    // MARK: Service Changed

    /// The services within `range` are others now: no client knows them yet, and clients that asked for it are told.
    mutating func servicesDidChange(_ range: ClosedRange<UInt16>, at now: Int64) {
        for index in connections.indices {
            connections[index].awareness = .unaware
            guard wantsServiceChanged(connections[index]) else { continue }
            let earlier = connections[index].changedServices ?? range
            connections[index].changedServices =
                min(earlier.lowerBound, range.lowerBound)...max(earlier.upperBound, range.upperBound)
            tellServicesChanged(index, at: now)
        }
    }

    private func wantsServiceChanged(_ connection: Connection) -> Bool {
        database.configuration(of: database.serviceChanged).map { connection.configurations[$0] == 2 } ?? false
    }

    /// Service Changed is an indication, so it waits for the one before it to be confirmed.
    private mutating func tellServicesChanged(_ index: Int, at now: Int64) {
        guard let range = connections[index].changedServices, connections[index].closing == nil,
            connections[index].indication == .none, wantsServiceChanged(connections[index])
        else { return }
        connections[index].changedServices = nil
        connections[index].indication = .serviceChanged(deadline: now + ATT.transactionTimeout)
        var value: [UInt8] = []
        value.append(u16: range.lowerBound)
        value.append(u16: range.upperBound)
        connections[index].transmit.appendValue(ATTOpcode.indication, handle: database.serviceChanged, value.span.bytes)
    }

    /// An indication was confirmed: the client knows, and what changed since is next.
    mutating func confirmationDidArrive(_ index: Int, at now: Int64) {
        switch connections[index].indication.take() {
        case .none: return
        case .value: break
        case .serviceChanged:
            if connections[index].changedServices == nil { connections[index].awareness = .aware }
        }
        tellServicesChanged(index, at: now)
        wake(index)
    }

    // MARK: Bonded clients

    /// Keeps what a bonded client must find again: its features, its subscriptions (3.3.3.3), and what it knows of the
    /// services.
    mutating func remember(_ connection: Connection) {
        guard let client = remembered(connection) else { return }
        rememberedClients.removeAll { $0.address == client.address }
        rememberedClients.append(client)
        if rememberedClients.count > Self.rememberedLimit { rememberedClients.removeFirst() }
    }

    /// Nothing for a client that has not proved who it is.
    func remembered(_ connection: Connection) -> RememberedClient? {
        guard connection.security.link.isBonded, let bond = keyring.bond(with: connection.peer) else { return nil }
        return RememberedClient(
            address: bond.peer, features: connection.clientFeatures,
            knownHash: connection.awareness == .aware ? database.hash(by: configuration.cryptography) : nil,
            wantsServiceChanged: wantsServiceChanged(connection), configurations: connection.configurations)
    }

    /// A client has come back and proved who it is.
    mutating func recall(_ index: Int, at now: Int64) {
        guard let bond = bond(index), let place = rememberedClients.firstIndex(where: { $0.address == bond.peer })
        else { return }
        let client = rememberedClients.remove(at: place)
        connections[index].clientFeatures.formUnion(client.features)
        if client.wantsServiceChanged, let handle = database.configuration(of: database.serviceChanged) {
            connections[index].configurations[handle] = 2
        }
        guard client.knownHash != database.keepHash(by: configuration.cryptography) else {
            restore(client.configurations, of: index)
            return
        }
        connections[index].awareness = .unaware
        connections[index].changedServices = 1...0xFFFF
        tellServicesChanged(index, at: now)
    }

    /// Subscriptions are as they were when the client left; the application is told.
    private mutating func restore(_ configurations: [UInt16: UInt16], of index: Int) {
        for (handle, bits) in configurations.sorted(by: { $0.key < $1.key }) {
            guard let attribute = database.attribute(handle), case .configuration(let value) = attribute.content,
                connections[index].configurations[handle] == nil, bits & ~(attribute.group >> 4 & 0x3) == 0
            else { continue }
            connections[index].configurations[handle] = bits
            pending.events.append(.configurationChanged(connections[index].id, handle: value, bits: bits))
        }
    }
}

extension ATTRequest {
    /// The attribute that a client must know to ask this, if it must: discovery goes through everything (2.5.2.1).
    fileprivate var namedHandle: UInt16? {
        switch self {
        case .read(let handle), .readBlob(let handle, _), .write(let handle, _), .prepareWrite(let handle, _, _): handle
        case .readMultiple(let handles, _): handles.first
        case .readByType(let range, let type):
            type == .include || type == .characteristic || range == 1...0xFFFF ? nil : range.lowerBound
        case .exchangeMTU, .findInformation, .findByTypeValue, .readByGroupType, .executeWrite: nil
        }
    }
}
