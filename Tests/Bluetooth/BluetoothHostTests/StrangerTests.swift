import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// What strangers can do to others without breaking a key: fill the store, use up a peer's attempts, slow a connection down; and
/// controllers that tell of what never was.
@Suite(.tags(.host, .pairing)) struct StrangerTests {
    private static let victim = Address.staticRandom(0xF2F2_F2F2_F2F2)
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)

    private static func features(_ capability: IOCapability = .noInputNoOutput) -> PairingFeatures {
        PairingFeatures(
            capability: capability, authentication: capability == .noInputNoOutput ? 0x09 : 0x0D, initiatorKeys: 0,
            responderKeys: 0)
    }

    private func bonds(_ attack: Attack) -> [Address] { attack.host { host, _ in host.bonds.map(\.peer) } }

    /// Pairs from an address of its own and leaves. Returns the key.
    private func visit(
        _ attack: Attack, _ number: UInt64, capability: IOCapability = .noInputNoOutput
    ) throws -> (Address, key: [UInt8], isBonded: Bool) {
        let address = Address.staticRandom(0xD0_0000_0000 + number)
        attack.become(address)
        try attack.connect()
        attack.now += 1_000
        let key = try #require(try attack.pair(from: address, capability: capability))
        let id = try attack.connection()
        let security = try #require(attack.host { host, _ in host.security(of: id) })
        #expect(security.isEncrypted)
        attack.disconnect()
        return (address, key, security.isBonded)
    }

    // MARK: The store

    /// One stranger under ever new addresses has a quarter of the store for an hour; who pairs by a number finds room all the while.
    @Test func oneStrangerDoesNotFillTheStore() throws {
        let attack = Attack { $0.capability = .displayYesNo }
        try attack.start(as: Self.stranger)
        for number in UInt64(0)..<40 { #expect(try visit(attack, number).isBonded == (number < 16)) }
        #expect(bonds(attack).count == 16)
        #expect(attack.hasDiagnostic("too many peers have paired without one within an hour"))
        #expect(try visit(attack, 100, capability: .displayYesNo).isBonded)
        #expect(bonds(attack).count == 17)
        attack.advance(seconds: 3_601)
        #expect(try visit(attack, 101).isBonded)
        #expect(bonds(attack).count == 18)
    }

    /// In a full store those who never came back make room, and nobody else does.
    @Test func whoNeverCameBackMakesRoom() throws {
        let attack = Attack {
            $0.capability = .displayYesNo
            $0.maximumBonds = 8
        }
        let kept = (UInt64(0)..<3).map { Bond.stored(with: .staticRandom(0xA0_0000_0000 + $0), peerIsCentral: true) }
        attack.host { host, _ in host.setBonds(kept) }
        try attack.start(as: Self.stranger)
        let (faithful, key, _) = try visit(attack, 0)
        for number in UInt64(1)...3 { #expect(try visit(attack, number).isBonded) }
        #expect(try !visit(attack, 4).isBonded)
        attack.become(faithful)
        try attack.connect()
        attack.encrypt(with: key)
        attack.disconnect()
        attack.advance(seconds: 3_601)
        #expect(try visit(attack, 5).isBonded)
        // It is full; the oldest but one never came back.
        #expect(bonds(attack).count == 8)
        for number in UInt64(6)...8 { #expect(try visit(attack, number).isBonded) }
        let left = [faithful] + (UInt64(5)...8).map { Address.staticRandom(0xD0_0000_0000 + $0) }
        #expect(bonds(attack) == kept.map(\.peer) + left)
        // Those are new. A number counts for more than they do, and nothing for more than those who came back.
        #expect(try !visit(attack, 9).isBonded)
        for number in UInt64(10)...13 { #expect(try visit(attack, number, capability: .displayYesNo).isBonded) }
        #expect(try !visit(attack, 14, capability: .displayYesNo).isBonded)
        #expect(bonds(attack).prefix(4) == (kept.map(\.peer) + [faithful])[...])
        #expect(bonds(attack).count == 8)
        #expect(attack.host { host, _ in host.bonds.suffix(4).allSatisfy(\.isAuthenticated) })
    }

    // MARK: Attempts in another's name

    /// What is refused at once is no guess: the peer whose address was used does not have to wait for it.
    @Test func refusedAttemptsDoNotPutTheOwnerOff() throws {
        let attack = Attack { $0.capability = .displayYesNo }
        let bond = Bond.stored(with: Self.victim, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        for _ in 0..<5 {
            try attack.connect()
            for _ in 0..<4 {
                attack.sendPairing(.request(Self.features()))
                #expect(try attack.pairingCommands() == [.failed(0x03)])
            }
            attack.disconnect()
        }
        try attack.connect()
        attack.now += 1_000
        #expect(try attack.pair(from: Self.victim, capability: .displayYesNo) != nil)
        #expect(attack.host { host, _ in host.bonds.map(\.isAuthenticated) } == [true])
    }

    /// On one connection there is an end to it all the same.
    @Test func endlessRefusalsEndTheConnection() throws {
        let attack = Attack()
        attack.host { host, _ in host.setBonds([.stored(with: Self.victim, peerIsCentral: true)]) }
        try attack.start(as: Self.victim)
        try attack.connect()
        for _ in 0..<ConnectionSecurity.refusalLimit { attack.sendPairing(.request(Self.features())) }
        #expect(attack.isConnected)
        attack.sendPairing(.request(Self.features()))
        #expect(!attack.isConnected)
        #expect(attack.hasDiagnostic("it asks to pair again and again"))
    }

    /// Others have guessed in its name, and have to wait; the peer itself has shown its key.
    @Test func whoHasProvedItselfNeedNotWait() throws {
        let attack = Attack { $0.capability = .displayYesNo }
        let bond = Bond.stored(with: Self.victim, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        for _ in 0..<3 {
            try attack.connect()
            attack.sendPairing(.request(Self.features(.displayYesNo)))
            attack.sendPairing(.failed(0x08))
            attack.disconnect()
        }
        try attack.connect()
        _ = try attack.pairingCommands()
        attack.sendPairing(.request(Self.features(.displayYesNo)))
        #expect(try attack.pairingCommands() == [.failed(0x09)])
        attack.encrypt(with: bond.longTermKey)
        attack.sendPairing(.request(Self.features(.displayYesNo)))
        guard case .response? = try attack.pairingCommands().first else {
            Issue.record("the peer has to wait for what others did")
            return
        }
    }

    // MARK: Keys that have become too weak

    /// A bonded server is not spoken to in the clear because its keys do not do any more: it pairs anew, or is let go.
    @Test(arguments: [false, true]) func keysThatAreTooWeakNowAreNoReasonToGoOnInTheClear(pairs: Bool) throws {
        let attack = Attack {
            $0.capability = .displayYesNo
            $0.requiresAuthentication = true
        }
        let bond = Bond.stored(with: Self.victim)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.beConnected(as: Self.victim)
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.writeCommand([7].span.bytes, to: 3, of: id) } == false)
        _ = attack.host { $0.request(.read(3), of: id, at: $1) }
        attack.settle()
        attack.send([0x1B, 3, 0, 0x66], on: 4)
        #expect(attack.received.isEmpty)
        #expect(attack.controllers.frames[0].allSatisfy { $0[2] != 4 })
        attack.sendPairing(.response(Self.features(pairs ? .displayYesNo : .noInputNoOutput)))
        #expect(attack.controllers.frames[0].allSatisfy { $0[2] != 4 })
        #expect(attack.isConnected == pairs)
        #expect(attack.hasDiagnostic("the keys that are kept for it are weaker than is demanded now") == !pairs)
        #expect(attack.host { host, _ in host.bonds } == [bond])
        // Nor does one that keeps silent hold the connection for good.
        attack.advance(seconds: 31)
        #expect(!attack.isConnected)
        #expect(attack.wasDisconnected(.authenticationFailure))
    }

    // MARK: Controllers

    /// Encryption Change and Encryption Key Refresh Complete, of a link for which there is no key.
    @Test(arguments: [[0x08, 4, 0, 0x40, 0, 1], [0x30, 3, 0, 0x40, 0]] as [[UInt8]], [false, true])
    func anEncryptionThatNothingLedToIsNotBelieved(event: [UInt8], isCentral: Bool) throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        if isCentral { try attack.beConnected(as: Self.stranger) } else { try attack.connect() }
        let id = try attack.connection()
        attack.controllerSays([4] + event)
        #expect(attack.host { host, _ in host.security(of: id) } == LinkSecurity())
        #expect(!attack.log.contains { if case .secured = $0 { true } else { false } })
        #expect(attack.hasDiagnostic("that nothing has led to"))
        // In the middle of a pairing neither.
        if !isCentral {
            attack.sendPairing(.request(Self.features()))
            attack.controllerSays([4] + event)
            #expect(attack.host { host, _ in host.security(of: id) } == LinkSecurity())
        }
        #expect(attack.isConnected)
    }

    /// What is told twice does not take the bond's part in it away.
    @Test func anEncryptionThatIsToldTwiceChangesNothing() throws {
        let attack = Attack()
        let bond = Bond.stored(with: Self.victim, isAuthenticated: true, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.connect()
        attack.encrypt(with: bond.longTermKey)
        let id = try attack.connection()
        let before = attack.host { host, _ in host.security(of: id) }
        #expect(before?.isBonded == true)
        attack.controllerSays([4, 0x08, 4, 0, 0x40, 0, 1])
        #expect(attack.host { host, _ in host.security(of: id) } == before)
    }

    /// A packet of a kind that there is not.
    @Test func whatIsNoPacketIsSaid() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        attack.controllerSays([0x07, 1, 2, 3], [0x04])
        #expect(attack.hasDiagnostic("The controller sent 4 bytes that are no HCI packet"))
        #expect(attack.hasDiagnostic("The controller sent 1 bytes that are no HCI packet"))
        #expect(attack.host { host, _ in host.state } == .ready)
    }

    // MARK: Connection parameters

    /// A peripheral's wish for an interval, and what it comes to; nil for a refusal. 15 to 500 ms are allowed.
    private static let wishes: [(ClosedRange<UInt16>, ClosedRange<UInt16>?)] = [
        (80...100, 80...100), (12...400, 12...400), (6...20, 12...20), (320...480, 320...400), (6...3200, 12...400),
        (6...11, nil), (401...800, nil), (3200...3200, nil),
    ]

    @Test(arguments: wishes.indices, [false, true])
    func aPeripheralIsGivenWhatIsAllowed(place: Int, isLinkLayer: Bool) throws {
        let (wish, given) = Self.wishes[place]
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.beConnected(as: Self.stranger)
        attack.refuseRequests()
        attack.controllers.sides[0].packets = []
        let fields = [wish.lowerBound, wish.upperBound, 0, 3200].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        if isLinkLayer {
            attack.controllerSays([4, 0x3E, 11, 0x06, 0x40, 0] + fields)
        } else {
            attack.send([0x12, 9, 8, 0] + fields, on: 5)
            #expect(attack.frames(on: 5) == [[0x13, 9, 2, 0, given == nil ? 1 : 0, 0]])
        }
        let expected: [[UInt8]]
        if let given {
            let bounds = [given.lowerBound, given.upperBound].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
            let head: [UInt8] = isLinkLayer ? [0x20, 0x20, 14, 0x40, 0] : [0x13, 0x20, 14, 0x40, 0]
            expected = [head + bounds + fields.suffix(4) + [0, 0, 0, 0]]
        } else {
            expected = isLinkLayer ? [[0x21, 0x20, 3, 0x40, 0, 0x3B]] : []
        }
        #expect(attack.controllers.sides[0].packets == expected)
    }
}
