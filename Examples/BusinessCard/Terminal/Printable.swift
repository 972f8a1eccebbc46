extension String {
    /// The text with whatever could move the cursor or hide something shown by its number, so that a peer's words or a
    /// file's cannot take over the terminal, and cut where it becomes too long for a line.
    var printable: String {
        var shown = ""
        var count = 0
        for scalar in unicodeScalars {
            guard count < Self.longestShown else { return shown + "... (\(utf8.count) bytes)" }
            count += 1
            switch scalar.properties.generalCategory {
            case .format where scalar == "\u{200C}" || scalar == "\u{200D}":  // joins letters and emoji
                shown.unicodeScalars.append(scalar)
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate:
                shown += scalar == "\n" ? "\\n" : "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    private static var longestShown: Int { 200 }
}
