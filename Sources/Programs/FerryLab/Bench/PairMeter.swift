package import Ferry

/// The arrivals while a measurement runs, second by second: a value that is told each of them and its time.
package struct PairMeter: Sendable {
    private let start: Timestamp
    private var last: Timestamp
    private var mark: (time: Timestamp, bytes: Int, messages: Int)
    package private(set) var messages = 0
    package private(set) var bytes = 0

    package init(start: Timestamp) {
        self.start = start
        last = start
        mark = (start, 0, 0)
    }

    package mutating func take(_ count: Int, at now: Timestamp) {
        messages += 1
        bytes += count
        last = now
    }

    /// What came since the last line, once a second has passed.
    package mutating func line(at now: Timestamp) -> PairProgress? {
        let seconds = (now - mark.time) / .seconds(1)
        guard seconds >= 1 else { return nil }
        defer { mark = (now, bytes, messages) }
        return PairProgress(
            seconds: (now - start) / .seconds(1), goodput: Double(bytes - mark.bytes) * 8 / seconds / 1000,
            messages: messages - mark.messages)
    }

    /// From the beginning to the last arrival.
    package var seconds: Double { max(0, (last - start) / .seconds(1)) }
}

/// A second of a measurement.
package struct PairProgress: Encodable, Equatable, Sendable {
    /// Since the measurement began.
    package var seconds: Double
    /// In kbit/s of 1000 bits.
    package var goodput: Double
    package var messages: Int

    package func text(_ what: String) -> String {
        let time = number(seconds, 1)
        let rate = number(goodput, 1)
        return String(repeating: " ", count: max(0, 7 - time.count)) + time + " s  \(what)  "
            + String(repeating: " ", count: max(0, 10 - rate.count)) + rate + " kbit/s  \(messages) messages"
    }
}
