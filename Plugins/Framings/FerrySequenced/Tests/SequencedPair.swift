import Ferry
import FerrySequenced
import FerryTesting

/// Two sessions and the chunks under way between them. Synchronous: whoever tests decides what happens to each chunk, and
/// time is a number.
struct SequencedPair {
    /// What became of one message.
    struct Fate {
        var payload: [UInt8]
        var deliveries = 0
        var isSent = false
        var isFailed = false
        var isCancelled = false

        var isSettled: Bool { isSent || isFailed || isCancelled }
    }

    var sessions: [SequencedFraming.Session]
    /// Chunks under way: `wires[s]` holds those that side `s` has sent.
    var wires: [[[UInt8]]] = [[], []]
    /// `fates[s]` holds the messages of side `s` by their number.
    var fates: [[Fate]] = [[], []]
    /// Sizes of delivered messages that have not been consumed, by receiving side.
    var unread: [[Int]] = [[], []]
    var receiveFailures = [0, 0]
    var now = Timestamp.zero
    var chunkSize = [20, 20]
    /// How many chunks the link of a side takes before it refuses; nil for any number.
    var space: [Int?] = [nil, nil]
    var isOpen = false
    /// What ended a session; the pair is of no use then.
    var ended: FerryError?
    /// The first broken promise.
    var violation: String?

    init(_ configurations: [SequencedFraming.Configuration], limits: Limits = patient) {
        sessions = configurations.enumerated().map { side, configuration in
            SequencedFraming(configuration) { UInt32(1000 * (side + 1)) }.makeSession(limits: limits)
        }
    }

    /// Clocks jump in some tests, and chunks wait for as long as it pleases: silence ends nothing.
    static let patient: Limits = {
        var limits = Limits()
        limits.inboundStallTimeout = .seconds(1 << 30)
        return limits
    }()

    // MARK: Messages

    /// A payload that says whose it is: side, number, and a pattern.
    static func payload(_ side: Int, _ number: Int, count: Int) -> [UInt8] {
        let seed = UInt8(truncatingIfNeeded: side * 101 + number * 31)
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
            for index in 0..<count { bytes[index] = seed &+ UInt8(truncatingIfNeeded: index &* 7) }
            if count > 2 {
                bytes[1] = UInt8(truncatingIfNeeded: number)
                bytes[2] = UInt8(truncatingIfNeeded: number >> 8)
            }
            initialized = count
        }
    }

    mutating func send(from side: Int, count: Int, options: SendOptions = SendOptions()) {
        let number = fates[side].count
        let payload = Self.payload(side, number, count: count)
        fates[side].append(Fate(payload: payload))
        do {
            try sessions[side].enqueue(
                payload, as: MessageID(rawValue: UInt64(number)), options: options, at: now)
        } catch {
            fates[side][number].isFailed = true
        }
    }

    mutating func cancel(from side: Int, _ number: Int) {
        guard !fates[side][number].isSettled else { return }
        if sessions[side].cancel(MessageID(rawValue: UInt64(number)), at: now) {
            fates[side][number].isCancelled = true
        }
    }

    mutating func consume(_ side: Int) {
        for count in unread[side] { sessions[side].consume(count, at: now) }
        unread[side] = []
    }

    // MARK: Links

    mutating func open() {
        isOpen = true
        for side in 0...1 { sessions[side].linkDidOpen(at: now) }
    }

    mutating func close() {
        isOpen = false
        wires = [[], []]
        for side in 0...1 { sessions[side].linkDidClose(at: now) }
        for side in 0...1 { drain(side) }
    }

    /// A side begins anew, as after a crash: what it was sending is lost with it, and its app knows.
    mutating func replace(_ side: Int, _ configuration: SequencedFraming.Configuration, id: UInt32) {
        for number in fates[side].indices where !fates[side][number].isSettled { fates[side][number].isFailed = true }
        sessions[side] = SequencedFraming(configuration) { id }.makeSession(limits: Self.patient)
        unread[side] = []
    }

    /// Lets a side send what it can.
    mutating func pump(_ side: Int) {
        guard isOpen, ended == nil else { return }
        do {
            var outcome = Transmission.idle
            repeat {
                var space = space[side]
                var sent: [UInt8]?
                outcome = try sessions[side].transmit(atMost: chunkSize[side], at: now) { chunk in
                    guard space != 0 else { return false }
                    space = space.map { $0 - 1 }
                    sent = chunk.withUnsafeBytes { Array($0) }
                    return true
                }
                if let sent {
                    if sent.count > chunkSize[side] || sent.isEmpty { note("a chunk of \(sent.count) bytes") }
                    wires[side].append(sent)
                    self.space[side] = space
                }
                if (sent != nil) != (outcome == .accepted) { note("transmit answered \(outcome)") }
            } while outcome == .accepted
        } catch {
            ended = error
        }
        drain(side)
    }

    /// Hands the chunk at `index` of side `side`'s wire to the other side.
    mutating func deliver(from side: Int, at index: Int = 0, keeping: Bool = false, cutTo count: Int? = nil) {
        guard wires[side].indices.contains(index), ended == nil else { return }
        var chunk = wires[side][index]
        if !keeping { wires[side].remove(at: index) }
        if let count { chunk = Array(chunk.prefix(count)) }
        do {
            try sessions[1 - side].receive(chunk.span.bytes, at: now)
        } catch {
            ended = error
        }
        drain(1 - side)
    }

    /// Carries chunks to and fro until neither side has any.
    mutating func exchange() {
        repeat {
            for side in 0...1 {
                pump(side)
                while !wires[side].isEmpty, ended == nil { deliver(from: side) }
            }
            pump(0)
        } while ended == nil && !wires[0].isEmpty
    }

    mutating func wake(_ side: Int) {
        guard ended == nil else { return }
        do { try sessions[side].wake(at: now) } catch { ended = error }
        drain(side)
    }

    var nextDeadline: Timestamp? {
        [sessions[0].deadline, sessions[1].deadline].compactMap { $0 }.min()
    }

    mutating func drain(_ side: Int) {
        while let event = sessions[side].nextEvent() {
            switch event {
            case .received(let payload): received(payload, by: side)
            case .progress(let id, let count):
                let fate = fates[side][Int(id.rawValue)]
                if count > fate.payload.count { note("progress of \(count) of \(fate.payload.count) bytes") }
            case .sent(let id):
                let number = Int(id.rawValue)
                if fates[side][number].isSettled { note("message \(number) of \(side) is settled twice") }
                fates[side][number].isSent = true
            case .failed(let id, _):
                let number = Int(id.rawValue)
                if fates[side][number].isSettled { note("message \(number) of \(side) is settled twice") }
                fates[side][number].isFailed = true
            case .receiveFailed: receiveFailures[side] += 1
            }
        }
    }

    private mutating func received(_ payload: [UInt8], by side: Int) {
        unread[side].append(payload.count)
        let sender = 1 - side
        // Messages of less than three bytes may look alike: whichever may still come will do.
        let matching = fates[sender].indices.filter { number in
            fates[sender][number].deliveries == 0 && fates[sender][number].payload == payload
        }
        let likely = matching.first { !fates[sender][$0].isCancelled && !fates[sender][$0].isFailed }
        let possible = matching.first { !fates[sender][$0].isCancelled }
        guard let number = likely ?? possible ?? matching.first else {
            return note("side \(side) got \(payload.count) bytes that are nobody's, or twice")
        }
        if fates[sender][number].isCancelled { note("message \(number) arrived although it was cancelled") }
        fates[sender][number].deliveries += 1
    }

    mutating func note(_ what: String) {
        if violation == nil { violation = what }
    }

    // MARK: The end

    /// Runs without faults until everything is settled, and checks the promise: once, or told.
    mutating func settle(steps: Int = 20_000) {
        space = [nil, nil]
        if !isOpen, ended == nil { open() }
        var left = steps
        while ended == nil, left > 0 {
            left -= 1
            pump(0)
            pump(1)
            consume(0)
            consume(1)
            if !wires[0].isEmpty || !wires[1].isEmpty {
                for side in 0...1 { for _ in wires[side] { deliver(from: side) } }
                continue
            }
            if fates.allSatisfy({ $0.allSatisfy(\.isSettled) }) && isQuiet { break }
            guard let deadline = nextDeadline else { break }
            now = max(now, deadline)
            wake(0)
            wake(1)
        }
        if left == 0 { note("it does not come to an end") }
        check()
    }

    private var isQuiet: Bool { nextDeadline == nil }

    /// Every message that is told as sent has arrived once; none has arrived twice; none is left untold.
    mutating func check(isFinal: Bool = true) {
        for side in 0...1 {
            for (number, fate) in fates[side].enumerated() {
                if fate.deliveries > 1 { note("message \(number) of \(side) arrived \(fate.deliveries) times") }
                if fate.isSent, fate.deliveries != 1 { note("message \(number) of \(side) is told as sent and is not") }
                if isFinal, ended == nil, !fate.isSettled { note("message \(number) of \(side) is left hanging") }
            }
        }
    }
}
