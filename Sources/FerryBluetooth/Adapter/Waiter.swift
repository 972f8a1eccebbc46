import Synchronization

/// One task's wait for one outcome, which comes once: what comes later, the task's cancellation too, is ignored.
///
/// For adapters, whose requests are answered by a peer at a time of its own.
package final class Waiter<Value: Sendable>: Sendable {
    private struct State {
        var outcome: Result<Value, BluetoothError>?
        var continuation: CheckedContinuation<Result<Value, BluetoothError>, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    package func resume(_ outcome: Result<Value, BluetoothError>) {
        let continuation = state.withLock { state -> CheckedContinuation<Result<Value, BluetoothError>, Never>? in
            guard state.outcome == nil else { return nil }
            state.outcome = outcome
            return state.continuation.take()
        }
        continuation?.resume(returning: outcome)
    }

    /// Waits; `onCancel` is called when the task is cancelled first.
    package func wait(onCancel: @escaping @Sendable () -> Void = {}) async throws(BluetoothError) -> Value {
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Result<Value, BluetoothError>? in
                    if state.outcome == nil { state.continuation = continuation }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            resume(.failure(BluetoothError(.cancelled, "The task was cancelled while it waited for the peer.")))
            onCancel()
        }
        return try outcome.get()
    }
}
