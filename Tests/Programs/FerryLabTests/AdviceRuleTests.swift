import Ferry
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

/// What decides each piece of advice, at the edge where it would be another.
@Suite("Rules of ferry advise", .tags(.program)) struct AdviceRuleTests {
    private func adviser(
        _ sizes: MessageSizes, _ peer: String = "custom", intervals: [Double] = [100], within: Double? = nil,
        attMTU: Int? = nil, dataLength: Int = 251
    ) throws -> Adviser {
        var device = try Peer(named: peer, controller: ControllerSettings(.ideal))
        device.intervals = intervals
        // A controller that sends little is soon simulated.
        device.profile.packetsPerEvent = 2
        if let attMTU { device.attMTU = attMTU }
        let base = settings {
            $0.attMTU = device.attMTU
            $0.profile = device.profile
            $0.dataLength = dataLength
        }
        return Adviser(
            sizes: sizes, peer: device, base: base, deadline: within, seconds: Effort.of(5, full: 20))
    }

    /// Writes sample messages to files, and removes them when done.
    private func withSamples(_ samples: [[UInt8]], _ body: (MessageSizes) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var paths: [String] = []
        for (number, sample) in samples.enumerated() {
            let url = folder.appending(path: "\(number)")
            try Data(sample).write(to: url)
            paths.append(url.path())
        }
        try body(try MessageSizes(samples: paths))
    }

    @Test(
        "A peer that cuts longer values gets shorter chunks",
        arguments: [("bluez", 180), ("custom", 182), ("android", 182)])
    func reserve(peer: String, chunk: Int) throws {
        let advice = try adviser(MessageSizes(distribution: "400"), peer, attMTU: 185).advise()
        #expect(advice.chunkSize == chunk)
        #expect(advice.reasons.contains { $0.contains("A chunk of \(chunk) bytes is all that") })
    }

    @Test(
        "Without data length extension the advice tells of values that shrink", arguments: [(27, true), (251, false)])
    func longValues(dataLength: Int, isTold: Bool) throws {
        let advice = try adviser(MessageSizes(distribution: "400"), dataLength: dataLength).advise()
        #expect(advice.reasons.contains { $0.contains("goes on with 20 bytes") } == isTold, "\(advice.reasons)")
    }

    @Test("Compression is advised for what it saves in chunks, and for nothing else") func compression() throws {
        // 150 bytes of text become fewer, and one chunk carries either.
        try withSamples([SampleText.bytes(count: 150, seed: 1)]) { sizes in
            let ratio = try #require(sizes.compressionRatio)
            #expect(ratio > 0.4 && ratio < 0.99)
            let advice = try adviser(sizes).advise()
            #expect(advice.compression == .none)
            #expect(advice.reasons.contains { $0.contains("still takes 1 chunks") })
        }
        try withSamples([SampleText.bytes(count: 6_000, seed: 1)]) { sizes in
            let advice = try adviser(sizes).advise()
            #expect(advice.compression == .zlib)
            #expect(advice.reasons.contains { $0.contains("chunks instead of 25") }, "\(advice.reasons)")
            // Fewer chunks cross than the plain message has.
            #expect((advice.predictions.first?.chunks ?? 99) < 15)
            #expect(advice.predictions.first?.size == 6_000)
        }
        let unknown = try adviser(MessageSizes(distribution: "6000")).advise()
        #expect(unknown.compression == .none)
        #expect(unknown.reasons.contains { $0.contains("give sample messages") })
    }

    @Test("What does not compress counts as it is") func ratios() throws {
        var generator = SeededGenerator(seed: 4)
        let noise = (0..<1_000).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        try withSamples([noise]) { #expect($0.compressionRatio == 1) }
        try withSamples([noise, [UInt8](repeating: 7, count: 1_000)]) { sizes in
            let ratio = try #require(sizes.compressionRatio)
            #expect(ratio > 0.5 && ratio < 0.52)
            #expect(sizes.quantile(0.5) == 1_000)
        }
        try withSamples([[]]) { #expect($0.compressionRatio == 1) }
    }

    @Test("A quantile is the size that so many messages do not exceed") func quantiles() throws {
        let even = try MessageSizes(distribution: "60:50,2000:50")
        #expect(even.quantile(0) == 60)
        #expect(even.quantile(0.5) == 60)
        #expect(even.quantile(0.501) == 2_000)
        #expect(even.quantile(1) == 2_000)
        let plain = try MessageSizes(distribution: "4,1,3,2")
        #expect([0.25, 0.26, 0.5, 0.75, 0.76, 1].map { plain.quantile($0) } == [1, 2, 2, 3, 4, 4])
        #expect(plain.compressionRatio == nil)
        #expect(try MessageSizes(distribution: "16777216").quantile(1) == 16 << 20)
        #expect(throws: FerryError.self) { try MessageSizes(distribution: "16777217") }
    }

    @Test("A file of sizes has one on each line") func sizesFile() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UInt64.random(in: 0 ... .max))")
            .path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try " 10 \n\n30\r\n20\n16777216".write(toFile: path, atomically: true, encoding: .utf8)
        let sizes = try MessageSizes(sizesIn: path)
        #expect(sizes.plain.map(\.size) == [10, 20, 30, 16 << 20])
        try "10\n20\n-1\n".write(toFile: path, atomically: true, encoding: .utf8)
        let error = #expect(throws: FerryError.self) { try MessageSizes(sizesIn: path) }
        #expect(error?.message.contains("Line 3 of") == true)
        for text in ["", "\n\n", "1\n16777217"] {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            #expect(throws: FerryError.self) { try MessageSizes(sizesIn: path) }
        }
    }

    @Test("Without a latency asked for the interval stays within a tenth of the quickest") func interval() throws {
        let advice = try adviser(MessageSizes(distribution: "100"), intervals: [15, 15, 100]).advise()
        #expect(advice.interval == 15)
        #expect(advice.reasons.contains { $0.contains("within a tenth of the quickest") })
        // Whoever has time gets the longest of all.
        let patient = try adviser(MessageSizes(distribution: "100"), intervals: [15, 50, 100], within: 10_000).advise()
        #expect(patient.interval == 100)
        #expect(patient.reasons.contains { $0.contains("within the 10000 ms asked for") })
    }

    @Test("A prediction is made once for each size") func predictions() throws {
        let one = try adviser(MessageSizes(distribution: "500")).advise()
        #expect(one.predictions.map(\.name) == ["typical"])
        let three = try adviser(MessageSizes(distribution: "50:90,500:9,5000:1")).advise()
        #expect(three.predictions.map(\.name) == ["typical", "large", "largest"])
        #expect(three.predictions.map(\.size) == [50, 500, 5_000])
        #expect(three.predictions.map(\.chunks) == [1, 3, 21])
    }

    @Test("A published figure backs advice only where all its conditions agree") func evidence() throws {
        let nordic = settings {
            $0.profile = ControllerSettings(.s132Long2M)
            ($0.attMTU, $0.interval, $0.phy, $0.dataLength) = (247, 50, "2M", 251)
        }
        let (figure, profile) = try #require(PublishedFigure.matching(nordic))
        #expect(figure.source.hasPrefix("Nordic") && figure.published == 1_327.5 && profile == .s132Long2M)
        let others: [(inout BenchSettings) -> Void] = [
            { $0.attMTU = 246 }, { $0.interval = 30 }, { $0.phy = "1M" }, { $0.dataLength = 27 },
            { $0.profile = ControllerSettings(.ios) }, { $0.profile.packetsPerEvent = 33 }, { $0.direction = .write },
            { $0.packetErrorRate = 0.1 },
        ]
        for (number, change) in others.enumerated() {
            var other = nordic
            change(&other)
            #expect(PublishedFigure.matching(other) == nil, "condition \(number)")
        }
        let exact = settings {
            $0.profile = ControllerSettings(.ideal)
            ($0.attMTU, $0.interval, $0.dataLength) = (23, 4_000, 27)
        }
        #expect(PublishedFigure.matching(exact)?.figure.kind == .arithmetic)
    }
}
