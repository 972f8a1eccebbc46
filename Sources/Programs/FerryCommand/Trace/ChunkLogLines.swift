import FerrySequenced

/// What a line of text says of a link: `> e0 01`, or a line of what `--log` writes.
struct ChunkLogLines {
    enum Event: Hashable {
        case chunk(SequencedSide, [UInt8])
        case connected
        case full
        case ready
        case ended(String)
        /// The framing that the log says.
        case framing(TraceFraming)
    }

    struct Line: Hashable {
        let milliseconds: Double?
        let link: String
        let event: Event
    }

    /// The problem with a line, for people.
    struct Malformed: Error, Hashable { let description: String }

    private var number = 0
    private var form = Form.unknown(other: nil)

    private enum Form {
        /// With the first line that is of neither form, which may be what a program prints before its log.
        case unknown(other: Malformed?)
        /// Lines that `--log` writes, among others.
        case log
        /// Lines of `>` and `<`, and no others.
        case plain
    }

    /// Reads the next line; nil when it says nothing.
    mutating func read(_ line: String) throws(Malformed) -> Line? {
        number += 1
        let text = line.trimmingPrefix { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard let first = text.first else { return nil }
        if let line = try plain(first, text) { return line }
        if first == "#" {
            let words = text.dropFirst().split(separator: " ")
            guard words.count == 2, words[0] == "framing", let framing = TraceFraming(rawValue: String(words[1])) else {
                return nil
            }
            return Line(milliseconds: nil, link: "", event: .framing(framing))
        }
        if let framing = Self.framing(text) { return Line(milliseconds: nil, link: "", event: .framing(framing)) }
        if case .plain = form { throw unknown }
        if let line = try Self.logged(text, number) {
            form = .log
            return line
        }
        // A log may have between its lines what else the program prints.
        if case .unknown(nil) = form { form = .unknown(other: unknown) }
        return nil
    }

    private mutating func plain(_ first: Character, _ text: Substring) throws(Malformed) -> Line? {
        guard first == ">" || first == "<" else { return nil }
        switch form {
        case .log: return nil
        case .unknown(let other?): throw other
        case .unknown(nil), .plain: form = .plain
        }
        let bytes = try Self.bytes(text.dropFirst(), number)
        return Line(milliseconds: nil, link: "", event: .chunk(first == ">" ? .first : .second, bytes))
    }

    private var unknown: Malformed {
        Malformed(
            description:
                "Line \(number) begins with neither > nor <, which say who sent the chunk, and no line is one that "
                + "--log writes.")
    }

    /// At the end of the text.
    func finish() throws(Malformed) { if case .unknown(let other?) = form { throw other } }

    /// What business-card says of its framing.
    private static func framing(_ text: some StringProtocol) -> TraceFraming? {
        guard text.hasPrefix("Framing  ") else { return nil }
        if text.contains("numbered chunks") { return .sequenced }
        return text.contains("marker EOM") ? .eom : .length
    }

    /// A line of a log: the time, whose link, what happened, and for chunks their size and bytes; between them two spaces.
    private static func logged(_ text: some StringProtocol, _ number: Int) throws(Malformed) -> Line? {
        var rest = Substring(text)
        func field(beforeChunk: Bool = false) -> Substring? {
            guard !rest.isEmpty else { return nil }
            let end = rest.firstRange(of: "  ")?.lowerBound ?? rest.endIndex
            // Fields may be padded; a chunk's text may begin with spaces too.
            defer { rest = beforeChunk ? rest[end...].dropFirst(2) : rest[end...].drop { $0 == " " } }
            return rest[..<end]
        }
        guard let time = field()?.split(separator: " "), time.count == 2, let value = Double(time[0]),
            let scale = ["ms": 1.0, "s": 1000][time[1]], let link = field(), let event = field()
        else { return nil }
        func line(_ event: Event) -> Line { Line(milliseconds: value * scale, link: String(link), event: event) }
        switch event {
        case "connected": return line(.connected)
        case "full: waiting for ready": return line(.full)
        case "ready": return line(.ready)
        case "sent", "received":
            guard let words = field(beforeChunk: true)?.split(separator: " "), words.count == 2, words[1] == "bytes",
                let count = Int(words[0])
            else { return nil }
            let side: SequencedSide = event == "sent" ? .first : .second
            if rest.utf8.count == count { return line(.chunk(side, Array(rest.utf8))) }
            if rest.hasSuffix("...") {
                throw Malformed(
                    description:
                        "Line \(number) has a chunk's beginning only, as it is shown on a terminal. Have the log "
                        + "written to a file, where chunks stand whole: business-card --log > FILE.")
            }
            let bytes = try Self.bytes(rest, number)
            guard bytes.count == count else {
                throw Malformed(
                    description: "Line \(number) says that the chunk has \(count) bytes, and has \(bytes.count).")
            }
            return line(.chunk(side, bytes))
        default: return event.hasPrefix("ended") ? line(.ended(String(event.dropFirst(7)))) : nil
        }
    }

    private static func bytes(_ text: Substring, _ number: Int) throws(Malformed) -> [UInt8] {
        let digits = text.utf8.filter {
            $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") && $0 != UInt8(ascii: "\r")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[index..<min(index + 2, digits.count)], as: UTF8.self)
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit), let byte = UInt8(pair, radix: 16) else {
                throw Malformed(
                    description: "Line \(number): '\(pair)' is not a byte in hexadecimal. Give two digits for each.")
            }
            bytes.append(byte)
        }
        return bytes
    }
}
