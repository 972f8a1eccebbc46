import TestSupport
import Testing

@testable import BluetoothHost

/// Pairing with data that one side gave the other by another way (Core Specification 5.4, Vol 3, Part H, 2.3.5.6.4).
@Suite(.tags(.host, .pairing)) struct OutOfBandTests {
    /// Data from the side with this index to the other.
    private func carry(_ pair: inout HostPair, from side: Int, _ change: (inout OutOfBandData) -> Void = { _ in })
        throws
    {
        var data = try #require(pair.host(side) { host, _ in host.makeOutOfBandData() })
        change(&data)
        #expect(pair.host(1 - side) { host, _ in host.useOutOfBandData(data) })
    }

    private func secure(_ pair: inout HostPair) throws -> [LinkSecurity] {
        _ = try pair.connect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        return try (0...1).map { side in
            let id = try pair.connection(side)
            return try #require(pair.host(side) { host, _ in host.security(of: id) })
        }
    }

    private func failures(_ pair: borrowing HostPair, _ side: Int) -> [PairingFailure] {
        pair.log[side].compactMap { if case .pairingFailed(_, let failure) = $0 { failure } else { nil } }
    }

    /// From either, or from both: authenticated, without a question, and the data have served.
    @Test(arguments: [[0], [1], [0, 1]])
    func dataTakeThePlaceOfNumbers(from sides: [Int]) throws {
        var pair = HostPair { _, configuration in
            configuration.pairing?.requiresAuthentication = true
            configuration.pairing?.asksToAllow = true
        }
        for side in sides { try carry(&pair, from: side) }
        for security in try secure(&pair) {
            #expect(security.isEncrypted && security.isAuthenticated && security.isSecureConnections)
        }
        for side in 0...1 {
            pair.host(side) { host, _ in
                #expect(host.bonds.count == 1)
                #expect(host.outOfBand.own == nil && host.outOfBand.peers.isEmpty)
            }
            #expect(!pair.log[side].contains { if case .pairingQuestion = $0 { true } else { false } })
        }
    }

    /// Somebody in the middle, whose key is not the one that was committed to, or who has not the random number.
    @Test(arguments: [0, 1], [false, true])
    func whatWasChangedOnTheWayIsNoticed(side: Int, isRandom: Bool) throws {
        var pair = HostPair()
        try carry(&pair, from: side) { if isRandom { $0.random[3] ^= 1 } else { $0.confirm[3] ^= 1 } }
        for security in try secure(&pair) { #expect(!security.isEncrypted) }
        #expect(failures(pair, 1 - side) == [.here(0x04)])
        #expect(failures(pair, side) == [.peer(0x04)])
    }

    /// Who says that it has data that nobody made is refused.
    @Test func dataThatNobodyMadeAreNotAvailable() throws {
        var pair = HostPair()
        try carry(&pair, from: 0)
        pair.host(0) { host, _ in host.outOfBand.own = nil }
        for security in try secure(&pair) { #expect(!security.isEncrypted) }
        #expect(failures(pair, 0) == [.here(0x02)])
    }

    private static let stranger = Address.staticRandom(0xD0D0_0000_0001)

    /// Who only says that it has them cannot show it. The public key can be seen by everybody, the random number cannot.
    @Test func dataThatThePeerDoesNotHaveAreMissed() throws {
        let attack = Attack()
        let victim = try #require(
            attack.host { host, _ in
                _ = host.makeOutOfBandData()
                return host.outOfBand.own
            })
        try attack.start(as: Self.stranger)
        try attack.connect()
        let zero = [UInt8](repeating: 0, count: 16)
        let options = PairingOptions(cryptography: ToyCryptography(seed: 4))
        let confirm = PairingFunctions(cryptography: options.cryptography).f4(victim.keys.x, victim.keys.x, zero, 0)
        let claimed = OutOfBandData(address: Attack.own, confirm: confirm, random: zero)
        var pairing = Pairing(
            isInitiator: true, local: Self.stranger, peer: Attack.own, options: options,
            outOfBand: OutOfBand(peers: [claimed]))
        var outputs = pairing.begin()
        while !outputs.isEmpty {
            guard case .send(let command) = outputs.removeFirst() else { continue }
            attack.sendPairing(command)
            for answer in try attack.pairingCommands() { outputs += pairing.receive(answer) }
        }
        #expect(attack.pairingFailures() == [.here(0x0B)])
        attack.host { host, _ in #expect(host.bonds.isEmpty) }
    }

    private static let addresses = [Address.staticRandom(0xF1F1_F1F1_F1F1), .staticRandom(0xF0F0_F0F0_F0F0)]
    private static let key = (0..<16).map { UInt8($0) }

    /// Legacy pairing (2.3.5.4): both have the key, nobody is asked, and it has served.
    @Test func aTemporaryKeyTakesThePlaceOfNumbers() throws {
        var pair = HostPair { _, configuration in
            configuration.pairing?.requiresAuthentication = true
            configuration.pairing?.asksToAllow = true
        }
        for side in 0...1 {
            #expect(pair.host(side) { host, _ in host.useTemporaryKey(Self.key, of: Self.addresses[1 - side]) })
        }
        for security in try secure(&pair) {
            #expect(security.isEncrypted && security.isAuthenticated && !security.isSecureConnections)
        }
        for side in 0...1 {
            pair.host(side) { host, _ in
                #expect(host.bonds.count == 1)
                #expect(host.outOfBand.temporaryKeys.isEmpty)
            }
            #expect(!pair.log[side].contains { if case .pairingQuestion = $0 { true } else { false } })
        }
    }

    /// Keys that differ in one bit, no key at the other side, or a side that takes Secure Connections only: none falls back on
    /// Just Works.
    @Test(arguments: [(0, UInt8(0x04)), (1, 0x02), (2, 0x03)])
    func withoutTheSameKeyNothingIsPaired(fault: Int, reason: UInt8) throws {
        var pair = HostPair { side, configuration in
            configuration.pairing?.requiresSecureConnections = fault == 2 && side == 0
        }
        for side in 0...1 where fault != 1 || side == 1 {
            var key = Self.key
            if fault == 0, side == 1 { key[15] ^= 1 }
            #expect(pair.host(side) { host, _ in host.useTemporaryKey(key, of: Self.addresses[1 - side]) })
        }
        for security in try secure(&pair) { #expect(!security.isEncrypted) }
        let all = failures(pair, 0) + failures(pair, 1)
        #expect(all.contains(.here(reason)) && all.contains(.peer(reason)), "\(all)")
        for side in 0...1 { pair.host(side) { host, _ in #expect(host.bonds.isEmpty) } }
    }

    /// A stranger in the place of a peer whose data are here says that it knows nothing but legacy pairing.
    @Test(arguments: [UInt8(0), 1])
    func whoHasDataIsNotTalkedDownToLegacyPairing(flag: UInt8) throws {
        let attack = Attack()
        let data = OutOfBandData(address: Self.stranger, confirm: Self.key, random: Self.key)
        #expect(attack.host { host, _ in host.useOutOfBandData(data) })
        try attack.start(as: Self.stranger)
        try attack.beConnected(as: Self.stranger)
        let id = try attack.connection()
        #expect(attack.host { $0.secure(id, at: $1) })
        attack.settle()
        var features = PairingFeatures(
            capability: .noInputNoOutput, authentication: PairingFeatures.bonding, initiatorKeys: 0, responderKeys: 1)
        features.hasOOBData = flag
        attack.sendPairing(.response(features))
        #expect(try attack.pairingCommands().last == .failed(0x02))
        #expect(attack.pairingFailures() == [.here(0x02)])
        // They are there for the peer itself.
        attack.host { host, _ in #expect(host.bonds.isEmpty && host.outOfBand.peers == [data]) }
    }

    @Test func whatIsKeptIsBounded() {
        var pair = HostPair()
        let bytes = [UInt8](repeating: 1, count: 16)
        func data(_ number: UInt64, confirm: [UInt8], random: [UInt8]) -> OutOfBandData {
            OutOfBandData(address: .staticRandom(number), confirm: confirm, random: random)
        }
        pair.host(0) { host, _ in
            for number in UInt64(0)..<100 {
                for _ in 0..<2 {
                    let isTaken = host.useOutOfBandData(data(number, confirm: bytes, random: bytes))
                    #expect(isTaken)
                }
                let isTaken = host.useTemporaryKey(bytes, of: .staticRandom(number + 100))
                #expect(isTaken)
            }
            #expect(host.outOfBand.peers.count == OutOfBand.limit)
            #expect(host.outOfBand.temporaryKeys.count == OutOfBand.limit)
            let areTaken = [
                host.useTemporaryKey([1], of: .staticRandom(1)),
                host.useOutOfBandData(data(1, confirm: [1], random: bytes)),
                host.useOutOfBandData(data(1, confirm: bytes, random: [])),
            ]
            #expect(areTaken == [false, false, false])
        }
    }
}
