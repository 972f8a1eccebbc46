import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Enhanced ATT bearers (Core Specification 5.4, Vol 3, Part G, 5.3.2). The peers that break rules are hosts without them, whose
/// application speaks ATT by ordinary channels.
@Suite(.tags(.host, .gatt)) struct EnhancedBearerTests {
    private static let psm: UInt16 = 0x0027

    private func makePair(_ sides: Set<Int> = [0, 1]) -> HostPair {
        HostPair { side, configuration in configuration.usesEnhancedBearers = sides.contains(side) }
    }

    private func secure(_ pair: inout HostPair) throws {
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
    }

    /// A server with bearers, and a client that is the test, with so many channels to it.
    private func open(_ count: Int, of pair: inout HostPair) throws -> (ServiceHandles, [CreditChannelID]) {
        let handles = try pair.connect()
        try secure(&pair)
        let channels = try open(&pair, count)
        #expect(channels.count == count)
        return (handles, channels)
    }

    private func open(_ pair: inout HostPair, _ count: Int) throws -> [CreditChannelID] {
        let before = opened(pair.log[1]).count
        let id = try pair.connection(1)
        _ = try #require(pair.host(1) { $0.openChannels(id, psm: Self.psm, count: count, at: $1) })
        pair.settle()
        return Array(opened(pair.log[1]).dropFirst(before))
    }

    private func opened(_ log: [HostEvent]) -> [CreditChannelID] {
        log.compactMap { if case .channelOpened(let channel, _, _, _) = $0 { channel } else { nil } }
    }

    private func refusals(_ log: [HostEvent]) -> [ChannelResult] {
        log.compactMap { if case .channelRefused(_, _, let result) = $0 { result } else { nil } }
    }

    private func say(_ pdu: [UInt8], _ channel: CreditChannelID, _ pair: inout HostPair, from side: Int = 1) {
        #expect(pair.host(side) { host, _ in host.trySend(pdu.span.bytes, on: channel) } == true)
        pair.settle()
    }

    private func reads(_ pair: borrowing HostPair) -> [ServerRequestID] {
        pair.log[0].compactMap { if case .readRequest(let id, _, _, _) = $0 { id } else { nil } }
    }

    private func bearers(_ pair: inout HostPair, _ side: Int) -> [CreditChannel] {
        pair.host(side) { host, _ in host.connections.last?.channels.filter { $0.psm == Self.psm } ?? [] }
    }

    /// ATT PDUs on the fixed channel.
    private func fixed(_ pair: borrowing HostPair, from side: Int) -> [[UInt8]] {
        pair.controllers.frames[side].filter { $0[2] == 4 && $0[3] == 0 }.map { Array($0[4...]) }
    }

    // MARK: Both sides of this host's

    /// One is opened once the link is encrypted, requests leave by it, and the application sees no channel.
    @Test func requestsLeaveByABearer() throws {
        var pair = makePair()
        let handles = try pair.connect()
        for side in 0...1 { #expect(bearers(&pair, side).isEmpty) }
        try secure(&pair)
        for side in 0...1 {
            #expect(bearers(&pair, side).count == 1)
            #expect(bearers(&pair, side).allSatisfy { $0.state == .open && $0.isEnhanced && $0.localMTU == 517 })
            #expect(opened(pair.log[side]).isEmpty)
        }
        pair.controllers.frames = [[], []]
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
        #expect(fixed(pair, from: 1).isEmpty)
        // Length of the frame, channel, length of the SDU, Read Request (Vol 3, Part A, 3.4.3, and Part F, 3.4.4.3).
        let remote = try #require(bearers(&pair, 1).first).remote
        let handle = UInt8(handles.characteristics[1])
        #expect(pair.controllers.frames[1].first == [5, 0, UInt8(remote), 0, 3, 0, 0x0A, handle, 0])
        #expect(pair.controllers.frames[0].first?.dropFirst(4) == [4, 0, 0x0B, 1, 2, 3])
        try pair.disconnect()
        for side in 0...1 {
            #expect(!pair.log[side].contains { if case .channelClosed = $0 { true } else { false } })
        }
    }

    /// Writes with and without response, in the order of the calls, for the fixed channel is not overtaken.
    @Test func writesKeepTheirOrder() throws {
        var pair = makePair()
        let handles = try pair.connect()
        try secure(&pair)
        let id = try pair.connection(1)
        var expected: [UInt8] = []
        for number in UInt8(0)..<20 {
            let value = [UInt8](repeating: number, count: 300)
            if number % 4 == 0 {
                _ = pair.host(1) { $0.request(.write(handles.characteristics[0], value), of: id, at: $1) }
                // One request at a time: the next waits for its answer.
                pair.settle()
                let request = pair.log[0].compactMap { if case .writeRequest(let id, _, _) = $0 { id } else { nil } }
                    .last
                pair.host(0) { $0.respond(to: request ?? .init(rawValue: 0), with: .success([]), at: $1) }
            } else {
                #expect(
                    pair.host(1) { host, _ in
                        host.writeCommand(value.span.bytes, to: handles.characteristics[0], of: id)
                    }
                        == true)
            }
            expected.append(number)
        }
        pair.settle()
        let written = pair.log[0].compactMap { event -> Int? in
            switch event {
            case .writeRequest(_, _, let parts): Int(parts[0].value[0])
            case .writeCommand: -1
            default: nil
            }
        }
        #expect(written.enumerated().allSatisfy { $0.element == -1 || $0.element == $0.offset })
        #expect(written.count == expected.count)
    }

    /// A request and a command without a pause between them leave in this order, in whatever channels.
    @Test func aCommandDoesNotOvertakeARequest() throws {
        var pair = makePair()
        let handles = try pair.connect()
        try secure(&pair)
        let id = try pair.connection(1)
        let value = [UInt8](repeating: 7, count: 100)
        _ = pair.host(1) { $0.request(.write(handles.characteristics[0], value), of: id, at: $1) }
        #expect(
            pair.host(1) { host, _ in host.writeCommand(value.span.bytes, to: handles.characteristics[0], of: id) }
                == true
        )
        pair.settle()
        let kinds = pair.log[0].compactMap { event -> Bool? in
            switch event {
            case .writeRequest: true
            case .writeCommand: false
            default: nil
            }
        }
        #expect(kinds == [true, false])
    }

    /// A client that speaks with a server without them, and the other way round, goes on as ever.
    @Test(arguments: [Set([0]), [1], []])
    func withoutThemOnOneSideNoneIsOpened(sides: Set<Int>) throws {
        var pair = makePair(sides)
        let handles = try pair.connect()
        try secure(&pair)
        for side in 0...1 { #expect(bearers(&pair, side).isEmpty) }
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
    }

    /// A bearer that is closed with a request under way: reads are asked for again, writes fail, and both sides go on.
    @Test(arguments: [false, true])
    func aBearerMayClose(isWrite: Bool) throws {
        var pair = makePair()
        let handles = try pair.connect()
        try secure(&pair)
        let id = try pair.connection(1)
        let handle = handles.characteristics[0]
        let operation = try #require(
            pair.host(1) { $0.request(isWrite ? .write(handle, [1]) : .read(handle), of: id, at: $1) })
        pair.settle()
        let channel = try #require(bearers(&pair, 0).first)
        pair.host(0) { $0.closeChannel(CreditChannelID(rawValue: channel.id), at: $1) }
        pair.settle()
        for side in 0...1 { #expect(bearers(&pair, side).isEmpty) }
        if isWrite {
            #expect(try pair.result(of: operation) == .failure(.bearerClosed))
        } else {
            #expect(reads(pair).count == 2)
            // What is answered too late is for nobody.
            for request in reads(pair) { pair.host(0) { $0.respond(to: request, with: .success([9]), at: $1) } }
            pair.settle()
            #expect(try pair.result(of: operation) == .success(.value([9])))
        }
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
        #expect(pair.peers(1).count == 1)
    }

    // MARK: A server and a client of the test's

    /// A request that waits for the application holds up neither the other bearer nor the fixed channel.
    @Test func oneThatWaitsHoldsUpNoOther() throws {
        var pair = makePair([0])
        let (handles, channels) = try open(2, of: &pair)
        say([0x0A, UInt8(handles.characteristics[0]), 0], channels[0], &pair)
        let waiting = try #require(reads(pair).last)
        say([0x0A, UInt8(handles.characteristics[1]), 0], channels[1], &pair)
        #expect(pair.received[1].last == [0x0B, 1, 2, 3])
        #expect(try pair.ask(.read(handles.characteristics[1])) == .success(.value([1, 2, 3])))
        pair.host(0) { $0.respond(to: waiting, with: .success([8, 8]), at: $1) }
        pair.settle()
        #expect(pair.received[1].last == [0x0B, 8, 8])
        let ways = pair.log[1].compactMap { if case .channelReceived(let channel, _) = $0 { channel } else { nil } }
        #expect(ways == [channels[1], channels[0]])
    }

    /// Parts of writes are kept apart, and each is executed by itself.
    @Test func longWritesOfTwoBearersAreNotMixed() throws {
        var pair = makePair([0])
        let (handles, channels) = try open(2, of: &pair)
        let handle = UInt8(handles.characteristics[0])
        for (number, channel) in channels.enumerated() { say([0x16, handle, 0, 0, 0, UInt8(number)], channel, &pair) }
        say([0x18, 0x01], channels[1], &pair)
        let parts = pair.log[0].compactMap { if case .writeRequest(_, _, let parts) = $0 { parts } else { nil } }
        #expect(parts == [[WritePart(handle: UInt16(handle), offset: 0, value: [1])]])
    }

    @Test func theSizesAreThoseOfTheChannels() throws {
        var pair = makePair([0])
        let (_, channels) = try open(1, of: &pair)
        #expect(pair.host(1) { host, _ in host.maximumSDU(channels[0]) } == 517)
        // Exchange MTU Request: not by an enhanced bearer (Part F, 3.4.2.1).
        say([0x02, 0x40, 0x00], channels[0], &pair)
        #expect(pair.received[1].last == [0x01, 0x02, 0, 0, 0x06])
        #expect(pair.host(0) { host, _ in host.connections[0].attMTU } == 517)
        // An SDU above what was said closes it.
        let frame: [UInt8] = [0x06, 0x02, UInt8(bearers(&pair, 0)[0].local), 0, 0x06, 0x02]
        pair.controllers.sendFrame(frame + [UInt8](repeating: 0, count: 516), to: 0)
        pair.settle()
        #expect(pair.log[1].contains { if case .channelClosed(channels[0]) = $0 { true } else { false } })
    }

    private func answer(_ command: SignallingCommand, _ pair: inout HostPair) -> [UInt8]? {
        pair.controllers.frames[0] = []
        let bytes = command.encode(identifier: 9)
        pair.controllers.sendFrame([UInt8(bytes.count), 0, 5, 0] + bytes, to: 0)
        pair.settle()
        return pair.controllers.frames[0].first { $0[2] == 5 }.map { Array($0[4...]) }
    }

    /// Refused on a link in the clear, above five, by the request for one channel, and with an MTU below 64.
    @Test func whatIsRefused() throws {
        var pair = makePair([0])
        _ = try pair.connect()
        let id = try pair.connection(1)
        let psm = Self.psm
        #expect(!pair.host(0) { host, _ in host.listen(psm: psm) })
        let request = SignallingCommand.enhancedRequest(.init(psm: psm, mtu: 64, mps: 64, credits: 1, sources: [0x70]))
        // Result 0x0005, insufficient authentication (Vol 3, Part A, 4.26).
        #expect(answer(request, &pair)?[10...11] == [0x05, 0x00])
        try secure(&pair)
        let small = SignallingCommand.enhancedRequest(.init(psm: psm, mtu: 63, mps: 64, credits: 1, sources: [0x70]))
        #expect(answer(small, &pair)?[10...11] == [0x0B, 0x00])
        // Result 0x0002, SPSM not supported (4.23).
        let single = SignallingCommand.connectionRequest(psm: psm, source: 0x71, mtu: 64, mps: 64, credits: 1)
        #expect(answer(single, &pair)?[12...13] == [0x02, 0x00])
        _ = pair.host(1) { $0.openChannels(id, psm: psm, count: 5, at: $1) }
        pair.settle()
        #expect(bearers(&pair, 0).count == 5)
        _ = pair.host(1) { $0.openChannels(id, psm: psm, count: 1, at: $1) }
        pair.settle()
        #expect(bearers(&pair, 0).count == 5)
        #expect(refusals(pair.log[1]).last == .noResources)
        #expect(opened(pair.log[0]).isEmpty)
    }

    /// Requests without waiting for the answers, as on the fixed channel.
    @Test func aFloodEndsTheConnection() throws {
        var pair = makePair([0])
        let (handles, channels) = try open(1, of: &pair)
        for _ in 0...LEHost.waitingRequestLimit {
            say([0x0A, UInt8(handles.characteristics[0]), 0], channels[0], &pair)
        }
        #expect(pair.peers(0).count == 1)
        say([0x0A, UInt8(handles.characteristics[0]), 0], channels[0], &pair)
        #expect(pair.peers(0).isEmpty)
    }

    /// Answers that nobody asked for, confirmations, and PDUs that are none have no effect; unknown requests are refused.
    @Test func strayPDUsAreIgnored() throws {
        var pair = makePair([0])
        let (_, channels) = try open(1, of: &pair)
        for pdu in [[0x0B, 1], [0x1E], [0x01, 0x0A, 1, 0, 1], [0x1B], [0x1D], [0xD2, 1]] as [[UInt8]] {
            say(pdu, channels[0], &pair)
        }
        #expect(pair.received[1].isEmpty)
        say([0x3F], channels[0], &pair)
        #expect(pair.received[1] == [[0x01, 0x3F, 0, 0, 0x06]])
        #expect(pair.peers(0).count == 1)
    }

    /// An answer by another bearer than the request's is none, nor are those by the fixed channel.
    @Test func answersComeByTheBearerOfTheRequest() throws {
        var pair = makePair([1])
        _ = try pair.connect()
        let psm = Self.psm
        #expect(pair.host(0) { host, _ in host.listen(psm: psm, encryptionRequired: true) })
        try secure(&pair)
        pair.host(1) { host, now in
            host.connections[0].watch.takesBearers = true
            host.openBearer(0, at: now)
        }
        pair.settle()
        let channel = try #require(opened(pair.log[0]).first)
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.request(.read(0x55), of: id, at: $1) })
        pair.settle()
        #expect(pair.received[0].last == [0x0A, 0x55, 0])
        pair.controllers.sendFrame([3, 0, 4, 0, 0x0B, 6, 6], to: 1)
        pair.settle()
        #expect(throws: HostPair.Missing.self) { try pair.result(of: operation) }
        // Values and indications may come by it, and the latter are confirmed by it (Part F, 3.4.7).
        say([0x1B, 0x55, 0, 1], channel, &pair, from: 0)
        say([0x1D, 0x55, 0, 2], channel, &pair, from: 0)
        #expect(pair.received[1] == [[1], [2]])
        #expect(pair.received[0].last == [0x1E])
        say([0x0B, 7, 7], channel, &pair, from: 0)
        #expect(try pair.result(of: operation) == .success(.value([7, 7])))
    }
}
