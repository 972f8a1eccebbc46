import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Bonded peers whose private addresses change: one identity each, whatever they are called.
@Suite(.tags(.host)) struct PrivacyTests {
    private static let identity = Address.staticRandom(0xF2F2_F2F2_F2F2)
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)
    private static let resolvingKey = [UInt8](repeating: 0x1D, count: 16)

    private static func bond(peerIsCentral: Bool = false) -> Bond {
        .stored(
            with: .resolvable(resolvingKey, 1), identity: identity, resolvingKey: resolvingKey,
            peerIsCentral: peerIsCentral)
    }

    @Test func aPeerIsConnectedToUnderTheAddressThatItHasNow() throws {
        for name in [Self.identity, .resolvable(Self.resolvingKey, 1), .resolvable(Self.resolvingKey, 2)] {
            let attack = Attack()
            attack.host { host, _ in host.setBonds([Self.bond()]) }
            let now = Address.resolvable(Self.resolvingKey, 99)
            try attack.start(as: now)
            #expect(attack.host { $0.connect(to: name, at: $1) })
            #expect(!attack.host { $0.connect(to: Self.identity, at: $1) })
            attack.settle()
            attack.advertise()
            let id = try attack.connection()
            #expect(attack.host { host, _ in host.peer(of: id) } == now)
            #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.identity)
            #expect(attack.host { host, _ in host.connection(to: Self.identity) } == id)
            #expect(attack.isAskedForKey)
            attack.giveKey(Self.bond().longTermKey)
            #expect(attack.host { host, _ in host.security(of: id)?.isBonded } == true)
            // The scan was for this only.
            #expect(!attack.controllers.sides[0].isScanning)
            #expect(!attack.log.contains { if case .advertisementReceived = $0 { true } else { false } })
        }
    }

    /// Somebody else is not connected to, nor is the peer once it is not wanted any more.
    @Test func onlyThePeerIsConnectedTo() throws {
        let attack = Attack()
        attack.host { host, _ in host.setBonds([Self.bond()]) }
        try attack.start(as: Self.stranger)
        #expect(attack.host { $0.connect(to: Self.identity, at: $1) })
        attack.settle()
        for address in [Self.stranger, .resolvable([UInt8](repeating: 0x66, count: 16), 1)] {
            attack.become(address)
            attack.advertise()
            #expect(!attack.isConnected)
        }
        attack.host { $0.cancelConnection(to: Self.identity, at: $1) }
        attack.settle()
        #expect(
            attack.log.contains {
                if case .connectionFailed(Self.identity, .unknownConnection) = $0 { true } else { false }
            })
        #expect(!attack.controllers.sides[0].isScanning)
        attack.become(.resolvable(Self.resolvingKey, 3))
        attack.advertise()
        #expect(!attack.isConnected)
    }

    /// A peer that changes its address between being heard and being connected to is listened for again.
    @Test func aPeerThatChangesItsAddressMeanwhileIsSoughtAgain() throws {
        let attack = Attack()
        attack.host { host, _ in host.setBonds([Self.bond()]) }
        let first = Address.resolvable(Self.resolvingKey, 5)
        try attack.start(as: first)
        #expect(attack.host { $0.connect(to: Self.identity, at: $1) })
        attack.settle()
        // It is heard, and gone.
        var report: [UInt8] = [4, 0x3E, 12, 0x02, 1, 0, 1]
        report += first.bytes + [0, 0xCE]
        attack.controllers.toHost[0].append(report)
        attack.settle()
        #expect(attack.controllers.sides[0].initiating == first.bytes)
        attack.become(.resolvable(Self.resolvingKey, 6))
        attack.advertise()
        #expect(!attack.isConnected)
        attack.advance(seconds: 5)
        attack.advertise()
        #expect(attack.isConnected)
    }

    @Test func aPeerThatIsSoughtSurvivesAReset() throws {
        let attack = Attack()
        attack.host { host, _ in host.setBonds([Self.bond()]) }
        try attack.start(as: .resolvable(Self.resolvingKey, 5))
        #expect(attack.host { $0.connect(to: Self.identity, at: $1) })
        attack.settle()
        attack.controllers.toHost[0].append([4, 0x10, 1, 7])
        attack.settle()
        attack.advertise()
        #expect(attack.isConnected)
    }

    /// A thousand reconnects in either role: one identity, and nothing grows.
    @Test(arguments: [false, true])
    func aThousandReconnectsAreOfOnePeer(isCentral: Bool) throws {
        let attack = Attack()
        let bond = Self.bond(peerIsCentral: !isCentral)
        attack.host { host, _ in host.setBonds([bond]) }
        try attack.start(as: Self.identity)
        for number in UInt64(0)..<1_000 {
            attack.become(.resolvable(Self.resolvingKey, number &* 0x9E37_79B9))
            attack.controllers.frames = [[], []]
            attack.forgetFrames()
            attack.events = []
            attack.log = []
            if isCentral {
                #expect(attack.host { $0.connect(to: Self.identity, at: $1) })
                attack.settle()
                attack.advertise()
                attack.giveKey(bond.longTermKey)
            } else {
                try attack.connect()
                attack.encrypt(with: bond.longTermKey)
            }
            let id = try attack.connection()
            #expect(attack.host { host, _ in host.identityAddress(of: id) } == Self.identity)
            #expect(attack.host { host, _ in host.security(of: id)?.isBonded } == true)
            attack.disconnect()
        }
        attack.host { host, _ in
            #expect(host.bonds == [bond])
            #expect(host.rememberedClients.count == 1)
            #expect(host.discoveries.entries.count <= 1)
            #expect(host.keyring.resolutions.lasting.count <= ResolutionCache.limit)
            #expect(host.initiator.found.isEmpty && host.initiator.sought.isEmpty && host.initiator.waiting.isEmpty)
            #expect(host.connections.isEmpty)
        }
    }

    @Test func resolutionsAreBounded() {
        let attack = Attack()
        attack.host { host, _ in
            host.setBonds([Self.bond()])
            for number in UInt64(0)..<5_000 {
                let key = [UInt8](repeating: UInt8(truncatingIfNeeded: number % 251), count: 16)
                _ = host.resolve(.resolvable(key, number))
                #expect(host.keyring.resolutions.lasting.count <= ResolutionCache.limit)
            }
            #expect(host.resolve(.resolvable(Self.resolvingKey, 8)) == Self.identity)
            host.forget(Self.identity)
            let address = Address.resolvable(Self.resolvingKey, 8)
            #expect(host.resolve(address) == address)
        }
    }
}

/// Subscriptions are kept with bonds (Core Specification 5.4, Vol 3, Part G, 3.3.3.3).
@Suite(.tags(.host)) struct SubscriptionTests {
    private func configure(_ pair: inout HostPair, _ handles: ServiceHandles, _ bits: UInt16) throws {
        let request = ClientRequest.configure(value: handles.characteristics[0], end: handles.end, bits: bits)
        #expect(try pair.ask(request) == .success(.done))
    }

    private func isTold(_ log: [[HostEvent]], _ value: UInt16, _ bits: UInt16) -> Bool {
        log[0].contains { if case .configurationChanged(_, value, bits) = $0 { true } else { false } }
    }

    private func bond(_ pair: inout HostPair) throws -> ServiceHandles {
        let handles = try pair.connect()
        try configure(&pair, handles, 1)
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        return handles
    }

    @Test func aBondedClientNeedNotSubscribeAgain() throws {
        var pair = HostPair()
        let handles = try bond(&pair)
        let value = handles.characteristics[0]
        for _ in 0..<2 {
            try pair.disconnect()
            pair.log = [[], []]
            pair.received = [[], []]
            try pair.reconnect()
            #expect(isTold(pair.log, value, 1))
            #expect(pair.host(0) { $0.updateValue(([7] as [UInt8]).span.bytes, of: value, at: $1) })
            pair.settle()
            #expect(pair.received[1] == [[7]])
        }
        // What it takes back is taken back for good.
        try configure(&pair, handles, 0)
        pair.log = [[], []]
        try pair.reconnect()
        #expect(!isTold(pair.log, value, 1))
    }

    /// They are in what is stored, also of a connection that is still there when the process ends.
    @Test func subscriptionsOutliveTheHost() throws {
        var pair = HostPair()
        let handles = try bond(&pair)
        let known = pair.host(0) { host, _ in host.knownPeers }
        #expect(known.clients.map(\.configurations.count) == [2])
        try pair.disconnect()
        pair.host(0) { host, _ in
            host.setKnownPeers(KnownPeers())
            host.setKnownPeers(known)
        }
        pair.log = [[], []]
        try pair.reconnect()
        #expect(isTold(pair.log, handles.characteristics[0], 1))
    }

    /// Whoever has the address but not the key gets none of them, and values are not for it.
    @Test func whoIsNotEncryptedHasNoSubscriptions() throws {
        var pair = HostPair()
        let handles = try bond(&pair)
        let value = handles.characteristics[0]
        try pair.disconnect()
        pair.log = [[], []]
        pair.received = [[], []]
        // The central has forgotten its key, as an impostor has none.
        pair.host(1) { host, _ in host.setBonds([]) }
        try pair.reconnect()
        #expect(!isTold(pair.log, value, 1))
        _ = pair.host(0) { $0.updateValue(([7] as [UInt8]).span.bytes, of: value, at: $1) }
        pair.settle()
        #expect(pair.received[1].isEmpty)
    }

    @Test(arguments: [false, true])
    func subscriptionsEndWithTheBondAndWithTheServices(isForgotten: Bool) throws {
        var pair = HostPair()
        let handles = try bond(&pair)
        try pair.disconnect()
        pair.log = [[], []]
        if isForgotten {
            pair.host(0) { host, _ in
                host.setBonds([])
                #expect(host.knownPeers == KnownPeers())
            }
            pair.host(1) { host, _ in host.setBonds([]) }
        } else {
            let other = ServiceSpecification(.init(short: 0x180F), characteristics: [])
            _ = pair.host(0) { $0.addService(other, at: $1) }
        }
        try pair.reconnect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        #expect(!isTold(pair.log, handles.characteristics[0], 1))
    }
}
