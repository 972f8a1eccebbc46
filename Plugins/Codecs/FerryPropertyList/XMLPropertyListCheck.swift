import Ferry

/// Whether bytes are an XML property list in UTF-8 whose elements are known, properly nested, no deeper than allowed, and
/// whose values Foundation reads as they are. Of base64 without padding it reads fewer bytes, of 30 February another day,
/// and of 1e999 infinity: the check refuses those.
///
/// Written without recursion: the open elements are a list, so no input can exhaust the stack. Foundation's scanner
/// takes the same bytes for comments, instructions and character data as this check, so they hide nothing from it.
struct XMLPropertyListCheck {
    private enum Element: String {
        case plist, array, dict, key, string, data, date, real, integer
        case `true`, `false`

        var isText: Bool { self == .string || self == .key }
        var isContainer: Bool { self == .plist || self == .array || self == .dict }
    }

    private let bytes: [UInt8]
    private let origin: PropertyListOrigin
    private let maximumDepth: Int
    private var position = 0
    private var open: [Element] = []
    private var keys: [DictionaryKeys] = []

    /// Whether the property list has values that do not tell what they were made from: dates, and the text `$null`.
    private(set) var isAmbiguous = false

    /// Whether there is a real above the numbers of 32 bits, which Foundation reads as infinity where a type has a `Float`.
    private(set) var hasLargeReal = false
    /// How many reals stand for infinity.
    private(set) var infinityCount = 0

    init(_ bytes: [UInt8], origin: PropertyListOrigin = .peer, maximumDepth: Int) {
        self.bytes = bytes
        self.origin = origin
        self.maximumDepth = maximumDepth
    }

    /// Reads the whole document.
    ///
    /// - Throws: `decodingFailed` with the defect and its place.
    mutating func run() throws(FerryError) {
        try checkEncoding()
        var hasRoot = false
        while true {
            skipWhitespace()
            if position == bytes.count, hasRoot, open.isEmpty { return }
            guard take("<") else { throw unexpected(open.last.map { "'</\($0.rawValue)>'" } ?? "an XML element") }
            if take("!--") {
                try skip(through: "-->", in: "a comment")
            } else if take("?") {
                try instruction(isDeclaration: position <= 5)
            } else if !hasRoot, take("!DOCTYPE") {
                try documentType()
            } else if take("/") {
                guard let element = open.popLast(), take(element.rawValue) else {
                    throw failure("a closing tag that matches no open element")
                }
                try closeAngle(of: element)
                guard element == .dict, let keys = keys.popLast() else { continue }
                guard keys.isSole("CF$UID") else { continue }
                throw failure(
                    "a dictionary with the key \"CF$UID\" alone, which Foundation takes for another kind of value")
            } else {
                guard !(hasRoot && open.isEmpty) else { throw failure("a second element at the top") }
                hasRoot = true
                try element()
            }
        }
    }

    /// Foundation would also read UTF-16 and UTF-32, which hide elements from a check of single bytes.
    private mutating func checkEncoding() throws(FerryError) {
        if let offset = UTF8Text.firstInvalidOffset(in: bytes) {
            position = offset
            throw failure("bytes that are not UTF-8")
        }
        position = bytes.firstIndex(of: 0) ?? 0
        guard position == 0, bytes.first != 0 else { throw failure("a byte 0, which XML does not allow") }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Reads an opening tag and, for all but containers, everything through the closing tag.
    private mutating func element() throws(FerryError) {
        let nameStart = position
        while let byte = peek, byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "z") { position += 1 }
        let name = String(decoding: bytes[nameStart..<position], as: UTF8.self)
        guard let element = Element(rawValue: name) else {
            position = nameStart
            throw unexpected("one of the elements of a property list")
        }
        guard let byte = peek, byte == UInt8(ascii: ">") || byte == UInt8(ascii: "/") || isWhitespace(byte) else {
            throw unexpected("'>'")
        }
        while let byte = peek, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "<") { position += 1 }
        guard take(">") else { throw unexpected("'>'") }
        guard bytes[position - 2] != UInt8(ascii: "/") else {
            return element == .key ? try key(position..<position) : ()
        }
        guard element.isContainer else { return try content(of: element) }
        guard element != .plist || open.isEmpty else { throw failure("a <plist> inside another element") }
        guard open.count < maximumDepth + (open.first == .plist ? 1 : 0) else {
            throw failure("nesting deeper than \(maximumDepth) (PropertyListCodec.maximumDepth)")
        }
        open.append(element)
        if element == .dict { keys.append(DictionaryKeys()) }
    }

    private mutating func content(of element: Element) throws(FerryError) {
        let start = position
        while true {
            while let byte = peek, byte != UInt8(ascii: "<") {
                if byte == UInt8(ascii: "&"), element.isText { try reference() } else { position += 1 }
            }
            if element.isText, take("<![CDATA[") {
                try skip(through: "]]>", in: "character data")
            } else {
                let end = position
                guard take("</" + element.rawValue) else { throw unexpected("'</\(element.rawValue)>'") }
                try closeAngle(of: element)
                return try judge(element, start..<end)
            }
        }
    }

    /// A reference to a character by its number is one that there is; Foundation reads `&#;` as U+0000. The others are
    /// Foundation's to judge.
    private mutating func reference() throws(FerryError) {
        let start = position
        position += 1
        guard take("#") else { return }
        let isHex = take("x") || take("X")
        guard peek != UInt8(ascii: "+"), let end = bytes[position...].firstIndex(of: UInt8(ascii: ";")),
            end - position <= 8,
            let number = UInt32(String(decoding: bytes[position..<end], as: UTF8.self), radix: isHex ? 16 : 10),
            number > 0, UnicodeScalar(number) != nil
        else {
            position = start
            throw failure("a reference to no character")
        }
        position = end + 1
    }

    // MARK: Values

    private mutating func judge(_ element: Element, _ range: Range<Int>) throws(FerryError) {
        let after = position
        position = range.lowerBound
        let text = bytes[range]
        switch element {
        case .string:
            // Foundation looks at the first bytes only, before references and character data.
            guard text.starts(with: "$null".utf8) else { break }
            guard text.count == 5 else {
                throw failure("a string that begins with \"$null\", which Foundation cannot read")
            }
            isAmbiguous = true
        case .key: try key(range)
        case .data:
            guard isBase64(text) else { throw failure("data that is not base64 with padding") }
        case .date:
            isAmbiguous = true
            // A coder's dates are compared with the message.
            guard case .peer = origin, !CodedDate.isText(text, isInternet: false) else { break }
            throw failure("a date that is no day and time as in 2026-11-21T09:30:00Z, from the year 1 to 9999")
        case .real:
            let digits = text.drop { $0 <= 0x20 }
            if digits.contains(where: { $0 | 0x20 == UInt8(ascii: "f") }) { infinityCount += 1 }
            guard digits.count > 38 || digits.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) else { break }
            guard let number = Double(String(decoding: digits, as: UTF8.self)) else { break }
            guard number.isFinite else { throw failure("a number that is too large for a real") }
            if Float(number).isInfinite { hasLargeReal = true }
        default: break
        }
        position = after
    }

    private mutating func key(_ range: Range<Int>) throws(FerryError) {
        let after = position
        position = range.lowerBound
        guard !bytes[range].starts(with: "$null".utf8) else {
            throw failure("a key that begins with \"$null\", which Foundation cannot read")
        }
        defer { position = after }
        guard !keys.isEmpty else { return }
        guard case .peer = origin else { return keys[keys.count - 1].insertNew(XMLText.string(bytes[range])) }
        let name = XMLText.string(bytes[range])
        guard keys[keys.count - 1].insert(name) else {
            throw failure("the key \(name.debugDescription) twice in one dictionary")
        }
    }

    /// Whole groups of four, white space between them, padding at the very end: Foundation passes over everything else.
    private func isBase64(_ text: ArraySlice<UInt8>) -> Bool {
        var count = 0
        var padding = 0
        for byte in text {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                guard padding == 0 else { return false }
                count += 1
            case UInt8(ascii: "="):
                padding += 1
                count += 1
            default:
                // Foundation counts padding anew after white space.
                guard isWhitespace(byte), padding == 0 || count.isMultiple(of: 4) else { return false }
            }
        }
        return padding <= 2 && count.isMultiple(of: 4)
    }

    private mutating func closeAngle(of element: Element) throws(FerryError) {
        skipWhitespace()
        guard take(">") else { throw unexpected("'>' of '</\(element.rawValue)>'") }
    }

    private mutating func instruction(isDeclaration: Bool) throws(FerryError) {
        let start = position
        guard peek != UInt8(ascii: ">") else { throw failure("an empty processing instruction") }
        try skip(through: "?>", in: "a processing instruction")
        let text = String(decoding: bytes[start..<position], as: UTF8.self).lowercased()
        guard isDeclaration, let range = text.firstRange(of: "encoding=") else { return }
        let value = text[range.upperBound...]
        guard value.hasPrefix("\"utf-8\"") || value.hasPrefix("'utf-8'") else {
            throw failure("an encoding other than UTF-8 in its declaration")
        }
    }

    /// Refuses a document type with internal declarations, as Foundation does.
    private mutating func documentType() throws(FerryError) {
        while let byte = peek, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "["), byte != UInt8(ascii: "<") {
            position += 1
        }
        guard take(">") else { throw unexpected("'>' of the document type") }
    }

    // MARK: Bytes

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    private mutating func skipWhitespace() {
        while let byte = peek, isWhitespace(byte) { position += 1 }
    }

    private mutating func take(_ text: String) -> Bool {
        guard bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    private mutating func skip(through end: String, in what: String) throws(FerryError) {
        let start = position
        while position < bytes.count {
            if take(end) { return }
            position += 1
        }
        position = start
        throw failure("\(what) that does not end")
    }

    // MARK: Errors

    private func unexpected(_ expectation: String) -> FerryError {
        failure("\(TextPlace(position, in: bytes).found) where \(expectation) was expected")
    }

    private func failure(_ what: String) -> FerryError {
        switch origin {
        case .peer:
            FerryError(
                .decodingFailed,
                "The received message is not a property list this channel reads (binary, or XML in UTF-8): it has "
                    + "\(what), \(TextPlace(position, in: bytes)). Check that the peer uses property lists too.")
        case .coder: origin.failure("it has \(what), \(TextPlace(position, in: bytes))")
        }
    }
}
