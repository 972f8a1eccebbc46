import Dispatch
package import FerryTesting
import Synchronization

/// Suspends until the task is cancelled.
package func untilCancelled() async {
    while !Task.isCancelled { try? await Task.sleep(for: .unreached) }
}

/// Calls `move` again and again until the task is cancelled, and rests for a moment when it has moved nothing.
package func keep(_ move: @escaping @Sendable () -> Bool) -> Task<Void, Never> {
    Task.detached {
        while !Task.isCancelled {
            if move() { await Task.yield() } else { try? await Task.sleep(for: .microseconds(300)) }
        }
    }
}

/// Carries chunks in both directions until the task is cancelled.
package func carry(_ links: (MemoryLink, MemoryLink)) -> Task<Void, Never> {
    keep {
        let hasMoved = links.0.deliver()
        return links.1.deliver() || hasMoved
    }
}

extension ConformanceTime {
    /// The system's time, with a limit that no check reaches: the time limit of the suite ends one that hangs.
    package static let patient = ConformanceTime(timeout: .unreached) { try? await Task.sleep(for: $0) }
}

/// Holds the first thread that passes until the test opens it. Later ones pass at once.
package final class Gate: Sendable {
    private let reached = Atomic(false)
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Whether a thread has come to it.
    package var isReached: Bool { reached.load(ordering: .acquiring) }

    /// Waits, without a limit, until the gate is open.
    package func pass() { if !reached.exchange(true, ordering: .acquiringAndReleasing) { semaphore.wait() } }

    package func open() { semaphore.signal() }
}
