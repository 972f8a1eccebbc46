import BluetoothHost
import FerryBluetooth
import FuzzDriver

/// What is fuzzed: each decoder by itself with what stands behind it, and the host with everything at once. An input of a
/// decoder has a connection of its own on a host that others had before it; one of `host` has a host of its own.
enum Target: String {
    /// The H4 stream: what it is cut into must not depend on where it is cut, and what is held is bounded.
    case h4
    /// HCI events, to a host with a connection that is scanning.
    case events
    /// ACL packets, signalling and a credit-based channel.
    case l2cap
    case att
    case smp
    /// Advertising data and scan responses.
    case advertising
    /// All of the above in one input, in any order; and with 0xFF as first byte, an H4 stream to the host.
    case host

    /// Which steps an input of this target has, for those that have a host.
    private var steps: [Play.Step] {
        switch self {
        case .h4, .advertising: []
        case .events: [.event, .event, .application, .time]
        case .l2cap: [.acl, .signalling, .channel, .application, .time]
        case .att: [.att, .att, .application, .time]
        case .smp: [.securityManager, .securityManager, .application, .time]
        case .host: Play.Step.allCases
        }
    }

    func run(_ input: UnsafeRawBufferPointer) {
        guard let first = input.first else { return }
        let rest = UnsafeRawBufferPointer(rebasing: input.dropFirst())
        switch self {
        case .h4: cutStream(rest, at: Int(first) + 1)
        case .advertising: readAdvertisement(rest, at: Int(first))
        case .host where first == 0xFF:
            var play = Play(isCentral: true)
            play.stream(rest)
        case .host:
            var play = Play(isCentral: first & 1 == 1)
            play.steps(rest, of: steps)
        case .events, .l2cap, .att, .smp:
            let player = first & 1 == 1 ? central : peripheral
            player.play.steps(rest, of: steps)
            if !player.play.begin() { player.play = Play(isCentral: first & 1 == 1) }
        }
    }

    private func cutStream(_ input: UnsafeRawBufferPointer, at size: Int) {
        let whole = packets(input, size: input.count)
        precondition(packets(input, size: size) == whole, "the packets depend on where the stream was cut")
        // With each packet comes its H4 indicator, and of a packet that is not whole no more than its length is held.
        precondition(whole.isEmpty || whole.allSatisfy { (2...5).contains($0.first ?? 0) }, "a packet of no kind")
    }

    private func packets(_ input: UnsafeRawBufferPointer, size: Int) -> [[UInt8]] {
        var splitter = H4Splitter()
        var packets: [[UInt8]] = []
        var start = 0
        while start < input.count {
            let piece = UnsafeRawBufferPointer(rebasing: input[start..<min(start + size, input.count)])
            start += size
            do throws(H4StreamError) {
                try splitter.feed(RawSpan(_unsafeBytes: piece)) { _, packet in
                    packets.append(packet.withUnsafeBytes { Array($0) })
                }
            } catch { return packets }
            precondition(splitter.heldCount <= input.count, "more is held than came")
        }
        return packets
    }

    private func readAdvertisement(_ input: UnsafeRawBufferPointer, at place: Int) {
        let data = AdvertisementData(
            parsing: Array(input.prefix(place)), scanResponse: Array(input.dropFirst(place)))
        let report = Advertisement(localName: data.localName, services: data.services).fitted(to: .legacy)
        guard let packets = try? report.encoded(for: .legacy) else { preconditionFailure("what fits does not fit") }
        precondition(
            packets.advertising.count <= 31 && packets.scanResponse.count <= 31, "an advertisement is too long")
        let again = AdvertisementData(parsing: packets.advertising, scanResponse: packets.scanResponse)
        precondition(again.services.allSatisfy { data.services.contains($0) }, "a service that nobody has named")
    }
}

/// A host that plays one input after the other.
private final class Player {
    var play: Play
    init(isCentral: Bool) { play = Play(isCentral: isCentral) }
}

// libFuzzer has one thread.
private nonisolated(unsafe) let peripheral = Player(isCentral: false)
private nonisolated(unsafe) let central = Player(isCentral: true)

/// `-ignore_remaining_args=1 TARGET` ends the arguments: libFuzzer hands on all of them to the processes that it starts.
private let target = CommandLine.arguments.last.flatMap { Target(rawValue: $0) }

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target?.run(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        precondition(target != nil, "FuzzHost FLAGS -ignore_remaining_args=1 TARGET; see scripts/fuzz le-host")
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
