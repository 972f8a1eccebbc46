import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message that is being encoded: its values, and what each needs to be written.
final class CBORWriter {
    private let dates: CBORDateFormat
    private let outerDepth: Int
    /// Each access is one call that calls nothing back, so none is within another; a check of that at each would cost a
    /// tenth of the time.
    @exclusivity(unchecked) var tree: CBORTree

    /// - Parameter outerDepth: how deep the message in which this one is embedded nests around it.
    init(dates: CBORDateFormat, maximumDepth: Int, maximumValues: Int, outerDepth: Int = 0) {
        self.dates = dates
        self.outerDepth = outerDepth
        tree = CBORTree(maximumDepth: maximumDepth, maximumValues: maximumValues)
    }

    func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
        let root = tree.addRoot(depth: outerDepth, type: T.self)
        try CBORSlot(writer: self, node: root).encode(value)
        return try tree.finish()
    }

    /// Writes a value whose type has separate items; false for all others.
    func writeKnown<T: Encodable>(_ value: T, _ node: Int) throws -> Bool {
        if T.self == Date.self, let date = value as? Date {
            let written: CBORDates.Written
            do { written = try CBORDates.write(date, as: dates) } catch {
                guard case .value(let why) = error else { return false }
                // Not the date itself: printing one that is not a number ends the process.
                throw tree.error(date.timeIntervalSinceReferenceDate, node, nil, why)
            }
            try tree.scalar(node, depth: written.depth, values: written.values) { $0 += written.bytes }
        } else if T.self == Data.self, let data = value as? Data {
            try tree.scalar(node) { bytes in
                CBORNumber.append(2, UInt64(data.count), to: &bytes)
                bytes += data
            }
        } else if T.self == [UInt8].self, let data = value as? [UInt8] {
            try tree.scalar(node) { bytes in
                CBORNumber.append(2, UInt64(data.count), to: &bytes)
                bytes += data
            }
        } else if T.self == UUID.self, let uuid = value as? UUID {
            try tree.scalar(node, depth: 1) { bytes in
                CBORNumber.append(6, 37, to: &bytes)
                CBORNumber.append(2, 16, to: &bytes)
                withUnsafeBytes(of: uuid.uuid) { bytes += $0 }
            }
        } else {
            return false
        }
        return true
    }

    /// Writes a value as a message in a byte string.
    func embed<T: Encodable>(_ value: T, _ node: Int) throws {
        let inner = CBORWriter(
            dates: dates, maximumDepth: tree.maximumDepth, maximumValues: tree.maximumValues,
            outerDepth: tree.depth(node) + 1)
        let message = try inner.encode(value)
        try tree.scalar(node, depth: 1) { bytes in
            CBORNumber.append(6, 24, to: &bytes)
            CBORNumber.append(2, UInt64(message.count), to: &bytes)
            bytes += message
        }
    }
}
