#if Records
    import Foundation
    import Testing
    import TestSupport

    import Ferry
    import FerryTesting
    @testable import FerryRecords

    /// Everything that can happen between two stores, in every order, up to a depth; from there to the end without faults.
    struct RecordsExplorer {
        enum Action: Hashable {
            case send(Int), deliver(Int), carryOut(Int), finish(Int), append(Int), breakLink, crash(Int)
        }

        struct Node {
            var pair: ModelPair
            var faults: Int
            var appends: [Int]
            var path: [Action] = []
        }

        let depth: Int
        var visited: Set<Int> = []
        var settled = 0

        /// The first broken promise and how it came about.
        mutating func explore(_ start: Node) -> String? {
            var level = [start]
            // Level by level: each state is met first on a shortest way, so that none within the depth is left out.
            for step in 1...depth {
                var next: [Node] = []
                for node in level {
                    for action in actions(node) {
                        if let what = follow(action, node, isLast: step == depth, &next) { return what }
                    }
                }
                level = next
            }
            return nil
        }

        private mutating func follow(_ action: Action, _ node: Node, isLast: Bool, _ level: inout [Node]) -> String? {
            var next = node
            next.path.append(action)
            do {
                guard try perform(action, &next) else { return nil }
            } catch { return "\(error): \(next.path)" }
            if let what = next.pair.violation(isFinal: false) { return "\(what): \(next.path)" }
            var hasher = Hasher()
            hasher.combine(next.pair)
            hasher.combine(next.faults)
            hasher.combine(next.appends)
            guard visited.insert(hasher.finalize()).inserted else { return nil }
            guard isLast else {
                level.append(next)
                return nil
            }
            settled += 1
            do { try next.pair.settle() } catch { return "\(error): \(next.path)" }
            return next.pair.violation(isFinal: true).map { "\($0): \(next.path), and no fault" }
        }

        private func actions(_ node: Node) -> [Action] {
            var actions: [Action] = []
            for side in 0...1 {
                actions += [.send(side), .deliver(side), .carryOut(side), .finish(side)]
                if node.appends[side] > 0 { actions.append(.append(side)) }
            }
            if node.faults > 0 { actions += [.breakLink, .crash(0), .crash(1)] }
            return actions
        }

        /// Whether it was possible.
        private func perform(_ action: Action, _ node: inout Node) throws -> Bool {
            switch action {
            case .send(let side): return node.pair.wires[side].count < 2 && node.pair.send(side)
            case .deliver(let side): return try node.pair.deliver(from: side)
            case .carryOut(let side): return node.pair.carryOut(side)
            case .finish(let side): return node.pair.finish(side)
            case .append(let side):
                node.appends[side] -= 1
                node.pair.append(side, UInt8(100 + node.appends[side]), stream: Int64(node.appends[side] % 2))
            case .breakLink:
                node.faults -= 1
                node.pair.connect()
            case .crash(let side):
                node.faults -= 1
                node.pair.crash(side)
            }
            return true
        }
    }

    @Suite(.tags(.records, .slow)) struct RecordsExplorationTests {
        struct Case: Sendable {
            /// Records of the first side by stream, and of the second.
            var records: [[Int64]]
            var appends: [Int]
            var faults: Int
            var depth: Int
            /// Steps without a choice before, so that the depth is spent where records are on their way.
            var lead: Int
        }

        static let cases = [
            Case(records: [[0, 0, 0], []], appends: [0, 0], faults: 2, depth: 20, lead: 0),
            Case(records: [[0, 0, 0], [0]], appends: [1, 0], faults: 2, depth: 13, lead: 9),
            Case(records: [[0, 1, 0, 1], []], appends: [2, 0], faults: 1, depth: 15, lead: 12),
            Case(records: [[0, 0, 0, 0], [1, 1]], appends: [0, 1], faults: 1, depth: 12, lead: 16),
        ]

        @Test(arguments: cases) func everyOrderKeepsThePromise(_ example: Case) throws {
            var pair = ModelPair()
            var value: UInt8 = 0
            for (side, streams) in example.records.enumerated() {
                for stream in streams {
                    value += 1
                    pair.append(side, value, stream: stream)
                }
            }
            var isSending = true
            for _ in 0..<example.lead {
                for side in 0...1 {
                    if isSending { _ = pair.send(side) } else { _ = try pair.deliver(from: side) }
                    while pair.carryOut(side) {}
                }
                isSending.toggle()
            }
            let deeper =
                ProcessInfo.processInfo.environment["FERRY_DEEPER"].flatMap(Int.init) ?? Effort.of(-2, full: 0)
            var explorer = RecordsExplorer(depth: example.depth + deeper)
            let broken = explorer.explore(.init(pair: pair, faults: example.faults, appends: example.appends))
            #expect(broken == nil)
            print(
                "records \(example.records), \(example.faults) crashes or breaks, depth \(explorer.depth): "
                    + "\(explorer.visited.count) states, \(explorer.settled) runs to the end")
        }

        /// The same with long random runs: crashes at any step, many records.
        @Test(arguments: 0..<Effort.of(25 as UInt64, full: 100)) func randomRuns(_ seed: UInt64) throws {
            var random = SplitMix64(seed: seed)
            var pair = ModelPair(capacity: RecordsMessage.cost(of: 1) * Int.random(in: 1...5, using: &random))
            var appended: [UInt8] = [0, 0]
            for step in 0..<1500 {
                let side = Int.random(in: 0...1, using: &random)
                switch Int.random(in: 0..<100, using: &random) {
                case 0: pair.crash(side)
                case 1: pair.connect()
                case 2..<10 where appended[side] < 120:
                    appended[side] += 1
                    pair.append(side, appended[side], stream: Int64(appended[side] % 3))
                case 10..<40: _ = pair.send(side)
                case 40..<65: _ = try pair.deliver(from: side)
                case 65..<90: _ = pair.carryOut(side)
                default: _ = pair.finish(side)
                }
                #expect(pair.violation(isFinal: false) == nil, "seed \(seed), step \(step)")
            }
            try pair.settle()
            #expect(pair.violation(isFinal: true) == nil, "seed \(seed)")
        }
    }
#endif
