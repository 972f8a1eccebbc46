import CMemoryCounter
public import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySimulator

/// The whole channel: a sender's and a receiver's `MessageChannel`, over GATT links, over the loopback radio.
public struct ChannelWorkload: Sendable {
    private let framing: @Sendable () -> any Framing
    private let attMTU: Int
    private let messageSize: Int

    /// Messages of `messageSize` bytes, one after the other, as notifications of at most `attMTU` - 3 bytes.
    public init(_ framing: @escaping @Sendable () -> any Framing, attMTU: Int, messageSize: Int) {
        self.framing = framing
        self.attMTU = attMTU
        self.messageSize = messageSize
    }

    /// What a number of messages took.
    public struct Outcome: Sendable {
        /// Messages that were sent and arrived.
        public var messages: Int
        /// Chunks that the sender's link took, and their bytes.
        public var chunks: Int
        /// Bytes of those chunks.
        public var bytes: Int
        /// How often the sender waited for the link to be ready.
        public var waits: Int
        /// The calling thread's allocations. All there are under virtual time.
        public var allocations: Int
        /// Bytes that the calling thread copied. All there are under virtual time.
        public var copiedBytes: Int
        /// Time that passed, in nanoseconds.
        public var elapsed: Double
        /// Processor time of all threads, in nanoseconds.
        public var processor: Double
    }

    /// Under virtual time, on the calling thread: the same on every run.
    public func exact(messages: Int) throws -> Outcome {
        let time = VirtualTime()
        return try VirtualRun.run(under: time) { [self] in
            let ends = try await open(time)
            _ = try await transfer(1, ends)
            return try await transfer(messages, ends)
        }
    }

    /// An hour of simulated radio time with the queue always full: what it carries, and by how many bytes the process's
    /// resident memory grows after the first minute (nil where the system does not tell).
    public func hour() throws -> (chunks: Int, waits: Int, growth: Int?) {
        let time = VirtualTime()
        var parameters = LinkParameters()
        parameters.attMTU = attMTU
        parameters.connectionInterval = .milliseconds(30)
        let simulator = try RadioSimulator(parameters, profile: .android)
        return try VirtualRun.run(under: time) { [self] in
            let (sender, receiver) = try await open(time, over: simulator)
            let message = [UInt8](repeating: 7, count: messageSize)
            return try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { while true { try await sender.send(message) } }
                group.addTask { for try await _ in receiver.messages {} }
                try await time.sleep(for: .seconds(60))
                let before = status("VmRSS:")
                try await time.sleep(for: .seconds(3600))
                let after = status("VmRSS:")
                let statistics = sender.statistics
                sender.close()
                receiver.close()
                while await group.nextResult() != nil {}
                let growth = before.flatMap { before in after.map { $0 - before } }
                return (statistics.chunksSent, statistics.waitsForReady, growth)
            }
        }
    }

    /// In real time.
    public func timed(rounds: Int, messages: Int) async throws -> [Outcome] {
        let ends = try await open(SystemTime())
        _ = try await transfer(messages, ends)
        var outcomes: [Outcome] = []
        for _ in 0..<rounds { outcomes.append(try await transfer(messages, ends)) }
        return outcomes
    }

    private typealias Ends = (sender: MessageChannel<[UInt8], [UInt8]>, receiver: MessageChannel<[UInt8], [UInt8]>)

    private func open(_ time: any TimeSource, over linkLayer: (any LinkLayerModel)? = nil) async throws -> Ends {
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        configuration.linkLayer = linkLayer
        configuration.advertisingInterval = .milliseconds(1)
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let listener = try await GATTTransport(
            adapter: radio.makeAdapter(), configuration: layout, time: time
        ).listen()
        let central = try await GATTTransport(
            adapter: radio.makeAdapter(), configuration: layout, time: time
        ).connect(timeout: .seconds(10))
        var links = listener.links.makeAsyncIterator()
        guard let peripheral = await links.next() else {
            throw FerryError(.peerNotFound, "The central connected, and the peripheral has no link to it.")
        }
        let framing = framing()
        func channel(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(over: link, codec: BytesCodec(), framing: framing, limits: .wide, time: time)
        }
        return (try channel(peripheral), try channel(central))
    }

    private func transfer(_ count: Int, _ ends: Ends) async throws -> Outcome {
        let message = [UInt8](repeating: 7, count: messageSize)
        let (sender, receiver) = ends
        let before = sender.statistics
        let (allocations, copied) = (ferry_allocation_count(), ferry_copied_bytes())
        let start = (ContinuousClock.now, ferry_process_nanoseconds())
        async let sending: Void = {
            for _ in 0..<count { try await sender.send(message) }
        }()
        var messages = receiver.messages.makeAsyncIterator()
        for _ in 0..<count {
            guard let received = try await messages.next(), received.count == messageSize else {
                throw FerryError(.truncatedMessage, "A message got lost on the way.")
            }
        }
        try await sending
        let elapsed = start.0.duration(to: .now)
        let after = sender.statistics
        return Outcome(
            messages: count, chunks: after.chunksSent - before.chunksSent, bytes: after.bytesSent - before.bytesSent,
            waits: after.waitsForReady - before.waitsForReady,
            // In real time the thread may be another one by now.
            allocations: Int(truncatingIfNeeded: ferry_allocation_count() &- allocations),
            copiedBytes: Int(truncatingIfNeeded: ferry_copied_bytes() &- copied),
            elapsed: Double(elapsed.wholeNanoseconds),
            processor: Double(ferry_process_nanoseconds() - start.1))
    }
}
