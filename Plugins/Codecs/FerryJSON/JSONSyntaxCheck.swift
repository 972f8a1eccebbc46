import Ferry

/// Whether bytes are one JSON text (RFC 8259) that nests no deeper and holds no more values than allowed, and whose objects
/// have each name once.
///
/// Written without recursion: the open containers are a list, so no input can exhaust the stack.
struct JSONSyntaxCheck {
    /// Who made the bytes.
    enum Origin {
        case peer
        /// This side's coder, from a value of the type. It writes each name once.
        case coder(String)
    }

    private let bytes: [UInt8]
    private let origin: Origin
    private let maximumDepth: Int
    private let maximumValues: Int
    private var valueCount = 0
    private var position = 0
    private var closersAwaited: [UInt8] = []
    private var names = MemberNames()

    init(_ bytes: [UInt8], origin: Origin = .peer, maximumDepth: Int, maximumValues: Int = .max) {
        self.bytes = bytes
        self.origin = origin
        self.maximumDepth = maximumDepth
        self.maximumValues = maximumValues
    }

    /// Whether sound JSON is within the limits, at the cost of a look at each byte: a container that is not empty has one
    /// value more than commas.
    static func isWithin(maximumDepth: Int, maximumValues: Int, _ bytes: [UInt8]) -> Bool {
        var (depth, values) = (0, 1)
        var isString = false
        var isEscape = false
        var isOpening = false
        for byte in bytes {
            if isString {
                if isEscape {
                    isEscape = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscape = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            guard byte > 0x20 else { continue }
            let isClosing = byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")
            if isOpening, !isClosing { values += 1 }
            isOpening = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{")
            if isOpening { depth += 1 }
            if isClosing { depth -= 1 }
            if byte == UInt8(ascii: ",") { values += 1 }
            isString = byte == UInt8(ascii: "\"")
            guard depth <= maximumDepth, values <= maximumValues else { return false }
        }
        return true
    }

    /// Reads the whole text.
    ///
    /// - Throws: `decodingFailed` with the expected and the found character, and the place.
    mutating func run() throws(FerryError) {
        try checkEncoding()
        var expectsValue = true
        while true {
            skipWhitespace()
            if expectsValue {
                expectsValue = try value()
            } else if let closer = closersAwaited.last {
                expectsValue = try afterElement(closer)
            } else {
                guard position == bytes.count else { throw unexpected("the end of the message") }
                return
            }
        }
    }

    /// Foundation would also read UTF-16 and UTF-32; RFC 8259 allows neither between systems, and this check reads
    /// single bytes. A byte 0 is never legal in JSON and always present in those two.
    private mutating func checkEncoding() throws(FerryError) {
        if let offset = UTF8Text.firstInvalidOffset(in: bytes) {
            position = offset
            throw failure("bytes that are not UTF-8")
        }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Reads one scalar, an empty container, or the start of a container. Returns whether a value must follow.
    private mutating func value() throws(FerryError) -> Bool {
        valueCount += 1
        guard valueCount <= maximumValues else {
            throw failure("more than \(maximumValues) values (JSONCodec.maximumValues)")
        }
        switch peek {
        case UInt8(ascii: "{"):
            try open(awaiting: UInt8(ascii: "}"))
            guard peek != UInt8(ascii: "}") else { return close() }
            try key()
            return true
        case UInt8(ascii: "["):
            try open(awaiting: UInt8(ascii: "]"))
            guard peek != UInt8(ascii: "]") else { return close() }
            return true
        case UInt8(ascii: "\""): try string()
        case let byte? where byte == UInt8(ascii: "-") || isDigit(byte): try number()
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        default: throw unexpected("a value")
        }
        return false
    }

    /// Reads what follows a whole element of a container. Returns whether a value must follow.
    private mutating func afterElement(_ closer: UInt8) throws(FerryError) -> Bool {
        if peek == closer { return close() }
        guard peek == UInt8(ascii: ",") else {
            throw unexpected("',' or '\(Character(UnicodeScalar(closer)))'")
        }
        position += 1
        skipWhitespace()
        if closer == UInt8(ascii: "}") { try key() }
        return true
    }

    private mutating func open(awaiting closer: UInt8) throws(FerryError) {
        guard closersAwaited.count < maximumDepth else {
            throw failure("nesting deeper than \(maximumDepth) (JSONCodec.maximumDepth)")
        }
        closersAwaited.append(closer)
        if closer == UInt8(ascii: "}") { names.open() }
        position += 1
        skipWhitespace()
    }

    private mutating func close() -> Bool {
        if closersAwaited.removeLast() == UInt8(ascii: "}") { names.close() }
        position += 1
        return false
    }

    private mutating func key() throws(FerryError) {
        guard peek == UInt8(ascii: "\"") else { throw unexpected("a key in quotes") }
        let start = position
        try string()
        if case .peer = origin, let name = names.insertTwice(bytes[start + 1..<position - 1]) {
            position = start
            throw failure("the name \(name.debugDescription) twice in one object")
        }
        skipWhitespace()
        guard peek == UInt8(ascii: ":") else { throw unexpected("':'") }
        position += 1
    }

    private mutating func string() throws(FerryError) {
        position += 1
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"):
                position += 1
                try escape()
            case 0..<0x20:
                throw failure("the control character \(TextPlace.hex(byte)) inside a string, where it must be escaped")
            default:
                position += 1
            }
        }
        throw unexpected("'\"' at the end of a string")
    }

    private mutating func escape() throws(FerryError) {
        switch peek {
        case UInt8(ascii: "u"):
            let unit = try codeUnit()
            guard UTF16.isSurrogate(unit) else { return }
            guard UTF16.isLeadSurrogate(unit), peek == UInt8(ascii: "\\") else {
                throw failure("half a surrogate pair")
            }
            position += 1
            guard peek == UInt8(ascii: "u"), UTF16.isTrailSurrogate(try codeUnit()) else {
                throw failure("half a surrogate pair")
            }
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default:
            throw unexpected("one of \"\\/bfnrtu after '\\'")
        }
    }

    /// Reads `uXXXX`.
    private mutating func codeUnit() throws(FerryError) -> UInt16 {
        position += 1
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = peek.flatMap({ Character(UnicodeScalar($0)).hexDigitValue }) else {
                throw unexpected("four hexadecimal digits after '\\u'")
            }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }

    /// `-`, then digits without a leading zero, then perhaps a fraction and an exponent.
    private mutating func number() throws(FerryError) {
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") { position += 1 } else { try digits() }
        if peek == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            position += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
    }

    private mutating func digits() throws(FerryError) {
        let start = position
        while let byte = peek, isDigit(byte) { position += 1 }
        guard position > start else { throw unexpected("a digit") }
    }

    private mutating func literal(_ text: StaticString) throws(FerryError) {
        for index in 0..<text.utf8CodeUnitCount {
            guard peek == text.utf8Start[index] else { throw unexpected("'\(text)'") }
            position += 1
        }
    }

    private mutating func skipWhitespace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    // MARK: Errors

    private func unexpected(_ expectation: String) -> FerryError {
        failure("\(TextPlace(position, in: bytes).found) where \(expectation) was expected")
    }

    private func failure(_ what: String) -> FerryError {
        switch origin {
        case .peer:
            FerryError(
                .decodingFailed,
                "The received message is not the JSON this channel reads: it has \(what), "
                    + "\(TextPlace(position, in: bytes)). Check that the peer uses JSON too.")
        case .coder(let type):
            FerryError(
                .encodingFailed,
                "This \(type) cannot be written as JSON that this codec reads: it has \(what), "
                    + "\(TextPlace(position, in: bytes)). Send less in one message, or raise the limit on both sides.")
        }
    }
}
