import TestSupport
import Testing

@testable import BluetoothHost

/// What becomes of new keys: whom they replace, who makes room, and what of a peer's claims is kept.
@Suite(.tags(.host, .pairing)) struct KeyringTests {
    private static let hour = Newcomers.probation
    private static let own = Address.staticRandom(0xC0FF_EE00_0001)
    private static let owner = Address.staticRandom(0xF2F2_F2F2_F2F2)
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)
    private static let key = [UInt8](repeating: 0x66, count: 16)
    private static let disguise = Address.resolvable(key, 77)

    /// A ring with room for `maximumBonds`.
    private static func ring(_ bonds: [Bond] = [], maximumBonds: Int = 8) -> Keyring {
        var options = PairingOptions(cryptography: ToyCryptography(seed: 1))
        options.maximumBonds = maximumBonds
        var ring = Keyring(options)
        ring.replaceAll(by: bonds)
        return ring
    }

    /// The identity and the key that are kept of what a peer says, and why the rest is not.
    @Test(
        arguments: [
            // Its own address, and one that the key which came with it has made.
            (stranger, stranger, nil, stranger, false, nil), (disguise, owner, key, owner, true, nil),
            // An address that it does not use, without a key and with one that did not make the address it uses.
            (stranger, owner, nil, nil, false, "does not use that address"),
            (stranger, owner, key, nil, false, "does not use that address"),
            // One of this side's, and one that nothing is called by.
            (disguise, own, key, nil, true, "no peer is called by"),
            (stranger, Address(0, .public), nil, nil, false, "no peer is called by"),
        ] as [(Address, Address, [UInt8]?, Address?, Bool, String?)])
    func claimsAreKeptWhereTheyCanBeTrue(
        peer: Address, claim: Address, resolvingKey: [UInt8]?, kept: Address?, keepsKey: Bool, disbelief: String?
    ) {
        let made = Bond.stored(with: peer, identity: claim, resolvingKey: resolvingKey, isIdentityProven: false)
        let judgement = Self.ring().judge(made, replacing: nil, own: [Self.own], at: 0)
        #expect(judgement.bond.identity == kept)
        #expect((judgement.bond.identityResolvingKey != nil) == keepsKey)
        #expect(disbelief == nil ? judgement.disbelief == nil : judgement.disbelief?.contains(disbelief ?? "") == true)
    }

    /// Another bond's address is taken over by keys that are worth as much, made with a number, or by the pairing that may replace it.
    @Test(
        arguments: [
            (false, false, true, owner), (true, true, true, nil), (true, true, false, owner), (false, true, true, nil),
        ] as [(Bool, Bool, Bool, Address?)])
    func keysWorthMoreStay(
        _ oldHasNumber: Bool, _ newHasNumber: Bool, _ newIsSecure: Bool, owner: Address?
    ) {
        let old = Bond.stored(with: Self.owner, isAuthenticated: oldHasNumber)
        let new = Bond.stored(
            with: Self.disguise, identity: Self.owner, resolvingKey: Self.key, isAuthenticated: newHasNumber,
            isSecureConnections: newIsSecure)
        var ring = Self.ring([old])
        let judgement = ring.judge(new, replacing: nil, own: [], at: 0)
        let replaces = Keyring.Judgement.Outcome.kept(replacing: [Self.owner], displacing: nil)
        #expect(judgement.outcome == owner.map { .refused(owner: $0) } ?? replaces)
        let replacing = ring.judge(new, replacing: old, own: [], at: 0)
        #expect(replacing.outcome == replaces)
        ring.keep(replacing.bond, replacing: [Self.owner], at: 0)
        #expect(ring.bonds == [new])
    }

    /// A full ring has room for a stranger when another has not come back for an hour, and at once for one with a number.
    @Test func newcomersMakeRoom() {
        var ring = Self.ring(maximumBonds: 1)
        ring.keep(.stored(with: Self.owner), replacing: [], at: 0)
        #expect(ring.room(replacing: nil, isStranger: true, at: Self.hour - 1) == .forAuthenticated(.full))
        let early = ring.judge(.stored(with: Self.stranger), replacing: nil, own: [], at: Self.hour - 1)
        #expect(early.outcome == .kept(replacing: [], displacing: nil))
        for (hasNumber, now) in [(true, Self.hour - 1), (false, Self.hour)] {
            let new = Bond.stored(with: Self.stranger, isAuthenticated: hasNumber)
            let judgement = ring.judge(new, replacing: nil, own: [], at: now)
            #expect(judgement.outcome == .kept(replacing: [], displacing: Self.owner))
        }
        #expect(ring.didServe(ring.bonds[0], at: Self.owner, at: Self.hour) == nil)
        #expect(ring.room(replacing: nil, isStranger: true, at: 2 * Self.hour) == .none)
        #expect(ring.room(replacing: ring.bonds[0], isStranger: true, at: 2 * Self.hour) == .forAll)
    }

    /// A claim is proven at the claimed address alone, and once.
    @Test func claimsAreProvenAtTheirAddress() {
        let bond = Bond.stored(
            with: Self.disguise, identity: Self.owner, resolvingKey: Self.key, isIdentityProven: false)
        var ring = Self.ring([bond])
        #expect(ring.resolve(Self.disguise) == Self.disguise && ring.resolvable.isEmpty)
        #expect(ring.didServe(bond, at: Self.disguise, at: 0) == nil)
        #expect(ring.bond(with: Self.owner) == nil)
        #expect(ring.usable(with: Self.owner, asCentral: true) == nil)
        #expect(ring.usable(with: Self.owner, asCentral: false) == bond)
        let proven = ring.didServe(bond, at: Self.owner, at: 0)
        #expect(proven?.isIdentityProven == true && ring.bond(with: Self.owner) == proven)
        // The cache forgets its earlier answer.
        #expect(ring.resolve(Self.disguise) == Self.owner)
        #expect(ring.resolvable.map(\.identity) == [Self.owner])
        #expect(ring.didServe(bond, at: Self.owner, at: 0) == nil)
    }

    /// A host that does not pair demands nothing, and encrypts with no key.
    @Test func withoutPairingNoKeyServes() {
        var ring = Keyring(nil)
        ring.replaceAll(by: [.stored(with: Self.owner)])
        #expect(ring.bond(with: Self.owner) != nil)
        #expect(ring.usable(with: Self.owner, asCentral: true) == nil)
        #expect(ring.room(replacing: nil, isStranger: true, at: 0) == .forAll)
    }

    /// The two highest bits of a random address say what it is (Core Specification 5.4, Vol 6, Part B, 1.3.2.2).
    @Test(arguments: [
        (Address(0x4123_4567_89AB, .random), true), (Address(0x4123_4567_89AB, .public), false),
        (Address(0xC123_4567_89AB, .random), false), (Address(0x0123_4567_89AB, .random), false),
    ])
    func resolvableAddresses(address: Address, isResolvable: Bool) { #expect(address.isResolvable == isResolvable) }
}
