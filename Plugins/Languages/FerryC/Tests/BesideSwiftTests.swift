import CFerry
import Ferry
import FerryC
import FerryTesting
import Foundation
import TestSupport
import Testing

/// Two peers, each of them twice: behind ferry.h and in Swift. Every call is made on both and every answer compared.
private struct Schedule {
    var random: SplitMix64
    let c: [CSide]
    var swift: [any Side]
    var wires: [[[UInt8]]] = [[], []]
    var now: Int64 = 1_000
    var isDamaging: Bool
    var difference: String?
    var received = 0

    init(_ choice: Choice, seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        c = [CSide(choice, identifier: 7), CSide(choice, identifier: 8)]
        swift = [try swiftSide(choice, identifier: 7), try swiftSide(choice, identifier: 8)]
        isDamaging = random.chance(30)
        for side in 0...1 where random.chance(95) { compare("open", c[side].open(now), swift[side].open(now)) }
    }

    mutating func compare(_ what: String, _ a: String, _ b: String) {
        guard a != b, difference == nil else { return }
        difference = "\(what): \(a) in C, \(b) in Swift"
    }

    mutating func step() {
        let side = random.below(2)
        switch random.below(40) {
        case 0..<6:
            let count = random.chance(5) ? 800 + random.below(200) : random.below(random.chance(30) ? 400 : 30)
            let payload = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            compare("enqueue", c[side].enqueue(payload, now), swift[side].enqueue(payload, now))
        case 6:
            let number = UInt64(random.below(8))
            compare("cancel", c[side].cancel(number, now), swift[side].cancel(number, now))
        case 7 where random.chance(20): compare("close", c[side].close(now), swift[side].close(now))
        case 8: compare("open", c[side].open(now), swift[side].open(now))
        case 9..<12:
            now += Int64(random.below(random.chance(10) ? 6_000 : 200)) * 1_000_000
            compare("wake", c[side].wake(now), swift[side].wake(now))
        case 12..<16:
            let (inC, inSwift) = (c[side].events(now), swift[side].events(now))
            received += inC.count { $0.hasPrefix("received") }
            compare("events", "\(inC)", "\(inSwift)")
        case 16..<28:
            let size = random.chance(3) ? random.below(20) : 20 + random.below(60)
            let (inC, inSwift) = (c[side].chunk(atMost: size, now), swift[side].chunk(atMost: size, now))
            compare("chunk", inC.answer, inSwift.answer)
            compare("bytes of a chunk", "\(inC.bytes ?? [])", "\(inSwift.bytes ?? [])")
            if let chunk = inC.bytes { wires[1 - side].append(chunk) }
        default: deliver(to: side)
        }
        compare("deadline", c[side].deadline, swift[side].deadline)
    }

    private mutating func deliver(to side: Int) {
        guard !wires[side].isEmpty else { return }
        var chunk = wires[side].removeFirst()
        if isDamaging, random.chance(10) {
            switch random.below(4) {
            case 0: return
            case 1: chunk.removeLast(random.below(chunk.count + 1))
            case 2 where !chunk.isEmpty: chunk[random.below(chunk.count)] = UInt8(truncatingIfNeeded: random.next())
            default: wires[side].append(chunk)
            }
        }
        compare("receive", c[side].receive(chunk, now), swift[side].receive(chunk, now))
    }
}

@Suite(.tags(.framing)) struct BesideSwiftTests {
    /// 400 schedules of 120 calls for each framing, or FERRY_SCHEDULES in all.
    @Test(arguments: Choice.allCases) func answersAreSwifts(_ choice: Choice) throws {
        let all = ProcessInfo.processInfo.environment["FERRY_SCHEDULES"].flatMap(UInt64.init) ?? 1600
        var received = 0
        for seed in 0..<all / 4 {
            var schedule = try Schedule(choice, seed: seed)
            for step in 0..<120 {
                schedule.step()
                if let difference = schedule.difference {
                    Issue.record("\(choice), seed \(seed), step \(step): \(difference)")
                    return
                }
            }
            received += schedule.received
        }
        #expect(received > all / 4, "The schedules deliver too little to say anything.")
    }
}
