/// Wakes the one task that waits for it: when it is rung, and at a deadline. A ring before the task waits is kept; several are one.
///
/// For a shell whose task looks at its state each time. The state has the shell's own lock, with which the bell is not rung: to ring
/// may resume the task.
package final class Bell: Sendable {
    private let rings: AsyncStream<Void>
    private let ringing: AsyncStream<Void>.Continuation

    package init() { (rings, ringing) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    package func ring() { ringing.yield() }

    /// The task waits no more, now and from now on.
    package func silence() { ringing.finish() }

    /// Until it is rung, silenced, or the task is cancelled, after which it rings no more.
    ///
    /// - Returns: whether it was rung.
    @discardableResult
    package func wait() async -> Bool {
        var rings = rings.makeAsyncIterator()
        return await rings.next(isolation: nil) != nil
    }

    /// The same, and no longer than until the deadline, which counts as a ring. None is nil or `distantFuture`.
    @discardableResult
    package func wait(until deadline: Timestamp?, by time: any TimeSource) async -> Bool {
        guard let deadline, deadline != .distantFuture else { return await wait() }
        let timer = time.schedule(at: deadline) { [ringing] in ringing.yield() }
        defer { timer.cancel() }
        return await wait()
    }
}
