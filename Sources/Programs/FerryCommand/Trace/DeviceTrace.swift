import FerryBitchat
import FerrySequenced

/// Says what chunks of the formats that devices speak are: SMP, mdoc, BTP, PFTP, Improv, Meshtastic, Gattlink, bitchat, and lines, SLIP
/// and COBS on a serial line.
struct DeviceTrace {
    private struct Stream {
        var message = 0
        /// Whether a message has begun and not ended.
        var isInside = false
        /// Bytes of the message that have passed, and, where the format says its length, those to come.
        var passed = 0
        var missing = 0
        /// SMP: messages by their sequence, for their answers; at most 256.
        var requests: [UInt8: Int] = [:]
        /// BTP and Gattlink: the number that the next packet should have; `nil` before the first. PFTP: that of the message's next chunk.
        var next: UInt8?
        /// Gattlink: the first bytes of a datagram, up to those that say its length.
        var head: [UInt8] = []
        /// bitchat: packets of which fragments have passed, by their number; at most 256.
        var fragments: [[UInt8]: (message: Int, missing: Set<Int>)] = [:]
    }

    private typealias Finding = SequencedTrace.Finding

    private let format: TraceFraming
    private var streams = [Stream(), Stream()]

    init(_ format: TraceFraming) { self.format = format }

    /// A new link: nothing goes on.
    mutating func restart() {
        for side in streams.indices {
            let message = streams[side].message
            streams[side] = Stream()
            streams[side].message = message
        }
    }

    mutating func read(_ chunk: [UInt8], from side: SequencedSide) -> SequencedTrace.Finding {
        switch format {
        case .smp: smp(chunk, side.rawValue)
        case .mdoc: mdoc(chunk, side.rawValue)
        case .btp: btp(chunk, side.rawValue)
        case .pftp: pftp(chunk, side.rawValue)
        case .improv: improv(chunk, side.rawValue)
        case .meshtastic: whole(chunk, side.rawValue)
        case .gattlink: gattlink(chunk, side.rawValue)
        case .bitchat: bitchat(chunk, side.rawValue)
        case .slip: frames(chunk, side.rawValue, end: 0xC0)
        case .cobs: frames(chunk, side.rawValue, end: 0x00)
        case .lines, .length, .eom, .sequenced: frames(chunk, side.rawValue, end: 0x0A)
        }
    }

    // MARK: SMP

    private mutating func smp(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard !streams[side].isInside else {
            return carry(chunk.count, side, "")
        }
        guard let header = SMPHead(chunk) else {
            return Self.failure("not understood (no header of SMP, where a message begins)")
        }
        streams[side].missing = header.length + SMPHead.byteCount
        let begins = begin(side, byteCount: streams[side].missing)
        var text = header.description
        if header.isAnswer {
            if let request = streams[1 - side].requests.removeValue(forKey: header.sequence) {
                text += " to \(side == 0 ? "<" : ">")\(request)"
            }
        } else {
            streams[side].requests[header.sequence] = streams[side].message
        }
        return carry(chunk.count, side, text + "; ", begins)
    }

    // MARK: mdoc

    private mutating func mdoc(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard let first = chunk.first else { return Self.failure("not understood (an empty value)") }
        guard first <= 1 else {
            return Self.failure("not understood (the first byte is 0x\(String(first, radix: 16)), neither 0 nor 1)")
        }
        var events = streams[side].isInside ? [] : begin(side, byteCount: 0)
        let message = streams[side].message
        streams[side].passed += chunk.count - 1
        events.append(.carries(message: message))
        guard first == 0 else {
            return Finding(text: "\(chunk.count - 1) bytes of message \(message)", isUnderstood: true, events: events)
        }
        let text = "\(chunk.count - 1) bytes: message \(message) of \(streams[side].passed) bytes ends"
        return Finding(text: text, isUnderstood: true, events: events + end(side))
    }

    // MARK: Improv and Meshtastic

    private mutating func improv(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard !streams[side].isInside else { return carry(chunk.count, side, "") }
        guard chunk.count >= 2 else { return Self.failure("not understood (a packet of Improv begins with 2 bytes)") }
        streams[side].missing = 3 + Int(chunk[1])
        let begins = begin(side, byteCount: streams[side].missing)
        let names = ["network settings", "identify", "device info", "scan", "host name"]
        let number = Int(chunk[0])
        let name = (1...names.count).contains(number) ? names[number - 1] : "command \(number)"
        return carry(chunk.count, side, "\(name); ", begins)
    }

    /// Each value is a message.
    private mutating func whole(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard !chunk.isEmpty else { return Self.failure("not understood (an empty value)") }
        streams[side].missing = chunk.count
        let begins = begin(side, byteCount: chunk.count)
        return carry(chunk.count, side, "", begins)
    }

    // MARK: Lines, SLIP and COBS

    private mutating func frames(_ chunk: [UInt8], _ side: Int, end delimiter: UInt8) -> SequencedTrace.Finding {
        var (events, parts, start): ([SequencedTrace.Event], [String], Int) = ([], [], 0)
        while start < chunk.count {
            let found = chunk[start...].firstIndex(of: delimiter)
            let stop = found.map { $0 + 1 } ?? chunk.count
            defer { start = stop }
            // SLIP and COBS have no empty messages: an end without a beginning is passed over.
            if found == start, !streams[side].isInside, delimiter != 0x0A {
                parts.append("an end")
                continue
            }
            if !streams[side].isInside { events += begin(side, byteCount: 0) }
            streams[side].passed += stop - start
            let message = streams[side].message
            events.append(.carries(message: message))
            guard found != nil else {
                parts.append("\(stop - start) bytes of message \(message)")
                continue
            }
            parts.append(
                "\(stop - start) bytes: message \(message) of \(streams[side].passed) bytes on the line ends")
            events += end(side)
        }
        if parts.isEmpty { parts.append("nothing") }
        return Finding(text: parts.joined(separator: "; "), isUnderstood: true, events: events)
    }

    // MARK: Messages

    private mutating func begin(_ side: Int, byteCount: Int) -> [SequencedTrace.Event] {
        streams[side].message += 1
        streams[side].passed = 0
        streams[side].isInside = true
        return [.begins(message: streams[side].message, byteCount: UInt64(byteCount))]
    }

    private mutating func end(_ side: Int) -> [SequencedTrace.Event] {
        streams[side].isInside = false
        return [.ends(message: streams[side].message)]
    }

    /// Takes `count` bytes of a message whose length is known.
    private mutating func carry(
        _ count: Int, _ side: Int, _ head: String, _ before: [SequencedTrace.Event] = []
    ) -> SequencedTrace.Finding {
        let message = streams[side].message
        let taken = min(count, streams[side].missing)
        streams[side].missing -= taken
        var events = before + [.carries(message: message)]
        var text = head + "\(taken) bytes of message \(message)"
        if streams[side].missing == 0 {
            text += ", which ends"
            events += end(side)
        }
        guard taken == count else {
            text += "; not understood (\(count - taken) bytes beyond the message's length)"
            return Finding(text: text, isUnderstood: false, events: events)
        }
        return Finding(text: text, isUnderstood: true, events: events)
    }

    private static func failure(_ text: String) -> Finding { Finding(text: text, isUnderstood: false, events: []) }
}

// MARK: PFTP

extension DeviceTrace {
    private mutating func pftp(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard let head = chunk.first else { return Self.failure("not understood (an empty value)") }
        let (isFirst, status, number) = (head & 1 == 0, head >> 1 & 3, head >> 4)
        guard status != 2 else { return Self.failure("not understood (the status is 2)") }
        let due = streams[side].isInside ? streams[side].next ?? 0 : 0
        var text = "chunk \(number)"
        if isFirst == streams[side].isInside || number != due { text += " (\(due) was due)" }
        var events = isFirst || !streams[side].isInside ? begin(side, byteCount: 0) : []
        let message = streams[side].message
        streams[side].next = (number &+ 1) & 0xF
        events.append(.carries(message: message))
        guard status != 0 else {
            guard chunk.count >= 3 else { return Self.failure("\(text): not understood (an error without its number)") }
            text += ": error \(Int(chunk[1]) | Int(chunk[2]) << 8) ends message \(message)"
            return Finding(text: text, isUnderstood: true, events: events + end(side))
        }
        streams[side].passed += chunk.count - 1
        guard status == 1 else {
            text += ": \(chunk.count - 1) bytes of message \(message)"
            return Finding(text: text, isUnderstood: true, events: events)
        }
        text += ": \(chunk.count - 1) bytes: message \(message) of \(streams[side].passed) bytes ends"
        return Finding(text: text, isUnderstood: true, events: events + end(side))
    }
}

// MARK: Gattlink

extension DeviceTrace {
    private mutating func gattlink(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        var rest = chunk[...]
        guard let first = rest.popFirst() else { return Self.failure("not understood (an empty packet)") }
        switch first {
        case 0x80: return Finding(text: "asks to begin anew", isUnderstood: true, events: [])
        case 0x81 where chunk.count >= 5:
            streams[side].next = 0
            streams[side].isInside = false
            streams[side].head = []
            return Finding(text: "begins: takes \(chunk[3]) packets, sends \(chunk[4])", isUnderstood: true, events: [])
        case 0x80...: return Self.failure("not understood (a control packet 0x\(String(first, radix: 16)))")
        default: break
        }
        var number = first
        var text = ""
        if first & 0x40 != 0 {
            text = "acknowledges \(first & 0x1F)"
            guard let second = rest.popFirst() else { return Finding(text: text, isUnderstood: true, events: []) }
            number = second
            text += ", "
        }
        number &= 0x1F
        text += "packet \(number)"
        let due = streams[side].next ?? number
        guard number == due else {
            let isAgain = (due &- number) & 0x1F < 16
            return Finding(text: text + (isAgain ? " again" : " (\(due) is missing)"), isUnderstood: true, events: [])
        }
        streams[side].next = (number + 1) & 0x1F
        let finding = datagrams(rest, side)
        return Finding(text: text + ": " + finding.text, isUnderstood: finding.isUnderstood, events: finding.events)
    }

    /// The next bytes of a stream of IPv4 datagrams.
    private mutating func datagrams(_ bytes: ArraySlice<UInt8>, _ side: Int) -> SequencedTrace.Finding {
        var (rest, events, parts): (ArraySlice<UInt8>, [SequencedTrace.Event], [String]) = (bytes, [], [])
        while !rest.isEmpty {
            if !streams[side].isInside {
                let count = min(4 - streams[side].head.count, rest.count)
                streams[side].head += rest.prefix(count)
                let head = streams[side].head
                guard head.count == 4 else {
                    parts.append("\(rest.count) bytes of a head")
                    break
                }
                streams[side].head = []
                let size = Int(head[2]) << 8 | Int(head[3])
                guard head[0] >> 4 == 4, size >= 20 else {
                    parts.append("not understood (no IPv4 datagram)")
                    return Finding(text: parts.joined(separator: "; "), isUnderstood: false, events: events)
                }
                events += begin(side, byteCount: size)
                // What of the head came before is not in this packet.
                streams[side].missing = size - (4 - count)
            }
            let count = min(streams[side].missing, rest.count)
            rest = rest.dropFirst(count)
            let finding = carry(count, side, "")
            parts.append(finding.text)
            events += finding.events
        }
        return Finding(text: parts.joined(separator: "; "), isUnderstood: true, events: events)
    }
}

// MARK: bitchat

extension DeviceTrace {
    private mutating func bitchat(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        guard let packet = try? BitchatPacket(decoding: chunk) else {
            return Self.failure("not understood (no packet of bitchat)")
        }
        let digits = String(packet.sender, radix: 16)
        let sender = String(repeating: "0", count: 16 - digits.count) + digits
        guard packet.type == BitchatPacket.fragment, packet.payload.count > 13 else {
            streams[side].missing = chunk.count
            let begins = begin(side, byteCount: chunk.count)
            return carry(chunk.count, side, "type \(packet.type) from \(sender): ", begins)
        }
        let payload = packet.payload
        let (index, total) = (Int(payload[8]) << 8 | Int(payload[9]), Int(payload[10]) << 8 | Int(payload[11]))
        guard index < total, total <= 10_000 else {
            return Self.failure("not understood (fragment \(index) of \(total))")
        }
        let key = Array(payload[..<8])
        var events: [SequencedTrace.Event] = []
        if streams[side].fragments[key] == nil {
            if streams[side].fragments.count >= 256 { streams[side].fragments = [:] }
            events = begin(side, byteCount: 0)
            streams[side].isInside = false
            streams[side].fragments[key] = (streams[side].message, Set(0..<total))
        }
        let message = streams[side].fragments[key]?.message ?? 0
        streams[side].fragments[key]?.missing.remove(index)
        events.append(.carries(message: message))
        var text =
            "fragment \(index) of \(total) of type \(payload[12]) from \(sender): "
            + "\(payload.count - 13) bytes of message \(message)"
        if streams[side].fragments[key]?.missing.isEmpty == true {
            streams[side].fragments[key] = nil
            text += ", which ends"
            events.append(.ends(message: message))
        }
        return Finding(text: text, isUnderstood: true, events: events)
    }
}

// MARK: BTP

extension DeviceTrace {
    private static let begins: UInt8 = 0x01
    private static let ends: UInt8 = 0x04
    private static let acknowledges: UInt8 = 0x08
    private static let management: UInt8 = 0x20

    /// Whether a value is the handshake with which a BTP link begins.
    static func isBTPHandshake(_ bytes: [UInt8]) -> Bool {
        (bytes.count == 9 || bytes.count == 6) && bytes[0] == 0x65 && bytes[1] == 0x6C
    }

    private mutating func btp(_ chunk: [UInt8], _ side: Int) -> SequencedTrace.Finding {
        if Self.isBTPHandshake(chunk) {
            let (low, high) = (Int(chunk[chunk.count - 3]), Int(chunk[chunk.count - 2]))
            let size = low | high << 8
            let isRequest = chunk.count == 9
            // The answer counts as packet 0.
            streams[side].next = isRequest ? 0 : 1
            let text =
                isRequest
                ? "handshake: asks for an MTU of \(size), window \(chunk[8])"
                : "handshake: version \(chunk[2]), packets of \(size) bytes, window \(chunk[5])"
            return Finding(text: text, isUnderstood: true, events: [])
        }
        var rest = chunk[...]
        guard let flags = rest.popFirst() else { return Self.failure("not understood (an empty packet)") }
        if flags & Self.management != 0 { _ = rest.popFirst() }
        var head = ""
        if flags & Self.acknowledges != 0, let number = rest.popFirst() { head = ", acknowledges \(number)" }
        guard let number = rest.popFirst() else { return Self.failure("not understood (ends within its head)") }
        head = "packet \(number)\(head)"
        if let next = streams[side].next, next != number { head += " (\(next) is missing)" }
        streams[side].next = number &+ 1
        var events: [SequencedTrace.Event] = []
        if flags & Self.begins != 0 {
            guard let low = rest.popFirst(), let high = rest.popFirst() else {
                return Self.failure("\(head); not understood (ends within its head)")
            }
            streams[side].missing = Int(low) | Int(high) << 8
            events = begin(side, byteCount: streams[side].missing)
        }
        guard streams[side].isInside else {
            guard flags & Self.acknowledges != 0, rest.isEmpty else {
                return Self.failure("\(head); not understood (no message has begun)")
            }
            return Finding(text: head, isUnderstood: true, events: [])
        }
        // An acknowledgement alone may stand within a message.
        if rest.isEmpty, flags & (Self.begins | Self.ends) == 0 {
            return Finding(text: head, isUnderstood: true, events: [])
        }
        let finding = carry(rest.count, side, head + ": ", events)
        guard flags & Self.ends != 0, streams[side].isInside else { return finding }
        let text = finding.text + "; not understood (ends \(streams[side].missing) bytes early)"
        return Finding(text: text, isUnderstood: false, events: finding.events + end(side))
    }
}
