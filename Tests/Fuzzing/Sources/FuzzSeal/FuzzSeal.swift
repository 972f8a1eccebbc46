import Ferry
import FuzzDriver

@testable import FerrySeal

/// Two sealed sides and an attacker made of arbitrary bytes, under libFuzzer.
///
/// The first byte of an input says how the sides meet: bits 0 and 1 the handshake, bit 2 whether messages are counted or state their
/// numbers. What follows are steps, each a byte and what it needs:
///
///     0...31     the next byte says how many bytes follow: a message to the connecting side
///     32...63    the same to the accepting side
///     64...127   the oldest message on its way arrives: bit 0 says to whom
///     128...159  it arrives with a byte changed: the next two bytes say which, and how
///     160...175  it arrives cut, by as many bytes as the next byte says
///     176...183  it arrives, and stays on its way: it will come again
///     184...191  it is lost
///     192...223  a message is sealed, of as many bytes as the next byte says: bit 0 says by whom
///     224...239  two messages on their way change places
///     240...247  the bytes that follow, up to the number in the next byte, are read as a key, a list of keys, a code and a record
///     248...255  a message of one side comes back to it
///
/// Nothing may trap, nothing opens that was not sealed by the other side, and nothing opens twice.
struct Play {
    private struct Side {
        var seal: NoiseSeal
        /// What the other side has sealed and this one not opened.
        var expected: [[UInt8]] = []
        var inbound: [[UInt8]] = []
        var isOver = false
        var sealed: UInt16 = 0
    }

    private var sides: [Side]
    private let keepsOrder: Bool

    private static func key(_ seed: UInt8) -> SecretKey {
        guard let key = try? SecretKey(bytes: [UInt8](repeating: seed, count: 32)) else { preconditionFailure() }
        return key
    }
    private static let (a, b) = (key(1), key(2))
    private struct Zeros: RandomNumberGenerator { mutating func next() -> UInt64 { 7 } }
    private static let invitation: Invitation = {
        var zeros = Zeros()
        return Invitation(using: &zeros)
    }()

    init(_ first: UInt8) {
        keepsOrder = first & 4 == 0
        let (peer, acceptance): (NoiseSealing.Peer, NoiseSealing.Acceptance) =
            switch first & 3 {
            case 0: (.anyone, .anyone)
            case 1: (.key(Self.b.publicKey), .keys { $0 == Self.a.publicKey })
            case 2: (.pair(Self.b.publicKey), .pair(Self.a.publicKey))
            default: (.invitation(Self.invitation), .invitation(Self.invitation))
            }
        let exchange = SealedExchange(payloads: PayloadFormat(), keepsOrder: keepsOrder)
        sides = [
            Side(seal: NoiseSealing(connectingAs: Self.a, to: peer) { Self.key(3) }.makeSeal(for: exchange)),
            Side(seal: NoiseSealing(acceptingAs: Self.b, from: acceptance) { Self.key(4) }.makeSeal(for: exchange)),
        ]
    }

    mutating func run(_ input: ArraySlice<UInt8>) {
        var rest = input
        greet(0)
        while let step = rest.popFirst() {
            let place = Int(step & 1)
            switch step {
            case 0..<64:
                let message = take(&rest)
                receive(message, step < 32 ? 0 : 1)
            case 64..<128:
                if let message = pop(place) { receive(message, place) }
            case 128..<160:
                guard var message = pop(place), !message.isEmpty else { break }
                let at = Int(rest.popFirst() ?? 0) % message.count
                message[at] ^= max(1, rest.popFirst() ?? 1)
                receive(message, place)
            case 160..<176:
                guard let message = pop(place) else { break }
                receive(Array(message.dropLast(1 + Int(rest.popFirst() ?? 0))), place)
            case 176..<184:
                if let message = sides[place].inbound.first { receive(message, place) }
            case 184..<192: _ = pop(place)
            case 192..<224: seal(Int(rest.popFirst() ?? 0), place)
            case 224..<240:
                if sides[place].inbound.count > 1 { sides[place].inbound.swapAt(0, 1) }
            case 240..<248: Self.read(take(&rest))
            default:
                if let message = sides[1 - place].inbound.first { receive(message, place) }
            }
        }
    }

    private func take(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        let count = Int(rest.popFirst() ?? 0)
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private mutating func pop(_ place: Int) -> [UInt8]? {
        sides[place].inbound.isEmpty ? nil : sides[place].inbound.removeFirst()
    }

    /// The messages of the handshake that are a side's turn.
    private mutating func greet(_ place: Int) {
        do {
            while let message = try sides[place].seal.nextHandshakeMessage() {
                sides[1 - place].inbound.append(message)
            }
        } catch { sides[place].isOver = true }
    }

    private mutating func seal(_ count: Int, _ place: Int) {
        guard !sides[place].isOver, sides[place].seal.isEstablished else { return }
        sides[place].sealed += 1
        let number = sides[place].sealed
        let payload = [UInt8(place), UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 5, count: count)
        guard let sealed = try? sides[place].seal.seal(payload) else { preconditionFailure("a payload is not sealed") }
        precondition(sealed.count <= payload.count + sides[place].seal.maximumOverhead)
        sides[1 - place].expected.append(payload)
        sides[1 - place].inbound.append(sealed)
    }

    private mutating func receive(_ message: [UInt8], _ place: Int) {
        guard !sides[place].isOver else { return }
        do {
            guard sides[place].seal.isEstablished else {
                try sides[place].seal.receiveHandshake(message)
                return greet(place)
            }
            let payload = try sides[place].seal.open(message)
            guard let at = sides[place].expected.firstIndex(of: payload) else {
                preconditionFailure(
                    "\(payload.count) bytes opened that the other side has not sealed, or for the second time")
            }
            precondition(!keepsOrder || at == 0, "message \(at) opened before its turn")
            sides[place].expected.remove(at: at)
            precondition(sides[place].seal.provenPeer?.certainty == .key)
        } catch {
            sides[place].isOver = true
            if let refusal = sides[place].seal.refusal {
                precondition(refusal.count == 2)
                sides[1 - place].inbound.append(refusal)
            }
        }
    }

    /// Whatever a person or a file may hold.
    private static func read(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if let key = try? PublicKey(text: text) { precondition((try? PublicKey(text: "\(key)")) == key) }
        _ = try? Invitation(code: text)
        _ = Fingerprint(text)
        _ = try? KeyText.parse(text)
        if let list = try? AllowList(parsing: text) { precondition((try? AllowList(parsing: list.text)) == list) }
        let scope = RecordScope(stream: "s", epoch: [1])
        var opener = RecordOpener(as: b, from: a.publicKey, scope: scope)
        precondition((try? opener.open(bytes, sequence: 1)) == nil, "a record opened that nobody sealed")
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    guard let first = input.first else { return 0 }
    var play = Play(first)
    play.run(input.dropFirst())
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
