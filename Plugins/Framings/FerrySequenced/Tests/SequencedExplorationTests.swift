import Ferry
import Foundation
import TestSupport
import Testing

@testable import FerrySequenced

/// Every interleaving of what a link can do to a small exchange, up to a depth.
struct SequencedExplorer {
    /// What may still go wrong on a path.
    struct Budget: Hashable {
        var losses: Int
        var copies: Int
        var disconnects: Int
        var crashes: Int
    }

    struct Node {
        var pair: SequencedPair
        var budget: Budget
        /// How it came about.
        var path: [Action] = []
    }

    enum Action: Hashable {
        case deliver(Int, Int), lose(Int, Int), copy(Int, Int), timeout, reconnect, crash(Int)
    }

    let reach: Int
    let depth: Int
    let configuration: SequencedFraming.Configuration
    var visited: Set<Int> = []
    var settled = 0

    /// Explores from `start`; returns the first broken promise and how it came about.
    mutating func explore(from start: SequencedPair, _ budget: Budget) -> String? {
        var frontier = [Node(pair: start, budget: budget)]
        normalise(&frontier[0].pair)
        while let node = frontier.popLast() {
            for action in actions(node) {
                var next = node
                next.path.append(action)
                perform(action, &next)
                if let what = next.pair.violation ?? next.pair.ended?.description { return "\(what): \(next.path)" }
                guard visited.insert(fingerprint(next)).inserted else { continue }
                if next.path.count < depth {
                    frontier.append(next)
                } else {
                    settled += 1
                    next.pair.settle(steps: 500)
                    if let what = next.pair.violation { return "\(what), after \(next.path) and then no fault" }
                }
            }
        }
        return nil
    }

    private func actions(_ node: Node) -> [Action] {
        var actions: [Action] = []
        for side in 0...1 {
            for index in 0..<min(reach, node.pair.wires[side].count) {
                actions.append(.deliver(side, index))
                if node.budget.losses > 0 { actions.append(.lose(side, index)) }
                if node.budget.copies > 0 { actions.append(.copy(side, index)) }
            }
        }
        if node.pair.nextDeadline != nil { actions.append(.timeout) }
        if node.budget.disconnects > 0 { actions.append(.reconnect) }
        if node.budget.crashes > 0 { actions += [.crash(0), .crash(1)] }
        return actions
    }

    private func perform(_ action: Action, _ node: inout Node) {
        switch action {
        case .deliver(let side, let index):
            node.pair.deliver(from: side, at: index)
        case .lose(let side, let index):
            node.budget.losses -= 1
            node.pair.wires[side].remove(at: index)
        case .copy(let side, let index):
            node.budget.copies -= 1
            node.pair.deliver(from: side, at: index, keeping: true)
        case .timeout:
            node.pair.now = max(node.pair.now, node.pair.nextDeadline ?? node.pair.now)
            node.pair.wake(0)
            node.pair.wake(1)
        case .reconnect:
            node.budget.disconnects -= 1
            node.pair.close()
            node.pair.open()
        case .crash(let side):
            node.budget.crashes -= 1
            node.pair.close()
            node.pair.replace(side, configuration, id: UInt32(50_000 + side))
            node.pair.open()
        }
        normalise(&node.pair)
    }

    private func normalise(_ pair: inout SequencedPair) {
        for side in 0...1 {
            pair.consume(side)
            pair.pump(side)
        }
        pair.check(isFinal: false)
    }

    /// Everything but the times: what a timer would do is explored as an action of its own.
    private func fingerprint(_ node: Node) -> Int {
        var hasher = Hasher()
        hasher.combine(node.budget)
        hasher.combine(node.pair.wires)
        for fate in node.pair.fates.joined() {
            hasher.combine(fate.deliveries)
            hasher.combine([fate.isSent, fate.isFailed, fate.isCancelled])
        }
        for session in node.pair.sessions { session.combine(into: &hasher) }
        return hasher.finalize()
    }
}

extension SequencedFraming.Session {
    fileprivate func combine(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(phase)
        hasher.combine(handshake.peer)
        hasher.combine([handshake.isDue, acknowledging.isDue])
        hasher.combine([handshake.deadline != nil, acknowledging.deadline != nil, probing.deadline != nil])
        if case .due = probing.state { hasher.combine(true) }
        hasher.combine(acknowledging.pending)
        for message in outbox.messages {
            hasher.combine([message.cut, message.acknowledged, Int(message.slot), message.payload.count])
            hasher.combine(message.stage)
            hasher.combine(message.isReported)
        }
        for level in outbox.levels {
            hasher.combine(Array(level.active))
            hasher.combine(Array(level.waiting))
            hasher.combine(level.turn)
            hasher.combine(level.hasJustAdmitted)
        }
        hasher.combine(Array(outbox.cancelling))
        hasher.combine([outbox.charged, outbox.granted, window.first, window.next, arrivals.next])
        hasher.combine([outbox.fullSize, window.lostCount, Int(outbox.current)])
        var number = window.first
        while number < window.next {
            hasher.combine(window[number].fate)
            number += 1
        }
        for held in arrivals.held where held.isPresent { hasher.combine(held.body) }
        for slot in inbox.slots where slot.count >= 0 { hasher.combine([slot.count, slot.received]) }
        hasher.combine([inbox.current, inbox.fullSize])
        hasher.combine([inbox.charged, inbox.granted])
    }
}

@Suite(.tags(.core, .framing, .sequenced, .slow)) struct SequencedExplorationTests {
    struct Case: Sendable {
        var window: Int
        var sizes: [Int]
        var replies: [Int]
        var reach: Int
        var depth: Int
        var budget: [Int]
    }

    static let cases = [
        Case(window: 2, sizes: [5, 25, 45], replies: [], reach: 2, depth: 8, budget: [2, 1, 1, 0]),
        Case(window: 3, sizes: [45, 5], replies: [25], reach: 2, depth: 6, budget: [1, 1, 1, 0]),
        Case(window: 4, sizes: [45, 45], replies: [5], reach: 3, depth: 5, budget: [1, 1, 0, 0]),
        Case(window: 2, sizes: [25, 5], replies: [5], reach: 2, depth: 7, budget: [1, 0, 1, 1]),
    ]

    @Test(arguments: cases) func everyInterleavingKeepsThePromise(_ example: Case) {
        var configuration = SequencedFraming.Configuration()
        configuration.window = example.window
        configuration.maximumOpenMessages = 2
        configuration.maximumTimeouts = 100
        var pair = SequencedPair([configuration, configuration])
        for count in example.sizes { pair.send(from: 0, count: count) }
        for count in example.replies { pair.send(from: 1, count: count) }
        pair.open()
        // `scripts/sanitize sequenced` goes deeper.
        let deeper =
            ProcessInfo.processInfo.environment["FERRY_DEEPER"].flatMap(Int.init) ?? Effort.of(-1, full: 0)
        let depth = example.depth + deeper
        var explorer = SequencedExplorer(reach: example.reach, depth: depth, configuration: configuration)
        let broken = explorer.explore(
            from: pair,
            .init(
                losses: example.budget[0], copies: example.budget[1], disconnects: example.budget[2],
                crashes: example.budget[3]))
        #expect(broken == nil)
        print(
            "window \(example.window), messages \(example.sizes) and \(example.replies), depth \(depth): "
                + "\(explorer.visited.count) states, \(explorer.settled) runs to the end")
    }
}
