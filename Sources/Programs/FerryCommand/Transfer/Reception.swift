import Ferry
import Synchronization

/// The peers that come to a transfer that listens: senders to `ferry receive`, receivers to `ferry send --listen`. Who greets takes a place,
/// and silent connections hold up no sender.
struct Reception: Sendable {
    /// The outcome of one sender.
    enum Outcome: Sendable {
        /// It has sent everything.
        case complete
        /// It has left before, and may come again.
        case lost(FerryError)
    }

    /// Whether it goes on when a sender has sent everything.
    let keeps: Bool
    /// Without `keeps`: how long to wait for a sender, at the beginning and after each loss.
    let patience: Duration
    /// The peer that comes, for people: a sender or a receiver.
    var who = "sender"
    /// Whether one that was lost can go on over another connection.
    let canGoOn: @Sendable () -> Bool
    /// Receives what happens to senders, for people.
    let remark: @Sendable (String) -> Void
    var time: any TimeSource = SystemTime()

    /// The most senders at once with `keeps`.
    static let places = 64

    private enum Phase {
        /// No sender is there. The timer closes the listener.
        case waiting(ScheduledTimer)
        /// A sender is there, or the first may take as long as it likes.
        case serving
        case over(Result<Void, any Error>)
    }

    private struct State {
        var phase = Phase.serving
        var failure: (any Error)?
        var remarks = RemarkBudget()
    }

    /// Serves senders until one has sent everything, or with `keeps` until the task is cancelled or listening ends.
    ///
    /// - Parameter serve: receives from one. It calls `greeted`, which throws `noPlace` with what the sender is to be told, at the first
    ///   message of a sender.
    /// - Throws: `timedOut` when no sender has come; what `serve` throws of a sender that has brought something.
    func run(
        _ listener: LinkListener,
        _ serve: @escaping @Sendable (Acceptor.Comer, _ greeted: @escaping @Sendable () -> Void) async throws -> Outcome
    ) async throws {
        let acceptor = Acceptor(AcceptingPlan.Configuration(places: keeps ? Self.places : 1), time: time)
        let state = Mutex(State())
        state.withLock { wait(listener, &$0) }
        await acceptor.serve(listener.links) { comer in
            do {
                let outcome = try await serve(comer) { self.greeted(state) }
                self.ended(comer, outcome, listener, acceptor, state)
            } catch {
                self.failed(comer, error, listener, acceptor, state)
            }
        }
        let (phase, failure) = state.withLock { ($0.phase, $0.failure) }
        if case .waiting(let timer) = phase { timer.cancel() }
        if case .over(let result) = phase { return try result.get() }
        try Task.checkCancellation()
        if let failure { throw failure }
        if let reason = listener.interruption { throw reason }
        guard !keeps else { return }
        throw FerryError(.timedOut, "No sender has connected within \(TransferReport.time(patience / .seconds(1))).")
    }

    private func wait(_ listener: LinkListener, _ state: inout State) {
        guard !keeps else { return }
        state.phase = .waiting(time.schedule(at: time.now + patience) { listener.close() })
    }

    private func greeted(_ state: borrowing Mutex<State>) {
        state.withLock { state in
            guard case .waiting(let timer) = state.phase else { return }
            timer.cancel()
            state.phase = .serving
        }
    }

    private func end(
        _ result: Result<Void, any Error>, _ listener: LinkListener, _ acceptor: Acceptor,
        _ state: borrowing Mutex<State>
    ) {
        state.withLock { if case .over = $0.phase {} else { $0.phase = .over(result) } }
        listener.close()
        acceptor.closeAll()
    }

    private func ended(
        _ comer: Acceptor.Comer, _ outcome: Outcome, _ listener: LinkListener, _ acceptor: Acceptor,
        _ state: borrowing Mutex<State>
    ) {
        switch outcome {
        case .complete:
            if !keeps { end(.success(()), listener, acceptor, state) }
        case .lost(let error):
            guard comer.isProven else { return failed(comer, error, listener, acceptor, state) }
            if keeps { return remark("A \(who)'s transfer ended: \(error.message)") }
            guard canGoOn() else { return end(.failure(error), listener, acceptor, state) }
            state.withLock { state in
                state.failure = error
                if case .serving = state.phase { wait(listener, &state) }
            }
            remark("\(error.message) Waiting for the \(who) to come again.")
        }
    }

    private func failed(
        _ comer: Acceptor.Comer, _ error: any Error, _ listener: LinkListener, _ acceptor: Acceptor,
        _ state: borrowing Mutex<State>
    ) {
        if error is CancellationError || Task.isCancelled { return }
        if comer.isProven {
            if keeps { return remark("A \(who)'s transfer ended: \(explanation(of: error))") }
            return end(.failure(error), listener, acceptor, state)
        }
        // After a stranger that has brought nothing, the next sender is waited for.
        let isTold = state.withLock { state in
            if case .serving = state.phase, acceptor.counts.placed <= 1 { wait(listener, &state) }
            if !keeps, (error as? FerryError)?.code != .noPlace { state.failure = error }
            return state.remarks.take(at: time.now)
        }
        if isTold { remark("A connection was closed: \(explanation(of: error))") }
    }
}

/// How many lines strangers may cost: ten at once, and one more each 10 s. Ten thousand of them are no reason for ten thousand lines.
struct RemarkBudget: Sendable {
    static let most = 10
    static let pause = Duration.seconds(10)

    private var left = most
    private var refilled: Timestamp?

    /// Returns whether there is a line left, and takes it.
    mutating func take(at now: Timestamp) -> Bool {
        let since = refilled ?? now
        let more = min(Self.most - left, Int((now - since) / Self.pause))
        left += more
        refilled = left == Self.most ? now : since + Self.pause * more
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
