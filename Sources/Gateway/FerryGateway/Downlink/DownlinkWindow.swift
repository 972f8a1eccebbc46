#if NATS && Records
    import DequeModule
    import FerryRecords

    /// What of one peer's messages has been read from the stream and is not yet on the peer's disk: a value without I/O and clock.
    ///
    /// A message leaves the stream when the peer has it and everything before it of the same subject, so that the gateway that carries the
    /// peer's messages next begins with the first that it may not have.
    struct DownlinkWindow: Sendable {
        struct Bounds: Sendable, Hashable {
            var records = 256
            var bytes = 1 << 20
        }

        /// A message of a subject in the store's outbox.
        private struct OnItsWay: Sendable {
            /// Its place in the stream.
            let place: UInt64
            /// Its sequence in the outbox.
            let sequence: UInt64
            let bytes: Int
        }

        /// What can leave the stream.
        struct Removal: Sendable, Hashable {
            let subject: String
            let through: UInt64
        }

        private let bounds: Bounds
        private var subjects: [String: Deque<OnItsWay>] = [:]
        /// The last place of each subject that can leave the stream, and how far it has been asked for of those.
        private var removable: [String: UInt64] = [:]
        private var removed: [String: UInt64] = [:]
        /// From which place on the stream is to be read.
        private(set) var next: UInt64 = 1
        private(set) var records = 0
        private var bytes = 0

        init(_ bounds: Bounds) { self.bounds = bounds }

        var isEmpty: Bool { records == 0 }
        var hasRoom: Bool { records < bounds.records && bytes < bounds.bytes }
        /// How many more messages there may be.
        var room: Int { hasRoom ? bounds.records - records : 0 }

        /// Messages of a subject are in the outbox.
        ///
        /// - Parameters:
        ///   - messages: places and sizes, in the stream's order.
        ///   - sequence: the last one's in the outbox, where they stand in a row.
        mutating func put(_ messages: [(place: UInt64, bytes: Int)], of subject: String, through sequence: UInt64) {
            for (index, message) in messages.enumerated() {
                subjects[subject, default: []].append(
                    OnItsWay(
                        place: message.place, sequence: sequence - UInt64(messages.count - 1 - index),
                        bytes: message.bytes))
                next = max(next, message.place + 1)
                records += 1
                bytes += message.bytes
            }
        }

        /// The peer has a subject's messages up to this one of the outbox: they can leave the stream.
        ///
        /// - Returns: how many are new to it.
        mutating func committed(_ subject: String, through sequence: UInt64) -> Int {
            var count = 0
            while let first = subjects[subject]?.first, first.sequence <= sequence {
                _ = subjects[subject]?.popFirst()
                removable[subject] = first.place
                records -= 1
                bytes -= first.bytes
                count += 1
            }
            if subjects[subject]?.isEmpty == true { subjects[subject] = nil }
            return count
        }

        var hasRemovals: Bool { !removable.isEmpty }

        /// What leaves the stream now: all that can but its very last message, from which a server that was killed knows at which
        /// place to go on. nats-server 2.9 begins again at 1 where there is none.
        mutating func removals(before last: UInt64) -> [Removal] {
            removable.sorted { $0.key < $1.key }.compactMap { subject, through in
                if through < last { removable[subject] = nil }
                let through = min(through, last > 0 ? last - 1 : 0)
                guard through > removed[subject] ?? 0 else { return nil }
                removed[subject] = removable[subject] == nil ? nil : through
                return Removal(subject: subject, through: through)
            }
        }
    }
#endif
