#if Records
    import Ferry

    /// A stream that a store relays to a peer: any of several stores may carry it, and the peer takes each
    /// record once and in order, whichever store brought it. `Documentation/Records.md` has the bytes.
    struct RelayStream: Sendable, Hashable {
        /// What the names of such streams begin with; no app's does.
        static let mark = "ferry-relay:"

        /// Whose it is: what the origin's streams have in common.
        let origin: String
        /// The stream's name there.
        let name: String

        init(origin: String, name: String) {
            self.origin = origin
            self.name = name
        }

        /// Reads a stream's name; nil for an app's own.
        init?(_ text: String) {
            guard text.hasPrefix(Self.mark) else { return nil }
            let parts = text.dropFirst(Self.mark.count).split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { return nil }
            origin = String(parts[0])
            name = String(parts[1])
        }

        /// What the stream is called between stores.
        var text: String { "\(Self.mark)\(origin):\(name)" }

        /// - Throws: `invalidConfiguration`.
        func check() throws(FerryError) {
            guard !origin.isEmpty, !origin.contains(":"), NameRule.faultOfStream(text) == nil else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(origin.debugDescription) and \(name.debugDescription) are no origin and stream to relay: the origin has a name "
                        + "without colons, and both together have \(RecordsMessage.longestName - Self.mark.utf8.count - 1) bytes at most, "
                        + "and no NUL.",
                    fate: .nothingSent)
            }
        }
    }

    /// A place in a relayed stream. A record that is at neither a later place nor of a later time than the last record taken has
    /// been taken before.
    struct RelayPosition: Sendable, Hashable {
        var sequence: UInt64
        var time: UInt64

        /// Takes the place of a record that is new.
        ///
        /// An origin that has lost its end gives places a second time, to records that are younger; and two clocks of an origin's may
        /// be apart, so that neither alone tells.
        ///
        /// - Returns: whether it is new.
        mutating func advance(to other: RelayPosition) -> Bool {
            guard other.sequence > sequence || other.time > time else { return false }
            sequence = other.sequence
            time = max(time, other.time)
            return true
        }
    }

    /// A relayed record: its place in its own stream, when it was written there, and its bytes.
    public struct RelayedRecord: Sendable, Hashable {
        /// Its place in the origin's stream: 1 and more; it grows from record to record.
        public let sequence: UInt64
        /// When it was written there, in nanoseconds since 1970 by the origin's clock.
        public let time: UInt64
        /// The record.
        public let bytes: [UInt8]

        /// A record; sequence and time are held within 1 and 0 to 2^63 - 1.
        public init(sequence: UInt64, time: UInt64, bytes: [UInt8]) {
            self.sequence = max(1, min(sequence, RecordsMessage.largestNumber))
            self.time = min(time, RecordsMessage.largestNumber)
            self.bytes = bytes
        }

        /// How many more bytes a relayed record has than its own, at most.
        public static var overhead: Int { 18 }

        var place: RelayPosition { RelayPosition(sequence: sequence, time: time) }

        var encoded: [UInt8] {
            var encoded: [UInt8] = []
            encoded.reserveCapacity(bytes.count + Self.overhead)
            Varint.append(sequence, to: &encoded)
            Varint.append(time, to: &encoded)
            return encoded + bytes
        }

        /// - Throws: `misbehavingPeer`.
        init(decoding bytes: [UInt8]) throws(FerryError) {
            var reader = MessageReader(bytes)
            reader.kind = "relayed record"
            sequence = try reader.number("the sequence")
            guard sequence > 0 else { throw reader.failure("the sequence is 0") }
            time = try reader.number("the time")
            self.bytes = Array(reader.rest)
        }
    }
#endif
