import Ferry
import FerryTransports
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BusinessCard

@Suite(.tags(.program), .timeLimit(.minutes(5))) struct ExchangeTests {
    struct Way: Sendable, CustomTestStringConvertible {
        var recipe: Recipe
        var testDescription: String {
            "\(recipe.framing) \(recipe.codec) \(recipe.compresses ? "compressed " : "")\(recipe.chunkSize ?? 0)"
        }

        private static func smallest(_ framing: FramingChoice) -> Int {
            switch framing {
            case .eom: 4
            case .length: 1
            case .sequenced: 20
            }
        }

        static let all = FramingChoice.allCases.flatMap { framing in
            CodecChoice.allCases.flatMap { codec in
                [false, true].flatMap { compresses in
                    [smallest(framing), nil, 20, 182, 244, 512].map { chunk in
                        Way(recipe: Recipe(framing: framing, codec: codec, compresses: compresses, chunkSize: chunk))
                    }
                }
            }
        }
    }

    @Test(arguments: Way.all)
    func theCardArrivesWhateverTheWay(_ way: Way) async throws {
        let output = Output()
        try await roles(output, way.recipe).exchange(.example, savingTo: nil)
        #expect(output.text.contains("The card that arrived equals the card that was sent."), "\(output.text)")
    }

    @Test func theReportCountsChunksAndWaits() async throws {
        let output = Output()
        var roles = roles(output, Recipe(chunkSize: 8))
        roles.radio.interval = .milliseconds(10)
        try await roles.exchange(.example, savingTo: nil)
        let facts = output.facts
        // 227 bytes of JSON: 28 chunks of 8, one of 3, and the marker.
        #expect(facts["Message"] == "227 bytes")
        #expect(facts["Chunks sent"] == "30 (28 x 8, 2 x 3 bytes; 230 in all)")
        #expect(facts["Codec"] == "JSON")
        #expect(facts["Framing"] == "the marker EOM after the last chunk")
        // A queue of 8 does not take 30 at once.
        let waits = try #require(facts["Waited for ready"]?.split(separator: " ").first.flatMap { Int($0) })
        #expect(waits > 0)
    }

    @Test func aLogShowsEveryChunkInOrder() async throws {
        let output = Output()
        var roles = roles(output, Recipe(chunkSize: 100))
        roles.showsChunks = true
        try await roles.exchange(Card(firstName: "Zoë", contact: "x"), savingTo: nil)
        let lines = output.text.split(separator: "\n")
        let sent = lines.filter { $0.contains("server  sent") }.map { $0.drop { $0 != "b" } }
        let received = lines.filter { $0.contains("client  received") }.map { $0.drop { $0 != "b" } }
        // In a file a chunk stands whole, for ferry trace.
        let card = Array(
            #"{"contact":"x","firstName":"Zoë","lastName":"","location":"","organization":""}"#.utf8
        ).map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }
        #expect(sent == ["bytes  \(card.joined(separator: " "))", "bytes  EOM"])
        #expect(received == sent)
    }

    @Test(arguments: ["card.json", "card.plist", "card.vcf"])
    func theCardIsSaved(_ name: String) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())-\(name)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let output = Output()
        try await roles(output, Recipe()).exchange(.example, savingTo: path)
        #expect(try CardFile.load(path) == .example)
        #expect(output.facts["Saved"] == path)
    }

    @Test func aSignalOutsideTheWindowIsNamed() async throws {
        let output = Output()
        var roles = roles(output, Recipe())
        roles.radio.rssi = -90 ... -60
        var message = ""
        // Longer each time, until an advertisement has been heard.
        roles.timeout = .milliseconds(50)
        while !message.contains("-24 dBm") {
            roles.timeout *= 4
            let error = await #expect(throws: FerryError.self) { try await roles.exchange(.example, savingTo: nil) }
            #expect(error?.code == .timedOut)
            message = error?.message ?? ""
        }
        #expect(message.contains("outside the signal-strength window -90...-60 dBm: -24 dBm"), "\(message)")
        roles.radio.rssi = -32 ... -15
        roles.timeout = .unreached
        try await roles.exchange(.example, savingTo: nil)
    }

    @Test func cancellingEndsASlowExchange() async throws {
        let (sending, hasBegun) = AsyncStream<Void>.makeStream()
        let output = Output { if $0.contains("sent") { hasBegun.yield() } }
        var roles = roles(output, Recipe(framing: .length, chunkSize: 1))
        roles.radio.interval = .milliseconds(50)  // two bytes each: longer than the test may last
        let card = Card(firstName: String(repeating: "x", count: 100_000), contact: "x")
        roles.showsChunks = true
        let exchange = Task { [roles] in try await roles.exchange(card, savingTo: nil) }
        for await _ in sending { break }
        exchange.cancel()
        await #expect(throws: (any Error).self) { try await exchange.value }
        #expect(!output.text.contains("equals"))
    }

    private func roles(_ output: Output, _ recipe: Recipe) -> Roles {
        Roles(
            radio: RadioSettings(chunkSize: recipe.chunkSize ?? 20), recipe: recipe, timeout: .unreached,
            console: output.console())
    }
}

/// The roles one by one, as they would be in processes of their own.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct RoleTests {
    private let transport: @Sendable (String) -> any Transport

    init() throws { transport = try RadioSettings().open(.loopback) }

    @Test func aServerHandsItsCardToEveryVisitorAndTakesTheirs() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let (events, event) = AsyncStream<String>.makeStream()
        let (output, visitorOutput) = (Output { event.yield($0) }, Output())
        // The server's patience ends when this test says so.
        let time = VirtualTime()
        let server = Roles(console: output.console(), time: time)
        async let serving: Void = server.serve(.example, over: transport("server"), savingTo: path)
        let visitor = Roles(console: visitorOutput.console())
        let theirs = Card(firstName: "Charles", lastName: "Babbage")
        try await visitor.receive(over: transport("first"), reply: nil, savingTo: nil)
        try await visitor.receive(over: transport("second"), reply: theirs, savingTo: nil)
        for await line in events where line.contains("Saved") { break }
        async let _: Void = time.pass(server.timeout)
        try await serving
        #expect(
            visitorOutput.text.components(separatedBy: "Card that arrived\n  Name            Ada Lovelace").count == 3)
        #expect(output.text.contains("2 visitors served, 0 failed."))
        #expect(output.text.contains("Card from visitor 2\n  Name            Charles Babbage\n"))
        #expect(try CardFile.load(path) == theirs)
    }

    /// Visitors that have the card and do not leave: the server has two places, and the third visitor gets the first one's.
    @Test func visitorsThatStayMakeRoom() async throws {
        let output = Output()
        let time = VirtualTime()
        let server = Roles(places: 2, console: output.console(), time: time)
        let listening = transport("server")
        let serving = Task { try await server.serve(.example, over: listening, savingTo: nil) }
        var idle: [(any Link, Ender)] = []
        for name in ["first", "second"] {
            let link = try await transport(name).connect(timeout: .unreached)
            let ender = Ender()
            link.activate(ender)
            idle.append((link, ender))
        }
        // Their visits have begun, and they have the places.
        try await until("both are served in \(output.text)") {
            [1, 2].allSatisfy { output.text.contains("Sending to visitor \($0)") }
        }
        let visitor = Roles(console: Output().console())
        try await visitor.receive(over: transport("third"), reply: nil, savingTo: nil)
        try await until("one has given way") { idle.count { $0.1.hasEnded } == 1 }
        for (link, _) in idle { link.close() }
        async let _: Void = time.pass(server.timeout)
        try await serving.value
        #expect(output.text.contains("3 visitors served, 0 failed."), "\(output.text)")
    }

    private final class Ender: LinkReceiver {
        private let ended = Mutex(false)
        var hasEnded: Bool { ended.withLock { $0 } }
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {}
        func linkDidClose(_ reason: FerryError) { ended.withLock { $0 = true } }
    }

    @Test func aServerThatNobodyVisitsSaysSo() async {
        var server = Roles(console: Output().console())
        server.timeout = .milliseconds(50)
        let error = await #expect(throws: CardError.self) {
            try await server.serve(.example, over: transport("server"), savingTo: nil)
        }
        #expect(error?.description.contains("No visitor took the card within 50 ms.") == true)
    }

    @Test func aClientThatFindsNobodySaysSo() async {
        var client = Roles(console: Output().console())
        client.timeout = .milliseconds(50)
        let error = await #expect(throws: FerryError.self) {
            try await client.receive(over: transport("client"), reply: nil, savingTo: nil)
        }
        #expect(error?.code == .timedOut)
    }

    @Test func sidesWithDifferentCodecsAreToldApart() async throws {
        let error = await #expect(throws: FerryError.self) {
            try await handOver(with: Recipe(codec: .json), receivingWith: Recipe(codec: .plist))
        }
        #expect(error?.code == .decodingFailed)
    }

    @Test func sidesWithDifferentFramingsAreToldToCheck() async throws {
        let error = await #expect(throws: CardError.self) {
            // Without the marker at its end a message is never whole: 229 bytes have come, and no more do.
            try await handOver(
                with: Recipe(framing: .length, chunkSize: 20), receivingWith: Recipe(framing: .eom), givingUpAfter: 12)
        }
        #expect(error?.description.contains("same --framing, --codec and --compress") == true)
    }

    @Test func aServerThatLeavesInTheMiddleIsReported() async throws {
        let listener = try await transport("server").listen()
        async let leaving: Void = {
            for await link in listener.links {
                link.activate(Ignorer())
                let chunk = [UInt8]("{\"firstName\":".utf8)
                _ = try link.trySend(chunk.span.bytes)
                link.close()
                break
            }
        }()
        let link = try await transport("client").connect(timeout: .unreached)
        let client = Party(role: "client", console: Output().console())
        await #expect(throws: (any Error).self) { _ = try await client.receive(over: link) }
        try await leaving
    }

    private final class Ignorer: LinkReceiver {
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {}
        func linkDidClose(_ reason: FerryError) {}
    }

    /// - Parameter chunks: how many come before the receiver's time passes; nil where it stands still.
    private func handOver(
        with sent: Recipe, receivingWith received: Recipe, givingUpAfter chunks: Int? = nil
    ) async throws {
        let listener = try await transport("server").listen()
        let console = Output().console()
        async let delivery: Party.Delivery? = {
            for await link in listener.links {
                let server = Party(role: "server", recipe: sent, timeout: .unreached, console: console)
                return try await server.handOver(.example, over: link)
            }
            return nil
        }()
        let link = try await transport("client").connect(timeout: .unreached)
        let (output, time) = (Output(), VirtualTime())
        let client = Party(
            role: "client", recipe: received, console: output.console(), showsChunks: true, time: time)
        let receiving = Task { try await client.receive(over: link).card }
        if let chunks {
            try await until("\(chunks) chunks in \(output.text)") {
                output.text.components(separatedBy: "client  received").count > chunks
            }
            // The client looks at the time when all has come, or before.
            async let _: Void = time.pass(client.timeout)
            _ = await receiving.result
        }
        let result = await receiving.result
        _ = try await delivery
        _ = try result.get()
    }
}

extension Output {
    /// What stands behind each title.
    var facts: [String: String] {
        var facts: [String: String] = [:]
        for line in text.split(separator: "\n") where line.count > 18 {
            facts[line.prefix(18).trimmingCharacters(in: .whitespaces)] = String(line.dropFirst(18))
        }
        return facts
    }
}
