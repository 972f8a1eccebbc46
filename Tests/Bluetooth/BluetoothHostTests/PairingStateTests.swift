import FerryTesting
import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// The course of pairing between two state machines, without links or controllers.
@Suite(.tags(.host, .pairing)) struct PairingStateTests {
    /// The link becomes encrypted while the refusal of a request from before is on its way: the request is made once more.
    @Test func aRefusalFromBeforeTheEncryptionIsNotTheLast() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.request(.read(handles.characteristics[1]), of: id, at: $1) })
        pair.host(1) { host, _ in host.connections[0].security.isEncrypted = true }
        let before = pair.controllers.frames[1].filter { $0[2] == 4 && $0[4] == ATTOpcode.readRequest }.count
        pair.settle()
        // The other side does not know of any encryption, and refuses both.
        #expect(try pair.result(of: operation) == .failure(.refused(.insufficientAuthentication)))
        let reads = pair.controllers.frames[1].filter { $0[2] == 4 && $0[4] == ATTOpcode.readRequest }.count
        #expect(reads - before == 2)
    }

    private static let addresses = (Address.staticRandom(1), Address.staticRandom(2))

    /// Two sides that answer each other until nothing is left to say.
    private struct Course {
        var sides: [Pairing]
        var bonds: [Bond?] = [nil, nil]
        var keys: [[UInt8]] = [[], []]
        var failures: [PairingFailure?] = [nil, nil]
        var questions: [[PairingQuestion]] = [[], []]
        var isOver = [false, false]

        init(_ first: PairingOptions, _ second: PairingOptions) {
            sides = [
                Pairing(isInitiator: true, local: addresses.0, peer: addresses.1, options: first),
                Pairing(isInitiator: false, local: addresses.1, peer: addresses.0, options: second),
            ]
        }

        /// - Parameters:
        ///   - change: what becomes of a command on its way.
        ///   - answer: what a person says.
        mutating func run(
            change: (PairingPDU) -> PairingPDU = { $0 },
            answer: (Int, PairingQuestion, [[PairingQuestion]]) -> PairingAnswer? = Course.honest
        ) {
            var waiting = sides[0].begin().map { (0, $0) }
            var rounds = 0
            while !waiting.isEmpty, rounds < 1_000 {
                rounds += 1
                let (side, output) = waiting.removeFirst()
                var more: [(Int, Pairing.Output)] = []
                switch output {
                case .send(let command):
                    more = sides[1 - side].receive(change(command)).map { (1 - side, $0) }
                case .ask(let question):
                    questions[side].append(question)
                    // People read after both screens are on.
                    for place in 0...1 {
                        for question in questions[place] {
                            if let said = answer(place, question, questions) {
                                more += sides[place].answer(said).map { (place, $0) }
                            }
                        }
                    }
                case .encrypt(let key):
                    keys[side] = key
                    if !keys[0].isEmpty, keys[0] == keys[1] {
                        // The responder first, which the initiator's host learns of later.
                        more = sides[1].linkWasEncrypted().map { (1, $0) } + sides[0].linkWasEncrypted().map { (0, $0) }
                    }
                case .finished(let bond):
                    bonds[side] = bond
                    isOver[side] = true
                case .failed(let failure): failures[side] = failure
                }
                waiting += more
            }
        }

        static func honest(
            _ side: Int, _ question: PairingQuestion, _ all: [[PairingQuestion]]
        ) -> PairingAnswer? {
            switch question {
            case .show: return nil
            case .allow: return .allow(true)
            case .compare:
                guard let other = all[1 - side].first else { return nil }
                return .confirm(other == question)
            case .enterPasskey:
                guard case .show(let number)? = all[1 - side].first else {
                    return all[1 - side].first == .enterPasskey ? .passkey(123_456) : nil
                }
                return .passkey(number)
            }
        }
    }

    private static func options(_ capability: IOCapability, seed: UInt64) -> PairingOptions {
        var options = PairingOptions(cryptography: ToyCryptography(seed: seed))
        options.capability = capability
        return options
    }

    private static func course(_ first: IOCapability, _ second: IOCapability) -> Course {
        Course(options(first, seed: 1), options(second, seed: 2))
    }

    /// Makes the responder one of Bluetooth 4.0.
    private static func withoutSecureConnections(_ command: PairingPDU) -> PairingPDU {
        guard case .request(var features) = command else { return command }
        features.authentication &= ~PairingFeatures.secureConnections
        return .request(features)
    }

    @Test(arguments: IOCapability.allCases, IOCapability.allCases)
    func everyPairOfCapabilitiesComesToOneKey(first: IOCapability, second: IOCapability) throws {
        var course = Self.course(first, second)
        course.run()
        #expect(course.failures == [nil, nil])
        let bonds = (try #require(course.bonds[0]), try #require(course.bonds[1]))
        #expect(bonds.0.longTermKey == bonds.1.longTermKey)
        #expect(bonds.0.isSecureConnections)
        #expect(bonds.0.isAuthenticated == bonds.1.isAuthenticated)
        // Core Specification 5.4, Vol 3, Part H, 2.3.5.1, Table 2.8: without a way to enter or compare there is none.
        let canWork = first != .noInputNoOutput && second != .noInputNoOutput
        let isBlind =
            [IOCapability.displayOnly, .displayYesNo].contains(first) && [.displayOnly, .displayYesNo].contains(second)
            && !(first == .displayYesNo && second == .displayYesNo)
        #expect(bonds.0.isAuthenticated == (canWork && !isBlind))
        #expect(bonds.0.peer == Self.addresses.1)
        #expect(bonds.1.peerIsCentral)
    }

    /// Core Specification 5.4, Vol 3, Part H, 2.3.5.1, Table 2.8, by hand: what the responder (rows) and the initiator
    /// (columns) do, in the order display only, display yes no, keyboard only, neither, keyboard display. J is Just Works, C
    /// comparison, "i" and "r" who enters what the other shows, "b" both enter.
    private static let legacyTable = ["JJiJi", "JJiJi", "rrbJr", "JJJJJ", "rriJr"].map(Array.init)
    private static let secureTable = ["JJiJi", "JCiJC", "rrbJr", "JJJJJ", "rCiJC"].map(Array.init)

    @Test(arguments: IOCapability.allCases, IOCapability.allCases)
    func methodsAreThoseOfTheTable(initiator: IOCapability, responder: IOCapability) {
        for isSecure in [false, true] {
            let methods = [true, false].map { Pairing.method(initiator, responder, isSecure, $0) }
            let place = (Int(responder.rawValue), Int(initiator.rawValue))
            let expected: [Pairing.Method] =
                switch isSecure ? Self.secureTable[place.0][place.1] : Self.legacyTable[place.0][place.1] {
                case "C": [.compare, .compare]
                case "i": [.enter, .show]
                case "r": [.show, .enter]
                case "b": [.enter, .enter]
                default: [.justWorks, .justWorks]
                }
            #expect(methods == expected, "secure \(isSecure)")
        }
    }

    /// Confirm and check values hold the features, so that a change of them on the air is noticed.
    @Test(arguments: [IOCapability.noInputNoOutput, .displayYesNo], [UInt8(0x08), 0x04, 0x10])
    func changedFeaturesAreNoticed(capability: IOCapability, bit: UInt8) throws {
        var course = Self.course(capability, .displayYesNo)
        course.run { command in
            guard case .response(var features) = command else { return command }
            features.authentication ^= bit
            return .response(features)
        }
        #expect(course.failures != [nil, nil])
        #expect(course.bonds == [nil, nil])
    }

    /// Core Specification 5.4, Vol 3, Part H, 2.3.5.6.3: each of 20 rounds commits to one bit of the passkey, as the octet 0x80 or 0x81.
    /// Two sides with the same mistake would pair all the same.
    @Test func eachRoundCommitsToItsBitOfThePasskey() throws {
        var course = Self.course(.keyboardOnly, .displayOnly)
        var (keys, confirms, randoms): ([[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [])
        course.run(change: { command in
            switch command {
            case .publicKey(let x, _): keys.append(x)
            case .confirm(let value): confirms.append(value)
            case .random(let value): randoms.append(value)
            default: break
            }
            return command
        })
        guard case .show(let passkey)? = course.questions[1].first else {
            Issue.record("no passkey is shown: \(course.questions)")
            return
        }
        try #require(keys.count == 2 && confirms.count == 40 && randoms.count == 40)
        let functions = PairingFunctions(cryptography: ToyCryptography(seed: 0))
        for round in 0..<20 {
            let octet: UInt8 = passkey >> UInt32(round) & 1 == 1 ? 0x81 : 0x80
            let (initiators, responders) = (2 * round, 2 * round + 1)
            #expect(confirms[initiators] == functions.f4(keys[0], keys[1], randoms[initiators], octet))
            #expect(confirms[responders] == functions.f4(keys[1], keys[0], randoms[responders], octet))
        }
    }

    @Test func aStrangerBetweenTheTwoIsNoticed() {
        for place in 0..<6 {
            var course = Self.course(.displayYesNo, .displayYesNo)
            var count = -1
            course.run { command in
                count += 1
                guard count == place + 2 else { return command }
                switch command {
                case .publicKey(let x, let y): return .publicKey(x: x.map { $0 ^ 1 }, y: y)
                case .confirm(let value): return .confirm(value.map { $0 ^ 1 })
                case .random(let value): return .random(value.map { $0 ^ 1 })
                case .check(let value): return .check(value.map { $0 ^ 1 })
                default: return command
                }
            }
            #expect(course.failures[0] != nil, "command \(place + 2)")
            #expect(course.bonds == [nil, nil])
        }
    }

    @Test func aKeyThatComesBackIsRefused() {
        var pairing = Pairing(
            isInitiator: true, local: Self.addresses.0, peer: Self.addresses.1,
            options: Self.options(.noInputNoOutput, seed: 3))
        _ = pairing.begin()
        let features = PairingFeatures(
            capability: .noInputNoOutput, authentication: 0x09, initiatorKeys: 0, responderKeys: 0)
        guard case .send(.publicKey(let x, let y))? = pairing.receive(.response(features)).first else {
            Issue.record("no key was sent")
            return
        }
        #expect(pairing.receive(.publicKey(x: x, y: y)).contains(.failed(.here(0x0A))))
    }

    @Test func whatIsRequiredIsRequired() {
        var strict = Self.options(.noInputNoOutput, seed: 4)
        strict.requiresAuthentication = true
        var first = Course(strict, Self.options(.displayYesNo, seed: 5))
        first.run()
        #expect(first.failures == [.here(0x03), .peer(0x03)] || first.failures == [.peer(0x03), .here(0x03)])
        var modern = Self.options(.noInputNoOutput, seed: 6)
        modern.requiresSecureConnections = true
        var second = Course(Self.options(.noInputNoOutput, seed: 7), modern)
        second.run(change: Self.withoutSecureConnections)
        #expect(second.failures[1] == .here(0x03))
    }

    @Test func shortKeysAreRefused() {
        var course = Self.course(.noInputNoOutput, .noInputNoOutput)
        course.run { command in
            guard case .request(var features) = command else { return command }
            features.keySize = 7
            return .request(features)
        }
        #expect(course.failures == [.peer(0x06), .here(0x06)])
    }

    /// Commands of every kind in every order: each ends in a failure or is in its place.
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func randomCommandsNeitherTrapNorGiveABond(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            var pairing = Pairing(
                isInitiator: Bool.random(using: &random), local: Self.addresses.0, peer: Self.addresses.1,
                options: Self.options(try #require(IOCapability.allCases.randomElement(using: &random)), seed: seed))
            if pairing.isInitiator { _ = pairing.begin() }
            for _ in 0..<30 {
                var bytes = random.bytes([1, 2, 7, 8, 11, 17, 65].randomElement(using: &random) ?? 1)
                bytes[0] = UInt8.random(in: 0...0x10, using: &random)
                if bytes.count == 7, Bool.random(using: &random) { bytes[4] = 16 }
                guard let command = try? PairingPDU.decode(bytes) else { continue }
                #expect(PairingPDU.decodes(command.bytes) == command)
                for output in pairing.receive(command) {
                    if case .finished(let bond) = output { #expect(bond == nil) }
                }
                if Bool.random(using: &random) {
                    _ = pairing.answer(.passkey(UInt32.random(in: 0...1_100_000)))
                }
                if Bool.random(using: &random) { _ = pairing.answer(.confirm(true)) }
            }
        }
    }
}

extension PairingPDU {
    fileprivate static func decodes(_ bytes: [UInt8]) -> PairingPDU? { (try? decode(bytes)) ?? nil }
}
