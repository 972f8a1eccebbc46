import Synchronization

/// What happened, in order, as text: easy to compare and to print. A line wakes the tests that wait for it.
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

    /// Waits until `times` lines with this beginning have come.
    /// - Throws: ``NotYet`` when the test is cancelled, by its suite's time limit for instance: there is no other limit.
    package func wait(for prefix: String, _ times: Int = 1) async throws {
        try await wait(for: "\(times) x \(prefix)") { $0.count { $0.hasPrefix(prefix) } >= times }
    }

    /// Waits until the lines meet `isMet`.
    /// - Throws: ``NotYet`` when the test is cancelled, by its suite's time limit for instance: there is no other limit.
    package func wait(for what: String, until isMet: @escaping @Sendable ([String]) -> Bool) async throws {
        let waiter = Waiter(isMet)
        let end = patience.map { patience in
            Task {
                try await Task.sleep(for: patience)
                waiter.resume(false)
            }
        }
        defer { end?.cancel() }
        let hasCome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.continuation.withLock { $0 = continuation }
                let isMetNow = state.withLock { state in
                    if isMet(state.lines) { return true }
                    state.waiters.append(waiter)
                    return false
                }
                // A cancellation before the continuation was there has found none to resume.
                if isMetNow || Task.isCancelled { waiter.resume(isMetNow) }
            }
        } onCancel: {
            waiter.resume(false)
        }
        if hasCome { return }
        state.withLock { state in state.waiters.removeAll { $0 === waiter } }
        throw NotYet("\(what) is missing among \(all.suffix(20))")
    }
}
