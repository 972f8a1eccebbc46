import CoreBluetooth
import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import Foundation
import Synchronization
import TestSupport
import Testing

/// The field's known defects, switched on in the radio: what plain code suffers from each, and that Ferry's own link
/// survives it.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct RadioDefectTests {
    typealias Faults = LoopbackRadio.Faults

    static let message = Data((0..<8000).map { UInt8(truncatingIfNeeded: $0 / 20 &* 7) })

    /// A radio on which the transmit queue fills, and on which something goes wrong.
    static func radio(_ faults: Faults, interval: Duration = .milliseconds(1)) throws -> Pair {
        try Pair {
            $0.transmitQueueDepth = 4
            $0.connectionInterval = interval
            $0.faults = faults
        }
    }

    /// Sends the message through a channel with acknowledgements over a link that connects again.
    static func survives(_ faults: Faults) async throws {
        let pair = try radio(faults)
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        var backoff = ReconnectingTransport<GATTTransport>.Backoff()
        backoff.initial = .milliseconds(10)
        let server = ReconnectingTransport(
            over: GATTTransport(adapter: pair.near, configuration: layout), backoff: backoff)
        let client = ReconnectingTransport(
            over: GATTTransport(adapter: pair.far, configuration: layout), backoff: backoff)
        let listener = try await server.listen()
        let near = try MessageChannel(
            over: try await client.connect(timeout: .unreached), codec: BytesCodec(), framing: SequencedFraming())
        var links = listener.links.makeAsyncIterator()
        let far = try MessageChannel(
            over: try #require(await links.next()), codec: BytesCodec(), framing: SequencedFraming())
        async let sent: Void = far.send(Array(message))
        let received = Mutex<[UInt8]?>(nil)
        let receiving = Task {
            for try await message in near.messages { received.withLock { $0 = message } }
        }
        try await until(
            "the message after \(pair.radio.injectedFaults): \(near.closeReason as Any), \(far.closeReason as Any)"
        ) { received.withLock { $0 != nil } }
        let isWhole = received.withLock { $0 == Array(message) }
        #expect(isWhole, "the channel delivers it")
        try await sent
        receiving.cancel()
        near.close()
        far.close()
        listener.close()
        #expect(!pair.radio.injectedFaults.isEmpty, "the fault has struck")
    }

    /// What a value suffers on its way.
    @Test(arguments: [Faults.Kind.lose, .double, .reorder, .truncate])
    func plainCodeReceivesSomethingElse(kind: Faults.Kind) async throws {
        let faults = Faults(seed: 1, script: [.init(kind, at: 5)])
        let transfer = try PlainTransfer(Self.radio(faults), Self.message)
        try await transfer.run()
        try await transfer.central.journal.wait(for: "value 3 ok")
        let received = transfer.received
        #expect(received != Self.message)
        switch kind {
        case .lose: #expect(received.count == Self.message.count - 20)
        case .double: #expect(received.count == Self.message.count + 20)
        case .reorder: #expect(received.count == Self.message.count)
        default: #expect((Self.message.count - 19..<Self.message.count).contains(received.count))
        }
        try await Self.survives(faults)
    }

    /// A connection that ends in the middle leaves plain code with a part, and no end.
    @Test func plainCodeIsLeftWithAPart() async throws {
        let faults = Faults(script: [.init(.disconnect, at: 20)])
        let transfer = try PlainTransfer(Self.radio(faults), Self.message)
        // On a busy machine the connection ends before the central has heard that it is subscribed.
        let running = Task { try await transfer.run() }
        defer { running.cancel() }
        try await transfer.central.journal.wait(for: "disconnected CBError connectionTimeout")
        #expect(transfer.received == Self.message.prefix(19 * 20))
        #expect(transfer.central.journal.count("value 3 ok") == 0)
        try await Self.survives(faults)
    }

    /// Without the ready signal plain code waits for good: all that it has sent has arrived, and nobody wakes it.
    @Test func plainCodeWaitsForAReadySignalThatNeverComes() async throws {
        let faults = Faults(probabilities: [.readyNever: 1])
        // 400 values fill the queue at least once, unless each five of them take 20 ms.
        let transfer = try PlainTransfer(Self.radio(faults, interval: .milliseconds(20)), Self.message)
        try await transfer.run()
        try await until("a refusal") { transfer.refusals > 0 }
        let accepted = transfer.accepted
        #expect(accepted < 400)
        try await transfer.central.journal.wait(for: "value", accepted)
        #expect(transfer.accepted == accepted && transfer.refusals == 1)
        #expect(transfer.peripheral.journal.count("ready") == 0)
        try await Self.survives(faults)
    }

    /// Ready signals that come early or late cost plain code a refusal or time, and nothing else.
    @Test(arguments: [Faults.Kind.readyEarly, .readyLate])
    func plainCodeIsRefusedAgain(kind: Faults.Kind) async throws {
        var faults = Faults(probabilities: [kind: kind == .readyEarly ? 0.9 : 1])
        faults.readyDelay = .milliseconds(5)
        let transfer = try PlainTransfer(Self.radio(faults), Self.message)
        try await transfer.run()
        try await transfer.central.journal.wait(for: "value 3 ok")
        #expect(transfer.received == Self.message)
        #expect(transfer.pair.radio.injectedFaults[kind, default: 0] > 0)
        try await Self.survives(faults)
    }

    /// Code that asks for the length once has its values cut when ATT_MTU shrinks; code that asks each time does not.
    @Test func plainCodeThatAsksOnceIsCut() async throws {
        var faults = Faults(script: [.init(.changeMTU, at: 5)])
        faults.mtuRange = 100...100
        let once = try PlainTransfer(Self.radio(faults), Self.message, chunk: .askedOnce)
        try await once.run()
        try await once.central.journal.wait(for: "value 3 ok")
        #expect(once.received.count < Self.message.count)
        let each = try PlainTransfer(Self.radio(faults), Self.message, chunk: .askedEachTime)
        try await each.run()
        try await each.central.journal.wait(for: "value 3 ok")
        // What was queued before the change stays whole. ATT_MTU may change between the question and the update, for one value.
        #expect((Self.message.count - 512..<Self.message.count + 1).contains(each.received.count))
        #expect(once.received.count < Self.message.count - 512)
        try await Self.survives(faults)
    }

    /// Before the exchange ATT_MTU may be told wrongly: who keeps what it was told writes too much.
    @Test func plainCodeBelievesTheFirstMTU() async throws {
        var faults = Faults()
        faults.wrongMTU = 512
        let pair = try Pair {
            $0.connectionInterval = .milliseconds(40)
            $0.faults = faults
        }
        let peripheral = PeripheralSide(on: pair.near, properties: [.write, .writeWithoutResponse])
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let told = Mutex(0)
        central.onConnect = { peer in told.withLock { $0 = peer.maximumWriteValueLength(for: .withoutResponse) } }
        // On a busy machine the exchange may be over before the program's queue has its turn: then once more.
        let peer = try await central.find()
        for attempt in (1...) {
            central.manager.connect(peer)
            try await central.journal.wait(for: "connected", attempt)
            if told.withLock({ $0 }) == 509 { break }
            central.manager.cancelPeripheralConnection(peer)
            try await central.journal.wait(for: "disconnected", attempt)
        }
        #expect(told.withLock { $0 } == 509)
        let characteristic = try await central.discover(peer)
        #expect(peer.maximumWriteValueLength(for: .withoutResponse) == 182)
        let lines = MisuseLog.count("more than maximumWriteValueLength") {
            peer.writeValue(Data(count: 509), for: characteristic, type: .withoutResponse)
        }
        #expect(lines == 1)
        peer.writeValue(Data(count: 1), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written ok")
        #expect(peripheral.journal.all.filter { $0.hasPrefix("write") } == ["write 0+1"], "the long one is lost")
    }

    /// On a new connection `canSendWriteWithoutResponse` stays false: who waits for it to change never begins. In a
    /// process of its own, because the quirk concerns all connections.
    @Test func plainCodeNeverBegins() async throws {
        await #expect(processExitsWith: .success) {
            CBAdapters.quirks = .cannotSendBeforeFirstWrite
            let pair = try Pair()
            let peripheral = PeripheralSide(on: pair.near, properties: [.write, .writeWithoutResponse])
            try await peripheral.begin()
            let central = CentralSide(on: pair.far)
            let (peer, characteristic) = try await central.connect()
            #expect(!peer.canSendWriteWithoutResponse)
            peer.readRSSI()
            try await central.journal.wait(for: "rssi")
            #expect(!peer.canSendWriteWithoutResponse, "nothing changes it")
            #expect(central.journal.count("ready") == 0)
            peer.writeValue(Data([1]), for: characteristic, type: .withoutResponse)
            try await peripheral.journal.wait(for: "write 0+1")
            try await until("room for a write") { peer.canSendWriteWithoutResponse }
        }
        // Ferry's link asks the queue itself; it writes without response in every test here.
        try await Self.survives(Faults(script: [.init(.double, at: 9)]))
    }
}
