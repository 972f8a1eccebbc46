#if Records
    import Ferry

    /// A message of the records protocol, version 1: `Documentation/Records.md` has it byte by byte.
    enum RecordsMessage: Sendable, Hashable {
        /// Who speaks: the first message of either side.
        struct Hello: Sendable, Hashable {
            /// The versions that this side speaks.
            var lowestVersion: UInt8 = 1
            var highestVersion: UInt8 = 1
            var store: StoreID
            var epoch: Epoch
            /// The largest record that this side takes, in bytes.
            var largestRecord: Int
        }

        /// A record on its way.
        struct Item: Sendable, Hashable {
            var sequence: UInt64
            var bytes: [UInt8]
        }

        /// Why a side ends the exchange.
        enum EndCode: UInt8 {
            case other = 0
            case version = 1
            case identity = 2
            case protocolError = 3
            case storage = 4
            case done = 5
        }

        case hello(Hello)
        /// The other is who it should be. Its opening that this side met before, nil when it is the first; and how much of its
        /// records this side takes before it grants more (``RecordsMessage/cost(of:)``).
        case met(seen: Epoch?, granted: UInt64)
        /// From now on `index` stands for this stream of the sender's; all up to `acknowledged` was acknowledged before.
        case open(index: Int, name: String, acknowledged: Position?)
        /// What the receiver's disk has of the stream.
        case position(index: Int, Position?)
        /// Records of one epoch that follow the record `previous` of the same stream in this exchange; 0 for its first.
        case records(index: Int, epoch: Epoch, previous: UInt64, [Item])
        /// What the receiver's disk has by now, and what it takes in all since the exchange began.
        case committed(granted: UInt64, through: [Acknowledgement])
        /// Nothing follows.
        case end(code: UInt8, text: String)

        struct Acknowledgement: Sendable, Hashable {
            var index: Int
            var sequence: UInt64
        }

        /// The most streams of either direction in an exchange.
        static let maximumStreams = 256
        /// The longest name of a stream, in bytes of UTF-8.
        static let longestName = 128
        /// The largest number on the wire: what a disk's 64 bits with a sign hold.
        static let largestNumber = UInt64(Int64.max)
        /// A record's share of the granted bytes: its own and 32 more, for the fields of its row.
        static func cost(of count: Int) -> Int { count + 32 }
    }

    // MARK: Bytes

    extension RecordsMessage {
        var encoded: [UInt8] {
            var bytes: [UInt8] = []
            switch self {
            case .hello(let hello):
                bytes += [0x01, hello.lowestVersion, hello.highestVersion]
                Self.append(fixed: hello.store.high, to: &bytes)
                Self.append(fixed: hello.store.low, to: &bytes)
                Self.append(hello.epoch, to: &bytes)
                Varint.append(UInt64(hello.largestRecord), to: &bytes)
            case .met(let seen, let granted):
                bytes.append(0x02)
                Self.append(seen, to: &bytes)
                Varint.append(granted, to: &bytes)
            case .open(let index, let name, let acknowledged):
                bytes.append(0x03)
                Varint.append(UInt64(index), to: &bytes)
                Varint.append(UInt64(name.utf8.count), to: &bytes)
                bytes += name.utf8
                Self.append(acknowledged, to: &bytes)
            case .position(let index, let position):
                bytes.append(0x04)
                Varint.append(UInt64(index), to: &bytes)
                Self.append(position, to: &bytes)
            case .records(let index, let epoch, var previous, let items):
                bytes.reserveCapacity(48 + items.reduce(0) { $0 + $1.bytes.count + 12 })
                bytes.append(0x05)
                Varint.append(UInt64(index), to: &bytes)
                Self.append(epoch, to: &bytes)
                Varint.append(previous, to: &bytes)
                for item in items {
                    Varint.append(item.sequence - previous, to: &bytes)
                    Varint.append(UInt64(item.bytes.count), to: &bytes)
                    bytes += item.bytes
                    previous = item.sequence
                }
            case .committed(let granted, let through):
                bytes.append(0x06)
                Varint.append(granted, to: &bytes)
                for acknowledgement in through {
                    Varint.append(UInt64(acknowledgement.index), to: &bytes)
                    Varint.append(acknowledgement.sequence, to: &bytes)
                }
            case .end(let code, let text):
                bytes += [0x07, code]
                bytes += text.utf8
            }
            return bytes
        }

        private static func append(fixed value: UInt64, to bytes: inout [UInt8]) {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: value >> shift))
            }
        }

        private static func append(_ epoch: Epoch?, to bytes: inout [UInt8]) {
            Varint.append(epoch?.generation ?? 0, to: &bytes)
            if let epoch { append(fixed: epoch.nonce, to: &bytes) }
        }

        private static func append(_ position: Position?, to bytes: inout [UInt8]) {
            append(position?.epoch, to: &bytes)
            if let position { Varint.append(position.sequence, to: &bytes) }
        }

        /// Reads what a peer has sent.
        ///
        /// - Throws: `misbehavingPeer` with the message's kind, the place and the fault.
        init(_ bytes: [UInt8]) throws(FerryError) {
            var reader = MessageReader(bytes)
            switch try reader.byte("the kind of message") {
            case 0x01:
                reader.kind = "HELLO"
                let (lowest, highest) = (try reader.byte("the lowest version"), try reader.byte("the highest version"))
                let hello = Hello(
                    lowestVersion: lowest, highestVersion: highest,
                    store: StoreID(high: try reader.fixed("the store"), low: try reader.fixed("the store")),
                    epoch: try reader.epoch("the epoch"),
                    largestRecord: Int(try reader.number("the largest record")))
                guard lowest <= highest else { throw reader.failure("versions \(lowest) to \(highest) are none") }
                // What a later version may add to it is not looked at.
                self = .hello(hello)
                return
            case 0x02:
                reader.kind = "MET"
                self = .met(
                    seen: try reader.optionalEpoch("the epoch met before"),
                    granted: try reader.number("the grant"))
            case 0x03:
                reader.kind = "OPEN"
                let index = try reader.index()
                let count = try reader.number("the length of the name")
                guard count <= UInt64(Self.longestName) else {
                    throw reader.failure("a stream's name has \(count) bytes; at most \(Self.longestName) are allowed")
                }
                let text = try reader.take(Int(count), "the name")
                guard let name = String(validating: text, as: UTF8.self) else {
                    throw reader.failure("a stream's name is not UTF-8")
                }
                if let fault = NameRule.faultOfStream(name) { throw reader.failure(fault) }
                self = .open(index: index, name: name, acknowledged: try reader.optionalPosition())
            case 0x04:
                reader.kind = "POSITION"
                self = .position(index: try reader.index(), try reader.optionalPosition())
            case 0x05:
                reader.kind = "RECORDS"
                let index = try reader.index()
                let epoch = try reader.epoch("the epoch")
                let previous = try reader.number("the record before")
                self = .records(index: index, epoch: epoch, previous: previous, try reader.items(after: previous))
            case 0x06:
                reader.kind = "COMMITTED"
                let granted = try reader.number("the grant")
                var through: [Acknowledgement] = []
                var isNamed = [Bool](repeating: false, count: reader.isAtEnd ? 0 : Self.maximumStreams)
                while !reader.isAtEnd {
                    let index = try reader.index()
                    guard !isNamed[index] else { throw reader.failure("stream \(index) is named twice") }
                    isNamed[index] = true
                    let sequence = try reader.number("a sequence")
                    guard sequence > 0 else { throw reader.failure("the sequence of stream \(index) is 0") }
                    through.append(Acknowledgement(index: index, sequence: sequence))
                }
                self = .committed(granted: granted, through: through)
            case 0x07:
                reader.kind = "END"
                let code = try reader.byte("the code")
                // For people: cut, repaired where it is no text, and without what would move a terminal's cursor.
                let text = String(decoding: reader.rest.prefix(1024), as: UTF8.self).unicodeScalars.map {
                    $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
                }
                self = .end(code: code, text: String(String.UnicodeScalarView(text)))
                return
            case let kind:
                throw reader.failure("the kind of message is \(kind), and there are 1 to 7")
            }
            guard reader.isAtEnd else { throw reader.failure("\(reader.rest.count) bytes follow the message") }
        }
    }

    /// Reads the fields of one message; nothing that a peer sends makes it trap.
    struct MessageReader {
        private let bytes: [UInt8]
        private var offset = 0
        var kind = "message"

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { offset == bytes.count }
        var rest: ArraySlice<UInt8> { bytes[offset...] }

        func failure(_ what: String) -> FerryError {
            FerryError(
                .misbehavingPeer,
                "The peer's \(kind) of the records protocol is not valid at byte \(offset) of \(bytes.count): \(what).")
        }

        mutating func byte(_ what: String) throws(FerryError) -> UInt8 {
            guard offset < bytes.count else { throw failure("it ends where \(what) should be") }
            defer { offset += 1 }
            return bytes[offset]
        }

        mutating func number(_ what: String) throws(FerryError) -> UInt64 {
            var decoder = Varint.Decoder()
            while true {
                let next = try byte(what)
                do throws(Varint.Failure) {
                    guard let value = try decoder.push(next) else { continue }
                    guard value <= RecordsMessage.largestNumber else { throw .overflow }
                    return value
                } catch {
                    throw failure("\(what) is \(error == .overlong ? "longer than it needs to be" : "too large")")
                }
            }
        }

        mutating func index() throws(FerryError) -> Int {
            let index = try number("the stream")
            guard index < UInt64(RecordsMessage.maximumStreams) else {
                throw failure("stream \(index) is beyond the \(RecordsMessage.maximumStreams) that there may be")
            }
            return Int(index)
        }

        mutating func fixed(_ what: String) throws(FerryError) -> UInt64 {
            var value: UInt64 = 0
            for _ in 0..<8 { value = value << 8 | UInt64(try byte(what)) }
            return value
        }

        mutating func optionalEpoch(_ what: String) throws(FerryError) -> Epoch? {
            let generation = try number(what)
            return generation == 0 ? nil : Epoch(generation: generation, nonce: try fixed(what))
        }

        mutating func epoch(_ what: String) throws(FerryError) -> Epoch {
            guard let epoch = try optionalEpoch(what) else { throw failure("\(what) has generation 0") }
            return epoch
        }

        mutating func optionalPosition() throws(FerryError) -> Position? {
            guard let epoch = try optionalEpoch("the position's epoch") else { return nil }
            let sequence = try number("the position's sequence")
            guard sequence > 0 else { throw failure("the position's sequence is 0") }
            return Position(epoch: epoch, sequence: sequence)
        }

        mutating func take(_ count: Int, _ what: String) throws(FerryError) -> [UInt8] {
            guard count <= bytes.count - offset else {
                throw failure("\(what) has \(count) bytes, of which \(bytes.count - offset) are there")
            }
            defer { offset += count }
            return Array(bytes[offset..<offset + count])
        }

        mutating func items(after previous: UInt64) throws(FerryError) -> [RecordsMessage.Item] {
            var items: [RecordsMessage.Item] = []
            var sequence = previous
            repeat {
                let step = try number("a step of the sequence")
                guard step > 0 else { throw failure("a record has the sequence of the one before it") }
                guard step <= RecordsMessage.largestNumber - sequence else { throw failure("a sequence is too large") }
                sequence += step
                let count = try number("a record's length")
                guard count <= UInt64(bytes.count - offset) else {
                    throw failure("a record has \(count) bytes, of which \(bytes.count - offset) are there")
                }
                items.append(.init(sequence: sequence, bytes: try take(Int(count), "a record")))
            } while !isAtEnd
            return items
        }
    }
#endif
