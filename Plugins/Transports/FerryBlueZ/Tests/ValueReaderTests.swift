#if BlueZ
    import Dispatch
    import Ferry
    @testable import FerryBlueZ
    import FerryBluetooth
    import Glibc
    import Synchronization
    import TestSupport
    import Testing

    /// What a subscription's socket does not hold is lost, so that a slow receiver must not keep values there.
    @Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct ValueReaderTests {
        /// The other end of a reader's socket, which counts what it sends, as bluetoothd would.
        private final class Sender: Sendable {
            let descriptor: FileDescriptor
            private let state = Mutex((sent: 0, lost: 0))

            init(_ descriptor: FileDescriptor) { self.descriptor = descriptor }

            var sent: Int { state.withLock { $0.sent } }
            var lost: Int { state.withLock { $0.lost } }

            /// Whether the other end has taken everything (unix(7), SIOCOUTQ).
            var isTaken: Bool {
                var count: Int32 = 0
                return ioctl(descriptor.rawValue, UInt(TIOCOUTQ), &count) == 0 && count == 0
            }

            /// Sends one value, its number in four bytes and 508 more, or loses it.
            func send() {
                state.withLock { state in
                    var value = [UInt8](repeating: 0, count: 512)
                    for place in 0..<4 { value[place] = UInt8(truncatingIfNeeded: state.sent >> (8 * place)) }
                    if Glibc.send(descriptor.rawValue, value, value.count, Int32(truncatingIfNeeded: MSG_DONTWAIT)) < 0
                    {
                        state.lost += 1
                    }
                    state.sent += 1
                }
            }
        }

        /// What was delivered, and what happens meanwhile.
        private final class Receiver: Sendable {
            private let state = Mutex<(numbers: [Int], now: UInt64)>(([], 0))
            let cost: UInt64
            let meanwhile: @Sendable (Int) -> Void

            init(cost: UInt64 = 0, meanwhile: @escaping @Sendable (Int) -> Void = { _ in }) {
                self.cost = cost
                self.meanwhile = meanwhile
            }

            var numbers: [Int] { state.withLock { $0.numbers } }
            var now: UInt64 { state.withLock { $0.now } }

            func take(_ value: RawSpan) {
                let number = (0..<4).reduce(0) { sum, place in
                    sum | Int(value.unsafeLoad(fromByteOffset: place, as: UInt8.self)) << (8 * place)
                }
                let count = state.withLock { state in
                    state.numbers.append(number)
                    state.now += cost
                    return state.numbers.count
                }
                meanwhile(count)
            }
        }

        private func makeSockets() throws -> (ours: FileDescriptor, theirs: FileDescriptor) {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
            return (FileDescriptor(owning: ends[0]), FileDescriptor(owning: ends[1]))
        }

        /// Ten values come while one is delivered, far more than the socket holds.
        @Test func aSlowReceiverLosesNothing() throws {
            let (ours, theirs) = try makeSockets()
            let sender = Sender(theirs)
            let receiver = Receiver(cost: 1000) { count in
                if count <= 200 { for _ in 0..<10 { sender.send() } }
            }
            let reader = ValueReader(ours) { receiver.take($0) }
            sender.send()
            var parts = 0
            while reader.read(now: { receiver.now }) == .behind {
                parts += 1
                _ = reader.takeOut()
                // Others have their turn.
                #expect(receiver.numbers.count <= 5 * parts)
            }
            #expect(sender.lost == 0)
            #expect(receiver.numbers == Array(0..<2001))
        }

        /// What waits is bounded, and what is left in the socket comes later.
        @Test func noMoreThanItsBoundWaits() throws {
            let (ours, theirs) = try makeSockets()
            let sender = Sender(theirs)
            let receiver = Receiver(cost: ValueReader.part)
            let reader = ValueReader(ours) { receiver.take($0) }
            // Each part delivers one value.
            while sender.lost == 0 {
                try #require(sender.sent < 2 * ValueReader.mostWaiting, "what waits has no bound")
                for _ in 0..<50 { sender.send() }
                #expect(reader.read(now: { receiver.now }) == .behind)
                _ = reader.takeOut()
            }
            #expect(sender.sent - receiver.numbers.count >= ValueReader.mostWaiting)
            while reader.read(now: { receiver.now }) == .behind {}
            #expect(receiver.numbers.count == sender.sent - sender.lost)
            #expect(receiver.numbers == receiver.numbers.sorted())
        }

        /// What came before the end is delivered before the end is told.
        @Test(arguments: [0, ValueReader.part]) func theEndComesLast(_ cost: UInt64) throws {
            var (ours, theirs): (FileDescriptor, FileDescriptor?) = try makeSockets()
            let receiver = Receiver(cost: cost)
            let reader = ValueReader(ours) { receiver.take($0) }
            #expect(reader.read(now: { receiver.now }) == .done)
            do {
                let sender = Sender(try #require(theirs))
                for _ in 0..<20 { sender.send() }
            }
            theirs = nil
            var outcome = reader.read(now: { receiver.now })
            while outcome == .behind {
                outcome = reader.read(now: { receiver.now })
            }
            #expect(outcome == .ended)
            #expect(receiver.numbers == Array(0..<20))
            #expect(reader.read(now: { receiver.now }) == .ended)
        }

        /// The thread calls a reader that is behind until it has delivered everything, and other things have their turn.
        @Test func theThreadGoesOnUntilTheEnd() async throws {
            let (ours, theirs) = try makeSockets()
            let sender = Sender(theirs)
            let thread = try BusThread()
            defer { thread.stop() }
            let receiver = Receiver { count in
                // Longer than a part.
                usleep(UInt32(ValueReader.part))
                if count == 20 { shutdown(sender.descriptor.rawValue, Int32(SHUT_RDWR)) }
            }
            let reader = ValueReader(ours) { receiver.take($0) }
            for _ in 0..<50 { sender.send() }
            let others = Mutex(0)
            let (end, continuation) = AsyncStream<Int>.makeStream()
            thread.execute {
                @Sendable func other() {
                    others.withLock { $0 += 1 }
                    thread.schedule(after: .zero, other)
                }
                thread.watch(reader) { continuation.yield(receiver.numbers.count) }
                other()
            }
            #expect(await end.first { _ in true } == 50)
            #expect(others.withLock { $0 } >= 50)
        }

        /// Another thread empties the socket while the one that delivers stands still; what it takes out is delivered in its turn.
        @Test func aBusyThreadLosesNothing() async throws {
            let (ours, theirs) = try makeSockets()
            let sender = Sender(theirs)
            let (thread, standIn) = (try BusThread(), try BusThread())
            defer {
                thread.stop()
                standIn.stop()
            }
            let receiver = Receiver()
            let reader = ValueReader(ours) { receiver.take($0) }
            let isBusy = DispatchSemaphore(value: 0)
            let standsStill = Mutex(false)
            thread.execute { thread.watch(reader) {} }
            standIn.execute { standIn.relieve(thread, of: reader) }
            thread.execute {
                standsStill.withLock { $0 = true }
                isBusy.wait()
            }
            try await until { standsStill.withLock { $0 } }
            for _ in 0..<20 {
                for _ in 0..<100 { sender.send() }
                try await until { sender.isTaken }
            }
            #expect(sender.lost == 0)
            #expect(receiver.numbers.isEmpty)
            isBusy.signal()
            try await until { receiver.numbers.count == 2000 }
            #expect(receiver.numbers == Array(0..<2000))
        }

        /// A connection ends while its receiver is behind: all that had come is delivered before the end is told, and the
        /// thread does other things meanwhile.
        @Test func aConnectionsEndWaitsForASlowReceiver() async throws {
            let (ours, theirs) = try makeSockets()
            let sender = Sender(theirs)
            let engine = try BlueZEngine(name: "bluez", wanted: nil, BlueZConfiguration())
            defer { engine.thread.stop() }
            let central = SlowCentral()
            let connection = BlueZConnection(
                engine, "/org/bluez/hci0/dev_00", PeerID(rawValue: 1), role: 1, central)
            let id = AttributeID(rawValue: 7)
            let value = RemoteValue(
                id: id, uuid: BluetoothUUID(0x2A00 as UInt16), path: "char0007", properties: [.notify])
            value.reader = ValueReader(ours) { [weak connection] in connection?.didUpdate(id, $0) }
            connection.state.withLock { $0.values[id.rawValue] = value }
            for _ in 0..<50 { sender.send() }
            let others = Mutex(0)
            engine.perform { engine in
                @Sendable func other() {
                    others.withLock { $0 += 1 }
                    engine.thread.schedule(after: .zero, other)
                }
                other()
                connection.didEnd(.endedByPeer, silently: false)
                // It has ended for whoever asks, before its end is told.
                #expect(throws: BluetoothError.self) { try connection.value(id) }
            }
            #expect(await central.ends.first { _ in true } == 50)
            #expect(others.withLock { $0 } >= 50)
        }

        /// Counts values, each of which takes it longer than a part.
        private final class SlowCentral: PeripheralConnectionEvents {
            /// How many values had come at the end.
            let ends: AsyncStream<Int>
            private let continuation: AsyncStream<Int>.Continuation
            private let count = Mutex(0)

            init() { (ends, continuation) = AsyncStream.makeStream() }

            func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
                usleep(UInt32(ValueReader.part))
                count.withLock { $0 += 1 }
            }
            func peripheralDidDisconnect(_ reason: BluetoothError) { continuation.yield(count.withLock { $0 }) }
        }
    }
#endif
