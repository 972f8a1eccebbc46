import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// A GATT link that has ended acts on no other connection, of the same central neither.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct EndedLinkTests {
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

    /// A listening peripheral and one central, which may come again.
    private struct Rig {
        let radio: LoopbackRadio
        let client: LoopbackAdapter
        let listener: LinkListener

        init() async throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.advertisingInterval = .milliseconds(1)
            radio = try LoopbackRadio(configuration: configuration)
            client = radio.makeAdapter(name: "client")
            listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: EndedLinkTests.layout)
                .listen()
        }

        func connect() async throws -> any Link {
            try await GATTTransport(adapter: client, configuration: EndedLinkTests.layout)
                .connect(timeout: .unreached)
        }

        func accept() async throws -> any Link {
            for await far in listener.links { return far }
            throw FerryError(.peerNotFound, "The listener ended.")
        }
    }

    /// Waits for a link's end.
    private func end(of link: any Link) async {
        let (ends, end) = AsyncStream<Void>.makeStream()
        link.activate(EndWitness { end.yield() })
        for await _ in ends { return }
    }

    private func expectInert(_ link: any Link, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(throws: FerryError.self, sourceLocation: sourceLocation) {
            try link.trySend([0x67, 0x68, 0x6F, 0x73, 0x74].span.bytes)
        }
        link.setReceiving(false)
        link.close()
    }

    /// Two owners share a connection whose peer is out of reach. Each of them has ended it, and is told so; the peer, which could not
    /// hear of it, is told something else.
    @Test(arguments: [false, true]) func whoHasEndedItIsToldSo(isLateLoss: Bool) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let listener = try await GATTTransport(adapter: server, configuration: Self.layout, time: time).listen()
            let link = try await GATTTransport(adapter: client, configuration: Self.layout, time: time)
                .connect(timeout: .unreached)
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let witnesses = (ReasonWitness(), ReasonWitness(), ReasonWitness())
            link.activate(witnesses.0)
            far.activate(witnesses.1)
            let role = client.openCentral(witnesses.2)
            let connection = try await role.connect(to: client.identifier(of: server), events: witnesses.2)
            if !isLateLoss { radio.setInRange(false, between: server, and: client) }
            connection.disconnect()
            link.close()
            if isLateLoss { radio.setInRange(false, between: server, and: client) }
            #expect(await witnesses.0.reason() == "closed")
            #expect(await witnesses.1.reason() == "timedOut")
            #expect(await witnesses.2.reason() == "disconnectedLocally")
            role.close()
        }
    }

    @Test func anEndedLinkDoesNothingToTheNext() async throws {
        let rig = try await Rig()
        let first = (near: try await rig.connect(), far: try await rig.accept())
        first.near.close()
        await end(of: first.far)
        await end(of: first.near)
        let second = (near: try await rig.connect(), far: try await rig.accept())
        let channels = try [second.near, second.far].map { try MessageChannel(over: $0, codec: BytesCodec()) }
        expectInert(first.far)
        expectInert(first.near)
        #expect(first.far.peer == second.far.peer)
        for (sender, receiver) in [(0, 1), (1, 0)] {
            try await channels[sender].send([1, 2, 3])
            var messages = channels[receiver].messages.makeAsyncIterator()
            #expect(try await messages.next() == [1, 2, 3])
            expectInert(first.far)
        }
    }

    /// The central has left and come back before the app takes the first link.
    @Test(arguments: 0..<10) func aLinkTakenTooLateDoesNothingToTheNext(_ round: Int) async throws {
        let rig = try await Rig()
        let gone = try MessageChannel(over: try await rig.connect(), codec: BytesCodec(), framing: SequencedFraming())
        gone.close()
        let near = try MessageChannel(over: try await rig.connect(), codec: BytesCodec(), framing: SequencedFraming())
        let stale = try MessageChannel(over: try await rig.accept(), codec: BytesCodec(), framing: SequencedFraming())
        let far = try MessageChannel(over: try await rig.accept(), codec: BytesCodec(), framing: SequencedFraming())
        async let sent: Void = near.send([7, 8, 9])
        var messages = far.messages.makeAsyncIterator()
        #expect(try await messages.next() == [7, 8, 9])
        try await sent
        for try await message in stale.messages { Issue.record("the ended link brought \(message)") }
        #expect(stale.closeReason?.code == .disconnected)
        try await far.send([1])
        var answers = near.messages.makeAsyncIterator()
        #expect(try await answers.next() == [1])
    }
}

/// Waits for the end of a link and takes nothing from it.
private final class EndWitness: LinkReceiver {
    private let onEnd: @Sendable () -> Void
    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    func linkIsReady() {}
    func linkDidReceive(_ chunk: RawSpan) {}
    func linkDidClose(_ reason: FerryError) { onEnd() }
}

/// Is told why something has ended.
private final class ReasonWitness: LinkReceiver, CentralRoleEvents, PeripheralConnectionEvents {
    private let (reasons, sink) = AsyncStream<String>.makeStream()

    func reason() async -> String? { await reasons.first { _ in true } }

    func linkIsReady() {}
    func linkDidReceive(_ chunk: RawSpan) {}
    func linkDidClose(_ reason: FerryError) { sink.yield("\(reason.code)") }
    func peripheralDidDisconnect(_ reason: BluetoothError) { sink.yield("\(reason.code)") }
}
