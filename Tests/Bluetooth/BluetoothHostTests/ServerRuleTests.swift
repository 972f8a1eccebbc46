import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// What a client may not do, by PDUs that a client of our own would not send.
@Suite(.tags(.host)) struct ServerRuleTests {
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)
    private static let type = BluetoothHost.UUID(short: 0x2A19)

    /// Open for writing, written encrypted only, notify only, read by the application, and not readable.
    private static let characteristics = [
        CharacteristicSpecification(type, properties: 0x0C, access: [.write, .writeCommand]),
        CharacteristicSpecification(type, properties: 0x0C, access: [.write, .writeCommand, .writeEncrypted]),
        CharacteristicSpecification(type, properties: 0x10, access: []),
        CharacteristicSpecification(type, properties: 0x02, access: .read),
        CharacteristicSpecification(type, properties: 0x08, access: .write),
    ]

    private func connected() throws -> (Attack, [UInt8]) {
        let attack = Attack()
        try attack.start(as: Self.stranger, publishing: Self.characteristics)
        try attack.connect()
        return (attack, try #require(attack.handles).characteristics.map { UInt8($0) })
    }

    private func requests(_ attack: Attack) -> Int {
        attack.log.filter {
            switch $0 {
            case .readRequest, .writeRequest, .writeCommand: true
            default: false
            }
        }.count
    }

    @Test func whatIsWrittenEncryptedIsNotWrittenInTheClear() throws {
        let (attack, handles) = try connected()
        let secret = handles[1]
        attack.send([0x12, secret, 0, 7], on: 4)
        attack.send([0x16, secret, 0, 0, 0, 7], on: 4)
        attack.send([0x18, 1], on: 4)
        attack.send([0x52, secret, 0, 7], on: 4)
        #expect(
            attack.frames(on: 4) == [[0x01, 0x12, secret, 0, 0x05], [0x01, 0x16, secret, 0, 0x05], [0x19]])
        #expect(requests(attack) == 0)
        // With keys that are kept, the link is only to be encrypted (Vol 3, Part C, 10.3.1).
        attack.host { host, _ in host.setBonds([.stored(with: Self.stranger, peerIsCentral: true)]) }
        attack.send([0x12, secret, 0, 7], on: 4)
        #expect(attack.frames(on: 4) == [[0x01, 0x12, secret, 0, 0x0F]])
        attack.encrypt(with: Bond.stored(with: Self.stranger).longTermKey)
        attack.send([0x52, secret, 0, 7], on: 4)
        #expect(attack.received == [[7]])
    }

    /// Security mode 1, levels 2 to 4, against keys of each kind (Vol 3, Part C, 10.2.1 and 10.3.1): what is refused, by which
    /// error, before and after encryption.
    @Test(arguments: [2, 3, 4], [2, 3, 4])
    func whatNeedsAStrongerLinkIsRefusedOnAWeakerOne(needed: Int, given: Int) throws {
        var access: AttributeAccess = [.read, .readEncrypted, .write, .writeEncrypted]
        if needed == 3 { access.insert(.authenticated) }
        if needed == 4 { access.insert(.secureConnections) }
        let attack = Attack()
        let bond = Bond.stored(
            with: Self.stranger, isAuthenticated: given > 2, isSecureConnections: given == 4, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(
            as: Self.stranger,
            publishing: [
                CharacteristicSpecification(
                    Self.type, properties: 0x1A, access: access, value: [4], subscriptionNeedsEncryption: true)
            ])
        try attack.connect()
        let handle = UInt8(try #require(attack.handles).characteristics[0])
        func outcomes() -> [UInt8] {
            attack.send([0x0A, handle, 0], on: 4)
            attack.send([0x16, handle, 0, 0, 0, 7], on: 4)
            attack.send([0x12, handle + 1, 0, 1, 0], on: 4)
            return attack.frames(on: 4).map { $0[0] == 0x01 ? $0[4] : $0[0] }
        }
        let isEnough = given >= needed
        #expect(outcomes() == .init(repeating: isEnough ? 0x0F : 0x05, count: 3))
        attack.encrypt(with: bond.longTermKey)
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id)?.level } == given)
        #expect(outcomes() == (isEnough ? [0x0B, 0x17, 0x13] : [0x05, 0x05, 0x05]))
    }

    /// The application is not asked for values of a request that is refused in the end.
    @Test(arguments: [UInt8(0x0E), 0x20])
    func aRequestForSeveralValuesIsRefusedBeforeAnybodyIsAsked(opcode: UInt8) throws {
        let (attack, handles) = try connected()
        attack.send([opcode, handles[3], 0, handles[4], 0], on: 4)
        #expect(attack.frames(on: 4) == [[0x01, opcode, handles[4], 0, 0x02]])
        #expect(requests(attack) == 0)
    }

    /// CVE-2023-40129: values that are longer than what is left of ATT_MTU, of an application that answers more than fits.
    @Test(arguments: [UInt8(0x0E), 0x20])
    func severalLongValuesAreCutToTheAnswersSize(opcode: UInt8) throws {
        let (attack, handles) = try connected()
        for count in [0, 1, 18, 19, 20, 21, 22, 23, 512, 70_000] {
            attack.send([opcode, handles[3], 0, handles[3], 0, handles[3], 0], on: 4)
            while case .readRequest(let id, _, _, _)? = attack.log.last {
                attack.host { $0.respond(to: id, with: .success([UInt8](repeating: 7, count: count)), at: $1) }
                attack.log.removeLast()
                attack.settle()
            }
            let answers = attack.frames(on: 4)
            #expect(answers.count == 1)
            #expect(answers[0].count == min(23, 1 + 3 * (min(count, 512) + (opcode == 0x20 ? 2 : 0))))
        }
    }

    @Test func preparedBytesAreBounded() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger, publishing: Self.characteristics)
        try attack.connect()
        let handle = UInt8(try #require(attack.handles).characteristics[0])
        attack.send([0x02, 0x05, 0x02], on: 4)
        _ = attack.frames(on: 4)
        let part = [UInt8](repeating: 7, count: 200)
        let count = LEHost.preparedByteLimit / part.count
        for _ in 0..<count { attack.send([0x16, handle, 0, 0, 0] + part, on: 4) }
        #expect(attack.frames(on: 4).allSatisfy { $0[0] == 0x17 })
        attack.send([0x16, handle, 0, 0, 0] + part, on: 4)
        #expect(attack.frames(on: 4) == [[0x01, 0x16, handle, 0, 0x09]])
    }

    @Test func whatIsCancelledIsNotWritten() throws {
        let (attack, handles) = try connected()
        attack.send([0x16, handles[0], 0, 0, 0, 7], on: 4)
        attack.send([0x18, 0], on: 4)
        attack.send([0x18, 1], on: 4)
        #expect(attack.frames(on: 4).map { $0[0] } == [0x17, 0x19, 0x19])
        #expect(requests(attack) == 0)
    }

    @Test func onlyWhatIsOfferedCanBeSubscribedTo() throws {
        let (attack, handles) = try connected()
        let configuration = handles[2] + 1
        for bits in [UInt8(2), 3, 4] {
            attack.send([0x12, configuration, 0, bits, 0], on: 4)
            #expect(attack.frames(on: 4) == [[0x01, 0x12, configuration, 0, 0x13]])
        }
        attack.send([0x12, configuration, 0, 1, 0], on: 4)
        #expect(attack.frames(on: 4) == [[0x13]])
    }

    /// ATT_MTU is 23 at least, whatever a peer says.
    @Test(arguments: [UInt8(0), 10, 22, 23, 24])
    func attMTUIsNeverBelowTheLeast(mtu: UInt8) throws {
        let (attack, _) = try connected()
        attack.send([0x02, mtu, 0], on: 4)
        #expect(attack.frames(on: 4) == [[0x03, 0x05, 0x02]])
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.attMTU(of: id) } == max(23, Int(mtu)))
    }

    /// Vol 3, Part G, 3.3.3.1 and 3.3.1.1.
    @Test func propertiesAreWhatTheySay() throws {
        let attack = Attack()
        try attack.start(
            as: Self.stranger,
            publishing: [
                CharacteristicSpecification(Self.type, properties: 0x88, access: .write),
                CharacteristicSpecification(Self.type, properties: 0x92, access: .read, value: [1]),
            ])
        let handles = try #require(attack.handles).characteristics.map { UInt8($0) }
        try attack.connect()
        attack.send([0x04, handles[0] + 1, 0, handles[0] + 1, 0], on: 4)
        attack.send([0x0A, handles[0] + 1, 0], on: 4)
        attack.send([0x04, handles[1] + 1, 0, handles[1] + 2, 0], on: 4)
        attack.send([0x0A, handles[1] + 2, 0], on: 4)
        #expect(
            attack.frames(on: 4) == [
                [0x05, 1, handles[0] + 1, 0, 0x00, 0x29], [0x0B, 1, 0],
                [0x05, 1, handles[1] + 1, 0, 0x02, 0x29, handles[1] + 2, 0, 0x00, 0x29], [0x0B, 0, 0],
            ])
        let signed = ServiceSpecification(
            HostPair.service,
            characteristics: [CharacteristicSpecification(Self.type, properties: 0x48, access: .write)])
        #expect(attack.host { $0.addService(signed, at: $1) } == nil)
    }
}

/// The controller's buffers: no more in use than there are, none lost, and a share for everybody.
@Suite(.tags(.host)) struct BufferTests {
    private static func connect(_ host: inout LEHost, _ handle: UInt8) {
        var event: [UInt8] = [4, 0x3E, 19, 0x01, 0, handle, 0, 1, 1]
        event += Address.staticRandom(UInt64(handle)).bytes + [24, 0, 0, 0, 0xF4, 1, 0]
        host.receive(event.span.bytes, at: 0)
    }

    /// Packets that the host gives for each connection until it stops.
    private static func drain(_ host: inout LEHost) -> [UInt8: Int] {
        var counts: [UInt8: Int] = [:]
        var packet: [UInt8] = []
        while host.nextPacket(into: &packet, at: 0) {
            if packet[0] == 2 { counts[packet[1], default: 0] += 1 }
            packet = []
        }
        return counts
    }

    private static func ready(_ count: Int) -> LEHost {
        var host = LEHost(HostConfiguration(address: Attack.own))
        var controllers = VirtualControllers(.init(aclLength: 27, aclCount: count))
        host.start(at: 0)
        var packet: [UInt8] = []
        while host.nextPacket(into: &packet, at: 0) {
            controllers.receive(packet, from: 0)
            packet = []
            for event in controllers.toHost[0] { host.receive(event.span.bytes, at: 0) }
            controllers.toHost[0] = []
        }
        return host
    }

    /// Lets a peer that takes nothing ask for more than there is room for.
    private static func ask(_ host: inout LEHost, _ handle: UInt8, _ count: Int = 30) {
        for _ in 0..<count {
            host.receive(([2, handle, 0x20, 7, 0, 3, 0, 4, 0, 0x0A, 3, 0] as [UInt8]).span.bytes, at: 0)
        }
    }

    @Test func aSilentPeerHoldsItsShareOnly() {
        var host = Self.ready(8)
        Self.connect(&host, 0x40)
        Self.connect(&host, 0x41)
        Self.ask(&host, 0x40)
        #expect(Self.drain(&host) == [0x40: 4])
        Self.ask(&host, 0x41)
        #expect(Self.drain(&host) == [0x41: 4])
    }

    @Test func moreCompletedPacketsThanWereSentAreNotBelieved() {
        var host = Self.ready(4)
        Self.connect(&host, 0x40)
        Self.ask(&host, 0x40)
        #expect(Self.drain(&host) == [0x40: 4])
        host.receive(([4, 0x13, 5, 1, 0x40, 0, 200, 0] as [UInt8]).span.bytes, at: 0)
        #expect(Self.drain(&host) == [0x40: 4])
    }

    @Test func buffersOfAnEndedConnectionAreFree() {
        var host = Self.ready(4)
        Self.connect(&host, 0x40)
        Self.ask(&host, 0x40)
        #expect(Self.drain(&host) == [0x40: 4])
        host.receive(([4, 0x05, 4, 0, 0x40, 0, 0x08] as [UInt8]).span.bytes, at: 0)
        Self.connect(&host, 0x41)
        Self.ask(&host, 0x41)
        #expect(Self.drain(&host) == [0x41: 4])
    }
}
