import Foundation

/// How far something has come and the time left, on standard error: a bar on a terminal, a line every ten seconds elsewhere.
final class ProgressBar {
    private let total: Int
    private let start = ContinuousClock.now
    private let isShown: Bool
    /// When a line was written last, in seconds since the start.
    private var lastLine = 0.0
    private static let pause = 10.0

    init(total: Int) {
        self.total = total
        isShown = isatty(FileHandle.standardError.fileDescriptor) != 0
    }

    func show(_ done: Int) {
        guard total > 0 else { return }
        let elapsed = start.duration(to: .now) / .seconds(1)
        let left = done > 0 ? "\(Int((elapsed / Double(done) * Double(total - done)).rounded(.up))) s left" : ""
        guard isShown else {
            guard elapsed - lastLine >= Self.pause else { return }
            lastLine = elapsed
            return write("\(done) of \(total)\(left.isEmpty ? "" : ", \(left)")\n")
        }
        let width = 30
        let filled = done * width / total
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        write("\r[\(bar)] \(done)/\(total) \(left)\u{1B}[K")
    }

    func finish() {
        guard isShown else { return }
        write("\r\u{1B}[K")
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
