extension String {
    /// The text with all that could move the cursor or hide something shown by its number, so that a peer's words or a
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

extension String {
    /// The text with spaces after it (or before it, for a negative width) up to a number of columns.
    func padded(to width: Int) -> String {
        let spaces = String(repeating: " ", count: max(0, abs(width) - count))
        return width < 0 ? spaces + self : self + spaces
    }
}

extension Duration {
    /// The duration for a report: `7.5 ms`, or `1.25 s` from one second on.
    var forPeople: String {
        let (unit, scale) = self < .seconds(1) ? ("ms", 1e3) : ("s", 1.0)
        let (seconds, attoseconds) = components
        let value = ((Double(seconds) + Double(attoseconds) / 1e18) * scale * 100).rounded() / 100
        let isWhole = value == value.rounded() && value.magnitude < 1e15
        return "\(isWhole ? String(Int64(value)) : String(value)) \(unit)"
    }
}
