import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerryBTP

/// Packets that no conforming peer sends, and what connectedhomeip 1.4.2's engine made of them (home-assistant-chip-core 2025.7.0): an error
/// with its code, or a message.
@Suite(.tags(.framing)) struct HostilePacketTests {
    enum Outcome: Sendable {
        /// The reference's code, and what this side names.
        case refused(UInt16, String)
        case delivered([String])
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var packets: [String]
        var outcome: Outcome

        init(_ name: String, _ packets: [String], _ outcome: Outcome) {
            testDescription = name
            self.packets = packets
            self.outcome = outcome
        }
    }

    static let rows: [Row] = [
        Row("flags alone", ["01"], .refused(0x19, "ends within its head")),
        Row("cut in the length", ["010028"], .refused(0x19, "ends within its head")),
        Row("cut before the length", ["0100"], .refused(0x19, "ends within its head")),
        Row("an acknowledgement without number", ["08"], .refused(0x19, "ends within its head")),
        Row("an acknowledgement without the packet's number", ["0800"], .refused(0x19, "ends within its head")),
        Row("number 1 in place of 0", ["0501010041"], .refused(0x41E, "has number 1; 0 was due")),
        Row("number 255 in place of 0", ["05ff010041"], .refused(0x41E, "has number 255; 0 was due")),
        Row("a doubled packet", ["0500010041", "0500010041"], .refused(0x41E, "has number 0; 1 was due")),
        Row("goes on with nothing", ["020041"], .refused(0x41D, "has not begun")),
        Row("ends nothing", ["040041"], .refused(0x41D, "has not begun")),
        Row("begins within a message", ["01000400aa", "01010400aa"], .refused(0x41D, "begins a message within")),
        Row("a whole one within a message", ["01000400aa", "05010100aa"], .refused(0x41D, "begins a message within")),
        Row(
            "begins and goes on within a message", ["01000600aabb", "03010100cc"],
            .refused(0x41D, "begins a message within")),
        Row("lacks bytes", ["05000400aa"], .refused(0x41C, "lacks 3 bytes")),
        Row("lacks bytes in two packets", ["01000400aa", "0601bb"], .refused(0x41C, "lacks 2 bytes")),
        Row("acknowledges what was not sent", ["0d05000100aa"], .refused(0x41B, "acknowledges number 5")),
        Row("bytes beyond the end", ["05000100aabb"], .delivered(["aa"])),
        Row("bytes beyond the end, and more", ["01000100aabb", "0601cc"], .delivered(["aa"])),
        Row("short parts", ["01000400aa", "0201bb", "0202cc", "0603dd"], .delivered(["aabbccdd"])),
        Row("reserved bits", ["9500010041"], .delivered(["41"])),
        Row("the bit of management", ["2500010041"], .delivered(["41"])),
        Row("the bit of the handshake", ["4500010041"], .delivered(["41"])),
        Row("content after an acknowledgement", ["080000aabb", "05010100cc"], .delivered(["cc"])),
        Row("no bytes", ["05000000"], .delivered([""])),
        Row("begins and goes on", ["03000200aa", "0601bb"], .delivered(["aabb"])),
        Row("ends without going on", ["01000200aa", "0401bb"], .delivered(["aabb"])),
        Row("no flags at all", ["0000aabb", "05010100cc"], .delivered(["cc"])),
    ]

    @Test(arguments: rows)
    func hostilePacketsAreNamed(_ row: Row) throws {
        var peripheral = try HandSession.open(.responder)
        let before = row.packets.dropLast()
        for packet in before { try peripheral.receive(packet) }
        let last = try #require(row.packets.last)
        switch row.outcome {
        case .delivered(let messages):
            try peripheral.receive(last)
            #expect(peripheral.messages().map(digits) == messages)
        case .refused(_, let what):
            let error = #expect(throws: FerryError.self) { try peripheral.receive(last) }
            #expect(error?.code == .malformedStream)
            #expect(error?.message.contains(what) == true, "\(error?.message ?? "none")")
            // It stays refused, and nothing of it is delivered.
            #expect(throws: FerryError.self) { try peripheral.receive("0500010041") }
            #expect(try peripheral.next() == nil)
        }
    }

    @Test func anEmptyPacketIsNamed() throws {
        var peripheral = try HandSession.open(.responder)
        let error = #expect(throws: FerryError.self) { try peripheral.receive("") }
        #expect(error?.message.contains("0 bytes") == true)
    }

    /// A length is refused before memory is taken, and what never ends is too.
    @Test func growthIsBounded() throws {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        var peripheral = try HandSession.open(.responder, limits: limits)
        let error = #expect(throws: FerryError.self) { try peripheral.receive("0100ffffaa") }
        #expect(error?.code == .messageTooLarge)
        var other = try HandSession.open(.responder)
        try other.receive("01000100" + digits([UInt8](repeating: 7, count: 240)))
        let endless = #expect(throws: FerryError.self) {
            for number in 1...5 { try other.receive(digits([2, UInt8(number)] + [UInt8](repeating: 7, count: 240))) }
        }
        #expect(endless?.message.contains("without its end") == true)
    }

    /// Bytes at random, and valid packets with one bit turned: an error or a message, and no more than arrived.
    @Test func noiseEndsInAnError() throws {
        var random = SplitMix64(seed: 1)
        for _ in 0..<3000 {
            var peripheral = try HandSession.open(.responder)
            var (received, delivered) = (0, 0)
            for number in 0..<8 {
                var packet = [5, UInt8(number), 3, 0] + random.bytes(3)
                if random.next() % 2 == 0 { packet[Int(random.next() % 7)] ^= 1 << UInt8(random.next() % 8) }
                if random.next() % 16 == 0 { packet = random.bytes(Int(random.next() % 30)) }
                received += packet.count
                do { try peripheral.receive(digits(packet)) } catch { break }
                delivered += peripheral.messages().reduce(0) { $0 + $1.count }
                _ = try peripheral.all()
            }
            #expect(delivered <= received)
        }
    }
}
