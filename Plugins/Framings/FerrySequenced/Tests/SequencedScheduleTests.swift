import Ferry
import FerrySequenced
import FerryTesting
import Foundation
import TestSupport
import Testing

/// One run of random faults, from a seed.
struct SequencedSchedule {
    var random: SplitMix64
    var pair: SequencedPair
    var loss: Int
    var configurations: [SequencedFraming.Configuration] = []
    var replacements: UInt32 = 0
    var script: [String] = []
    var isRecording = false

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        for _ in 0...1 {
            var configuration = SequencedFraming.Configuration()
            configuration.window = random.chance(50) ? 1 + random.below(8) : 1 + random.below(48)
            configuration.creditWindow = 1024 << random.below(6)
            configuration.maximumOpenMessages = 1 + random.below(4)
            configuration.maximumTimeouts = 1000
            configurations.append(configuration)
        }
        pair = SequencedPair(configurations)
        loss = random.chance(30) ? 0 : random.below(31)
        pair.chunkSize = [20 + random.below(80), 20 + random.below(80)]
    }

    mutating func run(steps: Int) {
        pair.open()
        for _ in 0..<steps where pair.ended == nil && pair.violation == nil { step() }
        if pair.isOpen, random.chance(30) { pair.close() }
        pair.settle()
    }

    var isBroken: Bool { pair.violation != nil || pair.ended != nil }

    private mutating func step() {
        let side = random.below(2)
        switch random.below(100) {
        case 0..<12:
            // Shorter ones could not be told apart.
            let count = 3 + (random.chance(60) ? random.below(40) : random.below(400))
            let options = SendOptions(
                priority: SendOptions.Priority(rawValue: UInt8(random.below(4))), weight: UInt8(1 + random.below(3)))
            if isRecording { script.append("send from \(side) \(count) bytes at \(options.priority.rawValue)") }
            pair.send(from: side, count: count, options: options)
        case 12..<14 where !pair.fates[side].isEmpty:
            let number = random.below(pair.fates[side].count)
            if isRecording { script.append("cancel \(number) of \(side)") }
            pair.cancel(from: side, number)
        case 14..<30:
            pair.space[side] = random.chance(50) ? nil : random.below(4)
            if isRecording {
                script.append("pump \(side) with space \(pair.space[side].map(String.init) ?? "for all")")
            }
            pair.pump(side)
        case 30..<34:
            if isRecording { script.append("consume \(side)") }
            pair.consume(side)
        case 34..<40:
            let jump = random.chance(90) ? random.below(60) : random.below(100_000)
            if isRecording { script.append("wait \(jump) ms") }
            pair.now = pair.now + .milliseconds(jump)
            pair.wake(0)
            pair.wake(1)
        case 40 where random.chance(50):
            pair.chunkSize[side] = 20 + random.below(80)
            if isRecording { script.append("chunks of \(side) have \(pair.chunkSize[side]) bytes") }
        case 41 where random.chance(40):
            if isRecording { script.append(pair.isOpen ? "close" : "open") }
            if pair.isOpen { pair.close() } else { pair.open() }
        case 42 where !pair.isOpen && random.chance(10):
            if isRecording { script.append("replace \(side)") }
            replacements += 1
            pair.replace(side, configurations[side], id: 1_000_000 + 1000 * replacements)
        case 43 where !pair.isOpen:
            if isRecording { script.append("open") }
            pair.open()
        default:
            transfer(from: side)
        }
    }

    private mutating func transfer(from side: Int) {
        guard !pair.wires[side].isEmpty else {
            if isRecording { script.append("pump \(side)") }
            return pair.pump(side)
        }
        let index = random.chance(10) ? random.below(min(8, pair.wires[side].count)) : 0
        if random.chance(loss) {
            if isRecording { script.append("lose \(index) of \(side)") }
            pair.wires[side].remove(at: index)
        } else {
            let isDoubled = random.chance(loss / 2)
            let cut = random.chance(loss / 4) ? random.below(pair.wires[side][index].count + 1) : nil
            if isRecording {
                script.append(
                    "deliver \(index) of \(side)\(isDoubled ? " twice" : "")\(cut.map { " cut to \($0)" } ?? "")")
            }
            pair.deliver(from: side, at: index, keeping: isDoubled, cutTo: cut)
        }
    }
}

@Suite(.tags(.core, .framing, .sequenced, .slow)) struct SequencedScheduleTests {
    /// Runs schedules; a failing one prints its seed and its shortest beginning that fails.
    static func run(_ seeds: Range<UInt64>) -> (failure: String?, totals: SequencedStatistics) {
        var totals = SequencedStatistics()
        for seed in seeds {
            var schedule = SequencedSchedule(seed: seed)
            schedule.run(steps: 60)
            for session in schedule.pair.sessions { totals += session.statistics }
            guard schedule.isBroken else { continue }
            for steps in 0...60 {
                var replay = SequencedSchedule(seed: seed)
                replay.isRecording = true
                replay.run(steps: steps)
                guard replay.isBroken else { continue }
                let what = replay.pair.violation ?? replay.pair.ended.map { "\($0)" } ?? ""
                return ("seed \(seed), \(steps) steps: \(what)\n\(replay.script.joined(separator: "\n"))", totals)
            }
        }
        return (nil, totals)
    }

    @Test func everyMessageArrivesOnceOrIsTold() async {
        let count = UInt64(ProcessInfo.processInfo.environment["FERRY_SCHEDULES"].flatMap(UInt64.init) ?? 2_000)
        let (failure, totals) = await withTaskGroup(of: (String?, SequencedStatistics).self) { group in
            for part in 0..<UInt64(2) {
                group.addTask { Self.run(part * count / 2..<(part + 1) * count / 2) }
            }
            var failure: String?
            var totals = SequencedStatistics()
            for await (broken, part) in group {
                failure = failure ?? broken
                totals += part
            }
            return (failure, totals)
        }
        #expect(failure == nil, "\(failure ?? "")")
        print("\(count) schedules: \(totals)")
        // The schedules have to reach what they are for.
        #expect(totals.repeatedChunks > Int(count) / 2)
        #expect(totals.doubledChunks > Int(count) / 10)
        #expect(totals.earlyChunks > Int(count) / 10)
        #expect(totals.damagedChunks > Int(count) / 20)
        #expect(totals.resumptions > Int(count) / 20)
    }
}

extension SequencedStatistics {
    fileprivate static func += (total: inout SequencedStatistics, part: SequencedStatistics) {
        total.dataChunks += part.dataChunks
        total.repeatedChunks += part.repeatedChunks
        total.acknowledgementChunks += part.acknowledgementChunks
        total.doubledChunks += part.doubledChunks
        total.earlyChunks += part.earlyChunks
        total.damagedChunks += part.damagedChunks
        total.timeouts += part.timeouts
        total.resumptions += part.resumptions
    }
}
