import Ferry
import FerryBluetooth
import FerryJSON
import FerryLoopback
import FerrySequenced
import FerryTesting
import FerryZlib
import TestSupport
import Testing

// What articles show, as it stands there: `scripts/check readme` looks for each block of code in a file that is built. Lines that
// end with "not shown" are passed over there.

private struct Card: Codable, Sendable { var name = "Ada" }

/// The programs that articles show in whole.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct ArticleTests {
    @Test func gettingStarted() async throws {
        struct Greeting: Codable, Sendable {
            var text: String
        }

        let configuration = GATTConfiguration(
            service: try BluetoothUUID("E07F0AE8-00BB-47F5-94F4-4A7174EA3032"),
            characteristic: try BluetoothUUID("9D534E8B-2153-4F6D-B2B0-8C68665A7274"))
        let radio = LoopbackRadio()

        // The peripheral: publishes the service, advertises it, and greets each central.
        let peripheral = GATTTransport(adapter: radio.makeAdapter(), configuration: configuration)
        let listener = try await peripheral.listen()
        let server = Task {
            for await link in listener.links {
                let channel = try MessageChannel(over: link, codec: JSONCodec(Greeting.self))
                try await channel.send(Greeting(text: "Welcome aboard"))
                for try await greeting in channel.messages { print("peripheral heard:", greeting.text) }
            }
        }

        // The central: finds the peripheral, connects, and answers.
        let central = GATTTransport(adapter: radio.makeAdapter(), configuration: configuration)
        let link = try await central.connect(timeout: .seconds(30))
        let channel = try MessageChannel(over: link, codec: JSONCodec(Greeting.self))
        for try await greeting in channel.messages {
            print("central heard:", greeting.text)
            break  // the channel stays open; iterating again goes on
        }
        try await channel.send(Greeting(text: "Thank you"))
        channel.close()
        listener.close()
        try await server.value
    }

    @Test func advertising() throws {
        let service = BluetoothUUID(0xFE01 as UInt16)
        let report = Advertisement(localName: "A rather long name", services: [service]).fitted(to: .coreBluetooth)
        print(report.advertised.localName ?? "no name", report.isNameShortened, report.omittedServices)
        #expect(report.omittedServices.isEmpty)
    }
}

struct TemperatureCodec: Codec {
    struct WrongLength: Error { var count: Int }

    func encode(_ celsius: Double) -> [UInt8] {
        withUnsafeBytes(of: celsius.bitPattern.littleEndian, Array.init)
    }

    func decode(_ payload: [UInt8]) throws -> Double {
        guard payload.count == 8 else { throw WrongLength(count: payload.count) }
        return Double(bitPattern: payload.reversed().reduce(0) { $0 << 8 | UInt64($1) })
    }
}

/// A codec of one's own.
@Suite(.tags(.codec)) struct PluginTests {
    @Test func conforms() throws {
        try CodecConformance(TemperatureCodec(), samples: [0, -40, 1e300]).check()
    }
}

// Parts of programs: that they compile is all.

private func overview(_ link: any Link) async throws {
    struct Greeting: Codable, Sendable { var text: String }

    let channel = try MessageChannel(over: link, codec: JSONCodec(Greeting.self))
    try await channel.send(Greeting(text: "Welcome aboard"))
    for try await greeting in channel.messages {
        print(greeting.text)
    }
}

private func sending(_ card: Card, _ channel: MessageChannel<Card, Card>) async throws {
    try await channel.send(card, timeout: .seconds(10)) { progress in
        print("\(progress.acceptedBytes) of \(progress.totalBytes) bytes")
    }
}

private func text(over link: any Link) throws -> any Sendable {
    let framing = try EndOfMessageFraming(content: .text)
    let channel = try MessageChannel(over: link, codec: TextCodec(), framing: framing)
    return channel
}

private func compressed(over link: any Link) throws -> any Sendable {
    let channel = try MessageChannel(over: link, codec: JSONCodec(Card.self), compression: ZlibCompression())
    return channel
}

private func limited(over link: any Link) throws -> any Sendable {
    var limits = Limits()
    limits.maximumMessageSize = 64 << 10
    let channel = try MessageChannel(over: link, codec: JSONCodec(Card.self), limits: limits)
    return channel
}

private func overGATT(_ adapter: any BluetoothAdapter) async throws -> any Sendable {
    let configuration = GATTConfiguration(
        service: try BluetoothUUID("E07F0AE8-00BB-47F5-94F4-4A7174EA3032"),
        characteristic: try BluetoothUUID("9D534E8B-2153-4F6D-B2B0-8C68665A7274"))
    let transport = GATTTransport(adapter: adapter, configuration: configuration)
    let link = try await transport.connect(timeout: .seconds(10))
    let channel = try MessageChannel(over: link, codec: TextCodec())
    return channel
}

private func reconnecting(over radio: GATTTransport, _ codec: TextCodec) async throws -> any Sendable {
    let transport = ReconnectingTransport(over: radio)
    let link = try await transport.connect(timeout: .seconds(10))
    let channel = try MessageChannel(over: link, codec: codec, framing: SequencedFraming())
    return channel
}
