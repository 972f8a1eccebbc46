import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import FerrySimulator
import FerryTransports
import Foundation
import Synchronization

/// `ferry bench`: measures every combination of settings.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures goodput, waiting and latency of messages for every combination of settings.",
        discussion: """
            Real channels with their framing and backpressure run over a loopback radio. With --transport sim a model of \
            the link layer lies below it and time is virtual: hours of radio time take seconds, and the same seed gives \
            the same output. With --transport loopback the radio paces itself by connection events in real time. \
            With adapters, hci:...,hci:... or bluez:hci0,bluez:hci1 (builds with the traits HCI and BlueZ), the first is \
            the peripheral's and each of the others a central's. The link is theirs: the simulated link's \
            limit beside it is only a comparison. BlueZ chooses ATT_MTU, 517, and the interval itself.

            Options that take a list measure every combination: --mtu 23,185,247 --interval 15,30.

            In real time each second of a point that takes several is told on standard error, as it is by --serve and --connect.

            Between two processes or machines, one role in each:

            ferry bench --serve --transport unix:/tmp/ferry                      # until Ctrl-C
            ferry bench --connect --transport unix:/tmp/ferry --message-size 100,4096

            With --records codecs are compared on the simulated link, at each of its points: the bytes of a record by each of them, \
            and records a second. --message-size and --compression are theirs then.

            With a throughput service that others have made, beside what the simulator gives for the same:

            ferry bench --peer Nordic_Throughput --transport hci:user:0 --interval 50 --phy 2M --keep board.json

            Between two processes --direction notify is from the serving side to the connecting one, --framing is the same on both, \
            --message-size, --direction and --seconds are the connecting side's, and the figures count the messages that arrived. \
            The transports are \(pairForms). One side connects at a time. On BlueZ ATT_MTU and the interval are what it chooses, \
            so that --mtu and --interval change nothing.
            """)

    private static let pairForms = NamedTransport.forms { $0.name != "loopback" }.joined(separator: ", ")

    @OptionGroup var sweep: SweepOptions

    @OptionGroup var codecs: CodecOptions

    @Flag(name: .long, help: "Be one side of a measurement between two processes: wait for --connect.")
    var serve = false

    @Flag(name: .long, help: "Be the other side: connect, measure, and print.")
    var connect = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "What carries the messages: \(BenchTransport.forms.joined(separator: ", ")).", valueName: "transport"),
        transform: BenchTransport.parse)
    var transport = BenchTransport.sim

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Measure with this peripheral's throughput service: Nordic's, Zephyr's ble_gatt_tput or bumble-bench's.",
            valueName: "name or address"))
    var peer: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "With --peer: write a controller profile that gives the measured figures.", valueName: "file.json"))
    var keep: String?

    @Flag(
        name: .long,
        help: "Show processor time for simulated points too; it differs from run to run, and nothing else does.")
    var cpu = false

    @Flag(name: .long, help: "Print JSON.")
    var json = false

    @Flag(name: .long, help: "Print comma-separated values.")
    var csv = false

    @Option(name: .long, help: ArgumentHelp("Write a page with charts.", valueName: "file.html"))
    var report: String?

    @Option(
        name: .long, help: ArgumentHelp("Say what changed against an earlier --json output.", valueName: "file.json"))
    var compare: String?

    @Flag(name: .long, help: "Measure how many link-layer events a second the simulator works through, and end.")
    var speed = false

    func validate() throws {
        if json && csv { throw ValidationError("Choose one of --json and --csv.") }
        if serve && connect { throw ValidationError("Choose one of --serve and --connect.") }
        if connect, case .side(let named) = transport { try named.requireConnectable() }
        do throws(FerryError) {
            if peer != nil {
                _ = try peerSettings()
                if let keep { try JSONFile.checkFolder(of: keep) }
                return
            }
            guard keep == nil else {
                throw FerryError(.invalidConfiguration, "--keep goes with --peer, whose profile it writes.")
            }
            if codecs.isGiven { return try checkCodecs() }
            if serve || connect { return try checkPair() }
            let points = try self.points()
            for point in points { try transport.check(point) }
            if let report { try JSONFile.checkFolder(of: report) }
            if let compare { let _: BenchReport = try JSONFile.read(compare, "result of ferry bench --json") }
        } catch { throw CommandEnd.usage(error) }
    }

    func run() async throws {
        if speed { return try SimulatorSpeed.measure() }
        if codecs.isGiven { return try compareCodecs() }
        if let peer { return try await runPeer(peer) }
        if serve || connect { return try await runPair() }
        do {
            try await measure()
        } catch let error as FerryError {
            throw CommandFailure(error.message)
        }
    }

    private func checkPair() throws(FerryError) {
        guard case .side = transport else {
            throw FerryError(
                .invalidConfiguration,
                "--serve and --connect need one transport that reaches another process. Use one of: \(Self.pairForms).")
        }
        guard report == nil, compare == nil, !csv else {
            throw FerryError(
                .invalidConfiguration,
                "--report, --compare and --csv are for sweeps in one process; here there is --json.")
        }
        if let mtu = sweep.mtu?.elements.first, !(23...517).contains(mtu) {
            throw FerryError(.invalidConfiguration, "--mtu is \(mtu); give 23 to 517 bytes.")
        }
        guard let interval = sweep.interval.elements.first, (7.5...4000).contains(interval) else {
            throw FerryError(.invalidConfiguration, "--interval needs one value, 7.5 to 4000 ms.")
        }
        _ = try sweep.pairRuns()
    }

    /// One side of a measurement between two processes. 0, 1 with the reason, 130 after Ctrl-C.
    private func runPair() async throws {
        guard case .side(let named) = transport else { return }
        let (framing, runs) = try sweep.pairRuns()
        var radio = RadioOptions()
        radio.attMTU = sweep.mtu?.elements.first
        radio.connectionInterval = sweep.interval.elements.first.map { .microseconds(Int64(($0 * 1_000).rounded())) }
        radio.onAdvice = { note($0) }
        let pair = PairBench(transport: named, radio: radio, framing: framing, runs: runs, isJSON: json)
        let serves = serve
        let (result, signal) = await Interruptible.run {
            if serves { try await pair.serve() } else { try await pair.connect(timeout: .seconds(30)) }
        }
        if let signal { throw ExitCode(128 + signal) }
        if case .failure(let error) = result { throw CommandFailure(explanation(of: error)) }
    }

    func points() throws(FerryError) -> [BenchSettings] {
        try sweep.points(defaultSeconds: transport.isSimulated ? 10 : 1, defaultMTUs: transport.defaultMTUs)
    }

    private func measure() async throws {
        let points = try self.points()
        let started = (ContinuousClock.now, cpuSeconds())
        let sweep = SweepResults()
        // The points that were measured before a signal are printed.
        let (ended, signal) = await Interruptible.run { try await measure(points, sweep) }
        try Self.throwUnlessInterrupted(ended, signal)
        var result = BenchReport(transport: transport.name, results: sweep.results)
        let elapsed = started.0.duration(to: .now) / .seconds(1)
        let count =
            result.results.count == points.count ? "\(points.count)" : "\(result.results.count) of \(points.count)"
        note(
            "\(count) \(count == "1" ? "point" : "points") in \(number(elapsed, 1)) s, CPU \(number(cpuSeconds() - started.1, 1)) s"
        )
        if !result.results.isEmpty {
            if let report {
                // They take a while, and a person who interrupts does not wait for them.
                if signal == nil { try addPictures(to: &result) }
                try JSONFile.write(ReportPage(report: result).html(), to: report)
            }
            try print(result)
        }
        if let signal { throw ExitCode(128 + signal) }
        if sweep.failures > 0 {
            throw CommandFailure(
                "\(sweep.failures) of \(points.count) points could not be measured; they are named above.")
        }
    }

    private static func throwUnlessInterrupted(_ ended: Result<Void, any Error>, _ signal: Int32?) throws {
        if signal == nil { try ended.get() }
    }

    /// What a sweep has measured so far.
    private final class SweepResults: Sendable {
        private let state = Mutex<(results: [BenchResult], failures: Int)>(([], 0))

        var results: [BenchResult] { state.withLock { $0.results } }
        var failures: Int { state.withLock { $0.failures } }
        func add(_ result: BenchResult) { state.withLock { $0.results.append(result) } }
        func fail() { state.withLock { $0.failures += 1 } }
    }

    private func measure(_ points: [BenchSettings], _ sweep: SweepResults) async throws {
        let progress = ProgressBar(total: points.count)
        let ticking = Task { await progress.tick() }
        defer {
            ticking.cancel()
            progress.finish()
        }
        for (index, point) in points.enumerated() {
            try Task.checkCancellation()
            progress.show(index)
            let before = cpuSeconds()
            do {
                var result = try await measure(point) { second in
                    progress.clear()
                    note(second.text("received"))
                }.result
                if cpu || !transport.isSimulated {
                    result.processor = BenchResult.Processor(total: cpuSeconds() - before, chunks: result.chunks)
                }
                sweep.add(result)
            } catch let error as FerryError {
                try Task.checkCancellation()
                sweep.fail()
                progress.clear()
                // The others may well be measured.
                note("ferry: \(ResultTable.name(of: point, among: points)): \(error.message)")
            }
        }
    }

    /// - Parameter onSecond: receives what arrived in each second of real time.
    private func measure(
        _ point: BenchSettings, _ onSecond: @escaping @Sendable (PairProgress) -> Void
    ) async throws -> BenchOutcome {
        switch transport {
        case .sim: try BenchRun.simulate(point)
        case .loopback: try await BenchRun.loopback(point, onSecond)
        case .adapters(let adapters): try await BenchRun.adapters(point, adapters, onSecond)
        case .side(let adapter): try await BenchRun.adapters(point, [adapter], onSecond)  // throws: names the trait
        }
    }

    /// The report's pictures that the sweep alone does not give: simulated, at its middle point.
    private func addPictures(to report: inout BenchReport) throws {
        guard let middle = ReportPage.reference(in: report.results) else { return }
        for depth in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32] {
            var settings = middle
            settings.queueDepth = depth
            report.depthSweep.append(try BenchRun.simulate(settings).result)
        }
        report.single = try report.results.map(\.settings)
            .filter { settings in
                var expected = middle
                expected.attMTU = settings.attMTU
                return expected == settings
            }
            .prefix(6)
            .map { settings in
                var settings = settings
                settings.pace = .spaced
                return try BenchRun.simulate(settings).result
            }
        var settings = middle
        settings.centrals = 1
        let steps = try BenchRun.simulate(settings, recordsTimeline: true).steps
        report.timeline = TransferTimeline(settings: settings, steps: steps)
    }

    private func print(_ report: BenchReport) throws {
        let table = ResultTable(results: report.results, isSimulated: transport.isSimulated)
        if json {
            Swift.print(try JSONFile.text(report), terminator: "")
        } else if csv {
            Swift.print(table.commaSeparated(), terminator: "")
        } else {
            Swift.print(table.aligned(), terminator: "")
        }
        if let compare {
            let before: BenchReport = try JSONFile.read(compare, "result of ferry bench --json")
            let text = Comparison(before: before, after: report).text()
            // Programs that read the results are not to meet it.
            if json || csv { note(text) } else { Swift.print("\n" + text, terminator: "") }
        }
    }
}

/// For people, beside the output. The text may have words of a peer or a file in it.
func note(_ text: String) { FileHandle.standardError.write(Data((text.harmless + "\n").utf8)) }

/// Processor time that this process has used.
func cpuSeconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) }

/// How fast the simulator is, on one core.
enum SimulatorSpeed {
    static func measure() throws {
        for (name, loss) in [("lossless", PacketLoss.none), ("5 % damaged", .packetErrorRate(0.05))] {
            var parameters = LinkParameters()
            parameters.connectionInterval = .milliseconds(50)
            parameters.loss = loss
            let started = cpuSeconds()
            let run = try FerrySimulator.measure(
                .notifications(valueLength: 244), on: parameters, events: 40_000)
            let seconds = cpuSeconds() - started
            let rate = Double(run.workedEvents) / seconds
            print(
                "\(name): \(run.workedEvents) link-layer events (\(run.duration.milliseconds / 1_000) s of radio time) in "
                    + "\(number(seconds, 2)) s: \(number(rate / 1e6, 2)) million a second")
        }
    }
}
