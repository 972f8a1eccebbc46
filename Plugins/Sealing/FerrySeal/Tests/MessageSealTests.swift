#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import TestSupport
    import Testing

    /// Messages after the handshake: numbers, keys, the replay window.
    @Suite(.tags(.hostility)) struct MessageSealTests {
        /// A sealer and the opener of the same direction.
        static func pair(
            _ numbering: Numbering, seed: UInt64 = 1, from next: UInt64 = 0
        ) throws -> (MessageSealer, MessageOpener) {
            var (a, b) = try NoiseTests.pair(.kk, seed: seed)
            _ = try b.read(a.write())
            _ = try a.read(b.write())
            let (ours, theirs) = try (#require(a.result), #require(b.result))
            return (
                try #require(MessageSealer(ours.sending, numbering, next: next)),
                try #require(MessageOpener(theirs.receiving, numbering, next: next))
            )
        }

        @Test func sealingAddsSixteenBytesAndTheNumberWhereItIsStated() throws {
            var (counted, _) = try Self.pair(.counted)
            var (stated, _) = try Self.pair(.stated)
            for count in [0, 1, 244, 65_536] {
                #expect(try counted.seal(pattern(count)).count == count + 16)
                #expect(try stated.seal(pattern(count)).count == count + 17)
            }
            for _ in 4..<128 { _ = try stated.seal([]) }
            #expect(try stated.seal([]).count == 18)
        }

        @Test func countedMessagesOpenInOrderOverTheEndOfAnEpoch() throws {
            var (sealer, opener) = try Self.pair(.counted, from: SealNumbers.perEpoch - 3)
            for number in 0..<8 {
                #expect(try opener.open(sealer.seal(pattern(number))) == pattern(number))
                #expect(opener.keyCount == 1)
            }
        }

        /// As Noise says it: counting and rekeying a CipherState gives the same bytes.
        @Test func epochsAreNoisesRekey() throws {
            var (a, b) = try NoiseTests.pair(.kk)
            _ = try b.read(a.write())
            _ = try a.read(b.write())
            var cipher = try #require(a.result).sending
            var sealer = try #require(MessageSealer(cipher, .counted))
            for number in 0..<SealNumbers.perEpoch + 2 {
                if number == SealNumbers.perEpoch { try cipher.rekey() }
                let (ours, theirs) = try (sealer.seal([]), cipher.encrypt([]))
                guard ours == theirs else {
                    Issue.record("message \(number)")
                    return
                }
            }
        }

        @Test func countedMessagesNameReplaysAndGaps() throws {
            var (sealer, opener) = try Self.pair(.counted)
            let sealed = try (0..<20).map { try sealer.seal([UInt8($0)]) }
            for index in 0..<10 { _ = try opener.open(sealed[index]) }
            for index in 2..<10 {
                #expect(failure { try opener.open(sealed[index]) }?.code == .sealReplayed, "\(index)")
            }
            for index in 11..<19 {
                #expect(failure { try opener.open(sealed[index]) }?.code == .sealReordered, "\(index)")
            }
            #expect(failure { try opener.open(sealed[0]) }?.code == .sealRefused)
            #expect(try opener.open(sealed[10]) == [10])
        }

        @Test(arguments: [Numbering.counted, .stated]) func alteredCutAndForeignMessagesAreRefused(
            _ numbering: Numbering
        ) throws {
            var (sealer, opener) = try Self.pair(numbering)
            var (other, _) = try Self.pair(numbering, seed: 100)
            let sealed = try sealer.seal(pattern(40))
            for index in sealed.indices {
                for bit in 0..<8 {
                    var altered = sealed
                    altered[index] ^= UInt8(1 << bit)
                    #expect(failure { try opener.open(altered) } != nil)
                }
            }
            for count in 0..<sealed.count {
                let code = failure { try opener.open(Array(sealed.prefix(count))) }?.code
                #expect(code == (count < (numbering == .counted ? 16 : 17) ? .sealTruncated : .sealRefused), "\(count)")
            }
            #expect(failure { try opener.open(sealed + [0]) }?.code == .sealRefused)
            #expect(failure { try opener.open(other.seal(pattern(40))) }?.code == .sealRefused)
            #expect(try opener.open(sealed) == pattern(40))
        }

        @Test func statedMessagesOpenInAnyOrderOnce() throws {
            for seed in 0..<20 as Range<UInt64> {
                var generator = SplitMix64(seed: seed)
                var (sealer, opener) = try Self.pair(.stated, from: SealNumbers.perEpoch - 100)
                let sealed = try (0..<200).map { try sealer.seal(pattern($0)) }
                // Some are lost, as messages are that were taken back.
                let order = Array(sealed.indices).shuffled(using: &generator).prefix(150)
                for index in order { #expect(try opener.open(sealed[index]) == pattern(index)) }
                for index in order { #expect(failure { try opener.open(sealed[index]) }?.code == .sealReplayed) }
            }
        }

        @Test func oneMessageMayBeOvertakenByManyEpochs() throws {
            var (sealer, opener) = try Self.pair(.stated)
            let slow = try sealer.seal([1, 2, 3])
            for _ in 0..<SealNumbers.perEpoch * 3 / 1000 {
                try sealer.skip(999)
                _ = try opener.open(sealer.seal([]))
            }
            #expect(opener.keyCount == 3)
            #expect(try opener.open(slow) == [1, 2, 3])
            #expect(failure { try opener.open(slow) }?.code == .sealReplayed)
        }

        @Test func numbersTooFarAheadAndTooOldAreNamedAndKeysStayFew() throws {
            var (sealer, opener) = try Self.pair(.stated)
            let first = try sealer.seal([1])
            var forged: [UInt8] = []
            Varint.append(SealNumbers.epochsUnderWay * SealNumbers.perEpoch + 1, to: &forged)
            #expect(failure { try opener.open(forged + [UInt8](repeating: 0, count: 16)) }?.code == .sealTooFarAhead)
            forged = []
            Varint.append(SealNumbers.limit, to: &forged)
            #expect(failure { try opener.open(forged + [UInt8](repeating: 0, count: 16)) }?.code == .sealExhausted)
            #expect(opener.keyCount == 1)
            // A message of each epoch, for 70 epochs, and the very first one after them.
            for _ in 0..<70 {
                try sealer.skip(SealNumbers.perEpoch - 1)
                _ = try opener.open(sealer.seal([]))
                #expect(opener.keyCount <= 64)
            }
            #expect(failure { try opener.open(first) }?.code == .sealTooOld)
        }

        @Test func aSealerEndsAtItsLimit() throws {
            var (sealer, _) = try Self.pair(.counted, from: SealNumbers.limit - 1)
            _ = try sealer.seal([])
            #expect(failure { try sealer.seal([]) }?.code == .sealExhausted)
        }

        /// Against a set of all numbers that came, which the window must agree with as long as it gives none up.
        @Test func theWindowTakesEachNumberOnce() {
            for seed in 0..<50 as Range<UInt64> {
                var generator = SplitMix64(seed: seed)
                var window = ReplayWindow()
                var came: Set<UInt64> = []
                for _ in 0..<400 {
                    let number = generator.next() % 500
                    #expect(window.standing(of: number) == (came.contains(number) ? .replayed : .new))
                    window.take(number)
                    came.insert(number)
                    #expect(window.next == came.max().map { $0 + 1 })
                    #expect(window.lowestMissing == (0...500).first { !came.contains($0) })
                }
            }
        }

        @Test func theWindowIsBoundedAndGivesUpTheOldest() {
            var window = ReplayWindow()
            for number in 0..<UInt64(10 * ReplayWindow.maximumGaps) { window.take(2 * number + 1) }
            #expect(window.gapCount == ReplayWindow.maximumGaps)
            #expect(window.standing(of: 0) == .tooOld)
            #expect(window.standing(of: 1) == .tooOld)
            #expect(window.standing(of: window.next - 2) == .new)
            #expect(window.standing(of: window.next - 1) == .replayed)
            window.giveUp(below: window.next)
            #expect(window.gapCount == 0 && window.lowestMissing == window.next)
        }
    }
#endif
