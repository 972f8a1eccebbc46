import Ferry
import Synchronization

/// Limits the values of one link by a ``ValueSizing``: counts the values that its queue takes, and times the refusals.
///
/// It sets no timer: the channel offers again after each `Limits.readinessProbeInterval`, and a refusal without a value in
/// between looks at the clock. A value that is taken costs two counters.
final class ValueSizer: Sendable {
    private let memory: ValueSizeMemory
    private let time: any TimeSource
    private let mostBytes: Atomic<Int>
    /// Written by the link's owner only, which offers one value at a time.
    private let taken = Atomic(0)
    private let longest = Atomic(0)
    /// `taken` at the latest refusal, and at the next look.
    private let takenAtRefusal = Atomic(-1)
    private let nextLook: Atomic<Int>
    private let state: Mutex<State>

    private struct State {
        var sizing: ValueSizing
        /// When a refusal was repeated first since `taken` was as many as this.
        var refused: (taken: Int, since: Timestamp)?
        /// `taken` from which a failure says something about the present limit.
        var judgedFrom = 0
        var hasEnded = false
    }

    init(_ memory: ValueSizeMemory, for peer: PeerIdentity, _ time: any TimeSource) {
        self.memory = memory
        self.time = time
        let sizing = memory.sizing(of: peer)
        mostBytes = Atomic(sizing.limit ?? .max)
        nextLook = Atomic(sizing.valuesToPass ?? .max)
        state = Mutex(State(sizing: sizing))
    }

    /// The most bytes of a value; `Int.max` without a limit.
    var limit: Int { mostBytes.load(ordering: .relaxed) }

    /// The queue has answered an offer.
    @inline(__always)
    func note(_ isTaken: Bool, _ byteCount: Int, to peer: @autoclosure () -> PeerIdentity) {
        let count = taken.load(ordering: .relaxed)
        guard isTaken else {
            if takenAtRefusal.load(ordering: .relaxed) == count { return noteRepeatedRefusal(count, peer) }
            return takenAtRefusal.store(count, ordering: .relaxed)
        }
        taken.store(count &+ 1, ordering: .relaxed)
        if byteCount > longest.load(ordering: .relaxed) { longest.store(byteCount, ordering: .relaxed) }
        if count >= nextLook.load(ordering: .relaxed) { change(.passed, peer()) { $0.didPass() } }
    }

    /// The connection has ended: lost, and not ended by one of the sides.
    func noteLoss(of peer: PeerIdentity) {
        guard
            state.withLock({ state in
                defer { state.hasEnded = true }
                return !state.hasEnded
            })
        else { return }
        let passed = taken.load(ordering: .relaxed)
        let longest = longest.load(ordering: .relaxed)
        change(.lost, peer) { $0.didLose(longest: longest, passed: passed) }
    }

    /// - Parameter peer: asked for at a stall only, for some adapters make a new value each time.
    private func noteRepeatedRefusal(_ count: Int, _ peer: () -> PeerIdentity) {
        let now = time.now
        let hasStalled = state.withLock { state in
            guard let refused = state.refused, refused.taken == count else {
                state.refused = (count, now)
                return false
            }
            guard now - refused.since >= memory.stallTimeout else { return false }
            state.refused = (count, now)
            return true
        }
        guard hasStalled else { return }
        let longest = longest.load(ordering: .relaxed)
        change(.stalled, peer()) { $0.didStall(longest: longest) }
    }

    private func change(
        _ cause: ValueSizeMemory.Change.Cause, _ peer: PeerIdentity, _ body: (inout ValueSizing) -> Void
    ) {
        let count = taken.load(ordering: .relaxed)
        let (before, after) = state.withLock { state in
            let before = state.sizing
            guard cause == .passed || count >= state.judgedFrom else { return (before, before) }
            body(&state.sizing)
            if let limit = state.sizing.limit, limit < before.limit ?? .max {
                state.judgedFrom = count + ValueSizing.queued
            }
            nextLook.store(state.sizing.valuesToPass.map { count + $0 } ?? .max, ordering: .relaxed)
            return (before, state.sizing)
        }
        guard before != after else { return }
        memory.remember(after, of: peer)
        guard before.limit != after.limit else { return }
        longest.store(0, ordering: .relaxed)
        mostBytes.store(after.limit ?? .max, ordering: .relaxed)
        memory.tell(.init(peer: peer, limit: after.limit, cause: cause))
    }
}
