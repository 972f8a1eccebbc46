#if NATS && Records
    import DequeModule
    import Ferry

    /// What a stream has answered for, and its server may not have synced yet: a value without I/O and clock.
    ///
    /// A record is let go only when a server that is still the same, and was all the time, is seen that long after its answer.
    struct Retention<Place: Sendable>: Sendable {
        /// Records of one lane that were answered for at about the same time.
        private struct Span: Sendable {
            let begin: Timestamp
            var end: Timestamp
            var last: Place
            var count: Int
        }

        /// How long records are kept after their answer, while the server stays up.
        let time: Duration
        private var spans: [Int64: Deque<Span>] = [:]
        /// The last of each lane of what can leave, and has not been said to have left.
        private var leaving: [Int64: Place] = [:]
        /// How many records are kept.
        private(set) var count = 0

        init(_ time: Duration) { self.time = time }

        /// The stream has answered for the next record of a lane.
        mutating func stored(_ place: Place, in lane: Int64, at now: Timestamp) {
            count += 1
            Self.add(place, to: &spans[lane, default: []], at: now, step: time / 64)
        }

        /// In 64 steps, so that memory does not grow with the records.
        private static func add(_ place: Place, to spans: inout Deque<Span>, at now: Timestamp, step: Duration) {
            guard let last = spans.last, now - last.begin < step else {
                return spans.append(Span(begin: now, end: now, last: place, count: 1))
            }
            let index = spans.endIndex - 1
            spans[index].end = now
            spans[index].last = place
            spans[index].count += 1
        }

        /// The server was up all the time until this moment.
        ///
        /// - Returns: the last of each lane of what can go, until it is said to have ``left()``.
        mutating func steady(at now: Timestamp) -> [Place] {
            for lane in spans.keys.sorted() {
                while let span = spans[lane]?.first, span.end + time <= now {
                    leaving[lane] = span.last
                    count -= span.count
                    _ = spans[lane]?.popFirst()
                }
                if spans[lane]?.isEmpty == true { spans[lane] = nil }
            }
            return leaving.sorted { $0.key < $1.key }.map(\.value)
        }

        /// What can go has left the inbox; it cannot while the disk is full.
        mutating func left() { leaving = [:] }

        /// Everything that is kept is published again.
        mutating func beginAgain() {
            spans = [:]
            count = 0
        }
    }
#endif
