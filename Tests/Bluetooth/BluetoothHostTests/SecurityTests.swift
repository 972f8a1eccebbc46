import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Pairing and encryption between two hosts, over strict controllers.
@Suite(.tags(.host, .pairing)) struct SecurityTests {
    private static func isSecured(_ event: HostEvent) -> Bool { if case .secured = event { true } else { false } }

    private static func bond(_ events: [HostEvent]) -> Bond? {
        for case .bonded(_, let bond) in events { return bond }
        return nil
    }

    @Test(arguments: [27, 251])
    func aRequestThatNeedsEncryptionPairsAndIsMadeOnceMore(aclLength: Int) throws {
        var pair = HostPair(.init(aclLength: aclLength, receiveLength: aclLength))
        let handles = try pair.connect()
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
        for side in 0...1 {
            #expect(pair.log[side].filter(Self.isSecured).count == 1)
            let id = try pair.connection(side)
            #expect(pair.host(side) { host, _ in host.isEncrypted(id) } == true)
        }
        let bonds = (try #require(Self.bond(pair.log[0])), try #require(Self.bond(pair.log[1])))
        #expect(bonds.0.longTermKey == bonds.1.longTermKey)
        #expect(bonds.0.isSecureConnections)
        #expect(pair.controllers.faults.isEmpty)
        // At once now.
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
    }

    @Test func aBondEncryptsTheNextConnectionByItself() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        _ = try pair.ask(.read(handles.characteristics[1]))
        let id = try pair.connection(1)
        pair.host(1) { $0.disconnect(id, at: $1) }
        pair.settle()
        pair.log = [[], []]
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xF1F1_F1F1_F1F1), at: $1) })
        pair.settle()
        #expect(pair.log[0].contains(where: Self.isSecured))
        #expect(pair.log[1].contains(where: Self.isSecured))
        #expect(Self.bond(pair.log[1]) == nil)
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
    }

    /// The other host is never asked for its key: encryption is asked for once, and given up after 30 s.
    @Test func aLinkThatIsNeverEncryptedIsGivenUp() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        _ = try pair.ask(.read(handles.characteristics[1]))
        pair.log = [[], []]
        pair.lostMetaEvent = 0x05
        try pair.reconnect()
        let id = try pair.connection(1)
        let (isUnderWay, asksAgain) = pair.host(1) { host, now in
            var packet: [UInt8] = []
            return (host.secure(id, at: now), host.nextPacket(into: &packet, at: now))
        }
        #expect(isUnderWay && !asksAgain)
        pair.advance(seconds: 31)
        let failures = pair.log[1].compactMap { if case .pairingFailed(_, let failure) = $0 { failure } else { nil } }
        #expect(failures == [.notEncrypted(.linkLayerResponseTimeout)])
        #expect(pair.peers(1).isEmpty)
    }

    /// A peer that has lost its key is told of to the application, not silently paired with anew.
    @Test func aLostKeyIsAFailure() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        _ = try pair.ask(.read(handles.characteristics[1]))
        let id = try pair.connection(1)
        pair.host(1) { $0.disconnect(id, at: $1) }
        pair.settle()
        pair.host(0) { host, _ in host.setBonds([]) }
        pair.log = [[], []]
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xF1F1_F1F1_F1F1), at: $1) })
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .pairingFailed(_, .notEncrypted(let code)) = $0 { code.rawValue == 0x06 } else { false }
            })
        // Nothing is asked in the clear, and the key stays for the application to forget.
        #expect(pair.peers(1).isEmpty)
        #expect(Self.bond(pair.log[1]) == nil)
        pair.host(1) { host, _ in
            #expect(host.bonds.count == 1)
            host.forget(.staticRandom(0xF1F1_F1F1_F1F1))
        }
        try pair.reconnect()
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
    }

    @Test func aChannelThatNeedsEncryptionIsOpenedOnceMore() throws {
        var pair = HostPair()
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80, encryptionRequired: true) })
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.openChannel(id, psm: 0x80, at: $1) })
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .channelOpened(_, id, psm: 0x80, operation) = $0 { true } else { false }
            })
    }

    @Test func aPeripheralAsksItsCentralToPair() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let id = try pair.connection(0)
        #expect(pair.host(0) { $0.secure(id, at: $1) })
        pair.settle()
        #expect(pair.log[0].contains(where: Self.isSecured))
        #expect(pair.log[1].contains(where: Self.isSecured))
    }

    private func send(_ command: PairingPDU, to side: Int, of pair: inout HostPair) {
        let bytes = command.bytes
        pair.controllers.sendFrame([UInt8(bytes.count), 0, 6, 0] + bytes, to: side)
        pair.settle()
    }

    private static let features = PairingFeatures(
        capability: .noInputNoOutput, authentication: 0x09, initiatorKeys: 0, responderKeys: 0)

    @Test func aPeerThatStopsInTheMiddleCannotGoOn() throws {
        var pair = HostPair()
        _ = try pair.connect()
        // The central's host does not know of this pairing, and does not answer.
        send(.request(Self.features), to: 0, of: &pair)
        pair.advance(seconds: 31)
        #expect(
            pair.log[0].contains { if case .pairingFailed(_, .timedOut) = $0 { true } else { false } })
        let count = pair.controllers.frames[0].count
        send(.request(Self.features), to: 0, of: &pair)
        #expect(pair.controllers.frames[0].count == count)
    }

    @Test func repeatedAttemptsAreRefused() throws {
        var pair = HostPair()
        _ = try pair.connect()
        for _ in 0..<3 {
            send(.request(Self.features), to: 0, of: &pair)
            send(.failed(0x08), to: 0, of: &pair)
        }
        send(.request(Self.features), to: 0, of: &pair)
        #expect(pair.controllers.frames[0].last == [2, 0, 6, 0, 0x05, 0x09])
        // Whoever goes on asking is let go.
        for _ in 1..<ConnectionSecurity.refusalLimit { send(.request(Self.features), to: 0, of: &pair) }
        #expect(!pair.peers(0).isEmpty)
        send(.request(Self.features), to: 0, of: &pair)
        #expect(pair.peers(0).isEmpty)
        #expect(
            pair.log[0].contains {
                if case .diagnostic(let why) = $0 { why.contains("it asks to pair again and again") } else { false }
            })
    }

    /// A legacy key serves in the roles in which it was made: in the others there is no key.
    @Test(arguments: [false, true])
    func aLegacyKeyServesInItsRolesOnly(peerIsCentral: Bool) throws {
        let peer = Address.staticRandom(0xF2F2_F2F2_F2F2)
        let attack = Attack()
        attack.host { host, _ in
            host.setBonds([.stored(with: peer, isSecureConnections: false, peerIsCentral: peerIsCentral)])
        }
        try attack.start(as: peer)
        try attack.beConnected(as: peer)
        #expect(attack.isAskedForKey == !peerIsCentral)
        // Nobody pairs anew of its own accord.
        #expect(try attack.pairingCommands().isEmpty)
        #expect(attack.isConnected)
    }
}
