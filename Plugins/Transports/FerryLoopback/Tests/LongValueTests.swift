import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// Links to peers that stall or die of values longer than one link-layer packet, in virtual time.
@Suite(.tags(.bluetooth, .recovery)) struct LongValueTests {
    /// Who sends.
    enum Side: CaseIterable, Sendable { case central, peripheral }

    /// What a memory tells.
    private final class Changes: Sendable {
        let all = Mutex<[ValueSizeMemory.Change]>([])
        var limits: [Int?] { all.withLock { $0.map(\.limit) } }
        var causes: [ValueSizeMemory.Change.Cause] { all.withLock { $0.map(\.cause) } }

        func memory() -> ValueSizeMemory {
            ValueSizeMemory { [self] change in all.withLock { $0.append(change) } }
        }
    }

    /// A radio whose receivers fail on values above 20 bytes, and a transport for each side.
    private final class Rig: Sendable {
        let time = VirtualTime()
        let radio: LoopbackRadio
        let adapters: (LoopbackAdapter, LoopbackAdapter)
        let central: GATTTransport
        let peripheral: GATTTransport
        let changes = Changes()

        init(_ effect: LoopbackRadio.Faults.LongValueEffect?, _ side: Side) throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.faults.longValueEffect = effect
            radio = try LoopbackRadio(time: time, configuration: configuration)
            let layout = GATTConfiguration(
                service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
            adapters = (radio.makeAdapter(), radio.makeAdapter())
            var central = GATTTransport(adapter: adapters.0, configuration: layout, time: time)
            var peripheral = GATTTransport(adapter: adapters.1, configuration: layout, time: time)
            switch side {
            case .central: central.valueSizes = changes.memory()
            case .peripheral: peripheral.valueSizes = changes.memory()
            }
            (self.central, self.peripheral) = (central, peripheral)
        }

        func setInRange(_ isInRange: Bool) {
            radio.setInRange(isInRange, between: adapters.0, and: adapters.1)
        }

        /// The sending link and the receiving one.
        func links(_ listener: LinkListener, _ side: Side) async throws -> (any Link, any Link) {
            let near = try await central.connect(timeout: .seconds(30))
            var incoming = listener.links.makeAsyncIterator()
            guard let far = await incoming.next() else { throw FerryError(.peerNotFound, "no central came") }
            return side == .central ? (near, far) : (far, near)
        }
    }

    @Test(arguments: Side.allCases) func stalledLinkGoesOnAtTwentyBytesAndIsRemembered(_ side: Side) throws {
        let rig = try Rig(.stall(.seconds(12)), side)
        let message = pattern(9000)
        let (received, size) = try rig.time.run(within: .seconds(3600)) {
            let listener = try await rig.peripheral.listen()
            let (near, far) = try await rig.links(listener, side)
            #expect(near.maximumChunkSize == 182)
            let sender = try MessageChannel(over: near, codec: BytesCodec(), time: rig.time)
            let receiver = try MessageChannel(over: far, codec: BytesCodec(), time: rig.time)
            try await sender.send(message)
            var messages = receiver.messages.makeAsyncIterator()
            let received = try await messages.next()
            sender.close()
            _ = await receiver.closed
            let (again, _) = try await rig.links(listener, side)
            return (received, again.maximumChunkSize)
        }
        #expect(received == message)
        // It stalls, tries 40 bytes after 256 values, and stalls again; the next link begins with the limit.
        #expect(rig.changes.limits == [20, 40, 20])
        #expect(rig.changes.causes == [.stalled, .passed, .stalled])
        #expect(size == 20)
    }

    @Test(arguments: Side.allCases) func thirdLinkToADyingPeerCarriesTheMessage(_ side: Side) throws {
        let rig = try Rig(.disconnect, side)
        let message = pattern(2000)
        let (tries, received) = try rig.time.run(within: .seconds(600)) {
            let listener = try await rig.peripheral.listen()
            for attempt in 1...5 {
                let (near, far) = try await rig.links(listener, side)
                let sender = try MessageChannel(over: near, codec: BytesCodec(), time: rig.time)
                let receiver = try MessageChannel(over: far, codec: BytesCodec(), time: rig.time)
                async let sending: Void? = try? sender.send(message)
                var messages = receiver.messages.makeAsyncIterator()
                let received = try? await messages.next()
                await sending
                if let received { return (attempt, received) }
            }
            return (0, [])
        }
        #expect(tries == 3)
        #expect(received == message)
        #expect(rig.changes.limits == [20])
        #expect(rig.changes.causes == [.lost])
    }

    /// Distance is the usual reason: a connection that has carried many values and is lost says nothing about their length.
    @Test func peerThatWalksAwayKeepsLongValues() throws {
        let rig = try Rig(nil, .central)
        try rig.time.run(within: .seconds(600)) {
            let listener = try await rig.peripheral.listen()
            for _ in 0..<3 {
                let (near, far) = try await rig.links(listener, .central)
                let sender = try MessageChannel(over: near, codec: BytesCodec(), time: rig.time)
                let receiver = try MessageChannel(over: far, codec: BytesCodec(), time: rig.time)
                async let sending: Void = sender.send(pattern(182 * 70))
                var messages = receiver.messages.makeAsyncIterator()
                #expect(try await messages.next()?.count == 182 * 70)
                try await sending
                rig.setInRange(false)
                _ = await receiver.closed
                rig.setInRange(true)
            }
        }
        #expect(rig.changes.limits.isEmpty)
    }

    /// A slow reader stops its peer by flow control, which looks the same; the cost is bounded.
    @Test func slowReaderGetsItsLongValuesBack() throws {
        let rig = try Rig(nil, .peripheral)
        try rig.time.run(within: .seconds(3600)) {
            let listener = try await rig.peripheral.listen()
            let (near, far) = try await rig.links(listener, .peripheral)
            far.setReceiving(false)
            let sender = try MessageChannel(over: near, codec: BytesCodec(), time: rig.time)
            async let sending: Void = sender.send(pattern(1_000_000))
            try await rig.time.sleep(for: .seconds(12))
            #expect(near.maximumChunkSize == 20)
            let receiver = try MessageChannel(over: far, codec: BytesCodec(), time: rig.time)
            far.setReceiving(true)
            var messages = receiver.messages.makeAsyncIterator()
            #expect(try await messages.next() == pattern(1_000_000))
            try await sending
            #expect(near.maximumChunkSize == 182)
        }
        #expect(rig.changes.limits == [20, 40, 80, 160, 320, nil])
    }
}
