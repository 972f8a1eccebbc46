import Ferry
import FerrySequenced

typealias SequencedSide = SequencedTrace.Side

/// A framing by the name that people type.
enum TraceFraming: String, CaseIterable {
    case length, eom, sequenced
    /// Those of devices; the last three on a serial line.
    case smp, mdoc, btp, pftp, improv, meshtastic, gattlink, bitchat, lines, slip, cobs

    /// Whether ``DeviceTrace`` follows it.
    var isOfDevices: Bool {
        switch self {
        case .length, .eom, .sequenced: false
        case .smp, .mdoc, .btp, .pftp, .improv, .meshtastic, .gattlink, .bitchat, .lines, .slip, .cobs: true
        }
    }
}

/// Says what chunks of the framings without numbers are: length prefix (as varints) and end of message.
struct StreamTrace {
    private struct Stream {
        var message = 0
        /// Bytes of the message that have passed, and, with a length prefix, how many are to come.
        var passed: UInt64 = 0
        var missing: UInt64 = 0
        var length = Varint.Decoder()
        /// Why the rest cannot be understood.
        var failure: String?
    }

    private let isLength: Bool
    private var streams = [Stream(), Stream()]

    /// A message above this is a sign that the chunks are not what they are taken for.
    private static let largest: UInt64 = 1 << 40

    init(isLength: Bool) { self.isLength = isLength }

    mutating func read(_ chunk: [UInt8], from side: SequencedSide) -> SequencedTrace.Finding {
        isLength ? readLength(chunk, side.rawValue) : readMarker(chunk, side.rawValue)
    }

    /// A new link: nothing goes on.
    mutating func restart() {
        for side in streams.indices {
            let message = streams[side].message
            streams[side] = Stream()
            streams[side].message = message
        }
    }

    private mutating func readMarker(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        var events: [SequencedTrace.Event] = []
        if streams[side].missing == 0 {
            streams[side].message += 1
            streams[side].missing = 1
            events.append(.begins(message: streams[side].message, byteCount: 0))
        }
        let message = streams[side].message
        guard chunk == Array("EOM".utf8) else {
            streams[side].passed += UInt64(chunk.count)
            let text = "\(chunk.count) bytes of message \(message)"
            return .init(text: text, isUnderstood: true, events: events + [.carries(message: message)])
        }
        let text = "the marker: message \(message) of \(streams[side].passed) bytes ends"
        streams[side].missing = 0
        streams[side].passed = 0
        return .init(text: text, isUnderstood: true, events: events + [.ends(message: message)])
    }

    private mutating func readLength(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        if let failure = streams[side].failure {
            return .init(text: "not understood (\(failure))", isUnderstood: false, events: [])
        }
        var (parts, events, offset): ([String], [SequencedTrace.Event], Int) = ([], [], 0)
        func carry() {
            let count = min(UInt64(chunk.count - offset), streams[side].missing)
            let message = streams[side].message
            offset += Int(count)
            streams[side].missing -= count
            if count > 0 { events.append(.carries(message: message)) }
            parts.append("\(count) bytes of message \(message)\(streams[side].missing == 0 ? ", which ends" : "")")
            if streams[side].missing == 0 { events.append(.ends(message: message)) }
        }
        if streams[side].missing > 0 { carry() }
        while offset < chunk.count {
            do {
                offset += 1
                guard let length = try streams[side].length.push(chunk[offset - 1]) else { continue }
                guard length <= Self.largest else { return fail("a message of \(length) bytes", parts, events, side) }
                streams[side].length = Varint.Decoder()
                streams[side].message += 1
                streams[side].missing = length
                events.append(.begins(message: streams[side].message, byteCount: length))
                parts.append("message \(streams[side].message) of \(length) bytes begins")
                carry()
            } catch {
                return fail("a length that is \(error)", parts, events, side)
            }
        }
        if parts.isEmpty { parts.append("part of a length") }
        return .init(text: parts.joined(separator: "; "), isUnderstood: true, events: events)
    }

    private mutating func fail(
        _ what: String, _ parts: [String], _ events: [SequencedTrace.Event], _ side: Int
    ) -> SequencedTrace.Finding {
        let reason = "\(what) stands where a message begins; bytes were lost, or this is another framing"
        streams[side].failure = "out of step since then"
        let text = (parts + ["not understood (\(reason))"]).joined(separator: "; ")
        return .init(text: text, isUnderstood: false, events: events)
    }
}
