import Ferry
import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import FerryBTP

/// The Python that has connectedhomeip's engine.
private let python = ProcessInfo.processInfo.environment["FERRY_BTP_PEER"]

/// Ferry's sessions and connectedhomeip's own engine (Tests/Interop/btp_peer.py), either of them the central. `scripts/interop btp` runs it:
/// FERRY_BTP_PEER names the Python that has the engine.
@Suite(
    .tags(.framing), .enabled(if: python != nil, "needs connectedhomeip's engine: scripts/interop btp"),
    .serialized, .timeLimit(.minutes(5)))
struct PeerTests {
    /// 1 000 messages of mixed sizes to the engine's limit, half of them each way, at packets for an ATT_MTU of 23, 185, 247 and 517.
    @Test(arguments: LinkRole.allCases, [20, 182, 244])
    func messagesCross(_ role: LinkRole, packetSize: Int) throws {
        let peer = try Peer(role.other, packetSize)
        var hand = HandSession(role)
        switch role {
        case .initiator:
            #expect(try hand.next(packetSize) == peer.ask("request \(packetSize) 6"))
            try hand.receive(try peer.ask("response 4 \(packetSize) 6"))
        case .responder:
            try hand.receive(try peer.ask("request \(packetSize + 3) 6"))
            #expect(try hand.next(packetSize) == peer.ask("response 4 \(packetSize) 6"))
        }
        var random = SplitMix64(seed: 1)
        for number in 0..<500 {
            let largest = number % 10 == 9 ? 1583 : 64
            let there = random.bytes(1 + Int(random.next() % UInt64(largest)))
            try hand.send(there)
            #expect(try peer.drain(&hand, packetSize).last == digits(there))
            // The engine cuts a message at once, so that no acknowledgement of its own can go between: 20 packets at most.
            let back = random.bytes(1 + Int(random.next() % UInt64(min(largest, 20 * (packetSize - 3)))))
            try peer.send(back, to: &hand, packetSize)
            #expect(hand.messages() == [back])
        }
    }

    /// What is hostile is hostile to both, with the code that the table has.
    @Test(arguments: HostilePacketTests.rows)
    func theReferenceAgrees(_ row: HostilePacketTests.Row) throws {
        let peer = try Peer(.responder, 244)
        var answers: [[Substring]] = []
        for packet in row.packets { answers.append(try peer.ask("recv \(packet)").split(separator: " ")) }
        let last = try #require(answers.last)
        switch row.outcome {
        case .refused(let code, _): #expect(last.first.map(String.init) == String(code, radix: 16))
        case .delivered(let messages):
            #expect(last.first == "0")
            let delivered = answers.filter { $0[1] == "2" }.map { $0.count > 3 ? String($0[3]) : "" }
            #expect(delivered == messages)
        }
    }

    /// The engine's process.
    private final class Peer {
        private let lines: LinePeer

        init(_ role: LinkRole, _ packetSize: Int) throws {
            lines = try LinePeer(try #require(python), "Tests/Interop/btp_peer.py")
            #expect(try ask("init \(role == .initiator ? "central" : "peripheral") \(packetSize)") == "ok")
        }

        func ask(_ line: String) throws -> String { try lines.ask(line) }

        /// Takes all that the session sends, and acknowledges it when it waits. Returns the messages.
        func drain(_ hand: inout HandSession, _ size: Int) throws -> [String] {
            var messages: [String] = []
            repeat {
                var count = 0
                for packet in try hand.all(size) {
                    count += 1
                    let answer = try ask("recv \(packet)").split(separator: " ")
                    try #require(answer.first == "0", "the engine refused \(packet): \(answer)")
                    if answer[1] == "2" { messages.append(answer.count > 3 ? String(answer[3]) : "") }
                }
                // What was sent without an acknowledgement waits for one.
                if count > 0 { try hand.receive(try ask("ack")) }
            } while try !hand.isIdle(size)
            return messages
        }

        /// Has the engine send a message, packet by packet.
        func send(_ message: [UInt8], to hand: inout HandSession, _ size: Int) throws {
            for packet in try ask("send \(digits(message))").split(separator: " ") {
                try hand.receive(String(packet))
                for answer in try hand.all(size) {
                    let taken = try ask("recv \(answer)").split(separator: " ")
                    try #require(taken.first == "0", "the engine refused \(answer): \(taken)")
                }
            }
        }
    }
}
