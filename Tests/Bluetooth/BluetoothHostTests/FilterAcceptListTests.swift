import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host, .recovery)) struct FilterAcceptListTests {
    private static let peripheral = Address.staticRandom(0xF1F1_F1F1_F1F1)
    private static func away(_ number: UInt64) -> Address { .staticRandom(0xC0_FFEE + number) }

    private func start(_ options: VirtualControllers.Options = .init(), isAdvertising: Bool = true) -> HostPair {
        var pair = HostPair(options)
        pair.start()
        if isAdvertising { advertise(&pair) }
        return pair
    }

    private func advertise(_ pair: inout HostPair) {
        let payload = AdvertisingPayload(data: [2, 1, 6])
        #expect(pair.host(0) { $0.advertise(payload, at: $1) })
        pair.settle()
    }

    private func failures(_ pair: borrowing HostPair) -> [Address] {
        pair.log[1].compactMap { if case .connectionFailed(let peer, _) = $0 { peer } else { nil } }
    }

    /// Nobody has a turn: whoever comes first is connected to at once.
    @Test(arguments: [false, true])
    func severalAreAwaitedAtOnce(isExtended: Bool) {
        var pair = start(.init(isExtended: isExtended))
        for peer in [Self.away(1), Self.away(2), Self.peripheral] {
            #expect(pair.host(1) { $0.connect(to: peer, at: $1) })
            #expect(!pair.host(1) { $0.connect(to: peer, at: $1) })
        }
        pair.settle()
        #expect(pair.peers(1).count == 1)
        // The others are awaited still, and the list has shown that it works: no turns.
        #expect(Set(pair.controllers.sides[1].list) == Set([Self.away(1), Self.away(2)].map { [1] + $0.bytes }))
        #expect(pair.host(1) { host, _ in host.initiator.deadline } == nil)
        #expect(pair.controllers.faults.isEmpty)
        for number in [1, 2] as [UInt64] { pair.host(1) { $0.cancelConnection(to: Self.away(number), at: $1) } }
        pair.settle()
        #expect(Set(failures(pair)) == [Self.away(1), Self.away(2)])
        #expect(pair.host(1) { host, _ in host.initiator.current.isEmpty && host.initiator.waiting.isEmpty })
    }

    /// One is waited for by its address, for which no list is needed.
    @Test func oneNeedsNoList() {
        var pair = start()
        #expect(pair.host(1) { $0.connect(to: Self.peripheral, at: $1) })
        pair.settle()
        #expect(pair.peers(1).count == 1)
        #expect(!pair.controllers.sides[1].commands.contains(0x2010))
    }

    @Test func golden() {
        var pair = start(isAdvertising: false)
        for number in [1, 2] as [UInt64] { #expect(pair.host(1) { $0.connect(to: Self.away(number), at: $1) }) }
        pair.settle()
        // Bumble 0.0.236 makes the same bytes.
        for golden in [
            "102000", "11200701efffc00000c0", "11200701f0ffc00000c0",
            "0d2019600060000100000000000000010c0018000000f40100000000",
        ] { #expect(pair.controllers.sides[1].packets.contains(hex(golden)), "\(golden)") }
    }

    /// The list holds two; four are wanted, and all have their time.
    @Test func moreThanTheListHoldsHaveTurns() {
        var pair = start(.init(listSize: 2))
        for peer in [Self.away(1), Self.away(2), Self.away(3), Self.peripheral] {
            #expect(pair.host(1) { $0.connect(to: peer, at: $1) })
        }
        pair.settle()
        #expect(pair.controllers.sides[1].list.count == 2)
        pair.advance(seconds: 30)
        #expect(pair.peers(1).count == 1)
        #expect(pair.controllers.faults.isEmpty)
    }

    /// A controller that does not go by its list reaches everyone too, in turn.
    @Test func aListThatDoesNothingIsDoneWithout() {
        var pair = start(.init(ignoresList: true))
        for peer in [Self.away(1), Self.peripheral] { #expect(pair.host(1) { $0.connect(to: peer, at: $1) }) }
        pair.settle()
        #expect(pair.peers(1).isEmpty)
        pair.advance(seconds: 20)
        #expect(pair.peers(1).count == 1)
    }

    /// The controller says that its list holds more than it does.
    @Test func aRefusedListIsDoneWithout() {
        var pair = start()
        pair.controllers.sides[1].options.listSize = 1
        for peer in [Self.away(1), Self.away(2), Self.peripheral] {
            #expect(pair.host(1) { $0.connect(to: peer, at: $1) })
        }
        pair.settle()
        pair.advance(seconds: 20)
        #expect(pair.peers(1).count == 1)
        #expect(pair.log[1].contains { if case .diagnostic(let text) = $0 { text.contains("list") } else { false } })
    }

    /// Whoever is wanted again before the cancelled attempt has ended is not told that it failed.
    @Test func wantedAgainInTime() {
        var pair = start(isAdvertising: false)
        for number in [1, 2] as [UInt64] { #expect(pair.host(1) { $0.connect(to: Self.away(number), at: $1) }) }
        pair.settle()
        pair.host(1) { $0.cancelConnection(to: Self.away(1), at: $1) }
        #expect(pair.host(1) { $0.connect(to: Self.away(1), at: $1) })
        pair.settle()
        #expect(failures(pair).isEmpty)
        #expect(pair.controllers.sides[1].list.count == 2)
    }

    // MARK: Scanning

    private func heard(_ pair: borrowing HostPair) -> Int {
        pair.log[1].filter { if case .advertisementReceived = $0 { true } else { false } }.count
    }

    @Test(arguments: [false, true], [0, 8])
    func onlySomeAreHeard(isExtended: Bool, listSize: Int) {
        var pair = start(.init(isExtended: isExtended, listSize: listSize), isAdvertising: false)
        pair.host(1) { $0.scan(true, peers: [Self.away(1)], at: $1) }
        pair.settle()
        #expect(pair.controllers.sides[1].scansByList == (listSize > 0))
        advertise(&pair)
        #expect(heard(pair) == 0)
        pair.host(1) { $0.scan(true, peers: [Self.away(1), Self.peripheral], at: $1) }
        pair.settle()
        #expect(heard(pair) > 0)
        #expect(pair.controllers.faults.isEmpty)
    }

    /// The list serves one of the two at a time.
    @Test(arguments: [false, true])
    func scanningAndConnectingShareTheList(scansFirst: Bool) {
        var pair = start(isAdvertising: false)
        func scan(_ pair: inout HostPair) {
            pair.host(1) { $0.scan(true, peers: [Self.peripheral], at: $1) }
            pair.settle()
        }
        if scansFirst { scan(&pair) }
        for peer in [Self.away(1), Self.peripheral] { #expect(pair.host(1) { $0.connect(to: peer, at: $1) }) }
        pair.settle()
        if !scansFirst { scan(&pair) }
        #expect(pair.controllers.sides[1].scansByList == scansFirst)
        advertise(&pair)
        pair.advance(seconds: 10)
        #expect(pair.peers(1).count == 1)
        #expect(heard(pair) > 0)
        #expect(pair.controllers.faults.isEmpty)
    }
}
