import Ferry
import FerryBluetooth
import FerryLoopback
import TestSupport
import Testing

/// What is closed goes: a process that opens channels for months does not grow.
@Suite(.tags(.channel, .bluetooth)) struct LifetimeTests {
    private struct Remains {
        let name: String
        weak var object: AnyObject?
    }

    @Test(.timeLimit(.minutes(5)), arguments: [Duration.zero, .milliseconds(15)])
    func nothingOutlivesAnExchange(connectionInterval: Duration) throws {
        let time = VirtualTime()
        var remains: [Remains] = []
        try exchange(connectionInterval, time, &remains)
        // What is due when the roles go, and at the end of a connection's timeouts, holds the radio until then.
        try time.run { try await time.sleep(for: .seconds(100)) }
        #expect(remains.count == 8)
        #expect(remains.filter { $0.object != nil }.map(\.name) == [])
    }

    private func exchange(_ interval: Duration, _ time: VirtualTime, _ remains: inout [Remains]) throws {
        func watch(_ name: String, _ object: AnyObject) { remains.append(Remains(name: name, object: object)) }

        var configuration = LoopbackRadio.Configuration()
        configuration.connectionInterval = interval
        configuration.advertisingInterval = .milliseconds(1)
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        watch("radio", radio)
        watch("peripheral's adapter", server)
        watch("central's adapter", client)

        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        typealias Channels = [MessageChannel<[UInt8], [UInt8]>]
        let (listener, links, channels) = try time.run { () async throws -> (LinkListener, [any Link], Channels) in
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(3600))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let sender = try MessageChannel(over: near, codec: BytesCodec(), time: time)
            let receiver = try MessageChannel(over: far, codec: BytesCodec(), time: time)
            try await sender.send([1, 2, 3])
            for try await message in receiver.messages.prefix(1) { #expect(message == [1, 2, 3]) }
            sender.close()
            receiver.close()
            return (listener, [near, far], [sender, receiver])
        }
        for (name, link) in zip(["central's link", "peripheral's link"], links) { watch(name, link) }
        for (name, channel) in zip(["sender", "receiver"], channels) { watch(name, channel) }
        watch("listener", listener)
        try time.run { listener.close() }
    }
}
