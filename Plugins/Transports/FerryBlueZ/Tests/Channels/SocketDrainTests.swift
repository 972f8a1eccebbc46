#if BlueZ
    @testable import FerryBlueZ
    import TestSupport
    import Testing

    /// How long a closed channel of the kernel's waits for its SDUs, by times in microseconds.
    @Suite(.tags(.l2cap)) struct SocketDrainTests {
        private let second: UInt64 = 1_000_000
        private let start: UInt64 = 7_000_000

        @Test func nothingWaitsForAnUnusedBuffer() {
            var drain = SocketDrain(at: start)
            let isUnused = drain.goesOn(with: SocketSpace(free: 1000, size: 1000), at: start)
            let isUnknown = drain.goesOn(with: nil, at: start)
            #expect(!isUnused && !isUnknown)
        }

        @Test func aBufferThatStaysAsFullEndsAfterFiveSeconds() {
            var drain = SocketDrain(at: start)
            let space = SocketSpace(free: 999, size: 1000)
            let before = drain.goesOn(with: space, at: start + 5 * second - 1)
            let after = drain.goesOn(with: space, at: start + 5 * second)
            #expect(before && !after)
        }

        /// An answer to a peer takes space again, and is no sign that anything has left.
        @Test func aBufferThatFillsHasNoMoreTime() {
            var drain = SocketDrain(at: start)
            let outcomes = [500, 400, 300].enumerated().map { round, free in
                drain.goesOn(with: SocketSpace(free: Int32(free), size: 1000), at: start + UInt64(round) * 2_500_000)
            }
            #expect(outcomes == [true, true, false])
        }

        /// However slow the link is, up to a minute.
        @Test func aBufferThatEmptiesHasAMinute() {
            var drain = SocketDrain(at: start)
            let outcomes = (0...15).map { round in
                drain.goesOn(with: SocketSpace(free: Int32(round), size: 1000), at: start + UInt64(round) * 4 * second)
            }
            #expect(outcomes == Array(repeating: true, count: 15) + [false])
        }
    }
#endif
