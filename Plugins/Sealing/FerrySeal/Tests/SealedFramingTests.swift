#if Seal
    import Ferry
    import FerrySeal
    import FerrySequenced
    import FerryTesting
    import Synchronization
    import TestSupport
    import Testing

    /// The sealed framing over all others.
    @Suite(.tags(.framing, .channel)) struct SealedFramingTests {
        /// Connecting and accepting in turns, as the kit makes a sender and then its receiver.
        final class Alternating: MessageSealing {
            private let count = Mutex(0)
            private let meeting: NoiseSealTests.Meeting
            init(_ meeting: NoiseSealTests.Meeting) { self.meeting = meeting }
            var name: String { "noise" }
            func makeSeal(for exchange: SealedExchange) -> NoiseSeal {
                let turn = count.withLock { count in
                    count += 1
                    return count
                }
                return (turn.isMultiple(of: 2) ? meeting.accepting : meeting.connecting).makeSeal(for: exchange)
            }
        }

        private let messages: [[UInt8]] = [
            [], [0], [UInt8](repeating: 0x45, count: 20), [], [UInt8](0...130), [UInt8](repeating: 7, count: 3000),
        ]

        @Test(arguments: NoiseSealTests.Meeting.allCases) func keepsTheFramingKit(_ meeting: NoiseSealTests.Meeting)
            throws
        {
            let length = FramingVerifier(
                SealedFraming(LengthPrefixFraming(), by: Alternating(meeting)), boundaries: .carryNoMeaning)
            try length.verifyExchange(messages, chunkSizes: [1, 20, 21, 182, 244, 512])
            let marked = FramingVerifier(
                SealedFraming(EndOfMessageFraming(), by: Alternating(meeting)), boundaries: .carryMeaning,
                minimumChunkSize: 3)
            try marked.verifyExchange(messages, chunkSizes: [3, 20, 21, 182])
            var configuration = SequencedFraming.Configuration()
            configuration.maximumOpenMessages = 1
            let sequenced = FramingVerifier(
                SealedFraming(SequencedFraming(configuration), by: Alternating(meeting)), boundaries: .carryMeaning,
                minimumChunkSize: 20)
            try sequenced.verifyExchange(messages, chunkSizes: [20, 23, 182, 244])
        }

        @Test(arguments: BaseFraming.allCases, [20, 244]) func messagesGoBothWays(_ base: BaseFraming, _ chunkSize: Int)
        {
            for meeting in NoiseSealTests.Meeting.allCases {
                let rig = SealedRig(base, meeting, chunkSize: chunkSize)
                let sizes = [0, 1, 19, 20, 21, 300, 5000]
                // Before the handshake, and after it.
                for size in sizes { rig.a.send(pattern(size)) }
                for size in sizes.prefix(3) { rig.b.send(pattern(size, seed: 1)) }
                #expect(rig.a.core.status.phase == .connecting)
                rig.run(seconds: 2)
                #expect(rig.a.core.status.phase == .open && rig.b.core.status.phase == .open)
                for size in sizes.dropFirst(3) { rig.b.send(pattern(size, seed: 1)) }
                rig.run(seconds: 2)
                let ordered = base != .sequenced
                func sorted(_ messages: [[UInt8]]) -> [[UInt8]] {
                    ordered ? messages : messages.sorted { $0.count < $1.count }
                }
                #expect(sorted(rig.b.read) == sizes.map { pattern($0) })
                #expect(sorted(rig.a.read) == sizes.map { pattern($0, seed: 1) })
                #expect(rig.a.successes == sizes.count && rig.b.successes == sizes.count)
                #expect(
                    rig.a.core.statistics.messagesSent == sizes.count
                        && rig.a.core.statistics.messagesReceived == sizes.count)
                #expect(rig.a.failures.isEmpty && rig.b.failures.isEmpty && rig.a.core.closeReason == nil)
            }
        }

        /// What the handshake and the messages cost, for the page.
        @Test func theHandshakeTakesTheChunksThatThePageStates() {
            let expected: [NoiseSealTests.Meeting: Int] = [.ik: 8, .kk: 6, .invited: 12, .xx: 11]
            for (meeting, count) in expected {
                let rig = SealedRig(.lengthPrefix, meeting, chunkSize: 20)
                rig.run(seconds: 1)
                #expect(rig.a.core.statistics.chunksSent + rig.b.core.statistics.chunksSent == count, "\(meeting)")
            }
        }

        @Test(arguments: BaseFraming.allCases) func messagesAreTakenBackWhileTheyWait(_ base: BaseFraming) {
            let rig = SealedRig(base, chunkSize: 20, queueDepth: 1)
            let early = rig.a.send([1])
            rig.a.send([2])
            rig.a.core.cancel(early)
            rig.run(seconds: 2)
            #expect(rig.b.read == [[2]])
            // A long one under way, several behind it, of which some are taken back: the count of the two sides still agrees.
            rig.a.send(pattern(2000))
            rig.links.a.deliver()
            let ids = (0..<20).map { rig.a.send([UInt8(100 + $0)]) }
            for id in ids.dropLast() where id.rawValue.isMultiple(of: 2) { rig.a.core.cancel(id) }
            rig.run(seconds: 5)
            rig.a.send([9])
            rig.run(seconds: 2)
            #expect(rig.b.read.contains([9]) && rig.b.read.contains(pattern(2000)) && rig.a.core.closeReason == nil)
            #expect(Set(rig.b.read.map(\.count)) == [1, 2000])
            #expect(rig.a.pending == 0)
        }

        /// Two small messages share a chunk that the link refuses: both are sealed, and the peer counts both.
        @Test(arguments: [BaseFraming.endOfMessage, .lengthPrefix]) func sealedMessagesAreNotTakenBack(
            _ base: BaseFraming
        ) {
            let rig = SealedRig(base, chunkSize: 60, queueDepth: 1)
            rig.run(seconds: 1)
            rig.a.send([3])
            rig.a.send([4])
            let last = rig.a.send([5])
            rig.a.core.cancel(last)
            rig.run(seconds: 1)
            rig.a.send([6])
            rig.run(seconds: 1)
            #expect(rig.b.core.closeReason == nil && rig.b.read.contains([6]))
            #expect(rig.b.read == [[3], [4], [5], [6]] || rig.b.read == [[3], [4], [6]])
        }

        /// An urgent message would overtake the last message of the handshake.
        @Test(arguments: NoiseSealTests.Meeting.allCases) func urgentMessagesWaitForTheHandshakesEnd(
            _ meeting: NoiseSealTests.Meeting
        ) {
            let rig = SealedRig(.sequenced, meeting, chunkSize: 20)
            rig.a.send([1], options: SendOptions(priority: .urgent))
            rig.b.send([2], options: SendOptions(priority: .urgent))
            rig.run(seconds: 3)
            #expect(rig.b.read == [[1]] && rig.a.read == [[2]] && rig.a.failures.isEmpty && rig.b.failures.isEmpty)
        }

        /// The credit of the sequenced framing counts sealed bytes: it must not leak.
        @Test func creditLastsForManyMessages() {
            var limits = Limits()
            limits.maximumInboundBytes = 8 << 10
            let rig = SealedRig(.sequenced, chunkSize: 244, limits: limits)
            for round in 0..<40 {
                for number in 0..<50 { rig.a.send(pattern(number % 7, seed: round)) }
                rig.run(seconds: 1)
                #expect(rig.b.read.count == 50 * (round + 1))
            }
            #expect(rig.a.successes == 2000)
        }

        @Test func aSilentPeerEndsTheHandshakeInTime() {
            for base in BaseFraming.allCases {
                let time = VirtualTime()
                let (near, far) = MemoryLink.makePair(maximumChunkSize: 20)
                let end = SealedEnd(near, base.session(NoiseSealTests.Meeting.ik.connecting, id: 1), time: time)
                end.send([1])
                time.advance(by: .seconds(14))
                #expect(end.core.closeReason == nil)
                time.advance(by: .seconds(2))
                #expect(end.core.closeReason?.code == .timedOut, "\(base)")
                #expect(end.pending == 0 && end.successes == 0)
                withExtendedLifetime(far) {}
            }
        }

        @Test(arguments: [BaseFraming.endOfMessage, .lengthPrefix]) func aLinkThatEndsInTheHandshakeSaysSo(
            _ base: BaseFraming
        ) {
            let rig = SealedRig(base)
            rig.links.a.deliver()
            rig.links.a.disconnect()
            #expect(rig.a.core.closeReason?.message.contains("proven their keys") == true)
        }

        @Test(arguments: BaseFraming.allCases) func aPeerThatDoesNotSealIsNamed(_ base: BaseFraming) {
            let time = VirtualTime()
            let links = MemoryLink.makePair(maximumChunkSize: 60)
            let plain = SealedEnd(links.0, base.session(nil, id: 1), time: time)
            let sealed = SealedEnd(links.1, base.session(NoiseSealTests.Meeting.ik.accepting, id: 9), time: time)
            plain.send(Array("hello".utf8))
            for _ in 0..<50 {
                exchange((links.0, links.1))
                time.advance(by: .milliseconds(100))
            }
            sealed.take()
            #expect(sealed.core.closeReason?.code == .incompatiblePeer && sealed.read.isEmpty)
        }

        @Test func framingsForTextAreRefused() throws {
            let framing = try SealedFraming(
                EndOfMessageFraming(content: .text), by: NoiseSealTests.Meeting.ik.connecting)
            #expect(failure { try framing.check(PayloadFormat()) }?.message.contains("sealed") == true)
            #expect(
                failure {
                    try SealedFraming(LengthPrefixFraming(), by: NoiseSealTests.Meeting.ik.connecting).check(
                        PayloadFormat())
                } == nil)
        }

        @Test(arguments: BaseFraming.allCases) func limitsCountWhatTheAppSends(_ base: BaseFraming) {
            var limits = Limits()
            limits.maximumMessageSize = 100
            let rig = SealedRig(base, .xx, limits: limits)
            rig.a.send(pattern(100))
            rig.a.send(pattern(101))
            rig.run(seconds: 2)
            #expect(rig.b.read == [pattern(100)])
            #expect(rig.a.successes == 1 && rig.a.pending == 0 && rig.a.core.closeReason == nil)
        }

        /// The seal outlives the link: what was under way goes on over the next one, and only a peer that has lost its state ends it.
        @Test func theSealOutlivesTheLink() throws {
            var a = BaseFraming.sequenced.session(NoiseSealTests.Meeting.xx.connecting, id: 1)
            var b = BaseFraming.sequenced.session(NoiseSealTests.Meeting.xx.accepting, id: 1000)
            var now = Timestamp.zero
            var received: [[UInt8]] = []
            func move(_ a: inout any FramingSession, _ b: inout any FramingSession, atMost limit: Int = .max) throws {
                var count = 0
                var isBusy = true
                while isBusy, count < limit {
                    isBusy = false
                    for isForward in [true, false] {
                        var chunk: [UInt8]?
                        let offer: (RawSpan) throws(FerryError) -> Bool = { span in
                            chunk = span.withUnsafeBytes { Array($0) }
                            return true
                        }
                        if isForward {
                            _ = try a.transmit(atMost: 20, at: now, offer)
                        } else {
                            _ = try b.transmit(atMost: 20, at: now, offer)
                        }
                        guard let chunk else { continue }
                        isBusy = true
                        count += 1
                        if isForward {
                            try b.receive(chunk.span.bytes, at: now)
                        } else {
                            try a.receive(chunk.span.bytes, at: now)
                        }
                    }
                    while let event = b.nextEvent() {
                        if case .received(let payload) = event {
                            received.append(payload)
                            b.consume(payload.count, at: now)
                        }
                    }
                    while a.nextEvent() != nil {}
                }
            }
            // Ended after each number of chunks: in the handshake, and in the message.
            for cut in 1..<40 {
                a = BaseFraming.sequenced.session(NoiseSealTests.Meeting.xx.connecting, id: 1)
                b = BaseFraming.sequenced.session(NoiseSealTests.Meeting.xx.accepting, id: 1000)
                received = []
                try a.enqueue(pattern(300), as: MessageID(rawValue: 0), at: now)
                for round in 0..<2 {
                    a.linkDidOpen(at: now)
                    b.linkDidOpen(at: now)
                    for _ in 0..<(round == 0 ? 1 : 40) {
                        try move(&a, &b, atMost: round == 0 ? cut : .max)
                        if round == 0 { break }
                        now = now + .milliseconds(500)
                        try a.wake(at: now)
                        try b.wake(at: now)
                    }
                    if round == 0 {
                        try a.linkDidClose(at: now)
                        try b.linkDidClose(at: now)
                    }
                }
                #expect(received == [pattern(300)], "after \(cut) chunks")
            }
            // The peer comes back without its session.
            try a.linkDidClose(at: now)
            b = BaseFraming.sequenced.session(NoiseSealTests.Meeting.xx.accepting, id: 2000)
            a.linkDidOpen(at: now)
            b.linkDidOpen(at: now)
            #expect(failure { try move(&a, &b) }?.code == .peerLostState)
        }
    }
#endif
