/// Text that came from a peer, a file or a capture, for a terminal: nothing in it may move the cursor, change the title, or
/// show letters in another order.
extension String {
    /// One line of at most 300 characters. What a terminal would act on is U+FFFD.
    var forTerminal: String {
        Self(UnicodeScalarView(unicodeScalars.prefix(300).map { $0.isHarmless ? $0 : "\u{FFFD}" }))
    }

    /// The same for a message of any length that may have several lines.
    var harmless: String {
        if utf8.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 10 || $0 == 9 }) { return self }
        return Self(
            UnicodeScalarView(unicodeScalars.map { $0.isHarmless || $0 == "\n" || $0 == "\t" ? $0 : "\u{FFFD}" }))
    }

    /// The same for JSON, in which such characters only stand within strings: they are escaped, and mean the same.
    var harmlessJSON: String {
        if utf8.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 10 }) { return self }
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isHarmless || scalar == "\n" {
                text.unicodeScalars.append(scalar)
            } else {
                for unit in Self(scalar).utf16 {
                    let digits = Self(unit, radix: 16)
                    text += "\\u" + Self(repeating: "0", count: 4 - digits.count) + digits
                }
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    /// Whether a terminal shows this character, and does nothing else about it.
    var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: true
        }
    }
}
