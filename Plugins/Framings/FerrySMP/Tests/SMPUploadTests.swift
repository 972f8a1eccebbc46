import Ferry
import FerrySMP
import FerrySimulator
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Uploads: windows, buffers, and servers that go back.
@Suite(.tags(.channel, .recovery), .timeLimit(.minutes(5))) struct SMPUploadTests {
    /// A server: its buffers, and what it does wrong.
    private static func server(
        _ size: Int = 2475, _ count: Int = 4, tells: Bool = true, dropped: Set<Int> = [], setbacks: [Int: Int] = [:]
    ) -> SMPServer.Configuration {
        var configuration = SMPServer.Configuration()
        configuration.bufferSize = size
        configuration.bufferCount = count
        configuration.tellsParameters = tells
        configuration.dropped = dropped
        configuration.setbacks = setbacks
        return configuration
    }

    /// The first request for 300 bytes in one buffer is byte by byte that of smpclient 7.3.0.
    @Test func theFirstRequestIsThatOfTheReference() throws {
        let image = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        let lines = try Managed.run(Self.server(384)) { rig async throws in
            try await rig.client.uploadImage(image)
            #expect(rig.server.now.uploadedImage == image)
            return rig.server.journal.all
        }
        let first = try #require(lines.first { $0.hasPrefix("> 0A 00 01 77 00 01 01 01 ") }, "\(lines)")
        let beginning =
            "> 0A 00 01 77 00 01 01 01 A6 63 6C 65 6E 19 01 2C 63 6F 66 66 00 63 73 68 61 58 20 77 28 AE 2F 2C 36 E2 AA AF BE 79 CA"
            + " 14 C8 7A E2 F8 9E 7C 88 C4 39 0E CB BF 82 DC E8 87 06 95 8D 64 64 61 74 61 59 01 2C "
        #expect(first == beginning + hex(image) + " 65 69 6D 61 67 65 00 67 75 70 67 72 61 64 65 F4")
    }

    /// Every size arrives, whatever the buffers, the window and the ATT_MTU; no request is larger than a buffer.
    @Test(arguments: [(20, 384, true), (182, 2475, true), (244, 244, false), (512, 65_535, true), (182, 182, false)])
    func arrives(value: Int, buffer: Int, tells: Bool) throws {
        for (size, window) in [(0, 1), (1, 3), (255, 3), (10_000, 1), (10_001, 2), (70_003, 3)] {
            let image = pattern(size)
            try Managed.run(Self.server(buffer, tells: tells), attMTU: value + 3) { rig async throws in
                let told = Mutex<[Int]>([])
                try await rig.client.uploadImage(image, window: window) { step in
                    told.withLock { $0.append(step.bytes) }
                }
                #expect(rig.server.now.uploadedImage == image)
                #expect(rig.server.now.largestRequest <= buffer)
                let steps = told.withLock { $0 }
                #expect(steps == steps.sorted() && steps.last == size)
            }
        }
    }

    /// A server that goes back, to the beginning too, and requests that are lost: the image is whole in the end.
    @Test(arguments: 1...3)
    func serversGoBack(window: Int) throws {
        let image = pattern(60_000)
        for setbacks in [[5: 0], [5: 2000], [4: 0, 9: 100, 15: 4000], [6: 8000, 7: 0]] {
            try Managed.run(Self.server(setbacks: setbacks)) { rig async throws in
                try await rig.client.uploadImage(image, window: window)
                #expect(rig.server.now.uploadedImage == image, "\(setbacks)")
            }
        }
        for dropped in [[1], [2], [3], [3, 4, 5], [10, 20], [26]] as [Set<Int>] {
            try Managed.run(Self.server(dropped: dropped)) { rig async throws in
                try await rig.client.uploadImage(image, window: window)
                #expect(rig.server.now.uploadedImage == image, "\(dropped)")
            }
        }
    }

    /// An upload that was broken off goes on where it stopped.
    @Test func goesOnWhereItStopped() throws {
        let image = pattern(50_000)
        try Managed.run(workPerByte: .microseconds(1)) { rig async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let error = await #expect(throws: FerryError.self) {
                        try await rig.client.uploadImage(image, window: 1)
                    }
                    #expect(error?.code == .cancelled)
                }
                while rig.server.now.requestCount < 8 { try await rig.time.sleep(for: .milliseconds(1)) }
                group.cancelAll()
                try await group.waitForAll()
            }
            let before = rig.server.now.requestCount
            try await rig.client.uploadImage(image)
            #expect(rig.server.now.uploadedImage == image)
            #expect(rig.server.now.requestCount - before < 20)
        }
    }

    /// A server that never gets on ends in an error: smpclient 7.3.0 asks for ever.
    @Test func noProgressIsAnError() throws {
        let image = pattern(60_000)
        let setbacks = Dictionary(uniqueKeysWithValues: (3..<100).map { ($0, 0) })
        try Managed.run(Self.server(setbacks: setbacks)) { rig async throws in
            let error = await #expect(throws: FerryError.self) { try await rig.client.uploadImage(image) }
            #expect(error?.code == .smpNoProgress, "\(error?.description ?? "")")
        }
    }

    /// Without reassembly a request must fit one chunk, and in 20 bytes there is no room for data.
    @Test func chunksTooSmallForDataAreAnError() throws {
        try Managed.run(Self.server(tells: false), attMTU: 23) { rig async throws in
            let error = await #expect(throws: FerryError.self) { try await rig.client.uploadImage(pattern(100)) }
            #expect(error?.code == .chunkSizeTooSmall && error?.fate == .nothingSent)
            #expect(rig.server.now.requestCount == 1)
        }
    }

    /// What the server refuses in the middle ends the upload.
    @Test func refusalsEndIt() throws {
        var configuration = Self.server()
        configuration.maximumSize = 10_000
        try Managed.run(configuration) { rig async throws in
            let error = await #expect(throws: FerryError.self) { try await rig.client.uploadImage(pattern(10_001)) }
            #expect(error?.code == .smpRefused && error?.message.contains("too large for its slot") == true)
        }
    }

    /// Rates beside published ones: 2 to 4 kB/s without a window, 16 to 20 with a window of 3, 36 with reassembly. The server erases and
    /// writes its flash as an nRF52840 does at most: 85 ms for a page of 4096 bytes, 41 us for a word of 4.
    @Test(arguments: [
        (name: "plain", buffer: 244, tells: false, window: 1, interval: 30.0),
        (name: "window 3", buffer: 244, tells: false, window: 3, interval: 30.0),
        (name: "reassembly", buffer: 2475, tells: true, window: 1, interval: 30.0),
        (name: "reassembly, window 3", buffer: 2475, tells: true, window: 3, interval: 30.0),
        (name: "plain", buffer: 244, tells: false, window: 1, interval: 15.0),
        (name: "window 3", buffer: 244, tells: false, window: 3, interval: 15.0),
        (name: "reassembly", buffer: 2475, tells: true, window: 1, interval: 15.0),
        (name: "reassembly, window 3", buffer: 2475, tells: true, window: 3, interval: 15.0),
    ])
    func rates(_ row: (name: String, buffer: Int, tells: Bool, window: Int, interval: Double)) throws {
        let image = pattern(Effort.of(100_000, full: 1_000_000))
        var link = LinkParameters()
        link.connectionInterval = .microseconds(Int(row.interval * 1000))
        var configuration = Self.server(row.buffer, tells: row.tells)
        // A server that does not tell its buffers has them all the same: the window is the caller's then.
        configuration.bufferCount = 4
        let seconds = try Managed.run(configuration, link: link, workPerByte: .nanoseconds(31_000)) {
            rig async throws in
            let start = rig.time.now
            try await rig.client.uploadImage(image, window: row.window)
            #expect(rig.server.now.uploadedImage == image)
            return (rig.time.now - start).seconds
        }
        let rate = Double(image.count) / seconds / 1000
        print("SMP upload, \(row.name), \(row.interval) ms: \((rate * 10).rounded() / 10) kB/s")
        #expect(rate > 1)
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
