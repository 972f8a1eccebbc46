import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Hosts whose own addresses change (Core Specification 5.4, Vol 3, Part C, 10.7), and controllers that resolve.
@Suite(.tags(.host)) struct OwnPrivacyTests {
    private static let identities = [Address.staticRandom(0xF1F1_F1F1_F1F1), .staticRandom(0xF0F0_F0F0_F0F0)]
    private static let keys = [[UInt8](repeating: 0x51, count: 16), [UInt8](repeating: 0x52, count: 16)]
    private static let functions = PairingFunctions(cryptography: ToyCryptography(seed: 0))

    private func makePair(
        isExtended: Bool = false, listSize: Int = 0, privateSides: Set<Int> = [0, 1],
        isAuthenticated: Bool = true,
        configure: (Int, inout HostConfiguration) -> Void = { _, _ in }
    ) -> HostPair {
        var options = VirtualControllers.Options(isExtended: isExtended)
        options.resolvingListSize = listSize
        options.hash = { PairingFunctions(cryptography: ToyCryptography(seed: 0)).ah($0, $1) }
        return HostPair(options) { side, configuration in
            if isAuthenticated { configuration.pairing?.capability = .displayYesNo }
            if privateSides.contains(side) { configuration.privacy = PrivacyOptions(resolvingKey: Self.keys[side]) }
            configure(side, &configuration)
        }
    }

    private func bond(_ pair: inout HostPair) throws {
        _ = try pair.connect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        for side in 0...1 {
            for case .pairingQuestion(let question, _, .compare) in pair.log[side] {
                pair.host(side) { $0.answerPairing(question, .confirm(true), at: $1) }
            }
        }
        pair.settle()
        for side in 0...1 { #expect(pair.host(side) { host, _ in host.bonds.count } == 1) }
    }

    /// What is on the air of a side.
    private func address(_ pair: borrowing HostPair, _ side: Int) -> Address {
        let own = pair.controllers.sides[side]
        let bytes = own.options.isExtended && !own.setAddress.isEmpty ? own.setAddress : own.random
        return Address(bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }, .random)
    }

    @Test(arguments: [false, true])
    func theAddressChangesWithTime(isExtended: Bool) throws {
        var pair = makePair(isExtended: isExtended)
        pair.start()
        #expect(pair.host(0) { $0.advertise(AdvertisingPayload(data: [2, 1, 6]), at: $1) })
        pair.host(1) { $0.scan(true, at: $1) }
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xD0D0_D0D0_D0D0), at: $1) })
        pair.settle()
        var seen: [Set<Address>] = [[], []]
        for _ in 0..<5 {
            for side in 0...1 {
                let address = address(pair, side)
                #expect(Self.functions.resolves(address, by: Self.keys[side]))
                #expect(!Self.functions.resolves(address, by: Self.keys[1 - side]))
                #expect(address == pair.host(side) { host, _ in host.address })
                #expect(seen[side].insert(address).inserted)
            }
            pair.advance(seconds: 898)
            for side in 0...1 { #expect(seen[side].contains(address(pair, side))) }
            pair.advance(seconds: 2)
            // Whatever was on the air still is.
            #expect(pair.controllers.sides[0].isAdvertising)
            #expect(pair.controllers.sides[1].isScanning)
            #expect(pair.controllers.sides[1].initiating != nil)
        }
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
        #expect(pair.log[0].count { if case .advertisingStarted = $0 { true } else { false } } == 1)
        #expect(!pair.log[1].contains { if case .connectionFailed = $0 { true } else { false } })
    }

    /// Until a host has just told its controller another address (LE Set Random Address).
    private func settleUntilAddressIsSet(_ pair: inout HostPair, _ side: Int) throws {
        var packet: [UInt8] = []
        while packet.prefix(3) != [0x01, 0x05, 0x20] {
            packet = []
            try #require(pair.host(side) { $0.nextPacket(into: &packet, at: $1) }, "it never asks for another address")
            pair.controllers.receive(packet, from: side)
            let answers = pair.controllers.toHost[side]
            pair.controllers.toHost[side] = []
            for answer in answers { pair.host(side) { $0.receive(answer.span.bytes, at: $1) } }
        }
    }

    /// A central came just before advertising was stopped for the change, and the controller tells it just after: pairing goes by
    /// the address that the central knows. What comes once the new address is on the air is of that.
    @Test(arguments: [false, true])
    func aConnectionMadeAtTheMomentOfTheChangeIsOfTheOldAddress(isAdvertisingAgain: Bool) throws {
        var pair = makePair(privateSides: [0])
        pair.start()
        #expect(pair.host(0) { $0.advertise(AdvertisingPayload(data: [2, 1, 6]), at: $1) })
        pair.settle()
        let old = address(pair, 0)
        pair.now += 900_000_000_000
        pair.host(0) { $0.wake(at: $1) }
        try settleUntilAddressIsSet(&pair, 0)
        if isAdvertisingAgain { pair.settle() }
        // LE Connection Complete: handle 0x0040, peripheral (Core Specification 5.4, Vol 4, Part E, 7.7.65.1).
        let event: [UInt8] =
            [0x04, 0x3E, 19, 0x01, 0x00, 0x40, 0x00, 0x01, 0x01] + Self.identities[1].bytes
            + [24, 0, 0, 0, 0xF4, 0x01, 0x00]
        pair.host(0) { $0.receive(event.span.bytes, at: $1) }
        let local = pair.host(0) { host, _ in host.connections.first?.local }
        let new = pair.host(0) { host, _ in host.address }
        #expect(new != old)
        #expect(local == (isAdvertisingAgain ? new : old))
    }

    /// RootCanal's controller says that an attempt was cancelled, and brings its connection a moment later: it is the one that
    /// was wanted, and no other attempt follows.
    @Test(arguments: [false, true])
    func aConnectionOfACancelledAttemptIsTaken(isSought: Bool) throws {
        var pair = makePair(privateSides: [1])
        let key = [UInt8](repeating: 0x53, count: 16)
        let identity = Address.staticRandom(0xD0D0_D0D0_D0D0)
        let other = Address.staticRandom(0xD1D1_D1D1_D1D1)
        let peer = isSought ? Address.resolvable(key, 7) : identity
        if isSought {
            pair.host(1) { host, _ in
                host.setBonds([.stored(with: .resolvable(key, 1), identity: identity, resolvingKey: key)])
            }
        }
        pair.start()
        #expect(pair.host(1) { $0.connect(to: identity, at: $1) })
        pair.settle()
        pair.now += 900_000_000_000
        pair.host(1) { $0.wake(at: $1) }
        try settleUntilAddressIsSet(&pair, 1)
        // LE Connection Complete: handle 0x0040, central (Core Specification 5.4, Vol 4, Part E, 7.7.65.1).
        let event: [UInt8] =
            [0x04, 0x3E, 19, 0x01, 0x00, 0x40, 0x00, 0x00, 0x01] + peer.bytes + [24, 0, 0, 0, 0xF4, 0x01, 0x00]
        pair.host(1) { $0.receive(event.span.bytes, at: $1) }
        // Whoever else is wanted still is.
        #expect(pair.host(1) { $0.connect(to: other, at: $1) })
        pair.settle()
        #expect(pair.peers(1).count == 1)
        #expect(!pair.controllers.sides[1].isScanning)
        pair.host(1) { host, _ in
            #expect(host.initiator.current == [other])
            #expect(host.initiator.waiting.isEmpty && host.initiator.sought.isEmpty && host.initiator.found.isEmpty)
        }
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }

    @Test func rotationIsWithinBounds() {
        for (wanted, expected) in [(0, 1), (Int64.max, 3_600), (60_000_000_000, 60)] as [(Int64, Int64)] {
            var pair = makePair { _, configuration in configuration.privacy?.rotation = wanted }
            pair.start()
            let deadline = pair.host(0) { host, now in (host.deadline ?? 0) - now }
            #expect(deadline == expected * 1_000_000_000)
        }
    }

    /// Without a usable key or cryptography the address stays.
    @Test func withoutAKeyTheAddressStays() {
        var configuration = HostConfiguration(address: Self.identities[0])
        configuration.privacy = PrivacyOptions(resolvingKey: Self.keys[0])
        let withoutCryptography = LEHost(configuration)
        #expect(withoutCryptography.address == Self.identities[0])
        configuration.cryptography = ToyCryptography(seed: 1)
        configuration.privacy?.resolvingKey = [1, 2, 3]
        let withoutKey = LEHost(configuration)
        #expect(withoutKey.address == Self.identities[0])
    }

    @Test(arguments: [false, true], [Set([0]), [1], [0, 1]])
    func whoeverBondedKnowsTheHostAgain(isExtended: Bool, privateSides: Set<Int>) throws {
        var pair = makePair(isExtended: isExtended, privateSides: privateSides)
        try bond(&pair)
        for side in 0...1 {
            let bond = try #require(pair.host(1 - side) { host, _ in host.bonds.first })
            #expect(bond.identity == (privateSides.contains(side) ? Self.identities[side] : nil))
            #expect(bond.identityResolvingKey == (privateSides.contains(side) ? Self.keys[side] : nil))
        }
        for _ in 0..<3 {
            try pair.disconnect()
            pair.advance(seconds: 1_000)
            pair.log = [[], []]
            try pair.reconnect()
            for side in 0...1 {
                let id = try pair.connection(side)
                #expect(pair.host(side) { host, _ in host.identityAddress(of: id) } == Self.identities[1 - side])
                #expect(pair.host(side) { host, _ in host.security(of: id)?.isBonded } == true)
                #expect(pair.log[side].contains { if case .secured = $0 { true } else { false } })
            }
        }
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }

    /// Without a number nobody has shown that the identity is the peer's: it goes by the address of the pairing, is known again
    /// under all others, and the controller is not told that the identity is its.
    @Test func aBondWithoutANumberGoesByTheAddressOfThePairing() throws {
        var pair = makePair(listSize: 4, isAuthenticated: false)
        try bond(&pair)
        let names = (0...1).map { side in pair.host(1 - side) { host, _ in host.bonds[0].peer } }
        for _ in 0..<3 {
            try pair.disconnect()
            pair.advance(seconds: 1_000)
            for side in 0...1 { #expect(pair.controllers.sides[side].resolvingList.isEmpty) }
            #expect(pair.host(1) { $0.connect(to: names[0], at: $1) })
            pair.settle()
            for side in 0...1 {
                let id = try pair.connection(side)
                #expect(pair.host(side) { host, _ in host.peer(of: id) } != names[1 - side])
                #expect(pair.host(side) { host, _ in host.identityAddress(of: id) } == names[1 - side])
                #expect(pair.host(side) { host, _ in host.security(of: id)?.isBonded } == true)
            }
        }
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }

    /// The controller connects to a peer whose address has changed, once it has been seen to resolve.
    @Test(arguments: [false, true])
    func aControllerThatResolvesIsUsed(isExtended: Bool) throws {
        var pair = makePair(isExtended: isExtended, listSize: 4)
        try bond(&pair)
        for number in 0..<3 {
            try pair.disconnect()
            pair.advance(seconds: 1_000)
            #expect(pair.controllers.sides[1].resolvingList.map(\.key) == [Self.keys[0]])
            #expect(pair.controllers.sides[1].isResolving)
            pair.controllers.sides[1].commands = []
            try pair.reconnect()
            let hasScanned = pair.controllers.sides[1].commands.contains(isExtended ? 0x2042 : 0x200C)
            #expect(hasScanned == (number == 0))
            let id = try pair.connection(1)
            #expect(pair.host(1) { host, _ in host.security(of: id)?.isBonded } == true)
            // Pairing goes by the address on the air.
            #expect(pair.host(1) { host, _ in host.peer(of: id) } == address(pair, 0))
        }
        // One that is not there yet is awaited without a scan, under any of its names.
        try pair.disconnect()
        #expect(pair.host(0) { $0.advertise(nil, at: $1) })
        pair.settle()
        let old = address(pair, 0)
        #expect(pair.host(1) { $0.connect(to: old, at: $1) })
        #expect(!pair.host(1) { $0.connect(to: Self.identities[0], at: $1) })
        pair.settle()
        pair.advance(seconds: 1_000)
        #expect(!pair.controllers.sides[1].isScanning)
        #expect(pair.host(0) { $0.advertise(AdvertisingPayload(data: []), at: $1) })
        pair.settle()
        #expect(pair.peers(1).count == 1)
        _ = pair.host(1) { host, _ in host.forget(Self.identities[0]) }
        pair.settle()
        #expect(pair.controllers.sides[1].resolvingList.isEmpty)
        #expect(!pair.controllers.sides[1].isResolving)
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }

    /// The name that the application used is the one that it is told of.
    @Test func anAttemptThatIsGivenUpIsToldByItsName() throws {
        var pair = makePair(listSize: 4)
        try bond(&pair)
        try pair.disconnect()
        try pair.reconnect()
        try pair.disconnect()
        #expect(pair.host(0) { $0.advertise(nil, at: $1) })
        pair.settle()
        let name = address(pair, 0)
        #expect(pair.host(1) { $0.connect(to: name, at: $1) })
        pair.settle()
        pair.host(1) { $0.cancelConnection(to: name, at: $1) }
        pair.settle()
        #expect(
            pair.log[1].contains { if case .connectionFailed(let peer, _) = $0 { peer == name } else { false } })
        pair.host(1) { host, _ in #expect(host.initiator.found.isEmpty && host.initiator.waiting.isEmpty) }
    }

    /// A controller that lists the commands and fails at them, or takes the list and does not resolve, is done without.
    @Test(arguments: [0x2027, 0x2029, 0x202D, 0] as [UInt16])
    func aControllerThatDoesNotResolveIsDoneWithout(deafTo: UInt16) throws {
        var pair = makePair(listSize: 4)
        for side in 0...1 {
            if deafTo == 0 {
                pair.controllers.sides[side].options.hash = nil
            } else {
                pair.controllers.sides[side].options.deafTo = [deafTo]
            }
        }
        try bond(&pair)
        pair.advance(seconds: 60)
        for _ in 0..<2 {
            try pair.disconnect()
            pair.advance(seconds: 1_000)
            try pair.reconnect()
            let id = try pair.connection(1)
            #expect(pair.host(1) { host, _ in host.security(of: id)?.isBonded } == true)
        }
        let isTold = pair.log[1].contains {
            if case .diagnostic(let text) = $0 { text.contains("resolving list cannot be used") } else { false }
        }
        #expect(isTold == (deafTo != 0))
    }

    /// The list has room for some: the others are heard first.
    @Test func aListThatIsTooShortHoldsTheLatest() throws {
        var pair = makePair(listSize: 2)
        pair.start()
        let bonds = (UInt8(1)...5).map {
            Bond.stored(
                with: .staticRandom(UInt64($0)), identity: .staticRandom(UInt64($0)),
                resolvingKey: [UInt8](repeating: $0, count: 16))
        }
        pair.host(1) { host, _ in host.setBonds(bonds) }
        pair.settle()
        #expect(pair.controllers.sides[1].resolvingList.map { $0.key[0] } == [4, 5])
        #expect(pair.controllers.faults.isEmpty)
    }

    /// An attempt that the controller has lost does not keep everything from the air.
    @Test func aControllerThatDoesNotFallSilentIsNotWaitedForForever() throws {
        var pair = makePair(privateSides: [1])
        pair.start()
        #expect(pair.host(1) { $0.advertise(AdvertisingPayload(data: []), at: $1) })
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xD0D0_D0D0_D0D0), at: $1) })
        pair.settle()
        pair.controllers.sides[1].initiating = nil
        pair.advance(seconds: 901)
        #expect(!pair.controllers.sides[1].isAdvertising)
        pair.advance(seconds: 6)
        #expect(pair.controllers.sides[1].isAdvertising)
        #expect(
            pair.log[1].contains {
                if case .diagnostic(let text) = $0 { text.contains("fall silent") } else { false }
            })
    }

    /// A thousand reconnects of two hosts whose addresses both change each time: one identity each, and nothing grows.
    @Test(arguments: [0, 4])
    func aThousandReconnectsAreOfOnePeer(listSize: Int) throws {
        var pair = makePair(listSize: listSize) { _, configuration in configuration.privacy?.rotation = 1_000_000_000 }
        try bond(&pair)
        var addresses: Set<Address> = []
        for _ in 0..<1_000 {
            try pair.disconnect()
            pair.advance(seconds: 1.5)
            pair.log = [[], []]
            pair.controllers.frames = [[], []]
            for side in 0...1 {
                pair.controllers.sides[side].commands = []
                pair.controllers.sides[side].packets = []
            }
            try pair.reconnect()
            for side in 0...1 {
                let id = try pair.connection(side)
                #expect(pair.host(side) { host, _ in host.identityAddress(of: id) } == Self.identities[1 - side])
                #expect(pair.host(side) { host, _ in host.security(of: id)?.isBonded } == true)
            }
            addresses.insert(address(pair, 0))
        }
        // Of 22 random bits some repeat, though few.
        #expect(addresses.count > 990)
        for side in 0...1 {
            pair.host(side) { host, _ in
                #expect(host.bonds.count == 1)
                #expect(host.rememberedClients.count <= 1)
                // Under the address of the pairing, and under the identity.
                #expect(host.discoveries.entries.count <= 2)
                #expect(host.keyring.resolutions.lasting.count <= ResolutionCache.limit)
                #expect(host.initiator.found.isEmpty && host.initiator.sought.isEmpty)
                #expect(host.initiator.waiting.isEmpty && host.initiator.current.isEmpty)
                #expect(host.connections.count == 1)
                #expect(host.privacy.listed.count <= 1)
            }
        }
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }
}
