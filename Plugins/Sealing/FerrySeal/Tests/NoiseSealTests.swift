#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import TestSupport
    import Testing

    /// The seal as the core sees it: who meets whom by which handshake, and what is refused.
    @Suite(.tags(.hostility)) struct NoiseSealTests {
        static let a = testKey(1)
        static let b = testKey(2)
        static let stranger = testKey(3)
        static let invitation: Invitation = {
            var generator = SplitMix64(seed: 4)
            return Invitation(using: &generator)
        }()

        /// How two sides are set up, by the name of the handshake.
        enum Meeting: String, CaseIterable, CustomTestStringConvertible {
            case ik, kk, invited, xx
            var testDescription: String { rawValue }

            /// The bytes of each message of the handshake.
            var counts: [Int] {
                switch self {
                case .ik: [97, 48]
                case .kk: [49, 48]
                case .invited: [49, 96, 64]
                case .xx: [33, 96, 64]
                }
            }

            var connecting: NoiseSealing {
                let peer: NoiseSealing.Peer =
                    switch self {
                    case .ik: .key(b.publicKey)
                    case .kk: .pair(b.publicKey)
                    case .invited: .invitation(invitation)
                    case .xx: .anyone
                    }
                return NoiseSealing(connectingAs: a, to: peer) { testKey(11) }
            }

            var accepting: NoiseSealing {
                let acceptance: NoiseSealing.Acceptance =
                    switch self {
                    case .ik, .xx: .keys { $0 == a.publicKey }
                    case .kk: .pair(a.publicKey)
                    case .invited: .invitation(invitation)
                    }
                return NoiseSealing(acceptingAs: b, from: acceptance) { testKey(12) }
            }
        }

        static func exchange(_ keepsOrder: Bool = true, compression: UInt8 = 0) -> SealedExchange {
            SealedExchange(payloads: PayloadFormat(compression: compression), keepsOrder: keepsOrder)
        }

        /// Has two seals meet; returns the messages of the handshake.
        @discardableResult
        static func meet(_ a: inout NoiseSeal, _ b: inout NoiseSeal) throws -> [[UInt8]] {
            var messages: [[UInt8]] = []
            var isBusy = true
            while isBusy {
                isBusy = false
                while let message = try a.nextHandshakeMessage() {
                    messages.append(message)
                    try b.receiveHandshake(message)
                    isBusy = true
                }
                while let message = try b.nextHandshakeMessage() {
                    messages.append(message)
                    try a.receiveHandshake(message)
                    isBusy = true
                }
            }
            return messages
        }

        private func seals(_ meeting: Meeting, _ keepsOrder: Bool = true) -> (NoiseSeal, NoiseSeal) {
            (
                meeting.connecting.makeSeal(for: Self.exchange(keepsOrder)),
                meeting.accepting.makeSeal(for: Self.exchange(keepsOrder))
            )
        }

        @Test(arguments: Meeting.allCases) func eachMeetingEndsInTwoProvenPeers(_ meeting: Meeting) throws {
            var (a, b) = seals(meeting)
            #expect(a.provenPeer == nil && b.provenPeer == nil)
            #expect(try Self.meet(&a, &b).map(\.count) == meeting.counts)
            #expect(a.isEstablished && b.isEstablished)
            #expect(a.peerKey == Self.b.publicKey)
            // After two messages the first may be an old one that somebody repeats.
            #expect(b.peerKey == (meeting.counts.count == 2 ? nil : Self.a.publicKey))
            #expect(try b.open(a.seal([1, 2])) == [1, 2])
            #expect(try a.open(b.seal([3])) == [3])
            #expect(b.provenPeer == PeerIdentity("\(Self.a.publicKey.fingerprint)", certainty: .key))
        }

        @Test(arguments: Meeting.allCases, [true, false]) func sealsKeepTheContract(
            _ meeting: Meeting, _ keepsOrder: Bool
        ) throws {
            try SealConformance(
                connecting: meeting.connecting, accepting: meeting.accepting, keepsOrder: keepsOrder
            ).check()
        }

        @Test(arguments: Meeting.allCases) func aHandshakeMessageThatComesTwiceIsNamed(_ meeting: Meeting) throws {
            var (a, b) = seals(meeting)
            let messages = try Self.meet(&a, &b)
            for (index, message) in messages.enumerated() {
                // In the handshake: each message, twice to its reader.
                var (x, y) = seals(meeting)
                for step in 0...index {
                    let sent = try step.isMultiple(of: 2) ? x.nextHandshakeMessage() : y.nextHandshakeMessage()
                    let copy = try #require(sent)
                    if step.isMultiple(of: 2) { try y.receiveHandshake(copy) } else { try x.receiveHandshake(copy) }
                }
                let again = failure {
                    if index.isMultiple(of: 2) {
                        try y.receiveHandshake(message)
                    } else {
                        try x.receiveHandshake(message)
                    }
                }
                #expect(again?.code == .sealHandshakeRepeated, "message \(index)")
                // After it, as a sealed message, to either side.
                #expect(failure { try a.open(message) }?.code == .sealHandshakeRepeated)
                #expect(failure { try b.open(message) }?.code == .sealHandshakeRepeated)
            }
        }

        /// A first message of another session of the same two keys: with two messages it is answered, and nothing follows.
        @Test(arguments: [Meeting.ik, .kk]) func aRepeatedFirstMessageProvesNobody(_ meeting: Meeting) throws {
            var (a, b) = seals(meeting)
            let messages = try Self.meet(&a, &b)
            let old = try a.seal([1])
            var again = NoiseSealing(acceptingAs: Self.b, from: meeting == .ik ? .anyone : .pair(Self.a.publicKey))
                .makeSeal(for: Self.exchange())
            try again.receiveHandshake(messages[0])
            _ = try again.nextHandshakeMessage()
            #expect(again.isEstablished && again.provenPeer == nil && again.peerKey == nil)
            #expect(failure { try again.open(old) }?.code == .sealRefused)
        }

        @Test(arguments: Meeting.allCases) func strangersAreRefusedByName(_ meeting: Meeting) throws {
            let other = testKey(21)
            var generator = SplitMix64(seed: 9)
            let wrongCode = Invitation(using: &generator)
            let peer: NoiseSealing.Peer =
                switch meeting {
                case .ik: .key(Self.b.publicKey)
                case .kk: .pair(Self.b.publicKey)
                case .invited: .invitation(wrongCode)
                case .xx: .anyone
                }
            var a = NoiseSealing(connectingAs: other, to: peer).makeSeal(for: Self.exchange())
            var b = meeting.accepting.makeSeal(for: Self.exchange())
            let refusal = failure { try Self.meet(&a, &b) }
            #expect(refusal?.code == (meeting == .ik || meeting == .xx ? .sealStranger : .sealRefused))
            #expect(!b.isEstablished && b.provenPeer == nil)
            if meeting == .ik { #expect(refusal?.message.contains("\(other.publicKey)") == true) }
        }

        @Test func theWrongListenerIsNoticed() throws {
            for peer in [NoiseSealing.Peer.key(Self.stranger.publicKey), .pair(Self.stranger.publicKey)] {
                var a = NoiseSealing(connectingAs: Self.a, to: peer).makeSeal(for: Self.exchange())
                var b = NoiseSealing(
                    acceptingAs: Self.b, from: { if case .pair = peer { .pair(Self.a.publicKey) } else { .anyone } }()
                )
                .makeSeal(for: Self.exchange())
                #expect(failure { try Self.meet(&a, &b) }?.code == .sealRefused)
            }
        }

        @Test func differentSettingsAreRefused() throws {
            let sealing = (Meeting.ik.connecting, Meeting.ik.accepting)
            for other in [Self.exchange(false), Self.exchange(true, compression: 1)] {
                var a = sealing.0.makeSeal(for: Self.exchange())
                var b = sealing.1.makeSeal(for: other)
                #expect(failure { try Self.meet(&a, &b) }?.code == .sealRefused)
            }
            for (a, b) in [(Meeting.kk, Meeting.ik), (.invited, .xx)] {
                var (x, y) = (a.connecting.makeSeal(for: Self.exchange()), b.accepting.makeSeal(for: Self.exchange()))
                #expect(failure { try Self.meet(&x, &y) }?.code == .sealStranger)
            }
        }

        @Test func peersThatDoNotSealAreNamed() throws {
            for message in [[], [0x20], Array("hello".utf8), [0x14] + [UInt8](repeating: 0, count: 32)] as [[UInt8]] {
                var b = Meeting.xx.accepting.makeSeal(for: Self.exchange())
                #expect(failure { try b.receiveHandshake(message) }?.code == .incompatiblePeer)
            }
            // Two that both connect.
            var (a, b) = (
                Meeting.xx.connecting.makeSeal(for: Self.exchange()),
                NoiseSealing(connectingAs: Self.b, to: .anyone).makeSeal(for: Self.exchange())
            )
            let first = try #require(try a.nextHandshakeMessage())
            #expect(failure { try b.receiveHandshake(first) }?.code == .sealOutOfTurn)
            // One that talks to itself.
            var (x, y) = (
                NoiseSealing(connectingAs: Self.a, to: .anyone).makeSeal(for: Self.exchange()),
                NoiseSealing(acceptingAs: Self.a, from: .anyone).makeSeal(for: Self.exchange())
            )
            #expect(failure { try Self.meet(&x, &y) }?.code == .sealStranger)
        }

        @Test(arguments: Meeting.allCases) func splicedSessionsAreRefused(_ meeting: Meeting) throws {
            func fresh() -> (NoiseSeal, NoiseSeal) {
                // The same keys of both sides, other ephemeral ones.
                let (connecting, accepting) =
                    switch meeting {
                    case .ik:
                        (
                            NoiseSealing(connectingAs: Self.a, to: .key(Self.b.publicKey)),
                            NoiseSealing(acceptingAs: Self.b, from: .anyone)
                        )
                    case .kk:
                        (
                            NoiseSealing(connectingAs: Self.a, to: .pair(Self.b.publicKey)),
                            NoiseSealing(acceptingAs: Self.b, from: .pair(Self.a.publicKey))
                        )
                    case .invited:
                        (
                            NoiseSealing(connectingAs: Self.a, to: .invitation(Self.invitation)),
                            NoiseSealing(acceptingAs: Self.b, from: .invitation(Self.invitation))
                        )
                    case .xx:
                        (
                            NoiseSealing(connectingAs: Self.a, to: .anyone),
                            NoiseSealing(acceptingAs: Self.b, from: .anyone)
                        )
                    }
                return (connecting.makeSeal(for: Self.exchange()), accepting.makeSeal(for: Self.exchange()))
            }
            for step in meeting.counts.indices {
                var (a, b) = fresh()
                var (c, d) = fresh()
                let other = try Self.meet(&c, &d)
                var refusal: FerryError?
                for index in meeting.counts.indices where refusal == nil {
                    let sent = try index.isMultiple(of: 2) ? a.nextHandshakeMessage() : b.nextHandshakeMessage()
                    let message = index == step ? other[index] : try #require(sent)
                    refusal = failure {
                        if index.isMultiple(of: 2) {
                            try b.receiveHandshake(message)
                        } else {
                            try a.receiveHandshake(message)
                        }
                    }
                }
                // A first message fits any session; its own sender then notices.
                #expect(refusal?.code == .sealRefused, "message \(step)")
            }
            var (a, b) = fresh()
            var (c, d) = fresh()
            try Self.meet(&a, &b)
            try Self.meet(&c, &d)
            #expect(failure { try b.open(c.seal([1])) }?.code == .sealRefused)
            #expect(failure { try a.open(a.seal([1])) }?.code == .sealRefused)
        }
    }
#endif
