import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySimulator
import Synchronization
import Testing

/// The real channel, framing and backpressure over the loopback radio, with the simulator's link layer below it.
@Suite("Simulated link layer below the loopback radio") struct LoopbackTests {
    /// Two channels over one GATT link whose radio is simulated. Time passes by itself: whenever tasks wait, the next
    /// timer runs.
    private final class Rig: Sendable {
        let time = VirtualTime()
        let radio: LoopbackRadio
        let configuration = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let peripheral: LoopbackAdapter
        let central: LoopbackAdapter
        private let isOver = Atomic(false)

        init(_ parameters: LinkParameters, queueDepth: Int, seed: UInt64 = 1) throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.linkLayer = try RadioSimulator(parameters, seed: seed)
            configuration.attMTU = parameters.attMTU
            configuration.transmitQueueDepth = queueDepth
            radio = try LoopbackRadio(time: time, configuration: configuration)
            peripheral = radio.makeAdapter()
            central = radio.makeAdapter()
        }

        func links() async throws -> (any Link, any Link) {
            let listener = try await GATTTransport(adapter: peripheral, configuration: configuration, time: time)
                .listen()
            let central = try await GATTTransport(adapter: central, configuration: configuration, time: time)
                .connect(timeout: .seconds(30))
            for await link in listener.links { return (link, central) }
            throw FerryError(.peerNotFound, "no central came")
        }

        /// Lets virtual time pass while `body` runs.
        func run<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
            let driver = Task { [time] in
                while !Task.isCancelled {
                    time.runNext()
                    await Task.yield()
                }
            }
            defer { driver.cancel() }
            return try await body()
        }
    }

    @Test(
        "Messages arrive whole and in order through any queue depth and loss", arguments: [1, 2, 3, 8, 64], [0, 0.1])
    func order(queueDepth: Int, rate: Double) async throws {
        let seed = UInt64(queueDepth)
        let lossy = link(interval: 7.5, dataLength: 251, attMTU: 185, loss: rate > 0 ? .packetErrorRate(rate) : .none)
        let rig = try Rig(lossy, queueDepth: queueDepth, seed: seed)
        let received = try await rig.run {
            let (first, second) = try await rig.links()
            let sender = MessageChannel(over: first, codec: BytesCodec(), time: rig.time)
            let receiver = MessageChannel(over: second, codec: BytesCodec(), time: rig.time)
            let sending = Task {
                for number in 0..<20 {
                    try await sender.send([UInt8](repeating: UInt8(number), count: 100 + number * 37))
                }
            }
            var received: [[UInt8]] = []
            for try await message in receiver.messages {
                received.append(message)
                if received.count == 20 { break }
            }
            try await sending.value
            return received
        }
        #expect(received == (0..<20).map { [UInt8](repeating: UInt8($0), count: 100 + $0 * 37) }, "seed \(seed)")
    }
}
