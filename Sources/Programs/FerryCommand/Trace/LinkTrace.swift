import Ferry
import FerrySequenced

/// The life of the messages of one peer's links, line by line: each chunk with what it is, each wait for ready, each silence,
/// and for each message, once it is over, how long it took and what it met.
struct LinkTrace {
    private enum Decoder {
        case sequenced(SequencedTrace)
        case stream(StreamTrace)
        case device(DeviceTrace)

        init(_ framing: TraceFraming) {
            switch framing {
            case .sequenced: self = .sequenced(SequencedTrace())
            case .length, .eom: self = .stream(StreamTrace(isLength: framing == .length))
            case .smp, .mdoc, .btp, .pftp, .improv, .meshtastic, .gattlink, .bitchat, .lines, .slip, .cobs:
                self = .device(DeviceTrace(framing))
            }
        }

        /// Gives up the open messages of an earlier link. A sequenced session goes on where it was.
        ///
        /// - Returns: whether anything may have been given up.
        mutating func restart() -> Bool {
            switch self {
            case .sequenced: return false
            case .stream(var trace):
                trace.restart()
                self = .stream(trace)
            case .device(var trace):
                trace.restart()
                self = .device(trace)
            }
            return true
        }
    }

    private struct Key: Hashable {
        var side: SequencedSide
        var message: Int
    }

    private struct Life {
        var byteCount: UInt64
        var stage: Stage
        var chunks = 0
        var repeats = 0
        var waits = 0
        var waited = 0.0
        /// Whether the capture lacks something that may have been of this message.
        var hasGap = false

        /// Times are nil where the capture has none, and from before its clock was set.
        enum Stage {
            case arriving(since: Double?)
            case whole(took: Double?, ended: Double?)
        }
    }

    private var decoder: Decoder
    private let isAcknowledged: Bool
    private var lives: [Key: Life] = [:]
    private var sizes = [SizeTrace(), SizeTrace()]
    private var fullSince: Double?
    private var last: Double?
    private(set) var notUnderstood = 0
    private(set) var chunks = 0
    private(set) var repeated = 0
    private(set) var early = 0
    private(set) var finished = 0
    private var gaps = 0

    /// Silences from here on are worth a line, in milliseconds.
    static let silence = 1000.0
    /// Messages in hand; the oldest of more are forgotten.
    private static let maximumLives = 4096

    init(_ framing: TraceFraming) {
        isAcknowledged = framing == .sequenced
        decoder = Decoder(framing)
    }

    /// A link has begun. A sequenced session goes on where it was.
    mutating func connected(at time: Double?, _ text: String = "connected") -> [String] {
        if decoder.restart() { lives = [:] }
        fullSince = nil
        for side in sizes.indices { sizes[side].begin() }
        return line(time, "- \(text)")
    }

    mutating func ended(at time: Double?, _ text: String) -> [String] {
        fullSince = nil
        return line(time, "- \(text)")
    }

    /// The capture lacks something here that one of the sides, or either, has sent.
    mutating func gap(at time: Double?, from side: SequencedSide?, _ text: String) -> [String] {
        gaps += 1
        for key in lives.keys where side == nil || key.side == side { lives[key]?.hasGap = true }
        return line(time, "! \(text)")
    }

    /// The clock was set: how long it took what began before cannot be told.
    mutating func clockWasSet() {
        (last, fullSince) = (nil, nil)
        for side in sizes.indices { sizes[side].clockWasSet() }
        for key in lives.keys {
            switch lives[key]?.stage {
            case .arriving: lives[key]?.stage = .arriving(since: nil)
            case .whole(let took, _): lives[key]?.stage = .whole(took: took, ended: nil)
            case nil: break
            }
        }
    }

    mutating func full(at time: Double?) -> [String] {
        fullSince = time
        for key in lives.keys where key.side == .first { lives[key]?.waits += 1 }
        return line(time, "- the link is full: waits for ready")
    }

    mutating func ready(at time: Double?) -> [String] {
        var text = "- ready"
        if let time, let since = fullSince {
            text += " after \(Self.duration(time - since))"
            for key in lives.keys where key.side == .first { lives[key]?.waited += time - since }
        }
        fullSince = nil
        return line(time, text)
    }

    /// A chunk that one side has sent.
    mutating func chunk(_ bytes: [UInt8], from side: SequencedSide, at time: Double?) -> [String] {
        let finding: SequencedTrace.Finding
        switch decoder {
        case .sequenced(var trace):
            finding = trace.read(bytes.span.bytes, from: side)
            decoder = .sequenced(trace)
        case .stream(var trace):
            finding = trace.read(bytes, from: side)
            decoder = .stream(trace)
        case .device(var trace):
            finding = trace.read(bytes, from: side)
            decoder = .device(trace)
        }
        chunks += 1
        if !finding.isUnderstood { notUnderstood += 1 }
        let arrow = side == .first ? ">" : "<"
        var lines: [String] = []
        if let change = sizes[side.rawValue].chunk(bytes.count, at: time) {
            lines += line(time, "- \(arrow) \(change)")
        }
        lines += line(time, "\(arrow) \(bytes.count) bytes: \(finding.text)")
        var counted: Set<Int> = []
        for event in finding.events { lines += note(event, side, time, &counted) }
        return lines
    }

    private mutating func note(
        _ event: SequencedTrace.Event, _ side: SequencedSide, _ time: Double?, _ counted: inout Set<Int>
    ) -> [String] {
        switch event {
        case .begins(let message, let byteCount):
            if lives.count >= Self.maximumLives, let oldest = lives.keys.min(by: { $0.message < $1.message }) {
                lives[oldest] = nil
            }
            lives[Key(side: side, message: message)] = Life(
                byteCount: byteCount, stage: .arriving(since: time))
        case .carries(let message):
            counted.insert(message)
            lives[Key(side: side, message: message)]?.chunks += 1
        case .ends(let message):
            let key = Key(side: side, message: message)
            // The marker is a separate chunk.
            if case .stream = decoder, !counted.contains(message) { lives[key]?.chunks += 1 }
            if case .arriving(let began)? = lives[key]?.stage {
                let took = time.flatMap { time in began.map { time - $0 } }
                lives[key]?.stage = .whole(took: took, ended: time)
            }
            if !isAcknowledged { return finish(key, time, "") }
        case .acknowledges(let message):
            let other: SequencedSide = side == .first ? .second : .first
            let key = Key(side: other, message: message)
            guard let time, case .whole(_, let ended?)? = lives[key]?.stage else {
                return finish(key, time, ", acknowledged")
            }
            return finish(key, time, ", acknowledged after \(Self.duration(time - ended))")
        case .cancels(let message): return finish(Key(side: side, message: message), time, ", cancelled")
        case .repeats:
            repeated += 1
            for key in lives.keys where key.side == side { lives[key]?.repeats += 1 }
        case .gap: early += 1
        }
        return []
    }

    private mutating func finish(_ key: Key, _ time: Double?, _ fate: String) -> [String] {
        guard let life = lives.removeValue(forKey: key) else { return [] }
        finished += 1
        return line(time, "= message \(key.side == .first ? ">" : "<")\(key.message)\(Self.describe(life))\(fate)")
    }

    private static func describe(_ life: Life) -> String {
        var text = life.byteCount > 0 ? " of \(life.byteCount) bytes" : ""
        text += ": \(life.chunks) \(life.chunks == 1 ? "chunk" : "chunks")"
        if case .whole(let took?, _) = life.stage { text += " in \(duration(took))" }
        if life.waits > 0 {
            text += ", \(life.waits) \(life.waits == 1 ? "wait" : "waits") for ready of \(duration(life.waited)) in all"
        }
        if life.hasGap { text += ", perhaps not all of them captured" }
        if life.repeats > 0 { text += ", \(life.repeats) \(life.repeats == 1 ? "chunk" : "chunks") again meanwhile" }
        return text
    }

    /// The messages open when the capture ends, and the sum.
    mutating func finish() -> [String] {
        var lines: [String] = []
        let open = lives.sorted { ($0.key.side.rawValue, $0.key.message) < ($1.key.side.rawValue, $1.key.message) }
        for (key, life) in open {
            let name = "\(key.side == .first ? ">" : "<")\(key.message)"
            let missing = if case .whole = life.stage { "acknowledged" } else { "whole" }
            lines.append("= message \(name)\(Self.describe(life)), not \(missing) when the capture ends")
        }
        let counts: [(Int, String)] = [
            (early, "before their turn"), (repeated, "again"), (notUnderstood, "not understood"),
            (gaps, gaps == 1 ? "gap in the capture" : "gaps in the capture"),
        ]
        let notes = counts.filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
        lines.append(
            "\(finished) \(finished == 1 ? "message" : "messages") to the end, \(open.count) open; "
                + "\(chunks) \(chunks == 1 ? "chunk" : "chunks")\(notes)")
        return lines
    }

    private mutating func line(_ time: Double?, _ text: String) -> [String] {
        guard let time else { return [text] }
        defer { last = time }
        let stamp = Self.padded(Self.duration(time))
        guard let last, time - last >= Self.silence else { return ["\(stamp)  \(text)"] }
        return ["\(Self.padded(""))  - nothing for \(Self.duration(time - last))", "\(stamp)  \(text)"]
    }

    private static func padded(_ text: String) -> String {
        String(repeating: " ", count: max(0, 12 - text.count)) + text
    }

    /// Microseconds are what captures tell.
    static func duration(_ milliseconds: Double) -> String {
        let thousandths = Int64((max(0, min(milliseconds, 1e15)) * 1000).rounded())
        let fraction = String(thousandths % 1000)
        return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - fraction.count))\(fraction) ms"
    }
}
