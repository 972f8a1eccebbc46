import Ferry

/// Packets of which fragments have come, the first of them first.
struct FragmentAssemblies: Sendable {
    /// A packet's fragments, by the sender and the number that it gave them.
    private struct Key: Hashable {
        let sender: UInt64
        let number: UInt64
    }

    private struct Assembly {
        /// As its first fragment said it.
        let total: Int
        let type: UInt8
        let timestamp: UInt64
        let deadline: Timestamp
        var fragments: [Int: [UInt8]] = [:]
        var bytes = 0
    }

    private let most: Int
    private let timeout: Duration
    /// The most bytes of a packet.
    private let limit: Int
    private var assemblies: [Key: Assembly] = [:]
    /// In the order of their begins.
    private var order: [Key] = []
    /// The bytes of all fragments, and what keeping them costs.
    private var held = 0

    /// About what a fragment takes beside its data, so that small ones are not free.
    private static let fragmentCost = 64
    /// One packet as large as it may be, in as many fragments as it may have.
    private var mostHeld: Int { limit + BitchatFraming.mostFragments * Self.fragmentCost }

    init(_ configuration: BitchatFraming.Configuration, limit: Int) {
        most = configuration.maximumAssemblies
        timeout = configuration.assemblyTimeout
        self.limit = limit
    }

    /// When the first of them has taken too long.
    var deadline: Timestamp? { order.first.flatMap { assemblies[$0]?.deadline } }

    var oldestProgress: ReceiveProgress? {
        order.first.flatMap { assemblies[$0] }.map { ReceiveProgress(receivedBytes: $0.bytes, totalBytes: nil) }
    }

    var unfinished: FerryError? {
        order.first.flatMap { assemblies[$0] }.map { Self.truncated($0, "the link ended") }
    }

    /// Takes a fragment.
    ///
    /// - Returns: the packet where this was the last of its fragments, and the packets that were given up for it.
    /// - Throws: `malformedStream`, `messageTooLarge`.
    mutating func add(
        _ packet: RawSpan, _ head: BitchatHead, at now: Timestamp
    ) throws(FerryError) -> (packet: [UInt8]?, givenUp: [FerryError]) {
        func number(_ start: Int, _ count: Int) -> UInt64 {
            (start..<start + count).reduce(0) {
                $0 << 8 | UInt64(packet.unsafeLoad(fromByteOffset: $1, as: UInt8.self))
            }
        }
        let start = head.payload.lowerBound
        guard head.payload.count > 13 else {
            throw Self.malformed("has a payload of \(head.payload.count) bytes; 14 at least were expected")
        }
        let key = Key(sender: number(head.sender, 8), number: number(start, 8))
        let (index, total) = (Int(number(start + 8, 2)), Int(number(start + 10, 2)))
        let type = UInt8(number(start + 12, 1))
        guard (1...BitchatFraming.mostFragments).contains(total), index < total else {
            throw Self.malformed("is number \(index) of \(total)")
        }
        var givenUp: [FerryError] = []
        if assemblies[key] == nil {
            if order.count >= most { giveUp(order[0], for: &givenUp) }
            assemblies[key] = Assembly(total: total, type: type, timestamp: number(3, 8), deadline: now + timeout)
            order.append(key)
        }
        guard let assembly = assemblies[key], assembly.total == total, assembly.type == type else {
            throw Self.malformed(
                "is number \(index) of \(total), and the first one was one of \(assemblies[key]?.total ?? 0)")
        }
        guard assembly.fragments[index] == nil else { return (nil, givenUp) }
        let data = packet.extracting(start + 13..<head.payload.upperBound).withUnsafeBytes { [UInt8]($0) }
        guard assembly.bytes + data.count <= limit else {
            _ = remove(key)
            throw FerryError(
                .messageTooLarge,
                "A packet from the peer has more than \(assembly.bytes) bytes in \(total) fragments; the limit is \(limit). Raise "
                    + "Limits.maximumMessageSize if the peer is to send as much.")
        }
        let cost = data.count + Self.fragmentCost
        while held + cost > mostHeld, let other = order.first(where: { $0 != key }) { giveUp(other, for: &givenUp) }
        held += cost
        assemblies[key]?.bytes += data.count
        assemblies[key]?.fragments[index] = data
        guard assembly.fragments.count + 1 == total, let whole = remove(key) else { return (nil, givenUp) }
        supersede(key.sender, whole)
        return ((0..<total).flatMap { whole.fragments[$0] ?? [] }, givenUp)
    }

    /// The packet was begun before, and cut otherwise: values have become shorter.
    private mutating func supersede(_ sender: UInt64, _ whole: Assembly) {
        for key in order where key.sender == sender {
            guard let other = assemblies[key], other.timestamp == whole.timestamp, other.type == whole.type else {
                continue
            }
            _ = remove(key)
        }
    }

    /// Those that have taken too long.
    mutating func giveUp(at now: Timestamp) -> [FerryError] {
        var errors: [FerryError] = []
        while let key = order.first, let assembly = assemblies[key], assembly.deadline <= now {
            _ = remove(key)
            errors.append(Self.truncated(assembly, "\(timeout) have passed"))
        }
        return errors
    }

    private mutating func remove(_ key: Key) -> Assembly? {
        guard let assembly = assemblies.removeValue(forKey: key) else { return nil }
        order.removeAll { $0 == key }
        held -= assembly.bytes + assembly.fragments.count * Self.fragmentCost
        return assembly
    }

    /// For a newer one.
    private mutating func giveUp(_ key: Key, for errors: inout [FerryError]) {
        if let assembly = remove(key) { errors.append(Self.truncated(assembly, "others came")) }
    }

    private static func truncated(_ assembly: Assembly, _ what: String) -> FerryError {
        FerryError(
            .truncatedMessage,
            "\(assembly.fragments.count) of \(assembly.total) fragments of a packet have come from the peer, and \(what)."
        )
    }

    private static func malformed(_ what: String) -> FerryError {
        FerryError(.malformedStream, "A fragment from the peer \(what).")
    }
}
