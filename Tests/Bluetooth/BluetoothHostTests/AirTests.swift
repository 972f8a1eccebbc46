import FerryTesting
import TestSupport
import Testing
import VirtualControllers

/// Any number of controllers, with reach, signal, losses and pace between them; time is moved by the tests.
@Suite(.tags(.host, .advertising)) struct AirTests {
    /// What controller 1 hears controller 0 with, in dBm, after some lines.
    static let signals: [([String], Int8?)] = [
        ([], -50),
        (["signal 0 1 -71"], -71),
        (["signal 1 0 -71"], -71),
        (["signal 0 1 20"], 20),
        (["signal 0 1 out"], nil),
        (["signal 0 1 out", "signal 0 1 -127"], -127),
        (["signal 0-1 2 out"], -50),
        (["signal 0-2 0-2 -33"], -33),
        (["signal * 1 out"], nil),
        (["signal * * -80", "signal 1 2 out"], -80),
        (["place 0 0 0", "place 1 1 0"], -50),
        (["place 0 0 0", "place 1 0 0"], -25),
        (["place 0 -3 0", "place 1 3 8"], -75),
        (["place 0 0 0", "place 1 63 0"], -95),
        (["place 0 0 0", "place 1 64 0"], nil),
        (["place 0 0 0"], -50),
        (["place * 7 7"], -25),
        (["place 0 0 0", "place 1 64 0", "signal 0 1 -60"], -60),
        (["place 0 0 0", "place 1 10 0", "signal 0 1 out", "signal 0 1 auto"], -75),
        (["loss 0 1 100"], nil),
        (["loss 0 1 100", "loss 0 1 0"], -50),
        (["loss 0 1 100", "signal 0 1 -60"], nil),
        (["loss 0 2 100"], -50),
    ]

    @Test(arguments: signals, [false, true])
    func anAdvertiserIsHeardByItsSignal(setting: ([String], Int8?), isExtended: Bool) {
        var rig = AirRig(3, VirtualControllers.Options(isExtended: isExtended))
        for line in setting.0 { rig.say(line) }
        if isExtended {
            rig.command(0x2036, [0, 0x13, 0] + [UInt8](repeating: 0, count: 22), 0)
            rig.command(0x2037, [0, 3, 1, 3, 2, 1, 6], 0)
            rig.command(0x2039, [1, 1, 0, 0, 0, 0], 0)
            rig.command(0x2042, [1, 0, 0, 0, 0, 0], 1)
        } else {
            rig.advertise(0)
            rig.scan(1)
        }
        let reports = rig.events(1).filter { $0[0] == 0x3E }
        let heard = reports.map { Int8(bitPattern: isExtended ? $0[17] : $0[$0.count - 1]) }
        #expect(Set(heard) == Set([setting.1].compactMap { $0 }))
        #expect(reports.isEmpty == (setting.1 == nil))
    }

    @Test func whoIsOutOfReachIsConnectedToWhenItComes() throws {
        var rig = AirRig(3)
        rig.say("signal 0 1 out")
        rig.advertise(0)
        rig.initiate(1, 0)
        rig.controllers.meet()
        #expect(rig.events(1).isEmpty)
        #expect(!rig.controllers.isConnected(0, 1))
        rig.say("signal 0 1 -90")
        rig.controllers.meet()
        #expect(rig.controllers.isConnected(0, 1))
        #expect(rig.events(1).map { $0[2] } == [0x01])
        #expect(rig.events(0).map { $0[2] } == [0x01])
        #expect(rig.controllers.obey("connections") == ["central 1, peripheral 0: -90 dBm, 0 % lost", "ok"])
        #expect(rig.controllers.obey("show 0 1") == ["0 and 1: -90 dBm, 0 % lost, connected", "ok"])
        #expect(rig.controllers.obey("show 0 2") == ["0 and 2: -50 dBm, 0 % lost", "ok"])
    }

    /// Both sides are told, after the supervision timeout, neither before; others' connections stay.
    @Test(arguments: ["signal 0 1 out", "loss 0 1 100", "place 0 1000 0"])
    func aConnectionOutOfReachEnds(line: String) throws {
        var rig = AirRig(3)
        rig.say("place 1-2 0 0", "place 0 1 0")
        let lost = try rig.connect(1, 0)
        let kept = try rig.connect(1, 2)
        rig.advance(to: 10_000)
        rig.say(line)
        rig.advance(to: 10_499)
        #expect(rig.events(0).isEmpty && rig.events(1).isEmpty)
        rig.advance(to: 10_500)
        let ended: [[UInt8]] = [[0x05, 4, 0, UInt8(lost & 0xFF), 0, 0x08]]
        #expect(rig.events(0) == ended)
        #expect(rig.events(1) == ended)
        #expect(rig.events(2).isEmpty)
        #expect(rig.controllers.isConnected(1, 2))
        rig.send(7, kept, 1)
        #expect(rig.data(2).map(\.bytes) == [[7]])
        rig.send(7, lost, 1)
        #expect(rig.data(0).isEmpty)
        // The handle is free again.
        rig.say("signal 0 1 -50", "loss 0 1 0")
        #expect(try rig.connect(1, 0) == lost)
    }

    @Test func aConnectionThatComesBackInTimeGoesOn() throws {
        var rig = AirRig(2)
        let handle = try rig.connect(1, 0)
        for round in 1...5 as ClosedRange<Int64> {
            rig.advance(to: round * 1_000)
            rig.say("signal 0 1 out")
            rig.send(1, handle, 0)
            rig.send(2, handle, 0)
            rig.send(3, handle, 1)
            rig.advance(to: round * 1_000 + 499)
            #expect(rig.packets(0).isEmpty && rig.packets(1).isEmpty)
            rig.say("signal 0 1 -94")
            rig.advance(to: round * 1_000 + 529)
            #expect(rig.data(1).map(\.bytes) == [[1], [2]])
            #expect(rig.packets(0).filter { $0[0] == 0x04 } == [[0x04, 0x13, 5, 1, UInt8(handle), 0, 2, 0]])
        }
        #expect(rig.controllers.faults.isEmpty)
    }

    @Test func readRSSIFollows() throws {
        var rig = AirRig(3)
        let first = try rig.connect(1, 0)
        let second = try rig.connect(1, 2)
        rig.say("signal 1 0 -61", "signal 1 2 -82")
        for (handle, signal) in [(first, Int8(-61)), (second, -82)] {
            _ = rig.packets(1)
            rig.command(0x1405, [UInt8(handle), 0], 1)
            #expect(
                rig.packets(1) == [[0x04, 0x0E, 7, 1, 0x05, 0x14, 0, UInt8(handle), 0, UInt8(bitPattern: signal)]])
        }
        rig.command(0x1405, [0x99, 0], 1)
        #expect(rig.packets(1) == [[0x04, 0x0E, 7, 1, 0x05, 0x14, 2, 0x99, 0, 127]])
    }

    /// Each connection has its data, its completed packets and its end for itself.
    @Test func oneControllerHasManyConnections() throws {
        var rig = AirRig(6)
        // As central of three, and as peripheral of one.
        var handles = try (1...3).map { try rig.connect(0, $0) }
        handles.append(try rig.connect(4, 0))
        #expect(Set(handles).count == 4)
        for (other, handle) in zip(1...4, handles) {
            rig.send(UInt8(other), handle, 0)
            rig.send(UInt8(other + 10), handle, other)
        }
        #expect(rig.data(0).map(\.bytes) == [[11], [12], [13], [14]])
        for other in 1...4 { #expect(rig.data(other).map(\.bytes) == [[UInt8(other)]]) }
        rig.command(0x0406, [UInt8(handles[1]), 0, 0x13], 0)
        #expect(rig.events(0) == [[0x05, 4, 0, UInt8(handles[1]), 0, 0x16]])
        #expect(rig.events(2) == [[0x05, 4, 0, UInt8(handles[1]), 0, 0x13]])
        // Whose it is not cannot end it.
        rig.command(0x0406, [UInt8(handles[0]), 0, 0x13], 5)
        #expect(rig.controllers.isConnected(0, 1))
        rig.send(9, handles[0], 5)
        #expect(rig.data(1).isEmpty && rig.data(0).isEmpty)
        rig.controllers.reset(0)
        for (other, handle) in [(1, handles[0]), (3, handles[2]), (4, handles[3])] {
            #expect(rig.events(other) == [[0x05, 4, 0, UInt8(handle), 0, 0x08]])
        }
        #expect(rig.controllers.faults.isEmpty)
    }

    @Test func connectionsAreBounded() throws {
        var options = VirtualControllers.Options()
        options.connectionCount = 2
        var rig = AirRig(4, options)
        _ = try rig.connect(0, 1)
        _ = try rig.connect(0, 2)
        _ = rig.packets(0)
        rig.advertise(3)
        rig.initiate(0, 3)
        #expect(rig.packets(0) == [[0x04, 0x0F, 4, 0x09, 1, 0x0D, 0x20]])
        // Nor is one connected to that has no room.
        rig.advertise(0)
        rig.initiate(3, 0)
        #expect(!rig.controllers.isConnected(0, 3))
    }

    /// A pair is connected once.
    @Test func whoIsConnectedIsNotConnectedToAgain() throws {
        var rig = AirRig(2)
        _ = try rig.connect(0, 1)
        rig.advertise(1)
        rig.initiate(0, 1)
        rig.advertise(0)
        #expect(rig.controllers.connections.count == 1)
    }

    /// What is lost comes later, in order and once; the same draws each time.
    @Test func lossesDelay() throws {
        var arrivals: [[Int64]] = []
        for _ in 0..<2 {
            var rig = AirRig(2, VirtualControllers.Options(aclCount: 100))
            let handle = try rig.connect(1, 0)
            rig.say("loss 0 1 60", "pace 1")
            for byte in 0..<100 as Range<UInt8> { rig.send(byte, handle, 0) }
            var heard: [UInt8] = []
            var times: [Int64] = []
            var time: Int64 = 0
            while heard.count < 100, time < 60_000 {
                time += 10
                rig.advance(to: time)
                for (_, bytes) in rig.data(1) {
                    heard += bytes
                    times.append(time)
                }
                // Sixteen events in a row are seldom lost; the connection would have to be made anew.
                guard rig.controllers.isConnected(0, 1) else { break }
            }
            #expect(heard == Array(0..<100))
            #expect(times.allSatisfy { $0 % 30 == 0 })
            arrivals.append(times)
        }
        #expect(arrivals[0] == arrivals[1])
        // 100 of 250 events, within four deviations.
        let last = try #require(arrivals[0].last)
        #expect((175 * 30...325 * 30).contains(last))
    }

    @Test func aPaceBoundsWhatAnEventCarries() throws {
        var rig = AirRig(2)
        let handle = try rig.connect(1, 0)
        rig.say("pace 3")
        rig.advance(to: 1_000)
        for byte in 0..<4 as Range<UInt8> { rig.send(byte, handle, 0) }
        #expect(rig.data(1).isEmpty)
        #expect(rig.controllers.deadline == 1_020_000_000)
        rig.advance(to: 1_019)
        #expect(rig.data(1).isEmpty)
        rig.advance(to: 1_020)
        #expect(rig.data(1).map(\.bytes) == [[0], [1], [2]])
        #expect(rig.events(0) == [[0x13, 5, 1, UInt8(handle), 0, 3, 0]])
        rig.advance(to: 1_049)
        #expect(rig.data(1).isEmpty)
        rig.advance(to: 1_050)
        #expect(rig.data(1).map(\.bytes) == [[3]])
        #expect(rig.controllers.deadline == nil)
        // What waits goes on when there is no pace any more, and nothing overtakes it.
        rig.send(4, handle, 0)
        rig.say("pace off")
        rig.send(5, handle, 0)
        rig.advance(to: 1_080)
        #expect(rig.data(1).map(\.bytes) == [[4], [5]])
        rig.send(6, handle, 0)
        #expect(rig.data(1).map(\.bytes) == [[6]])
    }

    /// What the other side takes part in waits for it: encryption, and the end.
    @Test func proceduresWaitForReach() throws {
        var rig = AirRig(2)
        let handle = try rig.connect(1, 0)
        rig.say("signal 0 1 out")
        rig.command(0x2019, [UInt8(handle), 0] + [UInt8](repeating: 1, count: 26), 1)
        #expect(rig.events(0).isEmpty)
        rig.say("signal 0 1 -50")
        rig.advance(to: 30)
        #expect(rig.events(0) == [[0x3E, 13, 0x05, UInt8(handle), 0] + [UInt8](repeating: 1, count: 10)])
        rig.say("signal 0 1 out")
        rig.command(0x0406, [UInt8(handle), 0, 0x13], 1)
        rig.advance(to: 529)
        #expect(rig.events(0).isEmpty && rig.controllers.isConnected(0, 1))
        rig.advance(to: 530)
        #expect(rig.events(0).map(\.last) == [0x08])
        #expect(rig.events(1).map(\.last) == [0x08])
    }

    @Test func aHostThatDoesNotReadHearsNoAdvertisers() {
        var rig = AirRig(2)
        rig.advertise(0)
        rig.controllers.sides[1].isStalled = true
        rig.scan(1)
        for _ in 0..<10 { rig.controllers.meet() }
        #expect(rig.events(1).isEmpty)
        rig.controllers.sides[1].isStalled = false
        rig.controllers.meet()
        #expect(!rig.events(1).isEmpty)
    }

    /// A packet for which there was no buffer is lost and complained of, and nothing grows.
    @Test func whoOverrunsTheBuffersLosesPackets() throws {
        var rig = AirRig(2)
        let handle = try rig.connect(1, 0)
        rig.say("signal 0 1 out")
        for byte in 0..<6 as Range<UInt8> { rig.send(byte, handle, 1) }
        #expect(rig.controllers.faults == ["5 packets held", "5 packets held"])
        rig.say("signal 0 1 -50")
        rig.advance(to: 30)
        #expect(rig.data(0).map(\.bytes) == [[0], [1], [2], [3]])
    }

    /// Commands that are too short, too long or nonsense are refused, never a trap.
    @Test(arguments: [false, true]) func anyCommandIsAnswered(isExtended: Bool) {
        var random = SplitMix64(seed: 7)
        var options = VirtualControllers.Options(isExtended: isExtended)
        options.resolvingListSize = 4
        var opcodes: [UInt16] = [0x0406, 0x0C01, 0x0C03, 0x1001, 0x1002, 0x1003, 0x1005, 0x1009, 0x1405]
        opcodes += 0x2001...0x2060
        var rig = AirRig(3, options)
        for _ in 0..<4_000 {
            let side = Int.random(in: 0..<3, using: &random)
            let longest = Bool.random(using: &random) ? 40 : 255
            let count = Int.random(in: 0...longest, using: &random)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            // Often a connection's handle.
            if count > 1, Bool.random(using: &random) { bytes.replaceSubrange(0..<2, with: [0x40, 0]) }
            rig.command(opcodes.randomElement(using: &random) ?? 0x0C03, bytes, side)
            rig.controllers.receive([0x02] + bytes, from: side)
            rig.advance(to: rig.controllers.now / 1_000_000 + 5)
            rig.controllers.meet()
            for side in 0..<3 { _ = rig.packets(side) }
        }
        rig.command(0x0C03, [], 0)
        #expect(rig.packets(0).last == [0x04, 0x0E, 4, 1, 0x03, 0x0C, 0])
    }
}
