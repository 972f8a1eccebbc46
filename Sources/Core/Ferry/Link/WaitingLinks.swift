import DequeModule
import Synchronization

/// A listener's links that are not yet accepted. The listener owns them until a task takes them.
final class WaitingLinks: Sendable {
    private struct Waiting {
        let number: Int
        let link: any Link
        let source: LinkSource
        let timer: ScheduledTimer
    }

    private struct State {
        var isClosed = false
        var links: Deque<Waiting> = []
        /// Tasks that wait for a link.
        var takers: [CheckedContinuation<(any Link)?, Never>] = []
        var nextNumber = 0
        var interruption: FerryError?
        var onInterruption: (@Sendable (FerryError?) -> Void)?

        /// Removes the link that gives way to a new one; nil where no source has two.
        mutating func takeSuperfluous(besides number: Int, of source: LinkSource) -> Waiting? {
            let all = CollectionOfOne((number, source)) + links.map { ($0.number, $0.source) }
            guard let oldest = LinkSource.oldestOfLargest(all), oldest.count > 1 else { return nil }
            return take(oldest.number)
        }

        mutating func take(_ number: Int) -> Waiting? {
            links.firstIndex { $0.number == number }.map { links.remove(at: $0) }
        }
    }

    private let state = Mutex(State())
    private let maximum: Int
    private let timeout: Duration
    private let time: any TimeSource
    private let onClose: @Sendable () -> Void

    init(_ maximum: Int, _ timeout: Duration, _ time: any TimeSource, _ onClose: @escaping @Sendable () -> Void) {
        self.maximum = max(1, maximum)
        self.timeout = timeout
        self.time = time
        self.onClose = onClose
    }

    var interruption: FerryError? { state.withLock { $0.interruption } }

    func onInterruption(_ body: @escaping @Sendable (FerryError?) -> Void) {
        let present = state.withLock { state in
            if !state.isClosed { state.onInterruption = body }
            return state.interruption
        }
        if let present { body(present) }
    }

    /// Sets the reason why no peer can connect, unless listening has ended.
    func interrupt(_ reason: FerryError?) {
        let told = state.withLock { state -> (@Sendable (FerryError?) -> Void)? in
            guard !state.isClosed, reason != nil || state.interruption != nil else { return nil }
            state.interruption = reason
            return state.onInterruption
        }
        told?(reason)
    }

    func offer(_ link: any Link) -> Bool {
        // Without the lock: the transport computes it.
        let source = link.source
        let (isTaken, taker, instead) = state.withLock {
            state -> (Bool, CheckedContinuation<(any Link)?, Never>?, Waiting?) in
            guard !state.isClosed else { return (false, nil, nil) }
            guard state.takers.isEmpty else { return (true, state.takers.removeFirst(), nil) }
            let number = state.nextNumber
            state.nextNumber += 1
            var instead: Waiting?
            if state.links.count >= maximum {
                instead = state.takeSuperfluous(besides: number, of: source)
                guard instead != nil else { return (false, nil, nil) }
            }
            let timer = time.schedule(at: time.now + timeout) { [weak self] in self?.expire(number) }
            state.links.append(Waiting(number: number, link: link, source: source, timer: timer))
            return (true, nil, instead)
        }
        taker?.resume(returning: link)
        instead?.timer.cancel()
        instead?.link.close()
        return isTaken
    }

    private func expire(_ number: Int) {
        state.withLock { $0.take(number) }?.link.close()
    }

    /// The next link; nil when listening has ended, which a task that is cancelled brings about.
    func next() async -> (any Link)? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isOver, next) = state.withLock { state -> (Bool, Waiting?) in
                    if state.isClosed || !state.links.isEmpty { return (true, state.links.popFirst()) }
                    state.takers.append(continuation)
                    return (false, nil)
                }
                next?.timer.cancel()
                if isOver { continuation.resume(returning: next?.link) }
            }
        } onCancel: {
            close()
        }
    }

    func close() {
        let (wasOpen, links, takers) = state.withLock { state in
            defer { state.isClosed = true }
            let left = (!state.isClosed, state.links, state.takers)
            state.links = []
            state.takers = []
            state.onInterruption = nil
            return left
        }
        guard wasOpen else { return }
        onClose()
        for waiting in links {
            waiting.timer.cancel()
            waiting.link.close()
        }
        for taker in takers { taker.resume(returning: nil) }
    }
}
