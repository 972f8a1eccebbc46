import CoreBluetooth
import CoreBluetoothSwift5Programs
import Ferry
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// A Ferry channel on one side and plain CoreBluetooth code on the other: chunks of 20 bytes, then "EOM".
@Suite(.tags(.coreBluetooth), .serialized, .exclusive, .timeLimit(.minutes(5))) @MainActor struct FerryPeerTests {
    private let radio: LoopbackRadio
    private let layout: GATTConfiguration
    private let text = (0..<200).map { "Line \($0): grüß dich, quick brown fox.\n" }.joined()

    init() throws {
        radio = try Pair().radio
        layout = try GATTConfiguration(
            service: BluetoothUUID(TransferService.serviceUUID.uuidString),
            characteristic: BluetoothUUID(TransferService.characteristicUUID.uuidString))
    }

    private func channel(_ link: any Link) throws -> MessageChannel<String, String> {
        try MessageChannel(over: link, codec: TextCodec(), framing: EndOfMessageFraming())
    }

    /// The well-known receiver hears from a channel.
    @Test func theTransferSampleReceivesFromAChannel() async throws {
        let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
        // That receiver drops chunks that are not text, so the sender cuts between characters.
        let framing = try EndOfMessageFraming(content: .text)
        let text = text
        let sending = Task {
            for await link in listener.links {
                let channel = try MessageChannel(over: link, codec: TextCodec(), framing: framing)
                try await channel.send(text)
                for try await _ in channel.messages {}
                return
            }
        }
        CBAdapters.use { [radio] in radio.makeAdapter() }
        defer { CBAdapters.use(nil) }
        let receiver = TransferCentral()
        var received: String?
        receiver.onText = { received = $0 }
        try await until { received != nil }
        #expect(received == text)
        #expect(receiver.chunkSizes.max() ?? 0 <= 20)
        #expect(receiver.chunkSizes.count >= text.utf8.count / 20)
        // The receiver disconnects when it has everything, which ends the channel.
        _ = await sending.result
    }

    /// The well-known sender talks to a channel.
    @Test func aChannelReceivesFromTheTransferSample() async throws {
        CBAdapters.use { [radio] in radio.makeAdapter() }
        defer { CBAdapters.use(nil) }
        let sender = TransferPeripheral(text: text, notifyMTU: 20)
        var isDone = false
        sender.onDone = { isDone = true }
        let link = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
            .connect(timeout: .unreached)
        let channel = try channel(link)
        var messages = channel.messages.makeAsyncIterator()
        let received = try await messages.next()
        #expect(received == text)
        try await until { isDone }
        channel.close()
        sender.stop()
    }

    /// Plain code in the peripheral role echoes what a channel writes: both directions of one link.
    @Test func plainPeripheralAnswersAChannel() async throws {
        let side = PeripheralSide(
            on: radio.makeAdapter(), properties: [.notify, .write, .writeWithoutResponse], permissions: [.writeable])
        let collected = Mutex((whole: Data(), chunks: [Int](), queue: [Data]()))
        let send: @Sendable () -> Void = { [weak side] in
            guard let side else { return }
            collected.withLock { collected in
                while let next = collected.queue.first {
                    guard side.manager.updateValue(next, for: side.characteristic, onSubscribedCentrals: nil) else {
                        return
                    }
                    collected.queue.removeFirst()
                }
            }
        }
        side.onReady = send
        side.onWrite = { requests in
            collected.withLock { collected in
                for value in requests.compactMap(\.value) {
                    collected.chunks.append(value.count)
                    guard value == Data("EOM".utf8) else {
                        collected.whole.append(value)
                        continue
                    }
                    let answer = Data(collected.whole.reversed())
                    collected.queue += stride(from: 0, to: answer.count, by: 20).map {
                        answer.subdata(in: $0..<min($0 + 20, answer.count))
                    }
                    collected.queue.append(value)
                    collected.whole = Data()
                }
            }
            send()
        }
        try await side.begin()
        let link = try await GATTTransport(adapter: radio.makeAdapter(), configuration: plainLayout)
            .connect(timeout: .unreached)
        let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: EndOfMessageFraming())
        var messages = channel.messages.makeAsyncIterator()
        for message in [Array(text.utf8), [1], [UInt8](repeating: 7, count: 20), Array("xEOM".utf8)] {
            try await channel.send(message)
            let answer = try await messages.next()
            #expect(answer == Array(message.reversed()))
        }
        channel.close()
        #expect(collected.withLock { $0.chunks.max() } == 20)
        #expect(side.journal.count("WRONG QUEUE") == 0)
    }

    /// Plain code in the central role writes chunks and "EOM" to a channel, and collects its answers.
    @Test func plainCentralTalksToAChannel() async throws {
        let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: plainLayout).listen()
        let serving = Task {
            for await link in listener.links {
                let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: EndOfMessageFraming())
                for try await message in channel.messages { try await channel.send(message.reversed()) }
            }
        }
        let side = CentralSide(on: radio.makeAdapter())
        let (peer, characteristic) = try await side.subscribe()
        let message = Data(text.utf8)
        for start in stride(from: 0, to: message.count, by: 20) {
            try await until("room at \(start)") { peer.canSendWriteWithoutResponse }
            peer.writeValue(
                message.subdata(in: start..<min(start + 20, message.count)), for: characteristic,
                type: .withoutResponse)
        }
        peer.writeValue(Data("EOM".utf8), for: characteristic, type: .withResponse)
        try await side.journal.wait(for: "value 3 ok")
        let values = side.values.withLock { $0 }
        #expect(values.last == Data("EOM".utf8))
        #expect(values.dropLast().allSatisfy { $0.count <= 20 })
        #expect(Data(values.dropLast().joined()) == Data(message.reversed()))
        side.manager.cancelPeripheralConnection(peer)
        serving.cancel()
        listener.close()
    }

    private var plainLayout: GATTConfiguration {
        get throws {
            try GATTConfiguration(
                service: BluetoothUUID(testService.uuidString),
                characteristic: BluetoothUUID(testCharacteristic.uuidString))
        }
    }
}
