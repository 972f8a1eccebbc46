import Ferry
import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import FerryFleet

/// Everything that can happen to a fleet, in every order, level by level, until so many states have been seen; each state of
/// the last level goes on to the end without faults.
struct LeaseExplorer {
    enum Action: Hashable {
        case tick, apply(Int), deliver(Int), tell(Int), stopRadio(Int, String)
        case lose(Int), crash(Int), hang(Int), resume(Int)
    }

    struct Node {
        var fleet: ModelFleet
        var faults: Int
        var path: [Action] = []
    }

    let maximumStates: Int
    /// How many states of the last level are followed to the end.
    var maximumSettled = 200
    /// Whether it ends as soon as that many states have been seen, and with the level otherwise.
    var endsWithinALevel = false
    var visited: Set<Int> = []
    var depth = 0
    var settled = 0

    /// The first broken promise and how it came about.
    mutating func explore(_ start: Node) -> String? {
        var level = [start]
        while visited.count < maximumStates, !level.isEmpty {
            var next: [Node] = []
            for node in endsWithinALevel ? spread(level) : level {
                if endsWithinALevel, visited.count >= maximumStates { break }
                for action in actions(node) {
                    var following = node
                    following.path.append(action)
                    do { try perform(action, &following) } catch { return "\(error): \(following.path)" }
                    if let what = following.fleet.broken { return "\(what): \(following.path)" }
                    var hasher = Hasher()
                    hasher.combine(following.fleet.signature())
                    hasher.combine(following.faults)
                    if visited.insert(hasher.finalize()).inserted { next.append(following) }
                }
            }
            level = next
            depth += 1
        }
        let stride = max(1, level.count / maximumSettled)
        for index in Swift.stride(from: 0, to: level.count, by: stride) {
            settled += 1
            if let what = level[index].fleet.settle() { return "\(what): \(level[index].path)" }
        }
        return nil
    }

    /// The same nodes, in an order of which each beginning has some of everywhere.
    private func spread(_ level: [Node]) -> [Node] {
        (0..<16).flatMap { offset in Swift.stride(from: offset, to: level.count, by: 16).map { level[$0] } }
    }

    func actions(_ node: Node) -> [Action] {
        let fleet = node.fleet
        var actions: [Action] = [.tick]
        for (index, flight) in fleet.flights.enumerated() {
            if flight.answer == nil {
                actions.append(.apply(index))
            } else if let gateway = flight.gateway, !fleet.isHung[gateway] {
                actions.append(.deliver(index))
            }
            if node.faults > 0 { actions.append(.lose(index)) }
        }
        for (index, message) in fleet.messages.enumerated() where !fleet.isHung[message.to] {
            actions.append(.tell(index))
        }
        for gateway in fleet.books.indices {
            if fleet.isHung[gateway] {
                actions.append(.resume(gateway))
                continue
            }
            for peer in fleet.names where fleet.radios[gateway][peer]?.mustStopBy != nil {
                actions.append(.stopRadio(gateway, peer))
            }
            if node.faults > 0 { actions += [.crash(gateway), .hang(gateway)] }
        }
        return actions
    }

    func perform(_ action: Action, _ node: inout Node) throws {
        switch action {
        case .tick: node.fleet.tick()
        case .apply(let index): node.fleet.apply(index)
        case .deliver(let index): node.fleet.deliver(index)
        case .tell(let index): node.fleet.deliverMessage(index)
        case .stopRadio(let gateway, let peer): node.fleet.stopRadio(gateway, peer)
        case .resume(let gateway): node.fleet.resume(gateway)
        case .lose(let index):
            node.faults -= 1
            node.fleet.flights.remove(at: index)
        case .crash(let gateway):
            node.faults -= 1
            try node.fleet.crash(gateway)
        case .hang(let gateway):
            node.faults -= 1
            node.fleet.isHung[gateway] = true
        }
    }
}

@Suite(.tags(.fleet, .slow)) struct LeaseExplorationTests {
    struct Case: Sendable {
        var name: String
        /// What each gateway's clock does with a step of 20, and the servers'.
        var rates: [Int64]
        var serverRate: Int64
        /// By gateway and peer, before and after the lead.
        var signals: [[Int]]
        var later: [[Int]]
        var faults: Int
        /// Steps of time without a fault or a choice before, so that the depth is spent where something happens.
        var lead: Int
    }

    static let even = [[-60, -60], [-60, -60], [-60, -60]]
    static let cases = [
        Case(
            name: "nobody has anything", rates: [18, 20, 22], serverRate: 22, signals: even, later: even, faults: 2,
            lead: 0),
        Case(
            name: "slow holders, fast servers", rates: [18, 18, 22], serverRate: 22, signals: even, later: even,
            faults: 2, lead: 3),
        Case(
            name: "fast holders, slow servers", rates: [22, 22, 18], serverRate: 18, signals: even, later: even,
            faults: 2, lead: 3),
        Case(
            name: "two for one peer", rates: [18, 22], serverRate: 22, signals: [[-60], [-60]], later: [[-60], [-60]],
            faults: 2, lead: 0),
        Case(
            name: "hand-over", rates: [18, 22, 20], serverRate: 22,
            signals: [[-60, -60], [-80, -127], [-80, -127]], later: [[-90, -60], [-40, -127], [-80, -127]], faults: 1,
            lead: 6),
    ]

    static var states: Int {
        ProcessInfo.processInfo.environment["FERRY_FLEET_STATES"].flatMap(Int.init) ?? Effort.of(4_000, full: 10_000)
    }

    @Test(arguments: cases) func neverTwoOwners(_ example: Case) throws {
        var fleet = try ModelFleet(
            peers: Array(["a", "b"].prefix(example.signals[0].count)), signals: example.signals, rates: example.rates,
            serverRate: example.serverRate)
        fleet.run(example.lead)
        fleet.signals = example.later
        if example.lead > 0 { #expect(fleet.names.allSatisfy { fleet.owners($0).count == 1 }) }
        var explorer = LeaseExplorer(maximumStates: Self.states)
        explorer.endsWithinALevel = Self.states < 10_000
        let broken = explorer.explore(.init(fleet: fleet, faults: example.faults))
        #expect(broken == nil)
        print(
            "fleet, \(example.name), \(example.rates.count) gateways, \(fleet.names.count) peers, "
                + "\(example.faults) faults: depth \(explorer.depth), "
                + "\(explorer.visited.count) states, \(explorer.settled) runs to the end")
    }

    /// Planted: holders that believe in the bucket's time to live as their own. The explorer must say so.
    @Test func findsALeaseWithoutMargin() throws {
        var policy = ModelFleet.policy
        policy.clockDrift = 0
        var fleet = try ModelFleet(
            policy: policy, peers: ["a"], signals: [[-50], [-60]], rates: [18, 22], serverRate: 22)
        fleet.run(2)
        #expect(fleet.owners("a").count == 1)
        var explorer = LeaseExplorer(maximumStates: max(40_000, Self.states))
        let broken = explorer.explore(.init(fleet: fleet, faults: 0))
        #expect(broken?.hasPrefix("a belongs to gateways") == true)
        print("fleet, no margin: found at depth \(explorer.depth + 1), after \(explorer.visited.count) states")
    }

    /// Long runs with many faults, at random.
    @Test(arguments: 0..<40) func randomRuns(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let rates: [Int64] = (0..<3).map { _ in Int64.random(in: 18...22, using: &random) }
        var node = LeaseExplorer.Node(
            fleet: try ModelFleet(
                signals: Self.even, rates: rates, serverRate: Int64.random(in: 18...22, using: &random)), faults: 0)
        let explorer = LeaseExplorer(maximumStates: 0)
        for step in 0..<300 {
            node.faults = Int.random(in: 0..<12, using: &random) == 0 ? 1 : 0
            if step % 50 == 49 {
                node.fleet.signals = (0..<3).map { _ in (0..<2).map { _ in Int.random(in: -90 ... -40, using: &random) }
                }
            }
            guard let action = explorer.actions(node).randomElement(using: &random) else { continue }
            try explorer.perform(action, &node)
            try #require(node.fleet.broken == nil, "seed \(seed), step \(step), \(action)")
        }
        let broken = node.fleet.settle()
        #expect(broken == nil, "seed \(seed)")
    }
}
