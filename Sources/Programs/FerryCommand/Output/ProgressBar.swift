import Foundation
import Synchronization

/// How far something has come and the time left, on standard error: a bar on a terminal, from the beginning on and every second;
/// elsewhere a line after the first second, and then every ten.
final class ProgressBar: Sendable {
    private struct State {
        var done = 0
        /// When the next line is due, in seconds since the start.
        var nextLine = 1.0
        var isOver = false
    }

    private let total: Int
    private let start = ContinuousClock.now
    private let isShown: Bool
    private let state = Mutex(State())
    private static let pause = 10.0

    init(total: Int) {
        self.total = total
        isShown = isatty(FileHandle.standardError.fileDescriptor) != 0
    }

    func show(_ done: Int) {
        state.withLock { state in
            state.done = done
            draw(&state)
        }
    }

    /// Shows the time that goes by, until the task is cancelled.
    func tick() async {
        while (try? await Task.sleep(for: .seconds(1))) != nil { state.withLock { draw(&$0) } }
    }

    private func draw(_ state: inout State) {
        guard total > 0, !state.isOver else { return }
        let elapsed = start.duration(to: .now) / .seconds(1)
        guard isShown else {
            guard elapsed >= state.nextLine else { return }
            state.nextLine = elapsed + Self.pause
            return write("\(Self.text(state.done, of: total, after: elapsed))\n")
        }
        let line = Self.line(state.done, of: total, after: elapsed, TerminalWidth.limit(STDERR_FILENO))
        write("\r\(line)\u{1B}[K")
    }

    /// A terminal's line after this many seconds: a bar as wide as there is room, and none that shows little.
    static func line(_ done: Int, of total: Int, after elapsed: Double, _ limit: Int) -> String {
        let text = text(done, of: total, after: elapsed)
        let width = min(30, limit - text.count - 3)
        guard width >= 5 else { return String(text.prefix(limit)) }
        let filled = done * width / total
        return "[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: width - filled))] \(text)"
    }

    /// The progress after this many seconds, in words.
    static func text(_ done: Int, of total: Int, after elapsed: Double) -> String {
        let left = done > 0 ? max(1, Int((elapsed / Double(done) * Double(total - done)).rounded(.up))) : nil
        let time = left.map { "about \($0) s left" } ?? "after \(Int(elapsed)) s"
        return "\(done) of \(total), \(time)"
    }

    func finish() {
        state.withLock { state in
            guard !state.isOver else { return }
            state.isOver = true
            if isShown { write("\r\u{1B}[K") }
        }
    }

    /// Takes the bar away for what stands in its place; it comes again with the next ``show(_:)``.
    func clear() { state.withLock { _ in if isShown { write("\r\u{1B}[K") } } }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
