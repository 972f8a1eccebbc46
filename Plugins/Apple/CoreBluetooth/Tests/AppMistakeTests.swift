import CoreBluetooth
import CoreBluetoothSwift5Programs
import Ferry
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Habits of apps and wrappers that go wrong with any radio: what they suffer, and that Ferry's channel does not.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct AppMistakeTests {
    /// A wrapper with one place for whoever waits, and what it sends.
    private final class Wrapper: Sendable {
        private struct State {
            var waiter: (@Sendable () -> Void)?
            var resumed = 0
        }
        private let state = Mutex(State())
        let side: PeripheralSide

        init(_ side: PeripheralSide) {
            self.side = side
            side.onReady = { [weak self] in self?.ready() }
        }

        var resumed: Int { state.withLock { $0.resumed } }

        func update(_ byte: UInt8) -> Bool {
            side.manager.updateValue(Data([byte]), for: side.characteristic, onSubscribedCentrals: nil)
        }

        /// Keeps one waiter: a second one takes its place.
        func whenReady(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.waiter = body } }

        private func ready() {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                if state.waiter != nil { state.resumed += 1 }
                return state.waiter
            }
            waiter?()
        }
    }

    /// On a radio whose queue fills while its time stands still.
    private static func wrapped() async throws -> (Wrapper, CentralSide, VirtualTime) {
        let time = VirtualTime()
        let pair = try Pair(time: time) {
            $0.transmitQueueDepth = 4
            $0.connectionInterval = .milliseconds(5)
        }
        let side = PeripheralSide(on: pair.near)
        let wrapper = Wrapper(side)
        let central = CentralSide(on: pair.far)
        try await time.passing {
            try await side.begin()
            _ = try await central.subscribe()
            try await side.journal.wait(for: "subscribed")
        }
        return (wrapper, central, time)
    }

    /// Fills the queue; gives how many values went in.
    private static func fill(_ wrapper: Wrapper) -> Int {
        var sent = 0
        while wrapper.update(UInt8(sent)) { sent += 1 }
        return sent
    }

    /// The ready signal comes before the waiter is there: it waits for good.
    @Test func aWaiterThatComesLateWaitsForGood() async throws {
        let (wrapper, central, time) = try await Self.wrapped()
        let sent = Self.fill(wrapper)
        try await time.passing { try await wrapper.side.journal.wait(for: "ready") }
        wrapper.whenReady {}
        try await time.passing { try await central.journal.wait(for: "value", sent) }
        #expect(wrapper.side.journal.count("ready") == 1, "one refusal, one signal, and it is gone")
        #expect(wrapper.resumed == 0)
    }

    /// Two writers and one place for a waiter: the first is forgotten.
    @Test func aSecondWriterTakesTheFirstOnesPlace() async throws {
        let (wrapper, central, time) = try await Self.wrapped()
        let woken = Mutex<[Int]>([])
        wrapper.whenReady { woken.withLock { $0.append(1) } }
        wrapper.whenReady { woken.withLock { $0.append(2) } }
        let sent = Self.fill(wrapper)
        try await time.passing {
            try await central.journal.wait(for: "value", sent)
            try await wrapper.side.journal.wait(for: "ready")
        }
        #expect(woken.withLock { $0 } == [2])
    }

    /// Chunks wait in the wrapper for the ready signal; a new send does not look at them, and goes first.
    @Test func aNewSendOvertakesWhatWaits() async throws {
        let (wrapper, central, time) = try await Self.wrapped()
        let sent = Self.fill(wrapper)
        let isThrough = Mutex<[Bool]>([])
        wrapper.whenReady {
            // What was refused is `sent`; the app's next message is 99.
            for byte in [99, UInt8(sent)] { isThrough.withLock { $0.append(wrapper.update(byte)) } }
        }
        try await time.passing {
            try await wrapper.side.journal.wait(for: "ready")
            try await central.journal.wait(for: "value", sent + 1)
        }
        let first = central.values.withLock { Array($0.prefix(sent + 1)) }
        #expect(first == (0..<sent).map { Data([UInt8($0)]) } + [Data([99])])
        #expect(isThrough.withLock { $0.first } == true)
    }

    /// The characteristic's value, read later than in the callback, is the last one each time.
    @Test func aValueReadLateIsTheLastOne() async throws {
        let (wrapper, central, time) = try await Self.wrapped()
        let characteristic = try #require(
            central.found.withLock { $0.peripheral }?.services?.first?.characteristics?.first)
        let later = DispatchQueue(label: "later")
        let read = Mutex<[Data]>([])
        later.suspend()
        central.onUpdate = {
            later.async { read.withLock { $0.append(characteristic.value ?? Data()) } }
        }
        for byte in 1...3 { #expect(wrapper.update(UInt8(byte))) }
        try await time.passing { try await central.journal.wait(for: "value", 3) }
        later.resume()
        later.sync {}
        #expect(read.withLock { $0 } == [Data([3]), Data([3]), Data([3])])
        #expect(central.values.withLock { $0 } == [Data([1]), Data([2]), Data([3])])
    }

    /// Two senders at once on Ferry's channel, over the same small queue: both messages arrive whole and in order.
    @Test func aChannelTakesTwoWritersAtOnce() async throws {
        let pair = try RadioDefectTests.radio(.init(probabilities: [.readyEarly: 0.5]))
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        let listener = try await GATTTransport(adapter: pair.near, configuration: layout).listen()
        let near = try MessageChannel(
            over: try await GATTTransport(adapter: pair.far, configuration: layout).connect(timeout: .unreached),
            codec: BytesCodec())
        var links = listener.links.makeAsyncIterator()
        let far = try MessageChannel(over: try #require(await links.next()), codec: BytesCodec())
        let (one, other) = ([UInt8](repeating: 1, count: 5000), [UInt8](repeating: 2, count: 5000))
        async let first: Void = far.send(one)
        async let second: Void = far.send(other)
        var messages = near.messages.makeAsyncIterator()
        let received = [try await messages.next(), try await messages.next()]
        #expect(received == [one, other] || received == [other, one])
        _ = try await (first, second)
        near.close()
        far.close()
        listener.close()
    }

    /// A chunk that says "EOM" ends the message for the well-known receiver; Ferry's sender cuts it otherwise.
    @Test(arguments: [false, true]) func aChunkThatSaysEOM(byFerry: Bool) async throws {
        let pair = try Pair()
        let message = Data("twenty bytes of text".utf8) + Data("EOM".utf8)
        guard byFerry else {
            let transfer = PlainTransfer(pair, message)
            try await transfer.run()
            try await transfer.central.journal.wait(for: "value 3 ok", 2)
            #expect(transfer.received == message.prefix(20), "the rest is lost")
            return
        }
        let layout = try GATTConfiguration(
            service: BluetoothUUID(testService.uuidString),
            characteristic: BluetoothUUID(testCharacteristic.uuidString))
        let listener = try await GATTTransport(adapter: pair.near, configuration: layout).listen()
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        var links = listener.links.makeAsyncIterator()
        let channel = try MessageChannel(
            over: try #require(await links.next()), codec: BytesCodec(), framing: EndOfMessageFraming())
        try await channel.send(Array(message))
        try await central.journal.wait(for: "value 3 ok")
        let values = central.values.withLock { $0 }
        #expect(values.last == Data("EOM".utf8))
        #expect(Data(values.dropLast().joined()) == message)
        channel.close()
        listener.close()
    }

    /// Values for everybody: who subscribes in the middle gets the rest alone.
    @Test func aLateSubscriberGetsTheRest() async throws {
        let pair = try Pair { $0.transmitQueueDepth = 64 }
        let side = PeripheralSide(on: pair.near)
        try await side.begin()
        let early = CentralSide(on: pair.far)
        let late = CentralSide(on: pair.radio.makeAdapter())
        _ = try await early.subscribe()
        try await side.journal.wait(for: "subscribed", 1)
        func send(_ bytes: ClosedRange<UInt8>) {
            for byte in bytes {
                #expect(
                    side.manager.updateValue(Data([byte]), for: side.characteristic, onSubscribedCentrals: nil))
            }
        }
        send(1...5)
        try await early.journal.wait(for: "value", 5)
        _ = try await late.subscribe()
        try await side.journal.wait(for: "subscribed", 2)
        send(6...9)
        try await late.journal.wait(for: "value", 4)
        #expect(late.values.withLock { $0 } == (6...9).map { Data([$0]) })
    }
}
