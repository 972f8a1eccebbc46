import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import Synchronization
import TestSupport
import Testing

/// A session that outlives links to a peer which hangs on long values.
@Suite(.tags(.bluetooth, .sequenced, .recovery)) struct LongValueRecoveryTests {
    @Test(arguments: [LoopbackRadio.Faults.LongValueEffect.stall(.seconds(3600)), .disconnect])
    func sessionGoesOnWithShortValues(_ effect: LoopbackRadio.Faults.LongValueEffect) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.faults.longValueEffect = effect
        configuration.faults.longestValue = 27
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let limits = Mutex<[Int?]>([])
        var central = GATTTransport(adapter: radio.makeAdapter(), configuration: layout, time: time)
        central.valueSizes = ValueSizeMemory { change in limits.withLock { $0.append(change.limit) } }
        let near = ReconnectingTransport(over: central, time: time)
        let far = ReconnectingTransport(
            over: GATTTransport(adapter: radio.makeAdapter(), configuration: layout, time: time), time: time)
        let message = pattern(4000)
        let received = try time.run(within: .seconds(3600)) {
            let listener = try await far.listen()
            async let first =
                {
                    for await link in listener.links { return link }; return nil
                }() as (any Link)?
            let sender = try MessageChannel(
                over: try await near.connect(timeout: .seconds(30)), codec: BytesCodec(), framing: SequencedFraming(),
                time: time)
            let other = try #require(await first)
            let receiver = try MessageChannel(
                over: other, codec: BytesCodec(), framing: SequencedFraming(), time: time)
            async let sending: Void = sender.send(message)
            var messages = receiver.messages.makeAsyncIterator()
            let received = try await messages.next()
            try await sending
            sender.close()
            receiver.close()
            listener.close()
            return received
        }
        #expect(received == message)
        #expect(limits.withLock { $0 } == [20])
    }
}
