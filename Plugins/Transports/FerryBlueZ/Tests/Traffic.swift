#if BlueZ
    import Ferry
    @testable import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Glibc
    import TestSupport
    import Testing

    /// Messages for both ways of a link, each different from every other.
    enum Traffic {
        struct Record: Codable, Sendable, Equatable, Sample {
            var index: Int
            var text: String
            static func sample(_ index: Int, _ size: Int) -> Record { Record(index: index, text: .sample(index, size)) }
        }

        /// Spread evenly over the logarithm of the size: one in 25 up to 100 KiB, the others up to 500 bytes, so that an
        /// emulated machine is done with them in a minute (`FERRY_LARGE` says one in how many). The same each time:
        /// golden-ratio steps.
        static func sizes(_ numbers: Range<Int>) -> [Int] {
            let every = getenv("FERRY_LARGE").flatMap { Int(String(cString: $0)) } ?? 25
            return numbers.map { number in
                let isLarge = number % max(1, every) == 0
                let step = Double(isLarge ? number / max(1, every) + 1 : number)
                let place = (step * 0.618_033_988_75).truncatingRemainder(dividingBy: 1)
                return Int(exp2(place * log2(isLarge ? 102_400 : 500)))
            }
        }

        /// Sends messages of these sizes both ways at once, and requires that each arrives, once, in its order.
        static func cross<Format: Codec>(
            _ links: Links, _ sizes: [Int], _ codec: Format, _ framing: some Framing,
            _ compression: (any Compression)? = nil
        ) async throws where Format.Message: Sample {
            let peripheral = try MessageChannel(
                over: links.peripheral, codec: codec, framing: framing, compression: compression)
            let central = try MessageChannel(
                over: links.central, codec: codec, framing: framing, compression: compression)
            async let down: Void = send(sizes, "notified", from: peripheral, to: central)
            async let up: Void = send(sizes, "written", from: central, to: peripheral)
            _ = try await (down, up)
            print("\(sizes.count) messages, \(sizes.reduce(0, +)) bytes, each way")
            central.close()
            peripheral.close()
        }

        private static func send<Message: Sample>(
            _ sizes: [Int], _ way: String, from sender: MessageChannel<Message, Message>,
            to receiver: MessageChannel<Message, Message>
        ) async throws {
            async let sent: Void = {
                for (index, size) in sizes.enumerated() {
                    try await sender.send(.sample(index, size), timeout: .unreached)
                }
            }()
            var messages = receiver.messages.makeAsyncIterator()
            for (index, size) in sizes.enumerated() {
                guard let message = try await messages.next() else {
                    Issue.record(
                        "the channel ended after \(index) messages: \(String(describing: receiver.closeReason))")
                    break
                }
                guard message == .sample(index, size) else {
                    Issue.record("message \(index), \(way), is not the one that was sent")
                    break
                }
            }
            try await sent
        }
    }

    /// A message that can be made from its number and its size.
    protocol Sample: Equatable, Sendable {
        static func sample(_ index: Int, _ size: Int) -> Self
    }

    extension [UInt8]: Sample {
        static func sample(_ index: Int, _ size: Int) -> [UInt8] {
            var random = SplitMix64(seed: UInt64(index))
            return random.bytes(size)
        }
    }

    extension String: Sample {
        /// Letters that zlib makes a little of.
        static func sample(_ index: Int, _ size: Int) -> String {
            String(decoding: [UInt8].sample(index, size).map { 97 + $0 % 16 }, as: UTF8.self)
        }
    }

    /// A link between the two adapters, by both its ends.
    struct Links: Sendable {
        static let layout = GATTConfiguration(
            service: BluetoothUUID(0x6E2A_0011_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128),
            characteristic: BluetoothUUID(0x6E2A_0012_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128))

        let listener: LinkListener
        let peripheral: any Link
        let central: any Link

        static func open() async throws -> Links {
            let (serving, asking) = try await Machine.adapters()
            return try await open(serving, asking)
        }

        static func open(_ serving: BlueZAdapter, _ asking: BlueZAdapter) async throws -> Links {
            let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
            return try await next(on: listener, by: asking)
        }

        /// The next link that a listener takes.
        static func next(on listener: LinkListener) async throws -> Links {
            try await next(on: listener, by: try await Machine.adapters().central)
        }

        private static func next(on listener: LinkListener, by asking: BlueZAdapter) async throws -> Links {
            let central = try await GATTTransport(adapter: asking, configuration: layout).connect(
                timeout: .unreached)
            var incoming = listener.links.makeAsyncIterator()
            return Links(listener: listener, peripheral: try #require(await incoming.next()), central: central)
        }

        /// Stops listening and waits until bluetoothd has ended the connection, which takes it two seconds.
        func end() async throws {
            central.close()
            peripheral.close()
            listener.close()
            try await Self.waitForSilence()
        }

        static func waitForSilence() async throws {
            let (_, asking) = try await Machine.adapters()
            let role = asking.openCentral(Nobody())
            defer { role.close() }
            try await until("the end of the connection") {
                let isSilent = role.retrieveConnectedPeripherals(offering: [layout.service]).isEmpty
                return isSilent ? await asking.engine.connecting.isEmpty : false
            }
        }
    }

    /// Wants to know nothing.
    final class Nobody: CentralRoleEvents {}
#endif
