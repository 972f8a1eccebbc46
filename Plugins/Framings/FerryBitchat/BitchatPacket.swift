public import Ferry

/// A packet of bitchat's mesh, as it crosses a link: numbers are big-endian.
///
/// Source: permissionlesstech/bitchat 9b84b361, `BinaryProtocol.swift`. What a payload holds by its type, signatures and encryption are
/// the app's.
public struct BitchatPacket: Sendable, Hashable {
    /// 1, or 2 for payloads above 65 535 bytes and for routes.
    public var version: UInt8
    /// What the payload is.
    public var type: UInt8
    /// How many more times it may be passed on.
    public var timeToLive: UInt8
    /// Milliseconds since 1970.
    public var timestamp: UInt64
    /// Who made it.
    public var sender: UInt64
    /// Whom it is for; nil for everybody, as is ``everybody``.
    public var recipient: UInt64?
    /// The peers on its way, at most 255. Version 2 only.
    public var route: [UInt64]
    /// Where ``isCompressed``, the size that it had, in as many bytes as the length has, and raw deflate (RFC 1951).
    public var payload: [UInt8]
    /// Of everything but the time to live; 64 bytes.
    public var signature: [UInt8]?
    /// Whether the payload is compressed.
    public var isCompressed: Bool
    /// Whether it answers a request for what a peer has missed.
    public var answersSync: Bool

    /// The recipient of packets for everybody.
    public static let everybody = UInt64.max
    /// The type of a part of another packet.
    public static let fragment: UInt8 = 0x20
    /// Bytes of a signature.
    public static let signatureSize = 64
    /// Bytes of a packet of version 1 for everybody, without a payload.
    package static let smallestSize = 22

    /// Makes a packet.
    ///
    /// - Parameters:
    ///   - type: what the payload is.
    ///   - sender: who makes it.
    ///   - recipient: whom it is for; nil for everybody.
    ///   - timestamp: milliseconds since 1970.
    ///   - payload: at most 65 535 bytes in version 1.
    ///   - timeToLive: how many times it may be passed on; 7 as bitchat has it.
    ///   - version: 1 or 2.
    public init(
        type: UInt8, sender: UInt64, recipient: UInt64? = nil, timestamp: UInt64, payload: [UInt8],
        timeToLive: UInt8 = 7, version: UInt8 = 1
    ) {
        self.version = version
        self.type = type
        self.timeToLive = timeToLive
        self.timestamp = timestamp
        self.sender = sender
        self.recipient = recipient
        route = []
        self.payload = payload
        signature = nil
        isCompressed = false
        answersSync = false
    }

    /// Reads a packet. Bytes behind it, such as padding, are left out.
    ///
    /// - Throws: `malformedStream` for what cannot be one.
    public init(decoding bytes: [UInt8]) throws(FerryError) {
        let head = try BitchatHead(bytes.span.bytes)
        self.init(
            type: bytes[1], sender: Self.number(bytes, head.sender, 8), timestamp: Self.number(bytes, 3, 8),
            payload: Array(bytes[head.payload]), timeToLive: bytes[2], version: bytes[0])
        if head.flags.contains(.recipient) { recipient = Self.number(bytes, head.sender + 8, 8) }
        route = head.hops.map { Self.number(bytes, $0, 8) }
        if head.flags.contains(.signature) { signature = Array(bytes[head.payload.upperBound..<head.end]) }
        isCompressed = head.flags.contains(.compressed)
        answersSync = head.flags.contains(.answersSync)
    }

    private static func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt64 {
        bytes[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The packet as it crosses a link, without padding.
    ///
    /// - Throws: `bitchat.notAPacket` for a version, a route, a payload or a signature that cannot be said.
    public func bytes() throws(FerryError) -> [UInt8] {
        let most = version == 1 ? Int(UInt16.max) : Int(UInt32.max)
        guard version == 1 || version == 2, version == 2 || route.isEmpty, route.count <= 255, payload.count <= most,
            signature == nil || signature?.count == Self.signatureSize
        else {
            throw FerryError(
                .notABitchatPacket,
                "A packet of version \(version) with a payload of \(payload.count) bytes, \(route.count) peers on its way and a signature of "
                    + "\(signature?.count ?? 0) bytes cannot be said: versions are 1 and 2, version 1 has no route and 65 535 bytes at most, "
                    + "a route 255 peers, and a signature 64 bytes.")
        }
        var flags: BitchatFlags = []
        if recipient != nil { flags.insert(.recipient) }
        if signature != nil { flags.insert(.signature) }
        if isCompressed { flags.insert(.compressed) }
        if !route.isEmpty { flags.insert(.route) }
        if answersSync { flags.insert(.answersSync) }
        var bytes = [version, type, timeToLive]
        Self.append(timestamp, 8, to: &bytes)
        bytes.append(flags.rawValue)
        Self.append(UInt64(payload.count), version == 1 ? 2 : 4, to: &bytes)
        Self.append(sender, 8, to: &bytes)
        if let recipient { Self.append(recipient, 8, to: &bytes) }
        if !route.isEmpty {
            bytes.append(UInt8(route.count))
            for hop in route { Self.append(hop, 8, to: &bytes) }
        }
        return bytes + payload + (signature ?? [])
    }

    static func append(_ number: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for place in stride(from: 8 * (count - 1), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(place)))
        }
    }
}

/// What a packet has beside its fixed fields.
struct BitchatFlags: OptionSet {
    let rawValue: UInt8

    static let recipient = BitchatFlags(rawValue: 0x01)
    static let signature = BitchatFlags(rawValue: 0x02)
    static let compressed = BitchatFlags(rawValue: 0x04)
    /// In version 1 it has no meaning.
    static let route = BitchatFlags(rawValue: 0x08)
    static let answersSync = BitchatFlags(rawValue: 0x10)
}

/// Where the parts of a packet are.
struct BitchatHead {
    let version: UInt8
    let type: UInt8
    let flags: BitchatFlags
    /// Where the sender's number begins; the recipient's is behind it.
    let sender: Int
    /// Where each number of the route begins.
    let hops: [Int]
    let payload: Range<Int>
    /// Where the packet ends.
    let end: Int

    /// - Throws: `malformedStream` for what cannot be a packet.
    init(_ packet: RawSpan) throws(FerryError) {
        let count = packet.byteCount
        func byte(_ place: Int) -> Int { Int(packet.unsafeLoad(fromByteOffset: place, as: UInt8.self)) }
        guard count >= BitchatPacket.smallestSize, (1...2).contains(byte(0)) else {
            throw Self.malformed(
                packet, "\(BitchatPacket.smallestSize) bytes at least were expected, of which the first is 1 or 2")
        }
        let lengthSize = 2 * byte(0)
        version = UInt8(byte(0))
        type = UInt8(byte(1))
        flags = BitchatFlags(rawValue: UInt8(byte(11)))
        sender = 12 + lengthSize
        var start = sender + 8 + (flags.contains(.recipient) ? 8 : 0)
        let told = (12..<sender).reduce(0 as UInt64) { $0 << 8 | UInt64(byte($1)) }
        guard told <= UInt64(count) else { throw Self.malformed(packet, "its payload alone has \(told) bytes") }
        let length = Int(told)
        var hops: [Int] = []
        if version == 2, flags.contains(.route), start < count {
            hops = (0..<byte(start)).map { [start] in start + 1 + 8 * $0 }
            start += 1 + 8 * byte(start)
        }
        self.hops = hops
        payload = start..<start + length
        end = start + length + (flags.contains(.signature) ? BitchatPacket.signatureSize : 0)
        guard end <= count else { throw Self.malformed(packet, "its fields have \(end) bytes") }
    }

    private static func malformed(_ packet: RawSpan, _ what: String) -> FerryError {
        let first = packet.withUnsafeBytes { $0.prefix(16).hexadecimal(separator: " ") }
        return FerryError(
            .malformedStream,
            "\(packet.byteCount) bytes from the peer (\(first)) are no packet of bitchat: \(what)."
        )
    }
}

extension FerryError.Code {
    /// A message that is no packet of bitchat's, or cannot be said as one.
    public static let notABitchatPacket = FerryError.Code("bitchat.notAPacket")
}
