import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// What a listener is offered and nobody takes, keeps or closes is closed, and the central is told.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct ListenerTests {
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

    private struct Rig {
        let time = VirtualTime()
        let radio: LoopbackRadio
        let server: LoopbackAdapter
        let client: LoopbackAdapter

        init() throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.advertisingInterval = .milliseconds(1)
            radio = try LoopbackRadio(time: time, configuration: configuration)
            (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        }

        func listen(_ time: VirtualTime? = nil) async throws -> LinkListener {
            try await GATTTransport(adapter: server, configuration: ListenerTests.layout, time: time ?? self.time)
                .listen()
        }

        func connect() async throws -> MessageChannel<[UInt8], [UInt8]> {
            let link = try await GATTTransport(adapter: client, configuration: ListenerTests.layout, time: time)
                .connect(timeout: .unreached)
            return try MessageChannel(over: link, codec: BytesCodec(), time: time)
        }

        /// Whether nobody offers the service any more.
        func isSilent() async -> Bool {
            do {
                try await GATTTransport(adapter: client, configuration: ListenerTests.layout, time: time)
                    .connect(timeout: .milliseconds(50)).close()
                return false
            } catch {
                return error.code == .timedOut
            }
        }
    }

    /// The central's channel ends, and sends fail, instead of vanishing.
    private func expectEnd(
        of channel: MessageChannel<[UInt8], [UInt8]>, sourceLocation: SourceLocation = #_sourceLocation
    )
        async throws
    {
        for try await _ in channel.messages {}
        #expect(channel.closeReason?.code == .disconnected, sourceLocation: sourceLocation)
        await #expect(throws: FerryError.self, sourceLocation: sourceLocation) { try await channel.send([1]) }
    }

    @Test func aClosedListenerSendsThoseAwayWhomNobodyTook() throws {
        let rig = try Rig()
        try rig.time.run {
            let listener = try await rig.listen()
            let channel = try await rig.connect()
            listener.close()
            try await expectEnd(of: channel)
            for await _ in listener.links { Issue.record("a closed listener gave a link") }
            #expect(await rig.isSilent())
        }
    }

    @Test func aListenerThatNobodyKeepsDoesTheSame() throws {
        let rig = try Rig()
        try rig.time.run {
            var listener: LinkListener? = try await rig.listen()
            let channel = try await rig.connect()
            #expect(listener != nil)
            listener = nil
            try await expectEnd(of: channel)
            #expect(await rig.isSilent())
        }
    }

    @Test func cancellingTheAcceptingTaskEndsListening() throws {
        let rig = try Rig()
        try rig.time.run {
            let listener = try await rig.listen()
            let accepting = Task { for await link in listener.links { link.close() } }
            try await expectEnd(of: try await rig.connect())
            accepting.cancel()
            await accepting.value
            #expect(await rig.isSilent())
        }
    }

    @Test func whoIsNotTakenInTimeIsSentAway() throws {
        let rig = try Rig()
        try rig.time.run {
            let time = VirtualTime()
            let listener = try await rig.listen(time)
            let late = try await rig.connect()
            try await rig.time.until("the link waits to be taken") { time.timerCount > 0 }
            time.advance(by: .seconds(30))
            try await expectEnd(of: late)
            // It goes on listening, and whoever was taken stays.
            let channel = try await rig.connect()
            time.advance(by: .seconds(29))
            var links = listener.links.makeAsyncIterator()
            let far = try MessageChannel(over: try #require(await links.next()), codec: BytesCodec(), time: rig.time)
            time.advance(by: .seconds(60))
            try await channel.send([1, 2])
            var messages = far.messages.makeAsyncIterator()
            #expect(try await messages.next() == [1, 2])
        }
    }

    @Test func whatIsInTheWayIsTold() async throws {
        let listener = LinkListener {}
        let told = Journal()
        let (off, gone) = (FerryError(.transportUnavailable, "off"), FerryError(.transportUnavailable, "gone"))
        listener.interrupt(off)
        listener.onInterruption { told.add($0?.message ?? "on") }
        #expect(listener.interruption?.message == "off")
        listener.resume()
        listener.resume()
        #expect(listener.interruption == nil)
        let waiting = Task { for await _ in listener.links {} }
        listener.fail(gone)
        await waiting.value
        // What comes after the end changes nothing.
        listener.resume()
        listener.interrupt(off)
        #expect(listener.interruption?.message == "gone")
        #expect(told.all == ["off", "on", "gone"])
    }

    @Test func whoClosesItselfMeetsNoFailure() async throws {
        let listener = LinkListener {}
        listener.close()
        for await _ in listener.links {}
        listener.fail(FerryError(.transportUnavailable, "late"))
        #expect(listener.interruption == nil)
    }

    @Test func reconnectingTransportsTellItToo() throws {
        let rig = try Rig()
        try rig.time.run {
            let transport = ReconnectingTransport(
                over: GATTTransport(adapter: rig.server, configuration: Self.layout, time: rig.time), time: rig.time)
            let listener = try await transport.listen()
            let told = Journal()
            listener.onInterruption { told.add($0?.message ?? "on") }
            rig.server.setState(.resetting)
            try await told.wait(for: "Adapter ")
            #expect(listener.interruption?.message.contains("has gone") == true)
            rig.server.setState(.poweredOn)
            try await told.wait(for: "on")
            #expect(listener.interruption == nil)
        }
    }

    @Test func aLinkThatNobodyKeepsIsClosed() throws {
        let rig = try Rig()
        try rig.time.run {
            let listener = try await rig.listen()
            let channel = try await rig.connect()
            for await _ in listener.links { break }
            try await expectEnd(of: channel)
        }
    }

    @Test func aTakenLinkOutlivesItsListener() throws {
        let rig = try Rig()
        try rig.time.run {
            var listener: LinkListener? = try await rig.listen()
            let near = try await rig.connect()
            var links = listener?.links.makeAsyncIterator()
            let far = try MessageChannel(over: try #require(await links?.next()), codec: BytesCodec(), time: rig.time)
            listener = nil
            #expect(await rig.isSilent())
            try await near.send([1, 2, 3])
            var messages = far.messages.makeAsyncIterator()
            #expect(try await messages.next() == [1, 2, 3])
        }
    }
}
