import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import FerryTransports
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BusinessCard

/// What the card's programs say is what they know.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct CardReportTests {
    private let transport: @Sendable (String) -> any Transport

    init() throws { transport = try RadioSettings().open(.loopback) }

    /// Serves until `visit` has come back and the server has told of it, and then lets the server's patience end.
    private func serve(
        _ recipe: Recipe, showsChunks: Bool = false, endsByItself: Bool = true, _ output: Output,
        _ visit: @escaping () async throws -> Void
    ) async throws {
        let time = VirtualTime()
        let server = Roles(recipe: recipe, showsChunks: showsChunks, console: output.console(), time: time)
        async let serving: Void = server.serve(.example, over: transport("server"), savingTo: nil)
        try await visit()
        if endsByItself { try await until("a visit in \(output.text)") { output.text.contains("Visitor 1 ") } }
        async let _: Void = time.pass(server.timeout)
        try await serving
    }

    @Test("Only an acknowledgement says that a visitor has the card", arguments: FramingChoice.allCases)
    func acknowledgement(_ framing: FramingChoice) async throws {
        let output = Output()
        let visitor = Roles(recipe: Recipe(framing: framing), console: Output().console())
        try await serve(Recipe(framing: framing), output) {
            try await visitor.receive(over: transport("visitor"), reply: nil, savingTo: nil)
        }
        #expect(output.text.contains("Visitor 1 acknowledged the card.") == (framing == .sequenced), "\(output.text)")
        #expect(output.text.contains("nothing confirms that it arrived") == (framing != .sequenced))
        #expect(output.text.contains("1 visitor served, 0 failed."))
    }

    @Test(
        "A receiver with another framing has not got the card, and nothing says so",
        arguments: [
            (FramingChoice.eom, FramingChoice.length), (.length, .eom), (.eom, .sequenced), (.length, .sequenced),
        ])
    func mismatch(_ sent: FramingChoice, _ received: FramingChoice) async throws {
        let output = Output()
        try? await serve(Recipe(framing: sent), output) {
            let link = try await transport("visitor").connect(timeout: .unreached)
            let visitor = Party(
                role: "client", recipe: Recipe(framing: received), timeout: .milliseconds(300),
                console: Output().console())
            await #expect(throws: (any Error).self) { _ = try await visitor.receive(over: link) }
        }
        #expect(!output.text.contains("acknowledged") && !output.text.contains("took"), "\(output.text)")
        #expect(output.text.contains("nothing confirms") || output.text.contains("did not get"), "\(output.text)")
    }

    @Test("A visitor who stays silent is given up, and the server fails") func silence() async throws {
        let (events, event) = AsyncStream<String>.makeStream()
        let output = Output { event.yield($0) }
        let error = await #expect(throws: CardError.self) {
            try await serve(Recipe(framing: .sequenced), showsChunks: true, endsByItself: false, output) {
                let link = try await transport("visitor").connect(timeout: .unreached)
                link.activate(Silence())
                for await line in events where line.contains("sent") { break }
            }
        }
        #expect(error?.description == "1 visit failed; the reasons are above.")
        #expect(output.text.contains("Visitor 1 did not get the card: "), "\(output.text)")
        #expect(output.text.contains("0 visitors served, 1 failed."), "\(output.text)")
    }

    private final class Silence: LinkReceiver {
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {}
        func linkDidClose(_ reason: FerryError) {}
    }

    @Test("Waiting does not end while somebody is there") func patience() {
        let time = VirtualTime()
        let ended = Atomic(0)
        let visits = Visits(time: time, patience: .seconds(10)) { ended.add(1, ordering: .relaxed) }
        visits.wait()
        time.advance(by: .seconds(9))
        visits.begin()
        visits.begin()
        time.advance(by: .seconds(100))
        visits.end(wasServed: true)
        time.advance(by: .seconds(100))
        #expect(!visits.isOver)
        visits.end(wasServed: false)
        time.advance(by: .seconds(9))
        #expect(!visits.isOver && visits.counts == (1, 1))
        time.advance(by: .seconds(1))
        #expect(visits.isOver && ended.load(ordering: .relaxed) == 1)
    }

    @Test("A card that has arrived is saved, though ours cannot be sent back") func undeliverableReply() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let output = Output()
        let client = Roles(recipe: Recipe(framing: .length), console: output.console())
        try await serve(Recipe(framing: .length), Output()) {
            let error = await #expect(throws: CardError.self) {
                try await client.receive(
                    over: MuteTransport(inner: transport("client")), reply: .example, savingTo: path)
            }
            let message = error?.description ?? ""
            #expect(message.hasPrefix("The card has arrived; yours could not be sent back: "), "\(message)")
            #expect(message.components(separatedBy: "This peripheral only notifies.").count == 2, "\(message)")
        }
        #expect(try CardFile.load(path) == .example)
        #expect(output.text.contains("Card that arrived") && !output.text.contains("Card sent back"))
    }

    @Test("A card that still moves is not called a wrong framing") func slow() async throws {
        let listener = try await transport("server").listen()
        let connecting = Task { try await transport("client").connect(timeout: .unreached) }
        var links = listener.links.makeAsyncIterator()
        let server = try #require(await links.next())
        server.activate(Silence())
        let (events, event) = AsyncStream<String>.makeStream()
        let output = Output { event.yield($0) }
        let time = VirtualTime()
        let client = Party(role: "client", console: output.console(), showsChunks: true, time: time)
        let link = try await connecting.value
        let receiving = Task {
            defer { event.finish() }
            return try await client.receive(over: link)
        }
        var lines = events.makeAsyncIterator()
        feeding: while true {
            let chunk = [UInt8]("x".utf8)
            _ = try? server.trySend(chunk.span.bytes)
            while true {
                guard let line = await lines.next() else { break feeding }
                if line.contains("received") { break }
            }
            time.advance(by: .seconds(1))
        }
        let error = await #expect(throws: CardError.self) { try await receiving.value }
        #expect(
            error?.description.contains("The card was still arriving after 30 s: ") == true,
            "\(String(describing: error))")
        #expect(error?.description.contains("--framing") == false)
    }

    @Test("The loss of the adapter is named while nobody is there") func lossOfTheAdapter() async throws {
        let (output, time) = (Output(), VirtualTime())
        let adapter = LoopbackRadio().makeAdapter(name: "here")
        let server = Roles(console: output.console(), time: time)
        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let serving = Task {
            try await server.serve(
                .example, over: GATTTransport(adapter: adapter, configuration: layout), savingTo: nil)
        }
        try await until("the server") { output.text.contains("Waiting for visitors") }
        adapter.setState(.resetting)
        try await until("the reset") { output.text.contains("Adapter here has gone") }
        adapter.setState(.poweredOn)
        try await until("power") { output.text.contains("Visitors can come again.") }
        adapter.setState(.unsupported)
        try await until("the removal") { output.text.contains("Adapter here has been removed") }
        async let _: Void = time.pass(server.timeout)
        let error = await #expect(throws: CardError.self) { try await serving.value }
        #expect(error?.description.hasPrefix("No visitor could come. Adapter here has been removed") == true)
    }

    @Test("A file that may not be changed is not replaced") func readOnly() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try CardFile.save(.example, to: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
        let other = Card(firstName: "Charles")
        #expect(throws: CardError.self) { try CardFile.checkDestination(path) }
        let error = #expect(throws: CardError.self) { try CardFile.save(other, to: path) }
        #expect(error?.description.contains("may not be changed") == true)
        #expect(try CardFile.load(path) == .example)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        try CardFile.save(other, to: path)
        #expect(try CardFile.load(path) == other)
    }

    @Test("No sentence stands twice, and nobody meets a dump") func explanations() {
        let cause = BluetoothError(.notPoweredOn, "It is switched off.")
        #expect(
            explanation(of: FerryError(.transportUnavailable, "Cannot listen: It is switched off.", cause: cause))
                == "Cannot listen: It is switched off.")
        #expect(
            explanation(of: FerryError(.transportUnavailable, "Cannot listen.", cause: cause))
                == "Cannot listen. It is switched off.")
        #expect(explanation(of: cause) == "It is switched off.")
        let raw = NSError(domain: NSCocoaErrorDomain, code: 4, userInfo: ["a": "b"])
        #expect(explanation(of: FerryError(.decodingFailed, "No card.", cause: raw)) == "No card.")
    }
}

/// Links that take nothing, as to a peripheral that only notifies.
private struct MuteTransport: Transport {
    let inner: any Transport

    func listen() async throws(FerryError) -> LinkListener { try await inner.listen() }
    func connect(timeout: Duration) async throws(FerryError) -> any Link {
        MuteLink(try await inner.connect(timeout: timeout))
    }
    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        MuteLink(try await inner.connect(to: peer, timeout: timeout))
    }
}

private final class MuteLink: Link {
    private let inner: any Link

    init(_ inner: any Link) { self.inner = inner }

    var peer: PeerIdentity { inner.peer }
    var maximumChunkSize: Int { inner.maximumChunkSize }
    func activate(_ receiver: any LinkReceiver) { inner.activate(receiver) }
    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        throw FerryError(.invalidConfiguration, "This peripheral only notifies.")
    }
    func setReceiving(_ isReceiving: Bool) { inner.setReceiving(isReceiving) }
    func close() { inner.close() }
}
