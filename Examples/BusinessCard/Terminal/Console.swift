import Foundation
import Synchronization

/// Lines and a progress bar on a terminal; lines alone in a pipe or file.
final class Console: Sendable {
    private struct State {
        var bar = ""
        var quarters: [String: Int] = [:]
        var isBroken = false
    }

    /// Whether it is a terminal, where what is written last can be written over.
    let showsBar: Bool
    private let width: Int
    private let write: @Sendable (String) throws -> Void
    private let state = Mutex(State())

    /// Makes a console.
    ///
    /// - Parameters:
    ///   - showsBar: whether what is written last can be written over.
    ///   - width: the columns of a line.
    ///   - write: takes what is to be shown.
    init(showsBar: Bool, width: Int = 80, write: @escaping @Sendable (String) throws -> Void) {
        self.showsBar = showsBar
        self.width = width
        self.write = write
    }

    /// Whether something could not be written, because a disk is full or the reader gone.
    var isBroken: Bool { state.withLock { $0.isBroken } }

    /// Writes a line above the bar.
    func line(_ text: String = "") {
        state.withLock { state in
            put(erasing(state.bar) + text + "\n" + state.bar, &state)
        }
    }

    /// Shows how far something has come: as a bar that moves, or as a line for each quarter.
    func progress(_ title: String, _ done: Int, of total: Int) {
        state.withLock { state in
            let figures = "\(done) of \(total) bytes"
            guard showsBar else {
                let quarter = total > 0 ? done * 4 / total : 4
                guard quarter > state.quarters[title] ?? 0 else { return }
                state.quarters[title] = quarter < 4 ? quarter : nil
                put("\(title)  \(figures)\n", &state)
                return
            }
            let room = min(40, width - title.count - figures.count - 8)
            let filled = total > 0 ? room * done / total : room
            let bar =
                room < 4
                ? ""
                : "[" + String(repeating: "#", count: filled) + String(repeating: ".", count: room - filled) + "]  "
            let old = state.bar
            state.bar = "\(title)  \(bar)\(figures)"
            put(erasing(old) + state.bar, &state)
        }
    }

    /// Leaves the bar as it stands and goes on below it.
    func endProgress() {
        state.withLock { state in
            if !state.bar.isEmpty { put("\n", &state) }
            state.bar = ""
        }
    }

    private func erasing(_ bar: String) -> String { bar.isEmpty ? "" : "\r\u{1B}[K" }

    private func put(_ text: String, _ state: inout State) {
        guard !state.isBroken else { return }
        do { try write(text) } catch { state.isBroken = true }
    }
}

extension Console {
    /// The process's standard output.
    static func standardOutput() -> Console {
        let isTerminal = isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        return Console(showsBar: isTerminal, width: terminalWidth) { text in
            try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
        }
    }

    /// Says on standard error what went wrong. A failure to write even that has no place to be reported.
    static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("business-card: \(text)\n".utf8))
    }

    private static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
