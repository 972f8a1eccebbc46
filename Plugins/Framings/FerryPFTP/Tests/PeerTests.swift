import Ferry
import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import FerryPFTP

/// The Python that has polar-ble-tools.
private let python = ProcessInfo.processInfo.environment["FERRY_POLAR_PEER"]

/// Ferry's sessions and polar-ble-tools (Tests/Interop/polar_peer.py). `scripts/interop polar` runs it: FERRY_POLAR_PEER names the Python that
/// has it.
@Suite(
    .tags(.framing), .enabled(if: python != nil, "needs polar-ble-tools: scripts/interop polar"), .serialized,
    .timeLimit(.minutes(5)))
struct PeerTests {
    private let peer: LinePeer

    init() throws { peer = try LinePeer(try #require(python), "Tests/Interop/polar_peer.py") }

    /// 1 000 messages of mixed sizes, each cut by one side and put together by the other, in values for an ATT_MTU of 23, 185, 247 and 517.
    @Test(arguments: [20, 182, 244, 512]) func messagesCross(_ size: Int) throws {
        var random = SplitMix64(seed: UInt64(size))
        var (sender, receiver) = (session(), session())
        for number in 0..<1_000 {
            let message = random.bytes(Int(random.next() % (number % 50 == 0 ? 20_000 : 300)))
            try sender.enqueue([0, 0] + message, as: MessageID(rawValue: UInt64(number)), at: .zero)
            var chunks: [[UInt8]] = []
            while try sender.sendOne(atMost: size, to: &chunks) == .accepted {}
            let words = chunks.map(digits).joined(separator: " ")
            #expect(try peer.ask("cut \(word(message)) \(size)") == words)
            #expect(try peer.ask("take \(words)") == "ok \(word(message))")
            for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
            #expect(receiver.receivedMessages() == [[0, 0] + message])
        }
    }

    /// Both take the same, and refuse the same: whole answers, errors, and any two or three chunks.
    @Test func theyAgreeOnWhatIsAnAnswer() throws {
        var random = SplitMix64(seed: 0xFEEE)
        var rows: [[[UInt8]]] = [
            [[0x02]], [[0x00, 103, 0]], [[0x00, 0, 0]], [[0x06, 1], [0x17, 2], [0x21, 7, 1]],
            [[0x06, 1], [0x11, 0, 0]],
            [[0x06], [0x13]], [[0x03]], [[0x12]], [[0x04, 1]], [[0x00, 1]], [[0x06, 1], [0x06, 1]],
            [[0x06, 1], [0x27]], [[]],
        ]
        for _ in 0..<2_000 {
            rows.append(
                (0..<Int(1 + random.next() % 3)).map { place in
                    // Near to what is right.
                    let head = UInt8(place == 0 ? 0 : 1) | UInt8(place) << 4 | UInt8(random.next() % 4) << 1
                    return [random.next() % 5 == 0 ? UInt8(truncatingIfNeeded: random.next()) : head]
                        + random.bytes(Int(random.next() % 4))
                })
        }
        for row in rows {
            var own = session()
            var answer = "refused"
            for chunk in row {
                do throws(FerryError) { try own.receive(chunk.span.bytes, at: .zero) } catch { break }
                guard let message = own.receivedMessages().first else { continue }
                let number = Int(message[0]) | Int(message[1]) << 8
                answer = number == 0 ? "ok \(word(Array(message.dropFirst(2))))" : "error \(number)"
                break
            }
            let theirs = try peer.ask(
                "take " + row.map { digits($0).isEmpty ? "-" : digits($0) }.joined(separator: " "))
            #expect(theirs == answer, "\(row)")
        }
    }

    @Test func requestsAndListsAreTheirs() throws {
        for path in ["/", "/U/0/", "/" + String(repeating: "a", count: 200)] {
            #expect(try peer.ask("request get \(path) -") == digits(PFTPRequest.get(path).bytes()))
            #expect(try peer.ask("request put \(path) 0102") == digits(PFTPRequest.put(path, [1, 2]).bytes()))
            #expect(try peer.ask("request remove \(path) -") == digits(PFTPRequest.remove(path).bytes()))
        }
        let list: [UInt8] =
            [0x0A, 9, 0x0A, 5] + Array("A.BPB".utf8) + [0x10, 100] + [0x0A, 7, 0x0A, 2] + Array("R/".utf8) + [
                0x10, 0x80, 1,
            ]
        #expect(try peer.ask("list \(digits(list))") == "A.BPB:100 R/:128")
        #expect(PFTPEntry.list(in: list)?.map { "\($0.name):\($0.size)" } == ["A.BPB:100", "R/:128"])
    }

    // MARK: Helpers

    private func session() -> PFTPFraming.Session { PFTPFraming(errors: .leadMessages).makeSession(limits: Limits()) }

    private func word(_ bytes: [UInt8]) -> String { bytes.isEmpty ? "-" : digits(bytes) }
}
