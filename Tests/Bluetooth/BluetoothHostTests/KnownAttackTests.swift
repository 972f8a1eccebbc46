import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Attack classes that have names, at the level of the host: SweynTooth, KNOB, pairing stripping, Method Confusion, poisoned
/// caches. Documentation/HCI.md lists them.
@Suite(.tags(.host)) struct KnownAttackTests {
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)

    private static func features(
        _ capability: IOCapability = .noInputNoOutput, authentication: UInt8 = 0x09, keySize: UInt8 = 16
    ) -> PairingFeatures {
        var features = PairingFeatures(
            capability: capability, authentication: authentication, initiatorKeys: 0, responderKeys: 0)
        features.keySize = keySize
        return features
    }

    private func connected(_ adapt: (inout PairingOptions) -> Void = { _ in }) throws -> Attack {
        let attack = Attack(adapt)
        try attack.start(as: Self.stranger)
        try attack.connect()
        return attack
    }

    private func isAlive(_ attack: Attack) -> Bool {
        _ = attack.frames(on: 4)
        attack.send([0x0A, 3, 0], on: 4)
        return attack.frames(on: 4).first?.first == 0x0B
    }

    // MARK: SweynTooth

    /// Frames that end before their fields do, on every channel that is always there.
    @Test func truncatedFramesAreDropped() throws {
        let attack = try connected()
        let whole: [(UInt8, [UInt8])] = [
            (4, [0x04, 1, 0, 0xFF, 0xFF]), (4, [0x16, 3, 0, 0, 0]), (4, [0x18, 1]), (4, [0x23, 3, 0, 9, 0]),
            (4, [0x20, 3, 0, 3, 0]), (5, [0x14, 1, 10, 0, 0x80, 0, 0x40, 0, 0, 8, 0, 8, 1, 0]),
            (5, [0x17, 1, 10, 0, 0x80, 0, 0, 8, 0, 8, 1, 0, 0x40, 0]), (6, Self.features().bytes(0x01)),
            (6, [0x0C] + [UInt8](repeating: 1, count: 64)), (6, [0x03] + [UInt8](repeating: 1, count: 16)),
        ]
        for (channel, bytes) in whole {
            for count in 0..<bytes.count { attack.send(Array(bytes.prefix(count)), on: channel) }
        }
        #expect(isAlive(attack))
        #expect(attack.host { host, _ in host.bonds.isEmpty })
    }

    @Test func anEmptyFrameOrPacketIsNothing() throws {
        let attack = try connected()
        attack.controllers.toHost[0] += [
            [2, 0x40, 0x20, 0, 0], [2, 0x40, 0x20, 1, 0, 0], [2, 0x40, 0x10, 3, 0, 0, 4, 0], [2, 0x40, 0x20],
        ]
        attack.settle()
        #expect(isAlive(attack))
    }

    /// A public key where none belongs: before any pairing, and in a legacy one.
    @Test func aPublicKeyOutOfTurnIsRefused() throws {
        let attack = try connected()
        let key = PairingPDU.publicKey(x: [UInt8](repeating: 1, count: 32), y: [UInt8](repeating: 2, count: 32))
        attack.sendPairing(key)
        #expect(try attack.pairingCommands().isEmpty)
        attack.sendPairing(.request(Self.features(authentication: 0x01)))
        _ = try attack.pairingCommands()
        attack.sendPairing(key)
        #expect(try attack.pairingCommands() == [.failed(0x08)])
        #expect(isAlive(attack))
    }

    /// The tests' cryptography knows its points as the true one does, which FerryHCI's tests cover (CryptographyTests).
    @Test(arguments: [UInt8(0x00), 0x02, 0xFF])
    func aPublicKeyThatIsNoPointIsRefused(octet: UInt8) throws {
        let attack = try connected()
        attack.sendPairing(.request(Self.features()))
        _ = try attack.pairingCommands()
        let coordinate = [UInt8](repeating: octet, count: 32)
        attack.sendPairing(.publicKey(x: coordinate, y: coordinate))
        #expect(try attack.pairingCommands() == [.failed(0x0A)])
    }

    /// Encryption that is asked for before there is a key: without pairing, and in each of its phases.
    @Test func encryptionBeforeThereIsAKeyIsRefused() throws {
        let attack = try connected()
        let zero = [UInt8](repeating: 0, count: 16)
        func refuses() -> Bool {
            attack.events = []
            attack.encrypt(with: zero)
            return attack.events.contains([0x08, 4, 0x06, 0x40, 0, 0])
        }
        #expect(refuses())
        attack.sendPairing(.request(Self.features()))
        #expect(refuses())
        attack.sendPairing(.failed(0x08))
        attack.sendPairing(.request(Self.features(authentication: 0x01)))
        attack.sendPairing(.confirm(zero))
        #expect(refuses())
        let id = try attack.connection()
        #expect(attack.host { host, _ in host.security(of: id) } == LinkSecurity())
    }

    // MARK: KNOB

    @Test func keysOfAnyOtherSizeAreRefused() throws {
        for size in (UInt8(0)...255) where size != 16 {
            // Each on a host of its own, for failures are counted.
            let attack = try connected()
            attack.sendPairing(.request(Self.features(keySize: size)))
            #expect(try attack.pairingCommands() == [.failed(0x06)])
        }
        for size in [UInt8(0), 6, 7, 15, 17, 253] {
            let attack = Attack()
            try attack.start(as: Self.stranger)
            try attack.beConnected(as: Self.stranger)
            let id = try attack.connection()
            #expect(attack.host { $0.secure(id, at: $1) })
            attack.settle()
            _ = try attack.pairingCommands()
            attack.sendPairing(.response(Self.features(keySize: size)))
            #expect(try attack.pairingCommands() == [.failed(0x06)])
        }
    }

    // MARK: Stripping and confusion

    /// The flags for a number, for Secure Connections, or both are taken out of the request.
    @Test(arguments: [UInt8(0x01), 0x05, 0x09])
    func strippedFeaturesDoNotPassARequirement(authentication: UInt8) throws {
        let attack = try connected {
            $0.capability = .displayYesNo
            $0.requiresSecureConnections = authentication & 0x08 == 0
            $0.requiresAuthentication = authentication & 0x08 != 0
        }
        attack.sendPairing(.request(Self.features(authentication: authentication)))
        #expect(try attack.pairingCommands() == [.failed(0x03)])
    }

    /// A person is asked to compare, to enter, or is shown a number, and a program can say which of them it is.
    @Test(arguments: [
        (IOCapability.displayYesNo, IOCapability.displayYesNo), (.displayYesNo, .keyboardOnly),
        (.keyboardOnly, .displayOnly),
    ])
    func everyQuestionSaysWhatItIs(own: IOCapability, peer: IOCapability) throws {
        let attack = try connected { $0.capability = own }
        var pairing = Pairing(
            isInitiator: true, local: Self.stranger, peer: Attack.own,
            options: {
                var options = PairingOptions(cryptography: ToyCryptography(seed: 5))
                options.capability = peer
                return options
            }())
        var outputs = pairing.begin()
        while !outputs.isEmpty {
            if case .send(let pdu) = outputs.removeFirst() {
                attack.sendPairing(pdu)
                for command in try attack.pairingCommands() { outputs += pairing.receive(command) }
            }
        }
        let question = try #require(attack.questions().first)
        switch (own, peer, question) {
        case (.displayYesNo, .displayYesNo, .compare), (.displayYesNo, .keyboardOnly, .show),
            (.keyboardOnly, .displayOnly, .enterPasskey):
            break
        default: Issue.record("\(question) for \(own) and \(peer)")
        }
        #expect(attack.questions().count == 1)
    }

    /// While a person thinks, the peer begins another pairing: what is said of the first is not said of the second, also where
    /// the two questions are the same.
    @Test(arguments: [IOCapability.displayYesNo, .noInputNoOutput])
    func anAnswerIsOfTheQuestionThatWasAsked(_ capability: IOCapability) throws {
        let attack = try connected {
            $0.capability = capability
            $0.asksToAllow = true
        }
        let yes: PairingAnswer = capability == .displayYesNo ? .confirm(true) : .allow(true)
        var peers: [Pairing] = []
        for seed in UInt64(5)...6 {
            var options = PairingOptions(cryptography: ToyCryptography(seed: seed))
            options.capability = capability
            var peer = Pairing(isInitiator: true, local: Self.stranger, peer: Attack.own, options: options)
            if seed == 6 { attack.sendPairing(.failed(0x08)) }
            _ = try attack.pairingCommands()
            var outputs = peer.begin()
            while !outputs.isEmpty {
                if case .send(let pdu) = outputs.removeFirst() {
                    attack.sendPairing(pdu)
                    for command in try attack.pairingCommands() { outputs += peer.receive(command) }
                }
            }
            peers.append(peer)
        }
        let questions = attack.questionIDs()
        try #require(questions.count == 2)
        #expect((attack.questions()[0] == attack.questions()[1]) == (capability == .noInputNoOutput))
        // The peer says that its person has agreed.
        for output in peers[1].answer(yes) {
            if case .send(let pdu) = output { attack.sendPairing(pdu) }
        }
        attack.host { $0.answerPairing(questions[0], yes, at: $1) }
        attack.settle()
        #expect(try attack.pairingCommands().isEmpty)
        attack.host { $0.answerPairing(questions[1], yes, at: $1) }
        attack.settle()
        switch try attack.pairingCommands().first {
        case .check where capability == .displayYesNo, .response where capability == .noInputNoOutput: break
        case let command: Issue.record("the answer to what is asked was not taken: \(command as Any)")
        }
    }

    // MARK: Caches

    /// A server that answers by the octet: its hash, and one service.
    private func serve(_ attack: Attack, service: UInt8) -> [[UInt8]] {
        var asked: [[UInt8]] = []
        while true {
            let requests = attack.frames(on: 4).filter { !$0.isEmpty && $0[0] & 0x41 == 0 }
            guard !requests.isEmpty else { return asked }
            for request in requests {
                asked.append(request)
                let isHash = request[0] == 0x08 && request.suffix(2) == [0x2A, 0x2B]
                let isFirst = request[0] == 0x10 && request[1] == 1
                if isHash {
                    attack.send([0x09, 18, 2, 0] + [UInt8](repeating: 0x3C, count: 16), on: 4)
                } else if isFirst {
                    attack.send([0x11, 6, 1, 0, 9, 0, service, 0x18], on: 4)
                } else {
                    attack.send([0x01, request[0], request[1], request[2], 0x0A], on: 4)
                }
            }
        }
    }

    /// An impostor tells the server's hash, which everybody can read, and services of its own, before the server is bonded
    /// with. The server's answers count later.
    @Test func poisonedAnswersAreNotUsedLater() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        func services(_ service: UInt8) throws -> (Result<ClientResult, ClientFailure>?, isAsked: Bool) {
            let id = try attack.connection()
            _ = serve(attack, service: service)
            let operation = try #require(attack.host { $0.request(.services(nil), of: id, at: $1) })
            attack.settle()
            let asked = serve(attack, service: service)
            for case .completed(operation, _, let result) in attack.log {
                return (result, asked.contains { $0[0] == 0x10 })
            }
            return (nil, false)
        }
        func found(_ service: UInt16) -> Result<ClientResult, ClientFailure> {
            .success(.services([DiscoveredService(handles: 1...9, uuid: .init(short: service), isPrimary: true)]))
        }
        for _ in 0..<2 {
            try attack.beConnected(as: Self.stranger)
            #expect(try services(0x66).0 == found(0x1866))
            attack.disconnect()
        }
        let bond = Bond.stored(with: Self.stranger)
        attack.host { host, _ in host.setBonds([bond]) }
        for isFirst in [true, false] {
            attack.events = []
            try attack.beConnected(as: Self.stranger)
            attack.giveKey(bond.longTermKey)
            let (result, isAsked) = try services(0x0F)
            #expect(result == found(0x180F))
            // And those are kept.
            #expect(isAsked == isFirst)
            attack.disconnect()
        }
    }
}

extension PairingFeatures {
    fileprivate func bytes(_ code: UInt8) -> [UInt8] { [code] + bytes }
}
