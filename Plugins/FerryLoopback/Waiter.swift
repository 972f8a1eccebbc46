import FerryBluetooth
import Synchronization

/// Resumes a waiting task once, with whatever comes first: the outcome, or the task's cancellation.
final class Waiter<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, BluetoothError>

    private enum State {
        case idle
        case waiting(@Sendable (Outcome) -> Void)
        case early(Outcome)
        case done
    }

    private let state = Mutex<State>(.idle)

    /// Names the one to resume.
    func set(_ resume: @escaping @Sendable (Outcome) -> Void) {
        let outcome: Outcome? = state.withLock { state in
            guard case .early(let outcome) = state else {
                state = .waiting(resume)
                return nil
            }
            state = .done
            return outcome
        }
        if let outcome { resume(outcome) }
    }

    /// Resumes it, now or as soon as it is named. False when something else came first.
    @discardableResult
    func resume(_ outcome: Outcome) -> Bool {
        let (resume, isFirst): ((@Sendable (Outcome) -> Void)?, Bool) = state.withLock { state in
            switch state {
            case .idle:
                state = .early(outcome)
                return (nil, true)
            case .waiting(let resume):
                state = .done
                return (resume, true)
            case .early, .done: return (nil, false)
            }
        }
        resume?(outcome)
        return isFirst
    }
}
