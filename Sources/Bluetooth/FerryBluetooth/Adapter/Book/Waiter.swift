import Synchronization

/// One task's wait for one outcome, which comes once: later ones, the task's cancellation too, are ignored.
///
/// For adapters, whose peers answer requests at any time.
public final class Waiter<Value: Sendable>: Sendable {
    private struct State {
        var outcome: Result<Value, BluetoothError>?
        var continuation: CheckedContinuation<Result<Value, BluetoothError>, Never>?
    }

    private let state = Mutex(State())

    /// Nothing has come.
    public init() {}

    /// The outcome has come.
    public func resume(_ outcome: Result<Value, BluetoothError>) { _ = complete(outcome) }

    /// The same; returns whether it is this outcome that counts.
    public func complete(_ outcome: Result<Value, BluetoothError>) -> Bool {
        let (continuation, isFirst) = state.withLock { state in
            let isFirst = state.outcome == nil
            if isFirst { state.outcome = outcome }
            return (isFirst ? state.continuation.take() : nil, isFirst)
        }
        continuation?.resume(returning: outcome)
        return isFirst
    }

    /// Whether there is an outcome.
    public var isOver: Bool { state.withLock { $0.outcome != nil } }

    /// Waits; `onCancel` is called when the task is cancelled first.
    ///
    /// - Throws: the outcome's error, or `cancelled`.
    public func wait(onCancel: @escaping @Sendable () -> Void = {}) async throws(BluetoothError) -> Value {
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
