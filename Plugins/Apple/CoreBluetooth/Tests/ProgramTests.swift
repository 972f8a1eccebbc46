import CoreBluetooth
import CoreBluetoothSwift5Programs
import CoreBluetoothSwift6Programs
import Ferry
import FerryLoopback
import Foundation
import TestSupport
import Testing

/// Programs written as tutorials write them, on the main queue, over the process-wide radio.
@Suite(.tags(.coreBluetooth), .serialized, .exclusive, .timeLimit(.minutes(5))) @MainActor struct ProgramTests {
    @Test func transfersTextUntilEOM() async throws {
        // No time passes while the sender fills the queue: it does that on the main queue, in one piece.
        let time = VirtualTime()
        let pair = try Pair(time: time) { $0.connectionInterval = .milliseconds(1) }
        CBAdapters.use { pair.radio.makeAdapter() }
        defer { CBAdapters.use(nil) }
        let text = (0..<400).map { "Line \($0): the quick brown fox.\n" }.joined()
        let sender = TransferPeripheral(text: text)
        let receiver = TransferCentral()
        var (received, hasEnded) = ("", false)
        receiver.onText = { received = $0 }
        receiver.onDisconnect = { hasEnded = true }
        try await until("the end of the connection") {
            time.advance(by: .milliseconds(1))
            return hasEnded
        }
        sender.stop()
        #expect(received == text)
        #expect(sender.timesNotReady > 0, "the transmit queue was full at times")
        // What was asked for just before the connection was cancelled may complete, or not.
        #expect(
            receiver.log.filter { $0 != "notifying false" } == [
                "state", "discovered", "connected", "services", "characteristics", "notifying true", "EOM",
                "disconnected true",
            ])
    }

    @Test func exploresEverything() async throws {
        let peripheral = DemoPeripheral()
        let explorer = Explorer()
        try await until { explorer.answer != nil && explorer.lines.contains("written true") }
        #expect(peripheral.startError == nil)
        #expect(peripheral.received.first?.contains("<key>name</key>") == true)
        #expect(peripheral.requestCounts == [2], "a long write comes in parts")
        #expect(explorer.answer?["greeting"] as? String == "Hello Ada")
        #expect(explorer.answer?["age"] as? Int == 37)
        #expect(
            explorer.lines.sorted()
                == [
                    "Demo Demo [CDD1] connectable true", "service Battery primary true", "service CDD1 primary true",
                    "  characteristic Battery Level read", "  characteristic CDD2 read,write,notify", "  battery 87",
                    "  value Hello from CDD2", "  descriptor Client Characteristic Configuration = 0",
                    "  descriptor Characteristic User Description = A little of everything", "written true",
                ].sorted())
    }

    @Test func reconnectsWhenTheConnectionIsLost() async throws {
        let pair = try Pair { $0.supervisionTimeout = .milliseconds(20) }
        CBAdapters.use { pair.near }
        let peripheral = DemoPeripheral()
        CBAdapters.use { pair.far }
        defer { CBAdapters.use(nil) }
        let client = ReconnectingClient(service: CBUUID(string: "CDD1"))
        for round in 1...3 {
            try await until { client.connections == round }
            pair.radio.setInRange(false, between: pair.near, and: pair.far)
            try await until { client.losses == round }
            pair.radio.setInRange(true, between: pair.near, and: pair.far)
        }
        try await until { client.connections == 4 }
        #expect((client.lastError as? CBError)?.code == .connectionTimeout)
        withExtendedLifetime(peripheral) {}
    }

    /// The sample cuts text at any byte, and its receiver drops what is not text.
    @Test func theSampleLosesCharactersThatAreCut() async throws {
        let pair = try Pair()
        CBAdapters.use { pair.radio.makeAdapter() }
        defer { CBAdapters.use(nil) }
        let text = String(repeating: "ä", count: 9) + "x" + String(repeating: "ö", count: 20)
        let sender = TransferPeripheral(text: text, notifyMTU: 20)
        let receiver = TransferCentral()
        var received: String?
        receiver.onText = { received = $0 }
        try await until { received != nil }
        #expect(received != text)
        #expect(receiver.chunkSizes.reduce(0, +) < text.utf8.count)
        sender.stop()
    }

    @Test func showsHeartRates() async throws {
        let rates = (0..<100).map { UInt8(60 + $0) }
        let strap = HeartRateStrap(rates: rates)
        let model = HeartRateModel()
        try await until { model.rates.count == rates.count && model.location == "chest" }
        #expect(model.rates == rates.map(Int.init))
        #expect(model.status == "connected")
        withExtendedLifetime(strap) {}
    }

    @Test func echoesOverL2CAP() async {
        let server = EchoServer()
        let answer = await EchoClient(line: "hello over a channel").run()
        #expect(answer == "HELLO OVER A CHANNEL")
        withExtendedLifetime(server) {}
    }
}
