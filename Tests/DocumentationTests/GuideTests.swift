import Ferry
import FerryBluetooth
import FerryJSON
import FerryLoopback
import FerrySequenced
import FerryZlib
import TestSupport
import Testing

// What the articles show that are about one matter each.

/// The test that the article TestingWithoutARadio shows.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct GuideTests {
    @Test func arrivesOverALinkThatLosesAndBreaks() async throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = 23
        configuration.transmitQueueDepth = 4
        configuration.supervisionTimeout = .milliseconds(100)
        configuration.faults = .init(
            seed: 7, probabilities: [.lose: 0.01, .double: 0.01], script: [.init(.disconnect, at: 60)])
        let air = try LoopbackRadio(configuration: configuration)
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        let sensor = ReconnectingTransport(over: GATTTransport(adapter: air.makeAdapter(), configuration: layout))
        let phone = ReconnectingTransport(over: GATTTransport(adapter: air.makeAdapter(), configuration: layout))
        let listener = try await sensor.listen()
        let sending = Task {
            for await link in listener.links.prefix(1) {
                let channel = try MessageChannel(over: link, codec: TextCodec(), framing: SequencedFraming())
                for number in 1...100 { try await channel.send("reading \(number)") }
            }
        }
        let link = try await phone.connect(timeout: .seconds(30))
        let channel = try MessageChannel(over: link, codec: TextCodec(), framing: SequencedFraming())
        var count = 0
        for try await reading in channel.messages.prefix(100) {
            count += 1
            #expect(reading == "reading \(count)")
        }
        #expect(count == 100)
        try await sending.value
    }
}

private func waitsAnHour(over radio: GATTTransport) async throws -> any Sendable {
    var backoff = ReconnectingTransport<GATTTransport>.Backoff()
    backoff.patience = .seconds(3600)
    let transport = ReconnectingTransport(over: radio, backoff: backoff)
    let link = try await transport.connect(timeout: .seconds(10))
    let channel = try MessageChannel(over: link, codec: TextCodec(), framing: SequencedFraming())
    return channel
}

private func urgent(_ channel: MessageChannel<String, String>) async throws {
    try await channel.send("fire", options: SendOptions(priority: .urgent))
}

private func encrypted() throws -> GATTConfiguration {
    let layout = try GATTConfiguration(
        service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"), encryptionRequired: true)
    return layout
}

private func chosen(over link: any Link) throws -> any Sendable {
    let channel = try MessageChannel(
        over: link, codec: JSONCodec<[String: Double]>(), framing: LengthPrefixFraming(), compression: ZlibCompression()
    )
    return channel
}

private func small(over link: any Link, _ dictionary: [UInt8]) throws -> any Sendable {
    let channel = try MessageChannel(
        over: link, codec: JSONCodec<[String: Double]>(), compression: ZlibCompression(dictionary: dictionary))
    return channel
}

/// Asks on a terminal.
struct TerminalAgent: PairingAgent {
    func show(_ number: Int, for peer: PeerID) { print("Enter \(number) on the other device.") }

    func compare(_ number: Int, with peer: PeerID) async -> Bool {
        print("Does the other device show \(number)? Type y or n.")
        return readLine() == "y"
    }

    func passkey(of peer: PeerID) async -> Int? {
        print("Which number does the other device show?")
        return readLine().flatMap { Int($0) }
    }
}
