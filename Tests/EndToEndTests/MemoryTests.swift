import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import FerryTesting
import FerryZlib
import Foundation
import Synchronization
import TestSupport
import Testing

#if os(Linux)
    /// What has come to its end holds no memory: not its timers, not what had arrived of a message, not its connection.
    ///
    /// Each runs in a process of its own, where nothing else takes memory. `make verify` has them run at length
    /// (`FERRY_MEMORY`: how many times as often).
    @Suite(
        .tags(.channel, .slow), .timeLimit(.minutes(60)),
        .disabled(if: ProcessMemory.isSanitized, "sanitizers keep books on memory, in memory"))
    struct MemoryTests {
        /// Both sides were in the middle of a message. The timers are the system's.
        @Test func linksThatDieInTheMiddleOfAMessageLeaveNothing() async {
            await #expect(processExitsWith: .success) {
                let framings: [any Framing] = [
                    LengthPrefixFraming(), try EndOfMessageFraming(chunkSize: nil), SequencedFraming(),
                ]
                try expectFlatMemory(10_000) { number in
                    let framing = framings[number % framings.count]
                    dieInTheMiddle(framing)
                }
            }
        }

        @Test func sendsWithATimeoutOfAnHourLeaveNothing() async {
            await #expect(processExitsWith: .success) {
                let links = MemoryLink.makePair(maximumChunkSize: 100)
                let (near, far) = (makeCore(links.0), makeCore(links.1))
                try expectFlatMemory(1000) { _ in
                    near.submit(pattern(150), as: near.makeID(), timeout: .seconds(3600)) { result in
                        if case .failure(let error) = result { Issue.record(error) }
                    }
                    while links.0.deliver() {}
                    if case .message? = far.take() { return }
                    Issue.record("a message is missing")
                }
            }
        }

        /// libz holds 300 KiB for a stream that compresses and 40 for one that decompresses.
        @Test func compressedMessagesLeaveNothing() async {
            await #expect(processExitsWith: .success) {
                let zlib = ZlibCompression()
                let plain = pattern(2000)
                try expectFlatMemory(300) { _ in
                    var compressed: [UInt8] = []
                    let isSmaller = try zlib.compress(plain.span.bytes, into: &compressed, budget: plain.count)
                    let back = try zlib.decompress(compressed.span.bytes, plainCount: plain.count)
                    if !isSmaller || back != plain { Issue.record("the message has changed") }
                }
            }
        }

        /// One after the other, between the same two adapters, by GATT.
        @Test func connectionsThatDieInTheMiddleOfAMessageLeaveNothing() async {
            await #expect(processExitsWith: .success) {
                let tasks = SteppedTasks()
                try tasks.run {
                    let air = try DyingAir()
                    try expectFlatMemory(300) { _ in air.dieInTheMiddle(tasks) }
                }
            }
        }
    }

    /// Calls `body` `count` times, more often with `FERRY_MEMORY`. After the first tenth the process holds no more than 2 MB more.
    ///
    /// A leak grows with each tenth. On a busy machine the thread of the timers falls behind once, and the allocator keeps what
    /// that took: the median of the tenths counts for all of them, and the whole is bounded.
    private func expectFlatMemory(_ count: Int, _ body: (Int) throws -> Void) throws {
        let count = count * (ProcessInfo.processInfo.environment["FERRY_MEMORY"].flatMap(Int.init) ?? 1)
        let held = try (0..<10).map { part in
            for number in part * count / 10..<(part + 1) * count / 10 { try body(number) }
            return try ProcessMemory.resident
        }
        let growth = zip(held.dropFirst(), held).map(-)
        #expect(9 * growth.sorted()[4] < 2_000_000, "\(growth) bytes more after each tenth of \(count)")
        #expect(held[9] - held[0] < 8_000_000, "\(held[9] - held[0]) bytes more after \(count)")
        print("\(count) times: \(held[0]) bytes after the first tenth, then \(growth)")
    }

    private func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

    private func makeCore(_ link: any Link, _ framing: some Framing = LengthPrefixFraming()) -> ChannelCore {
        let limits = Limits()
        let core = ChannelCore(
            link: link, session: framing.makeSession(limits: limits), chunkSize: .max, limits: limits,
            time: SystemTime())
        core.open()
        return core
    }

    private func dieInTheMiddle(_ framing: some Framing) {
        let links = MemoryLink.makePair(maximumChunkSize: 100, queueDepth: 3)
        let cores = [makeCore(links.0, framing), makeCore(links.1, framing)]
        // A session may greet first.
        while links.0.deliver() || links.1.deliver() {}
        for core in cores {
            core.submit(pattern(1000), as: core.makeID(), timeout: .seconds(60)) { result in
                if case .success = result { Issue.record("a message of 1000 bytes cannot have been sent") }
            }
        }
        for _ in 0..<2 { if !links.0.deliver() || !links.1.deliver() { Issue.record("nothing is under way") } }
        if cores[0].arriving == nil { Issue.record("no message is arriving") }
        links.0.disconnect()
    }

    /// A peripheral that listens, and a central that connects, sends and is gone.
    private final class DyingAir: Sendable {
        let time = VirtualTime()
        let radio: LoopbackRadio
        let server: LoopbackAdapter
        let client: LoopbackAdapter
        private static let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

        init() throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.connectionInterval = .milliseconds(15)
            configuration.packetsPerEvent = 1
            configuration.supervisionTimeout = .milliseconds(100)
            radio = try LoopbackRadio(time: time, configuration: configuration)
            server = radio.makeAdapter()
            client = radio.makeAdapter()
        }

        func dieInTheMiddle(_ tasks: SteppedTasks) {
            radio.setInRange(true, between: server, and: client)
            let exchange = Task { [self] in
                let listener = try await GATTTransport(adapter: server, configuration: Self.layout, time: time)
                    .listen()
                let near = try await GATTTransport(adapter: client, configuration: Self.layout, time: time)
                    .connect(timeout: .seconds(60))
                var links = listener.links.makeAsyncIterator()
                let far = try #require(await links.next())
                let channels = try [near, far].map {
                    try MessageChannel(over: $0, codec: BytesCodec(), framing: SequencedFraming(), time: time)
                }
                let sending = Task { try await channels[0].send(pattern(5000), timeout: .seconds(3600)) }
                try await time.until("the message arrives") { channels[1].arriving != nil }
                radio.setInRange(false, between: server, and: client)
                for channel in channels { _ = await channel.closed }
                if case .success = await sending.result { Issue.record("sent, to nobody") }
                listener.close()
            }
            let isOver = Atomic(false)
            Task {
                if case .failure(let error) = await exchange.result { Issue.record(error) }
                isOver.store(true, ordering: .relaxed)
            }
            repeat { while tasks.step() {} } while !isOver.load(ordering: .relaxed) && time.runNext()
            // What is due within the next minute, and holds what is gone until then.
            time.advance(by: .seconds(100))
            while tasks.step() {}
            let hasEnded = isOver.load(ordering: .relaxed)
            #expect(hasEnded)
        }
    }
#endif
