import Synchronization

/// What happened, in order, as text: easy to compare and to print. Whoever waits for a line is woken by it.
package final class Journal: Sendable {
    private let state = Mutex(State())

    private struct State {
        var lines: [String] = []
        var waiters: [Waiter] = []
    }

    private final class Waiter: Sendable {
        let isMet: @Sendable ([String]) -> Bool
        let continuation = Mutex<CheckedContinuation<Bool, Never>?>(nil)

        init(_ isMet: @escaping @Sendable ([String]) -> Bool) { self.isMet = isMet }

        func resume(_ isMet: Bool) { continuation.withLock { $0.take() }?.resume(returning: isMet) }
    }

    /// A line that has not come in time, with the last of those that have.
    package struct NotInTime: Error, CustomStringConvertible {
        package let description: String
    }

    package init() {}

    package var all: [String] { state.withLock { $0.lines } }
    package func clear() { state.withLock { $0.lines = [] } }
    package func count(_ prefix: String) -> Int { all.count { $0.hasPrefix(prefix) } }

    package func add(_ line: String) {
        let met = state.withLock { state in
            state.lines.append(line)
            let met = state.waiters.filter { $0.isMet(state.lines) }
            state.waiters.removeAll { waiter in met.contains { $0 === waiter } }
            return met
        }
        for waiter in met { waiter.resume(true) }
    }

    /// Waits until lines with this beginning have come so many times.
    /// - Throws: ``NotInTime`` after 30 seconds.
    package func wait(for prefix: String, _ times: Int = 1) async throws {
        try await wait(for: "\(times) x \(prefix)") { $0.count { $0.hasPrefix(prefix) } >= times }
    }

    /// Waits until the lines are as they should be.
    /// - Throws: ``NotInTime`` after 30 seconds.
    package func wait(for what: String, until isMet: @escaping @Sendable ([String]) -> Bool) async throws {
        let waiter = Waiter(isMet)
        let deadline = Task {
            try await Task.sleep(for: .seconds(30))
            waiter.resume(false)
        }
        defer { deadline.cancel() }
        let hasCome = await withCheckedContinuation { continuation in
            waiter.continuation.withLock { $0 = continuation }
            let isMetNow = state.withLock { state in
                if isMet(state.lines) { return true }
                state.waiters.append(waiter)
                return false
            }
            if isMetNow { waiter.resume(true) }
        }
        if hasCome { return }
        state.withLock { state in state.waiters.removeAll { $0 === waiter } }
        throw NotInTime(description: "\(what) is missing among \(all.suffix(20))")
    }
}
