import Ferry
import FerryBTP
import FerryBitchat
import FerryGattlink
import FerryImprov
import FerryMdoc
import FerryMeshtastic
import FerryPFTP
import FuzzDriver

/// One session of a format of others and a peer made of arbitrary bytes, under libFuzzer.
///
/// An input's first byte chooses the format: 241 is Gattlink with datagrams, 242 with bytes, 243 and 244 bitchat; 245 and 246 are Improv as the app, 247 and 248 as the device, 249 Meshtastic, 250 to 252 PFTP, 253
/// and 254 PFTP with the numbers of errors, 255 a folder's list of PFTP; below, modulo 5, 0 is mdoc, 1 BTP as the side that connected, 2 BTP as the other; 3 and 4 are those after a handshake. The rest is a list of steps, each a byte and what it needs:
///
///     0...191    a chunk of so many bytes arrives
///     192...215  a message of that less 192, times 37, bytes is to be sent
///     216...231  the next deadline comes
///     232...239  the message with that number less 232 is cancelled
///     240...247  the link takes so many chunks less 240, and then no more
///     248...255  the link takes chunks of 2, 20, 21, 64, 182, 244, 512 or 40000 bytes from here on
///
/// Nothing may trap, nothing may arrive that was not received byte for byte, and what the session holds is bounded by
/// libFuzzer's limit on memory.
struct Play<Session: FramingSession> {
    private var session: Session
    private var now = Timestamp.zero
    private var size = 20
    private var sent: UInt64 = 0
    private var received = 0
    private var delivered = 0

    private static var sizes: [Int] { [2, 20, 21, 64, 182, 244, 512, 40_000] }

    /// How many bytes may be delivered for each that was received.
    private let most: Int

    init(_ session: Session, most: Int = 1) {
        self.session = session
        self.most = most
    }

    mutating func run(_ input: UnsafeRawBufferPointer, after handshake: [[UInt8]]) {
        session.linkDidOpen(at: now)
        var rest = input
        do {
            try transmit(atMost: .max)
            for chunk in handshake {
                try session.receive(chunk.span.bytes, at: now)
                try transmit(atMost: .max)
            }
            while let step = rest.first {
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
                try take(step, &rest)
                readEvents()
            }
        } catch {
            // The session is of no use any more; letting go of it must work.
        }
        try? session.linkDidClose(at: now)
        readEvents()
    }

    private mutating func take(_ step: UInt8, _ rest: inout UnsafeRawBufferPointer) throws(FerryError) {
        switch step {
        case 0..<192:
            let count = min(Int(step), rest.count)
            let chunk = UnsafeRawBufferPointer(rebasing: rest[..<count])
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            received += count
            try session.receive(chunk.bytes, at: now)
            try transmit(atMost: .max)
        case 192..<216:
            try? session.enqueue(
                [UInt8](repeating: step, count: Int(step - 192) * 37), as: MessageID(rawValue: sent), at: now)
            sent += 1
            try transmit(atMost: .max)
        case 216..<232:
            guard let deadline = session.deadline else { return }
            now = max(now, deadline)
            try session.wake(at: now)
            try transmit(atMost: .max)
        case 232..<240: _ = session.cancel(MessageID(rawValue: UInt64(step - 232)), at: now)
        case 240..<248: try transmit(atMost: Int(step - 240))
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
            precondition(delivered <= received * most, "\(delivered) bytes were delivered of \(received) received")
            session.consume(message.count, at: now)
        }
    }
}

private func play(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    let format = chosenFormat ?? first
    let rest = UnsafeRawBufferPointer(rebasing: input.dropFirst())
    var limits = Limits()
    limits.maximumMessageSize = 1 << 20
    func btp(_ role: LinkRole, _ handshake: [[UInt8]]) {
        var play = Play(BTPFraming().makeSession(limits: limits, payloads: PayloadFormat(), role: role))
        play.run(rest, after: handshake)
    }
    func pftp(_ errors: PFTPFraming.Errors) {
        // A chunk of one byte can be a message with the 2 bytes of its number.
        var play = Play(PFTPFraming(errors: errors).makeSession(limits: limits), most: errors == .endLink ? 1 : 2)
        play.run(rest, after: [])
    }
    func improv(_ role: LinkRole) {
        // What the app sends has no byte for its characteristic, and the message has.
        var play = Play(ImprovFraming().makeSession(limits: limits, payloads: PayloadFormat(), role: role), most: 2)
        play.run(rest, after: [])
    }
    func gattlink(_ content: GattlinkFraming.Content) {
        var play = Play(GattlinkFraming(content).makeSession(limits: limits))
        play.run(rest, after: [[0x81, 0, 0, 8, 8]])
    }
    switch format < 241 ? format % 5 : format {
    case 241: gattlink(.datagrams)
    case 242: gattlink(.stream)
    case 243, 244:
        var configuration = BitchatFraming.Configuration()
        configuration.seed = 1
        configuration.maximumAssemblies = 16
        var play = Play(BitchatFraming(configuration).makeSession(limits: limits))
        play.run(rest, after: [])
    case 245, 246: improv(.initiator)
    case 247, 248: improv(.responder)
    case 249:
        var play = Play(MeshtasticFraming().makeSession(limits: limits))
        play.run(rest, after: [])
    case 250...252: pftp(.endLink)
    case 253, 254: pftp(.leadMessages)
    case 255: _ = PFTPEntry.list(in: Array(rest))
    case 0:
        var play = Play(MdocFraming().makeSession(limits: limits))
        play.run(rest, after: [])
    case 1: btp(.initiator, [])
    case 2: btp(.responder, [])
    case 3: btp(.initiator, [[0x65, 0x6C, 4, 20, 0, 6]])
    default: btp(.responder, [[0x65, 0x6C, 4, 0, 0, 0, 23, 0, 6]])
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    play(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
