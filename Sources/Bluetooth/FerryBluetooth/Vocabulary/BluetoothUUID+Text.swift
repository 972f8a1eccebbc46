extension BluetoothUUID {
    /// Reads a UUID as people write it: 4 hexadecimal digits (`180F`), 8 (`0000180F`), or the form of 36 characters
    /// (`0000180F-0000-1000-8000-00805F9B34FB`). Capitals and small letters are the same; nothing else is taken, no
    /// spaces, `0x` or braces.
    ///
    /// - Throws: `invalidArgument` with the unexpected text, its place (counted in characters from 1), and the legal
    ///   forms.
    public init(_ string: some StringProtocol) throws(BluetoothError) {
        // One more than the longest legal form decides everything, however long the text is.
        var characters: [Character] = []
        for character in string {
            characters.append(character)
            if characters.count > 36 { break }
        }
        guard characters.count == 4 || characters.count == 8 || characters.count == 36 else {
            let count = characters.count > 36 ? "more than 36" : "\(characters.count)"
            throw Self.malformed(characters, "it has \(count) characters")
        }
        var value: UInt128 = 0
        for (offset, character) in characters.enumerated() {
            if characters.count == 36, [8, 13, 18, 23].contains(offset) {
                guard character == "-" else {
                    throw Self.malformed(characters, "a hyphen is due at place \(offset + 1), not \(quoted(character))")
                }
                continue
            }
            guard character.isASCII, let digit = character.hexDigitValue else {
                throw Self.malformed(
                    characters, "\(quoted(character)) at place \(offset + 1) is not a hexadecimal digit")
            }
            value = value << 4 | UInt128(digit)
        }
        self = characters.count == 36 ? BluetoothUUID(value) : BluetoothUUID(UInt32(truncatingIfNeeded: value))
    }

    private static func malformed(_ characters: [Character], _ reason: String) -> BluetoothError {
        let shown = characters.count > 36 ? characters[..<36] + ["\u{2026}"] : characters[...]
        return BluetoothError(
            .invalidArgument,
            "\(quoted(shown)) is not a Bluetooth UUID: \(reason). Write 4 or 8 hexadecimal digits (180F, 0000180F) or "
                + "the 36 characters of the form 0000180F-0000-1000-8000-00805F9B34FB.")
    }
}

/// Text for an error message: quoted, control characters escaped, and bounded, because one `Character` may be made of
/// any number of combining marks.
private func quoted(_ characters: some Sequence<Character>) -> String {
    var text = String.UnicodeScalarView()
    for scalar in characters.lazy.flatMap(\.unicodeScalars).prefix(64) { text.append(scalar) }
    return String(text).debugDescription
}

private func quoted(_ character: Character) -> String { quoted(CollectionOfOne(character)) }

extension BluetoothUUID: CustomStringConvertible {
    /// The shortest form, as `CBUUID.uuidString` prints it: 4 digits, 8 digits or 36 characters, in capitals.
    public var description: String {
        guard bitWidth < 128 else { return uuidString }
        let digits = String(value >> 96, radix: 16, uppercase: true)
        return String(repeating: "0", count: bitWidth / 4 - digits.count) + digits
    }
}
