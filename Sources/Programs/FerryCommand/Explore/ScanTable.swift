import Ferry
import FerryBluetooth
import FerryLab

/// The peripherals that a scan has heard, and as text: a value that is told each event and its time.
struct ScanTable: Sendable {
    /// Which peripherals are wanted.
    struct Filter: Sendable {
        /// A part of the name, in capitals or not.
        let name: String?
        /// The least strength, in dBm.
        let rssi: Int?
        /// Services of which one must be advertised; empty for any.
        let services: [BluetoothUUID]

        func takes(_ discovery: Discovery) -> Bool {
            if let rssi, discovery.rssi < rssi { return false }
            if let name {
                guard let heard = discovery.advertisement.localName else { return false }
                guard heard.lowercased().contains(name.lowercased()) else { return false }
            }
            let offered = discovery.advertisement.services + discovery.advertisement.overflowServices
            return services.isEmpty || services.contains { offered.contains($0) }
        }
    }

    /// A peripheral that was heard.
    private struct Row: Sendable {
        var identity: PeerIdentity
        var name: String?
        var services: [BluetoothUUID]
        /// Averaged, in sixteenths of a dBm: single packets differ by 10 dB and more.
        var manufacturer: String?
        var strength: Int
        var heard: Timestamp
        /// When it was heard first, for an order that holds still.
        var order: Int
    }

    let filter: Filter
    private var rows: [PeerID: Row] = [:]
    private var count = 0
    /// Peripherals that were let go of to make room.
    private(set) var forgotten = 0
    /// A peripheral that changes its address at each packet must not fill the memory.
    static let maximumRows = 1000

    init(_ filter: Filter = Filter(name: nil, rssi: nil, services: [])) { self.filter = filter }

    /// How many peripherals there are.
    var size: Int { rows.count }

    /// - Returns: whether the peripheral is wanted.
    @discardableResult mutating func hear(_ discovery: Discovery, at now: Timestamp) -> Bool {
        let advertisement = discovery.advertisement
        if var row = rows[discovery.peripheral] {
            row.strength += (16 * discovery.rssi - row.strength) / 4
            row.heard = now
            // A scan response has a name where the advertisement itself has none.
            row.name = advertisement.localName ?? row.name
            row.manufacturer = advertisement.manufacturerData.map(Manufacturer.text) ?? row.manufacturer
            for service in advertisement.services where row.services.count < 32 && !row.services.contains(service) {
                row.services.append(service)
            }
            rows[discovery.peripheral] = row
            return true
        }
        guard filter.takes(discovery) else { return false }
        if rows.count == Self.maximumRows, let oldest = rows.min(by: { $0.value.heard < $1.value.heard })?.key {
            rows[oldest] = nil
            forgotten += 1
        }
        rows[discovery.peripheral] = Row(
            identity: discovery.identity, name: advertisement.localName,
            services: Array(advertisement.services.prefix(32)),
            manufacturer: advertisement.manufacturerData.map(Manufacturer.text), strength: 16 * discovery.rssi,
            heard: now, order: count)
        count += 1
        return true
    }

    /// The table, a line each with no end of line. Columns are as wide as they must be.
    ///
    /// - Parameters:
    ///   - now: what ages are counted to.
    ///   - width: where lines are cut; nil for nowhere.
    ///   - height: how many lines there may be; the rest is counted in the last one.
    func lines(at now: Timestamp, width: Int? = nil, height: Int = .max) -> [String] {
        let sorted = rows.values.sorted { ($0.strength, $1.order) > ($1.strength, $0.order) }
        let hasData = rows.values.contains { $0.manufacturer != nil }
        var cells = [["NAME", "ADDRESS", "RSSI", "AGE", "SERVICES"] + (hasData ? ["MANUFACTURER DATA"] : [])]
        let shown = sorted.count + 1 > height ? sorted.prefix(max(0, height - 2)) : sorted[...]
        for row in shown {
            let age = max(0, (now - row.heard) / .seconds(1))
            let columns = [
                String((row.name?.forTerminal ?? "-").prefix(40)), row.identity.name.forTerminal,
                "\(Int((Double(row.strength) / 16).rounded()))",
                age < 10 ? "\(number(age, 1)) s" : "\(Int(min(age, 1e6))) s",
                row.services.isEmpty ? "-" : row.services.map(\.label).joined(separator: ", "),
            ]
            cells.append(columns + (hasData ? [row.manufacturer ?? "-"] : []))
        }
        let widths = cells[0].indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        var lines = cells.map { row in
            let padded = zip(row, widths).enumerated().map { column, cell in
                let space = String(repeating: " ", count: cell.1 - cell.0.count)
                if column == row.count - 1 { return cell.0 }
                return column == 2 || column == 3 ? space + cell.0 : cell.0 + space
            }
            return padded.joined(separator: "  ")
        }
        if shown.count < sorted.count { lines.append("and \(sorted.count - shown.count) more") }
        if let width { lines = lines.map { String($0.prefix(max(1, width))) } }
        return lines
    }
}

extension BluetoothUUID {
    /// The name that the Bluetooth SIG has given, or the digits.
    var label: String { name ?? description }
}

/// Manufacturer data of advertisements (Core Specification Supplement, Part A, 1.4).
enum Manufacturer {
    /// Company identifiers that are met most (Assigned Numbers, 7).
    private static let companies: [Int: String] = [
        0x0006: "Microsoft", 0x000D: "Texas Instruments", 0x004C: "Apple", 0x0059: "Nordic Semiconductor",
        0x0075: "Samsung", 0x00E0: "Google", 0x02E5: "Espressif", 0x0499: "Ruuvi", 0xFFFF: "no company",
    ]

    /// The company, by name or number, and its bytes in hexadecimal, cut at 24 bytes.
    static func text(_ data: [UInt8]) -> String {
        guard data.count >= 2 else { return ValueFormat.hexadecimal(data) }
        let company = Int(data[0]) | Int(data[1]) << 8
        let digits = String(company, radix: 16, uppercase: true)
        let name = companies[company] ?? "0x" + String(repeating: "0", count: 4 - digits.count) + digits
        let rest = data.dropFirst(2)
        guard !rest.isEmpty else { return name }
        return "\(name) \(ValueFormat.hexadecimal(Array(rest.prefix(24))))" + (rest.count > 24 ? "..." : "")
    }
}
