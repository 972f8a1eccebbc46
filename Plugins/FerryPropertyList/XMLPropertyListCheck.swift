import Ferry

/// Whether bytes are an XML property list in UTF-8 whose elements are known, properly nested, and no deeper than allowed.
///
/// Written without recursion: the open elements are a list, so no input can exhaust the stack. What stands inside the
/// elements is Foundation's to judge. Whatever this check takes for a comment, an instruction or character data,
/// Foundation's scanner takes for the same, so nothing can be hidden from it there.
struct XMLPropertyListCheck {
    private enum Element: String {
        case plist, array, dict, key, string, data, date, real, integer
        case `true`, `false`

        var isContainer: Bool { self == .plist || self == .array || self == .dict }
    }

    private let bytes: [UInt8]
    private let maximumDepth: Int
    private var position = 0
    private var open: [Element] = []

    init(_ bytes: [UInt8], maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
    }

    /// Reads the whole document.
    ///
    /// - Throws: `decodingFailed` with what is wrong and where.
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
        guard bytes[position - 2] != UInt8(ascii: "/") else { return }
        guard element.isContainer else { return try content(of: element) }
        guard element != .plist || open.isEmpty else { throw failure("a <plist> inside another element") }
        guard open.count < maximumDepth + (open.first == .plist ? 1 : 0) else {
            throw failure("nesting deeper than \(maximumDepth) (PropertyListCodec.maximumDepth)")
        }
        open.append(element)
    }

    private mutating func content(of element: Element) throws(FerryError) {
        while true {
            while let byte = peek, byte != UInt8(ascii: "<") { position += 1 }
            if element == .string || element == .key, take("<![CDATA[") {
                try skip(through: "]]>", in: "character data")
            } else {
                guard take("</" + element.rawValue) else { throw unexpected("'</\(element.rawValue)>'") }
                return try closeAngle(of: element)
            }
        }
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

    /// A document type with declarations of its own is refused, by Foundation too.
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
        FerryError(
            .decodingFailed,
            "The received message is not a property list this channel reads (binary, or XML in UTF-8): it has \(what), "
                + "\(TextPlace(position, in: bytes)). "
                + "Check that the peer uses property lists too.")
    }
}
