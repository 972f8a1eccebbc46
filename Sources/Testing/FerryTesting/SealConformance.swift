public import Ferry

/// Checks a sealing against what ``/Ferry/MessageSeal`` promises, for two sides that are set up to meet.
///
/// It has them meet, exchanges messages, and then does to copies of the messages what an attacker on the path can do. Any
/// test library reports the ``ConformanceFailure`` that is thrown.
public struct SealConformance<Connecting: MessageSealing, Accepting: MessageSealing>: Sendable {
    private let connecting: Connecting
    private let accepting: Accepting
    private let exchange: SealedExchange

    /// Makes a check of one setting.
    ///
    /// - Parameters:
    ///   - connecting: the side that is asked for a message first.
    ///   - accepting: the other side.
    ///   - keepsOrder: whether messages are to open in the order of sealing.
    public init(connecting: Connecting, accepting: Accepting, keepsOrder: Bool) {
        self.connecting = connecting
        self.accepting = accepting
        exchange = SealedExchange(payloads: PayloadFormat(), keepsOrder: keepsOrder)
    }

    /// Everything.
    ///
    /// - Throws: ``ConformanceFailure``.
    public func check() throws {
        try checkMeeting()
        try checkMessages()
        try checkAlterations()
        try checkOrder()
    }

    private func require(_ isMet: Bool, _ requirement: String, _ detail: String = "") throws {
        if !isMet { throw ConformanceFailure("sealing \(connecting.name): \(requirement)", detail) }
    }

    private func throwing(_ requirement: String, _ body: () throws -> Void) throws {
        do { try body() } catch { return }
        throw ConformanceFailure("sealing \(connecting.name): \(requirement)", "Nothing was thrown.")
    }

    /// Two sides after their handshake.
    private func meet() throws -> (Connecting.Seal, Accepting.Seal) {
        var a = connecting.makeSeal(for: exchange)
        var b = accepting.makeSeal(for: exchange)
        for _ in 0..<16 {
            while let message = try a.nextHandshakeMessage() { try b.receiveHandshake(message) }
            while let message = try b.nextHandshakeMessage() { try a.receiveHandshake(message) }
            if a.isEstablished, b.isEstablished { return (a, b) }
        }
        throw ConformanceFailure("sealing \(connecting.name): the handshake ends", "It has not after 16 rounds.")
    }

    private func checkMeeting() throws {
        var a = connecting.makeSeal(for: exchange)
        var b = accepting.makeSeal(for: exchange)
        try require(!a.isEstablished && !b.isEstablished, "nothing is established before the handshake")
        try require(a.provenPeer == nil && b.provenPeer == nil, "no peer is proven before the handshake")
        try require(try b.nextHandshakeMessage() == nil, "the accepting side waits")
        try throwing("nothing is sealed before the handshake") { _ = try a.seal([1]) }
        try throwing("nothing is opened before the handshake") { _ = try b.open([UInt8](repeating: 0, count: 64)) }
        let (c, d) = try meet()
        try require(c.provenPeer != nil, "the connecting side knows its peer after the handshake")
        try require(d.maximumOverhead == c.maximumOverhead, "both sides add as much")
    }

    private func checkMessages() throws {
        var (a, b) = try meet()
        for count in [0, 1, 19, 20, 244, 5000] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let sealed = try a.seal(payload)
            try require(
                sealed.count <= count + a.maximumOverhead, "sealing adds no more than it says",
                "\(sealed.count) of \(count)")
            try require(try b.open(sealed) == payload, "a sealed payload opens", "\(count) bytes")
            try require(
                try a.open(b.seal(payload)) == payload, "a sealed payload opens the other way", "\(count) bytes")
        }
        try require(b.provenPeer != nil, "the accepting side knows its peer after the first message")
        try require(try a.nextHandshakeMessage() == nil, "the handshake is over")
    }

    private func checkAlterations() throws {
        var (a, b) = try meet()
        let sealed = try a.seal([1, 2, 3, 4])
        for index in sealed.indices {
            var altered = sealed
            altered[index] ^= 0x10
            var reader = b
            try throwing("an altered message throws") { _ = try reader.open(altered) }
        }
        for count in sealed.indices {
            var reader = b
            try throwing("a message that is cut throws") { _ = try reader.open(Array(sealed.prefix(count))) }
        }
        var reader = b
        try throwing("a message that is longer throws") { _ = try reader.open(sealed + [0]) }
        try throwing("a side's own message throws") { _ = try a.open(sealed) }
        _ = try b.open(sealed)
        try throwing("a message that comes twice throws") { _ = try b.open(sealed) }
    }

    private func checkOrder() throws {
        var (a, b) = try meet()
        let first = try a.seal([1])
        _ = try a.seal([2])
        let third = try a.seal([3])
        guard !exchange.keepsOrder else {
            return try throwing("a message that is overtaken throws") { _ = try b.open(third) }
        }
        try require(try b.open(third) == [3], "messages may overtake each other and be missing")
        try require(try b.open(first) == [1], "a message that was overtaken opens")
    }
}
