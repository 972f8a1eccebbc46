import Ferry
import FerryBluetooth
import FerrySimulator
import TestSupport
import Testing

private let first = LinkLayerConnection(rawValue: 0)

@Suite("Radio simulator", .tags(.simulator)) struct RadioSimulatorTests {
    // MARK: Arithmetic as an oracle

    /// Packets per event by plain arithmetic, written without the simulator: units of `fragments`, over and over.
    private func unitsPerTwentyEvents(_ fragments: [Int], _ parameters: LinkParameters) -> Int {
        let interval = parameters.connectionInterval.wholeNanoseconds
        var (units, position) = (0, 0)
        for _ in 0..<20 {
            var used: Int64 = 0
            while true {
                let time = parameters.phy.exchangeTime(
                    payload: fragments[position], isEncrypted: parameters.isEncrypted)
                // The first exchange of an event always takes place.
                guard used == 0 || used + time <= interval else { break }
                used += time
                position += 1
                if position == fragments.count { (units, position) = (units + 1, 0) }
            }
        }
        return units
    }

    @Test(
        "A lossless stream is what arithmetic gives", arguments: PHY.allCases, [7.5, 11.25, 50])
    func arithmetic(phy: PHY, interval: Double) throws {
        for (attMTU, dataLength) in [(23, 27), (185, 27), (247, 251), (247, 100), (517, 251)] {
            for isEncrypted in [false, true] {
                let parameters = link(
                    interval: interval, phy: phy, dataLength: dataLength, isEncrypted: isEncrypted, attMTU: attMTU)
                let valueLength = min(attMTU - 3, 512)
                let whole = (valueLength + 7) / dataLength
                let rest = (valueLength + 7) % dataLength
                let fragments = Array(repeating: dataLength, count: whole) + (rest > 0 ? [rest] : [])
                let expected = unitsPerTwentyEvents(fragments, parameters)
                let run = try measure(
                    .notifications(valueLength: valueLength, queueDepth: 32), on: parameters,
                    profile: ControllerProfile(name: "test", source: "test", controllerBuffers: 32), events: 20)
                // Packets of the last unit may straddle the end.
                #expect(abs(run.units - expected) <= 1, "\(phy) \(interval) \(attMTU) \(dataLength) \(isEncrypted)")
            }
        }
    }

    // MARK: Loss

    @Test("Whatever is lost, every unit arrives once", arguments: [0.01, 0.1, 0.3, 0.6], [1, 2, 8])
    func retransmission(rate: Double, buffers: Int) throws {
        let seed = UInt64(rate * 1_000) + UInt64(buffers)
        let parameters = link(interval: 7.5, loss: .packetErrorRate(rate))
        let profile = ControllerProfile(name: "test", source: "test", controllerBuffers: buffers)
        var radio = try RadioSimulator(parameters, profile: profile, seed: seed)
        radio.open(first, at: .zero)
        var sent = [0, 0]
        var delivered = [0, 0]
        var accepted = [0, 0]
        for role in LinkLayerRole.allCases {
            for _ in 0..<200 { radio.enqueue(.attribute(pduLength: 60), from: role, on: first, at: .zero) }
            sent[role.rawValue] = 200
        }
        let deadline = Timestamp.zero + .seconds(600)
        while let next = radio.deadline, next < deadline, delivered != sent {
            while let event = radio.poll(at: next) {
                switch event {
                case .accepted(_, let sender): accepted[sender.rawValue] += 1
                case .delivered(_, let sender): delivered[sender.rawValue] += 1
                case .lost: Issue.record("lost, seed \(seed)")
                }
            }
        }
        #expect(delivered == sent, "seed \(seed)")
        #expect(accepted == sent, "seed \(seed)")
        let statistics = try #require(radio.statistics(of: first))
        // 64 bytes with their L2CAP header in packets of 27.
        #expect(statistics.fromCentral.payloadBytes == 200 * 64)
        #expect(statistics.fromPeripheral.units == 200)
        #expect(statistics.fromCentral.retransmissions > 0)
    }

    @Test("Bit errors hurt long packets more") func bitErrors() throws {
        func share(_ dataLength: Int) throws -> Double {
            let clean = link(interval: 30, dataLength: dataLength, attMTU: 247)
            var noisy = clean
            noisy.loss = .bitErrorRate(1e-4)
            let traffic = Traffic.notifications(valueLength: 244)
            return try kbps(traffic, 244, noisy, events: 500) / kbps(traffic, 244, clean, events: 500)
        }
        #expect(try share(251) < share(27) - 0.05)
    }

    @Test("Silence ends the connection after the supervision timeout") func supervision() throws {
        var parameters = link(interval: 30)
        parameters.supervisionTimeout = .milliseconds(420)
        var radio = try RadioSimulator(parameters)
        radio.open(first, at: .zero)
        while let next = radio.deadline, next < .zero + .seconds(1) { _ = radio.poll(at: next) }
        try radio.setLoss(.packetErrorRate(1), on: first, at: .zero + .seconds(1))
        var lostAt: Timestamp?
        while let next = radio.deadline, lostAt == nil {
            if radio.poll(at: next) == .lost(first) { lostAt = next }
        }
        let silence = try #require(lostAt) - (.zero + .seconds(1))
        #expect(silence > .milliseconds(420) && silence <= .milliseconds(480))
        #expect(radio.openConnections.isEmpty)
    }

    // MARK: Sharing the air

    @Test("Connections share the air evenly") func fairness() throws {
        let shares = try share(connections: 4, stuck: nil)
        let mean = Double(shares.reduce(0, +)) / 4
        for share in shares { #expect(abs(Double(share) - mean) / mean < 0.02, "\(shares)") }
    }

    @Test("A stuck central of ten costs the others less than 5 %") func stuckCentral() throws {
        let without = try share(connections: 10, stuck: nil).dropFirst().reduce(0, +)
        let with = try share(connections: 10, stuck: 0).dropFirst().reduce(0, +)
        #expect(Double(with) > 0.95 * Double(without), "\(with) against \(without)")
    }

    /// Units each connection's peripheral delivered in 5 s; the stuck one's packets all arrive damaged.
    private func share(connections: UInt32, stuck: UInt32?) throws -> [Int] {
        var radio = try RadioSimulator(link(interval: 50, dataLength: 251, attMTU: 247), seed: 3)
        var delivered = Array(repeating: 0, count: Int(connections))
        for number in 0..<connections {
            let connection = LinkLayerConnection(rawValue: number)
            radio.open(connection, at: .zero)
            for _ in 0..<16 { radio.enqueue(.attribute(pduLength: 247), from: .peripheral, on: connection, at: .zero) }
            if number == stuck { try radio.setLoss(.packetErrorRate(1), on: connection, at: .zero) }
        }
        while let next = radio.deadline, next < .zero + .seconds(5) {
            while let event = radio.poll(at: next) {
                switch event {
                case .accepted(let connection, let sender):
                    radio.enqueue(.attribute(pduLength: 247), from: sender, on: connection, at: next)
                case .delivered(let connection, _): delivered[Int(connection.rawValue)] += 1
                case .lost: Issue.record("lost")
                }
            }
        }
        return delivered
    }

    @Test("More connections than fit into an interval starve none") func crowded() throws {
        var parameters = link(interval: 7.5, dataLength: 251, attMTU: 247)
        parameters.supervisionTimeout = .seconds(1)
        var radio = try RadioSimulator(parameters)
        for number in 0..<12 { radio.open(LinkLayerConnection(rawValue: UInt32(number)), at: .zero) }
        for connection in radio.openConnections {
            for _ in 0..<2_000 {
                radio.enqueue(.attribute(pduLength: 247), from: .peripheral, on: connection, at: .zero)
            }
        }
        while let next = radio.deadline, next < .zero + .seconds(5) {
            while let event = radio.poll(at: next) { #expect(event != .lost(first)) }
        }
        #expect(radio.openConnections.count == 12)
        for connection in radio.openConnections {
            let units = try #require(radio.statistics(of: connection)).fromPeripheral.units
            #expect(units > 100, "\(connection)")
        }
    }

    // MARK: Controllers

    @Test("A controller that reports at the event's end sends one bufferful per event", arguments: [1, 3, 8])
    func reports(buffers: Int) throws {
        let profile = ControllerProfile(
            name: "test", source: "test", controllerBuffers: buffers, reportsAtEventEnd: true)
        let run = try measure(.notifications(valueLength: 20), on: link(interval: 50), profile: profile, events: 100)
        #expect(run.units <= 100 * buffers)
        // The last packet of an event is acknowledged in the next one only, so its buffer misses a turn.
        #expect(run.units >= 100 * max(1, buffers - 1) / 2)
    }

    @Test("A peripheral with latency hears the central late, and is heard at once") func peripheralLatency() throws {
        func delay(_ sender: LinkLayerRole) throws -> Duration {
            var parameters = link(interval: 50)
            parameters.peripheralLatency = 9
            var radio = try RadioSimulator(parameters)
            radio.open(first, at: .zero)
            while let next = radio.deadline { _ = radio.poll(at: next) }
            let start = Timestamp.zero + .milliseconds(10_010)
            radio.enqueue(.attribute(pduLength: 20), from: sender, on: first, at: start)
            while let next = radio.deadline {
                let now = max(next, start)
                while let event = radio.poll(at: now) {
                    if event == .delivered(first, sender: sender) { return now - start }
                }
            }
            return .zero
        }
        #expect(try delay(.peripheral) < .milliseconds(50))
        let fromCentral = try delay(.central)
        #expect(fromCentral > .milliseconds(400) && fromCentral < .milliseconds(500))
    }

    @Test("An idle lossless radio asks for no wake-up, and keeps its anchor points") func idle() throws {
        var radio = try RadioSimulator(link(interval: 30))
        radio.open(first, at: .zero)
        while let next = radio.deadline { _ = radio.poll(at: next) }
        #expect(radio.workedEvents < 10)
        let start = Timestamp.zero + .milliseconds(3_600_010)
        radio.enqueue(.attribute(pduLength: 20), from: .central, on: first, at: start)
        #expect(radio.poll(at: start) == .accepted(first, sender: .central))
        let deadline = try #require(radio.deadline)
        #expect(deadline == .zero + .milliseconds(3_600_030))
    }

    @Test("The same seed gives the same run") func deterministic() throws {
        let lossy = link(interval: 15, dataLength: 251, attMTU: 247, loss: .packetErrorRate(0.1))
        let runs = try [7, 7, 8].map {
            try measure(.notifications(valueLength: 244), on: lossy, seed: $0, events: 1_000)
        }
        #expect(runs[0] == runs[1])
        #expect(runs[0] != runs[2])
    }
}
