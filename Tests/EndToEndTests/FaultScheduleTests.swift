import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Channels on the virtual radio while things go wrong from a seed, under virtual time.
///
/// The two simple framings trust the link. What they promise, and what is checked here for each of 2 000 schedules, or 10 000
/// with `FERRY_FULL`:
/// - nothing hangs: every `send` returns within the limits' timeouts, and every channel that lost its peer says so;
/// - as long as values arrive whole and in order (disconnections at any chunk, ready signals early, late or never, a
///   changing or wrongly reported MTU), each message is delivered once and intact, in order, or its sender or receiver is
///   told why not;
/// - when values are lost, doubled, reordered or cut, a message may be damaged without either framing being able to know;
///   then it still never hangs, and the channel delivers or ends with a named cause.
@Suite(.tags(.channel, .framing, .recovery, .slow), .timeLimit(.minutes(10))) struct FaultScheduleTests {
    @Test(arguments: 0..<Effort.of(4, full: 20))
    func everyScheduleEndsWell(_ part: Int) async throws {
        var tally = Tally()
        for seed in part * 500..<(part + 1) * 500 {
            try await FaultSchedule(seed: UInt64(seed)).run(&tally)
            // Others have their turn.
            await Task.yield()
        }
        #expect(tally.delivered > 1000 && tally.told > 0 && tally.faults > 100, "\(tally)")
    }
}

/// What a run of schedules has met.
struct Tally {
    var delivered = 0
    var told = 0
    var damaged = 0
    var faults = 0
}

/// One schedule: what is sent, how, and what goes wrong.
struct FaultSchedule {
    private static let damaging: [LoopbackRadio.Faults.Kind] = [.lose, .double, .reorder, .truncate]
    private static let harmless: [LoopbackRadio.Faults.Kind] = [
        .disconnect, .changeMTU, .readyEarly, .readyLate, .readyNever,
    ]

    private let seed: UInt64
    private let isDamaging: Bool
    private let configuration: LoopbackRadio.Configuration
    private let layout: GATTConfiguration
    private let isEndOfMessage: Bool
    private let payloads: [[UInt8]]

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        self.seed = seed
        isDamaging = Int.random(in: 0..<4, using: &random) == 0
        isEndOfMessage = Bool.random(using: &random)
        var faults = LoopbackRadio.Faults(seed: random.next())
        for kind in Self.harmless + (isDamaging ? Self.damaging : []) where Bool.random(using: &random) {
            let limit = kind == .disconnect ? 0.01 : kind.rawValue.hasPrefix("ready") ? 0.3 : 0.05
            faults.probabilities[kind] = Double.random(in: 0...limit, using: &random)
        }
        faults.wrongMTU = Bool.random(using: &random) ? 517 : nil
        configuration = .drawn(with: faults, using: &random)
        layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16),
            subscription: Int.random(in: 0..<4, using: &random) == 0 ? .indicate : .notify,
            writeType: Int.random(in: 0..<4, using: &random) == 0 ? .withResponse : .withoutResponse)
        payloads = (0..<Int.random(in: 1...4, using: &random)).map { _ in
            let bits = Int.random(in: 0...11, using: &random)
            return random.bytes(Int.random(in: 0...(1 << bits), using: &random))
        }
    }

    func run(_ tally: inout Tally) async throws {
        let time = VirtualTime()
        try await run(&tally, under: time)
        // The radio's timers hold it until they are due, and the time holds them.
        time.advance(by: .seconds(100))
    }

    private func run(_ tally: inout Tally, under time: VirtualTime) async throws {
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        guard let (near, far) = try await connect(on: radio, time) else {
            tally.told += 1
            return
        }
        let central = makeCore(near, time)
        let peripheral = makeCore(far, time)
        let outcomes = Outcomes(count: payloads.count * 2)
        for (index, payload) in payloads.enumerated() {
            central.submit(payload, as: central.makeID()) { outcomes.set(index * 2, $0) }
            peripheral.submit(payload, as: peripheral.makeID()) { outcomes.set(index * 2 + 1, $0) }
        }
        // The longest patience of the limits is 60 s, and a probe for each of 2 x 4 x 115 chunks takes 15 ms.
        var waited = Duration.zero
        while !outcomes.areComplete, waited < .seconds(300) {
            time.advance(by: .milliseconds(100))
            waited += .milliseconds(100)
        }
        time.advance(by: .seconds(100))
        #expect(outcomes.areComplete, "a send hangs; seed \(seed)")
        try check(sent: outcomes.ofCentral, central, to: peripheral, &tally)
        try check(sent: outcomes.ofPeripheral, peripheral, to: central, &tally)
        tally.faults += radio.injectedFaults.values.reduce(0, +)
        central.finish(FerryError(.closed, "The schedule is over."))
        peripheral.finish(FerryError(.closed, "The schedule is over."))
    }

    /// Both ends of a link, or nil when the schedule ends the connection before the link is there.
    private func connect(on radio: LoopbackRadio, _ time: VirtualTime) async throws -> (any Link, any Link)? {
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        return try time.run(within: .seconds(10_000)) { [layout] () async throws -> (any Link, any Link)? in
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            do {
                let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                    .connect(timeout: .seconds(3600))
                for await far in listener.links {
                    listener.close()
                    return (near, far)
                }
                return nil
            } catch let error as FerryError where error.code == .disconnected || error.code == .timedOut {
                return nil
            }
        }
    }

    private func makeCore(_ link: any Link, _ time: VirtualTime) -> ChannelCore {
        let limits = Limits()
        let session: any FramingSession =
            isEndOfMessage
            ? (try? EndOfMessageFraming(chunkSize: nil).makeSession(limits: limits))
                ?? LengthPrefixFraming().makeSession(limits: limits)
            : LengthPrefixFraming().makeSession(limits: limits)
        let core = ChannelCore(link: link, session: session, chunkSize: .max, limits: limits, time: time)
        core.open()
        return core
    }

    /// Compares what was sent with what arrived.
    private func check(
        sent outcomes: [Result<Void, FerryError>?], _ sender: ChannelCore, to receiver: ChannelCore,
        _ tally: inout Tally
    ) throws {
        var received: [[UInt8]] = []
        while let delivery = receiver.take() {
            guard case .message(let payload) = delivery else { break }
            received.append(payload)
        }
        if isDamaging {
            tally.damaged += received.filter { !payloads.contains($0) }.count
            tally.delivered += received.filter { payloads.contains($0) }.count
            return
        }
        #expect(received == Array(payloads.prefix(received.count)), "damaged or out of order; seed \(seed)")
        tally.delivered += received.count
        for index in received.count..<max(payloads.count, received.count) {
            tally.told += 1
            let senderKnows = if case .failure = outcomes[index] { true } else { false }
            #expect(
                senderKnows || sender.closeReason != nil || receiver.closeReason != nil,
                "message \(index) is lost without a word; seed \(seed)")
        }
    }
}

/// What became of each message: the central's at even, the peripheral's at odd places.
private final class Outcomes: Sendable {
    private let results: Mutex<[Result<Void, FerryError>?]>

    init(count: Int) { results = Mutex(Array(repeating: nil, count: count)) }

    func set(_ index: Int, _ result: Result<Void, FerryError>) {
        results.withLock { results in
            if results[index] != nil { Issue.record("a send was completed twice") }
            results[index] = result
        }
    }

    var areComplete: Bool { results.withLock { $0.allSatisfy { $0 != nil } } }

    private func every(_ parity: Int) -> [Result<Void, FerryError>?] {
        results.withLock { results in stride(from: parity, to: results.count, by: 2).map { results[$0] } }
    }

    var ofCentral: [Result<Void, FerryError>?] { every(0) }
    var ofPeripheral: [Result<Void, FerryError>?] { every(1) }
}

extension LoopbackRadio.Configuration {
    /// A radio of any queue, pace and ATT_MTU.
    static func drawn(with faults: LoopbackRadio.Faults, using random: inout SplitMix64) -> Self {
        var configuration = LoopbackRadio.Configuration()
        configuration.faults = faults
        configuration.transmitQueueDepth = [1, 2, 8, 64].randomElement(using: &random) ?? 8
        configuration.connectionInterval = Bool.random(using: &random) ? .zero : .milliseconds(15)
        configuration.attMTU = [23, 50, 185, 517].randomElement(using: &random) ?? 185
        configuration.advertisingInterval = .milliseconds(1)
        return configuration
    }
}
