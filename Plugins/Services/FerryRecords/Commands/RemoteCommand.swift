#if Records
    public import Ferry

    /// The name of a command: 16 random bytes, which no other command has.
    public struct CommandID: Sendable, Hashable, CustomStringConvertible {
        let high: UInt64
        let low: UInt64

        init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        /// Draws a name.
        public static func random() -> CommandID {
            var random = SystemRandomNumberGenerator()
            return CommandID(high: random.next(), low: random.next())
        }

        /// 32 hexadecimal digits.
        public var description: String { StoreID(high: high, low: low).description }
    }

    /// A command for a peer: a record of the stream ``stream`` that asks for one ``CommandAnswer``.
    ///
    /// The bytes, in `Documentation/Commands.md`: the version (1), the identifier (16 bytes), the deadline (8 bytes, the most
    /// significant first), the length of the name (1 byte), the name, the body.
    public struct RemoteCommand: Sendable, Hashable {
        /// The stream that commands are sent in.
        public static let stream = "ferry-commands"
        /// The longest name, in bytes.
        public static let longestName = 64
        /// How many more bytes a command has than its name and its body.
        public static let overhead = 26
        static let version: UInt8 = 1

        /// Its identifier.
        public let id: CommandID
        /// The last moment at which the peer begins it, in milliseconds since 1970.
        public let deadline: Int64
        /// What the peer is to do: 1 to ``longestName`` ASCII letters, digits, dots, hyphens and underscores; the first is no dot.
        public let name: String
        /// What it is to do it with.
        public let body: [UInt8]

        /// A command.
        ///
        /// - Parameters:
        ///   - name: 1 to ``longestName`` ASCII letters, digits, dots, hyphens and underscores; the first is no dot.
        ///   - body: at most the largest record of each store on the way, less ``overhead``, the name and ``RelayedRecord/overhead``.
        ///   - deadline: the last moment at which the peer begins it, in milliseconds since 1970; negative ones count as 0.
        ///   - id: its identifier.
        /// - Throws: `invalidConfiguration` for another name.
        public init(
            _ name: String, _ body: [UInt8] = [], deadline: Int64, id: CommandID = .random()
        ) throws(FerryError) {
            guard Self.isName(name) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(name.debugDescription) is no command's name. Use 1 to \(Self.longestName) ASCII letters, digits, dots, hyphens "
                        + "and underscores, and no dot at the beginning.", fate: .nothingSent)
            }
            self.id = id
            self.deadline = max(0, deadline)
            self.name = name
            self.body = body
        }

        /// Whether a command can have this name.
        public static func isName(_ text: String) -> Bool {
            (1...longestName).contains(text.utf8.count) && text.utf8.first != 0x2E
                && text.utf8.allSatisfy {
                    switch $0 {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                    default: false
                    }
                }
        }

        /// The record.
        public var encoded: [UInt8] {
            var bytes = [Self.version]
            bytes.reserveCapacity(Self.overhead + name.utf8.count + body.count)
            bytes.append(bits: id.high)
            bytes.append(bits: id.low)
            bytes.append(bits: UInt64(deadline))
            bytes.append(UInt8(name.utf8.count))
            return bytes + Array(name.utf8) + body
        }

        /// Reads a record.
        ///
        /// - Throws: `misbehavingPeer` for bytes that are no command.
        public init(decoding bytes: [UInt8]) throws(FerryError) {
            var reader = MessageReader(bytes)
            reader.kind = "command"
            try reader.version(Self.version)
            id = CommandID(high: try reader.fixed("the identifier"), low: try reader.fixed("the identifier"))
            deadline = try reader.moment("the deadline")
            let count = Int(try reader.byte("the length of the name"))
            let word = String(decoding: try reader.take(count, "the name"), as: UTF8.self)
            guard Self.isName(word) else {
                throw reader.failure("\(word.prefix(80).debugDescription) is no name of a command")
            }
            name = word
            body = Array(reader.rest)
        }
    }

    /// A peer's one answer to a command: a record of the stream ``stream``.
    ///
    /// The bytes: the version (1), the command's identifier (16 bytes), the outcome (1 byte), the peer's clock (8 bytes, the most
    /// significant first), the body.
    public struct CommandAnswer: Sendable, Hashable {
        /// The stream that answers are sent in.
        public static let stream = "ferry-answers"
        /// How many more bytes an answer has than its body.
        public static let overhead = 26

        /// The outcome of a command.
        public enum Outcome: UInt8, Sendable, Hashable, CaseIterable {
            /// It was done; the body is its result.
            case done = 0
            /// It was begun and failed; the body says why, as text.
            case failed = 1
            /// It was not begun: its deadline had passed by the peer's clock. The body is text.
            case expired = 2
            /// It was not begun: the peer has no command of that name. The body is text.
            case unknown = 3
            /// It was begun, and the peer does not know how far it came: it was ended by its deadline, or the peer restarted. The body
            /// is text.
            case interrupted = 4
            /// It was not begun: the peer remembers as many commands as it can. The body is text.
            case refused = 5
        }

        /// The command's identifier.
        public let id: CommandID
        /// The command's outcome.
        public let outcome: Outcome
        /// When the peer answered, in milliseconds since 1970 by its own clock: one that is wrong shows here.
        public let time: Int64
        /// The result, or for any outcome but `done` a text for people.
        public let body: [UInt8]

        /// An answer.
        public init(_ id: CommandID, _ outcome: Outcome, time: Int64, _ body: [UInt8]) {
            self.id = id
            self.outcome = outcome
            self.time = max(0, time)
            self.body = body
        }

        /// The body as text, without what would move a terminal's cursor.
        public var text: String {
            let text = String(decoding: body, as: UTF8.self).unicodeScalars.map { scalar in
                scalar.properties.generalCategory == .control && scalar != "\n" ? "\u{FFFD}" : scalar
            }
            return String(String.UnicodeScalarView(text))
        }

        /// The record.
        public var encoded: [UInt8] {
            var bytes = [RemoteCommand.version]
            bytes.reserveCapacity(Self.overhead + body.count)
            bytes.append(bits: id.high)
            bytes.append(bits: id.low)
            bytes.append(outcome.rawValue)
            bytes.append(bits: UInt64(time))
            return bytes + body
        }

        /// Reads a record.
        ///
        /// - Throws: `misbehavingPeer` for bytes that are no answer.
        public init(decoding bytes: [UInt8]) throws(FerryError) {
            var reader = MessageReader(bytes)
            reader.kind = "answer"
            try reader.version(RemoteCommand.version)
            id = CommandID(high: try reader.fixed("the identifier"), low: try reader.fixed("the identifier"))
            let number = try reader.byte("the outcome")
            guard let outcome = Outcome(rawValue: number) else {
                throw reader.failure("the outcome is \(number), and there are 0 to \(Outcome.allCases.count - 1)")
            }
            self.outcome = outcome
            time = try reader.moment("the time")
            body = Array(reader.rest)
        }
    }

    extension [UInt8] {
        /// Appends 8 bytes, the most significant first.
        mutating func append(bits: UInt64) {
            for shift in stride(from: 56, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: bits >> shift)) }
        }
    }

    extension MessageReader {
        fileprivate mutating func version(_ known: UInt8) throws(FerryError) {
            let version = try byte("the version")
            guard version == known else { throw failure("the version is \(version), and \(known) is known") }
        }

        /// Milliseconds since 1970.
        fileprivate mutating func moment(_ what: String) throws(FerryError) -> Int64 {
            let bits = try fixed(what)
            guard let moment = Int64(exactly: bits) else { throw failure("\(what) is \(bits), beyond 2^63 - 1") }
            return moment
        }
    }
#endif
