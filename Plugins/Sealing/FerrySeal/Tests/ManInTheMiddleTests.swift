#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import TestSupport
    import Testing

    /// Somebody between the two sides who has everything but the keys: it ends both sides' links, reads whole sealed messages, and
    /// alters, drops, doubles, delays, reorders and splices them. Nothing wrong is delivered, and nothing hangs.
    @Suite(.tags(.hostility, .channel)) struct ManInTheMiddleTests {
        /// What becomes of a message on its way.
        enum Mischief: String, CaseIterable, Sendable {
            case none, alter, cut, lengthen, drop, double, delay, swap, splice, reflect, replayHandshake
        }

        /// One exchange with a message in hand of the attacker's.
        final class Exchange {
            let time = VirtualTime()
            let base: BaseFraming
            var generator: SplitMix64
            let a: SealedEnd
            let b: SealedEnd
            let proxies: (a: SealedEnd, b: SealedEnd)
            let links: [(a: MemoryLink, b: MemoryLink)]
            /// What went by, by direction; and what another exchange of the same keys left.
            var recorded: [[[UInt8]]] = [[], []]
            let others: [[[UInt8]]]
            var held: [(towardsB: Bool, message: [UInt8])] = []
            var forwarded = [0, 0]
            var mischiefs: [Mischief] = []
            let rate: UInt64
            let aim: Aim?

            /// One mischief, at one message: the place counts the messages of a direction, those of the handshake among them.
            struct Aim {
                let mischief: Mischief
                let place: Int
                let towardsB: Bool
            }

            init(
                _ base: BaseFraming, _ meeting: NoiseSealTests.Meeting, chunkSize: Int, seed: UInt64,
                others: [[[UInt8]]], rate: UInt64, aim: Aim? = nil
            ) {
                self.aim = aim
                self.base = base
                self.others = others
                self.rate = rate
                generator = SplitMix64(seed: seed)
                let first = MemoryLink.makePair(maximumChunkSize: chunkSize)
                let second = MemoryLink.makePair(maximumChunkSize: chunkSize)
                links = [first, second]
                // Keys of this exchange: an ephemeral key that came again would be what an attacker hopes for.
                let (connecting, accepting) = Self.sealings(meeting, seed: seed)
                a = SealedEnd(first.0, base.session(connecting, id: 1), time: time)
                proxies = (
                    SealedEnd(first.1, base.session(nil, id: 1000), time: time),
                    SealedEnd(second.0, base.session(nil, id: 2000), time: time)
                )
                b = SealedEnd(second.1, base.session(accepting, id: 3000), time: time)
            }

            static func sealings(_ meeting: NoiseSealTests.Meeting, seed: UInt64) -> (NoiseSealing, NoiseSealing) {
                let (own, theirs) = (NoiseSealTests.a, NoiseSealTests.b)
                let invitation = NoiseSealTests.invitation
                let ephemeral: (@Sendable () -> SecretKey, @Sendable () -> SecretKey) = (
                    { testKey(1000 + 2 * seed) }, { testKey(1001 + 2 * seed) }
                )
                let peer: NoiseSealing.Peer =
                    switch meeting {
                    case .ik: .key(theirs.publicKey)
                    case .kk: .pair(theirs.publicKey)
                    case .invited: .invitation(invitation)
                    case .xx: .anyone
                    }
                let acceptance: NoiseSealing.Acceptance =
                    switch meeting {
                    case .ik, .xx: .keys { $0 == own.publicKey }
                    case .kk: .pair(own.publicKey)
                    case .invited: .invitation(invitation)
                    }
                return (
                    NoiseSealing(connectingAs: own, to: peer, ephemeral: ephemeral.0),
                    NoiseSealing(acceptingAs: theirs, from: acceptance, ephemeral: ephemeral.1)
                )
            }

            func run(seconds: Int) {
                for _ in 0..<seconds * 4 {
                    settle()
                    time.advance(by: .milliseconds(250))
                    for (towardsB, message) in held { forward(message, towardsB) }
                    held = []
                }
                settle()
            }

            private func settle() {
                var isBusy = true
                while isBusy {
                    isBusy = false
                    for pair in links {
                        if pair.a.deliver() { isBusy = true }
                        if pair.b.deliver() { isBusy = true }
                    }
                    if a.take() { isBusy = true }
                    if b.take() { isBusy = true }
                    if proxies.a.take() { isBusy = true }
                    if proxies.b.take() { isBusy = true }
                    for towardsB in [true, false] {
                        let read = towardsB ? proxies.a.read : proxies.b.read
                        let place = towardsB ? 0 : 1
                        while recorded[place].count < read.count {
                            let message = read[recorded[place].count]
                            recorded[place].append(message)
                            meddle(message, towardsB)
                            isBusy = true
                        }
                    }
                    // One side has ended: so does the other, as a proxy has it.
                    if a.core.closeReason != nil || proxies.a.core.closeReason != nil {
                        proxies.b.core.finish(FerryError(.closed, "The proxy closes."))
                    }
                    if b.core.closeReason != nil || proxies.b.core.closeReason != nil {
                        proxies.a.core.finish(FerryError(.closed, "The proxy closes."))
                    }
                }
            }

            private func forward(_ message: [UInt8], _ towardsB: Bool) {
                forwarded[towardsB ? 0 : 1] += 1
                (towardsB ? proxies.b : proxies.a).send(message)
            }

            private func meddle(_ message: [UInt8], _ towardsB: Bool) {
                let mischief: Mischief
                if let aim {
                    let isIt = aim.towardsB == towardsB && recorded[towardsB ? 0 : 1].count == aim.place + 1
                    mischief = isIt ? aim.mischief : .none
                } else {
                    mischief =
                        generator.next() % rate == 0
                        ? Mischief.allCases[Int(generator.next() % UInt64(Mischief.allCases.count))] : .none
                }
                if mischief != .none { mischiefs.append(mischief) }
                let own = recorded[towardsB ? 0 : 1]
                let opposite = recorded[towardsB ? 1 : 0]
                let other = others.isEmpty ? [] : others[towardsB ? 0 : 1]
                func any(_ messages: [[UInt8]]) -> [UInt8] {
                    messages.isEmpty ? [] : messages[Int(generator.next() % UInt64(messages.count))]
                }
                switch mischief {
                case .none: forward(message, towardsB)
                case .alter:
                    var altered = message
                    if !altered.isEmpty {
                        altered[Int(generator.next() % UInt64(altered.count))] ^= UInt8(1 << (generator.next() % 8))
                    }
                    forward(altered, towardsB)
                case .cut:
                    forward(Array(message.prefix(Int(generator.next() % UInt64(max(1, message.count))))), towardsB)
                case .lengthen: forward(message + [UInt8(truncatingIfNeeded: generator.next())], towardsB)
                case .drop: break
                case .double:
                    forward(message, towardsB)
                    forward(message, towardsB)
                case .delay: held.append((towardsB, message))
                case .swap:
                    // The one before comes again, and then this one.
                    forward(any(own), towardsB)
                    forward(message, towardsB)
                case .splice:
                    forward(other.indices.contains(own.count - 1) ? other[own.count - 1] : any(other), towardsB)
                case .reflect: forward(any(opposite), towardsB)
                case .replayHandshake:
                    forward(message, towardsB)
                    forward(own.first ?? [], towardsB)
                }
            }
        }

        private static func payloads(_ seed: UInt64, _ side: UInt64) -> [[UInt8]] {
            var generator = SplitMix64(seed: seed &* 2 &+ side)
            return (0..<6).map { number in [UInt8(side), UInt8(number)] + generator.bytes(Int(generator.next() % 90)) }
        }

        @discardableResult
        private static func run(
            _ base: BaseFraming, chunkSize: Int, seed: UInt64, others: [[[UInt8]]], rate: UInt64,
            aim: Exchange.Aim? = nil
        ) -> Exchange {
            let meetings = NoiseSealTests.Meeting.allCases
            let exchange = Exchange(
                base, meetings[Int(seed % UInt64(meetings.count))], chunkSize: chunkSize, seed: seed, others: others,
                rate: rate, aim: aim)
            let (fromA, fromB) = (payloads(seed, 0), payloads(seed, 1))
            for (x, y) in zip(fromA, fromB) {
                exchange.a.send(x)
                exchange.b.send(y)
            }
            exchange.run(seconds: 20)
            let context: String = "seed \(seed), \(base), chunks of \(chunkSize), \(exchange.mischiefs)"
            for (read, sent) in [(exchange.b.read, fromA), (exchange.a.read, fromB)] {
                if base == .sequenced {
                    #expect(Set(read).isSubset(of: Set(sent)) && Set(read).count == read.count, "\(context)")
                } else {
                    #expect(read == Array(sent.prefix(read.count)), "\(context)")
                }
            }
            // Whoever waited for anything has heard of it.
            #expect(exchange.a.pending == 0 && exchange.b.pending == 0, "\(context)")
            let isWhole = exchange.b.read.count == fromA.count && exchange.a.read.count == fromB.count
            let isOver = exchange.a.core.closeReason != nil || exchange.b.core.closeReason != nil
            if exchange.mischiefs.isEmpty { #expect(isWhole && !isOver, "\(context)") }
            // A message that was dropped is missed when the next one comes, or where nothing follows by those above.
            let isSilent = exchange.mischiefs.allSatisfy { $0 == .drop || $0 == .delay }
            #expect(isWhole || isOver || isSilent, "\(context)")
            return exchange
        }

        /// 240 exchanges, 1020 with `FERRY_FULL`.
        @Test(arguments: BaseFraming.allCases, [20, 244]) func nothingWrongIsDeliveredAndNothingHangs(
            _ base: BaseFraming, _ chunkSize: Int
        ) {
            var caught = 0
            var kinds: Set<FerryError.Code> = []
            for seed in 0..<Effort.of(40, full: 170) as Range<UInt64> {
                // The same keys and another session, of which everything is on record.
                let other = Self.run(base, chunkSize: chunkSize, seed: seed + 10_000, others: [], rate: .max)
                let exchange = Self.run(base, chunkSize: chunkSize, seed: seed, others: other.recorded, rate: 6)
                for end in [exchange.a, exchange.b] {
                    guard let error = end.core.closeReason, error.code.description.hasPrefix("seal.") else { continue }
                    caught += 1
                    kinds.insert(error.code)
                }
            }
            #expect(caught > Effort.of(15, full: 60), "\(caught)")
            #expect(kinds.isSuperset(of: [.sealRefused, .sealReplayed]), "\(kinds)")
            guard Effort.isFull else { return }
            #expect(kinds.isSuperset(of: [.sealTruncated, .sealHandshakeRepeated]), "\(kinds)")
            if base != .sequenced { #expect(kinds.contains(.sealReordered), "\(kinds)") }
        }

        /// Each of ten kinds of mischief, at each message of both directions, the handshake's among them: 160 exchanges for each
        /// handshake, all of them with `FERRY_FULL`, every seventh otherwise.
        @Test(arguments: BaseFraming.allCases, 0..<NoiseSealTests.Meeting.allCases.count) func mischiefAtEachMessage(
            _ base: BaseFraming, _ meeting: Int
        ) {
            var number = 0
            // The seed says how they meet.
            let seed = UInt64(meeting)
            let other = Self.run(base, chunkSize: 244, seed: seed + 10_000, others: [], rate: .max)
            for mischief in Mischief.allCases where mischief != .none {
                for place in 0..<8 {
                    for towardsB in [true, false] {
                        number += 1
                        guard Effort.isFull || number % 7 == meeting else { continue }
                        let aim = Exchange.Aim(mischief: mischief, place: place, towardsB: towardsB)
                        Self.run(base, chunkSize: 244, seed: seed, others: other.recorded, rate: .max, aim: aim)
                    }
                }
            }
            #expect(number == 160)
        }
    }
#endif
