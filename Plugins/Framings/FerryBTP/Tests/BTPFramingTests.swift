import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerryBTP

@Suite(.tags(.framing)) struct BTPFramingTests {
    private static let count40 = [UInt8](0..<40)

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 4)
        let messages = [0, 1, 15, 16, 17, 40, 244, 1583, 5000, 0].map { random.bytes($0) }
        let verifier = FramingVerifier(BTPFraming(), boundaries: .carryMeaning, minimumChunkSize: 20)
        try verifier.verifyExchange(messages, chunkSizes: [20, 21, 182, 244, 512])
        try verifier.verifyCancelling(messages, chunkSizes: [20, 244])
    }

    /// As connectedhomeip 1.4.2 writes them.
    @Test(
        arguments: [
            ("656c04000000f70006", [4], 247, 6), ("656c04000000170006", [4], 23, 6), ("656c04000000000006", [4], 0, 6),
            ("656c04000000050206", [4], 517, 6), ("656c04000000b900ff", [4], 185, 255),
            ("656c34000000f70006", [4, 3], 247, 6),
        ] as [(String, [UInt8], UInt16, UInt8)])
    func requestsAreTheReferences(_ packet: String, _ versions: [UInt8], _ mtu: UInt16, _ window: UInt8) {
        let request = BTPRequest(versions: versions, mtu: mtu, window: window)
        #expect(digits(request.bytes) == packet)
        #expect(BTPRequest(bytes(packet)) == request)
    }

    @Test(
        arguments: [("656c04f40006", 4, 244, 6), ("656c04140006", 4, 20, 6), ("656c00140006", 0, 20, 6)]
            as [(String, UInt8, UInt16, UInt8)])
    func responsesAreTheReferences(_ packet: String, _ version: UInt8, _ fragment: UInt16, _ window: UInt8) {
        let response = BTPResponse(version: version, fragment: fragment, window: window)
        #expect(digits(response.bytes) == packet)
        #expect(BTPResponse(bytes(packet)) == response)
    }

    /// The reference's rows, in which its central owes no acknowledgement: the peripheral takes them, acknowledges number 2 after its delay,
    /// and sends a message.
    @Test func packetsAreTheReferences() throws {
        var peripheral = try HandSession.open(.responder, packetSize: 20)
        for packet in [
            "01002800000102030405060708090a0b0c0d0e0f", "0201101112131415161718191a1b1c1d1e1f2021", "0602222324252627",
        ] {
            try peripheral.receive(packet)
            #expect(try peripheral.next() == nil)
        }
        #expect(peripheral.messages() == [Self.count40])
        try peripheral.pass(.milliseconds(2499))
        #expect(try peripheral.next() == nil)
        try peripheral.pass(.milliseconds(1))
        #expect(try peripheral.all() == ["080201"])
        try peripheral.send([0x7F])
        #expect(try peripheral.all() == ["050201007f"])
        try peripheral.receive("0d0203050068656c6c6f")
        #expect(peripheral.messages() == [[UInt8]("hello".utf8)])
    }

    /// The same from the central, whose first packet acknowledges the handshake's response.
    @Test func theCentralAcknowledgesTheResponse() throws {
        var central = try HandSession.open(.initiator, packetSize: 20)
        try central.send(Self.count40)
        #expect(
            try central.all(20) == [
                "0900002800000102030405060708090a0b0c0d0e", "02010f101112131415161718191a1b1c1d1e1f20",
                "060221222324252627",
            ])
        try central.receive("080201")
        try central.receive("050201007f")
        #expect(central.messages() == [[0x7F]])
        try central.send([UInt8]("hello".utf8))
        #expect(try central.all() == ["0d0203050068656c6c6f"])
    }

    /// Heads of 600 bytes in packets of 244.
    @Test func aLongMessageIsCutAsTheReferenceCutsIt() throws {
        var central = try HandSession.open(.initiator)
        try central.pass(.milliseconds(2500))
        #expect(try central.all() == ["080000"])
        try central.send((0..<600).map { UInt8(truncatingIfNeeded: $0) })
        let packets = try central.all()
        #expect(packets.map { $0.count / 2 } == [244, 244, 120])
        #expect(packets.map { $0.prefix(6) } == ["010158", "0202f0", "0603e2"])
    }

    // MARK: The handshake

    /// ATT_MTU, or ATT_MTU - 3, or 0 for what the central does not know; own is what this side can send at once.
    @Test(
        arguments: [
            (247, 244, 244), (244, 244, 241), (0, 244, 244), (0, 20, 20), (23, 20, 20), (20, 20, 20), (517, 512, 244),
            (185, 182, 182),
            (182, 182, 179), (65535, 182, 182), (1, 182, 20),
        ] as [(UInt16, Int, Int)])
    func packetsFitWhateverTheRequestMeans(_ asked: UInt16, _ own: Int, _ size: Int) throws {
        var peripheral = HandSession(.responder)
        try peripheral.receive(digits(BTPRequest(mtu: asked, window: 6).bytes))
        #expect(try peripheral.next(own) == digits(BTPResponse(version: 4, fragment: UInt16(size), window: 6).bytes))
    }

    @Test(arguments: [(3, 3), (6, 6), (7, 6), (255, 6)] as [(UInt8, UInt8)])
    func theSmallerWindowCounts(_ asked: UInt8, _ window: UInt8) throws {
        var peripheral = HandSession(.responder)
        try peripheral.receive(digits(BTPRequest(mtu: 247, window: asked).bytes))
        #expect(try peripheral.next() == digits(BTPResponse(version: 4, fragment: 244, window: window).bytes))
    }

    @Test func noCommonVersionIsAnsweredAndEnds() throws {
        var peripheral = HandSession(.responder)
        try peripheral.receive("656c35000000f70006")
        #expect(try peripheral.next(20) == "656c00140006")
        let error = #expect(throws: FerryError.self) { try peripheral.next(20) }
        #expect(error?.code == .incompatiblePeer)
        #expect(error?.message.contains("5, 3") == true)
        var central = HandSession(.initiator)
        _ = try central.next()
        let refusal = #expect(throws: FerryError.self) { try central.receive("656c00140006") }
        #expect(refusal?.code == .incompatiblePeer)
    }

    @Test(arguments: [
        (LinkRole.responder, "", "0 bytes (none)"), (.responder, "656c04000000f700", "8 bytes"),
        (.responder, "656d04000000f70006", "65 6d"), (.responder, "0500010041", "5 bytes (05 00"),
        (.responder, "656c04000000f70000", "window of 0"), (.responder, "656c04000000f70002", "window of 2"),
        (.initiator, "656c04f400", "5 bytes"), (.initiator, "656c04130006", "packets of 19 bytes"),
        (.initiator, "656c04000006", "packets of 0 bytes"), (.initiator, "656c04f40001", "window of 1"),
        (.initiator, "656c04000000f70006", "9 bytes"), (.initiator, "080000", "3 bytes"),
        (.initiator, "656c05f40006", "the peer 5"),
    ])
    func hostileHandshakesAreNamed(_ role: LinkRole, _ packet: String, _ what: String) throws {
        var hand = HandSession(role)
        if role == .initiator { #expect(try hand.next() == "656c04000000f40006") }
        let error = #expect(throws: FerryError.self) { try hand.receive(packet) }
        #expect(error?.message.contains(what) == true, "\(error?.message ?? "none")")
        #expect(throws: FerryError.self) { try hand.receive("050001007f") }
    }

    @Test(arguments: LinkRole.allCases)
    func aHandshakeThatDoesNotComeTimesOut(_ role: LinkRole) throws {
        var hand = HandSession(role)
        if role == .initiator { _ = try hand.next() }
        try hand.pass(.milliseconds(14_999))
        let error = #expect(throws: FerryError.self) { try hand.pass(.milliseconds(1)) }
        #expect(error?.code == .timedOut)
        #expect(hand.session.deadline == nil)
    }

    // MARK: Windows and timers

    /// Data stop when one place is left, and take it only with an acknowledgement aboard.
    @Test func theLastPlaceIsForAnAcknowledgement() throws {
        var central = try HandSession.open(.initiator, packetSize: 20)
        try central.pass(.milliseconds(2500))
        #expect(try central.all(20) == ["080000"])
        try central.send([UInt8](repeating: 1, count: 200))
        // One of six places has the acknowledgement.
        #expect(try central.all(20).count == 4)
        // Something to acknowledge gives the last place free.
        try central.receive("050101007f")
        let last = try central.all(20)
        #expect(last.count == 1)
        #expect(last.first?.hasPrefix("0a0105") == true)
        try central.receive("080502")
        #expect(try central.all(20).count == 5)
    }

    /// What is nearly used up is acknowledged at once, before any timer.
    @Test func aPeerWithoutPlacesIsAcknowledgedAtOnce() throws {
        var peripheral = try HandSession.open(.responder, packetSize: 20)
        for number in 0..<5 {
            #expect(try peripheral.all(20).isEmpty)
            try peripheral.receive("05" + digits([UInt8(number), 1, 0, 7]))
        }
        #expect(try peripheral.all(20) == ["080401"])
    }

    /// connectedhomeip sends one packet too many after its numbers have wrapped.
    @Test func onePacketBeyondTheWindowIsTaken() throws {
        var peripheral = try HandSession.open(.responder, packetSize: 20)
        for number in 0..<7 { try peripheral.receive("05" + digits([UInt8(number), 1, 0, 7])) }
        let error = #expect(throws: FerryError.self) { try peripheral.receive("0507010007") }
        #expect(error?.message.contains("8th without an acknowledgement") == true)
        #expect(peripheral.messages().count == 7)
    }

    @Test func aPeerThatAcknowledgesNothingTimesOut() throws {
        var central = try HandSession.open(.initiator)
        try central.send([1])
        #expect(try central.all().count == 1)
        try central.pass(.milliseconds(14_999))
        // An acknowledgement starts the time anew, for what is sent after it.
        try central.receive("080001")
        try central.pass(.milliseconds(2500))
        #expect(try central.all() == ["080101"])
        try central.pass(.milliseconds(14_999))
        let error = #expect(throws: FerryError.self) { try central.pass(.milliseconds(1)) }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("number 1") == true)
    }

    /// A side that pauses its peer keeps the acknowledgements out itself.
    @Test func aPauseIsNotThePeersSilence() throws {
        var central = try HandSession.open(.initiator)
        try central.send([1])
        _ = try central.all()
        central.session.pauseReceiving(true, at: central.now)
        try central.pass(.seconds(60))
        central.session.pauseReceiving(false, at: central.now)
        try central.pass(.milliseconds(14_999))
        #expect(throws: FerryError.self) { try central.pass(.milliseconds(1)) }
    }

    /// Places are counted, whatever the numbers are: all of them, and every number of packets that wait.
    @Test func placesAreCountedAcrossTheWrap() throws {
        var wrong: [String] = []
        for start in 0..<256 {
            var window = BTPWindow(.initiator, size: 6)
            for number in 0..<start {
                window.sent()
                try window.acknowledged(UInt8(number))
            }
            for waiting in 1...6 {
                window.sent()
                let newest = UInt8(truncatingIfNeeded: start + waiting - 1)
                for number in 0..<256 {
                    var copy = window
                    let left = Int(newest &- UInt8(number))
                    let isTaken = (try? copy.acknowledged(UInt8(number))) != nil
                    if isTaken == (left < waiting), copy.unacknowledged == (isTaken ? left : waiting) { continue }
                    wrong.append("\(number) of \(waiting) up to \(newest): \(copy.unacknowledged)")
                }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(3))")
    }

    /// 600 messages with an acknowledgement each, over two wraps of the numbers.
    @Test func numbersWrap() throws {
        var (central, peripheral) = (try HandSession.open(.initiator), try HandSession.open(.responder))
        for number in 0..<600 {
            try central.send([UInt8(truncatingIfNeeded: number)])
            for packet in try central.all() { try peripheral.receive(packet) }
            #expect(peripheral.messages() == [[UInt8(truncatingIfNeeded: number)]])
            try peripheral.pass(.milliseconds(2500))
            for packet in try peripheral.all() { try central.receive(packet) }
        }
    }
}
