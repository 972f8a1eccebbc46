import FerryTesting
import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host, .hostility)) struct H4Tests {
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
        var random = SplitMix64(seed: 4)
        for _ in 0..<2_000 {
            var splitter = H4Splitter()
            while (try? splitter.feed(random.bytes(40).span.bytes, { _, _ in })) != nil, splitter.heldCount < 600 {}
            #expect(splitter.heldCount <= 65_540)
        }
    }
}

@Suite(.tags(.host, .hostility, .slow)) struct HostilityTests {
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
        var random = SplitMix64(seed: seed)
        var rounds = 0
        while rounds < 2_000 { rounds += try exchangeRandomFrames(&random, atMost: 2_000 - rounds) }
    }

    /// Until one side has had enough of the other; returns how many.
    private func exchangeRandomFrames(_ random: inout SplitMix64, atMost limit: Int) throws -> Int {
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

    private func randomFrame(_ random: inout SplitMix64) -> [UInt8] {
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
        var random = SplitMix64(seed: seed)
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

    /// A frame that is begun and fed byte by byte holds no more than its own length, and no more after it.
    @Test func aFrameThatIsNeverWholeIsBounded() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let length = UInt16(Reassembler.maximumPayload)
        pair.controllers.toHost[0].append([2, 0x40, 0x20, 4, 0, UInt8(length & 0xFF), UInt8(length >> 8), 4, 0])
        for _ in 1..<length { pair.controllers.toHost[0].append([2, 0x40, 0x10, 1, 0, 0xFF]) }
        // Continuations without a byte are nothing.
        for _ in 0..<1000 { pair.controllers.toHost[0].append([2, 0x40, 0x10, 0, 0]) }
        pair.settle()
        #expect(!pair.peers(0).isEmpty)
        pair.controllers.toHost[0].append([2, 0x40, 0x10, 2, 0, 0xFF, 0xFF])
        pair.settle()
        #expect(pair.peers(0).isEmpty)
        #expect(hasDiagnostic("more bytes than the frame's length", of: pair.log[0]))
    }

    @Test func aFrameThatInterruptsAnotherEndsTheConnection() throws {
        var pair = HostPair()
        _ = try pair.connect()
        for _ in 0..<2 { pair.controllers.toHost[0].append([2, 0x40, 0x20, 5, 0, 9, 0, 4, 0, 1]) }
        pair.settle()
        #expect(pair.peers(0).isEmpty)
        #expect(hasDiagnostic("a frame begins before the one before it is whole", of: pair.log[0]))
    }

    /// Requests of every kind that has an answer, from a peer that takes none.
    @Test(arguments: [
        "06 01 0400 4000 4000", "14 01 0a00 8000 4000 0008 d207 1000", "12 01 0800 0600 0c00 0000 6400", "7f 01 0000",
    ])
    func endlessSignallingRequestsAreCutOff(request: String) throws {
        var pair = HostPair()
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
        pair.controllers.sides[0].options.completesAtOnce = false
        let command = hex(request.filter { $0 != " " })
        var count = 0
        while count < 20_000, !pair.peers(0).isEmpty {
            count += 1
            pair.controllers.sendFrame([UInt8(command.count), 0, 5, 0] + command, to: 0)
            pair.settle()
        }
        #expect(pair.peers(0).isEmpty)
        // An answer has 10 bytes at least, with its headers.
        #expect(count <= LEHost.hardQueueLimit / 10 + 10)
        #expect(hasDiagnostic("it sends requests and does not take the answers", of: pair.log[0]))
    }

    /// One connection has so many channels, and no more state for those that were refused.
    @Test func endlessChannelsAreRefused() throws {
        var pair = HostPair()
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
        for source in UInt8(0)..<100 {
            let request: [UInt8] = [0x14, 1, 10, 0, 0x80, 0, 0x40 + source % 64, 0, 0, 8, 0xD2, 7, 16, 0]
            pair.controllers.sendFrame([14, 0, 5, 0] + request, to: 0)
            pair.settle()
        }
        let opened = pair.log[0].filter { if case .channelOpened = $0 { true } else { false } }
        #expect(opened.count == 16)
    }

    /// Writes that are prepared and never carried out, by a peer that does not wait for the answers either.
    @Test func aFloodOfPreparedWritesIsCutOff() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        for offset in UInt16(0)..<200 {
            let pdu = ATTPDU.make(ATTOpcode.prepareWriteRequest, handles.characteristics[0], offset, value: [1])
            pair.controllers.sendFrame([UInt8(pdu.count), 0, 4, 0] + pdu, to: 0)
            pair.settle()
        }
        // Answered one by one it may go on; all at once it may not.
        #expect(!pair.peers(0).isEmpty)
        pair.controllers.sides[0].options.completesAtOnce = false
        let pdu = ATTPDU.make(ATTOpcode.prepareWriteRequest, handles.characteristics[0], 0, value: [1])
        for _ in 0..<20_000 where !pair.peers(0).isEmpty {
            pair.controllers.sendFrame([UInt8(pdu.count), 0, 4, 0] + pdu, to: 0)
            pair.settle()
        }
        #expect(pair.peers(0).isEmpty)
    }

    private func hasDiagnostic(_ text: String, of log: [HostEvent]) -> Bool {
        log.contains { if case .diagnostic(let why) = $0 { why.contains(text) } else { false } }
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

/// Frames as peers send them, damaged: each decoder sees what is nearly right, which is where it goes wrong.
@Suite(.tags(.host, .hostility, .slow)) struct MutationTests {
    /// Good frames of every kind, from their CID on.
    private static let corpus: [[UInt8]] =
        ([
            // ATT: requests, answers, values.
            "0400020502", "0400030502", "0400040100ffff", "04000501020002290300022a", "0400060100ffff00280f18",
            "0400070100090010001400", "0400080100ffff0328", "040009070200020300002a", "04000a0300", "04000b010203",
            "04000c03001600", "04000d0102", "04000e03000500", "0400100100ffff0028", "0400110601000900001812001400",
            "04001203000102", "040013", "0400160c0000000102", "0400170c0000000102", "04001801", "040019",
            "04001b0c00010203", "04001d0c00010203", "04001e", "04002003000500", "0400230c000200aabb0d000100cc",
            "0400520c000102", "0400d20c0001020000000000000000000000", "0400010a0c0005",
            // Signalling.
            "0500010102000000", "05000602040040004000", "05000702040040004000", "0500120308000600 0c0000006400",
            "0500130302000000", "050014040a00800040000008d2071000", "050015040a0040000008d207100000 00",
            "05001605040040000900",
            // SMP.
            "060001030009100003", "060002030009100003", "0600030102030405060708090a0b0c0d0e0f10",
            "0600040102030405060708090a0b0c0d0e0f10", "06000508", "06000b09",
            "06000d0102030405060708090a0b0c0d0e0f10", "0600080102030405060708090a0b0c0d0e0f10", "06000901f1f1f1f1f1f1",
            // A credit-based channel.
            "400003000102 03", "4100",
        ] as [String]).map { hex($0.filter { $0 != " " }) }

    /// One to three damages: a bit, a byte, a cut, a doubling, a piece of another frame.
    static func damage(_ frame: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
        var frame = frame
        for _ in 0..<Int.random(in: 1...3, using: &random) where frame.count > 2 {
            let place = Int.random(in: 2..<frame.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: frame[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: frame[place] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
            case 2: frame.removeSubrange(place...)
            case 3: frame.insert(contentsOf: frame[place...], at: place)
            case 4: frame += (corpus.randomElement(using: &random) ?? []).suffix(5)
            default: frame.insert(contentsOf: random.bytes(Int.random(in: 1...4, using: &random)), at: place)
            }
        }
        return Array(frame.prefix(600))
    }

    /// The seed is the argument; the count of frames per run is what keeps a debug build within seconds.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func damagedFramesNeitherTrapNorHang(seed: UInt64) throws {
        let most = Effort.of(1_500, full: 3_000)
        var random = SplitMix64(seed: seed)
        var count = 0
        while count < most {
            var pair = HostPair(.init(aclLength: 251, receiveLength: Int.random(in: 1...251, using: &random)))
            let handles = try pair.connect()
            #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
            let id = try pair.connection(1)
            _ = pair.host(1) { $0.openChannel(id, psm: 0x80, at: $1) }
            pair.settle()
            while count < most, !pair.peers(0).isEmpty, !pair.peers(1).isEmpty {
                count += 1
                if count % 5 == 0 {
                    _ = pair.host(1) { $0.request(.read(handles.characteristics[0]), of: id, at: $1) }
                }
                let payload = Self.damage(Self.corpus.randomElement(using: &random) ?? [], &random)
                var frame: [UInt8] = []
                frame.append(u16: UInt16(payload.count - 2))
                pair.controllers.sendFrame(frame + payload, to: Int.random(in: 0...1, using: &random))
                pair.settle()
            }
            pair.advance(seconds: 100)
            #expect(pair.controllers.faults.isEmpty)
        }
    }

    /// Every frame of the corpus, handed over in two pieces at every cut.
    @Test func everyCutOfAFrameIsPutTogether() throws {
        let notification: [UInt8] = hex("060004001b0c00aabbcc")
        var pair = HostPair(.init(aclLength: 251, receiveLength: 251))
        _ = try pair.connect()
        for cut in 1..<notification.count {
            for (piece, flag) in [(notification[..<cut], UInt8(0x20)), (notification[cut...], 0x10)] {
                pair.controllers.toHost[1].append([2, 0x40, flag, UInt8(piece.count), 0] + piece)
            }
        }
        pair.settle()
        #expect(pair.received[1] == .init(repeating: [0xAA, 0xBB, 0xCC], count: notification.count - 1))
        for frame in Self.corpus {
            for cut in 1..<frame.count + 2 {
                var pair = HostPair(.init(aclLength: 251, receiveLength: cut))
                _ = try pair.connect()
                pair.controllers.sendFrame([UInt8(frame.count - 2), 0] + frame, to: 0)
                pair.settle()
                #expect(pair.log[0].allSatisfy { if case .diagnostic = $0 { false } else { true } })
            }
        }
    }
}
