import Ferry
import FerryGattlink
import FerryTesting
import TestSupport

/// A session with a hand at its link.
struct HandSession {
    var session: GattlinkFraming.Session
    var now = Timestamp.zero
    private var next: UInt64 = 0

    init(_ content: GattlinkFraming.Content, window: Int = 8, limits: Limits = Limits()) {
        var configuration = GattlinkFraming.Configuration()
        configuration.window = window
        session = GattlinkFraming(content, configuration).makeSession(limits: limits)
        session.linkDidOpen(at: now)
    }

    /// One that has begun, with a peer that takes and sends `window` packets.
    static func open(_ content: GattlinkFraming.Content, window: Int = 8, limits: Limits = Limits()) throws -> Self {
        var hand = HandSession(content, window: window, limits: limits)
        try hand.receive("80")
        _ = try hand.all()
        try hand.receive("810000" + digits([UInt8(window), UInt8(window)]))
        return hand
    }

    mutating func send(_ message: [UInt8], receipt: SendOptions.Receipt = .asConfigured) throws {
        try session.enqueue(
            message, as: MessageID(rawValue: next), options: SendOptions(receipt: receipt), at: now)
        next += 1
    }

    /// The next packet, or nil.
    mutating func next(_ size: Int = 20) throws -> String? {
        var packet: [UInt8]?
        _ = try session.transmit(atMost: size, at: now) { (offered) throws(FerryError) in
            packet = offered.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        return packet.map { digits($0) }
    }

    /// All that can be sent.
    mutating func all(_ size: Int = 20) throws -> [String] {
        var packets: [String] = []
        while let packet = try next(size) { packets.append(packet) }
        return packets
    }

    mutating func receive(_ packet: String) throws { try session.receive(bytes(packet).span.bytes, at: now) }

    mutating func pass(_ duration: Duration) throws {
        now = now + duration
        try session.wake(at: now)
    }

    /// What has happened.
    mutating func events() -> [Happening] {
        var happenings: [Happening] = []
        while let event = session.nextEvent() {
            switch event {
            case .received(let message): happenings.append(.received(message))
            case .sent(let id): happenings.append(.sent(id.rawValue))
            case .receiveFailed(let error): happenings.append(.receiveFailed(error.code))
            case .progress, .failed: break
            }
        }
        return happenings
    }

    enum Happening: Equatable {
        case received([UInt8])
        case sent(UInt64)
        case receiveFailed(FerryError.Code)
    }
}

/// An IPv4 datagram of `count` bytes.
func datagram(_ count: Int, _ random: inout SplitMix64) -> [UInt8] {
    [0x45, 0, UInt8(count >> 8), UInt8(count & 0xFF)] + random.bytes(count - 4)
}
