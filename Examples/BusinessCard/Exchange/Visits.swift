import Ferry
import Synchronization

/// Who has come, and when the wait for others ends: not while a visitor is there.
final class Visits: Sendable {
    private struct State {
        var active = 0
        var served = 0
        var failed = 0
        var timer: ScheduledTimer?
        var isOver = false
    }

    private let time: any TimeSource
    private let patience: Duration
    private let onEnd: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - patience: how long to wait for the next visitor when none is there.
    ///   - onEnd: called when that is over.
    init(time: any TimeSource, patience: Duration, onEnd: @escaping @Sendable () -> Void) {
        self.time = time
        self.patience = patience
        self.onEnd = onEnd
    }

    var counts: (served: Int, failed: Int) { state.withLock { ($0.served, $0.failed) } }

    /// Whether the wait has come to its end.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Waits for a visitor from now on.
    func wait() {
        state.withLock { state in
            guard state.active == 0 else { return }
            state.timer?.cancel()
            state.timer = time.schedule(at: time.now + patience) { [self] in giveUp() }
        }
    }

    private func giveUp() {
        let isOver = state.withLock { state in
            guard state.active == 0 else { return false }
            state.isOver = true
            return true
        }
        if isOver { onEnd() }
    }

    func begin() {
        state.withLock { state in
            state.active += 1
            state.timer?.cancel()
            state.timer = nil
        }
    }

    func end(wasServed: Bool) {
        state.withLock { state in
            state.active -= 1
            if wasServed { state.served += 1 } else { state.failed += 1 }
        }
        wait()
    }
}
