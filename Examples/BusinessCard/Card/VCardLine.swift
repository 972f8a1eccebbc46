import Ferry

/// One content line of a vCard, unfolded: `[group.]NAME[;PARAMETER=value]:value` (RFC 6350, 3.3).
struct VCardLine {
    /// The line of the file it begins in, counted from 1.
    let number: Int
    /// The property's name in capitals, without its group.
    let name: String
    /// The value as it stands, escapes and all.
    let value: String
    /// How much the card's owner prefers this value: 1 is most, 101 is not stated (RFC 6350, 5.3; RFC 2426, 3.1).
    let preference: Int

    /// Takes a line apart.
    ///
    /// - Throws: ``CardError`` when it is no content line.
    init(_ text: String, number: Int) throws(CardError) {
        var isQuoted = false
        let colon = text.unicodeScalars.firstIndex { scalar in  // a Character may be a colon and an accent
            if scalar == "\"" { isQuoted.toggle() }
            return scalar == ":" && !isQuoted
        }
        guard let colon else { throw CardError("line \(number): a colon is missing between a property and its value") }
        let parts = text[..<colon].split(separator: ";", omittingEmptySubsequences: false)
        let name = parts[0].split(separator: ".", omittingEmptySubsequences: false).last ?? ""
        guard !name.isEmpty, name.utf8.allSatisfy({ $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "-") }) else {
            throw CardError("line \(number): \"\(parts[0].prefix(40).description.printable)\" is not a property's name")
        }
        self.number = number
        self.name = name.uppercased()
        self.value = String(text.unicodeScalars[colon...].dropFirst())
        preference = parts.dropFirst().lazy.compactMap { Self.preference(in: $0.uppercased()) }.first ?? 101
    }

    private static func preference(in parameter: String) -> Int? {
        let parts = parameter.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        switch parts[0] {
        case "PREF": return Int(parts[1]).flatMap { (1...100).contains($0) ? $0 : nil }
        case "TYPE": return parts[1].split { $0 == "," || $0 == "\"" }.contains("PREF") ? 1 : nil
        default: return nil
        }
    }

    /// An error about this line.
    func error(_ message: String) -> CardError { CardError("line \(number): \(message)") }

    /// The value as one text, without escapes.
    var text: String { fields(separatedBy: nil).joined() }

    /// The value's components, which semicolons separate; a component's own list of values is joined.
    func components(separator: String) -> [String] {
        fields(separatedBy: ";", separator)
    }

    /// Splits at `delimiter` and resolves the escapes of RFC 6350, 3.4. A backslash before anything else stays.
    private func fields(separatedBy delimiter: Unicode.Scalar?, _ listSeparator: String = ",") -> [String] {
        var fields: [String] = []
        var field = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in value.unicodeScalars {
            if isEscaped {
                isEscaped = false
                switch scalar {
                case "n", "N": field.append("\n")
                case "\\", ";", ",": field.append(scalar)
                default: field.append(contentsOf: ["\\", scalar])
                }
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == delimiter {
                fields.append(String(field))
                field = .init()
            } else if scalar == ",", delimiter != nil {
                field.append(contentsOf: listSeparator.unicodeScalars)
            } else {
                field.append(scalar)
            }
        }
        if isEscaped { field.append("\\") }
        return fields + [String(field)]
    }
}

extension VCardLine {
    /// Cuts a file into content lines and joins folded ones (RFC 6350, 3.2): a line that begins with a space or tab goes
    /// on where the one before ended. Empty lines are passed over.
    ///
    /// Folding is undone on bytes, because older writers fold in the middle of a character.
    static func unfold(_ bytes: [UInt8]) throws(CardError) -> [VCardLine] {
        var lines: [VCardLine] = []
        var pending: [UInt8] = []
        var start = 1

        func finish() throws(CardError) {
            guard pending.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { return }
            guard let text = String(validating: pending, as: UTF8.self) else {
                let offset = UTF8Text.firstInvalidOffset(in: pending) ?? pending.count
                throw CardError("line \(start): byte \(offset) of the line is not UTF-8 text")
            }
            lines.append(try VCardLine(text, number: start))
        }

        var number = 0
        for var line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            number += 1
            if line.last == 0x0D { line.removeLast() }
            if let first = line.first, first == 0x20 || first == 0x09, !pending.isEmpty {
                pending.append(contentsOf: line.dropFirst())
            } else {
                try finish()
                pending = Array(line)
                start = number
            }
        }
        try finish()
        return lines
    }
}

extension UInt8 {
    fileprivate var isASCIILetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
