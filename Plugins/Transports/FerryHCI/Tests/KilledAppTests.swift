#if HCI && canImport(CoreBluetoothRig)
    import CoreBluetooth
    import CoreBluetoothRig
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerrySequenced
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// An app over Core Bluetooth whose process is killed in the middle of a transfer, and started again with the same
    /// restoration identifier. The other side is a host of its own that goes on.
    @Suite(.tags(.coreBluetooth, .adapter, .recovery), .serialized, .timeLimit(.minutes(5))) struct KilledAppTests {
        private static let layout = GATTConfiguration(service: Layout.service, characteristic: Layout.characteristic)
        private static let count = 60

        private static let large = 40_000

        /// Each tenth is large.
        private static func reading(_ number: Int) -> [UInt8] {
            let length = number % 10 == 9 ? large : 2000
            return [UInt8(number >> 8), UInt8(number & 0xFF)]
                + (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }
        }

        private static func number(of reading: [UInt8]) -> Int { Int(reading[0]) << 8 | Int(reading[1]) }

        /// Which readings have arrived whole, a line each, in a file that outlives the process.
        private struct Arrivals {
            let path: String
            private(set) var numbers: [Int]

            init(_ path: String) {
                self.path = path
                let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
                // A line that was cut by the kill was not written.
                numbers = text.components(separatedBy: "\n").dropLast().compactMap { Int($0) }
            }

            /// One that comes again, because the app was ended before its peer heard that it has it, is known by its number.
            mutating func add(_ reading: [UInt8]) throws {
                let number = KilledAppTests.number(of: reading)
                try #require(reading == KilledAppTests.reading(number), "reading \(number) is damaged")
                guard number > numbers.last ?? -1 else { return }
                numbers.append(number)
                let text = numbers.map { "\($0)\n" }.joined()
                try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
            }
        }

        /// The app: it ends well once it has all, or is killed in the middle of the reading after `end` of them.
        private static func runApp(_ socket: String, _ folder: String, _ quirks: CBQuirks, end: Int?) async throws {
            CBAdapters.restorationDirectory = URL(filePath: folder)
            let native = try await HCIAdapter.open(.unix(path: socket))
            let bluetooth = overCoreBluetooth(native, quirks, restorationIdentifier: "logbook")
            let transport = ReconnectingTransport(over: GATTTransport(adapter: bluetooth, configuration: layout))
            let known = folder + "/logger"
            let link: any Link
            if let text = try? String(contentsOfFile: known, encoding: .utf8), let logger = PeerIdentity(text) {
                link = try await transport.connect(to: logger, timeout: .unreached)
            } else {
                link = try await transport.connect(timeout: .unreached)
                try Data(link.peer.description.utf8).write(to: URL(filePath: known), options: .atomic)
            }
            let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
            let seen = Atomic(0)
            async let watching: Void = {
                for await progress in channel.arrivals where progress.receivedBytes > large / 4 {
                    if seen.load(ordering: .relaxed) == end { kill(getpid(), SIGKILL) }
                }
            }()
            var arrivals = Arrivals(folder + "/arrivals")
            for try await reading in channel.messages {
                // It was here whole before its progress was told.
                if seen.load(ordering: .relaxed) == end { kill(getpid(), SIGKILL) }
                try arrivals.add(reading)
                seen.add(1, ordering: .relaxed)
                if end == nil, arrivals.numbers.count == count { break }
            }
            channel.close()
            await watching
        }

        /// Offers all readings to each app that comes, until one has them all and ends the channel.
        private static func offer(_ listener: LinkListener) async {
            await withDiscardingTaskGroup { group in
                for await link in listener.links {
                    group.addTask {
                        do {
                            let channel = try MessageChannel(
                                over: link, codec: BytesCodec(), framing: SequencedFraming())
                            for number in 0..<count { try await channel.send(reading(number)) }
                            for try await _ in channel.messages {}
                        } catch {
                            // The app was killed. It comes back with a new session, which ends this one.
                        }
                    }
                }
            }
        }

        @Test func anAppThatIsKilledHasEachReadingOnce() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let folder = Interop.folder()
            let logger = try await HCIAdapter.open(radio.channels[0])
            defer { logger.close() }
            let transport = ReconnectingTransport(over: GATTTransport(adapter: logger, configuration: Self.layout))
            let listener = try await transport.listen()
            let offering = Task { await Self.offer(listener) }
            guard case .unix(let socket) = radio.channels[1] else { return }
            for (round, end) in stride(from: 9, to: Self.count, by: 10).enumerated() {
                // What is restored stays as connecting, and more, each third time.
                let quirks = [CBQuirks(), .restoredStaysConnecting, CBQuirks(rawValue: 0xFFF)][round % 3].rawValue
                await #expect(processExitsWith: .signal(SIGKILL)) {
                    [
                        socket = socket as String, folder = folder as String, end = end as Int,
                        quirks = quirks as UInt
                    ] in
                    try await Self.runApp(socket, folder, CBQuirks(rawValue: quirks), end: end)
                }
                #expect(Arrivals(folder + "/arrivals").numbers == Array(0..<end))
            }
            await #expect(processExitsWith: .success) { [socket = socket as String, folder = folder as String] in
                try await Self.runApp(socket, folder, [], end: nil)
            }
            #expect(Arrivals(folder + "/arrivals").numbers == Array(0..<Self.count))
            listener.close()
            offering.cancel()
            await offering.value
        }
    }
#endif
