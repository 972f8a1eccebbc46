import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host, .l2cap)) struct EnhancedChannelTests {
    private static let psm: UInt16 = 0x80

    private func connect(_ pair: inout HostPair) throws -> ConnectionID {
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: Self.psm) })
        return try pair.connection(1)
    }

    private func opened(_ log: [HostEvent]) -> [CreditChannelID] {
        log.compactMap { if case .channelOpened(let channel, _, _, _) = $0 { channel } else { nil } }
    }

    private func refusals(_ log: [HostEvent]) -> [ChannelResult] {
        log.compactMap { if case .channelRefused(_, _, let result) = $0 { result } else { nil } }
    }

    /// Signalling commands that went from a side, without their frames' headers.
    private func commands(_ pair: borrowing HostPair, from side: Int) -> [[UInt8]] {
        pair.controllers.frames[side].filter { $0[2] == 5 }.map { Array($0[4...]) }
    }

    private func send(_ command: SignallingCommand, to side: Int, _ pair: inout HostPair) {
        let bytes = command.encode(identifier: 9)
        pair.controllers.sendFrame([UInt8(bytes.count), 0, 5, 0] + bytes, to: side)
        pair.settle()
    }

    @Test(arguments: 1...5)
    func severalChannelsByOneRequest(count: Int) throws {
        var pair = HostPair()
        let id = try connect(&pair)
        let before = commands(pair, from: 1).count
        let operations = try #require(pair.host(1) { $0.openChannels(id, psm: Self.psm, count: count, at: $1) })
        #expect(operations.count == count)
        pair.settle()
        #expect(commands(pair, from: 1).count == before + 1)
        let (here, there) = (opened(pair.log[1]), opened(pair.log[0]))
        #expect(here.count == count)
        #expect(there.count == count)
        for (place, channel) in here.enumerated() {
            let sdu = [UInt8](repeating: UInt8(place), count: 2000)
            #expect(pair.host(1) { host, _ in host.trySend(sdu.span.bytes, on: channel) } == true)
            #expect(pair.host(0) { host, _ in host.trySend(sdu.span.bytes, on: there[place]) } == true)
        }
        pair.settle()
        for side in 0...1 {
            #expect(Set(pair.received[side].map { $0[0] }) == Set(0..<UInt8(count)))
            #expect(pair.received[side].allSatisfy { $0.count == 2000 })
        }
        pair.host(1) { $0.closeChannel(here[0], at: $1) }
        pair.settle()
        #expect(pair.log[0].contains { if case .channelClosed(there[0]) = $0 { true } else { false } })
        for wrong in [0, 6, -1] {
            #expect(pair.host(1) { $0.openChannels(id, psm: Self.psm, count: wrong, at: $1) } == nil)
        }
    }

    /// Who has used the request itself is asked by it, also for one channel.
    @Test func aPeerThatKnowsTheRequestIsAskedByIt() throws {
        var pair = HostPair()
        let id = try connect(&pair)
        send(
            .enhancedRequest(.init(psm: 0x99, mtu: 64, mps: 64, credits: 1, sources: [0x70])), to: 1, &pair)
        _ = try #require(pair.host(1) { $0.openChannel(id, psm: Self.psm, at: $1) })
        pair.settle()
        #expect(commands(pair, from: 1).map { $0[0] }.suffix(2) == [0x18, 0x17])
        #expect(opened(pair.log[1]).count == 1)
    }

    @Test func aPeerThatDoesNotKnowItIsAskedForOneAtATime() throws {
        var pair = HostPair()
        let id = try connect(&pair)
        // The other side is the test.
        _ = try #require(pair.host(1) { $0.openChannels(id, psm: 0x81, count: 2, at: $1) })
        var packet: [UInt8] = []
        while pair.host(1, { $0.nextPacket(into: &packet, at: $1) }) {}
        let request = try #require(packet.firstRange(of: [0x05, 0, 0x17] as [UInt8])?.upperBound)
        let identifier = packet[request]
        let reject = SignallingCommand.reject(reason: 0).encode(identifier: identifier)
        pair.controllers.sendFrame([UInt8(reject.count), 0, 5, 0] + reject, to: 1)
        pair.settle()
        #expect(commands(pair, from: 1).suffix(2).map { $0[0] } == [0x14, 0x14])
        #expect(refusals(pair.log[1]) == [.psmNotSupported, .psmNotSupported])
    }

    @Test func everyRefusalHasItsName() throws {
        typealias Request = EnhancedRequest
        let cases: [(Request, ChannelResult, [UInt16])] = [
            (.init(psm: 0x99, mtu: 64, mps: 64, credits: 1, sources: [0x50]), .psmNotSupported, [0]),
            (.init(psm: 0x82, mtu: 64, mps: 64, credits: 1, sources: [0x50]), .insufficientAuthentication, [0]),
            (.init(psm: 0x80, mtu: 63, mps: 64, credits: 1, sources: [0x50, 0x51]), .unacceptableParameters, [0, 0]),
            (.init(psm: 0x80, mtu: 64, mps: 63, credits: 1, sources: [0x50]), .unacceptableParameters, [0]),
            (.init(psm: 0x80, mtu: 64, mps: 65534, credits: 1, sources: [0x50]), .unacceptableParameters, [0]),
            (.init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: []), .invalidParameters, []),
            (
                .init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: [0x50, 0x51, 0x52, 0x53, 0x54, 0x55]),
                .invalidParameters, [0, 0, 0, 0, 0]
            ),
            (.init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: [0x50, 0x50]), .invalidParameters, [0, 0]),
            (.init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: [0x3F, 0x50]), .invalidSourceChannel, [0, 0x40]),
            (.init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: [0x50, 0x51]), .sourceChannelInUse, [0, 0x41]),
            (.init(psm: 0x80, mtu: 64, mps: 64, credits: 1, sources: [0x52]), .success, [0x42]),
        ]
        var pair = HostPair()
        _ = try connect(&pair)
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x82, encryptionRequired: true) })
        for (request, result, destinations) in cases {
            send(.enhancedRequest(request), to: 0, &pair)
            let answer = try SignallingCommand.decode(try #require(commands(pair, from: 0).last)).1
            #expect(
                answer
                    == .enhancedResponse(
                        mtu: 2048, mps: 2002, credits: CreditChannel.credits, result: result.rawValue,
                        destinations: destinations),
                "\(request)")
            #expect(!result.description.contains("reserved"))
        }
        // 16 of one connection at most: three are open.
        for round in 0..<3 {
            let sources = (0..<5).map { UInt16(0x60 + 5 * round + $0) }
            send(.enhancedRequest(.init(psm: 0x80, mtu: 64, mps: 64, credits: 0, sources: sources)), to: 0, &pair)
        }
        guard
            case .enhancedResponse(_, _, _, let code, let destinations) = try SignallingCommand.decode(
                try #require(commands(pair, from: 0).last)
            ).1
        else {
            Issue.record("no answer")
            return
        }
        #expect(ChannelResult(rawValue: code) == .noResources)
        #expect(destinations.filter { $0 != 0 }.count == 3)
        #expect(opened(pair.log[0]).count == 16)
    }

    /// What a peer may answer, and what becomes of each channel.
    @Test func partialAnswersOpenWhatTheyName() throws {
        let cases: [(SignallingCommand, [ChannelResult], Int)] = [
            (
                .enhancedResponse(mtu: 64, mps: 64, credits: 1, result: 4, destinations: [0x70, 0, 0x71]),
                [.noResources], 2
            ),
            (.enhancedResponse(mtu: 64, mps: 64, credits: 1, result: 0, destinations: [0x70]), [], 1),
            (
                .enhancedResponse(mtu: 64, mps: 64, credits: 1, result: 0, destinations: [0x70, 0x70, 0x3F]),
                [.unacceptableParameters, .unacceptableParameters], 1
            ),
            (.enhancedResponse(mtu: 63, mps: 64, credits: 1, result: 0, destinations: [0x70, 0x71, 0x72]), [], 0),
            (.enhancedResponse(mtu: 64, mps: 64, credits: 1, result: 0x0B, destinations: [0x70, 0x71, 0x72]), [], 0),
        ]
        for (answer, reasons, count) in cases {
            var pair = HostPair()
            let id = try connect(&pair)
            _ = try #require(pair.host(1) { $0.openChannels(id, psm: 0x80, count: 3, at: $1) })
            var packet: [UInt8] = []
            while pair.host(1, { $0.nextPacket(into: &packet, at: $1) }) {}
            let request = try #require(packet.firstRange(of: [0x05, 0, 0x17] as [UInt8])?.upperBound)
            let bytes = answer.encode(identifier: packet[request])
            pair.controllers.sendFrame([UInt8(bytes.count), 0, 5, 0] + bytes, to: 1)
            pair.settle()
            #expect(opened(pair.log[1]).count == count, "\(answer)")
            #expect(refusals(pair.log[1]).count == 3 - count, "\(answer)")
            if !reasons.isEmpty { #expect(refusals(pair.log[1]) == reasons, "\(answer)") }
        }
    }

    @Test func aPendingAnswerHasATimeOfItsOwnOnce() throws {
        var pair = HostPair()
        let id = try connect(&pair)
        _ = try #require(pair.host(1) { $0.openChannels(id, psm: 0x80, count: 1, at: $1) })
        var packet: [UInt8] = []
        while pair.host(1, { $0.nextPacket(into: &packet, at: $1) }) {}
        let place = try #require(packet.firstRange(of: [0x05, 0, 0x17] as [UInt8])?.upperBound)
        let pending = SignallingCommand.enhancedResponse(mtu: 0, mps: 0, credits: 0, result: 0x0E, destinations: [0])
        let bytes = pending.encode(identifier: packet[place])
        pair.advance(seconds: 20)
        pair.controllers.sendFrame([UInt8(bytes.count), 0, 5, 0] + bytes, to: 1)
        pair.settle()
        pair.advance(seconds: 59)
        #expect(refusals(pair.log[1]).isEmpty)
        pair.advance(seconds: 2)
        #expect(refusals(pair.log[1]) == [.timedOut])
    }

    @Test func sizesRise() throws {
        var pair = HostPair()
        let id = try connect(&pair)
        _ = try #require(pair.host(1) { $0.openChannels(id, psm: Self.psm, count: 2, at: $1) })
        pair.settle()
        let (here, there) = (opened(pair.log[1]), opened(pair.log[0]))
        let operation = try #require(pair.host(1) { $0.reconfigureChannels(here, mtu: 5000, at: $1) })
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .channelsReconfigured(operation, id, .success) = $0 { true } else { false }
            })
        #expect(there.map { channel in pair.host(0) { host, _ in host.maximumSDU(channel) } } == [5000, 5000])
        let sdu = [UInt8](repeating: 7, count: 5000)
        #expect(pair.host(0) { host, _ in host.trySend(sdu.span.bytes, on: there[1]) } == true)
        pair.settle()
        #expect(pair.received[1] == [sdu])
        for wrong in [4999, 65536] { #expect(pair.host(1) { $0.reconfigureChannels(here, mtu: wrong, at: $1) } == nil) }
        #expect(pair.host(1) { $0.reconfigureChannels([], mtu: 6000, at: $1) } == nil)
        #expect(pair.host(1) { $0.reconfigureChannels([here[0], here[0]], mtu: 6000, at: $1) } == nil)
        // The ends at the other side are 0x40 and 0x41 too.
        let cases: [(SignallingCommand, ReconfigurationResult)] = [
            (.reconfigureRequest(mtu: 4999, mps: 2002, channels: [0x40]), .mtuReduced),
            (.reconfigureRequest(mtu: 5000, mps: 2001, channels: [0x40, 0x41]), .mpsReduced),
            (.reconfigureRequest(mtu: 5000, mps: 64, channels: [0x40]), .success),
            (.reconfigureRequest(mtu: 5000, mps: 63, channels: [0x40]), .unacceptableParameters),
            (.reconfigureRequest(mtu: 63, mps: 64, channels: [0x40]), .unacceptableParameters),
            (.reconfigureRequest(mtu: 5000, mps: 2002, channels: []), .unacceptableParameters),
            (.reconfigureRequest(mtu: 5000, mps: 2002, channels: [0x42]), .invalidChannel),
        ]
        for (request, result) in cases {
            send(request, to: 0, &pair)
            let answer = try SignallingCommand.decode(try #require(commands(pair, from: 0).last)).1
            #expect(answer == .reconfigureResponse(result: result.rawValue), "\(request)")
            #expect(!result.description.contains("reserved"))
        }
    }

    /// A channel that came of the plain request keeps its sizes.
    @Test func plainChannelsAreNotReconfigured() throws {
        var pair = HostPair()
        let id = try connect(&pair)
        _ = try #require(pair.host(1) { $0.openChannel(id, psm: Self.psm, at: $1) })
        pair.settle()
        let here = opened(pair.log[1])
        #expect(here.count == 1)
        #expect(pair.host(1) { $0.reconfigureChannels(here, mtu: 5000, at: $1) } == nil)
        send(.reconfigureRequest(mtu: 5000, mps: 2002, channels: [0x40]), to: 0, &pair)
        #expect(
            try SignallingCommand.decode(try #require(commands(pair, from: 0).last)).1
                == .reconfigureResponse(result: ReconfigurationResult.invalidChannel.rawValue))
    }
}
