import FerryLab
import Foundation
import Synchronization

/// What a transfer tells while it goes: events as JSON for programs, a line that changes for people at a terminal, and
/// sentences at the end.
final class TransferReport: Sendable {
    /// One event of `--json`.
    struct Event: Encodable {
        var event: String
        var item: String?
        var bytes: UInt64?
        var totalBytes: UInt64?
        var offset: UInt64?
        /// Since the first byte could go.
        var bytesPerSecond: UInt64?
        /// Over the last second.
        var bytesPerSecondNow: UInt64?
        var crc32c: String?
        var reason: String?
        var items: Int?
        var failed: Int?
        var seconds: Double?
    }

    private struct State {
        var start: ContinuousClock.Instant?
        var items = 0
        var failed = 0
        /// Bytes that have crossed.
        var moved: UInt64 = 0
        /// Bytes of the items that are on the other side, with those that were there before.
        var settled: UInt64 = 0
        /// The same of the item in hand.
        var current: UInt64 = 0
        var total: UInt64?
        /// The size of the item in hand.
        var size: UInt64?

        var done: UInt64 { (total == nil ? 0 : settled) + current }
        var whole: UInt64? { total ?? size }
        var seconds: Double { start.map { $0.duration(to: .now) / .seconds(1) } ?? 0 }
        var item = ""
        var lastShown: ContinuousClock.Instant?
        var isLineShown = false
        var isOver = false
        /// Bytes that had crossed when the last whole second began.
        var second: (start: ContinuousClock.Instant, moved: UInt64)?
        /// In bytes a second, over the last whole second.
        var recent: Double?

        /// Begins another second when the last one is over.
        mutating func pass(_ now: ContinuousClock.Instant) {
            guard let second else { return self.second = (now, moved) }
            let elapsed = second.start.duration(to: now) / .seconds(1)
            guard elapsed >= 1 else { return }
            recent = Double(moved - second.moved) / elapsed
            self.second = (now, moved)
        }
    }

    private let verb: String
    private let isJSON: Bool
    private let showsLine: Bool
    private let events: SystemFile
    private let state = Mutex(State())

    /// - Parameters:
    ///   - verb: `Sent` or `Received`.
    ///   - isJSON: whether events are printed.
    ///   - isQuiet: whether no progress is shown.
    ///   - events: where events go.
    init(verb: String, isJSON: Bool, isQuiet: Bool, events: Int32 = STDOUT_FILENO) {
        self.verb = verb
        self.isJSON = isJSON
        showsLine = !isQuiet && !isJSON && isatty(STDERR_FILENO) != 0
        self.events = SystemFile(events, isOwned: false)
    }

    var failures: Int { state.withLock { $0.failed } }

    func expect(_ total: UInt64?) { state.withLock { $0.total = total } }

    func begin(_ item: TransferItem, at offset: UInt64) {
        state.withLock { state in
            if state.start == nil { state.start = .now }
            state.item = item.name
            state.size = item.size
            state.current = offset
        }
        emit(Event(event: "begin", item: item.name, totalBytes: item.size, offset: offset))
    }

    func move(_ count: Int) {
        state.withLock { state in
            state.moved += UInt64(count)
            state.current += UInt64(count)
        }
        show(after: isJSON ? .seconds(1) : .milliseconds(200))
    }

    /// Shows each second how the transfer goes, also when nothing crosses, until the task is cancelled.
    func tick() async {
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            // A transfer that has not begun says what it waits for.
            if state.withLock({ $0.start != nil }) { show(after: .milliseconds(900)) }
        }
    }

    private func show(after pause: Duration) {
        let line = state.withLock { state -> String? in
            let now = ContinuousClock.now
            state.pass(now)
            guard isJSON || showsLine, !state.isOver else { return nil }
            if let last = state.lastShown, last.duration(to: now) < pause { return nil }
            state.lastShown = now
            state.isLineShown = showsLine
            return self.text(of: state)
        }
        guard let line else { return }
        if showsLine { write("\r" + line + "\u{1B}[K") }
        if isJSON {
            let (item, done, total, now) = state.withLock {
                ($0.item, $0.done, $0.whole, $0.recent.map { UInt64($0) })
            }
            emit(
                Event(
                    event: "progress", item: item, bytes: done, totalBytes: total, bytesPerSecond: rate,
                    bytesPerSecondNow: now))
        }
    }

    /// Since the first byte could go.
    private var seconds: Double { state.withLock { $0.seconds } }
    private var rate: UInt64 { state.withLock { UInt64(Double($0.moved) / max($0.seconds, 0.001)) } }

    private func text(of state: State) -> String {
        let perSecond = Double(state.moved) / max(state.seconds, 0.001)
        var parts = [state.item.forTerminal]
        if let total = state.whole, total > 0 {
            parts.append("\(min(100, state.done * 100 / total)) %")
            parts.append("\(Self.size(state.done)) of \(Self.size(total))")
        } else {
            parts.append(Self.size(state.done))
        }
        parts.append("\(Self.size(UInt64(state.recent ?? perSecond)))/s")
        if let total = state.whole, total > state.done, perSecond > 0 {
            parts.append("\(Self.time(Double(total - state.done) / perSecond)) left")
        }
        return TerminalWidth.line(parts, TerminalWidth.limit(STDERR_FILENO))
    }

    func done(_ item: TransferItem, _ content: TransferContent?, wasThere: Bool = false) {
        state.withLock { state in
            state.items += 1
            state.settled += content?.count ?? state.current
            state.current = 0
        }
        emit(
            Event(
                event: wasThere ? "unchanged" : "done", item: item.name, bytes: content?.count,
                crc32c: content.map { hexadecimal($0.checksum) }))
    }

    func fail(_ item: String, _ reason: String) {
        state.withLock { $0.failed += 1 }
        emit(Event(event: "failed", item: item, reason: reason))
        say("\(item.forTerminal): \(reason.forTerminal)")
    }

    /// Something that people should know and that is no failure.
    func remark(_ text: String) {
        emit(Event(event: "note", reason: text))
        say(text)
    }

    /// Says a wait: to people at a terminal, and to programs.
    func wait(_ text: String) {
        emit(Event(event: "waiting", reason: text))
        if showsLine { say(text) }
    }

    /// The end of it all.
    func end(_ error: String? = nil) {
        let (items, failed, moved) = state.withLock { state in
            state.isOver = true
            return (state.items, state.failed, state.moved)
        }
        emit(
            Event(
                event: "end", bytes: moved, bytesPerSecond: rate, reason: error, items: items, failed: failed,
                seconds: (seconds * 1000).rounded() / 1000))
        clearLine()
        guard !isJSON, showsLine || failed > 0 else { return }
        let what = "\(verb) \(items) item\(items == 1 ? "" : "s"), \(Self.size(moved)) in \(Self.time(seconds))"
        write(what + ", \(Self.size(rate))/s" + (failed > 0 ? "; \(failed) failed" : "") + "\n")
    }

    func clearLine() {
        let wasShown = state.withLock { state in
            defer { state.isLineShown = false }
            return state.isLineShown
        }
        if wasShown { write("\r\u{1B}[K") }
    }

    private func say(_ text: String) {
        clearLine()
        if !isJSON { write("ferry: " + text.harmless + "\n") }
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }

    private func emit(_ event: Event) {
        guard isJSON else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let line = try? encoder.encode(event) else { return }
        try? events.write(Array((String(decoding: line, as: UTF8.self).harmlessJSON + "\n").utf8)[...])
    }

    static func size(_ bytes: UInt64) -> String {
        if bytes < 1000 { return "\(bytes) B" }
        for (unit, factor) in [("kB", 1e3), ("MB", 1e6), ("GB", 1e9)] where Double(bytes) < factor * 999.95 {
            return "\(number(Double(bytes) / factor, 1)) \(unit)"
        }
        return "\(number(Double(bytes) / 1e12, 1)) TB"
    }

    static func time(_ seconds: Double) -> String {
        if seconds < 10 { return "\(number(seconds, 1)) s" }
        let whole = Int(min(seconds, 1e9).rounded())
        if whole < 60 { return "\(whole) s" }
        let (minutes, rest) = (whole / 60, whole % 60)
        return minutes < 60 ? "\(minutes) min \(rest) s" : "\(minutes / 60) h \(minutes % 60) min"
    }

    private func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
