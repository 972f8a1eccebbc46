import Dispatch

/// Carries a value that is not sendable to where it is used, one place at a time. Apple's classes are not sendable, so
/// these are not, although each of them may be used from any thread.
struct Unchecked<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// Runs a manager's callbacks one at a time, in order, on the queue that the program has given: the main queue for nil.
///
/// They run on a serial queue whose target that queue is, so they keep their order on a concurrent queue too.
final class Callbacks: Sendable {
    private let queue: DispatchQueue

    /// Nothing runs before ``start()``, which must be called.
    init(_ target: DispatchQueue?) {
        queue = DispatchQueue(
            label: "CoreBluetooth callbacks", attributes: .initiallyInactive, target: target ?? DispatchQueue.main)
    }

    func start() { queue.activate() }

    func run(_ body: @escaping () -> Void) {
        let body = Unchecked(body)
        queue.async { body.value() }
    }

    func run(after seconds: Double, _ body: @escaping () -> Void) {
        let body = Unchecked(body)
        queue.asyncAfter(deadline: .now() + seconds) { body.value() }
    }
}

/// Carries out asynchronous work one piece at a time, in the order in which it was asked for.
final class SerialTasks: Sendable {
    private struct State {
        var waiting: [() async -> Void] = []
        var isRunning = false
    }
    private let state = Guarded(State())

    func add(_ work: @escaping () async -> Void) {
        let isFirst = state { state in
            state.waiting.append(work)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { Task { await run() } }
    }

    private func run() async {
        while true {
            let batch = state { state in
                defer { state.waiting = [] }
                state.isRunning = !state.waiting.isEmpty
                return state.waiting
            }
            guard !batch.isEmpty else { return }
            for work in batch { await work() }
        }
    }
}
