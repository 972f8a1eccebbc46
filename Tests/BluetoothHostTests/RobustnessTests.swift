import Testing

@testable import BluetoothHost

/// SplitMix64: the same run for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
    }
}

@Suite struct H4Tests {
    private static let stream = hex(
        "040e0401030c000240200300010203030100021122050120020 0aabb04ff00".filter { $0 != " " })

    private func split(_ pieces: [[UInt8]]) throws -> [[UInt8]] {
        var splitter = H4Splitter()
        var packets: [[UInt8]] = []
        for piece in pieces { try splitter.feed(piece.span.bytes) { packets.append([UInt8](copying: $1)) } }
        #expect(splitter.heldCount == 0)
        return packets
    }

    @Test func everyCutGivesTheSamePackets() throws {
        let stream = Self.stream
        let whole = try split([stream])
        #expect(whole.map(\.count) == [7, 8, 6, 7, 3])
        #expect(try split(stream.map { [$0] }) == whole)
        for first in 0...stream.count {
            for second in first...stream.count {
                #expect(
                    try split([Array(stream[..<first]), Array(stream[first..<second]), Array(stream[second...])])
                        == whole)
            }
        }
    }

    @Test func outOfStepIsFinal() throws {
        for bad in [UInt8(0), 1, 6, 0xFF] {
            var splitter = H4Splitter()
            var count = 0
            let error = #expect(throws: H4StreamError.self) {
                try splitter.feed((Self.stream + [bad]).span.bytes) { _, _ in count += 1 }
            }
            #expect(count == 5)
            #expect(error?.description.contains("byte 31 of the stream") == true)
            #expect(throws: try #require(error)) {
                try splitter.feed(([4, 0xFF, 0] as [UInt8]).span.bytes) { _, _ in count += 1 }
            }
            #expect(count == 5)
        }
    }

    @Test func randomBytesNeitherTrapNorGrow() {
        var random = SeededGenerator(state: 4)
        for _ in 0..<2_000 {
            var splitter = H4Splitter()
            while (try? splitter.feed(random.bytes(40).span.bytes, { _, _ in })) != nil, splitter.heldCount < 600 {}
            #expect(splitter.heldCount <= 65_540)
        }
    }
}

@Suite struct HostilityTests {
    private static let events: [[UInt8]] =
        ([
            "0e0401030c00", "0f0400010d20", "050400400013", "08040040 0001", "100107", "130501400001 00", "1a0101",
            "3e130100400001016655443322c118000000f40100",
            "3e1f0a00400000016655443322c100000000000000000000000018000000f40100",
            "3e19020200016655443322c103020106ce04016655443322c100cd",
            "3e1d0d011b00016655443322c10100ff7fce00000000000000000003020106", "3e0a03004000180000 00f401",
            "3e0d054000000000000000000000 00", "3e0b064000060 00c0000006400", "3e0b07 4000fb004808fb004808",
            "3e060c0040000202", "3e06120000400000",
        ] as [String]).map { hex($0.filter { $0 != " " }) }

    @Test func eventsCutAtEveryByteAreMalformedOrWhole() {
        for event in Self.events {
            for count in 0..<event.count {
                // The length field still tells: a cut event never passes.
                #expect((try? HCIEvent(Array(event.prefix(count)))) == nil)
                guard count >= 2 else { continue }
                var host = LEHost(HostConfiguration(address: .staticRandom(1)))
                host.start(at: 0)
                var packet: [UInt8] = [4, event[0], UInt8(count - 2)]
                packet += event[2..<count]
                host.receive(packet.span.bytes, at: 0)
            }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func randomFramesNeitherTrapNorHang(seed: UInt64) throws {
        var random = SeededGenerator(state: seed)
        var rounds = 0
        while rounds < 2_000 { rounds += try exchangeRandomFrames(&random, atMost: 2_000 - rounds) }
    }

    /// Until one side has had enough of the other; returns how many.
    private func exchangeRandomFrames(_ random: inout SeededGenerator, atMost limit: Int) throws -> Int {
        var pair = HostPair(.init(aclLength: 251, receiveLength: 251))
        let handles = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
        var rounds = 0
        while rounds < limit, !pair.peers(0).isEmpty, !pair.peers(1).isEmpty {
            rounds += 1
            if rounds % 7 == 0 {
                let id = try pair.connection(1)
                let requests: [ClientRequest] = [
                    .services(nil), .characteristics(in: 1...0xFFFF), .read(handles.characteristics[0]),
                    .includedServices(in: 1...0xFFFF), .write(handles.characteristics[0], random.bytes(100)),
                    .configure(value: handles.characteristics[0], end: handles.end, bits: 1),
                ]
                let request = requests.randomElement(using: &random) ?? .services(nil)
                _ = pair.host(1) { $0.request(request, of: id, at: $1) }
            }
            pair.controllers.sendFrame(randomFrame(&random), to: Int.random(in: 0...1, using: &random))
            pair.settle()
        }
        #expect(pair.controllers.faults.isEmpty)
        return rounds
    }

    private func randomFrame(_ random: inout SeededGenerator) -> [UInt8] {
        var payload = random.bytes(Int.random(in: 0...40, using: &random))
        let channels: [UInt16] = [4, 4, 4, 5, 5, 6, 0x40, 0x41, 0x1234]
        let channel = channels.randomElement(using: &random) ?? 4
        if channel == 4, !payload.isEmpty { payload[0] = UInt8.random(in: 0...0x24, using: &random) }
        if channel == 5, payload.count >= 4 {
            let codes: [UInt8] = [1, 6, 7, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]
            payload[0] = codes.randomElement(using: &random) ?? 1
            payload[2] = UInt8(payload.count - 4)
            payload[3] = 0
        }
        var frame: [UInt8] = []
        frame.append(u16: UInt16(payload.count))
        frame.append(u16: channel)
        return frame + payload
    }

    @Test(arguments: [5, 6] as [UInt64])
    func randomPacketsOfTheControllerNeitherTrapNorHang(seed: UInt64) throws {
        var random = SeededGenerator(state: seed)
        var pair = HostPair()
        _ = try pair.connect()
        for _ in 0..<2_000 {
            var packet: [UInt8]
            if Bool.random(using: &random), let event = Self.events.randomElement(using: &random) {
                packet = [4] + event
                let place = Int.random(in: 1..<packet.count, using: &random)
                packet[place] = UInt8.random(in: .min ... .max, using: &random)
            } else {
                let boundary: [UInt8] = [0, 0x10, 0x20, 0x30]
                packet = [2, 0x40, boundary.randomElement(using: &random) ?? 0]
                packet += random.bytes(20)
                packet[3] = UInt8.random(in: 0...18, using: &random)
                packet[4] = 0
            }
            pair.controllers.toHost[1].append(packet)
            pair.settle()
        }
        pair.advance(seconds: 100)
        #expect(pair.host(1) { host, _ in host.state } != .starting)
    }

    @Test func fragmentsThatNeverEndAreBounded() throws {
        var pair = HostPair()
        _ = try pair.connect()
        pair.controllers.toHost[0].append([2, 0x40, 0x20, 6, 0, 0xFF, 0xFF, 4, 0, 1, 2])
        pair.settle()
        #expect(pair.peers(0).isEmpty)
        #expect(
            pair.log[0].contains {
                if case .diagnostic(let why) = $0 { why.contains("a frame of 65535 bytes, above 4096") } else { false }
            })
    }

    @Test func aFloodOfRequestsIsCutOff() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        for _ in 0..<10 {
            let pdu = ATTPDU.make(ATTOpcode.readRequest, handles.characteristics[0])
            pair.controllers.sendFrame([3, 0, 4, 0] + pdu, to: 0)
        }
        pair.settle()
        #expect(pair.peers(0).isEmpty)
        #expect(
            pair.log[0].contains {
                if case .diagnostic(let why) = $0 { why.contains("without waiting for the answers") } else { false }
            })
    }

    @Test func answersThatAreNotTakenAreBounded() throws {
        var pair = HostPair()
        _ = try pair.connect()
        pair.controllers.sides[0].options.completesAtOnce = false
        for _ in 0..<10_000 where !pair.peers(0).isEmpty {
            let pdu = ATTPDU.make(ATTOpcode.readRequest, 3)
            pair.controllers.sendFrame([3, 0, 4, 0] + pdu, to: 0)
            pair.settle()
        }
        #expect(pair.peers(0).isEmpty)
    }

    @Test func tooManyCreditsCloseTheChannel() throws {
        var pair = HostPair()
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
        let id = try pair.connection(1)
        _ = pair.host(1) { $0.openChannel(id, psm: 0x80, at: $1) }
        pair.settle()
        let credits = SignallingCommand.flowControlCredit(channel: 0x40, credits: 65535).encode(identifier: 9)
        pair.controllers.sendFrame([UInt8(credits.count), 0, 5, 0] + credits, to: 0)
        pair.settle()
        #expect(pair.log[0].contains { if case .channelClosed = $0 { true } else { false } })
        #expect(pair.log[1].contains { if case .channelClosed = $0 { true } else { false } })
    }
}
