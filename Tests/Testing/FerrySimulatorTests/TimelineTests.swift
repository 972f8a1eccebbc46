import Ferry
import FerryBluetooth
import Foundation
import TestSupport
import Testing

@testable import FerrySimulator

private let first = LinkLayerConnection(rawValue: 0)
private let second = LinkLayerConnection(rawValue: 1)

/// On LE 1M, unencrypted: 8 us a byte and 10 bytes besides the payload, 150 us between packets.
private enum Air {
    static let empty = 80
    static let space = 150
    static func data(_ payload: Int) -> Int { 8 * (10 + payload) }
}

/// What happens on the air, with every microsecond worked out by hand.
@Suite("Timelines of the simulated radio", .tags(.simulator)) struct TimelineTests {
    /// A controller that takes no time of its own.
    private static func profile(
        packets: Int? = nil, length: Duration? = nil, buffers: Int = 8, atEventEnd: Bool = false,
        latency: Duration = .zero
    ) -> ControllerProfile {
        ControllerProfile(
            name: "test", source: "test", packetsPerEvent: packets, eventLength: length, controllerBuffers: buffers,
            reportsAtEventEnd: atEventEnd, hostLatency: latency)
    }

    private static func microseconds(_ time: Timestamp) -> Int { Int(time.nanoseconds / 1_000) }

    /// Runs until nothing is due before `end`, and tells each event with its time in microseconds.
    private static func run(_ radio: inout RadioSimulator, until end: Timestamp = .zero + .seconds(1_000)) -> [String] {
        var lines: [String] = []
        var now = Timestamp.zero
        while let next = radio.deadline, next < end {
            now = max(now, next)
            while let event = radio.poll(at: now) {
                switch event {
                case .accepted(let connection, let sender):
                    lines.append("\(microseconds(now)) accepted \(connection.rawValue) \(sender)")
                case .delivered(let connection, let sender):
                    lines.append("\(microseconds(now)) delivered \(connection.rawValue) \(sender)")
                case .lost(let connection): lines.append("\(microseconds(now)) lost \(connection.rawValue)")
                }
            }
        }
        return lines
    }

    private static func idleRadio(
        _ parameters: LinkParameters = link(interval: 30), _ profile: ControllerProfile = profile()
    ) throws -> RadioSimulator {
        var radio = try RadioSimulator(parameters, profile: profile)
        radio.open(first, at: .zero)
        _ = run(&radio)
        return radio
    }

    // MARK: One unit

    /// Queued so many microseconds before the event at 60 ms, a unit of 24 bytes goes with it if the host has had its time.
    @Test(
        "A unit is ready for the air after the host's latency, on either side",
        arguments: LinkLayerRole.allCases, [500, 1_000, 2_000])
    func hostLatency(sender: LinkLayerRole, latency: Int) throws {
        // The peripheral speaks after the central's empty packet. What comes too late for the central's first packet goes with
        // the next exchange of the same event; the peripheral has no more to say, and waits for the next event.
        let speaks = 60_000 + (sender == .central ? 0 : Air.empty + Air.space)
        let delay = sender == .central ? 2 * (Air.empty + Air.space) : 30_000
        for (margin, late) in [(latency, 0), (latency - 1, delay)] {
            var radio = try Self.idleRadio(link(interval: 30), Self.profile(latency: .microseconds(latency)))
            radio.enqueue(
                .attribute(pduLength: 20), from: sender, on: first, at: .zero + .microseconds(speaks - margin))
            let lines = Self.run(&radio)
            #expect(lines.last == "\(speaks + late + Air.data(24)) delivered 0 \(sender)", "\(margin) us")
        }
    }

    @Test("The other end's turn comes a space after each packet") func exchange() throws {
        var radio = try Self.idleRadio()
        for sender in LinkLayerRole.allCases {
            radio.enqueue(.raw(27), from: sender, on: first, at: .zero + .milliseconds(50))
        }
        let central = 60_000 + Air.data(27)
        #expect(
            Self.run(&radio) == [
                "0 accepted 0 central", "0 accepted 0 peripheral", "\(central) delivered 0 central",
                "\(central + Air.space + Air.data(27)) delivered 0 peripheral",
            ])
        let statistics = try #require(radio.statistics(of: first))
        #expect(statistics.fromCentral.dataPackets == 1)
        #expect(statistics.fromCentral.payloadBytes == 27)
        #expect(statistics.fromPeripheral.retransmissions == 0)
        #expect(statistics.fromPeripheral.damagedPackets == 0)
    }

    @Test("A unit is cut into frames, and frames into packets") func fragments() throws {
        let units: [(LinkLayerUnit, payloads: [Int])] = [
            (.raw(30), [27, 3]), (.raw(27), [27]), (.raw(54), [27, 27]), (.attribute(pduLength: 23), [27]),
            (.attribute(pduLength: 24), [27, 1]),
            // 2 bytes of length, frames of 50 with 4 bytes of header each.
            (.sdu(length: 100, maximumPayloadSize: 50), [27, 27, 27, 27, 6]),
            (.sdu(length: 48, maximumPayloadSize: 50), [27, 27]),
        ]
        for (unit, payloads) in units {
            var radio = try Self.idleRadio()
            radio.enqueue(unit, from: .central, on: first, at: .zero + .milliseconds(50))
            let time = 60_000 + payloads.dropLast().reduce(0) { $0 + Air.data($1) + Air.empty + 2 * Air.space }
            #expect(
                Self.run(&radio).last == "\(time + Air.data(payloads.last ?? 0)) delivered 0 central", "\(payloads)")
            let statistics = try #require(radio.statistics(of: first)).fromCentral
            #expect(statistics.dataPackets == payloads.count)
            #expect(statistics.payloadBytes == payloads.reduce(0, +))
            #expect(statistics.units == 1)
        }
    }

    // MARK: Where an event ends

    @Test("An event lasts as long as a whole exchange still fits", arguments: [(1_352, 2), (1_351, 1), (2_028, 3)])
    func eventLength(microseconds: Int, exchanges: Int) throws {
        let profile = Self.profile(length: .microseconds(microseconds))
        // 27 bytes and an empty packet take 676 us with their spaces.
        let run = try measure(Traffic(sender: .peripheral, unit: .raw(27)), on: link(interval: 30), profile: profile)
        #expect(run.statistics.mostExchangesPerEvent == exchanges)
        #expect(run.units == 200 * exchanges)
    }

    @Test("The cap on packets is kept", arguments: [1, 4, 7]) func cap(packets: Int) throws {
        let profile = Self.profile(packets: packets)
        for sender in LinkLayerRole.allCases {
            let run = try measure(Traffic(sender: sender, unit: .raw(27)), on: link(interval: 30), profile: profile)
            #expect(run.statistics.mostExchangesPerEvent == packets)
            #expect(run.units == 200 * packets)
        }
    }

    /// Bit errors that no long packet survives and half of the empty ones do.
    private static func damaging(_ interval: Double) -> LinkParameters {
        link(interval: interval, dataLength: 251, attMTU: 247, loss: .bitErrorRate(0.01))
    }

    @Test("Two damaged packets in a row close the event, whoever sent them", arguments: LinkLayerRole.allCases)
    func damage(sender: LinkLayerRole) throws {
        var radio = try RadioSimulator(Self.damaging(50), profile: Self.profile(), seed: 5)
        radio.open(first, at: .zero)
        radio.enqueue(.raw(251), from: sender, on: first, at: .zero)
        _ = Self.run(&radio, until: .zero + .seconds(20))
        let statistics = try #require(radio.statistics(of: first))
        let sent = sender == .central ? statistics.fromCentral : statistics.fromPeripheral
        #expect(statistics.events == 400)
        #expect(statistics.mostExchangesPerEvent == 2)
        // The first that is damaged asks for another exchange, unless the peripheral is not asked again.
        #expect(sent.dataPackets <= 800)
        #expect(sent.dataPackets > (sender == .central ? 799 : 600))
        #expect(sent.damagedPackets >= sent.dataPackets)
    }

    @Test("The count of damaged packets begins anew with each event") func damagePerEvent() throws {
        var radio = try RadioSimulator(link(interval: 50, loss: .packetErrorRate(1)), profile: Self.profile())
        radio.open(first, at: .zero)
        _ = Self.run(&radio, until: .zero + .milliseconds(475))
        let statistics = try #require(radio.statistics(of: first))
        // Ten events: the central's, the peripheral's answer to nothing, and the central's again.
        #expect(statistics.events == 10)
        #expect(statistics.fromCentral.emptyPackets == 20)
        #expect(statistics.fromCentral.damagedPackets == 20)
        #expect(statistics.fromPeripheral.emptyPackets == 10)
        #expect(statistics.fromPeripheral.damagedPackets == 10)
        #expect(statistics.mostExchangesPerEvent == 2)
    }

    // MARK: Silence

    @Test("A connection is lost when either end has heard nothing", arguments: LinkLayerRole.allCases)
    func oneSidedSilence(sender: LinkLayerRole) throws {
        // Empty packets arrive, if not always; those with data never.
        var parameters = link(interval: 7.5, dataLength: 251, attMTU: 247, loss: .bitErrorRate(0.015))
        parameters.supervisionTimeout = .seconds(2)
        var radio = try RadioSimulator(parameters, profile: Self.profile(), seed: 9)
        radio.open(first, at: .zero)
        radio.enqueue(.raw(251), from: sender, on: first, at: .zero)
        // The first anchor point after more than 2 s.
        #expect(Self.run(&radio, until: .zero + .seconds(20)) == ["0 accepted 0 \(sender)", "2002500 lost 0"])
        #expect(radio.statistics(of: first) == nil)
        #expect(radio.deadline == nil)
    }

    @Test("The supervision timeout itself is not yet too long") func supervisionLimit() throws {
        var parameters = link(interval: 10, loss: .packetErrorRate(1))
        parameters.supervisionTimeout = .milliseconds(100)
        var radio = try RadioSimulator(parameters, profile: Self.profile())
        radio.open(first, at: .zero)
        #expect(Self.run(&radio) == ["110000 lost 0"])
    }

    @Test("Who comes back in time is not lost, and what was queued arrives") func outAndBack() throws {
        var parameters = link(interval: 10)
        parameters.supervisionTimeout = .milliseconds(100)
        var radio = try Self.idleRadio(parameters)
        radio.setInRange(false, on: first, at: .zero + .milliseconds(1_005))
        radio.enqueue(.raw(10), from: .central, on: first, at: .zero + .milliseconds(1_005))
        #expect(Self.run(&radio, until: .zero + .milliseconds(1_099)) == ["0 accepted 0 central"])
        radio.setInRange(true, on: first, at: .zero + .milliseconds(1_099))
        #expect(Self.run(&radio) == ["\(1_100_000 + Air.data(10)) delivered 0 central"])
        // All is well again, so nothing is due.
        #expect(radio.deadline == nil)
        #expect(radio.openConnections == [first])
    }

    @Test("Silence counts from what was heard last, not from before the sleep") func silenceAfterSleep() throws {
        var parameters = link(interval: 10)
        parameters.supervisionTimeout = .milliseconds(100)
        var radio = try Self.idleRadio(parameters)
        radio.setInRange(false, on: first, at: .zero + .milliseconds(60_005))
        #expect(Self.run(&radio) == ["60110000 lost 0"])
    }

    // MARK: Latency

    /// The peripheral listens in every fifth event, counted from the first, whatever was skipped meanwhile.
    @Test("A sleeping peripheral wakes at its own events", arguments: 0..<12) func latency(event: Int) throws {
        var parameters = link(interval: 50)
        parameters.peripheralLatency = 4
        var radio = try Self.idleRadio(parameters)
        radio.enqueue(.raw(20), from: .central, on: first, at: .zero + .milliseconds(5_000 + 50 * event + 10))
        let listening = (event / 5 + 1) * 5
        let delivered = 5_000_000 + 50_000 * listening + Air.data(20)
        #expect(Self.run(&radio) == ["0 accepted 0 central", "\(delivered) delivered 0 central"])
        // In the events before it the central spoke to nobody.
        let statistics = try #require(radio.statistics(of: first))
        #expect(statistics.fromCentral.retransmissions == listening - event - 1)
    }

    @Test("A peripheral with data answers in the next event") func latencyOfThePeripheral() throws {
        var parameters = link(interval: 50)
        parameters.peripheralLatency = 4
        var radio = try Self.idleRadio(parameters)
        radio.enqueue(.raw(20), from: .peripheral, on: first, at: .zero + .milliseconds(5_060))
        let delivered = 5_100_000 + Air.empty + Air.space + Air.data(20)
        #expect(Self.run(&radio) == ["0 accepted 0 peripheral", "\(delivered) delivered 0 peripheral"])
    }

    // MARK: Buffers

    @Test("As many packets leave the host as there are buffers, and one for each acknowledgement") func buffers() throws
    {
        var radio = try Self.idleRadio(link(interval: 30), Self.profile(buffers: 2))
        for _ in 0..<4 { radio.enqueue(.raw(27), from: .central, on: first, at: .zero + .milliseconds(50)) }
        let cycle = Air.data(27) + Air.empty + 2 * Air.space
        let acknowledged = 60_000 + Air.data(27) + Air.space + Air.empty
        #expect(
            Self.run(&radio) == [
                "0 accepted 0 central", "0 accepted 0 central", "\(60_000 + Air.data(27)) delivered 0 central",
                "\(acknowledged) accepted 0 central", "\(60_000 + cycle + Air.data(27)) delivered 0 central",
                "\(acknowledged + cycle) accepted 0 central",
                "\(60_000 + 2 * cycle + Air.data(27)) delivered 0 central",
                "\(60_000 + 3 * cycle + Air.data(27)) delivered 0 central",
            ])
    }

    @Test("A controller that reports at the event's end frees its buffers there") func buffersAtEventEnd() throws {
        for sender in LinkLayerRole.allCases {
            var radio = try Self.idleRadio(link(interval: 30), Self.profile(buffers: 2, atEventEnd: true))
            for _ in 0..<4 { radio.enqueue(.raw(27), from: sender, on: first, at: .zero + .milliseconds(50)) }
            let lines = Self.run(&radio)
            func times(_ what: String) -> [Int] {
                lines.filter { $0.contains(what) }.compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }
            }
            // Two in the first event; the others have to wait for the next.
            let delivered = times("delivered").map { $0 / 30_000 }
            #expect(delivered.prefix(3) == [2, 2, 3], "\(lines)")
            let accepted = times("accepted")
            #expect(accepted.count == 4)
            #expect(accepted.allSatisfy { !times("delivered").contains($0) }, "\(lines)")
        }
    }

    // MARK: Several connections

    @Test("Anchor points lie in the middle of the widest gap") func anchors() throws {
        // Packets that may be lost, however seldom, keep the radio awake.
        var radio = try RadioSimulator(link(interval: 40, loss: .packetErrorRate(1e-12)), profile: Self.profile())
        func anchors(from start: Int) -> [Int] {
            var anchors: [Int] = []
            while let next = radio.deadline, next < .zero + .milliseconds(start + 40) {
                if Self.microseconds(next) % 1_000 == 0 { anchors.append(Self.microseconds(next) / 1_000) }
                _ = radio.poll(at: next)
            }
            return anchors
        }
        for number in 0..<3 { radio.open(LinkLayerConnection(rawValue: UInt32(number)), at: .zero) }
        #expect(anchors(from: 0) == [0, 10, 20])
        radio.open(LinkLayerConnection(rawValue: 3), at: .zero + .milliseconds(40))
        #expect(anchors(from: 40) == [40, 50, 60, 70])
    }

    /// On LE Coded one long packet takes 16.8 ms, so two connections at 20 ms cannot both have every event.
    @Test("Two connections in one another's way take turns") func turns() throws {
        let parameters = link(interval: 20, phy: .codedS8, dataLength: 251, attMTU: 247)
        var radio = try RadioSimulator(parameters, profile: Self.profile())
        for connection in [first, second] {
            radio.open(connection, at: .zero)
            for _ in 0..<40 { radio.enqueue(.raw(251), from: .central, on: connection, at: .zero) }
        }
        let lines = Self.run(&radio, until: .zero + .milliseconds(600)).filter { $0.contains("delivered") }
        let order = lines.compactMap { $0.split(separator: " ").dropFirst(2).first.flatMap { Int($0) } }
        #expect(order.count == 20)
        #expect(order == (0..<20).map { $0 % 2 }, "\(order)")
        let statistics = [first, second].compactMap { radio.statistics(of: $0) }
        #expect(statistics.map(\.events) == [10, 10])
        #expect(statistics.map(\.missedEvents) == [20, 20])
    }

    /// Events that gave way long ago give no precedence over a connection that has just come.
    @Test("A new connection gets its turns at once") func newcomers() throws {
        let parameters = link(interval: 20, phy: .codedS8, dataLength: 251, attMTU: 247)
        var radio = try RadioSimulator(parameters, profile: Self.profile())
        let third = LinkLayerConnection(rawValue: 2)
        for connection in [first, second] {
            radio.open(connection, at: .zero)
            for _ in 0..<200 { radio.enqueue(.raw(251), from: .central, on: connection, at: .zero) }
        }
        let middle = Timestamp.zero + .milliseconds(1_205)
        _ = Self.run(&radio, until: middle)
        radio.close(second, at: middle)
        radio.open(third, at: middle)
        for _ in 0..<200 { radio.enqueue(.raw(251), from: .central, on: third, at: middle) }
        let before = try #require(radio.statistics(of: first)).fromCentral.units
        _ = Self.run(&radio, until: middle + .milliseconds(400))
        let units = try [first, third].map { try #require(radio.statistics(of: $0)).fromCentral.units }
        #expect(units[1] >= 5, "\(units)")
        #expect(units[0] - before >= 5, "\(units)")
    }

    /// Latency is counted in events, also in those that gave way to another connection.
    @Test("Missed events count for the latency") func latencyOfMissedEvents() throws {
        var parameters = link(interval: 20, phy: .codedS8, dataLength: 251, attMTU: 247)
        // Every third event takes place (see above), and so does the peripheral's listening.
        parameters.peripheralLatency = 2
        var radio = try RadioSimulator(parameters, profile: Self.profile())
        for connection in [first, second] {
            radio.open(connection, at: .zero)
            for _ in 0..<40 { radio.enqueue(.raw(251), from: .central, on: connection, at: .zero) }
        }
        _ = Self.run(&radio, until: .zero + .milliseconds(600))
        let statistics = try #require(radio.statistics(of: first))
        #expect(statistics.events == 10)
        #expect(statistics.fromCentral.units == 10)
        #expect(statistics.fromCentral.retransmissions == 0)
    }

    @Test("A connection that is opened while the radio sleeps wakes it") func openingWakes() throws {
        var radio = try Self.idleRadio()
        let now = Timestamp.zero + .milliseconds(1_000)
        radio.open(second, at: now)
        let deadline = try #require(radio.deadline)
        #expect(deadline >= now && deadline <= now + .milliseconds(30))
    }

    @Test("An event makes room for another connection's") func room() throws {
        var radio = try RadioSimulator(link(interval: 40), profile: Self.profile())
        for connection in [first, second] { radio.open(connection, at: .zero) }
        for _ in 0..<200 { radio.enqueue(.raw(27), from: .central, on: first, at: .zero) }
        _ = Self.run(&radio, until: .zero + .milliseconds(75))
        // 20 ms hold 29 exchanges of 676 us.
        #expect(radio.statistics(of: first)?.mostExchangesPerEvent == 29)
        #expect(radio.statistics(of: second)?.missedEvents == 0)
    }

    @Test("Connections are counted, and unknown ones ignored") func bounds() throws {
        var radio = try RadioSimulator(link(interval: 4_000))
        for number in 0..<70 { radio.open(LinkLayerConnection(rawValue: UInt32(number % 66)), at: .zero) }
        #expect(radio.openConnections.map(\.rawValue) == Array(0..<64))
        radio.close(first, at: .zero)
        #expect(radio.openConnections.count == 63)
        radio.open(LinkLayerConnection(rawValue: 99), at: .zero)
        #expect(radio.openConnections.last?.rawValue == 99)
        radio.enqueue(.raw(5), from: .central, on: first, at: .zero)
        #expect(radio.poll(at: .zero) == nil)
        radio.setInRange(false, on: first, at: .zero)
    }

    @Test("A closed connection says nothing more") func closing() throws {
        var radio = try Self.idleRadio()
        radio.enqueue(.raw(5), from: .central, on: first, at: .zero + .milliseconds(50))
        #expect(radio.poll(at: .zero + .milliseconds(50)) == .accepted(first, sender: .central))
        radio.close(first, at: .zero + .milliseconds(55))
        #expect(radio.deadline == nil)
        #expect(radio.poll(at: .zero + .seconds(1)) == nil)
    }

    // MARK: Figures

    @Test("Air times are the specification's") func airTimes() {
        let cases: [(PHY, Int, Bool, Int64)] = [
            (.le1M, 0, true, 80_000), (.le1M, 27, false, 296_000), (.le1M, 27, true, 328_000),
            (.le1M, 251, true, 2_120_000), (.le2M, 0, false, 44_000), (.le2M, 251, true, 1_064_000),
            (.codedS2, 0, false, 462_000), (.codedS2, 251, true, 4_542_000), (.codedS8, 0, false, 720_000),
            (.codedS8, 251, true, 17_040_000),
        ]
        for (phy, payload, isEncrypted, expected) in cases {
            #expect(phy.airTime(payload: payload, isEncrypted: isEncrypted) == expected, "\(phy) \(payload)")
        }
        #expect(PHY.le1M.exchangeTime(payload: 27, isEncrypted: false) == 676_000)
    }

    @Test("The odds of damage follow from the packet's length") func odds() {
        for isEncrypted in [false, true] {
            let table = AirTable(link(isEncrypted: isEncrypted, loss: .bitErrorRate(0.001)))
            for payload in [0, 1, 27, 251] {
                let bits = 8 * (9 + payload + (isEncrypted && payload > 0 ? 4 : 0))
                let odds = Double(table.damageThresholds[payload]) / 0x1p64
                #expect(abs(odds - (1 - pow(0.999, Double(bits)))) < 1e-9, "\(payload) bytes")
            }
        }
        let even = AirTable(link(loss: .packetErrorRate(0.25)))
        #expect(Set(even.damageThresholds) == [1 << 62])
        #expect(!even.isLossless)
        #expect(Set(AirTable(link(loss: .packetErrorRate(1))).damageThresholds) == [.max])
        #expect(AirTable(link(loss: .packetErrorRate(0))).isLossless)
        #expect(AirTable(link()).isLossless)
    }

    @Test("The generator is SplitMix64") func generator() {
        var zero = SeededGenerator(seed: 0)
        #expect(
            (0..<3).map { _ in zero.next() } == [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F])
    }

    @Test("What is legal is taken to its very edge") func legalEdges() throws {
        let changes: [(inout LinkParameters) -> Void] = [
            { $0.attMTU = 23 }, { $0.attMTU = 517 }, { $0.dataLength = 27 }, { $0.dataLength = 251 },
            { $0.connectionInterval = .microseconds(7_500) },
            {
                $0.connectionInterval = .seconds(4)
                $0.supervisionTimeout = .milliseconds(8_010)
            },
            {
                $0.peripheralLatency = 499
                $0.connectionInterval = .milliseconds(30)
                $0.supervisionTimeout = .milliseconds(30_010)
            },
            { $0.supervisionTimeout = .milliseconds(100) }, { $0.supervisionTimeout = .seconds(32) },
            { $0.loss = .packetErrorRate(0) }, { $0.loss = .bitErrorRate(1) },
        ]
        for (number, change) in changes.enumerated() {
            var parameters = LinkParameters()
            change(&parameters)
            #expect(throws: Never.self, "change \(number)") { try parameters.validate() }
        }
        var tight = LinkParameters()
        tight.supervisionTimeout = .milliseconds(60)
        tight.connectionInterval = .milliseconds(30)
        #expect(throws: FerryError.self) { try tight.validate() }
        tight.peripheralLatency = 1
        tight.supervisionTimeout = .milliseconds(120)
        #expect(throws: FerryError.self) { try tight.validate() }
        tight.supervisionTimeout = .milliseconds(130)
        try tight.validate()
    }

    @Test("A profile is taken to its very edge and no further") func profileEdges() throws {
        let legal = [
            Self.profile(packets: 1), Self.profile(packets: 1_000), Self.profile(length: .microseconds(1_250)),
            Self.profile(length: .seconds(4)), Self.profile(buffers: 1), Self.profile(buffers: 1_024),
            Self.profile(latency: .zero), Self.profile(latency: .seconds(1)),
        ]
        for profile in legal { #expect(throws: Never.self) { try profile.validate() } }
        let illegal = [
            Self.profile(packets: 0), Self.profile(packets: 1_001), Self.profile(length: .microseconds(1_249)),
            Self.profile(length: .milliseconds(4_001)), Self.profile(buffers: 0), Self.profile(buffers: 1_025),
            Self.profile(latency: .nanoseconds(-1)), Self.profile(latency: .milliseconds(1_001)),
        ]
        for (number, profile) in illegal.enumerated() {
            #expect(throws: FerryError.self, "profile \(number)") { try profile.validate() }
        }
    }
}
