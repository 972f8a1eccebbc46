import Ferry
import FerrySequenced
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

/// One point's result, with every figure given.
private func result(
    goodput: Double = 100, limit: Double = 200, messages: Int = 10, p99: Double = 20,
    _ change: (inout BenchSettings) -> Void = { _ in }
) -> BenchResult {
    BenchResult(
        settings: settings(change), goodput: goodput, linkLimit: limit, messages: messages,
        messageBytes: 400 * messages,
        chunks: 3 * messages, chunkBytes: 402 * messages,
        waiting: .init(count: 5, total: 50, share: 0.25, lostReadySignals: 0), queue: .init(mean: 4, maximum: 8),
        latency: .init(median: 10, p90: 15, p99: p99, p999: 25, maximum: 30, curve: []),
        fairness: .init([goodput]))
}

/// Figures by hand: what a meter, a log and a comparison make of what they are told.
@Suite("Figures of ferry bench", .tags(.program)) struct BenchFigureTests {
    // MARK: The meter

    @Test("Depth is averaged over the time, and its maximum is the run's own") func depth() {
        let time = VirtualTime()
        let meter = LinkMeter(time: time)
        // A busy set-up, of which two chunks are still on their way.
        for _ in 0..<9 { meter.note(.accepted) }
        time.advance(by: .milliseconds(100))
        for _ in 0..<7 { meter.note(.delivered) }
        meter.start(recording: true)
        let start = time.now
        time.advance(by: .milliseconds(10))
        meter.note(.accepted)
        meter.note(.refused)
        time.advance(by: .milliseconds(20))
        meter.note(.ready)
        meter.note(.delivered)
        meter.note(.delivered)
        time.advance(by: .milliseconds(10))
        let depth = meter.depth(since: start)
        // 10 ms of 2, 20 ms of 3, 10 ms of 1.
        #expect(abs(depth.mean - (10 * 2 + 20 * 3 + 10) / 40) < 1e-9)
        #expect(depth.maximum == 3)
        let steps = meter.steps(since: start)
        #expect(steps.map(\.kind) == [.accepted, .refused, .ready, .delivered, .delivered])
        #expect(steps.map(\.time) == [10, 10, 30, 30, 30])
        #expect(steps.map(\.depth) == [3, 3, 3, 2, 1])
        // A second run begins with what is on its way, and with nothing else.
        time.advance(by: .milliseconds(5))
        meter.start()
        #expect(meter.depth(since: time.now).mean == 0)
        #expect(meter.depth(since: time.now).maximum == 1)
        let again = time.now
        time.advance(by: .milliseconds(10))
        #expect(meter.depth(since: again).mean == 1)
        meter.note(.delivered)
        #expect(meter.steps(since: start).count == 5)
    }

    @Test("A recording has its end") func steps() {
        let meter = LinkMeter(time: VirtualTime())
        meter.start(recording: true)
        for _ in 0..<20_010 { meter.note(.ready) }
        #expect(meter.steps(since: .zero).count == 20_000)
    }

    // MARK: The log

    @Test("A message's latency is its own, and the slowest central counts") func log() {
        let log = MessageLog(centrals: 2)
        #expect(log.received == 0)
        #expect(!log.isUnderWay(0))
        func at(_ milliseconds: Int) -> Timestamp { .zero + .milliseconds(milliseconds) }
        log.willSend(0, at: at(0))
        log.willSend(0, at: at(10))
        #expect(log.isUnderWay(0))
        #expect(!log.isUnderWay(1))
        log.didReceive(0, at: at(30))
        #expect(log.isUnderWay(0))
        log.didReceive(0, at: at(130))
        #expect(!log.isUnderWay(0))
        #expect(log.received == 0)
        log.willSend(1, at: at(100))
        log.didReceive(1, at: at(160))
        #expect(log.received == 1)
        #expect(log.entries.map(\.received) == [2, 1])
        #expect(log.entries.map(\.lastReceived) == [at(130), at(160)])
        let latency = log.latency
        // 30, 60 and 120 ms, to three digits.
        #expect(abs(latency.median - 60) < 0.1)
        #expect(abs(latency.p99 - 120) < 0.2)
        #expect(abs(latency.maximum - 120) < 0.2)
        #expect(latency.curve.map { $0[0] } == [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100])
        #expect(abs(latency.curve[0][1] - 30) < 0.1)
        // What arrives without having been sent is no latency.
        log.didReceive(1, at: at(1_000))
        #expect(abs(log.latency.maximum - 120) < 0.2)
        #expect(log.received == 2)
    }

    // MARK: Results

    @Test("Shares, overheads and fairness") func shares() {
        #expect(result(goodput: 50, limit: 200).shareOfLimit == 0.25)
        #expect(result(limit: 0).shareOfLimit == 0)
        #expect(result().overheadPerMessage == 2)
        #expect(result(messages: 0).overheadPerMessage == 0)
        #expect(BenchResult.Fairness([3, 3, 3]).jainIndex == 1)
        #expect(BenchResult.Fairness([8, 0, 0, 0]).jainIndex == 0.25)
        #expect(abs(BenchResult.Fairness([1, 2]).jainIndex - 0.9) < 1e-9)
        #expect(BenchResult.Fairness([0, 0]).jainIndex == 1)
        #expect(BenchResult.Processor(total: 0.5, chunks: 1_000).perChunk == 500)
        #expect(BenchResult.Processor(total: 0.5, chunks: 0).perChunk == 0)
    }

    @Test("Waiting is each sender's share of the time", arguments: [1, 4]) func waiting(centrals: Int) throws {
        let outcome = try BenchRun.simulate(
            settings {
                $0.centrals = centrals
                $0.messageSize = 2_000
                $0.queueDepth = 2
                $0.seconds = 2
            }
        ).result
        #expect(outcome.waiting.count > 10)
        #expect(abs(outcome.waiting.share - outcome.waiting.total / 2_000 / Double(centrals)) < 1e-6)
        #expect(outcome.waiting.share > 0.25 && outcome.waiting.share < 1)
        #expect(outcome.fairness.goodputs.count == centrals)
        #expect(abs(outcome.fairness.goodputs.reduce(0, +) - outcome.goodput) < 1e-6)
        #expect(outcome.queue.maximum <= 2 * centrals)
        #expect(outcome.messageBytes == 2_000 * outcome.messages)
    }

    @Test("What a link could carry is air time, or the controller's cap") func limit() throws {
        // On LE 1M with ATT_MTU 23: 20 of 27 bytes in 676 us, or 328 us and so on when encrypted.
        let plain = settings {
            $0.attMTU = 23
            $0.dataLength = 27
            $0.isEncrypted = false
        }
        #expect(abs(try LinkLimit.goodput(plain) - 160 / 0.676) < 1e-6)
        var capped = plain
        capped.profile.packetsPerEvent = 4
        #expect(abs(try LinkLimit.goodput(capped) - 4 * 160 / 30) < 1e-6)
        var half = plain
        half.profile.eventLength = 15
        #expect(abs(try LinkLimit.goodput(half) - 80 / 0.676) < 1e-6)
        var short = plain
        short.interval = 7.5
        #expect(try LinkLimit.valuesPerEvent(short) == 11)
        short.phy = "coded-S8"
        short.attMTU = 247
        short.dataLength = 251
        let error = #expect(throws: FerryError.self) { try LinkLimit.valuesPerEvent(short) }
        #expect(error?.message.contains("Use --transport sim") == true)
    }

    // MARK: Comparing

    @Test(
        "What counts as noise depends on both transports",
        arguments: [
            ("sim", "sim", 0.001), ("sim", "loopback", 0.05), ("loopback", "sim", 0.05), ("loopback", "loopback", 0.05),
        ])
    func noise(before: String, after: String, noise: Double) {
        func text(_ factor: Double) -> String {
            Comparison(
                before: BenchReport(transport: before, results: [result(goodput: 100)]),
                after: BenchReport(transport: after, results: [result(goodput: 100 * factor)])
            ).text()
        }
        #expect(text(1).contains("nothing changed beyond noise (\(number(noise * 100, 1)) %)"))
        for factor in [1 + noise * 0.97, 1 - noise * 0.97] { #expect(text(factor).contains("nothing changed")) }
        // Beside the larger of the two.
        for factor in [1 + noise * 1.2, 1 - noise * 1.2] {
            #expect(text(factor).contains("1 figures changed beyond noise"), "\(factor)")
        }
    }

    @Test("A change is named with its sign, also from nothing") func changes() {
        func text(_ a: Double, _ b: Double) -> String {
            Comparison(
                before: BenchReport(transport: "sim", results: [result(goodput: a)]),
                after: BenchReport(transport: "sim", results: [result(goodput: b)])
            ).text()
        }
        #expect(text(100, 150).contains("goodput kbit/s 100.000 -> 150.000 (+50.0 %)"))
        #expect(text(100, 50).contains("(-50.0 %)"))
        #expect(text(0, 50).contains("(from zero)"))
        let two = BenchReport(transport: "sim", results: [result(), result { $0.seed = 2 }])
        let one = BenchReport(transport: "sim", results: [result()])
        #expect(Comparison(before: two, after: one).text().contains("1 of 1 points compared; 1 of the earlier run are"))
        #expect(!Comparison(before: one, after: two).text().contains("of the earlier run"))
    }

    @Test("A point's title names what distinguishes it") func title() {
        #expect(Comparison.title(settings()) == "1M 30 ms MTU 185, 400 B length, queue 8")
        let other = settings {
            $0.compression = .zlib
            $0.centrals = 2
        }
        #expect(Comparison.title(other) == "1M 30 ms MTU 185, 400 B length, zlib, queue 8, 2 centrals")
    }

    // MARK: Findings

    private func sentences(_ results: [BenchResult]) -> [String] {
        ReportFindings(results: results, reference: results[0].settings).sentences()
    }

    @Test(
        "Only a loss that is worth a word is said to be one",
        arguments: [(0.98, false), (0.972, false), (0.968, true), (0.5, true)])
    func spill(factor: Double, isSaid: Bool) {
        let results = [result(goodput: 100) { $0.attMTU = 247 }, result(goodput: 100 * factor) { $0.attMTU = 517 }]
        let said = sentences(results).filter { $0.contains("is not always better") }
        #expect(said.count == (isSaid ? 1 : 0))
        if factor == 0.5 {
            #expect(said[0].contains("517 carries 50 % less than 247"))
            #expect(
                said[0].contains(
                    "a value of 512 bytes fills 2 link-layer packets of 251 bytes and needs one more for the last 17."))
        }
    }

    @Test("The largest ATT_MTU is the one that is looked at") func largest() {
        let results = [
            result(goodput: 100) { $0.attMTU = 247 }, result(goodput: 50) { $0.attMTU = 300 },
            result(goodput: 99) { $0.attMTU = 517 }, result(goodput: 10) { $0.attMTU = 23 },
        ]
        #expect(!sentences(results).contains { $0.contains("is not always better") })
    }

    @Test(
        "Intervals differ by little or by much",
        arguments: [(0.98, "differs by 2.0 % only"), (0.96, "4 % between 15 ms and 30 ms.")])
    func intervals(factor: Double, words: String) {
        let results = [result(goodput: 100), result(goodput: 100 * factor) { $0.interval = 15 }]
        #expect(sentences(results).contains { $0.contains(words) }, "\(sentences(results))")
        #expect(sentences([results[0]]).isEmpty)
    }

    @Test("Two PHYs are compared at the same ATT_MTU") func phys() {
        let results = [
            result(goodput: 100) { $0.attMTU = 247 },
            result(goodput: 175) {
                $0.attMTU = 247
                $0.phy = "2M"
            },
            result(goodput: 900) {
                $0.attMTU = 100
                $0.phy = "2M"
            },
        ]
        #expect(
            sentences(results).contains { $0.contains("LE 2M carries 1.75 times what LE 1M does with ATT_MTU 247") })
        #expect(
            sentences(results).first?.hasPrefix("LE 2M at 30 ms with ATT_MTU 100 carries most: 900 kbit/s, 450 %")
                == true)
    }

    @Test("The point that stands for a sweep is the one nearest to ATT_MTU 247, then to 30 ms") func reference() {
        let points = [(23, 30.0), (300, 30), (200, 7.5), (200, 50), (200, 15)].map { mtu, interval in
            result {
                $0.attMTU = mtu
                $0.interval = interval
            }
        }
        #expect(ReportPage.reference(in: points)?.attMTU == 200)
        #expect(ReportPage.reference(in: points)?.interval == 15)
        #expect(ReportPage.reference(in: []) == nil)
    }

    // MARK: Numbers and axes

    @Test("Axes from zero have round steps")
    func axes() {
        for (maximum, top, count) in [
            (100.0, 100.0, 3), (101, 150, 4), (7, 8, 5), (0.3, 0.3, 4), (1_345, 1_500, 4), (0, 1e-9, 3),
        ] {
            let axis = Axis.fromZero(to: maximum, start: 0, end: 100)
            #expect(abs(axis.range.upperBound - top) < top * 1e-6, "\(maximum): \(axis.range)")
            #expect(axis.ticks.count == count, "\(maximum): \(axis.ticks)")
            #expect(axis.ticks.first == 0)
        }
        let point = Axis(scale: .linear, range: 5...5, ticks: [], start: 0, end: 100)
        #expect(point.place(5) == 50)
        let doubling = Axis(scale: .logarithmic, range: 1...16, ticks: [], start: 0, end: 100)
        #expect([1.0, 2, 4, 8, 16].map { doubling.place($0) } == [0, 25, 50, 75, 100])
        let upsideDown = Axis(scale: .linear, range: 0...10, ticks: [], start: 100, end: 0)
        #expect(upsideDown.place(2.5) == 75)
    }

    @Test("Sample text has the length asked for, and is the seed's") func sample() {
        for count in [0, 1, 31, 32, 33, 1_000] { #expect(SampleText.bytes(count: count, seed: 1).count == count) }
        #expect(SampleText.bytes(count: 100, seed: 1) == Array(SampleText.bytes(count: 1_000, seed: 1).prefix(100)))
        #expect(SampleText.bytes(count: 100, seed: 1) != SampleText.bytes(count: 100, seed: 2))
    }

    @Test("Settings are taken to their very edges and no further") func edges() {
        func isLegal(_ change: (inout BenchSettings) -> Void) -> Bool { (try? settings(change).validate()) != nil }
        #expect(isLegal { $0.chunkSize = 4 })
        #expect(!isLegal { $0.chunkSize = 3 })
        #expect(isLegal { $0.chunkSize = 512 })
        #expect(!isLegal { $0.chunkSize = 513 })
        #expect(isLegal { $0.messageSize = 0 })
        #expect(isLegal { $0.messageSize = 16 << 20 })
        #expect(!isLegal { $0.messageSize = 16 << 20 + 1 })
        #expect(isLegal { $0.queueDepth = 4_096 })
        #expect(!isLegal { $0.queueDepth = 4_097 })
        #expect(isLegal { $0.centrals = 20 })
        #expect(!isLegal { $0.centrals = 21 })
        #expect(isLegal { $0.seconds = 0.1 })
        #expect(!isLegal { $0.seconds = 0.09 })
        #expect(isLegal { $0.seconds = 86_400 })
        #expect(!isLegal { $0.seconds = 86_401 })
        #expect(!isLegal { $0.profile.hostLatency = -1 })
        #expect(!isLegal { $0.profile.controllerBuffers = 0 })
    }

    @Test("Controller settings are the profile, and back") func profiles() throws {
        for profile in ControllerProfile.all {
            #expect(try ControllerSettings(profile).controllerProfile() == profile)
        }
        let odd = ControllerProfile(
            name: "odd", source: "test", packetsPerEvent: 3, eventLength: .microseconds(2_500), controllerBuffers: 5,
            reportsAtEventEnd: true, hostLatency: .microseconds(750))
        #expect(try ControllerSettings(odd).controllerProfile() == odd)
    }
}
