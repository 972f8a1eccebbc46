#if Seal
    import Ferry

    /// Which numbers have come, for messages that overtake each other: each is taken once.
    ///
    /// It keeps the numbers that are missing, as ranges, so that one message may be overtaken by any number of others. At most
    /// ``maximumGaps`` ranges: beyond that the oldest is given up, and its numbers are too old.
    package struct ReplayWindow: Sendable, Hashable {
        /// The most ranges of missing numbers.
        package static let maximumGaps = 1024

        /// What a number is.
        package enum Standing: Sendable, Hashable { case new, replayed, tooOld }

        /// One more than the highest number that has come.
        package private(set) var next: UInt64 = 0
        /// Below this number nothing is taken.
        package private(set) var floor: UInt64 = 0
        /// The missing numbers below ``next``, lowest first; never empty, never touching.
        private var gaps: [Range<UInt64>] = []

        /// Nothing has come.
        package init() {}

        /// How many ranges are missing.
        package var gapCount: Int { gaps.count }

        /// The lowest number that may still come.
        package var lowestMissing: UInt64 { gaps.first?.lowerBound ?? next }

        /// What a number is, before it is known to be the peer's.
        package func standing(of number: UInt64) -> Standing {
            if number >= next { return .new }
            if number < floor { return .tooOld }
            return gap(of: number) == nil ? .replayed : .new
        }

        /// Takes a number whose standing is ``Standing/new``. Any other is passed over.
        package mutating func take(_ number: UInt64) {
            guard number < .max else { return }
            if number >= next {
                if number > next { gaps.append(next..<number) }
                next = number + 1
            } else if number >= floor, let index = gap(of: number) {
                let gap = gaps[index]
                let parts = [gap.lowerBound..<number, number + 1..<gap.upperBound].filter { !$0.isEmpty }
                gaps.replaceSubrange(index...index, with: parts)
            }
            if gaps.count > Self.maximumGaps { giveUp(below: gaps[gaps.count - Self.maximumGaps - 1].upperBound) }
        }

        /// Takes no number below `number` any more.
        package mutating func giveUp(below number: UInt64) {
            guard number > floor else { return }
            floor = number
            while let gap = gaps.first, gap.lowerBound < number {
                gaps.removeFirst()
                if gap.upperBound > number { gaps.insert(number..<gap.upperBound, at: 0) }
            }
        }

        private func gap(of number: UInt64) -> Int? {
            var low = 0
            var high = gaps.count
            while low < high {
                let middle = (low + high) / 2
                if gaps[middle].upperBound <= number { low = middle + 1 } else { high = middle }
            }
            return low < gaps.count && gaps[low].contains(number) ? low : nil
        }
    }
#endif
