import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Credit-based channels with a peer that answers late, wrongly, or not what was asked (Core Specification 5.4, Vol 3,
/// Part A, 4).
@Suite(.tags(.host)) struct SignallingTests {
    private static let stranger = Address.staticRandom(0xE6E6_E6E6_E6E6)

    private func connected() throws -> (Attack, ConnectionID) {
        let attack = Attack()
        try attack.start(as: Self.stranger)
        try attack.beConnected(as: Self.stranger)
        attack.refuseRequests()
        return (attack, try attack.connection())
    }

    private func say(_ attack: Attack, _ command: SignallingCommand, _ identifier: UInt8) {
        attack.send(command.encode(identifier: identifier), on: 5)
    }

    private func signals(_ attack: Attack) throws -> [(identifier: UInt8, SignallingCommand)] {
        try attack.frames(on: 5).map { try SignallingCommand.decode($0) }
    }

    /// Opens a channel; the peer's end is `remote`.
    private func open(_ attack: Attack, _ id: ConnectionID, remote: UInt16) throws -> (CreditChannelID, UInt16) {
        let operation = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        guard let (identifier, request) = try signals(attack).last,
            case .connectionRequest(_, let local, _, _, _) = request
        else { throw HostPair.Missing(what: "a request") }
        say(attack, .connectionResponse(destination: remote, mtu: 100, mps: 100, credits: 1, result: 0), identifier)
        for case .channelOpened(let channel, id, 0x80, operation) in attack.log { return (channel, local) }
        throw HostPair.Missing(what: "a channel")
    }

    @Test func aDisconnectionRequestWhileAChannelIsOpenedIsRefused() throws {
        let (attack, id) = try connected()
        let operation = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        let (identifier, _) = try #require(try signals(attack).last)
        say(attack, .disconnectionRequest(destination: 0x40, source: 0), 9)
        // Not understood for want of such a channel, with the two numbers (4.1).
        #expect(attack.frames(on: 5) == [[0x01, 9, 6, 0, 2, 0, 0x40, 0, 0, 0]])
        say(attack, .connectionResponse(destination: 0x50, mtu: 100, mps: 100, credits: 1, result: 0), identifier)
        #expect(
            attack.log.contains { if case .channelOpened(_, id, 0x80, operation) = $0 { true } else { false } })
    }

    @Test func aSourceThatDoesNotMatchIsPassedOver() throws {
        let (attack, id) = try connected()
        let (channel, local) = try open(attack, id, remote: 0x50)
        say(attack, .disconnectionRequest(destination: local, source: 0x51), 9)
        #expect(attack.frames(on: 5).isEmpty)
        #expect(attack.host { host, _ in host.maximumSDU(channel) } == 100)
        say(attack, .disconnectionRequest(destination: local, source: 0x50), 10)
        #expect(attack.frames(on: 5) == [[0x07, 10, 4, 0, UInt8(local), 0, 0x50, 0]])
        #expect(attack.host { host, _ in host.maximumSDU(channel) } == nil)
    }

    /// Both sides close at once, a new channel is opened, and then the answer to the first request comes.
    @Test func aLateAnswerToACloseDoesNotCloseAnother() throws {
        let (attack, id) = try connected()
        let (first, local) = try open(attack, id, remote: 0x50)
        attack.host { $0.closeChannel(first, at: $1) }
        attack.settle()
        let (identifier, _) = try #require(try signals(attack).last)
        say(attack, .disconnectionRequest(destination: local, source: 0x50), 9)
        let (second, other) = try open(attack, id, remote: 0x50)
        #expect(other != local)
        say(attack, .disconnectionResponse(destination: 0x50, source: local), identifier)
        #expect(attack.host { host, _ in host.maximumSDU(second) } == 100)
    }

    /// The same when the peer takes more than 30 s.
    @Test func anAnswerAfterTheDeadlineDoesNotCloseAnother() throws {
        let (attack, id) = try connected()
        let (first, local) = try open(attack, id, remote: 0x50)
        attack.host { $0.closeChannel(first, at: $1) }
        attack.settle()
        let (identifier, _) = try #require(try signals(attack).last)
        attack.advance(seconds: 31)
        #expect(attack.log.contains { if case .channelClosed(first) = $0 { true } else { false } })
        let (second, other) = try open(attack, id, remote: 0x51)
        #expect(other != local)
        say(attack, .disconnectionResponse(destination: 0x50, source: local), identifier)
        #expect(attack.host { host, _ in host.maximumSDU(second) } == 100)
        // Frames for the number that has ended go nowhere.
        attack.send([1, 0, 7], on: UInt8(local))
        #expect(attack.log.allSatisfy { if case .channelReceived = $0 { false } else { true } })
    }

    /// No identifier is used for two requests that wait, and none is answered by a response of another kind.
    @Test func anIdentifierIsOfOneRequestAtATime() throws {
        let (attack, id) = try connected()
        _ = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        let (first, _) = try #require(try signals(attack).last)
        say(attack, .disconnectionResponse(destination: 0, source: 0x40), first)
        say(attack, .parameterUpdateResponse(result: 0), first)
        for _ in 0..<300 {
            _ = attack.host { $0.openChannel(id, psm: 0x81, at: $1) }
            attack.settle()
            let (identifier, _) = try #require(try signals(attack).last)
            #expect(identifier != first)
            say(attack, .connectionResponse(destination: 0, mtu: 0, mps: 0, credits: 0, result: 2), identifier)
        }
        #expect(attack.log.filter { if case .channelRefused = $0 { true } else { false } }.count == 300)
        say(attack, .connectionResponse(destination: 0x50, mtu: 100, mps: 100, credits: 1, result: 0), first)
        #expect(attack.log.contains { if case .channelOpened = $0 { true } else { false } })
    }

    /// What the host cannot use the peer takes for open.
    @Test func aChannelWithUselessSizesIsClosed() throws {
        let (attack, id) = try connected()
        let operation = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        let (identifier, _) = try #require(try signals(attack).last)
        say(attack, .connectionResponse(destination: 0x50, mtu: 22, mps: 100, credits: 1, result: 0), identifier)
        #expect(
            attack.log.contains {
                if case .channelRefused(operation, id, .unacceptableParameters) = $0 { true } else { false }
            })
        #expect(attack.frames(on: 5).last?.suffix(4) == [0x50, 0, 0x40, 0])
    }

    // MARK: Limits on the peer

    private func listening() throws -> (Attack, UInt16) {
        let (attack, _) = try connected()
        #expect(attack.host { host, _ in host.listen(psm: 0x80) })
        say(attack, .connectionRequest(psm: 0x80, source: 0x60, mtu: 100, mps: 100, credits: 10), 1)
        guard case .connectionResponse(let local, _, _, _, 0)? = try signals(attack).last?.1 else {
            throw HostPair.Missing(what: "a channel")
        }
        return (attack, local)
    }

    @Test func aFrameWithoutACreditClosesTheChannel() throws {
        let (attack, local) = try listening()
        let channel = try #require(
            attack.log.compactMap { if case .channelOpened(let id, _, _, nil) = $0 { id } else { nil } }.last)
        // No credits are given back to a peer that is not read from.
        attack.host { $0.setReceiving(false, on: channel, at: $1) }
        for _ in 0..<CreditChannel.credits { attack.send([1, 0, 7], on: UInt8(local)) }
        #expect(!attack.hasDiagnostic("a frame without a credit"))
        attack.send([1, 0, 7], on: UInt8(local))
        #expect(attack.hasDiagnostic("a frame without a credit"))
        #expect(attack.frames(on: 5).last?.first == 0x06)
    }

    @Test func aSourceThatIsInUseIsRefused() throws {
        let (attack, _) = try listening()
        say(attack, .connectionRequest(psm: 0x80, source: 0x60, mtu: 100, mps: 100, credits: 10), 2)
        #expect(
            try signals(attack).last?.1
                == .connectionResponse(destination: 0, mtu: 0, mps: 0, credits: 0, result: 0x000A))
    }

    /// A channel that is closed with data queued, for which the peer gives no credits.
    @Test func aChannelThatCannotDrainIsClosedAfterFiveSeconds() throws {
        let (attack, id) = try connected()
        let (channel, _) = try open(attack, id, remote: 0x50)
        let sdu = [UInt8](repeating: 1, count: 100)
        for _ in 0..<3 { #expect(attack.host { host, _ in host.trySend(sdu.span.bytes, on: channel) } == true) }
        attack.settle()
        attack.host { $0.closeChannel(channel, at: $1) }
        attack.settle()
        _ = attack.frames(on: 5)
        attack.advance(seconds: 4.9)
        #expect(attack.frames(on: 5).isEmpty)
        attack.advance(seconds: 0.2)
        #expect(attack.frames(on: 5).map { $0[0] } == [0x06])
    }

    /// Each credit comes before five seconds have passed without one; 60 s after the channel was closed no more is sent.
    @Test func aSlowChannelDrainsForAMinute() throws {
        let (attack, id) = try connected()
        let (channel, _) = try open(attack, id, remote: 0x50)
        let sdu = [UInt8](repeating: 1, count: 100)
        for _ in 0..<25 { #expect(attack.host { host, _ in host.trySend(sdu.span.bytes, on: channel) } == true) }
        attack.settle()
        attack.host { $0.closeChannel(channel, at: $1) }
        attack.settle()
        _ = attack.frames(on: 5)
        var sent = 0
        for round in 1...12 {
            _ = attack.frames(on: 0x50)
            attack.advance(seconds: 4.9)
            #expect(attack.frames(on: 5).isEmpty, "in round \(round)")
            say(attack, .flowControlCredit(channel: 0x50, credits: 1), 9)
            sent += attack.frames(on: 0x50).count
        }
        #expect(sent == 12)
        attack.advance(seconds: 1.3)
        #expect(attack.frames(on: 5).map { $0[0] } == [0x06])
    }

    @Test func whoOpensAChannelIsToldThatTheConnectionHasEnded() throws {
        let (attack, id) = try connected()
        let operation = try #require(attack.host { $0.openChannel(id, psm: 0x80, at: $1) })
        attack.settle()
        attack.disconnect()
        #expect(
            attack.log.contains { if case .channelRefused(operation, id, .timedOut) = $0 { true } else { false } })
    }
}
