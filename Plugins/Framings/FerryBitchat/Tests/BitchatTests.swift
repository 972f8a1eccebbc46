import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerryBitchat

/// Packets as bitchat 9b84b361 wrote them.
@Suite(.tags(.framing)) struct BitchatTests {
    private static let time: UInt64 = 0x018B_CFE5_6800

    private static func packet(_ count: Int, _ random: inout SplitMix64, route: Int = 0) throws -> [UInt8] {
        var packet = BitchatPacket(
            type: 2, sender: random.next(), recipient: random.below(2) == 0 ? nil : random.next(),
            timestamp: random.next(),
            payload: random.bytes(count), version: route > 0 || count > 65_535 || random.below(3) == 0 ? 2 : 1)
        packet.route = (0..<route).map { _ in random.next() }
        packet.answersSync = random.below(4) == 0
        if random.below(2) == 0 { packet.signature = random.bytes(BitchatPacket.signatureSize) }
        return try packet.bytes()
    }

    // MARK: Packets

    @Test func packetsAreTheReferences() throws {
        var packet = BitchatPacket(
            type: 2, sender: 0x0102_0304_0506_0708, timestamp: Self.time, payload: [UInt8]("hi".utf8))
        #expect(digits(try packet.bytes()) == "0102070000018bcfe5680000000201020304050607086869")
        packet.recipient = BitchatPacket.everybody
        #expect(digits(try packet.bytes()) == "0102070000018bcfe568000100020102030405060708ffffffffffffffff6869")
        (packet.version, packet.recipient, packet.route) = (2, 0x0909_0909_0909_0909, [0x0505_0505_0505_0505])
        let routed = try packet.bytes()
        #expect(
            digits(routed)
                == "0202070000018bcfe568000900000002010203040506070809090909090909090105050505050505056869")
        #expect(try BitchatPacket(decoding: routed) == packet)
    }

    @Test func whatIsReadIsWhatWasWritten() throws {
        var random = SplitMix64(seed: 3)
        for round in 0..<25 {
            let bytes = try Self.packet(Int(random.below(400)), &random, route: round % 5)
            let packet = try BitchatPacket(decoding: bytes + [UInt8](repeating: 7, count: Int(random.below(8))))
            #expect(try packet.bytes() == bytes)
            for end in 0..<bytes.count {
                #expect(throws: FerryError.self) { try BitchatPacket(decoding: Array(bytes[..<end])) }
            }
        }
    }

    @Test func whatCannotBeSaidIsNotWritten() {
        let packet = BitchatPacket(type: 2, sender: 1, timestamp: 0, payload: [])
        for change in [
            { $0.version = 3 }, { $0.route = [1] }, { $0.payload = [UInt8](repeating: 0, count: 65_536) },
            { $0.signature = [1] },
            {
                $0.version = 2
                $0.route = [UInt64](repeating: 1, count: 256)
            },
        ] as [(inout BitchatPacket) -> Void] {
            var other = packet
            change(&other)
            let error = #expect(throws: FerryError.self) { try other.bytes() }
            #expect(error?.code == .notABitchatPacket)
        }
    }

    // MARK: The framing

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 5)
        let messages = try [0, 1, 20, 40, 200, 600, 3000, 2, 9000].map { try Self.packet($0, &random) }
        var configuration = BitchatFraming.Configuration()
        configuration.maximumFragments = BitchatFraming.mostFragments
        let verifier = FramingVerifier(
            BitchatFraming(configuration), boundaries: .carryMeaning, minimumChunkSize: 64)
        try verifier.verifyExchange(messages, chunkSizes: [64, 65, 182, 244, 512])
        try verifier.verifyCancelling(messages, chunkSizes: [64, 244])
    }

    /// The first of two fragments with two bytes of data each.
    @Test func fragmentsAreTheReferences() throws {
        var link = Hand()
        try link.receive("0120070000018bcfe5680000000f0102030405060708101112131415161700000002" + "02dead")
        #expect(link.events() == [])
        #expect(link.session.arriving == ReceiveProgress(receivedBytes: 2, totalBytes: nil))
        // Whole packets as fragments, the last one first.
        var random = SplitMix64(seed: 1)
        let packet = try BitchatPacket(
            type: 2, sender: 0x0102_0304_0506_0708, timestamp: Self.time, payload: random.bytes(100)
        ).bytes()
        var sender = Hand()
        try sender.send(packet)
        let fragments = try sender.all(64)
        #expect(fragments.count == 5)
        for (place, fragment) in fragments.enumerated() {
            #expect(fragment.hasPrefix("0120070000018bcfe56800000"))
            #expect(fragment.dropFirst(60).hasPrefix("000\(place)000502"))
            let part = packet[place * 29..<min(packet.count, (place + 1) * 29)]
            #expect(fragment.hasSuffix("02" + digits(Array(part))))
        }
        for fragment in fragments.reversed() { try link.receive(fragment) }
        #expect(link.events() == [.received(packet)])
    }

    /// Fragments of many packets between one another, some of them twice, in any order.
    @Test(arguments: 0..<UInt64(Effort.of(20, full: 1_000))) func fragmentsMayComeInAnyOrder(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let packets = try (0..<8).map { try Self.packet(Int(random.below(900)), &random, route: $0 % 3) }
        var fragments: [String] = []
        for packet in packets {
            var sender = Hand()
            try sender.send(packet)
            fragments += try sender.all(100 + Int(random.below(300)))
        }
        // A packet that was one value comes as often as its value.
        fragments += fragments.filter { $0.dropFirst(2).hasPrefix("20") && random.below(3) == 0 }
        fragments.shuffle(using: &random)
        var link = Hand()
        for fragment in fragments { try link.receive(fragment) }
        let arrived = link.events().compactMap { if case .received(let packet) = $0 { packet } else { nil } }
        // A packet comes again when all its fragments do: the mesh tells them apart.
        #expect(Set(arrived) == Set(packets))
    }

    /// bitchat goes by the total of the fragment that came last: one of a stranger's makes a packet with holes.
    @Test func aFragmentThatContradictsTheFirstDamagesNothing() throws {
        var random = SplitMix64(seed: 2)
        let packet = try Self.packet(300, &random)
        var (sender, link) = (Hand(), Hand())
        try sender.send(packet)
        let fragments = try sender.all(100)
        try link.receive(fragments[0])
        var foreign = bytes(fragments[1])
        // The total, behind the number of 8 bytes and the place.
        let place = try BitchatHead(foreign.span.bytes).payload.lowerBound + 10
        foreign.replaceSubrange(place..<place + 2, with: [0, 2])
        try link.receive(digits(foreign))
        #expect(link.events() == [.receiveFailed(.malformedStream)])
        for fragment in fragments[1...] { try link.receive(fragment) }
        #expect(link.events() == [.received(packet)])
    }

    @Test func whatIsNoPacketIsToldAndChangesNothing() throws {
        var link = Hand()
        let hello = "0102070000018bcfe5680000000201020304050607086869"
        let fragment = "0120070000018bcfe5680000000f01020304050607081011121314151617"
        for wrong in [
            "", "01", String(hello.dropLast(2)), "03" + hello.dropFirst(2), "0202070000018bcfe56800ffffffffff" + hello,
            fragment + "0002000202dead", fragment + "0000000002dead", fragment + "0000271102dead",
            "0120070000018bcfe5680000000d0102030405060708" + "101112131415161700000002" + "02",
        ] {
            try link.receive(wrong)
            #expect(link.events() == [.receiveFailed(.malformedStream)], "\(wrong)")
        }
        try link.receive(hello + "e8e8e8")
        #expect(link.events() == [.received(bytes(hello))])
    }

    @Test func aPacketWithoutTheRestOfItsFragmentsIsGivenUp() throws {
        var random = SplitMix64(seed: 8)
        let packet = try Self.packet(300, &random)
        var (sender, link) = (Hand(), Hand())
        try sender.send(packet)
        let fragments = try sender.all(100)
        for fragment in fragments.dropLast() { try link.receive(fragment) }
        #expect(link.session.deadline == .zero + .seconds(30))
        try link.session.wake(at: .zero + .milliseconds(29_999))
        #expect(link.events() == [])
        try link.session.wake(at: .zero + .seconds(30))
        #expect(link.events() == [.receiveFailed(.truncatedMessage)])
        try link.receive(fragments[0])
        #expect(throws: FerryError.self) { try link.session.linkDidClose(at: .zero) }
    }

    /// A stranger that begins packets without end, and never ends one.
    @Test func unfinishedPacketsTakeABoundedPlace() throws {
        var limits = Limits()
        limits.maximumMessageSize = 10_000
        var configuration = BitchatFraming.Configuration()
        configuration.maximumAssemblies = 4
        var link = Hand(configuration, limits)
        var random = SplitMix64(seed: 8)
        for number in 0..<UInt64(40) {
            let fragment = BitchatPacket(
                type: BitchatPacket.fragment, sender: number, timestamp: 0,
                payload: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 2] + random.bytes(9_000), version: 1)
            try link.receive(digits(try fragment.bytes()))
        }
        #expect(link.events() == [Happening](repeating: .receiveFailed(.truncatedMessage), count: 36))
        let large = BitchatPacket(
            type: BitchatPacket.fragment, sender: 39, timestamp: 0,
            payload: [0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 2, 2] + random.bytes(1_001))
        try link.receive(digits(try large.bytes()))
        #expect(link.events() == [.receiveFailed(.messageTooLarge)])
    }

    @Test func aPacketOfTooManyFragmentsFailsAlone() throws {
        var random = SplitMix64(seed: 8)
        let (large, small) = (try Self.packet(20_000, &random), try Self.packet(10, &random))
        var link = Hand()
        try link.send(large)
        try link.send(small)
        #expect(try link.all(64 + 36) == [digits(small)])
        #expect(link.events() == [.failed(.messageTooLarge), .sent])
        #expect(throws: FerryError.self) { try link.send([1, 2, 3]) }
        #expect(throws: FerryError.self) { try link.send(small + [0]) }
        try link.send(small)
        #expect(throws: FerryError.self) { try link.all(63) }
    }

    /// Nothing has left: the next value has as much of the packet as fits, or all of it, and the packet may be taken back.
    @Test func aPacketThatWasRefusedIsCutAnewForTheNextValue() throws {
        var random = SplitMix64(seed: 4)
        let (packet, small) = (try Self.packet(300, &random), try Self.packet(1, &random))
        var link = Hand()
        try link.send(packet)
        for size in [100, 100, 64] { try link.refuse(size) }
        let fragments = try link.all(200)
        #expect(fragments.first?.utf8.count == 400)
        try link.send(packet)
        try link.refuse(100)
        #expect(try link.all(512) == [digits(packet)])
        try link.send(packet)
        try link.send(small)
        try link.refuse(100)
        let isTakenBack = link.session.cancel(MessageID(rawValue: 2), at: .zero)
        #expect(isTakenBack)
        #expect(try link.all(100 + small.count) == [digits(small)])
    }

    /// As the reference pads 24 bytes to 256 with bytes of 232.
    @Test func paddingTellsItsLength() throws {
        var configuration = BitchatFraming.Configuration()
        configuration.pads = true
        var link = Hand(configuration)
        let hello = "0102070000018bcfe5680000000201020304050607086869"
        try link.send(bytes(hello))
        #expect(try link.all(512) == [hello + String(repeating: "e8", count: 232)])
        // There is no place for it.
        try link.send(bytes(hello))
        #expect(try link.all(244) == [hello])
    }
}

/// What a session tells.
enum Happening: Equatable {
    case received([UInt8])
    case sent
    case failed(FerryError.Code)
    case receiveFailed(FerryError.Code)
}

/// A session with a hand at its link.
private struct Hand {
    var session: BitchatFraming.Session
    private var next: UInt64 = 0

    init(_ configuration: BitchatFraming.Configuration = .init(), _ limits: Limits = Limits()) {
        session = BitchatFraming(configuration).makeSession(limits: limits)
        session.linkDidOpen(at: .zero)
    }

    mutating func send(_ message: [UInt8]) throws {
        try session.enqueue(message, as: MessageID(rawValue: next), at: .zero)
        next += 1
    }

    mutating func all(_ size: Int) throws -> [String] {
        var values: [String] = []
        while try session.transmit(
            atMost: size, at: .zero,
            { (offered) throws(FerryError) in
                values.append(digits(offered.withUnsafeBytes { [UInt8]($0) }))
                return true
            }) == .accepted
        {}
        return values
    }

    /// Refuses the offered value, and checks that there was one.
    mutating func refuse(_ size: Int) throws {
        let outcome = try session.transmit(atMost: size, at: .zero) { (_) throws(FerryError) in false }
        #expect(outcome == .refused)
    }

    mutating func receive(_ value: String) throws { try session.receive(bytes(value).span.bytes, at: .zero) }

    mutating func events() -> [Happening] {
        var happenings: [Happening] = []
        while let event = session.nextEvent() {
            switch event {
            case .received(let message): happenings.append(.received(message))
            case .sent: happenings.append(.sent)
            case .failed(_, let error): happenings.append(.failed(error.code))
            case .receiveFailed(let error): happenings.append(.receiveFailed(error.code))
            case .progress: break
            }
        }
        return happenings
    }
}
