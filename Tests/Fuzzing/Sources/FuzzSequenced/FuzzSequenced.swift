import Ferry
import FerrySequenced
import FuzzDriver

/// One session of the sequenced framing and a peer made of arbitrary bytes, under libFuzzer.
///
/// An input is a list of steps, each a byte and what it needs:
///
///     0...127    a chunk of so many bytes arrives
///     128...159  a message of that less 128, times 37, bytes is to be sent
///     160...191  messages of up to 1024 bytes times that less 160 are read
///     192...207  the next deadline comes
///     208...223  the message with that number less 208 is cancelled
///     224...239  the link takes so many chunks of 20 bytes less 224, and then no more
///     240...247  the link is replaced
///     248...255  the link takes chunks of 20, 21, 23, 64, 182, 244, 512 or 40000 bytes from here on
///
/// Nothing may trap, nothing may arrive that was not received byte for byte, and what the session holds is bounded by
/// libFuzzer's limit on memory.
struct Play {
    private var session = SequencedFraming(configuration) { 7 }.makeSession(limits: limits)
    private var trace = SequencedTrace()
    private var now = Timestamp.zero
    private var size = 20
    private var sent: UInt64 = 0
    private var received = 0
    private var delivered = 0
    private var unread = 0

    private static let sizes = [20, 21, 23, 64, 182, 244, 512, 40_000]
    private static let limits: Limits = {
        var limits = Limits()
        limits.maximumMessageSize = 1 << 20
        return limits
    }()
    private static let configuration: SequencedFraming.Configuration = {
        var configuration = SequencedFraming.Configuration()
        configuration.creditWindow = 16 << 10
        return configuration
    }()

    mutating func run(_ input: UnsafeRawBufferPointer) {
        session.linkDidOpen(at: now)
        var rest = input
        do {
            try transmit(atMost: .max)
            while let step = rest.first {
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
                try take(step, &rest)
                readEvents()
            }
        } catch {
            // The session is of no use any more; letting go of it must work.
        }
        session.linkDidClose(at: now)
        readEvents()
    }

    private mutating func take(_ step: UInt8, _ rest: inout UnsafeRawBufferPointer) throws(FerryError) {
        switch step {
        case 0..<128:
            let count = min(Int(step), rest.count)
            let chunk = UnsafeRawBufferPointer(rebasing: rest[..<count])
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            received += count
            _ = trace.describe(chunk.bytes, from: .first)
            try session.receive(chunk.bytes, at: now)
            try transmit(atMost: .max)
        case 128..<160:
            let payload = [UInt8](repeating: step, count: Int(step - 128) * 37)
            let options = SendOptions(priority: .init(rawValue: step & 3), weight: step & 7)
            // A message that the peer does not take is refused, and the session goes on.
            try? session.enqueue(payload, as: MessageID(rawValue: sent), options: options, at: now)
            sent += 1
            try transmit(atMost: .max)
        case 160..<192:
            let count = min(unread, Int(step - 160) * 1024)
            unread -= count
            session.consume(count, at: now)
            try transmit(atMost: .max)
        case 192..<208:
            guard let deadline = session.deadline else { return }
            now = max(now, deadline)
            try session.wake(at: now)
            try transmit(atMost: .max)
        case 208..<224: _ = session.cancel(MessageID(rawValue: UInt64(step - 208)), at: now)
        case 224..<240: try transmit(atMost: Int(step - 224))
        case 240..<248:
            session.linkDidClose(at: now)
            session.linkDidOpen(at: now)
            try transmit(atMost: .max)
        default: size = Self.sizes[Int(step - 248)]
        }
    }

    private mutating func transmit(atMost count: Int) throws(FerryError) {
        var left = min(count, 1000)
        var outcome = Transmission.accepted
        while outcome == .accepted {
            let (size, hasSpace) = (size, left > 0)
            outcome = try session.transmit(atMost: size, at: now) { (chunk) throws(FerryError) in
                precondition((1...size).contains(chunk.byteCount), "a chunk of \(chunk.byteCount) bytes at \(size)")
                return hasSpace
            }
            left -= 1
        }
    }

    private mutating func readEvents() {
        while let event = session.nextEvent() {
            guard case .received(let message) = event else { continue }
            delivered += message.count
            unread += message.count
            precondition(delivered <= received, "\(delivered) bytes were delivered of \(received) received")
        }
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var play = Play()
    play.run(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
