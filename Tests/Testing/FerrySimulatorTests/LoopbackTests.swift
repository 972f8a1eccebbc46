import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySimulator
import TestSupport
import Testing

/// The real channel, framing and backpressure over the loopback radio, with the simulator's link layer below it.
@Suite("Simulated link layer below the loopback radio", .tags(.simulator)) struct LoopbackTests {
    /// Two adapters on a radio whose link layer is simulated.
    final class Rig: Sendable {
        let time = VirtualTime()
        let radio: LoopbackRadio
        let configuration = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let peripheral: LoopbackAdapter
        let centrals: [LoopbackAdapter]
        var central: LoopbackAdapter { centrals[0] }

        init(
            _ parameters: LinkParameters, queueDepth: Int, seed: UInt64 = 1,
            faults: LoopbackRadio.Faults = LoopbackRadio.Faults(), centrals count: Int = 1
        ) throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.linkLayer = try RadioSimulator(parameters, seed: seed)
            configuration.attMTU = parameters.attMTU
            configuration.transmitQueueDepth = queueDepth
            configuration.faults = faults
            radio = try LoopbackRadio(time: time, configuration: configuration)
            let radio = radio
            peripheral = radio.makeAdapter()
            centrals = (0..<count).map { _ in radio.makeAdapter() }
        }

        /// The peripheral's link and the first central's.
        func links() async throws -> (any Link, any Link) { try await allLinks()[0] }

        /// The peripheral's link and the central's, for each central.
        func allLinks() async throws -> [(any Link, any Link)] {
            let listener = try await GATTTransport(adapter: peripheral, configuration: configuration, time: time)
                .listen()
            var incoming = listener.links.makeAsyncIterator()
            var pairs: [(any Link, any Link)] = []
            for central in centrals {
                let link = try await GATTTransport(adapter: central, configuration: configuration, time: time)
                    .connect(timeout: .seconds(30))
                guard let other = await incoming.next() else { throw FerryError(.peerNotFound, "no central came") }
                pairs.append((other, link))
            }
            return pairs
        }
    }

    /// Sends every message, in order, and returns what arrives and when the last one did.
    private static func exchange(
        _ messages: [[UInt8]], over outbound: any Link, _ inbound: any Link, _ time: VirtualTime
    )
        async throws -> (received: [[UInt8]], duration: Duration)
    {
        let sender = try MessageChannel(over: outbound, codec: BytesCodec(), time: time)
        let receiver = try MessageChannel(over: inbound, codec: BytesCodec(), time: time)
        let start = time.now
        async let sending: Void = { for message in messages { try await sender.send(message) } }()
        var received: [[UInt8]] = []
        for try await message in receiver.messages {
            received.append(message)
            if received.count == messages.count { break }
        }
        try await sending
        return (received, time.now - start)
    }

    @Test(
        "Messages arrive whole and in order through any queue depth and loss", arguments: 1...64, [0, 0.1])
    func order(queueDepth: Int, rate: Double) throws {
        let seed = UInt64(queueDepth)
        let lossy = link(interval: 7.5, dataLength: 251, attMTU: 185, loss: rate > 0 ? .packetErrorRate(rate) : .none)
        let rig = try Rig(lossy, queueDepth: queueDepth, seed: seed)
        let messages = (0..<20).map { [UInt8](repeating: UInt8($0), count: 100 + $0 * 37) }
        let result = try VirtualRun.run(under: rig.time) {
            let (first, second) = try await rig.links()
            return try await Self.exchange(messages, over: first, second, rig.time)
        }
        #expect(result.received == messages, "seed \(seed)")
    }

    /// How long thirty messages take, in virtual time, when half of the ready signals go wrong.
    private func duration(_ kind: LoopbackRadio.Faults.Kind?, seed: UInt64) throws -> Duration {
        var faults = LoopbackRadio.Faults(seed: seed)
        if let kind { faults.probabilities = [kind: 0.5] }
        let parameters = link(interval: 7.5, dataLength: 251, attMTU: 185)
        let rig = try Rig(parameters, queueDepth: 3, faults: faults)
        let messages = (0..<30).map { [UInt8](repeating: UInt8($0), count: 1_000) }
        let result = try VirtualRun.run(under: rig.time) {
            let (first, second) = try await rig.links()
            return try await Self.exchange(messages, over: first, second, rig.time)
        }
        #expect(result.received == messages, "seed \(seed)")
        return result.duration
    }

    @Test(
        "Ready signals that are late, early or never come cost time and nothing else",
        arguments: [LoopbackRadio.Faults.Kind.readyLate, .readyEarly, .readyNever])
    func readyFaults(kind: LoopbackRadio.Faults.Kind) throws {
        let clean = try duration(nil, seed: 5)
        let faulty = try duration(kind, seed: 5)
        #expect(clean < .seconds(1))
        // The channel's probe, every 15 ms, keeps it going.
        #expect(faulty >= clean && faulty < .seconds(10), "\(faulty) against \(clean)")
        if kind == .readyNever { #expect(faulty > clean) }
    }

    @Test("Chunks cross an L2CAP channel at the air's pace") func l2cap() throws {
        let parameters = link(interval: 30, dataLength: 251, isEncrypted: true, attMTU: 247)
        let rig = try Rig(parameters, queueDepth: 8)
        let messages = [[UInt8]](repeating: [UInt8](repeating: 1, count: 4_000), count: 20)
        let result = try VirtualRun.run(under: rig.time) {
            let events = Opened()
            let role = rig.peripheral.openPeripheral(events)
            let psm = try await role.publishL2CAPChannel(encryptionRequired: false)
            _ = try await role.startAdvertising(Advertisement(services: [rig.configuration.service]))
            let central = rig.central.openCentral(Nothing())
            let connection = try await central.connect(
                to: rig.central.identifier(of: rig.peripheral), events: Nothing())
            let outbound = try await connection.openL2CAPChannel(psm)
            let inbound = try await events.channel()
            return try await Self.exchange(messages, over: outbound, inbound, rig.time)
        }
        #expect(result.received == messages)
        let rate = Double(80_000 * 8) / result.duration.milliseconds
        // 247 bytes in 2500 us at the very most: 790 kbit/s.
        #expect(rate > 600 && rate < 790, "\(rate) kbit/s")
    }
}

/// A peripheral of which only the opened channel matters.
private final class Opened: PeripheralRoleEvents {
    private let channels = AsyncStream<any L2CAPChannel>.makeStream()
    func peripheralDidOpen(_ channel: any L2CAPChannel) { channels.continuation.yield(channel) }
    func channel() async throws -> any L2CAPChannel {
        for await channel in channels.stream { return channel }
        throw FerryError(.peerNotFound, "no channel was opened")
    }
}

private final class Nothing: CentralRoleEvents, PeripheralConnectionEvents {
    func peripheralDidDisconnect(_ reason: BluetoothError) {}
}
