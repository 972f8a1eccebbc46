import Ferry
import FerrySimulator

/// Chooses by simulating the choices, and says why.
package struct Adviser {
    let sizes: MessageSizes
    let peer: Peer
    /// Settings that all candidates share.
    let base: BenchSettings
    /// The longest latency that most large messages may take, in ms; nil for as short as can be.
    let deadline: Double?

    /// Simulated seconds per candidate.
    package var seconds: Double
    /// Candidates within this much of the best count as equal; then the one that is kinder to batteries is taken.
    private static let tolerance = 0.1

    package init(sizes: MessageSizes, peer: Peer, base: BenchSettings, deadline: Double?, seconds: Double = 20) {
        self.sizes = sizes
        self.peer = peer
        self.base = base
        self.deadline = deadline
        self.seconds = seconds
    }

    package func advise() throws -> Advice {
        let typical = sizes.quantile(0.5)
        let large = sizes.quantile(0.95)
        // A latency that is asked for is for all messages.
        let judged = deadline == nil ? large : sizes.quantile(1)
        var chosen = base
        chosen.interval = try peer.intervals.first.orThrow()
        chosen.messageSize = large
        var choice = try chooseChunkAndInterval(chosen, large, judged)
        // The best chunk depends on the interval and the interval on the chunk. Each further round compares chunks at
        // the interval of the round before; the count bounds a pair that alternates.
        for _ in 0..<2 where choice.interval != chosen.interval {
            chosen.interval = choice.interval
            choice = try chooseChunkAndInterval(chosen, large, judged)
        }
        let (chunk, interval, factor) = (choice.chunk, choice.interval, choice.factor)
        chosen.chunkSize = chunk
        chosen.interval = interval
        let (framing, framingReason) = try chooseFraming(chosen, sent(typical, factor))
        chosen.framing = framing
        chosen.compression = choice.compression
        let evidence = try Evidence(chosen.profile, isCoded: try chosen.linkParameters().phy.isCoded)
        var predictions: [Advice.Prediction] = []
        for (name, size) in [("typical", typical), ("large", large), ("largest", sizes.quantile(1))]
        where !predictions.contains(where: { $0.size == size }) {
            predictions.append(try predict(name, size, sent(size, factor), chosen, evidence))
        }
        return Advice(
            peer: peer.name, remark: peer.remark, controller: peer.profile.name, attMTU: chosen.attMTU, phy: chosen.phy,
            chunkSize: chunk, framing: framing, compression: chosen.compression, interval: interval,
            isWithin: deadline == nil ? nil : choice.isWithin,
            reasons: [choice.chunkReason] + adaptation(chosen)
                + [framingReason, choice.compressionReason, choice.intervalReason],
            predictions: predictions, check: try check(chosen), evidence: evidence)
    }

    /// The link and the channel that are advised, with messages one after the other.
    package func settings(of advice: Advice) -> BenchSettings {
        var settings = base
        settings.chunkSize = advice.chunkSize
        settings.framing = advice.framing
        settings.interval = advice.interval
        return settings
    }

    /// What a link does where the peer cannot take the chunk, which peers without data length extension are known for.
    private func adaptation(_ settings: BenchSettings) -> [String] {
        guard settings.dataLength < 251, let chunk = settings.chunkSize, chunk > 20 else { return [] }
        return [
            "Some devices with data length \(settings.dataLength) stall or lose the connection on values above 20 bytes. Ferry "
                + "then goes on with 20 bytes, tries longer ones again later, and remembers the peer; ferry trace shows it."
        ]
    }

    /// What depends on each other: chunk, compression and interval.
    private struct Choice {
        var chunk: Int
        var chunkReason: String
        var compression: CompressionChoice
        var compressionReason: String
        /// Sent size over message size.
        var factor: Double
        var interval: Double
        let isWithin: Bool
        var intervalReason: String
    }

    /// - Parameters:
    ///   - settings: with the interval at which chunks are compared.
    ///   - large: the size of a large message, in bytes.
    ///   - judged: the size of the messages that the latency is for, in bytes.
    private func chooseChunkAndInterval(_ settings: BenchSettings, _ large: Int, _ judged: Int) throws -> Choice {
        let (chunk, chunkReason) = try chooseChunk(settings)
        let (compression, compressionReason) = chooseCompression(chunk, large)
        let factor = compression == .zlib ? sizes.compressionRatio ?? 1 : 1
        var candidate = settings
        candidate.chunkSize = chunk
        let (interval, isWithin, intervalReason) = try chooseInterval(candidate, judged, sent(judged, factor))
        return Choice(
            chunk: chunk, chunkReason: chunkReason, compression: compression, compressionReason: compressionReason,
            factor: factor, interval: interval, isWithin: isWithin, intervalReason: intervalReason)
    }

    private func sent(_ size: Int, _ factor: Double) -> Int { factor < 1 ? Int(Double(size) * factor) + 4 : size }

    // MARK: The choices

    /// All that a value holds, or less where that spills a few bytes into one more packet.
    private func chooseChunk(_ settings: BenchSettings) throws -> (Int, String) {
        let most = min(settings.attMTU - peer.reserve, 512)
        // Lengths that fill link-layer packets to the last byte: 3 bytes of ATT and 4 of L2CAP go with each value.
        let filling = (1...20).map { $0 * settings.dataLength - 7 }.filter { $0 > 0 && $0 < most }.suffix(2)
        var best: (chunk: Int, goodput: Double)?
        var whole = 0.0
        let size = max(settings.messageSize, 4_096)
        for chunk in [most] + filling.reversed() {
            var candidate = settings
            candidate.chunkSize = chunk
            candidate.messageSize = size
            let goodput = try BenchRun.simulate(candidate).result.goodput
            if chunk == most { whole = goodput }
            if goodput > (best?.goodput ?? 0) * 1.01 { best = (chunk, goodput) }
        }
        guard let best, best.chunk != most else {
            return (most, "A chunk of \(most) bytes is all that ATT_MTU \(settings.attMTU) leaves for a value.")
        }
        let loss = number((1 - whole / best.goodput) * 100, 0)
        return (
            best.chunk,
            "A chunk of \(best.chunk) bytes fills link-layer packets of \(settings.dataLength) bytes exactly and gives "
                + "\(number(best.goodput, 1)) kbit/s; \(most), the most that fits ATT_MTU \(settings.attMTU), spills into "
                + "one more packet and gives \(number(whole, 1)) kbit/s, which is \(loss) % slower (messages of "
                + "\(size) bytes at \(short(settings.interval)) ms)."
        )
    }

    /// - Parameters:
    ///   - settings: with the interval and chunk that are recommended.
    ///   - size: what crosses of a typical message, in bytes.
    private func chooseFraming(_ settings: BenchSettings, _ size: Int) throws -> (FramingChoice, String) {
        func latency(_ framing: FramingChoice) throws -> Double {
            var candidate = settings
            candidate.framing = framing
            return try spaced(size, candidate).latency.median
        }
        let (length, marker) = (try latency(.length), try latency(.eom))
        let reason =
            "Length-prefix framing: half of the typical messages take at most \(number(length, 1)) ms at an interval of "
            + "\(short(settings.interval)) ms, against \(number(marker, 1)) ms with an end-of-message marker, which "
            + "takes one more value; choose the marker only for peers that expect it."
        return (.length, reason)
    }

    private func chooseCompression(_ chunk: Int, _ large: Int) -> (CompressionChoice, String) {
        guard let ratio = sizes.compressionRatio else {
            return (
                .none,
                "No compression: what it gains depends on the content; give sample messages (--sample) to find out."
            )
        }
        let before = (large + chunk) / chunk
        let after = (sent(large, ratio) + chunk) / chunk
        let percent = number(ratio * 100, 0)
        guard after < before else {
            return (
                .none,
                "No compression: zlib leaves \(percent) % of the samples, and a large message still takes \(before) chunks."
            )
        }
        return (
            .zlib,
            "Compression with zlib: it leaves \(percent) % of the samples, and a large message takes \(after) chunks "
                + "instead of \(before)."
        )
    }

    /// - Parameters:
    ///   - judged: the size of the messages that the latency is for.
    ///   - size: what crosses of them.
    private func chooseInterval(_ settings: BenchSettings, _ judged: Int, _ size: Int) throws -> (Double, Bool, String)
    {
        var outcomes: [(interval: Double, latency: Double)] = []
        for interval in peer.intervals {
            var candidate = settings
            candidate.interval = interval
            outcomes.append((interval, try spaced(size, candidate).latency.p99))
        }
        let best = try outcomes.min { $0.latency < $1.latency }.orThrow()
        let limit = deadline ?? best.latency * (1 + Self.tolerance)
        let fitting = outcomes.filter { $0.latency <= limit }.max { $0.interval < $1.interval }
        let list = outcomes.map { "\(short($0.interval)) ms: \(number($0.latency, 1))" }.joined(separator: ", ")
        let table = "99th percentile for a message of \(judged) bytes in ms at each interval: \(list)."
        guard let fitting else {
            return (
                best.interval, false,
                "An interval of \(short(best.interval)) ms is the quickest, and still misses the \(short(limit)) ms asked "
                    + "for. \(table)"
            )
        }
        let why = deadline == nil ? "within a tenth of the quickest" : "within the \(short(limit)) ms asked for"
        return (
            fitting.interval, true,
            "An interval of \(short(fitting.interval)) ms is the longest, and so the kindest to batteries, that stays "
                + "\(why). \(table)"
        )
    }

    // MARK: Predicting

    private func spaced(_ size: Int, _ settings: BenchSettings) throws -> BenchResult {
        var candidate = settings
        candidate.messageSize = size
        candidate.pace = .spaced
        candidate.compression = .none
        candidate.seconds = seconds
        return try BenchRun.simulate(candidate).result
    }

    private func predict(
        _ name: String, _ size: Int, _ sent: Int, _ settings: BenchSettings, _ evidence: Evidence
    ) throws -> Advice.Prediction {
        let (bound, chunks) = try outcome(size, sent, settings)
        let bounds = try [true, false].map { isLowest in
            var other = settings
            other.profile = evidence.bound(settings.profile, interval: settings.interval, isLowest: isLowest)
            return other.profile == settings.profile ? bound : try outcome(size, sent, other).bound
        }
        return Advice.Prediction(
            name: name, size: size, chunks: chunks, median: bound.median, p99: bound.p99, goodput: bound.goodput,
            slow: bounds[0], quick: bounds[1])
    }

    /// Latency and throughput of messages, and the chunks of each.
    private func outcome(_ size: Int, _ sent: Int, _ settings: BenchSettings) throws -> (
        bound: Advice.Prediction.Bound, chunks: Int
    ) {
        let single = try spaced(sent, settings)
        var stream = settings
        stream.messageSize = sent
        stream.compression = .none
        stream.seconds = seconds
        let saturated = try BenchRun.simulate(stream).result
        let bound = Advice.Prediction.Bound(
            median: single.latency.median, p99: single.latency.p99,
            goodput: sent > 0 ? saturated.goodput * Double(size) / Double(sent) : 0)
        return (bound, single.messages > 0 ? single.chunks / single.messages : 0)
    }

    private func check(_ settings: BenchSettings) throws -> Advice.Check? {
        guard let (figure, profile) = PublishedFigure.matching(settings) else { return nil }
        // A built-in profile that was fitted to this figure shows nothing, even where a device's fit is judged by it.
        let kind = profile.source.contains("fitted") ? .fitted : figure.kind
        return Advice.Check(
            source: figure.source, kind: kind, conditions: figure.conditions, published: figure.published,
            simulated: try figure.simulated(profile))
    }
}

extension Optional {
    fileprivate func orThrow() throws(FerryError) -> Wrapped {
        guard let self else {
            throw FerryError(.invalidConfiguration, "There is no connection interval to choose from.")
        }
        return self
    }
}
