import Synchronization

/// One task's wait for one outcome, which comes once: later ones, the task's cancellation too, are ignored.
///
/// For adapters, whose peers answer requests at any time.
public final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Result<Value, BluetoothError>, Never>)
        case over(Result<Value, BluetoothError>)
    }

    private let state = Mutex(State.open)

    /// Nothing has come.
    public init() {}

    /// The outcome has come.
    public func resume(_ outcome: Result<Value, BluetoothError>) { _ = complete(outcome) }

    /// The same; returns whether it is this outcome that counts.
    public func complete(_ outcome: Result<Value, BluetoothError>) -> Bool {
        let before = state.withLock { state in
            let before = state
            if case .over = before { return before }
            state = .over(outcome)
            return before
        }
        switch before {
        case .open: return true
        case .waiting(let continuation):
            continuation.resume(returning: outcome)
            return true
        case .over: return false
        }
    }

    /// Whether there is an outcome.
    public var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

    /// Waits; `onCancel` is called when the task is cancelled first.
    ///
    /// - Throws: the outcome's error, or `cancelled`.
    public func wait(onCancel: @escaping @Sendable () -> Void = {}) async throws(BluetoothError) -> Value {
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Result<Value, BluetoothError>? in
                    if case .over(let outcome) = state { return outcome }
                    state = .waiting(continuation)
                    return nil
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
