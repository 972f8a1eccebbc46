import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// Channels over GATT links on the virtual radio, in real time and at full speed.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct GATTLinkTests {
    private static let service = BluetoothUUID(0xFE01 as UInt16)
    private static let other = BluetoothUUID(0xFE04 as UInt16)
    private static let characteristic = BluetoothUUID(0xFE02 as UInt16)
    private static let writeCharacteristic = BluetoothUUID(0xFE03 as UInt16)

    private static var layout: GATTConfiguration {
        GATTConfiguration(service: service, characteristic: characteristic)
    }

    /// A radio with one listening peripheral.
    private struct Rig {
        let radio: LoopbackRadio
        let server: LoopbackAdapter
        let layout: GATTConfiguration
        let listener: LinkListener

        init(
            _ layout: GATTConfiguration = GATTLinkTests.layout,
            _ configure: (inout LoopbackRadio.Configuration) -> Void = { _ in }
        ) async throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.advertisingInterval = .milliseconds(1)
            configure(&configuration)
            radio = try LoopbackRadio(configuration: configuration)
            server = radio.makeAdapter(name: "server")
            self.layout = layout
            listener = try await GATTTransport(adapter: server, configuration: layout).listen()
        }

        /// Both ends of a new link: the central's and the peripheral's.
        func connect(from client: LoopbackAdapter? = nil) async throws -> (any Link, any Link) {
            let transport = GATTTransport(adapter: client ?? radio.makeAdapter(), configuration: layout)
            let near = try await transport.connect(timeout: .unreached)
            for await far in listener.links { return (near, far) }
            throw FerryError(.peerNotFound, "The listener ended.")
        }
    }

    private func exchange(_ rig: Rig, _ framing: some Framing, count: Int = 20) async throws {
        let (near, far) = try await rig.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec(), framing: framing)
        let server = try MessageChannel(over: far, codec: BytesCodec(), framing: framing)
        async let echo: Void = {
            for try await message in server.messages { try await server.send(message.reversed()) }
        }()
        var answers = client.messages.makeAsyncIterator()
        var random = SplitMix64(seed: 7)
        for index in 0..<count {
            let message = random.bytes(index * index * 7)
            try await client.send(message)
            let answer = try await answers.next()
            #expect(answer == message.reversed())
        }
        client.close()
        try await echo
        #expect(server.closeReason?.code == .disconnected)
    }

    /// Whoever asks between the end and the news of it must not hear of a size that nothing fits into.
    @Test func theChunkSizeOutlivesTheConnection() async throws {
        let rig = try await Rig()
        let (near, far) = try await rig.connect()
        let channel = try MessageChannel(over: far, codec: BytesCodec())
        try await channel.send([1])
        let size = far.maximumChunkSize
        #expect(size > 20)
        near.close()
        var messages = channel.messages.makeAsyncIterator()
        while (try? await messages.next()) != nil {}
        #expect(far.maximumChunkSize == size)
        channel.close()
    }

    /// Another part of the peripheral's program publishes and withdraws what it likes.
    @Test func otherServicesComeAndGo() async throws {
        let rig = try await Rig()
        let (near, far) = try await rig.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        let other = rig.server.openPeripheral(Bystander())
        let added = try await other.publish(ServiceDefinition(Self.other, characteristics: []))
        other.unpublish(added.id)
        var messages = client.messages.makeAsyncIterator()
        for index in 0..<3 as Range<UInt8> {
            try await server.send([index])
            #expect(try await messages.next() == [index])
        }
        client.close()
        server.close()
        other.close()
    }

    /// Both would get all that the peripheral sends, and it would take them for one.
    @Test func aSecondLinkOverOneServiceIsRefused() async throws {
        let rig = try await Rig()
        let client = rig.radio.makeAdapter()
        let (near, far) = try await rig.connect(from: client)
        let error = await #expect(throws: FerryError.self) { try await rig.connect(from: client) }
        #expect(error?.code == .transportUnavailable)
        #expect(error?.message.contains("already") == true)
        // The first goes on, and makes room when it ends.
        let channels = try [near, far].map { try MessageChannel(over: $0, codec: BytesCodec()) }
        try await channels[0].send([1])
        var messages = channels[1].messages.makeAsyncIterator()
        #expect(try await messages.next() == [1])
        channels[1].close()
        _ = await channels[0].closed
        let (next, _) = try await rig.connect(from: client)
        next.close()
        _ = try await rig.connect(from: client)
    }

    @Test func carriesMessagesBothWays() async throws {
        try await exchange(Rig(), LengthPrefixFraming())
    }

    @Test func carriesMessagesInTwentyByteChunks() async throws {
        try await exchange(Rig(), EndOfMessageFraming())
    }

    @Test func carriesMessagesByIndicationsAndWritesWithResponse() async throws {
        var layout = Self.layout
        layout.subscription = .indicate
        layout.writeType = .withResponse
        try await exchange(Rig(layout), LengthPrefixFraming())
    }

    @Test func carriesMessagesOverTwoCharacteristics() async throws {
        var layout = Self.layout
        layout.writeCharacteristic = Self.writeCharacteristic
        try await exchange(Rig(layout), LengthPrefixFraming())
    }

    @Test func carriesMessagesOnAnEncryptedLink() async throws {
        var layout = Self.layout
        layout.encryptionRequired = true
        try await exchange(Rig(layout), LengthPrefixFraming())
    }

    @Test(arguments: [23, 185, 247, 517])
    func followsTheMTU(_ mtu: Int) async throws {
        let rig = try await Rig { $0.attMTU = mtu }
        let (near, far) = try await rig.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        try await server.send(pattern(10_000))
        var messages = client.messages.makeAsyncIterator()
        let message = try await messages.next()
        #expect(message == pattern(10_000))
        let size = min(mtu - 3, 512)
        #expect(near.maximumChunkSize == min(size, 510) && far.maximumChunkSize == size)
        #expect(server.statistics.chunksSent == (10_002 + size - 1) / size)
    }

    /// Longer writes without response are lost in a BlueZ 5.66 peripheral; other peripherals and other writes take more.
    @Test(arguments: [(WriteType.withoutResponse, nil, 510), (.withoutResponse, 512, 512), (.withResponse, nil, 512)])
    func longWritesWithoutResponseAreNotSent(type: WriteType, limit: Int?, expected: Int) async throws {
        var layout = Self.layout
        layout.writeType = type
        if let limit { layout.maximumWriteWithoutResponse = limit }
        let (near, far) = try await Rig(layout) { $0.attMTU = 517 }.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        try await client.send(pattern(5_000))
        var messages = server.messages.makeAsyncIterator()
        #expect(try await messages.next() == pattern(5_000))
        #expect(client.statistics.chunksSent == (5_002 + expected - 1) / expected)
        #expect(throws: FerryError.self) { _ = try near.trySend(pattern(expected + 1).span.bytes) }
        // The last write of the message may not have been answered yet.
        try await until("room for a write") { try near.trySend(pattern(expected).span.bytes) }
    }

    @Test func isolatesCentralsFromOneAnother() async throws {
        let rig = try await Rig()
        var limits = Limits()
        limits.maximumInboundBytes = 4096
        limits.outboundStallTimeout = .unreached
        limits.inboundStallTimeout = .unreached
        var clients: [MessageChannel<[UInt8], [UInt8]>] = []
        var servers: [MessageChannel<[UInt8], [UInt8]>] = []
        for _ in 0..<4 {
            let (near, far) = try await rig.connect()
            clients.append(try MessageChannel(over: near, codec: BytesCodec(), limits: limits))
            servers.append(try MessageChannel(over: far, codec: BytesCodec(), limits: limits))
        }
        // The first never reads, the second leaves; the others get everything.
        let stuck = Task { [server = servers[0]] in
            for _ in 0..<100 { try await server.send(pattern(1000)) }
        }
        clients[1].close()
        for index in 2..<4 {
            let server = servers[index]
            async let sent: Void = {
                for number in 0..<50 { try await server.send(pattern(1000, seed: number)) }
            }()
            var messages = clients[index].messages.makeAsyncIterator()
            for number in 0..<50 {
                let message = try await messages.next()
                #expect(message == pattern(1000, seed: number))
            }
            try await sent
        }
        #expect(clients[0].closeReason == nil, "the reader that stays away has stopped its sender, not lost anything")
        #expect(servers[0].statistics.messagesSent < 20)
        await #expect { try await servers[1].send([1]) } throws: { ($0 as? FerryError)?.code == .disconnected }
        clients[0].close()
        await #expect(throws: FerryError.self) { try await stuck.value }
    }

    @Test func letsAPausedReaderGoOn() async throws {
        let rig = try await Rig()
        let (near, far) = try await rig.connect()
        var limits = Limits()
        limits.maximumInboundBytes = 4096
        limits.outboundStallTimeout = .unreached
        limits.inboundStallTimeout = .unreached
        let client = try MessageChannel(over: near, codec: BytesCodec(), limits: limits)
        let server = try MessageChannel(over: far, codec: BytesCodec(), limits: limits)
        async let down: Void = {
            for number in 0..<100 { try await server.send(pattern(500, seed: number)) }
        }()
        async let up: Void = {
            for number in 0..<100 { try await client.send(pattern(500, seed: number)) }
        }()
        for (reader, name) in [(client, "client"), (server, "server")] {
            var messages = reader.messages.makeAsyncIterator()
            for number in 0..<100 {
                let message = try await messages.next()
                #expect(message == pattern(500, seed: number), "\(name) \(number)")
            }
        }
        _ = try await (down, up)
    }

    @Test func namesTheSignalsHeardOutsideTheWindow() throws {
        var layout = Self.layout
        layout.rssi = -32 ... -15
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(name: "server"), radio.makeAdapter())
        radio.setRSSI(-61, between: client, and: server)
        try time.run { [layout] in
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let transport = GATTTransport(adapter: client, configuration: layout, time: time)
            await #expect { _ = try await transport.connect(timeout: .milliseconds(200)) } throws: { error in
                (error as? FerryError)?.code == .timedOut && "\(error)".contains("-61 dBm")
                    && "\(error)".contains("-32...-15")
            }
            radio.setRSSI(-20, between: client, and: server)
            try await transport.connect(timeout: .unreached).close()
            listener.close()
        }
    }

    @Test func saysThatNothingWasHeard() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let transport = GATTTransport(adapter: radio.makeAdapter(), configuration: Self.layout, time: time)
        try time.run {
            _ = await #expect { _ = try await transport.connect(timeout: .milliseconds(50)) } throws: { error in
                (error as? FerryError)?.code == .timedOut && "\(error)".contains("Nothing that offers service FE01")
            }
        }
    }

    @Test func refusesAnAdapterThatIsOff() async throws {
        let radio = LoopbackRadio()
        let transport = GATTTransport(
            adapter: radio.makeAdapter(name: "dark", state: .poweredOff), configuration: Self.layout)
        for attempt in [true, false] {
            await #expect {
                if attempt {
                    _ = try await transport.listen()
                } else {
                    _ = try await transport.connect(timeout: .unreached)
                }
            } throws: { error in
                (error as? FerryError)?.code == .transportUnavailable && "\(error)".contains("dark is switched off")
            }
        }
    }

    @Test func endsConnectingWhenTheTaskIsCancelled() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let transport = GATTTransport(adapter: radio.makeAdapter(), configuration: Self.layout, time: time)
        try time.run {
            let connecting = Task { try await transport.connect(timeout: .unreached) }
            try await time.sleep(for: .seconds(60))
            connecting.cancel()
            await #expect { _ = try await connecting.value } throws: { ($0 as? FerryError)?.code == .cancelled }
        }
    }

    @Test func offersTheServiceAgainAfterAPowerCycle() async throws {
        let rig = try await Rig()
        let (near, far) = try await rig.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        let told = Journal()
        rig.listener.onInterruption { told.add($0?.message ?? "again") }
        rig.server.setState(.poweredOff)
        var messages = server.messages.makeAsyncIterator()
        let end = try await messages.next()
        #expect(end == nil && server.closeReason?.code == .disconnected)
        // Who listens knows at once, and not only when a link ends.
        #expect(rig.listener.interruption?.message.contains("has been switched off") == true)
        rig.server.setState(.poweredOn)
        let (again, _) = try await rig.connect()
        try await told.wait(for: "again")
        #expect(rig.listener.interruption == nil && told.all.count == 2, "\(told.all)")
        again.close()
        client.close()
    }

    @Test func keepsLinksWhenItStopsListening() async throws {
        let rig = try await Rig()
        let (near, far) = try await rig.connect()
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        rig.listener.close()
        try await server.send([1, 2, 3])
        var messages = client.messages.makeAsyncIterator()
        let message = try await messages.next()
        #expect(message == [1, 2, 3])
        let late = GATTTransport(adapter: rig.radio.makeAdapter(), configuration: rig.layout)
        await #expect(throws: FerryError.self) { _ = try await late.connect(timeout: .milliseconds(50)) }
    }

    @Test func reportsAPeerThatGoesOutOfRange() async throws {
        let rig = try await Rig { $0.supervisionTimeout = .milliseconds(50) }
        let adapter = rig.radio.makeAdapter()
        let (near, far) = try await rig.connect(from: adapter)
        let client = try MessageChannel(over: near, codec: BytesCodec())
        let server = try MessageChannel(over: far, codec: BytesCodec())
        rig.radio.setInRange(false, between: adapter, and: rig.server)
        for channel in [client, server] {
            var messages = channel.messages.makeAsyncIterator()
            await #expect { _ = try await messages.next() } throws: { ($0 as? FerryError)?.code == .timedOut }
        }
    }

    @Test func deliversWhatWasSentBeforeClosing() async throws {
        let rig = try await Rig()
        for size in [1, 100, 1000, 10_000] {
            let (near, far) = try await rig.connect()
            let client = try MessageChannel(over: near, codec: BytesCodec())
            let server = try MessageChannel(over: far, codec: BytesCodec())
            try await server.send(pattern(size))
            server.close()
            var messages = client.messages.makeAsyncIterator()
            let message = try await messages.next()
            #expect(message == pattern(size))
            let end = try await messages.next()
            #expect(end == nil)

            let (near2, far2) = try await rig.connect()
            let client2 = try MessageChannel(over: near2, codec: BytesCodec())
            let server2 = try MessageChannel(over: far2, codec: BytesCodec())
            try await client2.send(pattern(size))
            client2.close()
            var messages2 = server2.messages.makeAsyncIterator()
            let message2 = try await messages2.next()
            #expect(message2 == pattern(size))
        }
    }
}

private final class Bystander: PeripheralRoleEvents {}
