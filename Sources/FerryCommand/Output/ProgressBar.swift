import Foundation

/// A bar with the time left, on standard error, when that is a terminal.
struct ProgressBar {
    private let total: Int
    private let start = ContinuousClock.now
    private let isShown: Bool

    init(total: Int) {
        self.total = total
        isShown = isatty(FileHandle.standardError.fileDescriptor) != 0
    }

    func show(_ done: Int) {
        guard isShown, total > 0 else { return }
        let width = 30
        let filled = done * width / total
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        let elapsed = start.duration(to: .now) / .seconds(1)
        let left = done > 0 ? "\(Int((elapsed / Double(done) * Double(total - done)).rounded(.up))) s left" : ""
        write("\r[\(bar)] \(done)/\(total) \(left)\u{1B}[K")
    }

    func finish() {
        guard isShown else { return }
        write("\r\u{1B}[K")
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
