import Ferry
import FerryBluetooth
import FerryImprov
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// A client and a device, over the virtual radio.
@Suite(.tags(.framing, .bluetooth), .timeLimit(.minutes(5))) struct ImprovClientTests {
    /// What a device does with commands.
    private enum Device: Sendable, CaseIterable {
        /// It takes settings at once.
        case open
        /// It has a button, which is pressed after 30 s.
        case button
        /// It says nothing.
        case silent
        /// It tells of networks without end.
        case endless
    }

    private func run(
        _ device: Device, attMTU: Int = 247,
        _ body: @escaping @Sendable (ImprovClient, VirtualTime) async throws -> Void
    ) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (lamp, phone) = (radio.makeAdapter(), radio.makeAdapter())
        let layout = GATTConfiguration.improv(
            state: device == .button ? .authorizationRequired : .authorized, capabilities: [.identify, .scan])
        try time.run(within: .seconds(10_000)) {
            let listener = try await GATTTransport(adapter: lamp, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: phone, configuration: .improv(), time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let server = try MessageChannel(over: far, codec: BytesCodec(), framing: ImprovFraming(), time: time)
            async let served: Void = Self.serve(server, device, time)
            try await body(try await ImprovClient(over: near, time: time), time)
            server.close()
            await served
        }
    }

    private static func serve(
        _ channel: MessageChannel<[UInt8], [UInt8]>, _ device: Device, _ time: VirtualTime
    ) async {
        if device == .button {
            try? await time.sleep(for: .seconds(30))
            try? await channel.send([1, ImprovState.authorized.rawValue])
        }
        for await case .success(let message) in channel.results where device != .silent {
            guard let command = try? ImprovPacket(Array(message.dropFirst())) else { continue }
            for answer in answers(command, device) { try? await channel.send(answer) }
        }
    }

    /// A device's messages in answer to a command.
    private static func answers(_ command: ImprovPacket, _ device: Device) -> [[UInt8]] {
        func result(_ text: [String]) -> [UInt8] {
            [0] + ((try? ImprovPacket(command.command, text: text).bytes()) ?? [])
        }
        switch command.command {
        case .wifiSettings where command.text == ["home", "secret"]:
            return [[2, 0], [1, 3], [1, 4], result(["http://lamp.local/" + String(repeating: "x", count: 200)])]
        case .wifiSettings: return [[1, 3], [2, 3], [1, 2]]
        case .deviceInfo: return [result(["ESPHome", "2026.11", "ESP32", "Lamp"])]
        case .scan where device == .endless: return (0..<300).map { result(["net \($0)"]) }
        case .scan: return [result(["home", "-40", "YES"]), result(["open", "-80", "NO"]), result([])]
        case .identify: return []
        default: return [[2, 2]]
        }
    }

    /// Also where a command and its result take several values.
    @Test(arguments: [23, 247]) func aDeviceComesIntoTheNetwork(_ attMTU: Int) throws {
        try run(.open, attMTU: attMTU) { client, _ in
            #expect(client.state == .authorized && client.capabilities == [.identify, .scan])
            try await client.identify()
            #expect(
                try await client.deviceInfo()
                    == ImprovDevice(firmware: "ESPHome", version: "2026.11", hardware: "ESP32", name: "Lamp"))
            #expect(
                try await client.scan() == [
                    ImprovNetwork(name: "home", rssi: -40, isProtected: true),
                    ImprovNetwork(name: "open", rssi: -80, isProtected: false),
                ])
            let addresses = try await client.provision(ssid: "home", password: "secret")
            #expect(addresses.count == 1 && addresses[0].hasPrefix("http://lamp.local/"))
            #expect(client.state == .provisioned)
        }
    }

    /// A refusal ends its request and nothing else.
    @Test func aRefusalIsNamed() throws {
        try run(.open) { client, _ in
            let wrong = await #expect(throws: FerryError.self) {
                try await client.provision(ssid: "home", password: "wrong")
            }
            #expect(wrong?.code == .improvRefused)
            #expect(wrong?.message.contains("command 1 with error 3: it cannot connect to the network") == true)
            let unknown = await #expect(throws: FerryError.self) { try await client.hostname() }
            #expect(unknown?.message.contains("error 2: it does not know the command") == true)
            let addresses = try await client.provision(ssid: "home", password: "secret")
            #expect(addresses.count == 1)
        }
    }

    @Test func theButtonIsAwaited() throws {
        try run(.button) { client, _ in
            #expect(client.state == .authorizationRequired)
            let error = await #expect(throws: FerryError.self) { try await client.authorized(within: .seconds(10)) }
            #expect(error?.code == .timedOut)
            try await client.authorized(within: .seconds(60))
            #expect(client.state == .authorized)
            try await client.authorized(within: .seconds(1))
        }
    }

    /// The late answer would be the next one's: the link ends.
    @Test func aDeviceThatSaysNothingIsGivenUp() throws {
        try run(.silent) { client, _ in
            let error = await #expect(throws: FerryError.self) { try await client.scan() }
            #expect(error?.code == .timedOut && error?.fate == .mayHaveArrived)
            #expect(client.closeReason?.code == .closed)
            let next = await #expect(throws: FerryError.self) { try await client.scan() }
            #expect(next?.code == .closed)
            var states = client.states.makeAsyncIterator()
            #expect(await states.next() == .authorized)
            #expect(await states.next() == nil)
        }
    }

    @Test func anotherRequestIsRefusedMeanwhile() throws {
        try run(.silent) { client, time in
            let first = Task { try await client.scan() }
            try await time.sleep(for: .seconds(1))
            let error = await #expect(throws: FerryError.self) { try await client.deviceInfo() }
            #expect(error?.code == .improvBusy && error?.fate == .nothingSent)
            first.cancel()
            let cancelled = await #expect(throws: FerryError.self) { try await first.value }
            #expect(cancelled?.code == .cancelled)
        }
    }

    @Test func resultsWithoutEndEndTheLink() throws {
        try run(.endless) { client, _ in
            let error = await #expect(throws: FerryError.self) { try await client.scan() }
            #expect(error?.code == .misbehavingPeer && error?.message.contains("256 results") == true)
        }
    }
}
