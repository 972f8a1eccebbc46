import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Controllers that do less than they say, and buses that bring things out of order.
@Suite(.tags(.host)) struct ControllerTests {
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)

    /// LE Set Data Length, which the controller says it knows, is never answered: the connection lives, and the next
    /// command is sent.
    @Test func aCommandThatImprovesSomethingCostsOnlyItself() throws {
        var pair = HostPair()
        pair.controllers.sides[1].options.deafTo = [0x2022]
        _ = try pair.connect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.readRSSI(id, at: $1) })
        pair.settle()
        #expect(!pair.log[1].contains { if case .rssi = $0 { true } else { false } })
        pair.advance(seconds: 5)
        #expect(pair.log[1].contains { if case .rssi(id, -50) = $0 { true } else { false } })
        #expect(pair.peers(1) == [id])
        #expect(pair.host(1) { host, _ in host.state } == .ready)
        #expect(
            pair.log[1].contains {
                if case .diagnostic(let why) = $0 { why.contains("it is done without") } else { false }
            })
        // And it is not tried on the next one.
        try pair.reconnect()
        #expect(pair.controllers.sides[1].commands.filter { $0 == 0x2022 }.count == 1)
    }

    /// One that matters and is not answered has the controller reset, as before.
    @Test func aCommandThatMattersHasTheControllerReset() throws {
        var pair = HostPair()
        _ = try pair.connect()
        pair.controllers.sides[1].options.deafTo = [0x2019]
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        pair.advance(seconds: 5)
        #expect(pair.peers(1).isEmpty)
        #expect(pair.host(1) { host, _ in host.state } == .ready)
    }

    /// Command credits (Vol 4, Part E, 4.4): none, and then one by an event that answers no command.
    @Test func withoutACreditNoCommandIsSent() throws {
        var host = LEHost(HostConfiguration(address: Attack.own))
        var packet: [UInt8] = []
        host.start(at: 0)
        var isSent = host.nextPacket(into: &packet, at: 0)
        #expect(isSent)
        // Reset is done, and there is no room for another.
        host.receive(([4, 0x0E, 4, 0, 0x03, 0x0C, 0] as [UInt8]).span.bytes, at: 0)
        isSent = host.nextPacket(into: &packet, at: 0)
        #expect(!isSent)
        host.receive(([4, 0x0E, 3, 1, 0, 0] as [UInt8]).span.bytes, at: 0)
        isSent = host.nextPacket(into: &packet, at: 0)
        #expect(isSent)
    }

    /// On USB data and events come by different ways.
    @Test func dataAheadOfItsConnectionIsNotLost() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        let read = ATTPDU.make(ATTOpcode.readRequest, 3)
        let early: [UInt8] = [2, 0x40, 0x20, 7, 0, 3, 0, 4, 0] + read
        attack.controllers.toHost[0].append(early)
        attack.settle()
        try attack.connect()
        #expect(attack.frames(on: 4) == [[0x0B] + Array("Ferry".utf8)])
        // What is of a connection that has ended is not of the next.
        attack.disconnect()
        attack.controllers.toHost[0].append(early)
        attack.settle()
        attack.advance(seconds: 2)
        try attack.connect()
        #expect(attack.frames(on: 4).isEmpty)
        // And nobody can have much of it kept.
        for _ in 0..<10_000 { attack.controllers.toHost[0].append([2, 0x41, 0x20, 5, 0, 1, 0, 4, 0, 1]) }
        attack.settle()
        let kept = attack.host { host, now in host.earlyData.take(0x41, at: now) }
        #expect(kept.count <= EarlyData.byteLimit / 10)
    }

    @Test func reportsInPiecesAreJoined() throws {
        func report(_ type: UInt16, _ data: [UInt8], set: UInt8 = 1) -> [UInt8] {
            var report: [UInt8] = [0x0D, 1, UInt8(type & 0xFF), UInt8(type >> 8), 1]
            report += Self.stranger.bytes + [1, 1, set, 127, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(data.count)] + data
            return [4, 0x3E, UInt8(report.count)] + report
        }
        var pair = HostPair(.init(isExtended: true))
        pair.start()
        pair.host(1) { $0.scan(true, at: $1) }
        pair.settle()
        pair.log[1] = []
        let piece = [UInt8](repeating: 7, count: 200)
        pair.controllers.toHost[1] += [
            report(0x20, piece), report(0x20, [1], set: 2), report(0x20, piece), report(0x00, [9, 9]),
            report(0x40, [2], set: 2), report(0x01, [3], set: 3),
        ]
        pair.settle()
        let heard = pair.log[1].compactMap {
            if case .advertisementReceived(let report) = $0 { report.data } else { nil }
        }
        #expect(heard == [piece + piece + [9, 9], [1, 2], [3]])
        // A train that never ends is bounded.
        for _ in 0..<100 { pair.controllers.toHost[1].append(report(0x20, piece)) }
        pair.controllers.toHost[1].append(report(0, piece))
        pair.settle()
        guard case .advertisementReceived(let last)? = pair.log[1].last else {
            Issue.record("nothing was reported")
            return
        }
        #expect(last.data.count == ReportFragments.dataLimit)
    }

    /// A peripheral on a battery: its wish can be read, and is asked for once, if the central has chosen otherwise.
    @Test(arguments: [24, 400] as [UInt16])
    func aPeripheralAsksForWhatItPrefers(interval: UInt16) throws {
        let preferred = PreferredParameters(interval: 320...480, latency: 4, supervisionTimeout: 3_000)
        let attack = Attack(configure: { $0.preferredParameters = preferred })
        (attack.interval, attack.latency) = (interval, interval == 24 ? 0 : 4)
        try attack.start(as: Self.stranger)
        try attack.connect()
        attack.send([0x08, 1, 0, 0xFF, 0xFF, 0x04, 0x2A], on: 4)
        #expect(attack.frames(on: 4).first?.suffix(8) == [0x40, 1, 0xE0, 1, 4, 0, 0xB8, 0x0B])
        attack.advance(seconds: 4.9)
        #expect(attack.frames(on: 5).isEmpty)
        attack.advance(seconds: 60)
        let request: [UInt8] = [0x12, 1, 8, 0, 0x40, 1, 0xE0, 1, 4, 0, 0xB8, 0x0B]
        #expect(attack.frames(on: 5) == (interval == 24 ? [request] : []))
    }

    /// Values that do not fit each other are told to nobody.
    @Test func aWishThatCannotBeIsNotTold() throws {
        let impossible = PreferredParameters(interval: 3200...3200, latency: 499, supervisionTimeout: 10)
        let attack = Attack(configure: { $0.preferredParameters = impossible })
        try attack.start(as: Self.stranger)
        try attack.connect()
        attack.send([0x08, 1, 0, 0xFF, 0xFF, 0x04, 0x2A], on: 4)
        #expect(attack.frames(on: 4) == [[0x01, 0x08, 1, 0, 0x0A]])
        attack.advance(seconds: 60)
        #expect(attack.frames(on: 5).isEmpty)
    }

    /// A beacon is heard and cannot be connected to; with a scan response it answers scanners.
    @Test(arguments: [false, true], [false, true])
    func aBeaconIsNotConnectable(isExtended: Bool, hasResponse: Bool) throws {
        var pair = HostPair(.init(isExtended: isExtended))
        pair.start()
        var payload = AdvertisingPayload(data: [2, 1, 4], scanResponse: hasResponse ? [2, 0x0A, 4] : [])
        payload.isConnectable = false
        payload.interval = 1600...1600
        #expect(pair.host(0) { $0.advertise(payload, at: $1) })
        pair.settle()
        pair.host(1) { $0.scan(true, at: $1) }
        pair.settle()
        let heard = pair.log[1].compactMap {
            if case .advertisementReceived(let report) = $0 { report } else { nil }
        }
        #expect(heard.map(\.data) == (hasResponse ? [[2, 1, 4], [2, 0x0A, 4]] : [[2, 1, 4]]))
        #expect(heard.allSatisfy { !$0.isConnectable })
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xF1F1_F1F1_F1F1), at: $1) })
        pair.settle()
        #expect(pair.peers(1).isEmpty)
        let set = pair.controllers.sides[0].packets.first { $0[0] == (isExtended ? 0x36 : 0x06) && $0[1] == 0x20 }
        let type = try #require(set)[isExtended ? 4 : 7]
        #expect(type == (isExtended ? (hasResponse ? 0x12 : 0x10) : (hasResponse ? 2 : 3)))
    }

    /// The virtual controllers themselves.
    @Test func disconnectWithAnotherHandleEndsNothing() throws {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.connect()
        attack.command(0x0406, [0x41, 0, 0x13])
        #expect(attack.events.last == [0x0F, 4, 2, 1, 0x06, 0x04])
        #expect(attack.isConnected)
        attack.disconnect()
        #expect(!attack.isConnected)
    }

    @Test(arguments: [false, true])
    func aConnectionHasTheParametersThatWereAsked(isExtended: Bool) throws {
        var configuration = HostConfiguration(address: Attack.own)
        configuration.connectionInterval = 12...12
        configuration.latency = 3
        configuration.supervisionTimeout = 400
        var host = LEHost(configuration)
        var controllers = VirtualControllers(.init(isExtended: isExtended))
        host.start(at: 0)
        func settle() {
            var isMoving = true
            while isMoving {
                var packet: [UInt8] = []
                isMoving = host.nextPacket(into: &packet, at: 0)
                if isMoving { controllers.receive(packet, from: 0) }
                for packet in controllers.toHost[0] { host.receive(packet.span.bytes, at: 0) }
                controllers.toHost[0] = []
            }
        }
        settle()
        controllers.sides[1].random = Self.stranger.bytes
        let isConnecting = host.connect(to: Self.stranger, at: 0)
        #expect(isConnecting)
        settle()
        controllers.sides[1].isAdvertising = true
        controllers.meet()
        settle()
        let connection = try #require(host.connections.first)
        #expect(connection.parameters == ConnectionParameters(interval: 12, latency: 3, supervisionTimeout: 400))
    }
}
