import Ferry
import Synchronization

/// Counts the chunks of a link by their size, and shows each when asked to.
final class ChunkLog: LinkObserver {
    private struct State {
        var sizes: [Int: Int] = [:]
        var isFull = false
    }

    private let role: String
    private let console: Console?
    private let stopwatch: Stopwatch
    private let state = Mutex(State())
    private let (closed, closing) = AsyncStream<Void>.makeStream()

    /// Makes a log.
    ///
    /// - Parameters:
    ///   - role: whose link it is.
    ///   - console: where to show the chunks; nil to count only.
    ///   - stopwatch: gives the times that are shown.
    init(role: String, console: Console?, stopwatch: Stopwatch) {
        self.role = role
        self.console = console
        self.stopwatch = stopwatch
        show("connected")
    }

    /// How many chunks of which size were sent, largest first.
    var sizes: [(size: Int, count: Int)] {
        state.withLock { $0.sizes.map { ($0.key, $0.value) } }.sorted { $0.size > $1.size }
    }

    /// Waits for the link's end, but not for ever.
    func waitForClose(for patience: Duration, _ time: any TimeSource) async {
        let timer = time.schedule(at: time.now + patience) { [closing] in closing.finish() }
        for await _ in closed {}
        timer.cancel()
    }

    func linkDidSend(_ chunk: RawSpan) {
        state.withLock { state in
            state.sizes[chunk.byteCount, default: 0] += 1
            state.isFull = false
        }
        show("sent", chunk)
    }

    func linkDidRefuse(_ chunk: RawSpan) {
        let isNews = state.withLock { state in
            defer { state.isFull = true }
            return !state.isFull
        }
        if isNews { show("full: waiting for ready") }
    }

    func linkIsReady() {
        if state.withLock({ $0.isFull }) { show("ready") }
    }

    func linkDidReceive(_ chunk: RawSpan) { show("received", chunk) }

    func linkDidClose(_ reason: FerryError) { closing.finish() }

    private func show(_ event: String, _ chunk: RawSpan) {
        guard let console else { return }
        let size = String(chunk.byteCount).padded(to: -3)
        show("\(event.padded(to: 8))  \(size) bytes  \(Self.text(of: chunk, atMost: console.showsBar ? 20 : .max))")
    }

    private func show(_ event: String) {
        guard let console else { return }
        console.line("\(stopwatch.elapsed.forPeople.padded(to: -9))  \(role)  \(event)")
    }

    /// A chunk as text where it is text; on a terminal, where it must fit, no more than its beginning. `ferry trace` reads
    /// whole ones.
    private static func text(of chunk: RawSpan, atMost maximum: Int) -> String {
        let bytes = (0..<min(maximum, chunk.byteCount)).map { chunk.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
        let rest = chunk.byteCount > bytes.count ? "..." : ""
        if bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(decoding: bytes, as: UTF8.self) + rest }
        return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ") + rest
    }
}

/// Time since its first use.
final class Stopwatch: Sendable {
    private let time: any TimeSource
    private let start = Mutex<Timestamp?>(nil)

    init(time: any TimeSource = SystemTime()) { self.time = time }

    var elapsed: Duration {
        let now = time.now
        return start.withLock { start in
            let origin = start ?? now
            start = origin
            return now - origin
        }
    }
}
