import Synchronization

/// A message that ``MessageChannel/enqueue(_:options:timeout:progress:)`` has taken.
///
/// It need not be kept, and does not keep the channel open.
public final class QueuedMessage: Sendable {
    private enum State {
        case underWay(waiting: [CheckedContinuation<Result<Void, FerryError>, Never>])
        case done(Result<Void, FerryError>)
    }

    let id: MessageID
    private let core: ChannelCore
    private let state = Mutex(State.underWay(waiting: []))

    init(core: ChannelCore) {
        self.core = core
        id = core.makeID()
    }

    /// Waits until the message is sent, as ``MessageChannel/send(_:options:timeout:progress:)`` does. Any number of tasks may
    /// wait, also when it is out; cancelling one of them cancels the message.
    ///
    /// - Throws: ``FerryError`` with `messageTooLarge`, `queueFull`, `notText`, `cancelled`, `timedOut`, or the reason why the
    ///   channel is closed; always with a ``FerryError/fate``.
    public func sent() async throws(FerryError) {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state -> Result<Void, FerryError>? in
                    switch state {
                    case .done(let result): return result
                    case .underWay(let waiting):
                        state = .underWay(waiting: waiting + [continuation])
                        return nil
                    }
                }
                if let result { continuation.resume(returning: result) }
                // The handler may have run before.
                if Task.isCancelled { cancel() }
            }
        } onCancel: {
            cancel()
        }
        try result.get()
    }

    /// Takes the message back as long as none of its bytes has left. After that it is finished, and ``sent()`` throws
    /// all the same; ``FerryError/fate`` says which. Does nothing when the message is out.
    public func cancel() { core.cancel(id) }

    func complete(_ result: Result<Void, FerryError>) {
        let waiting = state.withLock { state -> [CheckedContinuation<Result<Void, FerryError>, Never>] in
            guard case .underWay(let waiting) = state else { return [] }
            state = .done(result)
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: result) }
    }
}
