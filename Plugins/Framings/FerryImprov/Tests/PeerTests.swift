import Ferry
import FerryImprov
import FerryTesting
import Foundation
import TestSupport
import Testing

/// The Python that has py-improv-ble-client.
private let python = ProcessInfo.processInfo.environment["FERRY_IMPROV_PEER"]

/// Ferry's packets and those of py-improv-ble-client (Tests/Interop/improv_peer.py). `scripts/interop improv` runs it: FERRY_IMPROV_PEER
/// names the Python that has it.
@Suite(
    .tags(.framing), .enabled(if: python != nil, "needs py-improv-ble-client: scripts/interop improv"), .serialized,
    .timeLimit(.minutes(5)))
struct PeerTests {
    private let peer: LinePeer

    init() throws { peer = try LinePeer(try #require(python), "Tests/Interop/improv_peer.py") }

    /// Commands of Ferry's and results of its, 1 000 of each. It cannot make strings of 128 bytes and more, and reads them.
    @Test func packetsCross() throws {
        var random = SplitMix64(seed: 0x4677)
        for _ in 0..<1_000 {
            let number = UInt8(1 + random.next() % 5)
            let strings = (0..<Int(random.next() % 4)).map { _ in random.bytes(Int(random.next() % 80)) }
            let packet = ImprovPacket(.init(rawValue: number), strings)
            let words = ["\(number)"] + strings.map { word($0) }
            let made = try packet.bytes()
            #expect(try peer.ask("result \(digits(made))") == words.joined(separator: " "))
            #expect(try peer.ask("command \(words.joined(separator: " "))") == digits(made))
        }
        let long = ImprovPacket(.scan, [random.bytes(200)])
        #expect(try peer.ask("result \(digits(long.bytes()))") == "4 \(digits(long.strings[0]))")
    }

    /// Both take the same, and refuse the same, of any bytes near to a packet.
    @Test func theyAgreeOnWhatIsAPacket() throws {
        var random = SplitMix64(seed: 0x8000)
        for _ in 0..<2_000 {
            var bytes = try ImprovPacket(.scan, [random.bytes(Int(random.next() % 4)), random.bytes(2)]).bytes()
            for _ in 0..<Int(random.next() % 3) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next() % 12)
            }
            if random.next() % 2 == 0 { bytes[bytes.count - 1] = bytes.dropLast().reduce(0, &+) }
            let packet = try? ImprovPacket(bytes)
            let own = packet.map { (["\($0.command.rawValue)"] + $0.strings.map { word($0) }).joined(separator: " ") }
            #expect(try peer.ask("result \(digits(bytes))") == own ?? "refused", "\(bytes)")
        }
    }

    private func word(_ bytes: [UInt8]) -> String { bytes.isEmpty ? "-" : digits(bytes) }
}
