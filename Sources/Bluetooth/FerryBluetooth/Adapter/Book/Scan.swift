/// What a central role looks for, and what it has been told.
public struct Scan<Advertiser: Hashable & Sendable>: Sendable {
    /// What it looks for.
    public let request: ScanRequest
    private var reported: [Advertiser: AdvertisementData] = [:]

    /// Begins with nothing reported.
    ///
    /// - Throws: `invalidArgument` when nothing that is ever heard can match.
    public init(_ request: ScanRequest) throws(BluetoothError) {
        if let window = request.rssi, !window.overlaps(-127...20) {
            throw BluetoothError(
                .invalidArgument,
                "The signal-strength window \(window) holds no value that is ever heard; choose from -127 to 20 dBm.")
        }
        self.request = request
    }

    /// How many advertisers are remembered.
    public var count: Int { reported.count }

    /// Whether to report the advertisement to the owner: it matches, and is new, unless duplicates are wanted.
    ///
    /// - Parameters:
    ///   - advertisement: the received advertisement.
    ///   - rssi: in dBm; nil when it is not known, which passes only windows that begin at -127.
    ///   - advertiser: by whom.
    public func wants(_ advertisement: AdvertisementData, rssi: Int?, from advertiser: Advertiser) -> Bool {
        guard request.allowsDuplicates || reported[advertiser] != advertisement else { return false }
        if let window = request.rssi, !(rssi.map(window.contains) ?? (window.lowerBound <= -127)) { return false }
        if let name = request.name, advertisement.localName != name { return false }
        return request.services.isEmpty
            || request.services.contains {
                advertisement.services.contains($0) || advertisement.overflowServices.contains($0)
            }
    }

    /// The same, and takes it for told.
    public mutating func report(_ advertisement: AdvertisementData, rssi: Int?, from advertiser: Advertiser) -> Bool {
        guard wants(advertisement, rssi: rssi, from: advertiser) else { return false }
        reported[advertiser] = advertisement
        return true
    }

    /// The advertiser has gone, or was forgotten: it is new when it is heard again.
    public mutating func forget(_ advertiser: Advertiser) { reported[advertiser] = nil }
}
