import FerrySequenced

/// Reads a capture or log piece by piece, and answers with lines for people.
struct TraceReader {
    /// What cannot be read, for people.
    struct Problem: Error { let description: String }

    private enum Input {
        /// So little has come that it may be anything.
        case unknown([UInt8])
        case packets(PacketFile)
        /// Text, with the bytes of a line that goes on.
        case text(ChunkLogLines, [UInt8])
    }

    private struct Link: Hashable, Comparable {
        var name: String
        /// The format of a device by which its values were recognized; `nil` for the framing that was named, or Ferry's.
        var format: TraceFraming?

        static func < (one: Link, other: Link) -> Bool {
            (one.name, one.format?.rawValue ?? "") < (other.name, other.format?.rawValue ?? "")
        }
    }

    private struct Carrier: Hashable {
        var connection: AttributeValues.Connection
        var handle: Int
        let isReceived: Bool
    }

    private var input = Input.unknown([])
    private let framing: TraceFraming?
    private let handles: Set<Int>
    private var saidFraming: TraceFraming?

    private var traces: [Link: LinkTrace] = [:]
    private var shown: Link?
    /// The side of a log that is shown, where both are in it.
    private var role: String?

    private var values: AttributeValues
    private var origin: Double?
    /// When the last event was, in milliseconds.
    private var last: Double?
    private var gaps = TraceGaps()
    private var peers: [AttributeValues.Connection: String] = [:]
    /// Values that carry chunks, and the link whose chunks they are, as a hello, a UUID, their content or the command line has told.
    private var carriers: [Carrier: Link] = [:]
    /// The links that have begun on each connection.
    private var links: [AttributeValues.Connection: Set<Link>] = [:]
    /// The characteristics that each connection has declared.
    private var declared: [AttributeValues.Connection: [Int: DeclaredValue]] = [:]
    /// How many values crossed that are taken for none, by handle; at most 64 are counted.
    private var others: [Int: Int] = [:]

    /// Longest line; a chunk has at most 65 535 bytes, three characters each.
    private static let maximumLine = 256 << 10

    init(framing: TraceFraming?, handles: Set<Int>) {
        self.framing = framing
        self.handles = handles
        values = AttributeValues(handles: handles)
    }

    /// Takes the next bytes of the file.
    mutating func feed(_ bytes: [UInt8]) throws(Problem) -> [String] { try readable { try $0.read(bytes) } }

    /// At the end of the file: the open messages, and the sum.
    mutating func finish() throws(Problem) -> [String] {
        var answer = try readable { try $0.readEnd() }
        for link in traces.keys.sorted() {
            if traces.count > 1 { answer += heading(link) }
            answer += traces[link]?.finish() ?? []
        }
        return answer
    }

    /// Reports each unreadable part as a ``Problem``.
    private mutating func readable(_ body: (inout Self) throws -> [String]) throws(Problem) -> [String] {
        do { return try body(&self) } catch let error as Problem {
            throw error
        } catch let error as PacketFile.Malformed {
            throw Problem(description: error.description)
        } catch let error as ChunkLogLines.Malformed {
            throw Problem(description: error.description)
        } catch {
            throw Problem(description: "\(error)")
        }
    }

    private mutating func read(_ bytes: [UInt8]) throws -> [String] {
        switch input {
        case .unknown(let head):
            let head = head + bytes
            // Text may come slowly, and shows itself in its first line.
            guard head.count >= PacketFile.headCount || head.contains(UInt8(ascii: "\n")) else {
                input = .unknown(head)
                return []
            }
            return try begin(head)
        case .packets(var file):
            let packets = try file.feed(bytes)
            input = .packets(file)
            return packets.flatMap { take($0) }
        case .text(var lines, let rest):
            let (answer, left) = try take(rest + bytes, &lines)
            input = .text(lines, left)
            return answer
        }
    }

    private mutating func readEnd() throws -> [String] {
        var answer: [String] = []
        if case .unknown(let head) = input, !head.isEmpty { answer += try begin(head) }
        switch input {
        case .unknown: break
        case .packets(let file):
            try file.finish()
            answer += values.finish().flatMap { take($0, at: last) }
        case .text(var lines, let rest):
            if !rest.isEmpty, let line = try lines.read(String(decoding: rest, as: UTF8.self)) { answer += take(line) }
            try lines.finish()
        }
        return answer
    }

    private mutating func begin(_ head: [UInt8]) throws -> [String] {
        if let file = try PacketFile.recognize(head) {
            input = .packets(file)
            return try read([])
        }
        input = .text(ChunkLogLines(), [])
        return try read(head)
    }

    /// Why the command fails, though the file could be read.
    var complaint: String? {
        let sentences = [misunderstood, gaps.sentence, absence].compactMap { $0 }
        return sentences.isEmpty ? nil : sentences.joined(separator: " ")
    }

    private var misunderstood: String? {
        switch traces.values.reduce(0, { $0 + $1.notUnderstood }) {
        case 0: nil
        case 1: "1 chunk was not understood."
        case let count: "\(count) chunks were not understood."
        }
    }

    /// Why there is nothing to show.
    private var absence: String? {
        guard traces.values.allSatisfy({ $0.chunks == 0 }) else { return nil }
        guard case .packets = input else { return "There is no chunk in it." }
        guard !others.isEmpty else { return "No value crosses in it." }
        let list = others.sorted { $0.key < $1.key }
            .map { "0x\(String($0.key, radix: 16)) (\($0.value))" }.joined(separator: ", ")
        return
            "No link of the sequenced framing or of a device's format begins in it. Values of these handles cross: \(list). "
            + "Name the one that carries chunks with --handle, and its framing with --framing."
    }

    // MARK: Text

    private mutating func take(_ bytes: [UInt8], _ lines: inout ChunkLogLines) throws -> ([String], [UInt8]) {
        var (answer, start): ([String], Int) = ([], 0)
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            if let line = try lines.read(String(decoding: bytes[start..<end], as: UTF8.self)) { answer += take(line) }
            start = end + 1
        }
        guard bytes.count - start <= Self.maximumLine else {
            throw Problem(description: "A line has more than \(Self.maximumLine) bytes, which no chunk needs.")
        }
        return (answer, Array(bytes[start...]))
    }

    private mutating func take(_ line: ChunkLogLines.Line) -> [String] {
        // Both ends of a link in one process: what one has sent, the other has received.
        if ["server", "client"].contains(line.link) {
            if role == nil { role = line.link }
            guard line.link == role else { return [] }
        }
        // The links of one peer follow one another, so that a sequenced session goes on.
        let link = Link(name: line.link.hasPrefix("link") ? "" : line.link)
        let time = line.milliseconds
        if case .framing(let framing) = line.event {
            saidFraming = framing
            // Here a log begins, perhaps behind another one, with another clock.
            last = nil
            for link in traces.keys { traces[link]?.clockWasSet() }
            return []
        }
        return (time.map { note(milliseconds: $0) } ?? []) + take(line.event, link, time)
    }

    private mutating func take(_ event: ChunkLogLines.Event, _ link: Link, _ time: Double?) -> [String] {
        switch event {
        case .framing: return []
        case .connected: return show(link) { $0.connected(at: time) }
        case .full: return show(link) { $0.full(at: time) }
        case .ready: return show(link) { $0.ready(at: time) }
        case .ended(let reason): return show(link) { $0.ended(at: time, reason.isEmpty ? "ended" : "ended: \(reason)") }
        case .chunk(let side, let bytes): return show(link) { $0.chunk(bytes, from: side, at: time) }
        }
    }

    // MARK: Packets

    private mutating func take(_ packet: CapturedPacket) -> [String] {
        let start = origin ?? packet.seconds
        origin = start
        let time = (packet.seconds - start) * 1000
        var lines = note(milliseconds: time)
        if packet.dropped > 0 {
            gaps.dropped += packet.dropped
            let count = packet.dropped == 1 ? "1 packet was" : "\(packet.dropped) packets were"
            lines += showAll { $0.gap(at: time, from: nil, "\(count) lost by the capture before this") }
        }
        return lines + values.take(packet).flatMap { take($0, at: time) }
    }

    private mutating func take(_ event: AttributeValues.Event, at time: Double?) -> [String] {
        let connection = event.connection
        switch event.kind {
        case .connected(let peer):
            peers[connection] = peer
            return []
        case .disconnected(let reason):
            let lines = showAll(of: connection) {
                $0.ended(at: time, "disconnected, reason 0x\(String(reason, radix: 16))")
            }
            carriers = carriers.filter { $0.key.connection != connection }
            declared[connection] = nil
            links[connection] = nil
            peers[connection] = nil
            return lines
        case .declared(let values):
            declared[connection, default: [:]].merge(values) { _, new in new }
            return []
        case .confirmed(let isReceived):
            return showAll(of: connection) { $0.ended(at: time, "\(Self.arrow(isReceived)) confirms an indication") }
        case .missing(let gap, let isReceived):
            gaps.add(gap)
            let text = "\(Self.arrow(isReceived)) \(TraceGaps.text(gap))"
            return showAll(of: connection) { $0.gap(at: time, from: isReceived ? .second : .first, text) }
        case .refused(let handle, let isReceived, let count, let code):
            guard let link = carriers[Carrier(connection: connection, handle: handle, isReceived: isReceived)] else {
                return []
            }
            let text =
                "\(Self.arrow(isReceived)) a write of \(count) bytes was refused, error 0x\(String(code, radix: 16))"
            return show(link) { $0.ended(at: time, text) }
        case .unanswered(let handle, let isReceived, let count):
            guard let link = carriers[Carrier(connection: connection, handle: handle, isReceived: isReceived)] else {
                return []
            }
            gaps.unanswered += 1
            let text = "\(Self.arrow(isReceived)) a write of \(count) bytes has no answer"
            return show(link) { $0.gap(at: time, from: isReceived ? .second : .first, text) }
        case .read(let handle, let isReceived, bytes: []):
            let carrier = Carrier(connection: connection, handle: handle, isReceived: isReceived)
            guard let link = carriers[carrier] ?? link(carrying: [], carrier) else { return [] }
            let text = "\(Self.arrow(isReceived)) was read, and is empty"
            return begin(link, connection, time) + show(link) { $0.ended(at: time, text) }
        case .value(let handle, let isReceived, let bytes), .read(let handle, let isReceived, let bytes):
            let carrier = Carrier(connection: connection, handle: handle, isReceived: isReceived)
            if let link = carriers[carrier] { return chunk(bytes, link, isReceived, time) }
            if let note = note(of: carrier), let link = recognized(note.format, connection) {
                let text = "\(Self.arrow(isReceived)) \(note.text(of: bytes))"
                return begin(link, connection, time) + show(link) { $0.ended(at: time, text) }
            }
            guard let link = link(carrying: bytes, carrier) else {
                if others[handle] != nil || others.count < 64 { others[handle, default: 0] += 1 }
                return []
            }
            let lines = begin(link, connection, time)
            carriers[carrier] = link
            return lines + chunk(bytes, link, isReceived, time)
        }
    }

    private mutating func chunk(_ bytes: [UInt8], _ link: Link, _ isReceived: Bool, _ time: Double?) -> [String] {
        show(link) { $0.chunk(bytes, from: isReceived ? .second : .first, at: time) }
    }

    /// Says that a link begins, with its first value.
    private mutating func begin(
        _ link: Link, _ connection: AttributeValues.Connection, _ time: Double?
    ) -> [String] {
        guard !begun(connection).contains(link) else { return [] }
        links[connection, default: []].insert(link)
        return show(link) { $0.connected(at: time, "the link begins") }
    }

    /// The link whose chunks a value carries from here on; `nil` if it carries none.
    private func link(carrying bytes: [UInt8], _ carrier: Carrier) -> Link? {
        let own = Link(name: name(carrier.connection))
        guard handles.isEmpty else { return handles.contains(carrier.handle) ? own : nil }
        if isSequenced, Self.isHello(bytes) { return own }
        switch declared[carrier.connection]?[carrier.handle] {
        case .chunks(let format), .queue(let format): return recognized(format, carrier.connection)
        case .serial:
            // Both directions of a serial line have one format.
            let known = begun(carrier.connection).compactMap(\.format).first { [.lines, .slip, .cobs].contains($0) }
            let named = framing.flatMap { [.lines, .slip, .cobs].contains($0) ? $0 : nil }
            return recognized(named ?? known ?? DeclaredValue.serialFraming(bytes), carrier.connection)
        case .note: return nil
        case nil: break
        }
        if DeviceTrace.isBTPHandshake(bytes) { return recognized(.btp, carrier.connection) }
        if SMPHead.isLikely(bytes) { return recognized(.smp, carrier.connection) }
        return nil
    }

    /// The link of a format that was recognized; `nil` where another framing was named.
    private func recognized(_ format: TraceFraming, _ connection: AttributeValues.Connection) -> Link? {
        guard let framing else { return Link(name: name(connection), format: format) }
        return framing == format ? Link(name: name(connection)) : nil
    }

    /// What the values of a characteristic tell by themselves; `nil` where they carry chunks, or nothing that is known.
    private func note(of carrier: Carrier) -> DeclaredValue.Note? {
        guard handles.isEmpty, case .note(let note) = declared[carrier.connection]?[carrier.handle] else { return nil }
        return note
    }

    private func begun(_ connection: AttributeValues.Connection) -> Set<Link> { links[connection] ?? [] }

    private static func arrow(_ isReceived: Bool) -> String { isReceived ? "<" : ">" }

    /// Notices a clock that was set back. Threads that write one file may be a little out of order.
    private mutating func note(milliseconds time: Double) -> [String] {
        defer { last = time }
        guard let before = last, time < before - Self.mostDisorder else { return [] }
        gaps.setBack += 1
        for link in traces.keys { traces[link]?.clockWasSet() }
        return showAll {
            $0.gap(at: time, from: nil, "the clock was set back by \(LinkTrace.duration(before - time))")
        }
    }

    /// In milliseconds.
    private static let mostDisorder = 100.0

    private var isSequenced: Bool { framing ?? .sequenced == .sequenced }

    private func name(_ connection: AttributeValues.Connection) -> String {
        // A peer that comes again goes on, under any handle of the connection.
        let peer = peers[connection].map { "with \($0)" } ?? "connection \(connection.handle)"
        return "hci\(connection.adapter) \(peer)"
    }

    /// Whether a value can be the first chunk of a sequenced link: 0xE1, version 1, 11 or 19 bytes.
    private static func isHello(_ bytes: [UInt8]) -> Bool {
        (bytes.count == 11 || bytes.count == 19) && bytes[0] == 0xE1 && bytes[1] >> 4 == 1
    }

    // MARK: Lines

    private func heading(_ link: Link) -> [String] {
        guard !link.name.isEmpty else { return [] }
        return ["\(link.name)\(link.format.map { ", \($0.rawValue)" } ?? ""):"]
    }

    private mutating func showAll(
        of connection: AttributeValues.Connection, _ body: (inout LinkTrace) -> [String]
    ) -> [String] {
        let name = name(connection)
        return traces.keys.filter { $0.name == name }.sorted().flatMap { show($0, body) }
    }

    private mutating func showAll(_ body: (inout LinkTrace) -> [String]) -> [String] {
        traces.keys.sorted().flatMap { show($0, body) }
    }

    private mutating func show(_ link: Link, _ body: (inout LinkTrace) -> [String]) -> [String] {
        var trace = traces[link] ?? LinkTrace(link.format ?? framing ?? saidFraming ?? .sequenced)
        let lines = body(&trace)
        traces[link] = trace
        guard shown != link else { return lines }
        shown = link
        return heading(link) + lines
    }
}
