import Foundation

/// How much a terminal shows on a line.
enum TerminalWidth {
    /// The characters that a line may have; one that is as wide as the terminal wraps in some.
    static func limit(_ descriptor: Int32) -> Int { size(descriptor).columns - 1 }

    /// The columns and rows of a terminal (tty_ioctl(4)); 80 and 24 where it does not say, or nothing fits.
    static func size(_ descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 10, size.ws_row > 3 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// The parts with two spaces between them, without the last ones where not all fit; the first is cut where it alone does not.
    static func line(_ parts: [String], _ limit: Int) -> String {
        var parts = parts
        while parts.count > 1, parts.reduce(2 * (parts.count - 1), { $0 + $1.count }) > limit { parts.removeLast() }
        return String(parts.joined(separator: "  ").prefix(limit))
    }
}
