import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host)) struct BringUpTests {
    @Test(arguments: [false, true], [false, true])
    func readyWithWhatTheControllerHas(isExtended: Bool, usesV2: Bool) {
        var pair = HostPair(.init(isExtended: isExtended, hasDataLength: usesV2, usesBufferSizeV2: usesV2))
        pair.start()
        #expect(pair.host(0) { host, _ in host.state } == .ready)
        #expect(pair.controllers.sides[0].commands.contains(0x2060) == usesV2)
        #expect(pair.controllers.sides[0].commands.contains(0x2024) == usesV2)
        #expect(pair.host(0) { host, _ in host.controller.usesExtendedAdvertising } == isExtended)
        #expect(pair.controllers.sides[0].mask >> 61 & 1 == 1)
    }

    @Test func silentControllerFailsAfterItsDeadlines() {
        var pair = HostPair()
        pair.controllers.sides[0].isSilent = true
        pair.start()
        #expect(pair.host(0) { host, _ in host.state } == .starting)
        pair.advance(seconds: 13)
        guard case .failed(let why) = pair.host(0, { host, _ in host.state }) else {
            Issue.record("a silent controller was not found out")
            return
        }
        #expect(why.contains("did not answer HCI command 0xc03"))
        #expect(pair.host(0) { host, _ in host.deadline } == nil)
    }

    /// Nothing ran for a while, neither the host nor, maybe, its controller.
    @Test(arguments: [true, false]) func whoWakesLateGivesTheControllerASecond(answers: Bool) {
        var pair = HostPair()
        pair.controllers.sides[0].isSilent = true
        pair.start()
        pair.now += 9_000_000_000
        pair.host(0) { $0.wake(at: $1) }
        #expect(pair.host(0) { host, now in host.deadline == now + 1_000_000_000 })
        if answers {
            pair.controllers.sides[0].isSilent = false
            pair.controllers.toHost[0].append([0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00])
            pair.settle()
        }
        pair.advance(seconds: 1)
        #expect(pair.host(0) { host, _ in host.state } == (answers ? .ready : .starting))
        let isFoundOut = pair.log[0].contains {
            if case .diagnostic(let text) = $0 { text.contains("did not answer") } else { false }
        }
        #expect(isFoundOut == !answers)
    }

    @Test func hardwareErrorEndsConnectionsAndStartsAgain() throws {
        var pair = HostPair()
        _ = try pair.connect()
        pair.controllers.toHost[1].append([0x04, 0x10, 0x01, 0x07])
        pair.settle()
        #expect(pair.peers(1).isEmpty)
        #expect(pair.peers(0).isEmpty)  // the reset dropped the link
        #expect(pair.host(1) { host, _ in host.state } == .ready)
    }

    /// Steps that a controller may refuse: an answer that is too short does not do more harm, whatever it has.
    @Test(
        arguments: [0x1001, 0x1002, 0x1003, 0x1009, 0x200F, 0x202A, 0x202F] as [UInt16],
        [[0], [0, 1], []] as [[UInt8]])
    func anAnswerThatIsTooShortIsARefusal(opcode: UInt16, answer: [UInt8]) {
        var options = VirtualControllers.Options()
        options.resolvingListSize = 4
        options.hash = { _, _ in 0 }
        var refused = options
        refused.answers = [opcode: [0x01]]
        options.answers = [opcode: answer]
        // One octet is all that some answers have.
        guard answer.count < 2 || opcode != 0x200F && opcode != 0x202A else { return }
        var pair = HostPair(options)
        pair.start()
        var other = HostPair(refused)
        other.start()
        let told = pair.host(0) { host, _ in host.controller }
        let expected = other.host(0) { host, _ in host.controller }
        #expect(pair.host(0) { host, _ in host.state } == .ready)
        #expect(told == expected)
        let isSaid = pair.log[0].contains {
            if case .diagnostic(let text) = $0 { text.contains("is too short; it is done without") } else { false }
        }
        #expect(isSaid == !answer.isEmpty)
    }

    /// Without these nothing can be done.
    @Test func anAnswerThatIsNeededIsMissed() {
        var options = VirtualControllers.Options()
        options.answers = [0x2003: [0, 1]]
        var pair = HostPair(options)
        pair.start()
        #expect(
            pair.host(0) { host, _ in host.state }
                == .failed("The controller's answer to the step leFeatures of its bring-up is too short."))
    }

    @Test func controllerWithoutBuffersIsRefused() {
        var pair = HostPair(.init(aclLength: 20))
        pair.start()
        guard case .failed(let why) = pair.host(0, { host, _ in host.state }) else {
            Issue.record("ready without buffers")
            return
        }
        #expect(why.contains("at least one of 27"))
    }
}
