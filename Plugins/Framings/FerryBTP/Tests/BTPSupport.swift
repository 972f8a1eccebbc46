import Ferry
import FerryBTP
import TestSupport
import Testing

/// A session with a hand at its link.
struct HandSession {
    var session: BTPFraming.Session
    var now = Timestamp.zero
    private var next: UInt64 = 0

    init(_ role: LinkRole, _ configuration: BTPFraming.Configuration = .init(), limits: Limits = Limits()) {
        session = BTPFraming(configuration).makeSession(limits: limits, payloads: PayloadFormat(), role: role)
        session.linkDidOpen(at: now)
    }

    /// One after a handshake, with packets of at most `packetSize` bytes.
    static func open(
        _ role: LinkRole, packetSize: Int = 244, window: UInt8 = 6, limits: Limits = Limits()
    ) throws -> HandSession {
        var hand = HandSession(role, limits: limits)
        switch role {
        case .initiator:
            _ = try hand.next(packetSize)
            try hand.receive("656c04" + digits([UInt8(packetSize), 0, window]))
        case .responder:
            try hand.receive(
                "656c04000000" + digits([UInt8(packetSize + 3 & 0xFF), UInt8((packetSize + 3) >> 8), window]))
            #expect(try hand.next(packetSize) == "656c04" + digits([UInt8(packetSize), 0, min(window, 6)]))
        }
        #expect(hand.session.isReady)
        return hand
    }

    mutating func send(_ message: [UInt8]) throws {
        try session.enqueue(message, as: MessageID(rawValue: next), at: now)
        next += 1
    }

    /// The next packet, or nil.
    mutating func next(_ size: Int = 244) throws -> String? {
        var packet: [UInt8]?
        _ = try session.transmit(atMost: size, at: now) { (offered) throws(FerryError) in
            packet = offered.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        return packet.map { digits($0) }
    }

    /// All that can be sent.
    mutating func all(_ size: Int = 244) throws -> [String] {
        var packets: [String] = []
        while let packet = try next(size) { packets.append(packet) }
        return packets
    }

    /// Whether nothing can be sent at present.
    mutating func isIdle(_ size: Int) throws -> Bool {
        try session.transmit(atMost: size, at: now) { (_) throws(FerryError) in false } == .idle
    }

    mutating func receive(_ packet: String) throws { try session.receive(bytes(packet).span.bytes, at: now) }

    mutating func pass(_ duration: Duration) throws {
        now = now + duration
        try session.wake(at: now)
    }

    /// What has arrived.
    mutating func messages() -> [[UInt8]] {
        var messages: [[UInt8]] = []
        while let event = session.nextEvent() { if case .received(let message) = event { messages.append(message) } }
        return messages
    }
}
