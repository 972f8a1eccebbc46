import CFerry
import Ferry
import FerrySequenced
import FerryTesting

/// What a call of ferry.h does, and the same session used from Swift: each answers in words, so that two can be compared.
protocol Side {
    mutating func open(_ now: Int64) -> String
    mutating func close(_ now: Int64) -> String
    mutating func enqueue(_ payload: [UInt8], _ now: Int64) -> String
    mutating func cancel(_ number: UInt64, _ now: Int64) -> String
    mutating func chunk(atMost size: Int, _ now: Int64) -> (answer: String, bytes: [UInt8]?)
    mutating func receive(_ chunk: [UInt8], _ now: Int64) -> String
    mutating func events(_ now: Int64) -> [String]
    mutating func wake(_ now: Int64) -> String
    var deadline: String { get }
}

/// Which framing a session has.
enum Choice: CaseIterable {
    case endOfMessage, varint, little16, sequenced
}

/// Limits of both sides: small, so that schedules reach them.
let smallLimits = ferry_limits(
    message_bytes: 900, outbound_bytes: 2000, outbound_messages: 6, inbound_bytes: 4096,
    stall_nanoseconds: 5_000_000_000)

/// A session behind ferry.h.
final class CSide: Side {
    private(set) var session: OpaquePointer?

    convenience init(_ choice: Choice, limits: ferry_limits = smallLimits, identifier: UInt32 = 7) {
        var limits = limits
        self.init { session in
            switch choice {
            case .endOfMessage: ferry_create_end_of_message(&limits, nil, 0, 0, &session)
            case .varint: ferry_create_length_prefix(&limits, Int32(FERRY_PREFIX_VARINT), &session)
            case .little16: ferry_create_length_prefix(&limits, Int32(FERRY_PREFIX_16_LITTLE), &session)
            case .sequenced: ferry_create_sequenced(&limits, identifier, 8, &session)
            }
        }
    }

    init(_ create: (inout OpaquePointer?) -> Int32) {
        let status = create(&session)
        precondition(status == FERRY_OK && session != nil)
    }

    deinit { ferry_destroy(session) }

    private var text: String {
        var buffer = [CChar](repeating: 1, count: 1000)
        _ = ferry_error_text(session, &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func answer(_ status: Int32) -> String { status <= -16 ? "\(status) \(text)" : "\(status)" }

    func open(_ now: Int64) -> String { answer(ferry_link_opened(session, now)) }
    func close(_ now: Int64) -> String { answer(ferry_link_closed(session, now)) }
    func enqueue(_ payload: [UInt8], _ now: Int64) -> String {
        var number: UInt64 = 0
        let status = ferry_enqueue(session, payload, payload.count, &number, now)
        return status == FERRY_OK ? "number \(number)" : "\(status)"
    }
    func cancel(_ number: UInt64, _ now: Int64) -> String { "\(ferry_cancel(session, number, now))" }
    func chunk(atMost size: Int, _ now: Int64) -> (answer: String, bytes: [UInt8]?) {
        var buffer = [UInt8](repeating: 0xA5, count: size + 8)
        var count = 0
        let status = ferry_next_chunk(session, &buffer, size, &count, now)
        precondition(buffer[size...].allSatisfy { $0 == 0xA5 }, "written outside the buffer")
        return (answer(status), status == FERRY_OK ? Array(buffer[..<count]) : nil)
    }
    func receive(_ chunk: [UInt8], _ now: Int64) -> String {
        answer(ferry_receive(session, chunk, chunk.count, now))
    }
    func wake(_ now: Int64) -> String { answer(ferry_wake(session, now)) }
    var deadline: String {
        var at: Int64 = 0
        let status = ferry_deadline(session, &at)
        return status == FERRY_OK ? "at \(at)" : "\(status)"
    }

    func events(_ now: Int64) -> [String] {
        var words: [String] = []
        var buffer: [UInt8] = []
        while true {
            var event = ferry_event()
            switch ferry_next_event(session, &event, &buffer, buffer.count, now) {
            case Int32(FERRY_ERROR_BUFFER): buffer = [UInt8](repeating: 0, count: event.count)
            case Int32(FERRY_OK):
                switch Int(event.kind) {
                case Int(FERRY_EVENT_RECEIVED): words.append("received \(buffer.prefix(event.count))")
                case Int(FERRY_EVENT_PROGRESS): words.append("progress \(event.number) \(event.count)")
                case Int(FERRY_EVENT_SENT): words.append("sent \(event.number)")
                case Int(FERRY_EVENT_FAILED): words.append("failed \(event.number) \(event.error)")
                default: words.append("receive failed \(event.error)")
                }
            default: return words
            }
        }
    }
}

/// The same session used from Swift, with the rules that ferry.h adds written down once more.
struct SwiftSide<Session: FramingSession>: Side {
    private enum State: Equatable { case new, open, closed, failed(String) }

    private var session: Session
    private let minimum: Int
    private let given: ferry_limits
    private var state = State.new
    private var number: UInt64 = 0
    private var unfinished: [UInt64: Int] = [:]
    private var unfetched = 0

    init(_ session: Session, minimum: Int, limits: ferry_limits = smallLimits) {
        self.session = session
        self.minimum = minimum
        given = limits
    }

    private static func number(_ code: FerryError.Code) -> Int {
        let numbers: [FerryError.Code: Int] = [
            .messageTooLarge: -16, .notText: -17, .chunkSizeTooSmall: -18, .malformedStream: -19,
            .incompatiblePeer: -20, .peerLostState: -21, .truncatedMessage: -22, .timedOut: -23, .cancelledByPeer: -24,
            .invalidConfiguration: -25,
        ]
        return numbers[code] ?? -63
    }

    private mutating func fail(_ error: FerryError, _ now: Int64) -> String {
        let answer = "\(Self.number(error.code)) \(error.message)"
        if session.needsNewLink {
            state = .closed
            try? session.linkDidClose(at: Timestamp(nanoseconds: now))
        } else {
            state = .failed(answer)
        }
        return answer
    }

    private mutating func whenOpen(
        _ now: Int64, _ body: (inout Session, Timestamp) throws(FerryError) -> String
    ) -> String {
        switch state {
        case .new, .closed: return "-3"
        case .failed(let answer): return answer
        case .open:
            do throws(FerryError) {
                return try body(&session, Timestamp(nanoseconds: now))
            } catch {
                return fail(error, now)
            }
        }
    }

    mutating func open(_ now: Int64) -> String {
        switch state {
        case .failed(let answer): return answer
        case .open: return "-3"
        case .closed where !session.survivesLinkLoss: return "-3"
        case .new, .closed:
            session.linkDidOpen(at: Timestamp(nanoseconds: now))
            state = .open
            return "0"
        }
    }

    mutating func close(_ now: Int64) -> String {
        let answer = whenOpen(now) { (session, now) throws(FerryError) in
            try session.linkDidClose(at: now)
            return "0"
        }
        if answer == "0" { state = .closed }
        return answer
    }

    mutating func enqueue(_ payload: [UInt8], _ now: Int64) -> String {
        if case .failed(let answer) = state { return String(answer.prefix { $0 != " " }) }
        if state == .closed, !session.survivesLinkLoss { return "-3" }
        guard payload.count <= Int(given.message_bytes) else { return "-16" }
        guard unfinished.count < Int(given.outbound_messages),
            unfinished.values.reduce(payload.count, +) <= Int(given.outbound_bytes)
        else { return "-4" }
        do {
            try session.enqueue(payload, as: MessageID(rawValue: number), at: Timestamp(nanoseconds: now))
        } catch {
            return "\(Self.number(error.code))"
        }
        unfinished[number] = payload.count
        number += 1
        return "number \(number - 1)"
    }

    mutating func cancel(_ number: UInt64, _ now: Int64) -> String {
        if case .failed(let answer) = state { return String(answer.prefix { $0 != " " }) }
        guard session.cancel(MessageID(rawValue: number), at: Timestamp(nanoseconds: now)) else { return "1" }
        unfinished[number] = nil
        return "0"
    }

    mutating func chunk(atMost size: Int, _ now: Int64) -> (answer: String, bytes: [UInt8]?) {
        var bytes: [UInt8]?
        let minimum = minimum
        let answer = whenOpen(now) { (session, now) throws(FerryError) in
            guard size >= minimum else { return "-2" }
            let outcome = try session.transmit(atMost: size, at: now) { chunk in
                bytes = chunk.withUnsafeBytes { [UInt8]($0) }
                return true
            }
            return outcome == .accepted ? "0" : "1"
        }
        return (answer, bytes)
    }

    mutating func receive(_ chunk: [UInt8], _ now: Int64) -> String {
        let cost = chunk.count + 16
        let isFull = unfetched > 0 && unfetched + cost + 64 * waitingEvents > Int(given.inbound_bytes)
        let isOpen = state == .open
        let answer = whenOpen(now) { (session, now) throws(FerryError) in
            guard !isFull else { return "-4" }
            try session.receive(chunk.span.bytes, at: now)
            return "0"
        }
        if isOpen, !isFull { unfetched += cost }
        return answer
    }

    /// How many events are to be fetched.
    private var waitingEvents: Int {
        var (copy, count) = (session, 0)
        while copy.nextEvent() != nil { count += 1 }
        return count
    }

    mutating func wake(_ now: Int64) -> String {
        whenOpen(now) { (session, now) throws(FerryError) in
            try session.wake(at: now)
            return "0"
        }
    }

    var deadline: String {
        switch state {
        case .new, .closed: "-3"
        case .failed(let answer): String(answer.prefix { $0 != " " })
        case .open: session.deadline.map { "at \($0.nanoseconds)" } ?? "1"
        }
    }

    mutating func events(_ now: Int64) -> [String] {
        var words: [String] = []
        while let event = session.nextEvent() {
            switch event {
            case .received(let message):
                words.append("received \(message[...])")
                session.consume(message.count, at: Timestamp(nanoseconds: now))
            case .progress(let id, let count): words.append("progress \(id.rawValue) \(count)")
            case .sent(let id):
                words.append("sent \(id.rawValue)")
                unfinished[id.rawValue] = nil
            case .failed(let id, let error):
                words.append("failed \(id.rawValue) \(Self.number(error.code))")
                unfinished[id.rawValue] = nil
            case .receiveFailed(let error): words.append("receive failed \(Self.number(error.code))")
            }
        }
        unfetched = 0
        return words
    }
}

/// What the session of Swift's is given for limits of ferry.h.
func swiftLimits(_ given: ferry_limits) -> Limits {
    var limits = Limits()
    limits.maximumMessageSize = Int(given.message_bytes)
    limits.maximumInboundBytes = Int(given.inbound_bytes)
    limits.inboundStallTimeout = .nanoseconds(given.stall_nanoseconds)
    return limits
}

/// A session of Swift's with the limits of ``smallLimits``.
func swiftSide(_ choice: Choice, identifier: UInt32) throws(FerryError) -> any Side {
    let limits = swiftLimits(smallLimits)
    switch choice {
    case .endOfMessage:
        return SwiftSide(try EndOfMessageFraming(chunkSize: nil).makeSession(limits: limits), minimum: 3)
    case .varint: return SwiftSide(LengthPrefixFraming().makeSession(limits: limits), minimum: 1)
    case .little16:
        return SwiftSide(LengthPrefixFraming(prefix: .uint16(.little)).makeSession(limits: limits), minimum: 1)
    case .sequenced:
        var configuration = SequencedFraming.Configuration()
        configuration.window = 8
        return SwiftSide(
            SequencedFraming(configuration, sessionID: { identifier }).makeSession(limits: limits), minimum: 20)
    }
}
