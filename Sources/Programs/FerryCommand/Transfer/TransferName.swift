/// Names of items. They come from another machine: a name that may lead out of the receiver's folder is refused.
///
/// A file system compares names by their bytes, so all of this does: to Swift, `/` and a combining accent are one character.
enum TransferName {
    /// The parts of a safe name: a relative path that only goes down. Nil for any other.
    static func parts(_ name: String) -> [String]? {
        let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard name.utf8.count <= TransferMessage.maximumText, parts.count <= 64, parts.allSatisfy(isSafe) else {
            return nil
        }
        return parts.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func isSafe(_ part: Substring.UTF8View) -> Bool {
        !part.isEmpty && !part.elementsEqual(".".utf8) && !part.elementsEqual("..".utf8) && part.count <= 240
            && !part.contains { $0 == 0 || $0 == UInt8(ascii: "\\") } && !isPartial(part)
    }

    /// What a file is called while it is not complete.
    static func partial(of part: String) -> String { ".\(part)\(partial)" }

    private static let partial = ".ferry-part"

    /// In capitals too: to some file systems these are the same.
    private static func isPartial(_ part: Substring.UTF8View) -> Bool {
        part.suffix(partial.utf8.count).lazy.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
            .elementsEqual(partial.utf8)
    }

    /// A name that can be sent for one part that cannot, to be shown: bytes that are not UTF-8, control characters,
    /// backslashes and percent signs as `%` and two digits.
    static func shown(_ part: [UInt8]) -> String {
        var shown = ""
        if let text = String(validating: part, as: UTF8.self) {
            for scalar in text.unicodeScalars {
                let isPlain = scalar != "\\" && scalar != "%" && scalar.isHarmless
                shown += isPlain ? String(scalar) : String(scalar).utf8.map(percent).joined()
            }
        } else {
            for byte in part {
                let isPlain = (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "%")
                shown += isPlain ? String(UnicodeScalar(byte)) : percent(byte)
            }
        }
        while shown.utf8.count > 200 { shown.unicodeScalars.removeLast() }
        if shown == "." || shown == ".." || isPartial(shown[...].utf8) { shown += "%" }
        return shown
    }

    private static func percent(_ byte: UInt8) -> String {
        "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
}
