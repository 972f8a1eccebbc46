/// Advertising data that controllers report in pieces (Core Specification 5.4, Vol 4, Part E, 7.7.65.13): what does not fit an
/// event is marked "more data to come".
struct ReportFragments: Sendable {
    /// Data of one advertisement, at most, in octets (Vol 6, Part B, 2.3.4.9).
    static let dataLimit = 1650
    /// Advertisements that are being put together, at most; the oldest is given up first.
    static let limit = 16

    private var partial: [AdvertisingReport] = []

    /// Takes a report; returns what is whole by it.
    mutating func join(_ report: AdvertisingReport) -> AdvertisingReport? {
        let place = partial.firstIndex {
            $0.address == report.address && $0.set == report.set && $0.isScanResponse == report.isScanResponse
        }
        guard report.isPartial || place != nil else { return report }
        var whole = report
        if let place { whole.data = Array((partial.remove(at: place).data + report.data).prefix(Self.dataLimit)) }
        guard report.isPartial else { return whole }
        partial.append(whole)
        if partial.count > Self.limit { partial.removeFirst() }
        return nil
    }
}
