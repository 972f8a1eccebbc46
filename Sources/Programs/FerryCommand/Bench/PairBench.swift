import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import FerryTransports
import Synchronization

/// One side of a measurement between two processes, or two machines: `ferry bench --serve` and `--connect`.
struct PairBench: Sendable {
    let transport: NamedTransport
    var radio = RadioOptions()
    let framing: FramingChoice
    let runs: [PairMessage.Run]
    let isJSON: Bool

    /// How long the other side may take to answer.
    private static let patience = Duration.seconds(30)

    /// E07F0AE8-00BB-47F5-94F4-4A7174EA3060 and ...3061: the layout of a measurement over GATT.
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3060 as UInt128),
        characteristic: BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3061 as UInt128))

    /// What `--json` prints, one a line.
    struct Line: Encodable {
        var event: String
        var direction: DirectionChoice?
        var messageSize: Int?
        var seconds: Double?
        var goodput: Double?
        var messages: Int?
        var bytes: Int?
        var roundTrip: Double?
        var peer: String?
        var chunkSize: Int?
        var reason: String?
    }

    // MARK: Serving

    /// Answers each side that connects, one after the other, until the task is cancelled.
    func serve() async throws {
        let opened = try transport.open(framing.layout(in: Self.layout), radio)("server")
        let listener = try await opened.listen()
        defer { listener.close() }
        listener.onInterruption { note("ferry: \($0?.message ?? "Listening again.")") }
        let name = transport.chosenName(listening: opened) ?? "\(transport)"
        note("ferry: Waiting for ferry bench --connect at \(name).")
        let failure = Mutex<(any Error)?>(nil)
        let acceptor = Acceptor(AcceptingPlan.Configuration(places: 1))
        await acceptor.serve(listener.links) { comer in
            do { try await visit(comer) } catch {
                // What cannot be printed ends it; a visit that fails does not.
                failure.withLock { $0 = $0 ?? error }
                listener.close()
                acceptor.closeAll()
            }
        }
        try Task.checkCancellation()
        throw failure.withLock { $0 } ?? listener.interruption
            ?? FerryError(.transportUnavailable, "\(transport) has stopped listening.")
    }

    /// Answers one that has connected. It has the place once it has asked for something.
    private func visit(_ comer: Acceptor.Comer) async throws {
        let link = comer.link
        let channel: PairChannel
        do throws(FerryError) { channel = try PairChannel(over: link, framing) } catch { return link.close() }
        defer { channel.close() }
        comer.onReplaced { _ in channel.close() }
        var hasGreeted = false
        do {
            try await withTaskCancellationHandler {
                while true {
                    let message = try await channel.next(within: Self.patience)
                    if !hasGreeted {
                        guard message == .ping || message.isRun else { throw Self.outOfTurn }
                        try comer.greeted(as: link.peer)
                        hasGreeted = true
                        try say(Line(event: "visit", peer: "\(link.peer)", chunkSize: link.maximumChunkSize)) {
                            "\(link.peer) is here; chunks of \(link.maximumChunkSize) bytes"
                        }
                    }
                    switch message {
                    case .ping: try await channel.send(.ping)
                    case .run(let run):
                        comer.proved()
                        try await answer(run, channel)
                    case .end: return
                    case .data, .result: throw Self.outOfTurn
                    }
                }
            } onCancel: {
                channel.close()
            }
        } catch let error as FerryError {
            // A connection that has said nothing is no visit.
            guard !Task.isCancelled, hasGreeted else { return }
            try say(Line(event: "failed", reason: error.message)) { "The visit has failed: \(error.message)" }
        }
    }

    private func answer(_ run: PairMessage.Run, _ channel: PairChannel) async throws {
        switch run.direction {
        case .write:
            let result = try await receive(run, channel)
            try await channel.send(.result(result))
            try summarize(run, result)
        case .notify:
            try await send(run, channel)
            guard case .result(let result) = try await channel.next(within: Self.patience) else { throw Self.outOfTurn }
            try summarize(run, result)
        }
    }

    // MARK: Connecting

    /// Takes the requested measurements one after the other.
    func connect(timeout: Duration) async throws {
        let opened = try transport.open(framing.layout(in: Self.layout), radio)("client")
        let wait = WaitNotice.schedule(
            "Waiting \(WaitNotice.limit(timeout)) to connect to ferry bench --serve at \(transport).")
        defer { wait.cancel() }
        let link = try await opened.connect(timeout: timeout)
        wait.cancel()
        let channel = try PairChannel(over: link, framing)
        defer { channel.close() }
        try await withTaskCancellationHandler {
            try say(Line(event: "connected", peer: "\(link.peer)", chunkSize: link.maximumChunkSize)) {
                "connected to \(link.peer); chunks of \(link.maximumChunkSize) bytes"
            }
            let trip = try await roundTrip(channel)
            try say(Line(event: "roundTrip", roundTrip: trip * 1000)) {
                "round trip of one byte: \(number(trip * 1000, 2)) ms, the median of 9"
            }
            for run in runs {
                try await channel.send(.run(run))
                switch run.direction {
                case .write:
                    try await send(run, channel)
                    guard case .result(let result) = try await channel.next(within: Self.patience) else {
                        throw Self.outOfTurn
                    }
                    try summarize(run, result)
                case .notify:
                    let result = try await receive(run, channel)
                    try await channel.send(.result(result))
                    try summarize(run, result)
                }
            }
            await leave(channel)
        } onCancel: {
            channel.close()
        }
    }

    /// Has the serving side end the connection. This process would be gone before its adapter had ended it, and the other side
    /// would wait until the link is lost.
    private func leave(_ channel: PairChannel) async {
        do {
            try await channel.send(.end)
            _ = try await channel.next(within: .seconds(10))
        } catch {}  // Everything has been measured.
        channel.close()
    }

    private func roundTrip(_ channel: PairChannel) async throws -> Double {
        var trips: [Double] = []
        for _ in 0..<9 {
            let start = channel.time.now
            try await channel.send(.ping)
            guard try await channel.next(within: Self.patience) == .ping else { throw Self.outOfTurn }
            trips.append((channel.time.now - start) / .seconds(1))
        }
        return trips.sorted()[4]
    }

    // MARK: Both

    private static let outOfTurn = FerryError(
        .decodingFailed,
        "The other side has said something out of turn. Run the same version on both sides.")

    private func send(_ run: PairMessage.Run, _ channel: PairChannel) async throws {
        let filler = SampleText.bytes(count: run.messageSize, seed: 1)
        let message = PairMessage.data(count: run.messageSize).encoded(filler: filler)
        let start = channel.time.now
        var meter = PairMeter(start: start)
        while channel.time.now < start + .seconds(run.seconds) {
            try await channel.send(encoded: message)
            meter.take(message.count, at: channel.time.now)
            try tell(meter.line(at: channel.time.now), run, "sent")
        }
        try await channel.send(.end)
    }

    private func receive(_ run: PairMessage.Run, _ channel: PairChannel) async throws -> PairMessage.Result {
        var meter = PairMeter(start: channel.time.now)
        while true {
            // A message may take long on a slow link.
            switch try await channel.next(within: Self.patience + .seconds(run.seconds)) {
            case .data(let count):
                meter.take(count, at: channel.time.now)
                try tell(meter.line(at: channel.time.now), run, "received")
            case .end: return meter.result
            default: throw Self.outOfTurn
            }
        }
    }

    private func tell(_ progress: PairProgress?, _ run: PairMessage.Run, _ what: String) throws {
        guard let progress else { return }
        try say(
            Line(
                event: what, direction: run.direction, messageSize: run.messageSize, seconds: progress.seconds,
                goodput: progress.goodput, messages: progress.messages)
        ) { progress.text(what) }
    }

    private func summarize(_ run: PairMessage.Run, _ result: PairMessage.Result) throws {
        try say(
            Line(
                event: "result", direction: run.direction, messageSize: run.messageSize, seconds: result.seconds,
                goodput: result.goodput, messages: result.messages, bytes: result.bytes)
        ) {
            "\(run.direction.rawValue), messages of \(run.messageSize) bytes: \(number(result.goodput, 1)) kbit/s, "
                + "\(result.messages) messages in \(number(result.seconds, 2)) s"
        }
    }

    private func say(_ line: Line, _ text: () -> String) throws {
        if isJSON { try Output.line(line) } else { try Output.print(text() + "\n") }
    }
}

/// A channel of messages of ``PairMessage``, whose waits end.
private final class PairChannel: Sendable {
    private let channel: MessageChannel<[UInt8], [UInt8]>
    private let isOverdue = Atomic(false)
    let time = SystemTime()

    init(over link: any Link, _ framing: FramingChoice) throws(FerryError) {
        channel = try framing.channel(over: link)
    }

    func send(_ message: PairMessage) async throws(FerryError) { try await channel.send(message.encoded()) }
    func send(encoded message: [UInt8]) async throws(FerryError) { try await channel.send(message) }

    /// The next message.
    ///
    /// - Throws: `timedOut`, why the channel has ended, or that the other side has closed it: the side that is through says so first.
    func next(within timeout: Duration) async throws(FerryError) -> PairMessage {
        let timer = time.schedule(at: time.now + timeout) { [self] in
            isOverdue.store(true, ordering: .relaxed)
            channel.close()
        }
        defer { timer.cancel() }
        var messages = channel.messages.makeAsyncIterator()
        guard let bytes = try await messages.next() else {
            guard isOverdue.load(ordering: .relaxed) else {
                throw FerryError(.disconnected, "The other side has left before all was measured.")
            }
            throw FerryError(.timedOut, "The other side has said nothing for \(timeout).")
        }
        return try PairMessage(bytes)
    }

    func close() { channel.close() }
}
