#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message with a field for every kind of value of Codable formats, to check a codec with values made from a seed:
///
/// ```swift
/// @Test func carriesWhatItAccepts() throws {
///     try CodecConformance(JSONCodec<GeneratedMessage>(), samples: [.ordinary()]).checkGenerated()
/// }
/// ```
///
/// ``edges`` has the values at which formats differ, one in a message, so that one that is refused hides no other.
public struct GeneratedMessage: Codable, Sendable {
    /// A truth value.
    public var truth = true
    /// Integers of each width, with their signs.
    public var integers = Integers()
    /// A number of 32 bits.
    public var single: Float = 0.1
    /// A number of 64 bits.
    public var real = 0.1
    /// Text.
    public var text = "Zoë"
    /// Bytes, as a codec's own kind of value where it has one.
    public var data = Data([0, 1, 0xFF])
    /// A date.
    public var date = Date(timeIntervalSinceReferenceDate: 816_946_200)
    /// Text that may be missing.
    public var note: String?
    /// Texts of which some are missing.
    public var notes: [String?] = ["a", nil]
    /// Values by their names.
    public var table = ["a": 1, "b": 2]
    /// A table that is not in another.
    public var tables: [[String: String]] = []
    /// Lists within lists.
    public var nested = Nested.list([])

    /// Integers of each width.
    public struct Integers: Codable, Hashable, Sendable {
        /// Of 8 bits.
        public var int8: Int8 = -1
        /// Of 16 bits.
        public var int16: Int16 = -1
        /// Of 32 bits.
        public var int32: Int32 = -1
        /// Of 64 bits.
        public var int64: Int64 = -1
        /// Of 8 bits, without a sign.
        public var uint8: UInt8 = 1
        /// Of 16 bits, without a sign.
        public var uint16: UInt16 = 1
        /// Of 32 bits, without a sign.
        public var uint32: UInt32 = 1
        /// Of 64 bits, without a sign.
        public var uint64: UInt64 = 1
    }

    /// A list of lists.
    public indirect enum Nested: Codable, Hashable, Sendable {
        /// The lists in it.
        case list([Nested])

        /// A list, written as such.
        public init(from decoder: any Decoder) throws { self = .list(try [Nested](from: decoder)) }

        /// A list, written as such.
        public func encode(to encoder: any Encoder) throws {
            guard case .list(let lists) = self else { return }
            try lists.encode(to: encoder)
        }

        /// Lists within one another.
        ///
        /// - Parameter depth: how many, at least 1.
        public static func deep(_ depth: Int) -> Nested {
            (1..<max(depth, 1)).reduce(.list([])) { list, _ in .list([list]) }
        }
    }

    /// Ordinary values: a codec that refuses them carries nothing.
    public static func ordinary() -> GeneratedMessage { GeneratedMessage() }

    private static func changed(_ change: (inout GeneratedMessage) -> Void) -> GeneratedMessage {
        var message = GeneratedMessage()
        change(&message)
        return message
    }
}

extension GeneratedMessage: CustomStringConvertible {
    /// The values; the date as seconds since 2001, for printing one that is not a number ends the process.
    public var description: String {
        "truth \(truth), integers \(integers), single \(single), real \(real), text \(text.debugDescription), "
            + "data \(Array(data)), date \(date.timeIntervalSinceReferenceDate), note \(note.debugDescription), "
            + "notes \(notes), table \(table), tables \(tables), nested \(nested)"
    }
}

extension GeneratedMessage: Equatable {
    /// Whether all values are equal; a number that is not a number equals another.
    public static func == (left: GeneratedMessage, right: GeneratedMessage) -> Bool {
        func same<Number: BinaryFloatingPoint>(_ left: Number, _ right: Number) -> Bool {
            left == right || left.isNaN && right.isNaN
        }
        return left.truth == right.truth && left.integers == right.integers && same(left.single, right.single)
            && same(left.real, right.real) && left.text.utf8.elementsEqual(right.text.utf8) && left.data == right.data
            && same(left.date.timeIntervalSinceReferenceDate, right.date.timeIntervalSinceReferenceDate)
            && left.note == right.note && left.notes == right.notes && left.table == right.table
            && left.tables == right.tables && left.nested == right.nested
    }
}

extension GeneratedMessage {
    /// Messages with one value at an edge of its kind each: extreme dates, numbers, strings, keys, sizes and depths.
    public static var edges: [GeneratedMessage] {
        var messages = [changed { $0.truth = false }]
        messages += edgeDates.map { date in changed { $0.date = Date(timeIntervalSinceReferenceDate: date) } }
        messages += edgeReals.map { real in changed { $0.real = real } }
        messages += edgeReals.map { real in changed { $0.single = Float(real) } }
        messages += edgeStrings.flatMap { text in
            [
                changed { $0.text = text }, changed { $0.note = text }, changed { $0.notes = [text, nil] },
                changed { $0.table = [text: 1] }, changed { $0.table = ["a": 1, text: 2] },
                changed { $0.tables = [[text: text], [:]] },
            ]
        }
        messages += (0..<8).flatMap { width in
            [
                changed { $0.integers.set(width, 0) }, changed { $0.integers.set(width, .min) },
                changed { $0.integers.set(width, .max) },
            ]
        }
        messages += [0, 1, 2, 3, 4, 14, 15, 16, 56, 57, 58, 255, 256, 4096].map { count in
            changed { $0.data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) }) }
        }
        messages += [1, 2, 31, 32, 60, 61, 62, 63, 64, 65, 66, 100].map { depth in changed { $0.nested = .deep(depth) }
        }
        messages += [0, 1, 14, 15, 16, 255, 256, 1000].flatMap { count in
            [
                changed { $0.notes = Array(repeating: "a", count: count) },
                changed { $0.nested = .list(Array(repeating: .list([]), count: count)) },
                changed { $0.table = Dictionary(uniqueKeysWithValues: (0..<count).map { ("key \($0)", $0) }) },
            ]
        }
        return messages
    }

    /// Seconds since 2001: whole ones and fractions about now, the edges of four-digit years, of Foundation's calendars, of
    /// the Gregorian calendar, and numbers that are no dates.
    private static let edgeDates: [Double] =
        [0, -1, 0.5, -0.25, 816_946_200, 816_946_200.123_456, 800_000_000.1, 1e-9, -978_307_200, -978_307_200.5]
        + [-13_197_600_000, -13_197_686_400, -63_114_076_800, -63_114_076_801, -63_113_904_000, -1e11]
        + [252_423_993_599, 252_423_993_600, 252_423_993_599.5, 63_113_904_000, 1e14, 4_294_967_296]
        + [-211_845_067_200, -211_845_067_201, 15_927_175_497_600, 15_927_175_497_601]
        + [1e300, -1e300, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, .leastNonzeroMagnitude]

    private static let edgeReals: [Double] =
        [0, -0.0, 1, -1, 0.1, 1 / 3, 1e15, 1e16, 1e17, 9_007_199_254_740_992, 1e-5, 1e-300, 1e38, 1e39, 1e300, 1e308]
        + [.pi, .ulpOfOne, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .leastNormalMagnitude, -1e300]
        + [Double(Float.greatestFiniteMagnitude), Double(Float.leastNonzeroMagnitude), .infinity, -.infinity, .nan]

    private static let edgeStrings: [String] =
        ["", " ", " a ", "\u{0}", "a\u{0}b", "\u{1}\u{8}\u{1B}\u{7F}\u{85}", "\t\n\r\r\n", "\"\\/'", "<&>]]>", "&amp;"]
        + ["<![CDATA[a]]>", "&#0;", "$", "$nul", "$null", "$nully", "a$null", "$null\u{0}", "$null&", "CF$UID", "null"]
        + [
            "true", "1", "NaN", "2026-11-21T09:30:00Z", "e\u{301}", "\u{E9}", "\u{1100}\u{1161}", "\u{FEFF}a",
            "\u{FFFE}",
        ]
        + ["\u{FFFF}", "\u{FFFD}", "\u{2028}\u{2029}", "\u{E000}", "\u{10FFFF}", "👩‍👩‍👧‍👦", "\u{202E}a", "\\u0000", "%00"]
        + [String(repeating: "a", count: 14), String(repeating: "a", count: 15), String(repeating: "é", count: 256)]

    /// A message with values of random kinds, and ordinary ones.
    ///
    /// - Parameter random: decides; the same seed makes the same messages.
    public static func random(using random: inout SplitMix64) -> GeneratedMessage {
        changed { message in
            switch Int.random(in: 0..<9, using: &random) {
            case 0: message.integers.set(Int.random(in: 0..<8, using: &random), Int64(bitPattern: random.next()))
            case 1: message.single = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
            case 2: message.real = Double(bitPattern: random.next())
            case 3: message.text = string(&random)
            case 4: message.data = Data(random.bytes(Int.random(in: 0..<300, using: &random)))
            case 5: message.date = date(&random)
            case 6:
                message.notes = (0..<Int.random(in: 0..<20, using: &random)).map { $0 % 3 == 0 ? nil : string(&random) }
            case 7:
                for _ in 0..<Int.random(in: 0..<20, using: &random) {
                    message.table[string(&random)] = Int(random.next() >> 1)
                }
            default: message.nested = .deep(Int.random(in: 1...80, using: &random))
            }
        }
    }

    private static func date(_ random: inout SplitMix64) -> Date {
        let seconds: Double =
            switch Int.random(in: 0..<5, using: &random) {
            case 0: Double.random(in: -1e9...1e9, using: &random)
            case 1: Double.random(in: -1e9...1e9, using: &random).rounded()
            case 2: Double.random(in: -63_114_076_800...252_423_993_599, using: &random).rounded()
            case 3: Double.random(in: -1e13...1e14, using: &random).rounded()
            default: Double(bitPattern: random.next())
            }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    private static func string(_ random: inout SplitMix64) -> String {
        let pieces = Array("ab$null<&>\"\\/]}[{:,\u{0}\u{1}\n\r\u{301}é\u{85}\u{FFFE}\u{FFFF}😀".unicodeScalars)
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0..<20, using: &random) {
            if let piece = pieces.randomElement(using: &random) { text.append(piece) }
        }
        return String(text)
    }
}

extension GeneratedMessage.Integers {
    /// Sets the integer of a width to the nearest that fits.
    fileprivate mutating func set(_ width: Int, _ value: Int64) {
        switch width {
        case 0: int8 = Int8(clamping: value)
        case 1: int16 = Int16(clamping: value)
        case 2: int32 = Int32(clamping: value)
        case 3: int64 = value
        case 4: uint8 = UInt8(clamping: value)
        case 5: uint16 = UInt16(clamping: value)
        case 6: uint32 = UInt32(clamping: value)
        default: uint64 = UInt64(bitPattern: value == .max ? -1 : value)
        }
    }
}
