import Testing
import VirtualControllers

@testable import BluetoothHost

/// A host on one virtual controller, and on the other nobody but the test: it speaks HCI and PDUs by the octet, so that it
/// can say what no host would.
final class Attack {
    /// Of the host that is attacked.
    static let own = Address.staticRandom(0xF1F1_F1F1_F1F1)
    static let secretHandle: UInt16 = 0x0011
    static let service = HostPair.service

    private static let host = 0
    private static let attacker = 1

    var controllers = VirtualControllers(.init(aclLength: 251, receiveLength: 251))
    var now: Int64 = 1_000
    private var victim: LEHost
    /// What the host has told its application.
    var log: [HostEvent] = []
    /// Values and write commands that reached the application.
    var received: [[UInt8]] = []
    /// Events that the attacker's controller has given it.
    var events: [[UInt8]] = []
    private var framesSeen = 0
    var handles: ServiceHandles?
    /// What the attacker connects with.
    var interval: UInt16 = 24
    var latency: UInt16 = 0

    init(
        _ adapt: (inout PairingOptions) -> Void = { _ in }, configure: (inout HostConfiguration) -> Void = { _ in }
    ) {
        var configuration = HostConfiguration(address: Self.own)
        configure(&configuration)
        var options = PairingOptions(cryptography: ToyCryptography(seed: 11))
        adapt(&options)
        configuration.pairing = options
        victim = LEHost(configuration)
    }

    func host<R>(_ body: (inout LEHost, Int64) throws -> R) rethrows -> R { try body(&victim, now) }

    func settle() {
        var isMoving = true
        while isMoving {
            isMoving = false
            var packet: [UInt8] = []
            while victim.nextPacket(into: &packet, at: now) {
                controllers.receive(packet, from: Self.host)
                packet = []
                isMoving = true
            }
            let packets = controllers.toHost[Self.host]
            controllers.toHost[Self.host] = []
            for packet in packets { victim.receive(packet.span.bytes, at: now) }
            isMoving = isMoving || !packets.isEmpty
            events += controllers.toHost[Self.attacker].filter { $0[0] == 4 }.map { Array($0[1...]) }
            controllers.toHost[Self.attacker] = []
            var batch = EventBatch()
            victim.swapEvents(&batch)
            for event in batch.events {
                log.append(event)
                switch event {
                case .valueReceived(_, _, let bytes), .writeCommand(_, _, let bytes):
                    received.append(batch.withBytes(bytes) { [UInt8](copying: $0) })
                default: break
                }
            }
        }
    }

    /// The host's own controller says what no controller would, from the H4 indicator on.
    func controllerSays(_ packets: [UInt8]...) {
        controllers.toHost[Self.host] += packets
        settle()
    }

    func advance(seconds: Double) {
        let end = now + Int64(seconds * 1e9)
        while let next = victim.deadline, next <= end {
            now = max(now, next)
            victim.wake(at: now)
            settle()
        }
        now = end
    }

    // MARK: The attacker's controller

    func command(_ opcode: UInt16, _ parameters: [UInt8] = []) {
        let packet = [1, UInt8(opcode & 0xFF), UInt8(opcode >> 8), UInt8(parameters.count)] + parameters
        controllers.receive(packet, from: Self.attacker)
        settle()
    }

    /// Sets both controllers up, the attacker's with an address of its choice.
    func start(as address: Address, publishing characteristics: [CharacteristicSpecification] = []) throws {
        host { $0.start(at: $1) }
        settle()
        if !characteristics.isEmpty {
            let service = ServiceSpecification(Self.service, characteristics: characteristics)
            handles = host { $0.addService(service, at: $1) }
        }
        become(address)
    }

    func become(_ address: Address) {
        command(0x0C03)
        command(0x0C01, [UInt8](repeating: 0xFF, count: 8))
        command(0x2001, [UInt8](repeating: 0xFF, count: 8))
        command(0x2005, address.bytes)
    }

    /// Connects to the host, which advertises.
    func connect() throws {
        #expect(host { $0.advertise(AdvertisingPayload(data: []), at: $1) })
        settle()
        var parameters: [UInt8] = [96, 0, 96, 0, 0, 1]
        parameters += Self.own.bytes + [1, 6, 0, UInt8(interval & 0xFF), UInt8(interval >> 8)]
        parameters += [UInt8(latency), 0, 0xF4, 1, 0, 0, 0, 0]
        command(0x200D, parameters)
        #expect(isConnected)
    }

    /// Has the host, as central, connect to the attacker.
    func beConnected(as address: Address) throws {
        advertise()
        #expect(host { $0.connect(to: address, at: $1) })
        settle()
    }

    func advertise() {
        command(0x2006, [UInt8](repeating: 0, count: 15))
        command(0x200A, [1])
    }

    func disconnect() {
        command(0x0406, [0x40, 0, 0x13])
        settle()
    }

    var isConnected: Bool { controllers.isConnected(Self.host) }

    /// Whether the controller has been asked for a key, as a peripheral's is.
    var isAskedForKey: Bool { events.contains { $0[0] == 0x3E && $0[2] == 0x05 } }

    /// Encrypts as central.
    func encrypt(with key: [UInt8], random: UInt64 = 0, diversifier: UInt16 = 0) {
        let name = (0..<8).map { UInt8(truncatingIfNeeded: random >> ($0 * 8)) }
        command(
            0x2019, [0x40, 0] + name + [UInt8(diversifier & 0xFF), UInt8(diversifier >> 8)] + key.reversed())
    }

    /// Answers as peripheral that there is no such key, or gives one.
    func giveKey(_ key: [UInt8]?) {
        if let key { command(0x201A, [0x40, 0] + key.reversed()) } else { command(0x201B, [0x40, 0]) }
    }

    /// Refuses what the host asks by ATT, until it asks no more.
    func refuseRequests() {
        while true {
            let requests = frames(on: 4).filter { !$0.isEmpty && $0[0] & 0x41 == 0 }
            guard !requests.isEmpty else { return }
            for request in requests { send([0x01, request[0], 0, 0, 0x06], on: 4) }
        }
    }

    // MARK: Frames

    func send(_ payload: [UInt8], on channel: UInt8) {
        controllers.sendFrame([UInt8(payload.count), 0, channel, 0] + payload, to: Self.host)
        settle()
    }

    /// Frames of the host since the last call, from the channel's number on, of one channel.
    func frames(on channel: UInt8) -> [[UInt8]] {
        let fresh = controllers.frames[Self.host][framesSeen...]
        framesSeen = controllers.frames[Self.host].count
        return fresh.filter { $0[2] == channel && $0[3] == 0 }.map { Array($0[4...]) }
    }

    func forgetFrames() { framesSeen = 0 }

    func sendPairing(_ pdu: PairingPDU) { send(pdu.bytes, on: 6) }

    /// What the host says on the Security Manager's channel.
    func pairingCommands() throws -> [PairingPDU] {
        try frames(on: 6).map { try #require(try PairingPDU.decode($0)) }
    }

    /// Pairs as central, with Just Works or, where both sides can compare, by a number; with whatever identity.
    ///
    /// - Parameters:
    ///   - address: what the attacker is called.
    ///   - identity: what it claims, if anything.
    ///   - type: the type of the address that it claims, where it is to be another.
    ///   - bonds: whether it wants keys kept.
    ///   - capability: what it says a person can do there.
    /// - Returns: the long term key, or nil when the host gave up before.
    func pair(
        from address: Address, identity: (key: [UInt8], address: Address)? = nil, type: UInt8? = nil,
        bonds: Bool = true, capability: IOCapability = .noInputNoOutput
    ) throws -> [UInt8]? {
        var options = PairingOptions(cryptography: ToyCryptography(seed: UInt64(now)))
        options.bonds = bonds
        options.capability = capability
        var pairing = Pairing(isInitiator: true, local: address, peer: Self.own, options: options)
        _ = try pairingCommands()
        var outputs = pairing.begin()
        while !outputs.isEmpty {
            let output = outputs.removeFirst()
            switch output {
            case .send(.request(var features)):
                features.initiatorKeys = identity == nil ? 0 : PairingFeatures.identityKey
                sendPairing(.request(features))
            case .send(let pdu): sendPairing(pdu)
            case .encrypt(let key):
                encrypt(with: key)
                _ = try pairingCommands()
                if let identity {
                    sendPairing(.identityInformation(identity.key))
                    send([0x09, type ?? identity.address.kind.rawValue] + identity.address.bytes, on: 6)
                }
                return key
            case .ask(.compare):
                let question = try #require(questionIDs().last)
                host { $0.answerPairing(question, .confirm(true), at: $1) }
                settle()
                outputs += pairing.answer(.confirm(true))
            case .failed, .ask, .finished: return nil
            }
            for command in try pairingCommands() {
                if case .failed = command { return nil }
                outputs += pairing.receive(command)
            }
        }
        return nil
    }

    // MARK: What the application was told

    func pairingFailures() -> [PairingFailure] {
        log.compactMap { if case .pairingFailed(_, let failure) = $0 { failure } else { nil } }
    }

    func wasDisconnected(_ reason: HCIErrorCode) -> Bool {
        log.contains { if case .disconnected(_, reason) = $0 { true } else { false } }
    }

    func hasDiagnostic(_ text: String) -> Bool {
        log.contains { if case .diagnostic(let why) = $0 { why.contains(text) } else { false } }
    }

    func questions() -> [PairingQuestion] {
        log.compactMap { if case .pairingQuestion(_, _, let question) = $0 { question } else { nil } }
    }

    func questionIDs() -> [PairingQuestionID] {
        log.compactMap { if case .pairingQuestion(let id, _, _) = $0 { id } else { nil } }
    }

    func connection() throws -> ConnectionID {
        var ids: [ConnectionID] = []
        for event in log {
            if case .connected(let id, _, _) = event { ids.append(id) }
            if case .disconnected(let id, _) = event { ids.removeAll { $0 == id } }
        }
        return try #require(ids.last)
    }
}

extension Bond {
    /// A bond as it was stored.
    static func stored(
        with peer: Address, identity: Address? = nil, key: UInt8 = 0x4B, resolvingKey: [UInt8]? = nil,
        isAuthenticated: Bool = false, isSecureConnections: Bool = true, peerIsCentral: Bool = false,
        isIdentityProven: Bool = true
    ) -> Bond {
        Bond(
            peer: peer, identity: identity, longTermKey: [UInt8](repeating: key, count: 16), diversifier: 0, random: 0,
            identityResolvingKey: resolvingKey, isAuthenticated: isAuthenticated,
            isSecureConnections: isSecureConnections, peerIsCentral: peerIsCentral, isIdentityProven: isIdentityProven)
    }
}

extension Address {
    /// A resolvable private address, as one that has the key makes it.
    static func resolvable(_ key: [UInt8], _ random: UInt64) -> Address {
        let prand = random & 0x3F_FFFF | 0x40_0000
        let hash = PairingFunctions(cryptography: ToyCryptography(seed: 0)).ah(key, prand)
        return Address(prand << 24 | hash, .random)
    }
}
