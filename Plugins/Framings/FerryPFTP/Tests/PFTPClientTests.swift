import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

@testable import FerryPFTP

/// A client and a device with files, over the virtual radio.
@Suite(.tags(.framing, .bluetooth), .timeLimit(.minutes(5))) struct PFTPClientTests {
    private static let file = [UInt8](0..<200) + [UInt8](0..<200)

    /// What a device does with a request.
    private enum Device: Sendable {
        case files
        /// It says nothing.
        case silent
    }

    private func run(
        _ device: Device, _ body: @escaping @Sendable (PFTPClient, VirtualTime) async throws -> Void
    ) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = 185
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (strap, phone) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run(within: .seconds(10_000)) {
            let listener = try await GATTTransport(adapter: strap, configuration: .polarPFTP, time: time).listen()
            let near = try await GATTTransport(adapter: phone, configuration: .polarPFTP, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let server = try MessageChannel(
                over: far, codec: BytesCodec(), framing: PFTPFraming(errors: .leadMessages), time: time)
            async let served: Void = Self.serve(server, device)
            try await body(try PFTPClient(over: near, time: time), time)
            server.close()
            await served
        }
    }

    private static func serve(_ channel: MessageChannel<[UInt8], [UInt8]>, _ device: Device) async {
        var files = ["/U/0/A.BPB": file]
        for await case .success(let message) in channel.results where device == .files {
            // The number of the error, then the request.
            _ = try? await channel.send(answer(Array(message.dropFirst(2)), &files))
        }
    }

    private static func answer(_ request: [UInt8], _ files: inout [String: [UInt8]]) -> [UInt8] {
        guard request[1] & 0x80 == 0 else { return [0, 0] + [request[0]] }
        let count = Int(request[0]) | Int(request[1]) << 8
        let header = request[2..<2 + count]
        // The key of the path and its length, of 1 byte here.
        let path = String(decoding: header.dropFirst(4), as: UTF8.self)
        switch header[3] {
        case 0 where path == "/U/0/":
            // Fields that nobody knows between those of the list.
            return [0, 0] + [0x10, 5, 0x0A, 15, 0x0A, 5] + Array("A.BPB".utf8) + [0x10, 0x90, 0x03, 0x1D, 1, 0, 0, 0]
                + [0x0A, 4, 0x0A, 2] + Array("R/".utf8)
        case 0: return files[path].map { [0, 0] + $0 } ?? [103, 0]
        case 1:
            files[path] = Array(request[(2 + count)...])
            return [0, 0]
        case 3: return files.removeValue(forKey: path) == nil ? [103, 0] : [0, 0]
        default: return [101, 0]
        }
    }

    @Test func filesAreReadWrittenAndRemoved() throws {
        try run(.files) { client, _ in
            #expect(try await client.get("/U/0/A.BPB") == Self.file)
            let written = [UInt8](repeating: 9, count: 20_000)
            try await client.put("/B", written)
            #expect(try await client.get("/B") == written)
            try await client.remove("/B")
            // A refusal ends its request and nothing else.
            let error = await #expect(throws: FerryError.self) { try await client.get("/B") }
            #expect(error?.code == .pftpRefused && error?.message.contains("get /B with error 103") == true)
            #expect(try await client.ask(.query(5)) == [5])
        }
    }

    @Test func foldersAreListed() throws {
        try run(.files) { client, _ in
            let entries = try await client.list("/U/0")
            #expect(entries.map(\.name) == ["A.BPB", "R/"] && entries.map(\.size) == [400, 0], "\(entries)")
            let error = await #expect(throws: FerryError.self) { try await client.list("/none") }
            #expect(error?.code == .pftpRefused)
        }
    }

    /// A late answer would be the next request's.
    @Test func silenceClosesTheLink() throws {
        try run(.silent) { client, time in
            let began = time.now
            let error = await #expect(throws: FerryError.self) {
                try await client.ask(.get("/"), timeout: .seconds(3))
            }
            #expect(error?.code == .timedOut && time.now - began == .seconds(3))
            let next = await #expect(throws: FerryError.self) { try await client.get("/") }
            #expect(next?.code == .closed)
        }
    }

    @Test func oneRequestAtATime() throws {
        try run(.silent) { client, time in
            async let first = Self.outcome(of: client)
            try await time.sleep(for: .seconds(1))
            let error = await #expect(throws: FerryError.self) { try await client.get("/") }
            #expect(error?.code == .pftpBusy && error?.fate == .nothingSent)
            client.close()
            #expect(await first?.code == .closed)
        }
    }

    /// Why a request failed; nil for an answer.
    private static func outcome(of client: PFTPClient) async -> FerryError? {
        do throws(FerryError) { _ = try await client.ask(.get("/"), timeout: .seconds(3)) } catch { return error }
        return nil
    }

    /// What cannot be a folder's list is none, however it is cut.
    @Test func damagedListsAreNone() {
        let list: [UInt8] = [0x0A, 9, 0x0A, 3, 65, 66, 67, 0x10, 0x90, 0x03]
        #expect(PFTPEntry.list(in: list) == nil)
        let whole: [UInt8] = [0x0A, 8, 0x0A, 3, 65, 66, 67, 0x10, 0x90, 0x03]
        #expect(PFTPEntry.list(in: whole)?.first?.size == 400)
        for count in 1..<whole.count { #expect(PFTPEntry.list(in: Array(whole.prefix(count))) == nil, "\(count)") }
        for bytes: [UInt8] in [
            [0x0F], [0x0A, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F], [0x0A, 0], [0x0D, 1, 2, 3],
            [0x09, 1], [0x0A, 4, 0x0A, 2, 0xC3, 0x28],
        ] { #expect(PFTPEntry.list(in: bytes) == nil, "\(bytes)") }
        #expect(PFTPEntry.list(in: []) == [])
    }

    @Test func aPathThatCannotBeSaidIsRefused() {
        #expect(throws: Never.self) { try PFTPRequest.get(String(repeating: "a", count: 65_000)).bytes() }
        let error = #expect(throws: FerryError.self) {
            try PFTPRequest.get(String(repeating: "a", count: 65_536)).bytes()
        }
        #expect(error?.code == .encodingFailed)
    }

    /// A path's length takes a byte for 127 bytes, and two for 128.
    @Test func lengthsOfPathsAreVarints() throws {
        let (short, long) = (String(repeating: "a", count: 127), String(repeating: "a", count: 128))
        #expect(try PFTPRequest.get(short).bytes().prefix(6) == [131, 0, 0x08, 0, 0x12, 127])
        #expect(try PFTPRequest.put(long, [1]).bytes().prefix(7) == [133, 0, 0x08, 1, 0x12, 0x80, 1])
        #expect(try PFTPRequest.remove("/").bytes() == [5, 0, 0x08, 3, 0x12, 1, 0x2F])
        #expect(try PFTPRequest.query(13, [1]).bytes() == [13, 0x80, 1])
    }
}
