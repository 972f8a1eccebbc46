import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// What a peer says of its identity while it pairs, and when that counts (Core Specification 5.4, Vol 3, Part H, 3.6.5).
@Suite(.tags(.host, .pairing)) struct IdentityTests {
    private static let owner = Address.staticRandom(0xF2F2_F2F2_F2F2)
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)
    private static let key = [UInt8](repeating: 0x66, count: 16)
    private static let ownersKey = [UInt8](repeating: 0x77, count: 16)
    private static let squat = Address.resolvable(key, 77)

    /// A stranger has paired with Just Works from an address made of its own key, and called itself the owner.
    private func squatted(_ adapt: (inout PairingOptions) -> Void = { _ in }) throws -> (Attack, key: [UInt8]) {
        let attack = Attack(adapt)
        attack.controllers.sides[0].options.resolvingListSize = 4
        attack.controllers.sides[0].options.hash = {
            PairingFunctions(cryptography: ToyCryptography(seed: 0)).ah($0, $1)
        }
        try attack.start(as: Self.squat)
        try attack.connect()
        let made = try #require(try attack.pair(from: Self.squat, identity: (Self.key, Self.owner)))
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id)?.isBonded } == true)
        #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.squat)
        attack.disconnect()
        return (attack, made)
    }

    private func bonds(_ attack: Attack) -> [Bond] { attack.host { host, _ in host.bonds } }

    private func isBonded(_ attack: Attack) throws -> Bool {
        let id = try attack.connection()
        return attack.host { host, _ in host.security(of: id)?.isBonded } == true
    }

    // MARK: Claims

    @Test func aClaimedIdentityNamesTheBondOnly() throws {
        let (attack, _) = try squatted()
        let bond = try #require(bonds(attack).first)
        #expect(bond.identity == Self.owner)
        #expect(!bond.isIdentityBelieved)
        #expect(bond.lastingAddress == Self.squat)
        attack.host { host, _ in
            #expect(host.resolve(Self.owner) == Self.owner)
            #expect(host.identityAddress(of: Self.owner) == nil)
            // It is known again itself.
            #expect(host.resolve(.resolvable(Self.key, 5)) == Self.squat)
        }
        #expect(attack.controllers.sides[0].resolvingList.isEmpty)
    }

    /// Whoever wants the owner is not given the stranger, and the owner need not have the stranger's key.
    @Test func theOwnerIsConnectedTo() throws {
        let (attack, _) = try squatted()
        attack.become(.resolvable(Self.key, 5))
        attack.advertise()
        #expect(attack.host { $0.connect(to: Self.owner, at: $1) })
        attack.settle()
        #expect(!attack.isConnected)
        attack.become(Self.owner)
        attack.advertise()
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.peer(of: id) } == Self.owner)
        #expect(!attack.isAskedForKey)
        #expect(attack.frames(on: 4).first?.first == ATTOpcode.exchangeMTURequest)
    }

    /// The owner pairs as if nobody had spoken of it, from its identity address and from private ones.
    @Test(arguments: [false, true]) func theOwnerIsNotLockedOut(isPrivate: Bool) throws {
        let (attack, strangersKey) = try squatted()
        let address = isPrivate ? Address.resolvable(Self.ownersKey, 3) : Self.owner
        attack.become(address)
        try attack.connect()
        attack.now += 1_000
        let made = try #require(try attack.pair(from: address, identity: (Self.ownersKey, Self.owner)))
        #expect(try isBonded(attack))
        #expect(bonds(attack).map(\.lastingAddress) == [Self.squat, address])
        attack.disconnect()
        // Each has its own key, and the owner's address its own.
        for (address, key, isGiven) in [
            (address, made, true), (.resolvable(Self.key, 6), strangersKey, true), (address, strangersKey, false),
        ] {
            attack.become(address)
            try attack.connect()
            attack.encrypt(with: key)
            #expect(attack.isConnected == isGiven)
            if isGiven {
                #expect(try isBonded(attack))
                attack.disconnect()
            }
        }
        if !isPrivate {
            #expect(bonds(attack).map(\.isIdentityBelieved) == [false, true])
        }
    }

    // MARK: Proof

    /// A peer whose addresses change comes under its identity address one day, and has the key.
    @Test func anIdentityIsProvenByItsAddress() throws {
        let (attack, key) = try squatted()
        attack.log = []
        attack.become(Self.owner)
        try attack.connect()
        attack.encrypt(with: key)
        #expect(try isBonded(attack))
        let bond = try #require(bonds(attack).first)
        #expect(bond.isIdentityBelieved)
        #expect(bond.lastingAddress == Self.owner)
        // The store is told.
        #expect(attack.log.contains { if case .bonded(_, bond) = $0 { true } else { false } })
        attack.disconnect()
        #expect(attack.controllers.sides[0].resolvingList.map(\.key) == [Self.key])
        attack.become(.resolvable(Self.key, 9))
        try attack.connect()
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.owner)
    }

    // MARK: A number

    /// Whoever pairs by a number is believed, and takes an identity over from one that did not: which it uses, and which it only
    /// claimed.
    @Test(arguments: [false, true], [false, true])
    func authenticatedPairingTakesAnIdentityOver(isUsed: Bool, isPrivate: Bool) throws {
        let attack: Attack
        let strangersKey: [UInt8]
        if isUsed {
            attack = Attack { $0.capability = .displayYesNo }
            try attack.start(as: Self.owner)
            try attack.connect()
            let made = try attack.pair(from: Self.owner, identity: (Self.key, Self.owner))
            strangersKey = try #require(made)
            attack.disconnect()
            #expect(bonds(attack).map(\.lastingAddress) == [Self.owner])
        } else {
            (attack, strangersKey) = try squatted { $0.capability = .displayYesNo }
        }
        let address = isPrivate ? Address.resolvable(Self.ownersKey, 3) : Self.owner
        attack.become(address)
        try attack.connect()
        attack.now += 1_000
        let made = try attack.pair(
            from: address, identity: (Self.ownersKey, Self.owner), capability: .displayYesNo)
        let key = try #require(made)
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id)?.level } == 4)
        #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.owner)
        #expect(bonds(attack).map(\.lastingAddress) == (isUsed ? [Self.owner] : [Self.squat, Self.owner]))
        attack.disconnect()
        for (key, isGiven) in [(strangersKey, false), (key, true)] {
            attack.become(Self.owner)
            try attack.connect()
            attack.encrypt(with: key)
            #expect(attack.isConnected == isGiven)
        }
    }

    // MARK: Addresses that are none

    private static let senseless: [(Address, type: UInt8)] = [
        (Address(0, .public), 0), (Address(0, .random), 1), (owner, 2), (owner, 0xFF),
        (Address(0xFFFF_FFFF_FFFF, .public), 0), (Address(0xFFFF_FFFF_FFFF, .random), 1),
        (Address(0xC000_0000_0000, .random), 1), (Address(0x3222_3344_5566, .random), 1),
        (.resolvable(key, 9), 1), (Attack.own, 1),
    ]

    /// The pairing counts, the identity does not; the next that says the same can pair too.
    @Test(arguments: senseless.indices, [false, true])
    func aSenselessIdentityIsNotBelieved(place: Int, isPrivate: Bool) throws {
        let (identity, type) = Self.senseless[place]
        let attack = Attack()
        try attack.start(as: Self.stranger)
        for number in UInt8(1)...2 {
            let key = [UInt8](repeating: number, count: 16)
            let address = isPrivate ? Address.resolvable(key, 4) : .staticRandom(UInt64(number))
            attack.become(address)
            try attack.connect()
            attack.now += 1_000
            #expect(try attack.pair(from: address, identity: (key, identity), type: type) != nil)
            #expect(try isBonded(attack))
            let bond = try #require(bonds(attack).last)
            #expect(bonds(attack).count == Int(number))
            #expect(bond.identity == nil)
            #expect(bond.lastingAddress == address)
            // The key serves where the address was made of it.
            #expect(bond.identityResolvingKey == (isPrivate ? key : nil))
            attack.disconnect()
        }
    }

    /// Nor is one that was stored before it was known better.
    @Test func aStoredIdentityThatIsNoneNamesNobody() {
        let attack = Attack()
        attack.host { host, _ in
            host.setBonds([
                .stored(with: Self.squat, identity: Address(0, .public), resolvingKey: Self.key, isAuthenticated: true)
            ])
            #expect(host.resolve(Self.squat) == Self.squat)
            #expect(host.identityAddress(of: Address(0, .public)) == nil)
        }
    }
}
