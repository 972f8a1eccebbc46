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
        var milliseconds: Double?
        var link: String
        var event: Event
    }

    /// The problem with a line, for people.
    struct Malformed: Error, Hashable { let description: String }

    private var number = 0
    private var isLog = false
    private var isPlain = false
    /// The first line that is neither, while it may be what a program prints before its log.
    private var other: Malformed?

    /// Reads the next line; nil when it says nothing.
    mutating func read(_ line: String) throws(Malformed) -> Line? {
        number += 1
        let text = line.trimmingPrefix { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard let first = text.first else { return nil }
        if first == ">" || first == "<", !isLog {
            if let other { throw other }
            isPlain = true
            let bytes = try Self.bytes(text.dropFirst(), number)
            return Line(link: "", event: .chunk(first == ">" ? .first : .second, bytes))
        }
        if first == "#" {
            let words = text.dropFirst().split(separator: " ")
            guard words.count == 2, words[0] == "framing", let framing = TraceFraming(rawValue: String(words[1])) else {
                return nil
            }
            return Line(link: "", event: .framing(framing))
        }
        if let framing = Self.framing(text) { return Line(link: "", event: .framing(framing)) }
        if !isPlain, let line = try Self.logged(text, number) {
            isLog = true
            return line
        }
        if isLog { return nil }  // what else the program prints
        let problem = Malformed(
            description:
                "Line \(number) begins with neither > nor <, which say who sent the chunk, and no line is one that "
                + "--log writes.")
        if isPlain { throw problem }
        if other == nil { other = problem }
        return nil
    }

    /// At the end of the text.
    func finish() throws(Malformed) { if !isLog, let other { throw other } }

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
