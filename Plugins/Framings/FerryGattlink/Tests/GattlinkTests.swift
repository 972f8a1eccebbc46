import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerryGattlink

/// Against what two instances of Golden Gate's implementation said to each other (Fitbit/golden-gate b8a6f255).
@Suite(.tags(.framing)) struct GattlinkTests {
    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 9)
        let messages = [20, 21, 40, 244, 1500, 20, 5000].map { datagram($0, &random) }
        for window in [1, 2, 8, 31] {
            var configuration = GattlinkFraming.Configuration()
            configuration.window = window
            let verifier = FramingVerifier(
                GattlinkFraming(.datagrams, configuration), boundaries: .carryMeaning, minimumChunkSize: 5)
            try verifier.verifyExchange(messages, chunkSizes: [5, 20, 21, 182, 244, 512])
            try verifier.verifyCancelling(messages, chunkSizes: [20, 244])
        }
    }

    /// What each side sends while one of them sends `count` bytes in values of 20, both with a window of `window` packets.
    private func packets(_ count: Int, window: Int) throws -> (one: [String], other: [String]) {
        var (one, other) = (HandSession(.stream, window: window), HandSession(.stream, window: window))
        var said: (one: [String], other: [String]) = ([], [])
        try one.send((0..<count).map { UInt8($0 & 0xFF) })
        var (there, back) = (try one.all(), try other.all())
        while !there.isEmpty || !back.isEmpty {
            said.one += there
            said.other += back
            var answers: [String] = []
            for packet in there {
                try other.receive(packet)
                answers += try other.all()
            }
            for packet in back { try one.receive(packet) }
            (there, back) = (try one.all(), answers)
        }
        return said
    }

    @Test func aHundredBytesAreTheReferences() throws {
        let (one, other) = try packets(100, window: 4)
        #expect(
            one == [
                "80", "8100000404", "00000102030405060708090a0b0c0d0e0f101112",
                "01131415161718191a1b1c1d1e1f202122232425",
                "02262728292a2b2c2d2e2f303132333435363738", "03393a3b3c3d3e3f404142434445464748494a4b",
                "044c4d4e4f505152535455565758595a5b5c5d5e", "055f60616263",
            ])
        #expect(other == ["80", "8100000404", "42", "45"])
    }

    /// Numbers wrap, and the window is as large as it can be.
    @Test func nineHundredBytesAreTheReferences() throws {
        let (one, other) = try packets(900, window: 31)
        let expected = [
            "00000102030405060708090a0b0c0d0e0f101112", "01131415161718191a1b1c1d1e1f202122232425",
            "02262728292a2b2c2d2e2f303132333435363738", "03393a3b3c3d3e3f404142434445464748494a4b",
            "044c4d4e4f505152535455565758595a5b5c5d5e", "055f606162636465666768696a6b6c6d6e6f7071",
            "0672737475767778797a7b7c7d7e7f8081828384", "0785868788898a8b8c8d8e8f9091929394959697",
            "0898999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aa", "09abacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbd",
            "0abebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0", "0bd1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3",
            "0ce4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6", "0df7f8f9fafbfcfdfeff00010203040506070809",
            "0e0a0b0c0d0e0f101112131415161718191a1b1c", "0f1d1e1f202122232425262728292a2b2c2d2e2f",
            "10303132333435363738393a3b3c3d3e3f404142", "11434445464748494a4b4c4d4e4f505152535455",
            "12565758595a5b5c5d5e5f606162636465666768", "13696a6b6c6d6e6f707172737475767778797a7b",
            "147c7d7e7f808182838485868788898a8b8c8d8e", "158f909192939495969798999a9b9c9d9e9fa0a1",
            "16a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4", "17b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7",
            "18c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9da", "19dbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebeced",
            "1aeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00", "1b0102030405060708090a0b0c0d0e0f10111213",
            "1c1415161718191a1b1c1d1e1f20212223242526", "1d2728292a2b2c2d2e2f30313233343536373839",
            "1e3a3b3c3d3e3f404142434445464748494a4b4c", "1f4d4e4f505152535455565758595a5b5c5d5e5f",
            "00606162636465666768696a6b6c6d6e6f707172", "01737475767778797a7b7c7d7e7f808182838485",
            "02868788898a8b8c8d8e8f909192939495969798", "03999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaab",
            "04acadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbe", "05bfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1",
            "06d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4", "07e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7",
            "08f8f9fafbfcfdfeff000102030405060708090a", "090b0c0d0e0f101112131415161718191a1b1c1d",
            "0a1e1f202122232425262728292a2b2c2d2e2f30", "0b3132333435363738393a3b3c3d3e3f40414243",
            "0c4445464748494a4b4c4d4e4f50515253545556", "0d5758595a5b5c5d5e5f60616263646566676869",
            "0e6a6b6c6d6e6f707172737475767778797a7b7c", "0f7d7e7f80818283",
        ]
        #expect(one == ["80", "8100001f1f"] + expected)
        #expect(other == ["80", "8100001f1f", "4f", "5f", "4f"])
    }

    /// The third of six packets is lost: the two before are acknowledged after 200 ms, and it goes again with all behind it 4 s later.
    @Test func aLostPacketGoesAgainAsTheReferencesDoes() throws {
        var (one, other) = (try HandSession.open(.stream), try HandSession.open(.stream))
        try one.send([UInt8](0..<100))
        let first = try one.all()
        #expect(first.count == 6)
        for (place, packet) in first.enumerated() where place != 2 { try other.receive(packet) }
        #expect(try other.all() == [])
        try other.pass(.milliseconds(199))
        #expect(try other.all() == [])
        try other.pass(.milliseconds(1))
        #expect(try other.all() == ["41"])
        try one.pass(.milliseconds(200))
        try one.receive("41")
        #expect(try one.all() == [])
        try one.pass(.milliseconds(3999))
        #expect(try one.all() == [])
        try one.pass(.milliseconds(1))
        let again = try one.all()
        #expect(again == Array(first[2...]))
        try other.pass(.milliseconds(4000))
        for packet in again { try other.receive(packet) }
        #expect(try other.all() == [])
        try other.pass(.milliseconds(200))
        #expect(try other.all() == ["45"])
        let arrived = other.events().flatMap { (event) -> [UInt8] in
            if case .received(let bytes) = event { bytes } else { [] }
        }
        #expect(arrived == [UInt8](0..<100))
    }

    /// Whatever is lost or doubled, either way: each datagram arrives once and in order.
    @Test(arguments: 0..<UInt64(Effort.of(40, full: 2_000))) func nothingIsLostOrDoubled(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let window = 1 + Int(random.below(31))
        var (one, other) = (HandSession(.datagrams, window: window), HandSession(.datagrams, window: window))
        let messages = (0..<12).map { _ in datagram(20 + Int(random.below(300)), &random) }
        for message in messages { try one.send(message, receipt: .delivered) }
        var (arrived, sent): ([[UInt8]], Int) = ([], 0)
        for _ in 0..<4_000 where sent < messages.count {
            let (there, back) = (try one.all(), try other.all())
            // A peer that begins anew is another test.
            for packet in there where packet.hasPrefix("8") || random.below(8) > 0 {
                for _ in 0...(packet.hasPrefix("8") ? 0 : random.below(2)) { try other.receive(packet) }
            }
            for packet in back where packet.hasPrefix("8") || random.below(8) > 0 {
                for _ in 0...(packet.hasPrefix("8") ? 0 : random.below(2)) { try one.receive(packet) }
            }
            for event in other.events() { if case .received(let message) = event { arrived.append(message) } }
            for event in one.events() { if case .sent = event { sent += 1 } }
            let deadline = [one.session.deadline, other.session.deadline].compactMap { $0 }.min()
            guard there.isEmpty, back.isEmpty, let deadline else { continue }
            let step = max(.zero, deadline - one.now)
            try one.pass(step)
            try other.pass(step)
        }
        #expect(arrived == messages, "seed \(seed), window \(window)")
        #expect(sent == messages.count, "seed \(seed), window \(window)")
    }

    // MARK: The begin

    @Test func aRequestGoesAgainUntilItIsAnswered() throws {
        var hand = HandSession(.datagrams)
        #expect(try hand.all() == ["80"])
        try hand.pass(.milliseconds(999))
        #expect(try hand.all() == [])
        try hand.pass(.milliseconds(1))
        #expect(try hand.all() == ["80"])
        try hand.receive("8100000404")
        #expect(hand.session.isReady)
        #expect(try hand.all() == ["8100000808"])
    }

    @Test func anAnswerThatIsNotAnsweredIsFollowedByARequest() throws {
        var hand = HandSession(.datagrams)
        try hand.receive("80")
        #expect(try hand.all() == ["8100000808"])
        try hand.pass(.seconds(2))
        #expect(try hand.all() == ["80"])
        #expect(!hand.session.isReady)
    }

    @Test func aPeerThatNeverBeginsEndsTheLink() throws {
        var hand = HandSession(.datagrams)
        _ = try hand.all()
        try hand.pass(.milliseconds(29_999))
        let error = #expect(throws: FerryError.self) { try hand.pass(.milliseconds(1)) }
        #expect(error?.code == .timedOut)
        #expect(throws: FerryError.self) { try hand.receive("80") }
    }

    /// Its window is the smaller of the two, each way.
    @Test func thePeersWindowBoundsThisSides() throws {
        var hand = HandSession(.stream)
        try hand.receive("80")
        _ = try hand.all()
        try hand.receive("8100000302")
        try hand.send([UInt8](0..<100))
        #expect(try hand.all().count == 3)
        try hand.receive("00ff")
        #expect(try hand.all() == [])
        try hand.receive("01ff")
        #expect(try hand.all() == ["41"])
    }

    /// A message that the peer has not acknowledged whole is sent again from its begin; one that it has is not.
    @Test func aPeerThatBeginsAnewGetsWhatItHasNotAcknowledged() throws {
        var hand = try HandSession.open(.stream)
        try hand.send([1])
        try hand.send([UInt8](0..<30))
        #expect(try hand.all() == ["0001", "01000102030405060708090a0b0c0d0e0f101112", "02131415161718191a1b1c1d"])
        #expect(hand.events() == [.sent(0), .sent(1)])
        try hand.receive("41")
        try hand.receive("80")
        #expect(!hand.session.isReady)
        #expect(hand.session.peerRestarts == 1)
        #expect(try hand.all() == ["8100000808"])
        try hand.receive("8100000808")
        #expect(try hand.all() == ["00000102030405060708090a0b0c0d0e0f101112", "01131415161718191a1b1c1d"])
        // It was told before.
        #expect(hand.events() == [])
    }

    @Test func aDatagramThatAPeerDoesNotFinishIsTold() throws {
        var hand = try HandSession.open(.datagrams)
        try hand.receive("004500001e01")
        #expect(hand.session.arriving == ReceiveProgress(receivedBytes: 5, totalBytes: 30))
        try hand.receive("80")
        #expect(hand.events() == [.receiveFailed(.truncatedMessage)])
        #expect(hand.session.arriving == nil)
    }

    // MARK: Times

    @Test func aReceiptWaitsForTheAcknowledgement() throws {
        var hand = try HandSession.open(.stream)
        try hand.send([1], receipt: .delivered)
        try hand.send([2])
        #expect(try hand.all() == ["0001", "0102"])
        #expect(hand.events() == [.sent(1)])
        #expect(hand.session.fate(of: MessageID(rawValue: 0)) == .mayHaveArrived)
        try hand.receive("41")
        #expect(hand.events() == [.sent(0)])
    }

    @Test func aPeerThatAcknowledgesNothingEndsTheLink() throws {
        var hand = try HandSession.open(.stream)
        try hand.send([1])
        for _ in 0..<14 {
            #expect(try hand.all() == ["0001"])
            try hand.pass(.seconds(4))
        }
        try hand.pass(.milliseconds(3_999))
        let error = #expect(throws: FerryError.self) { try hand.pass(.milliseconds(1)) }
        #expect(error?.code == .timedOut)
    }

    /// While this side has asked the link for a pause.
    @Test func aPausedPeerOwesNothing() throws {
        var hand = try HandSession.open(.stream)
        try hand.send([1])
        _ = try hand.all()
        hand.session.pauseReceiving(true, at: hand.now)
        #expect(hand.session.deadline == nil)
        try hand.pass(.seconds(100))
        #expect(try hand.all() == [])
        hand.session.pauseReceiving(false, at: hand.now)
        try hand.pass(.seconds(4))
        #expect(try hand.all() == ["0001"])
    }

    /// What goes again is as long as it was; there is no place for an acknowledgement with it.
    @Test func anAcknowledgementGoesByItselfBesideAFullPacketThatGoesAgain() throws {
        var hand = try HandSession.open(.stream)
        try hand.send([UInt8](0..<19))
        let packet = try hand.all()
        try hand.pass(.milliseconds(3_800))
        try hand.receive("0007")
        try hand.pass(.milliseconds(200))
        #expect(try hand.all() == ["40"] + packet)
    }

    // MARK: What cannot be

    @Test func whatIsNoDatagramIsNotSent() throws {
        var hand = try HandSession.open(.datagrams)
        var datagram = [0x45, 0, 0, 20] + [UInt8](repeating: 0, count: 16)
        try hand.send(datagram)
        for (place, byte) in [(0, 0x60), (2, 1), (3, 21)] as [(Int, UInt8)] {
            var other = datagram
            other[place] = byte
            let error = #expect(throws: FerryError.self) { try hand.send(other) }
            #expect(error?.code == .notADatagram)
        }
        datagram.removeLast()
        datagram[3] = 19
        #expect(throws: FerryError.self) { try hand.send(datagram) }
        var stream = try HandSession.open(.stream)
        #expect(throws: FerryError.self) { try stream.send([]) }
    }

    @Test(
        arguments: [
            ("00600000000000", .malformedStream), ("0045000013", .malformedStream), ("0045000201", .messageTooLarge),
        ] as [(String, FerryError.Code)])
    func whatIsNoDatagramEndsTheLink(_ packet: String, _ code: FerryError.Code) throws {
        var limits = Limits()
        limits.maximumMessageSize = 512
        var hand = try HandSession.open(.datagrams, limits: limits)
        let error = #expect(throws: FerryError.self) { try hand.receive(packet) }
        #expect(error?.code == code)
        let again = #expect(throws: FerryError.self) { try hand.receive("80") }
        #expect(again?.message == error?.message)
    }

    @Test(
        arguments: [
            ("81", .malformedStream), ("81000004", .malformedStream), ("8101000404", .malformedStream),
            ("8101020404", .incompatiblePeer), ("8100000004", .malformedStream),
        ] as [(String, FerryError.Code)])
    func anEndOfAResetThatCannotBeEndsTheLink(_ packet: String, _ code: FerryError.Code) throws {
        var hand = HandSession(.datagrams)
        _ = try hand.all()
        let error = #expect(throws: FerryError.self) { try hand.receive(packet) }
        #expect(error?.code == code)
    }

    /// As the reference does: kinds of control packets that are not known, data before the begin, packets that were not due, and
    /// acknowledgements of what was not sent.
    @Test func whatHasNoMeaningIsPassedOver() throws {
        var early = HandSession(.stream)
        for packet in ["82", "ff0102", "0001", "40", ""] { try early.receive(packet) }
        #expect(try early.all() == ["80"])
        #expect(early.events() == [])
        var hand = try HandSession.open(.stream)
        try hand.send([1])
        _ = try hand.all()
        for packet in ["0501", "45", "5f", "8100000303", "ff"] { try hand.receive(packet) }
        #expect(hand.events() == [.sent(0)])
        try hand.pass(.seconds(4))
        #expect(try hand.all() == ["0001"])
    }
}
