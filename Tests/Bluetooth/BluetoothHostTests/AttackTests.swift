import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// An attacker that speaks PDUs against one host: each attack is refused, the application is told, and the keys of the peer
/// that is attacked are as they were. Documentation/HCI.md lists them.
@Suite(.tags(.host)) struct AttackTests {
    private static let victim = Address.staticRandom(0xF2F2_F2F2_F2F2)
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)
    private static let resolvingKey = [UInt8](repeating: 0x1D, count: 16)

    // MARK: Impostors of a bonded peripheral

    /// BLESA: the impostor says that it has lost its key, and answers whatever is asked in the clear.
    @Test func anImpostorOfABondedPeripheralIsNotSpokenTo() throws {
        let attack = Attack()
        let bond = Bond.stored(with: Self.victim)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.beConnected(as: Self.victim)
        #expect(attack.isAskedForKey)
        let id = try attack.connection()
        let operation = try #require(attack.host { $0.request(.read(3), of: id, at: $1) })
        #expect(attack.host { host, _ in host.writeCommand([1].span.bytes, to: 3, of: id) } == false)
        let channel = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        // A value of its own, and an answer to what was not asked.
        attack.send([0x1B, 3, 0, 0x66], on: 4)
        attack.send([0x1D, 3, 0, 0x66], on: 4)
        attack.send([0x0B, 0x66], on: 4)
        #expect(attack.frames(on: 4) == [[0x1E]])
        attack.giveKey(nil)
        #expect(attack.received.isEmpty)
        #expect(attack.frames(on: 4).isEmpty)
        #expect(attack.pairingFailures() == [.notEncrypted(.keyMissing)])
        #expect(attack.wasDisconnected(.authenticationFailure))
        #expect(
            attack.log.contains {
                if case .completed(operation, _, .failure(.disconnected(.authenticationFailure))) = $0 {
                    true
                } else {
                    false
                }
            })
        #expect(
            attack.log.contains {
                if case .channelRefused(channel, id, .insufficientAuthentication) = $0 { true } else { false }
            })
        #expect(attack.hasDiagnostic("or is another device"))
        #expect(attack.hasDiagnostic("Values of \(Self.victim) are dropped"))
        #expect(attack.host { host, _ in host.bonds } == [bond])
    }

    /// An impostor that neither has the key nor says so.
    @Test func anImpostorThatKeepsSilentIsLetGo() throws {
        let attack = Attack()
        attack.host { host, _ in host.setBonds([.stored(with: Self.victim)]) }
        try attack.start(as: Self.victim)
        try attack.beConnected(as: Self.victim)
        attack.advance(seconds: 31)
        #expect(attack.frames(on: 4).isEmpty)
        #expect(attack.wasDisconnected(.authenticationFailure))
    }

    /// The peer itself is spoken to from the moment that it has proved who it is, and what waited goes on.
    @Test func theBondedPeripheralIsSpokenToOnceItIsEncrypted() throws {
        let attack = Attack()
        let bond = Bond.stored(with: Self.victim, isAuthenticated: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.beConnected(as: Self.victim)
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id) } == LinkSecurity())
        #expect(attack.host { host, _ in host.writeCommand([7].span.bytes, to: 3, of: id) } == false)
        _ = attack.host { $0.openChannel(id, psm: 0x80, at: $1) }
        attack.settle()
        #expect(attack.controllers.frames[0].isEmpty)
        attack.giveKey(bond.longTermKey)
        let frames = attack.controllers.frames[0]
        #expect(frames.contains { $0[2] == 4 && $0[4] == ATTOpcode.exchangeMTURequest })
        #expect(frames.contains { $0[2] == 5 && $0[4] == 0x14 })
        #expect(attack.log.contains { if case .readyToSend(id) = $0 { true } else { false } })
        let security = try #require(attack.host { host, _ in host.security(of: id) })
        #expect(security.isBonded)
        #expect(security.level == 4)
        #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.victim)
        // Values count from now on.
        attack.send([0x1B, 3, 0, 0x66], on: 4)
        #expect(attack.received == [[0x66]])
    }

    // MARK: Another's identity

    @Test(arguments: [false, true])
    func aStrangerThatClaimsABondedPeersIdentityIsRefused(isAuthenticated: Bool) throws {
        let attack = Attack()
        let bond = Bond.stored(
            with: .resolvable(Self.resolvingKey, 5), identity: Self.victim, resolvingKey: Self.resolvingKey,
            isAuthenticated: isAuthenticated, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        // Its address is made of the key that it tells, so that the identity looks like its own.
        let key = [UInt8](repeating: 0x66, count: 16)
        let address = Address.resolvable(key, 77)
        try attack.start(as: address)
        try attack.connect()
        let made = try attack.pair(from: address, identity: (key, Self.victim))
        #expect(made != nil)
        #expect(attack.host { host, _ in host.bonds } == [bond])
        #expect(attack.pairingFailures() == [.identityInUse(Self.victim)])
        #expect(attack.wasDisconnected(.authenticationFailure))
        // And its key is worth nothing under the victim's address.
        attack.become(Self.victim)
        try attack.connect()
        attack.encrypt(with: try #require(made))
        #expect(!attack.isConnected)
    }

    /// Whoever learnt the victim's resolving key, as every peer of the victim's does, can make its addresses.
    @Test func aStrangerThatTellsABondedPeersKeyIsRefused() throws {
        let attack = Attack()
        let bond = Bond.stored(
            with: Self.victim, identity: Self.victim, resolvingKey: Self.resolvingKey, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.stranger)
        try attack.connect()
        #expect(
            try attack.pair(from: Self.stranger, identity: (Self.resolvingKey, Self.stranger)) != nil)
        #expect(attack.host { host, _ in host.bonds } == [bond])
        #expect(attack.pairingFailures() == [.identityInUse(Self.victim)])
    }

    /// An identity that nothing speaks for is not taken, so that nobody can wait under an address for its owner.
    @Test func anIdentityThatIsNotInUseIsNotBelieved() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.connect()
        _ = try attack.pair(from: Self.stranger, identity: (Self.resolvingKey, Self.victim))
        let bonds = attack.host { host, _ in host.bonds }
        #expect(bonds.map(\.peer) == [Self.stranger])
        #expect(bonds.map(\.lastingAddress) == [Self.stranger])
        #expect(bonds[0].identityResolvingKey == nil)
        #expect(attack.hasDiagnostic("it is not believed"))
    }

    // MARK: Keys that are kept

    @Test(arguments: [false, true], [false, true])
    func justWorksDoesNotReplaceKeysThatAreKept(isAuthenticated: Bool, isResolved: Bool) throws {
        let attack = Attack()
        let bond = Bond.stored(
            with: Self.victim, identity: Self.victim, resolvingKey: Self.resolvingKey, isAuthenticated: isAuthenticated,
            peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        let address = isResolved ? Address.resolvable(Self.resolvingKey, 3) : Self.victim
        try attack.start(as: address)
        try attack.connect()
        #expect(try attack.pair(from: address) == nil)
        #expect(attack.host { host, _ in host.bonds } == [bond])
        #expect(attack.pairingFailures() == [.wouldReplaceKeys])
        #expect(attack.log.allSatisfy { if case .secured = $0 { false } else { true } })
    }

    @Test(arguments: [false, true])
    func theApplicationMaySayThatTheyAreReplaced(isAllowed: Bool) throws {
        let attack = Attack { $0.asksToAllow = true }
        let bond = Bond.stored(with: Self.victim, isAuthenticated: true, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.connect()
        attack.sendPairing(.request(Self.features))
        // Nothing is said before the application has answered.
        #expect(try attack.pairingCommands().isEmpty)
        guard case .allow(let proposal)? = attack.questions().first else {
            Issue.record("nobody was asked")
            return
        }
        #expect(proposal.replaced == bond)
        #expect(!proposal.isAuthenticated)
        #expect(proposal.isSecureConnections)
        let question = try #require(attack.questionIDs().first)
        attack.host { $0.answerPairing(question, .allow(isAllowed), at: $1) }
        attack.settle()
        let commands = try attack.pairingCommands()
        if isAllowed {
            guard case .response? = commands.first else {
                Issue.record("no response: \(commands)")
                return
            }
        } else {
            #expect(commands == [.failed(0x03)])
            #expect(attack.pairingFailures() == [.wouldReplaceKeys])
        }
        #expect(attack.host { host, _ in host.bonds } == [bond])
    }

    private static let features = PairingFeatures(
        capability: .noInputNoOutput, authentication: 0x09, initiatorKeys: 0, responderKeys: 0)

    @Test func aStrangerIsPairedWithOnlyIfThatIsAllowed() throws {
        let attack = Attack { $0.asksToAllow = true }
        try attack.start(as: Self.stranger)
        try attack.connect()
        attack.sendPairing(.request(Self.features))
        #expect(
            attack.questions()
                == [.allow(PairingProposal(isAuthenticated: false, isSecureConnections: true, replaced: nil))])
        let question = try #require(attack.questionIDs().first)
        attack.host { $0.answerPairing(question, .allow(false), at: $1) }
        attack.settle()
        #expect(try attack.pairingCommands() == [.failed(0x05)])
        #expect(attack.pairingFailures() == [.here(0x05)])
    }

    @Test func whoIsNotToBePairedWithIsRefusedAtOnce() throws {
        let attack = Attack { $0.asksToAllow = true }
        try attack.start(as: Self.stranger)
        attack.host { host, _ in host.isPairable = false }
        try attack.connect()
        attack.sendPairing(.request(Self.features))
        #expect(try attack.pairingCommands() == [.failed(0x05)])
        #expect(attack.questions().isEmpty)
        attack.host { host, _ in host.isPairable = true }
        attack.sendPairing(.request(Self.features))
        #expect(attack.questions().count == 1)
    }

    // MARK: What comes back

    /// Legacy passkey entry (Core Specification 5.4, Vol 3, Part H, 2.3.5.5; ES-24491, CVE-2020-26558): the attacker sends
    /// the confirm value back. With the random value it could find the passkey in seconds, so that must not leave.
    @Test func aConfirmValueThatComesBackIsRefused() throws {
        let attack = Attack { $0.capability = .displayOnly }
        try attack.start(as: Self.stranger)
        try attack.beConnected(as: Self.stranger)
        let id = try attack.connection()
        #expect(attack.host { $0.secure(id, at: $1) })
        attack.settle()
        guard case .request? = try attack.pairingCommands().first else {
            Issue.record("no request")
            return
        }
        attack.sendPairing(
            .response(
                PairingFeatures(capability: .keyboardOnly, authentication: 0x05, initiatorKeys: 0, responderKeys: 0)))
        guard case .confirm(let value)? = try attack.pairingCommands().first else {
            Issue.record("no confirm value")
            return
        }
        attack.sendPairing(.confirm(value))
        #expect(try attack.pairingCommands() == [.failed(0x04)])
        #expect(attack.pairingFailures() == [.here(0x04)])
    }

    /// Secure Connections: the public key that comes back (2.3.5.6.1), and the one whose private key everybody has.
    @Test(arguments: [false, true])
    func aPublicKeyThatIsNotThePeersOwnIsRefused(isDebugKey: Bool) throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.beConnected(as: Self.stranger)
        let id = try attack.connection()
        #expect(attack.host { $0.secure(id, at: $1) })
        attack.settle()
        attack.sendPairing(.response(Self.features))
        guard case .publicKey(let x, let y)? = try attack.pairingCommands().last else {
            Issue.record("no public key")
            return
        }
        attack.sendPairing(.publicKey(x: isDebugKey ? Pairing.debugKey : x, y: y))
        #expect(try attack.pairingCommands() == [.failed(0x0A)])
        #expect(attack.pairingFailures() == [.here(0x0A)])
    }

    // MARK: Stores and counts

    @Test func strangersDoNotFillTheStore() throws {
        let attack = Attack { $0.maximumBonds = 4 }
        let bond = Bond.stored(with: Self.victim, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.stranger)
        for number in UInt64(0)..<20 {
            let address = Address.staticRandom(0xD0_0000_0000 + number)
            attack.become(address)
            try attack.connect()
            attack.now += 1_000
            // Without a bond the keys serve for the connection.
            #expect(try attack.pair(from: address) != nil)
            let id = try attack.connection()
            let security = try #require(attack.host { host, _ in host.security(of: id) })
            #expect(security.isEncrypted)
            #expect(security.isBonded == (number < 3))
            attack.disconnect()
        }
        #expect(attack.host { host, _ in host.bonds.count } == 4)
        #expect(attack.host { host, _ in host.bonds.first } == bond)
        #expect(attack.hasDiagnostic("for this connection only: keys of 4 peers are kept"))
    }

    /// Part H, 2.3.6: whoever guesses has to wait, longer each time, also on another connection.
    @Test func connectingAnewDoesNotResetTheCountOfFailures() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        func attempt(_ attack: Attack) throws -> [PairingPDU] {
            try attack.connect()
            attack.sendPairing(.request(Self.features))
            let said = try attack.pairingCommands()
            attack.sendPairing(.failed(0x08))
            attack.disconnect()
            return said
        }
        for _ in 0..<3 {
            guard case .response? = try attempt(attack).first else {
                Issue.record("refused too early")
                return
            }
        }
        var wait = 4.0
        for _ in 0..<4 {
            #expect(try attempt(attack) == [.failed(0x09)])
            attack.advance(seconds: wait - 0.1)
            #expect(try attempt(attack) == [.failed(0x09)])
            attack.advance(seconds: 0.2)
            guard case .response? = try attempt(attack).first else {
                Issue.record("refused for longer than \(wait) s")
                return
            }
            wait *= 2
        }
        // Others are none the worse for it.
        attack.become(Self.victim)
        guard case .response? = try attempt(attack).first else {
            Issue.record("another is refused too")
            return
        }
    }

    @Test func ignoredSecurityRequestsDoNotStopLaterPairing() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.connect()
        let id = try attack.connection()
        for _ in 0..<5 {
            #expect(attack.host { $0.secure(id, at: $1) })
            attack.settle()
            attack.advance(seconds: 31)
        }
        #expect(attack.pairingFailures() == .init(repeating: .timedOut, count: 5))
        #expect(try attack.pair(from: Self.stranger) != nil)
        #expect(attack.host { host, _ in host.bonds.count } == 1)
    }

    // MARK: Requirements, raised later

    /// A key from before the requirement does not open what it guards.
    @Test(arguments: [false, true])
    func requirementsHoldForStoredKeys(isCentral: Bool) throws {
        let attack = Attack {
            $0.capability = .displayYesNo
            $0.requiresAuthentication = true
        }
        let bond = Bond.stored(with: Self.victim, peerIsCentral: !isCentral)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        if isCentral {
            try attack.beConnected(as: Self.victim)
            let id = try attack.connection()
            #expect(!attack.isAskedForKey)
            // It pairs anew, by a number.
            #expect(attack.host { $0.secure(id, at: $1) })
            attack.settle()
            guard case .request(let features)? = try attack.pairingCommands().first else {
                Issue.record("no request")
                return
            }
            #expect(features.has(PairingFeatures.authenticated))
            attack.sendPairing(.response(Self.features))
            #expect(try attack.pairingCommands() == [.failed(0x03)])
        } else {
            try attack.connect()
            attack.encrypt(with: bond.longTermKey)
            #expect(attack.events.contains { $0[0] == 0x08 && $0[2] == 0x06 })
            let id = try attack.connection()
            #expect(attack.host { host, _ in host.security(of: id) } == LinkSecurity())
        }
        #expect(attack.host { host, _ in host.bonds } == [bond])
    }

    /// A peripheral that wants a number, on a link that is encrypted without one.
    @Test(arguments: [IOCapability.noInputNoOutput, .displayYesNo])
    func aRequestForMoreSecurityRaisesAnEncryptedLink(capability: IOCapability) throws {
        let attack = Attack { $0.capability = capability }
        let bond = Bond.stored(with: Self.victim)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.beConnected(as: Self.victim)
        attack.giveKey(bond.longTermKey)
        _ = try attack.pairingCommands()
        attack.sendPairing(.securityRequest(authentication: 0x09))
        #expect(try attack.pairingCommands().isEmpty)
        attack.sendPairing(.securityRequest(authentication: 0x0D))
        let commands = try attack.pairingCommands()
        if capability == .noInputNoOutput {
            #expect(commands.isEmpty)
        } else {
            guard case .request? = commands.first else {
                Issue.record("no request")
                return
            }
        }
    }

    @Test func aPeerIsForgottenByAnyOfItsAddresses() throws {
        let first = Address.resolvable(Self.resolvingKey, 1)
        let bond = Bond.stored(with: first, identity: Self.victim, resolvingKey: Self.resolvingKey)
        for address in [first, Self.victim, .resolvable(Self.resolvingKey, 2)] {
            let attack = Attack()
            attack.host { host, _ in host.setBonds([bond, .stored(with: Self.stranger)]) }
            let gone = attack.host { host, _ in host.forget(address) }
            #expect(gone == bond)
            #expect(attack.host { host, _ in host.bonds.map(\.peer) } == [Self.stranger])
            let goneAgain = attack.host { host, _ in host.forget(address) }
            #expect(goneAgain == nil)
        }
    }

    /// A legacy key has a name, and serves under that name only.
    @Test func aKeyIsGivenByItsNameOnly() throws {
        let attack = Attack()
        let key = [UInt8](repeating: 0x4B, count: 16)
        let bond = Bond(
            peer: Self.victim, longTermKey: key, diversifier: 0x1234, random: 0x5678, identityResolvingKey: nil,
            isAuthenticated: false, isSecureConnections: false, peerIsCentral: true)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.victim)
        try attack.connect()
        for (random, diversifier) in [(0x5678, 0x1235), (0x5679, 0x1234), (0, 0)] as [(UInt64, UInt16)] {
            attack.events = []
            attack.encrypt(with: key, random: random, diversifier: diversifier)
            #expect(attack.events.contains([0x08, 4, 0x06, 0x40, 0, 0]))
        }
        attack.encrypt(with: key, random: 0x5678, diversifier: 0x1234)
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id)?.isBonded } == true)
    }

    /// No link that was encrypted goes on in the clear.
    @Test func aLinkWhoseEncryptionEndsIsEnded() throws {
        let attack = Attack()
        try attack.start(
            as: Self.stranger,
            publishing: [
                CharacteristicSpecification(
                    BluetoothHost.UUID(short: 0x2A19), properties: 0x02, access: [.read, .readEncrypted], value: [4])
            ])
        try attack.connect()
        _ = try attack.pair(from: Self.stranger)
        let handle = UInt8(try #require(attack.handles).characteristics[0])
        attack.send([0x0A, handle, 0], on: 4)
        #expect(attack.frames(on: 4) == [[0x0B, 4]])
        let read: [UInt8] = [2, 0x40, 0x20, 7, 0, 3, 0, 4, 0, 0x0A, handle, 0]
        attack.controllers.toHost[0] += [[4, 0x08, 4, 0, 0x40, 0, 0], read]
        attack.settle()
        #expect(attack.frames(on: 4).isEmpty)
        #expect(attack.wasDisconnected(.authenticationFailure))
    }

    // MARK: Values

    /// Part F, 3.4.3.3: what may not be read may not be guessed.
    @Test func valuesThatNeedEncryptionAreNotConfirmed() throws {
        let attack = Attack()
        let type = BluetoothHost.UUID(short: 0x2A19)
        try attack.start(
            as: Self.stranger,
            publishing: [
                CharacteristicSpecification(type, properties: 0x02, access: [.read, .readEncrypted], value: [4, 2]),
                CharacteristicSpecification(type, properties: 0x08, access: .write, value: [4, 2]),
                CharacteristicSpecification(type, properties: 0x02, access: .read, value: [4, 2]),
            ])
        let handles = try #require(attack.handles)
        try attack.connect()
        attack.send([0x06, 1, 0, 0xFF, 0xFF, 0x19, 0x2A, 4, 2], on: 4)
        let open = UInt8(handles.characteristics[2])
        #expect(attack.frames(on: 4) == [[0x07, open, 0, open, 0]])
        _ = try attack.pair(from: Self.stranger)
        attack.send([0x06, 1, 0, 0xFF, 0xFF, 0x19, 0x2A, 4, 2], on: 4)
        let secret = UInt8(handles.characteristics[0])
        #expect(attack.frames(on: 4) == [[0x07, secret, 0, secret, 0, open, 0, open, 0]])
    }
}
