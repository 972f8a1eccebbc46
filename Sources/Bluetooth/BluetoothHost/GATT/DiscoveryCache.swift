/// The request that found a result on a peer.
enum DiscoveryKey: Sendable, Hashable, Codable {
    case services(UUID?)
    case included(ClosedRange<UInt16>)
    case characteristics(ClosedRange<UInt16>)
    case descriptors(ClosedRange<UInt16>)
    /// A characteristic's Client Characteristic Configuration, by the handle of its value.
    case configuration(of: UInt16)

    /// Nil for requests that find nothing.
    init?(_ request: ClientRequest) {
        switch request {
        case .services(let uuid): self = .services(uuid)
        case .includedServices(let range): self = .included(range)
        case .characteristics(let range): self = .characteristics(range)
        case .descriptors(let range): self = .descriptors(range)
        case .configure(let value, _, _): self = .configuration(of: value)
        case .read, .readByType, .write: return nil
        }
    }
}

/// The results of discoveries on peers, so that they need not be repeated (Core Specification 5.4, Vol 3, Part G,
/// 2.5.2).
///
/// It serves as long as a peer's Database Hash is the same, or, for a server without one, as long as peers are bonded and
/// no Service Changed comes. Entries are held by address as well as by hash: the hash's key is known to all, so that by
/// the hash alone one peer could give answers for another.
struct DiscoveryCache: Sendable {
    /// Peers that are remembered, at most; the one used longest ago is forgotten first.
    static let peerLimit = 32
    /// Services, characteristics and descriptors of one peer that are remembered, at most.
    static let itemLimit = 1024

    struct Entry: Sendable, Hashable, Codable {
        let address: Address
        /// Whether it was learnt over links that only a bonded peer can have encrypted.
        let isProven: Bool
        /// Nil for a bonded server that has none, empty when it is not known.
        var hash: [UInt8]?
        /// The Service Changed characteristic, which a bonded server uses before anything is asked.
        var serviceChanged: UInt16?
        var results: [DiscoveryKey: ClientResult] = [:]
        var count = 0
    }

    /// The one used last comes last.
    private(set) var entries: [Entry] = []

    /// Puts stored entries back.
    init(_ entries: [Entry] = []) { self.entries = Array(entries.suffix(Self.peerLimit)) }

    /// Uses the results for a server with this hash; forgets those found under another hash.
    mutating func use(_ address: Address, hash: [UInt8]?, isProven: Bool) {
        guard let place = entries.firstIndex(where: { $0.address == address }) else {
            entries.append(Entry(address: address, isProven: isProven, hash: hash))
            if entries.count > Self.peerLimit { entries.removeFirst() }
            return
        }
        let entry = entries.remove(at: place)
        entries.append(entry)
        guard entry.hash != hash || entry.isProven != isProven else { return }
        entries[entries.count - 1] = Entry(
            address: address, isProven: isProven, hash: hash,
            serviceChanged: entry.isProven == isProven ? entry.serviceChanged : nil)
    }

    /// The answer to a request that has been made before.
    func answer(_ key: DiscoveryKey, of address: Address) -> ClientResult? {
        guard let entry = entries.last(where: { $0.address == address }) else { return nil }
        if let known = entry.results[key] { return known }
        // One type's services are among all.
        guard case .services(let uuid?) = key, case .services(let all)? = entry.results[.services(nil)] else {
            return nil
        }
        return .services(all.filter { $0.uuid == uuid })
    }

    /// Keeps an answer, as far as there is room.
    mutating func keep(_ result: ClientResult, for key: DiscoveryKey, of address: Address) {
        guard let place = entries.lastIndex(where: { $0.address == address }), entries[place].results[key] == nil,
            entries[place].count + result.itemCount <= Self.itemLimit
        else { return }
        entries[place].results[key] = result
        entries[place].count += result.itemCount
    }

    /// Forgets the results for one peer.
    mutating func forget(_ address: Address) {
        guard let entry = entries.first(where: { $0.address == address }) else { return }
        use(address, hash: [], isProven: entry.isProven)
    }

    /// Forgets the peer altogether.
    mutating func remove(_ address: Address) { entries.removeAll { $0.address == address } }

    /// The Service Changed characteristic of a server.
    func serviceChanged(of address: Address) -> UInt16? { entries.last { $0.address == address }?.serviceChanged }

    mutating func setServiceChanged(_ handle: UInt16, of address: Address) {
        guard let place = entries.lastIndex(where: { $0.address == address }),
            entries[place].serviceChanged != handle
        else { return }
        entries[place].serviceChanged = handle
    }
}

extension ClientResult {
    /// What it takes of the cache's room; an empty answer is one too.
    fileprivate var itemCount: Int {
        switch self {
        case .services(let found): found.count + 1
        case .characteristics(let found): found.count + 1
        case .descriptors(let found): found.count + 1
        case .value, .done: 1
        }
    }
}
