import Ferry
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

/// One point, quick enough for a test.
func settings(_ change: (inout BenchSettings) -> Void = { _ in }) -> BenchSettings {
    var settings = BenchSettings.usual
    change(&settings)
    return settings
}

@Suite("ferry bench", .tags(.program)) struct BenchTests {
    @Test("The same seed gives the same bytes", arguments: [DirectionChoice.notify, .write])
    func deterministic(direction: DirectionChoice) throws {
        let lossy = settings {
            $0.packetErrorRate = 0.05
            $0.centrals = 3
            $0.direction = direction
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let texts = try [1 as UInt64, 1, 2].map { seed in
            var settings = lossy
            settings.seed = seed
            return try encoder.encode(
                BenchReport(transport: "sim", results: [BenchRun.simulate(settings).result]))
        }
        #expect(texts[0] == texts[1])
        #expect(texts[0] != texts[2])
    }

    /// Bytes and values per message, as published for these framings: 400 bytes in chunks of 182.
    @Test(
        "Overhead is the framing's",
        arguments: [
            (FramingChoice.length, 402, 3), (.eom, 403, 4), (.classicEOM, 403, 21), (.mdoc, 403, 3), (.pftp, 403, 3),
            (.slip, 401, 3),
            (.cobs, 403, 3), (.lines, 401, 3), (.smp, 400, 3),
        ])
    func overhead(framing: FramingChoice, bytes: Int, values: Int) throws {
        let result = try BenchRun.simulate(settings { $0.framing = framing }).result
        #expect(result.messages > 5)
        #expect(result.chunkBytes == bytes * result.messages)
        #expect(result.chunks == values * result.messages)
    }

    /// Values of at most 182 bytes: a datagram of 400 in three packets of Gattlink's and what acknowledges them, a packet of bitchat's in
    /// fragments with 22 bytes of a packet's head and 13 of a fragment's, and Meshtastic's in one value.
    @Test(
        "Formats with messages of a form of their own arrive, in both directions",
        arguments: [(FramingChoice.gattlink, 400), (.bitchat, 400), (.meshtastic, 182), (.smp, 65_543), (.lines, 0)],
        [DirectionChoice.notify, .write])
    func forms(format: (framing: FramingChoice, size: Int), direction: DirectionChoice) throws {
        let result = try BenchRun.simulate(
            settings {
                ($0.framing, $0.messageSize, $0.direction, $0.seconds) = (format.framing, format.size, direction, 2)
            }
        ).result
        #expect(result.messages > 0 && result.chunkBytes >= result.messageBytes)
    }

    @Test(
        "A message that a format has no room for is refused before the measurement",
        arguments: [
            (FramingChoice.slip, 0), (.btp, 65_536), (.smp, 7), (.smp, 65_544), (.gattlink, 19), (.gattlink, 65_536),
            (.bitchat, 21),
            (.bitchat, 65_558), (.meshtastic, 0), (.meshtastic, 183),
        ])
    func refused(framing: FramingChoice, size: Int) throws {
        #expect(throws: FerryError.self) { try settings { ($0.framing, $0.messageSize) = (framing, size) }.validate() }
    }

    @Test("A format with messages of its own is not compressed, and needs its smallest chunk")
    func refusedSettings() throws {
        for framing in FramingChoice.allCases {
            let compressed = settings { ($0.framing, $0.compression, $0.messageSize) = (framing, .zlib, 100) }
            #expect(((try? compressed.validate()) != nil) == framing.takesAnyBytes)
        }
        let narrow = settings { ($0.framing, $0.attMTU, $0.messageSize) = (.bitchat, 66, 64) }
        #expect(throws: FerryError.self) { try narrow.validate() }
        let short = settings { ($0.framing, $0.chunkSize) = (.smp, 7) }
        #expect(throws: FerryError.self) { try short.validate() }
    }

    @Test(
        "Each packet of BTP waits for its answer, which takes two connection events",
        arguments: [DirectionChoice.notify, .write])
    func packetsOfBTP(direction: DirectionChoice) throws {
        let point = settings {
            $0.framing = .btp
            ($0.attMTU, $0.interval, $0.direction, $0.messageSize, $0.seconds) = (247, 30, direction, 4_096, 10)
        }
        let result = try BenchRun.simulate(point).result
        // 4 096 bytes are 17 packets of at most 244 with their heads of 3 and once 2 bytes; acknowledgements cost a few more.
        #expect(
            (9...10).contains(result.messages)
                && (0.9...1.1).contains(result.latency.median / (17 * 2 * point.interval)), "\(result)")
    }

    @Test(
        "What numbers and acknowledgements cost beside the length prefix",
        arguments: [(23, 0.9), (247, 0.97)], [1024, 4096, 65_536])
    func sequenced(link: (attMTU: Int, share: Double), messageSize: Int) throws {
        let isLarge = messageSize > 4_096
        // At ATT_MTU 23 a share is the same after a second, or after the first large message, to half a percent; at 247 the
        // greeting shows for longer.
        let seconds = Effort.of(link.attMTU == 23 ? (isLarge ? 3 : 1) : (isLarge ? 12 : 4), full: 12.0)
        for interval in Effort.of(isLarge ? [30] : [7.5, 30], full: [7.5, 30]) {
            let goodputs = try [FramingChoice.length, .sequenced].map { framing in
                try BenchRun.simulate(
                    settings {
                        $0.attMTU = link.attMTU
                        $0.messageSize = messageSize
                        $0.interval = interval
                        $0.framing = framing
                        $0.seconds = seconds
                    }
                ).result.goodput
            }
            #expect(
                goodputs[1] >= link.share * goodputs[0],
                "ATT_MTU \(link.attMTU), \(messageSize) bytes, \(interval) ms: \(goodputs)")
        }
    }

    @Test("Compression saves air") func compression() throws {
        let plain = try BenchRun.simulate(settings { $0.messageSize = 4_000 }).result
        let compressed = try BenchRun.simulate(
            settings {
                $0.messageSize = 4_000
                $0.compression = .zlib
            }
        ).result
        #expect(compressed.goodput > 1.5 * plain.goodput)
        // What compression saves is no overhead below nothing; its envelope is some.
        #expect((1...4).contains(compressed.overheadPerMessage - plain.overheadPerMessage))
        #expect(compressed.shareOfLimit < 1)
    }

    @Test("Channels get nearly all that the link can carry", arguments: [23, 185, 247, 498], [7.5, 30])
    func share(attMTU: Int, interval: Double) throws {
        let result = try BenchRun.simulate(
            settings {
                $0.attMTU = attMTU
                $0.interval = interval
                $0.messageSize = 2_000
            }
        ).result
        #expect(result.shareOfLimit > 0.75 && result.shareOfLimit <= 1.001, "\(result.shareOfLimit)")
        #expect(result.waiting.count > 0)
        #expect(result.waiting.lostReadySignals == 0)
        #expect(result.latency.median <= result.latency.p99 && result.latency.p99 <= result.latency.maximum)
    }

    @Test("With a full queue nothing grows, for a quarter of an hour of simulated time, or an hour") func memory()
        throws
    {
        let hours = Effort.of(0.25, full: 1)
        let slow = settings {
            $0.interval = 1_000
            $0.queueDepth = 4
            $0.profile.packetsPerEvent = 2
            $0.seconds = 3_600 * hours
        }
        let result = try BenchRun.simulate(slow).result
        #expect(result.queue.maximum <= 4)
        #expect(Double(result.waiting.count) > 1_000 * hours)
        // Two values a second, three to a message.
        #expect(abs(Double(result.messages) - 2_400 * hours) <= Effort.of(4, full: 10), "\(result.messages)")
    }

    @Test("Centrals share the air fairly") func fairness() throws {
        let result = try BenchRun.simulate(
            settings {
                $0.centrals = 4
                $0.attMTU = 247
                $0.interval = 50
                $0.messageSize = 2_000
                $0.queueDepth = 64
                $0.seconds = 3
            }
        ).result
        #expect(result.fairness.jainIndex > 0.99, "\(result.fairness.goodputs)")
        #expect(result.shareOfLimit > 0.9, "\(result.shareOfLimit)")
    }

    @Test("A transfer's timeline shows refusals, ready signals and every arrival") func timeline() throws {
        let steps = try BenchRun.simulate(settings { $0.messageSize = 4_096 }, recordsTimeline: true).steps
        #expect(steps.count { $0.kind == .delivered } == 23)
        #expect(steps.count { $0.kind == .accepted } == 23)
        #expect(steps.contains { $0.kind == .ready })
        #expect(steps.contains { $0.kind == .refused })
        #expect(steps.allSatisfy { (0...8).contains($0.depth) })
        #expect(steps.last?.depth == 0)
    }

    /// The loopback radio's own pacing shares no code with the simulator's.
    @Test("Simulated and paced by the loopback radio agree within 10 %", arguments: [23, 247], [15.0, 50])
    func agreement(attMTU: Int, interval: Double) throws {
        let point = settings {
            $0.attMTU = attMTU
            $0.interval = interval
            $0.messageSize = 4_096
            $0.queueDepth = 128
            $0.seconds = 4
        }
        let simulated = try BenchRun.simulate(point).result.goodput
        let paced = try BenchRun.simulate(point, isPaced: true).result.goodput
        #expect(abs(paced - simulated) / simulated < 0.1, "\(paced) paced, \(simulated) simulated")
    }
}
