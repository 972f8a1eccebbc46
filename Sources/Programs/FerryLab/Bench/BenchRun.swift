package import Ferry
package import FerryBluetooth
import FerryLoopback
import FerrySequenced
import FerrySimulator
import FerryZlib

/// Measures one point: real channels over GATT links on a loopback radio, below it the simulated link layer.
///
/// Under virtual time everything runs on the calling thread and is the same on every run with the same seed.
package final class BenchRun: Sendable {
    private let settings: BenchSettings
    private let time: any TimeSource
    /// Makes the peripheral's adapter for 0, a central's for 1 and on.
    private let makeAdapter: @Sendable (Int) async throws -> any BluetoothAdapter
    private let recordsTimeline: Bool
    /// Receives what arrived in each second, where time is real.
    private let onSecond: (@Sendable (PairProgress) -> Void)?
    private let log: MessageLog

    static let layout = GATTConfiguration(
        service: BluetoothUUID(0x6E2A_0001_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128),
        characteristic: BluetoothUUID(0x6E2A_0002_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128),
        maximumWriteWithoutResponse: 512)

    package init(
        _ settings: BenchSettings, time: any TimeSource, recordsTimeline: Bool,
        onSecond: (@Sendable (PairProgress) -> Void)? = nil,
        makeAdapter: @escaping @Sendable (Int) async throws -> any BluetoothAdapter
    ) throws(FerryError) {
        try settings.validate()
        self.settings = settings
        self.time = time
        self.recordsTimeline = recordsTimeline
        self.onSecond = onSecond
        self.makeAdapter = makeAdapter
        log = MessageLog(centrals: settings.centrals)
    }

    /// - Parameter isPaced: whether the loopback radio paces by its own connection events, without the simulator.
    convenience init(
        _ settings: BenchSettings, time: any TimeSource, isPaced: Bool, recordsTimeline: Bool,
        onSecond: (@Sendable (PairProgress) -> Void)? = nil
    ) throws(FerryError) {
        try settings.validate()
        let parameters = try settings.linkParameters()
        let profile = try settings.profile.controllerProfile()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = settings.attMTU
        configuration.transmitQueueDepth = settings.queueDepth
        configuration.supervisionTimeout = .seconds(32)
        if isPaced {
            configuration.connectionInterval = parameters.connectionInterval
            configuration.packetsPerEvent = try LinkLimit.valuesPerEvent(settings)
        } else {
            configuration.linkLayer = try RadioSimulator(parameters, profile: profile, seed: settings.seed)
        }
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        try self.init(settings, time: time, recordsTimeline: recordsTimeline, onSecond: onSecond) { _ in
            radio.makeAdapter()
        }
    }

    // MARK: Setting up

    /// One central's two channels and the meters between them.
    private struct Pair: Sendable {
        let sender: MessageChannel<[UInt8], [UInt8]>
        let receiver: MessageChannel<[UInt8], [UInt8]>
        let meter: LinkMeter
    }

    /// Connects every central, one after the other, so that links pair up.
    private func connect() async throws -> [Pair] {
        let listener = try await GATTTransport(
            adapter: try await makeAdapter(0), configuration: settings.framing.layout(in: Self.layout), time: time
        ).listen()
        defer { listener.close() }
        var incoming = listener.links.makeAsyncIterator()
        var pairs: [Pair] = []
        for number in 0..<settings.centrals {
            let central = try await GATTTransport(
                adapter: try await makeAdapter(1 + number), configuration: settings.framing.layout(in: Self.layout),
                time: time
            ).connect(timeout: .seconds(60))
            try await waitForMTU(of: central)
            let meter = LinkMeter(time: time)
            let isNotifying = settings.direction == .notify
            func channel(_ link: any Link, sends: Bool) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
                let tap: any LinkObserver = sends ? SendingTap(meter) : ReceivingTap(meter)
                return try settings.framing.channel(
                    over: TappedLink(link, observer: tap), sequenced: Self.sequenced,
                    compression: settings.compression == .zlib ? ZlibCompression() : nil,
                    chunkSize: settings.chunkSize, time: time)
            }
            // The peripheral has a link of BTP's at the first write only, which is this channel's.
            let first = try channel(central, sends: !isNotifying)
            guard let peripheral = await incoming.next() else {
                throw FerryError(.peerNotFound, "Central \(number) connected, and the peripheral has no link to it.")
            }
            try await waitForMTU(of: peripheral)
            let second = try channel(peripheral, sends: isNotifying)
            pairs.append(
                isNotifying
                    ? Pair(sender: second, receiver: first, meter: meter)
                    : Pair(sender: first, receiver: second, meter: meter))
        }
        return pairs
    }

    /// BlueZ leaves two bytes of ATT_MTU unused (Documentation/BlueZ.md).
    private func waitForMTU(of link: any Link) async throws {
        let wanted = min(settings.attMTU - 3, 512)
        func isThere() -> Bool {
            // Meshtastic's side that writes with response takes whole values, at any ATT_MTU.
            let size = link.maximumChunkSize
            return (wanted - 2...wanted).contains(size) || settings.framing == .meshtastic && size == 512
        }
        for _ in 0..<1_000 where !isThere() { try await time.sleep(for: .milliseconds(10)) }
        guard isThere() else {
            throw FerryError(
                .timedOut,
                "ATT_MTU \(settings.attMTU) was not agreed on within 10 s: chunks may have \(link.maximumChunkSize) bytes, "
                    + "not \(wanted). Ask with --mtu for what both sides agree on.")
        }
    }

    /// As with the other framings a message counts as sent when the link has it, so that the next one follows at once, and
    /// messages arrive in the order of sending, so that their latencies can be told.
    private static let sequenced: SequencedFraming = {
        var configuration = SequencedFraming.Configuration()
        configuration.receipt = .handedOver
        configuration.maximumOpenMessages = 1
        return SequencedFraming(configuration)
    }()

    // MARK: Measuring

    /// Sends messages over every pair for the measured time and gathers what came of it.
    package func measure() async throws -> BenchOutcome {
        let message = try settings.framing.message(count: settings.messageSize, seed: settings.seed)
        let pairs = try await connect()
        // A start on a whole second, so that the connection's set-up does not show in the figures.
        let start = Timestamp(nanoseconds: (time.now.nanoseconds / 1_000_000_000 + 1) * 1_000_000_000)
        try await time.sleep(until: start)
        for pair in pairs { pair.meter.start(recording: recordsTimeline) }
        let before = pairs.map(\.sender.statistics)
        let outcome = try await withThrowingTaskGroup(of: Void.self) { [self] group in
            for (index, pair) in pairs.enumerated() {
                group.addTask { await self.receive(from: pair.receiver, index) }
                group.addTask { await self.send(message, over: pair.sender, index) }
            }
            defer { group.cancelAll() }
            try await waitForMessages()
            return try self.gather(pairs, before, from: start, of: message)
        }
        for pair in pairs {
            pair.sender.close()
            pair.receiver.close()
        }
        return outcome
    }

    /// Lets the measured time pass. One message may take longer than that: waits for it, a hundred times as long at most.
    private func waitForMessages() async throws {
        let part = Duration.nanoseconds(Int64(settings.seconds * 1e9))
        if !recordsTimeline {
            if let onSecond { try await tell(part, onSecond) } else { try await time.sleep(for: part) }
        }
        for _ in 0..<100 where log.received == 0 && log.failure == nil { try await time.sleep(for: part) }
        if log.received == 0, let failure = log.failure { throw failure }
        guard log.received > 0 else {
            throw FerryError(
                .timedOut,
                "No message of \(settings.messageSize) bytes arrived within \(number(settings.seconds * 101, 0)) s; "
                    + "choose smaller messages or a better link.")
        }
    }

    /// Lets the time pass, and tells what arrived in each whole second of it.
    private func tell(_ whole: Duration, _ onSecond: @Sendable (PairProgress) -> Void) async throws {
        let start = time.now
        var meter = PairMeter(start: start)
        var known = 0
        while time.now < start + whole {
            try await time.sleep(until: min(start + whole, time.now + .seconds(1)))
            let arrived = log.entries.map(\.received).reduce(0, +)
            for _ in known..<max(known, arrived) { meter.take(settings.messageSize, at: time.now) }
            known = max(known, arrived)
            if whole > .seconds(1), let second = meter.line(at: time.now) { onSecond(second) }
        }
    }

    private func send(_ message: [UInt8], over channel: MessageChannel<[UInt8], [UInt8]>, _ index: Int) async {
        var generator = SeededGenerator(seed: settings.seed &+ UInt64(index))
        repeat {
            if settings.pace == .spaced, await pause(&generator, index) == false { return }
            log.willSend(index, at: time.now)
            do { try await channel.send(message) } catch { return log.didFail(error) }
            log.didSend(index, channel.statistics)
        } while !recordsTimeline && !Task.isCancelled
    }

    /// Waits until the last message has arrived, and then up to four intervals longer, so that messages meet the
    /// connection events at every distance.
    private func pause(_ generator: inout SeededGenerator, _ index: Int) async -> Bool {
        do {
            while log.isUnderWay(index) { try await time.sleep(for: .milliseconds(1)) }
            let longest = UInt64(settings.interval * 4_000)
            try await time.sleep(for: .microseconds(Int64(generator.next() % max(1, longest))))
        } catch { return false }
        return true
    }

    private func receive(from channel: MessageChannel<[UInt8], [UInt8]>, _ index: Int) async {
        do {
            for try await _ in channel.messages { log.didReceive(index, at: time.now) }
        } catch {
            // The channel has ended; what arrived until then counts.
        }
    }

    /// The size of the message that is sent each time, compressed.
    private func compressedBytes(of message: [UInt8]) throws(FerryError) -> Int? {
        guard settings.compression == .zlib else { return nil }
        var compressed: [UInt8] = []
        let isSmaller = try ZlibCompression().compress(message.span.bytes, into: &compressed, budget: message.count)
        return isSmaller ? compressed.count : message.count
    }

    private func gather(
        _ pairs: [Pair], _ before: [ChannelStatistics], from start: Timestamp, of message: [UInt8]
    ) throws -> BenchOutcome {
        let now = time.now
        let elapsed = Double((now - start).wholeNanoseconds)
        let entries = log.entries
        var waiting = BenchResult.Waiting(count: 0, total: 0, share: 0, lostReadySignals: 0)
        var depth = BenchResult.QueueDepth(mean: 0, maximum: 0)
        for (index, pair) in pairs.enumerated() {
            let (all, old) = (pair.sender.statistics, before[index])
            waiting.count += all.waitsForReady - old.waitsForReady
            waiting.total += (all.timeWaiting - old.timeWaiting).milliseconds
            waiting.lostReadySignals += all.lostReadySignals - old.lostReadySignals
            let own = pair.meter.depth(since: start)
            depth.mean += own.mean / Double(pairs.count)
            depth.maximum = max(depth.maximum, own.maximum)
        }
        waiting.share = min(1, waiting.total * 1e6 / elapsed / Double(pairs.count))
        let goodputs = entries.map { entry in
            guard let last = entry.lastReceived, last > start else { return 0.0 }
            return Double(entry.received * settings.messageSize * 8) / (Double((last - start).wholeNanoseconds) / 1e6)
        }
        let sent = entries.map(\.sent).reduce(0, +)
        let chunks = zip(entries, before).map { ($0.statistics?.chunksSent ?? $1.chunksSent) - $1.chunksSent }
        let bytes = zip(entries, before).map { ($0.statistics?.bytesSent ?? $1.bytesSent) - $1.bytesSent }
        let result = BenchResult(
            settings: settings, goodput: goodputs.reduce(0, +), linkLimit: try LinkLimit.goodput(settings),
            messages: sent, messageBytes: sent * settings.messageSize,
            compressedBytes: try compressedBytes(of: message),
            chunks: chunks.reduce(0, +),
            chunkBytes: bytes.reduce(0, +), waiting: waiting, queue: depth, latency: log.latency,
            fairness: BenchResult.Fairness(goodputs))
        let steps = pairs.first?.meter.steps(since: start) ?? []
        return BenchOutcome(result: result, steps: recordsTimeline ? steps : [])
    }
}

/// What one measurement gave.
package struct BenchOutcome: Sendable {
    package var result: BenchResult
    /// What happened on the first link, when that was asked for.
    package var steps: [TransferTimeline.Step]
}

// MARK: - Running

extension BenchRun {
    /// Measures in virtual time, on the calling thread.
    package static func simulate(_ settings: BenchSettings, isPaced: Bool = false, recordsTimeline: Bool = false) throws
        -> BenchOutcome
    {
        let time = VirtualTime()
        let run = try BenchRun(settings, time: time, isPaced: isPaced, recordsTimeline: recordsTimeline)
        return try VirtualRun.run(under: time) { try await run.measure() }
    }

    /// Measures on the loopback radio, which paces by its own connection events, in real time.
    package static func loopback(
        _ settings: BenchSettings, _ onSecond: (@Sendable (PairProgress) -> Void)? = nil
    ) async throws -> BenchOutcome {
        try await BenchRun(
            settings, time: SystemTime(), isPaced: true, recordsTimeline: false, onSecond: onSecond
        ).measure()
    }
}
