import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FerrySequenced

/// Channels with the sequenced framing on the virtual radio while everything goes wrong from a seed, under virtual time.
///
/// Values are lost (up to 30 %), doubled, reordered and cut, ATT_MTU changes, ready signals go astray, connections end at
/// any value, and both sides then go on over a new connection. Every message that was accepted arrives once and intact,
/// or its sender is told; none hangs.
@Suite(.tags(.channel, .sequenced, .recovery, .slow), .timeLimit(.minutes(20))) struct SequencedRadioTests {
    /// `scripts/sanitize sequenced` runs 100 000.
    private static let count =
        ProcessInfo.processInfo.environment["FERRY_RADIO_SCHEDULES"].flatMap(UInt64.init) ?? 400

    @Test func everyMessageArrivesOnceOrIsTold() async throws {
        let count = Self.count
        let tally = try await withThrowingTaskGroup(of: RadioTally.self) { group in
            for part in 0..<UInt64(2) {
                group.addTask {
                    var tally = RadioTally()
                    for seed in part * count / 2..<(part + 1) * count / 2 {
                        // Others have their turn.
                        await Task.yield()
                        var schedule = SequencedRadioSchedule(seed: seed)
                        // The radio's timers hold it until they are due, and the time holds them.
                        defer { schedule.time.advance(by: .seconds(100)) }
                        guard let violation = try await schedule.run(&tally) else { continue }
                        Issue.record("\(violation); \(try await Self.smallest(seed))")
                        break
                    }
                    return tally
                }
            }
            var total = RadioTally()
            for try await part in group { total.add(part) }
            return total
        }
        print("\(count) schedules over the virtual radio: \(tally)")
        // The schedules have to reach what they are for.
        #expect(tally.delivered > Int(count))
        #expect(tally.connections > Int(count) + Int(count) / 10)
        for kind in [LoopbackRadio.Faults.Kind.lose, .double, .reorder, .truncate, .changeMTU, .disconnect] {
            #expect(tally.faults[kind, default: 0] > Int(count) / 50, "\(kind)")
        }
        #expect(tally.crashes > Int(count) / 100)
    }
}

extension SequencedRadioTests {
    /// The fewest messages and kinds of fault with which a seed still fails.
    private static func smallest(_ seed: UInt64) async throws -> String {
        var tally = RadioTally()
        func fails(_ messages: Int, _ without: Set<LoopbackRadio.Faults.Kind>) async throws -> Bool {
            var schedule = SequencedRadioSchedule(seed: seed, messages: messages, without: without)
            return try await schedule.run(&tally) != nil
        }
        var messages = 8
        var without: Set<LoopbackRadio.Faults.Kind> = []
        for fewer in 1..<8 where try await fails(fewer, without) {
            messages = fewer
            break
        }
        for kind in LoopbackRadio.Faults.Kind.allCases where try await fails(messages, without.union([kind])) {
            without.insert(kind)
        }
        let kinds = LoopbackRadio.Faults.Kind.allCases.filter { !without.contains($0) }.map(\.rawValue)
        return "seed \(seed), \(messages) messages at most, faults: \(kinds.joined(separator: ", "))"
    }
}

/// What a run of schedules has met.
struct RadioTally {
    var delivered = 0
    var cancelled = 0
    /// Messages whose sender was told that they may not have arrived.
    var told = 0
    var connections = 0
    var crashes = 0
    var faults: [LoopbackRadio.Faults.Kind: Int] = [:]

    mutating func add(_ other: RadioTally) {
        delivered += other.delivered
        cancelled += other.cancelled
        told += other.told
        connections += other.connections
        crashes += other.crashes
        faults.merge(other.faults, uniquingKeysWith: +)
    }
}

/// One schedule: what is sent, how, and what goes wrong.
struct SequencedRadioSchedule {
    private var random: SplitMix64
    private let configuration: LoopbackRadio.Configuration
    private let layout: GATTConfiguration
    let time = VirtualTime()
    private let mostMessages: Int

    init(seed: UInt64, messages: Int = 8, without: Set<LoopbackRadio.Faults.Kind> = []) {
        mostMessages = messages
        random = SplitMix64(seed: seed)
        var faults = LoopbackRadio.Faults(seed: random.next())
        let limits: [(LoopbackRadio.Faults.Kind, Double)] = [
            (.lose, 0.3), (.double, 0.1), (.reorder, 0.1), (.truncate, 0.1), (.changeMTU, 0.05), (.disconnect, 0.02),
            (.readyEarly, 0.3), (.readyLate, 0.3), (.readyNever, 0.1),
        ]
        for (kind, limit) in limits where Bool.random(using: &random) {
            let probability = Double.random(in: 0...limit, using: &random)
            if !without.contains(kind) { faults.probabilities[kind] = probability }
        }
        faults.wrongMTU = Int.random(in: 0..<4, using: &random) == 0 && !without.contains(.wrongMTU) ? 517 : nil
        configuration = .drawn(with: faults, using: &random)
        layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16),
            subscription: Int.random(in: 0..<8, using: &random) == 0 ? .indicate : .notify,
            writeType: Int.random(in: 0..<8, using: &random) == 0 ? .withResponse : .withoutResponse)
    }

    /// Returns the first broken promise.
    mutating func run(_ tally: inout RadioTally) async throws -> String? {
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let server = GATTTransport(adapter: radio.makeAdapter(), configuration: layout, time: time)
        let listener = try await passing { try await server.listen() }
        defer { listener.close() }
        let client = GATTTransport(adapter: radio.makeAdapter(), configuration: layout, time: time)
        var sides: [Side] = []
        let log = MessageLog()
        var waited = Duration.zero
        var enqueued = 0
        let messages = min(mostMessages, Int.random(in: 1...8, using: &random))
        // Patience is without end here, so that a session never gives up on a bad link: what is lost, is lost for good.
        while waited < .seconds(4 * 3600) {
            if sides.isEmpty || sides.contains(where: \.isSuspended) {
                if let (near, far) = try await connect(client, listener) {
                    tally.connections += 1
                    let links = [near, far]
                    if sides.isEmpty {
                        sides = links.enumerated().map { Side($0.offset, $0.element, log, time, &random) }
                    } else {
                        // Now and then a side has lost its memory meanwhile.
                        let forgetful = Int.random(in: 0..<20, using: &random)
                        for index in 0...1 where forgetful != index { sides[index].adopt(links[index]) }
                        if forgetful < 2 {
                            tally.crashes += 1
                            sides[forgetful].crash()
                            sides[forgetful] = Side(forgetful, links[forgetful], log, time, &random)
                        }
                    }
                }
            }
            if !sides.isEmpty, enqueued < messages, Int.random(in: 0..<3, using: &random) > 0 {
                sides[Int.random(in: 0...1, using: &random)].send(&random)
                enqueued += 1
            }
            for side in sides where Int.random(in: 0..<20, using: &random) == 0 { side.cancelOne(&random) }
            for side in sides { side.read() }
            if enqueued == messages, log.isComplete { break }
            let step = Duration.milliseconds(
                Int.random(in: 0..<30, using: &random) == 0 ? 30_000 : Int.random(in: 1...200, using: &random))
            time.advance(by: step)
            waited += step
        }
        for side in sides { side.read() }
        let violation = log.isComplete ? log.violation : "a send hangs"
        tally.add(log.tally)
        for (kind, count) in radio.injectedFaults { tally.faults[kind, default: 0] += count }
        for side in sides { side.core.finish(FerryError(.closed, "The schedule is over.")) }
        return violation
    }

    /// Both ends of a connection, or nil when it ended before the link was there.
    private func connect(_ client: GATTTransport, _ listener: LinkListener) async throws -> (any Link, any Link)? {
        try await passing {
            do {
                let near = try await client.connect(timeout: .seconds(3600))
                for await far in listener.links { return (near, far) }
                return nil
            } catch let error as FerryError where error.code == .disconnected || error.code == .timedOut {
                return nil
            }
        }
    }

    /// What `body` returns, while time passes.
    private func passing<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try time.run(body)
    }
}

/// One end: its channel, and whether it waits for a connection.
private final class Side: Sendable {
    let core: ChannelCore
    let link: ResumableLink
    private let index: Int
    private let log: MessageLog
    private let suspended: Flag

    init(_ index: Int, _ connection: any Link, _ log: MessageLog, _ time: VirtualTime, _ random: inout SplitMix64) {
        self.index = index
        self.log = log
        let flag = Flag()
        suspended = flag
        link = ResumableLink(over: connection) { event in
            switch event {
            case .suspended: flag.isSet.store(true, ordering: .releasing)
            case .ended: flag.isSet.store(false, ordering: .releasing)
            case .firstChunk, .resumed: break
            }
        }
        var framing = SequencedFraming.Configuration()
        framing.window = Int.random(in: 1...64, using: &random)
        framing.maximumTimeouts = 1000
        var limits = Limits()
        limits.inboundStallTimeout = .seconds(86_400)
        limits.outboundStallTimeout = .seconds(86_400)
        let id = UInt32(truncatingIfNeeded: random.next())
        core = ChannelCore(
            link: link, session: SequencedFraming(framing) { id }.makeSession(limits: limits), chunkSize: .max,
            limits: limits, time: time)
        core.open()
    }

    /// Set by the link when it is without a connection.
    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    var isSuspended: Bool { suspended.isSet.load(ordering: .acquiring) }

    /// Takes a new connection.
    func adopt(_ connection: any Link) {
        suspended.isSet.store(false, ordering: .releasing)
        if !link.adopt(connection) { connection.close() }
    }

    /// The app ends, and whoever waits for a message knows.
    func crash() {
        read()
        core.finish(FerryError(.closed, "The app has crashed."))
    }

    func send(_ random: inout SplitMix64) {
        let size = Int.random(in: 0...(1 << Int.random(in: 0...11, using: &random)), using: &random)
        let (id, payload) = log.accept(from: index, random.bytes(size))
        let options = SendOptions(priority: .init(rawValue: UInt8.random(in: 0...3, using: &random)))
        core.submit(payload, as: id, options: options) { [log, index] in log.settle(index, id, $0) }
    }

    func cancelOne(_ random: inout SplitMix64) {
        guard let id = log.waiting(index).randomElement(using: &random) else { return }
        core.cancel(id)
    }

    func read() {
        while let delivery = core.take() {
            switch delivery {
            case .message(let payload): log.deliver(payload, to: index)
            case .failure: break
            case .end: return
            }
        }
    }
}

/// What was accepted, what became of it, and what arrived.
private final class MessageLog: Sendable {
    private struct Entry {
        var payload: [UInt8]
        var outcome: Result<Void, FerryError>?
        var deliveries = 0
    }

    private struct State {
        var entries: [[MessageID: Entry]] = [[:], [:]]
        var violation: String?
    }

    private let state = Mutex(State())

    /// Notes a message, which begins with its side and number, so that no two are alike.
    func accept(from side: Int, _ bytes: [UInt8]) -> (MessageID, [UInt8]) {
        state.withLock { state in
            let number = state.entries[side].count
            let payload = [UInt8(side), UInt8(truncatingIfNeeded: number)] + bytes
            let id = MessageID(rawValue: UInt64(number))
            state.entries[side][id] = Entry(payload: payload)
            return (id, payload)
        }
    }

    func settle(_ side: Int, _ id: MessageID, _ outcome: Result<Void, FerryError>) {
        state.withLock { state in
            if state.entries[side][id]?.outcome != nil { state.violation = "a send was completed twice" }
            state.entries[side][id]?.outcome = outcome
        }
    }

    func deliver(_ payload: [UInt8], to side: Int) {
        state.withLock { state in
            let sender = 1 - side
            guard let id = state.entries[sender].first(where: { $0.value.payload == payload })?.key else {
                state.violation = "\(payload.count) bytes arrived that nobody sent"
                return
            }
            state.entries[sender][id]?.deliveries += 1
        }
    }

    func waiting(_ side: Int) -> [MessageID] {
        state.withLock { $0.entries[side].filter { $0.value.outcome == nil }.keys.sorted() }
    }

    var isComplete: Bool { state.withLock { $0.entries.allSatisfy { $0.values.allSatisfy { $0.outcome != nil } } } }

    /// The first broken promise.
    var violation: String? {
        state.withLock { state in
            for entry in state.entries.flatMap(\.values) {
                if entry.deliveries > 1 { return "a message arrived \(entry.deliveries) times" }
                switch entry.outcome {
                case .success where entry.deliveries == 0: return "a message is told as sent and did not arrive"
                case .failure(let error) where error.fate == nil: return "a send failed without a fate: \(error)"
                case .failure(let error) where error.fate != .mayHaveArrived && entry.deliveries > 0:
                    return "a message arrived although it was told as \(String(describing: error.fate)): \(error)"
                default: break
                }
            }
            return state.violation
        }
    }

    var tally: RadioTally {
        state.withLock { state in
            var tally = RadioTally()
            for entry in state.entries.flatMap(\.values) {
                tally.delivered += entry.deliveries
                guard case .failure(let error)? = entry.outcome else { continue }
                if error.code == .cancelled { tally.cancelled += 1 } else { tally.told += 1 }
            }
            return tally
        }
    }
}
