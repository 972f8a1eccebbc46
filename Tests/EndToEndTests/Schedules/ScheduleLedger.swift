import Ferry
import Synchronization

/// What was sent, what became of it as its sender was told, and what arrived: the promises are checked against each other.
final class ScheduleLedger: Sendable {
    struct Message {
        let number: Int
        /// The channel that it was sent on.
        let channel: Int
        let from: Station
        let to: Station
        let payload: [UInt8]
        var result: Result<Void, FerryError>?
        /// Where it arrived, and when: the turn among all that arrived.
        var arrivals: [(station: Station, channel: Int, turn: Int)] = []

        var fate: MessageFate? {
            if case .failure(let error)? = result { error.fate } else { nil }
        }
        var isSent: Bool { if case .success? = result { true } else { false } }
    }

    fileprivate struct State {
        var messages: [Message] = []
        var channels = 0
        var turns = 0
        var violations: [String] = []
        var tally = ScheduleTally()
        /// Stations whose app gave up what had arrived for it without reading it.
        var careless: Set<Station> = []
        var journal: [String]?
    }

    private let state: Mutex<State>
    private let time: VirtualTime

    init(_ time: VirtualTime, isTold: Bool) {
        self.time = time
        state = Mutex(State(journal: isTold ? [] : nil))
    }

    // MARK: What happens

    func openChannel() -> Int {
        state.withLock { state in
            state.channels += 1
            return state.channels
        }
    }

    /// A message of so many bytes, or a few more: text that begins with its number, and has markers of a framing in it.
    func write(_ size: Int, on channel: Int, from: Station, to: Station) -> Message {
        state.withLock { state in
            let number = state.messages.count
            var payload = [UInt8]("\(number):".utf8)
            let pattern: [UInt8] = [69, 79, 77, UInt8(97 + number % 26), UInt8(65 + number / 26 % 26)]
            while payload.count < size { payload.append(pattern[payload.count % pattern.count]) }
            let message = Message(number: number, channel: channel, from: from, to: to, payload: payload)
            state.messages.append(message)
            return message
        }
    }

    func settle(_ message: Message, _ result: Result<Void, FerryError>) {
        state.withLock { state in
            if state.messages[message.number].result != nil {
                state.violations.append("message \(message.number) is settled twice")
            }
            state.messages[message.number].result = result
        }
        switch result {
        case .success: note("\(message.from) has sent \(message.number)")
        case .failure(let error):
            note(
                "\(message.from) could not send \(message.number): \(error.code), \(error.fate?.rawValue ?? "no fate")")
        }
    }

    func receive(_ payload: [UInt8], at station: Station, on channel: Int) {
        note("\(station) got \(payload.count) bytes: \(String(decoding: payload.prefix(8), as: UTF8.self))")
        state.withLock { state in
            let digits = payload.prefix { $0 != UInt8(ascii: ":") }
            guard let number = Int(String(decoding: digits, as: UTF8.self)), state.messages.indices.contains(number),
                state.messages[number].payload == payload
            else {
                return state.violations.append("\(station) got \(payload.count) bytes that nobody sent")
            }
            state.turns += 1
            state.messages[number].arrivals.append((station, channel, state.turns))
        }
    }

    func beCareless(_ station: Station) { state.withLock { _ = $0.careless.insert(station) } }
    func tally(_ change: (inout ScheduleTally) -> Void) { state.withLock { change(&$0.tally) } }
    func complain(_ what: String) { state.withLock { $0.violations.append(what) } }

    func note(_ line: @autoclosure () -> String) {
        state.withLock { state in
            if state.journal != nil { state.journal?.append("\(time.now - .zero) \(line())") }
        }
    }

    var journal: [String] { state.withLock { $0.journal ?? [] } }

    // MARK: What was promised

    /// - Parameters:
    ///   - acknowledges: whether success means that the message has arrived.
    ///   - isCalm: whether nothing went wrong, so that all that was sent must have arrived.
    func check(acknowledges: Bool, isCalm: Bool) -> (violations: [String], tally: ScheduleTally) {
        state.withLock { state in
            for message in state.messages {
                state.check(message, mustHaveArrived: acknowledges || isCalm)
            }
            if !acknowledges { state.checkOrder() }
            return (state.violations, state.tally)
        }
    }
}

extension ScheduleLedger.State {
    fileprivate mutating func check(_ message: ScheduleLedger.Message, mustHaveArrived: Bool) {
        let name = "message \(message.number) of \(message.payload.count) bytes from \(message.from) to \(message.to)"
        let arrivals = message.arrivals
        if arrivals.count > 1 { violations.append("\(name) arrived \(arrivals.count) times") }
        for arrival in arrivals where arrival.station != message.to {
            violations.append("\(name) reached \(arrival.station)")
        }
        switch (message.result, message.fate) {
        case (nil, _): violations.append("the send of \(name) has not returned")
        case (.failure(let error), nil): violations.append("\(name) has failed without a fate: \(error)")
        case (_, .nothingSent), (_, .takenBack):
            if !arrivals.isEmpty { violations.append("\(name) arrived; its sender was told \(message.fate as Any)") }
        case (_, .mayHaveArrived): break
        case (.success, _):
            if arrivals.isEmpty, mustHaveArrived, !careless.contains(message.to) {
                violations.append("\(name) was sent, its sender was told, and it has not arrived")
            }
        }
        tally.count(message)
    }

    /// What one channel sent arrives in order, on one channel.
    fileprivate mutating func checkOrder() {
        var latest: [Int: (channel: Int, turn: Int)] = [:]
        for message in messages {
            guard let arrival = message.arrivals.first else { continue }
            if let former = latest[message.channel],
                former.channel != arrival.channel || former.turn > arrival.turn
            {
                violations.append("message \(message.number) arrived before an earlier one, or on another channel")
            }
            latest[message.channel] = (arrival.channel, arrival.turn)
        }
    }
}

/// What schedules have met: they have to reach what they are for.
struct ScheduleTally: CustomStringConvertible {
    var sent = 0
    var arrived = 0
    var nothingSent = 0
    var takenBack = 0
    var mayHaveArrived = 0
    /// Of those, how many had arrived.
    var hadArrived = 0
    var channels = 0
    var resumptions = 0
    /// Channels with the station that only offers the same service.
    var strangers = 0
    var untaken = 0

    mutating func count(_ message: ScheduleLedger.Message) {
        if message.isSent { sent += 1 }
        if !message.arrivals.isEmpty { arrived += 1 }
        switch message.fate {
        case .nothingSent: nothingSent += 1
        case .takenBack: takenBack += 1
        case .mayHaveArrived:
            mayHaveArrived += 1
            if !message.arrivals.isEmpty { hadArrived += 1 }
        case nil: break
        }
    }

    static func += (total: inout ScheduleTally, other: ScheduleTally) {
        total.sent += other.sent
        total.arrived += other.arrived
        total.nothingSent += other.nothingSent
        total.takenBack += other.takenBack
        total.mayHaveArrived += other.mayHaveArrived
        total.hadArrived += other.hadArrived
        total.channels += other.channels
        total.resumptions += other.resumptions
        total.strangers += other.strangers
        total.untaken += other.untaken
    }

    var description: String {
        "\(channels) channels, \(strangers) of them with the stranger, went on \(resumptions) times, \(untaken) links were given "
            + "up untaken; \(sent) messages were sent, \(arrived) arrived, \(nothingSent) had not begun, \(takenBack) were "
            + "taken back, \(mayHaveArrived) may have arrived, and \(hadArrived) of those had"
    }
}
