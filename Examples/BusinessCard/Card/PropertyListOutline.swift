/// The outline of an XML property list: whether its tags are known, close in order and are not nested deeply.
///
/// Foundation's parser gives line 1 for every mistake and follows nesting without a bound, down to the end of the stack.
/// This look at the tags alone comes before it.
struct PropertyListOutline {
    /// A card needs two levels; more than this many are no card.
    private static let maximumDepth = 16
    private static let names: Set<Substring> = [
        "plist", "dict", "array", "key", "string", "integer", "real", "true", "false", "date", "data",
    ]

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1  // of `position`
    private var open: [(name: Substring, line: Int)] = []

    /// Looks through a file's bytes, which are valid UTF-8.
    ///
    /// - Throws: ``CardError`` with the line of the first tag that is out of place.
    static func check(_ bytes: [UInt8]) throws(CardError) {
        var outline = PropertyListOutline(bytes: bytes)
        while try outline.nextTag() {}
        if let last = outline.open.last {
            throw CardError("<\(last.name)> of line \(last.line) is never closed; the file may be cut short")
        }
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private mutating func nextTag() throws(CardError) -> Bool {
        guard let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")) else { return false }
        advance(to: start)
        let rest = bytes[start...]
        if rest.starts(with: "<!--".utf8) {
            try skip(past: "-->")
        } else if rest.starts(with: "<![CDATA[".utf8) {
            try skip(past: "]]>")
        } else if rest.starts(with: "<?".utf8) {
            try skip(past: "?>")
        } else if rest.starts(with: "<!".utf8) {
            try skip(past: ">")
        } else {
            let line = line
            try skip(past: ">")
            try takeTag(String(decoding: bytes[(start + 1)..<(position - 1)], as: UTF8.self), line: line)
        }
        return true
    }

    private mutating func advance(to place: Int) {
        line += bytes[position..<place].count { $0 == 0x0A }
        position = place
    }

    private mutating func skip(past end: String) throws(CardError) {
        var place = position
        while let next = bytes[place...].firstIndex(where: { $0 == end.utf8.first }) {
            if bytes[next...].starts(with: end.utf8) {
                advance(to: next + end.utf8.count)
                return
            }
            place = next + 1
        }
        throw CardError("line \(line): what begins with < is never ended; the file may be cut short")
    }

    private mutating func takeTag(_ text: String, line: Int) throws(CardError) {
        let isEnd = text.hasPrefix("/")
        let name = text.drop { $0 == "/" }.prefix { !$0.isWhitespace && $0 != "/" }
        guard Self.names.contains(name) else {
            throw CardError("line \(line): <\(text.printable)> is not a tag of property lists")
        }
        if isEnd {
            guard let last = open.popLast() else {
                throw CardError("line \(line): </\(name)> closes nothing")
            }
            guard last.name == name else {
                throw CardError(
                    "line \(line): </\(name)> stands where <\(last.name)> of line \(last.line) should close")
            }
        } else if !text.hasSuffix("/") {
            guard open.count < Self.maximumDepth else {
                throw CardError("line \(line): <\(name)> is nested more than \(Self.maximumDepth) deep; a card is flat")
            }
            open.append((name, line))
        }
    }
}
