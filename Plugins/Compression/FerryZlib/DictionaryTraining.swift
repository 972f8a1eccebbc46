public import Ferry

extension ZlibCompression {
    /// Returns a dictionary for messages like `samples`: the parts that most of them share, the most valuable last.
    ///
    /// It depends on the samples alone, so that equal samples give equal bytes. Both sides need the same dictionary: train
    /// it once, ship it, and never train it on a device.
    ///
    /// - Parameters:
    ///   - samples: plain messages as the codec writes them, 2 to 100 000, together at most 64 MiB. Some hundred are
    ///     plenty. Of more than 512 KiB, samples evenly spread over the list are used.
    ///   - maximumSize: the most bytes of the dictionary, 64 to 32 768. A larger one takes longer at each message and
    ///     gains little beyond what messages share.
    /// - Throws: `FerryError` with `invalidConfiguration` outside these limits, for samples that share nothing, and when
    ///   libz cannot start.
    public static func dictionary(trainedOn samples: [[UInt8]], maximumSize: Int = 4096) throws(FerryError) -> [UInt8] {
        guard (64...32_768).contains(maximumSize) else {
            throw FerryError(
                .invalidConfiguration,
                "A dictionary of at most \(maximumSize) bytes cannot be trained: give 64 to 32768, deflate's window.")
        }
        let total = samples.reduce(0) { $0 + $1.count }
        guard (2...100_000).contains(samples.count), total <= 64 << 20 else {
            throw FerryError(
                .invalidConfiguration,
                "A dictionary cannot be trained on \(samples.count) sample\(samples.count == 1 ? "" : "s") of \(total) bytes: give 2 to 100000 samples "
                    + "of at most 64 MiB together.")
        }
        let used = spread(samples, total: total)
        let shape = try bestShape(for: used, maximumSize)
        let dictionary = SharedParts(of: used, gram: shape.gram).dictionary(segment: shape.segment, maximumSize)
        guard !dictionary.isEmpty else {
            throw FerryError(
                .invalidConfiguration,
                "The \(samples.count) samples share no \(shape.gram) bytes: a dictionary would not help. Give messages of "
                    + "one kind, plain, as the codec writes them.")
        }
        return dictionary
    }

    /// The lengths that training looks at: of the strings that it counts, and of the parts that it takes.
    private struct Shape {
        var gram: Int
        var segment: Int
    }

    /// Samples of at most 512 KiB, evenly spread, each cut to the 64 KiB that a dictionary can serve.
    private static func spread(_ samples: [[UInt8]], total: Int) -> [[UInt8]] {
        let most = 512 << 10
        let step = max(1, (total + most - 1) / most)
        var room = most
        var used: [[UInt8]] = []
        for index in stride(from: 0, to: samples.count, by: min(step, max(1, samples.count / 2))) {
            let sample = samples[index].prefix(min(room, 65_536))
            room -= sample.count
            used.append(Array(sample))
        }
        return used
    }

    /// What makes one half of the samples smallest with a dictionary of the other half: judged by the samples that it was
    /// made of, the best dictionary would be the samples.
    private static func bestShape(for samples: [[UInt8]], _ maximumSize: Int) throws(FerryError) -> Shape {
        let halves = [0, 1].map { half in samples.indices.filter { $0 % 2 == half }.map { samples[$0] } }
        let judged = stride(from: 0, to: halves[1].count, by: max(1, halves[1].count / 400)).map { halves[1][$0] }
        var best = (shape: Shape(gram: 4, segment: 64), size: Int.max)
        for gram in [4, 6, 8] {
            let parts = SharedParts(of: halves[0], gram: gram)
            for segment in [16, 32, 64, 128, 256] {
                let dictionary = parts.dictionary(segment: segment, maximumSize)
                let size = try ZlibCompression(dictionary: dictionary).size(of: judged)
                if size < best.size { best = (Shape(gram: gram, segment: segment), size) }
            }
        }
        return best.shape
    }

    /// The bytes that `messages` take together, each compressed or, where that is smaller, as it is.
    private func size(of messages: [[UInt8]]) throws(FerryError) -> Int {
        var sum = 0
        for message in messages {
            var output: [UInt8] = []
            let isSmaller = try compress(message.span.bytes, into: &output, budget: message.count)
            sum += isSmaller ? output.count : message.count
        }
        return sum
    }
}

/// Which short strings ("grams") the samples share, and parts of the samples that hold many of them.
///
/// The greedy choice of COVER (Liao, Petri, Moffat, Wirth: Effective Construction of Relative Lempel-Ziv Dictionaries, 2016),
/// which zstd's trainer uses: each part counts the samples that have its grams, and grams that an earlier part has count no
/// more. A choice can only lower what other parts are worth, so an old worth is an upper bound.
struct SharedParts {
    private let text: [UInt8]
    private let gram: Int
    /// Where each sample ends in ``text``.
    private let ends: [Int]
    /// The gram that begins at each place of ``text``; -1 where the sample ends before it.
    private var grams: [Int]
    /// For each gram, in how many samples it is beyond the first.
    private var worth: [Int]

    /// - Parameter gram: the length of grams in bytes, 1 to 8.
    init(of samples: [[UInt8]], gram: Int) {
        text = samples.flatMap { $0 }
        self.gram = gram
        grams = [Int](repeating: -1, count: text.count)
        worth = []
        var ends: [Int] = []
        var known: [UInt64: Int] = [:]
        var lastSample: [Int] = []
        var start = 0
        for (number, sample) in samples.enumerated() {
            for place in stride(from: start, through: start + sample.count - gram, by: 1) {
                let value = text[place..<place + gram].reduce(0) { $0 << 8 | UInt64($1) }
                let index = known[value, default: worth.count]
                if index == worth.count {
                    known[value] = index
                    worth.append(0)
                    lastSample.append(number)
                } else if lastSample[index] != number {
                    worth[index] += 1
                    lastSample[index] = number
                }
                grams[place] = index
            }
            start += sample.count
            ends.append(start)
        }
        self.ends = ends
    }

    /// A part of the text that can be taken, with what it was worth when it was last looked at.
    private struct Candidate {
        var worth: Int
        var range: Range<Int>

        /// Of two equal ones the earlier: the order shall be the samples'.
        func isBetter(than other: Candidate) -> Bool {
            worth != other.worth ? worth > other.worth : range.lowerBound < other.range.lowerBound
        }
    }

    /// The most valuable parts of at most `segment` bytes, the best last; at most `maximumSize` bytes together.
    func dictionary(segment: Int, _ maximumSize: Int) -> [UInt8] {
        var cover = Cover(worth: worth)
        var heap = MaximumHeap(candidates(segment).map { judged($0, &cover) }.filter { $0.worth > 0 })
        var parts: [Range<Int>] = []
        var count = 0
        while maximumSize - count >= gram, let best = heap.popFirst() {
            let now = judged(best.range, &cover)
            if now.worth < best.worth {
                if now.worth > 0 { heap.insert(now) }
                continue
            }
            let whole = trimmed(best.range, cover)
            let part = whole.lowerBound..<min(whole.upperBound, whole.lowerBound + maximumSize - count)
            for place in part.lowerBound...part.upperBound - gram where grams[place] >= 0 {
                cover.worth[grams[place]] = 0
            }
            parts.append(part)
            count += part.count
        }
        return parts.reversed().flatMap { text[$0] }
    }

    /// Parts that overlap by seven eighths, within samples.
    private func candidates(_ segment: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        for end in ends {
            for place in stride(from: start, to: max(start + 1, end - gram + 1), by: max(1, segment / 8))
            where place + gram <= end {
                ranges.append(place..<min(end, place + segment))
            }
            start = end
        }
        return ranges
    }

    /// What grams are still worth, and which of them one look has counted already.
    private struct Cover {
        var worth: [Int]
        var seen: [Int]
        var look = 0

        init(worth: [Int]) {
            self.worth = worth
            seen = [Int](repeating: 0, count: worth.count)
        }
    }

    private func judged(_ range: Range<Int>, _ cover: inout Cover) -> Candidate {
        cover.look += 1
        var sum = 0
        for place in range.lowerBound...range.upperBound - gram {
            let index = grams[place]
            guard index >= 0, cover.seen[index] != cover.look else { continue }
            cover.seen[index] = cover.look
            sum += cover.worth[index]
        }
        return Candidate(worth: sum, range: range)
    }

    /// The range without worthless bytes at its ends.
    private func trimmed(_ range: Range<Int>, _ cover: Cover) -> Range<Int> {
        let places = (range.lowerBound...range.upperBound - gram).filter {
            grams[$0] >= 0 && cover.worth[grams[$0]] > 0
        }
        guard let first = places.first, let last = places.last else { return range }
        return first..<last + gram
    }

    /// A binary heap with the best candidate first.
    private struct MaximumHeap {
        private var items: [Candidate]

        init(_ items: [Candidate]) { self.items = items.sorted { $0.isBetter(than: $1) } }

        mutating func insert(_ item: Candidate) {
            items.append(item)
            var index = items.count - 1
            while index > 0, items[index].isBetter(than: items[(index - 1) / 2]) {
                items.swapAt(index, (index - 1) / 2)
                index = (index - 1) / 2
            }
        }

        mutating func popFirst() -> Candidate? {
            guard let first = items.first, let last = items.popLast() else { return nil }
            guard !items.isEmpty else { return first }
            items[0] = last
            var index = 0
            while true {
                var best = index
                for child in [2 * index + 1, 2 * index + 2] where child < items.count {
                    if items[child].isBetter(than: items[best]) { best = child }
                }
                guard best != index else { return first }
                items.swapAt(index, best)
                index = best
            }
        }
    }
}
