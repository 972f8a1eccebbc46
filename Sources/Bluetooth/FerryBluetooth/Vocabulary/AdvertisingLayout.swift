/// The type byte of an AD structure (Assigned Numbers, 2.3).
struct ADType: Sendable, Hashable {
    let rawValue: UInt8

    static let shortenedName = ADType(rawValue: 0x08)
    static let completeName = ADType(rawValue: 0x09)
    static let txPower = ADType(rawValue: 0x0A)
    static let manufacturerData = ADType(rawValue: 0xFF)

    static func services(bitWidth: Int, isComplete: Bool) -> ADType {
        ADType(rawValue: (bitWidth == 16 ? 0x02 : bitWidth == 32 ? 0x04 : 0x06) + (isComplete ? 1 : 0))
    }

    static func serviceData(bitWidth: Int) -> ADType {
        ADType(rawValue: bitWidth == 16 ? 0x16 : bitWidth == 32 ? 0x20 : 0x21)
    }
}

/// Places AD structures into the two packets, the first that has space.
///
/// A packet may name the services of one width in one list only (Core Specification Supplement, Part A, 1.1), so lists
/// are written at the end, when it is known what they hold.
struct AdvertisingLayout {
    /// A length byte counts the type and at most 254 bytes of data.
    private static let maximumData = 254
    private static let maximumName = 248

    private struct Packet {
        var space: Int
        let takesAll: Bool
        var services: [Int: [BluetoothUUID]] = [:]
        var structures: [UInt8] = []

        func fits(_ count: Int) -> Bool { count <= maximumData && count + 2 <= space }

        mutating func append(_ type: ADType, _ data: some Collection<UInt8>) {
            structures.append(UInt8(truncatingIfNeeded: data.count + 1))
            structures.append(type.rawValue)
            structures.append(contentsOf: data)
            space -= data.count + 2
        }
    }

    private var advertising: Packet
    private var scanResponse: Packet

    init(_ budget: AdvertisingBudget) {
        advertising = Packet(space: budget.advertisingBytes - AdvertisingPackets.flags.count, takesAll: true)
        scanResponse = Packet(space: budget.scanResponseBytes, takesAll: !budget.scanResponseIsForName)
    }

    /// Adds a service to the list of its width. Returns whether there was space.
    mutating func place(_ service: BluetoothUUID) -> Bool {
        let width = service.bitWidth
        return place { packet in
            let listed = packet.services[width]?.count ?? 0
            let needed = width / 8 + (listed == 0 ? 2 : 0)
            guard packet.takesAll, needed <= packet.space, (listed + 1) * width / 8 <= Self.maximumData else {
                return false
            }
            packet.services[width, default: []].append(service)
            packet.space -= needed
            return true
        }
    }

    /// Adds any other structure but the name. Returns whether there was space.
    mutating func place(_ type: ADType, _ data: [UInt8]) -> Bool {
        place { packet in
            guard packet.takesAll, packet.fits(data.count) else { return false }
            packet.append(type, data)
            return true
        }
    }

    /// Adds the data of services and of the manufacturer. Returns what found no space, in words, or nil.
    @discardableResult
    mutating func placeData(serviceData: [BluetoothUUID: [UInt8]], manufacturerData: [UInt8]?) -> String? {
        var missing: String?
        for (service, data) in serviceData.sorted(by: { $0.key.value < $1.key.value })
        where !place(.serviceData(bitWidth: service.bitWidth), service.littleEndianBytes + data) {
            missing = missing ?? "the data of service \(service) (\(data.count) bytes)"
        }
        if let data = manufacturerData, !place(.manufacturerData, data) {
            missing = missing ?? "the manufacturer's data (\(data.count) bytes)"
        }
        return missing
    }

    /// Adds the name, cut when it must be. Returns the placed part, or nil.
    mutating func place(name: String, isShortened: Bool = false) -> String? {
        guard !name.isEmpty else { return nil }
        let count = name.utf8.count
        if count <= Self.maximumName {
            let placed = place { packet in
                guard packet.fits(count) else { return false }
                packet.append(isShortened ? .shortenedName : .completeName, Array(name.utf8))
                return true
            }
            if placed { return name }
        }
        let toResponse = scanResponse.space > advertising.space
        let space = min((toResponse ? scanResponse : advertising).space - 2, Self.maximumName)
        let short = name.prefix(utf8Count: space)
        guard !short.isEmpty else { return nil }
        if toResponse {
            scanResponse.append(.shortenedName, Array(short.utf8))
        } else {
            advertising.append(.shortenedName, Array(short.utf8))
        }
        return short
    }

    private mutating func place(_ body: (inout Packet) -> Bool) -> Bool {
        body(&advertising) || body(&scanResponse)
    }

    /// The bytes. A list is complete when one packet names every service of its width.
    func packets(missing: [BluetoothUUID]) -> AdvertisingPackets {
        let incomplete = Set(missing.map(\.bitWidth)).union(
            advertising.services.keys.filter { scanResponse.services[$0] != nil })
        func lists(_ packet: Packet) -> [UInt8] {
            packet.services.sorted { $0.key < $1.key }.flatMap { width, services in
                let type = ADType.services(bitWidth: width, isComplete: !incomplete.contains(width))
                return [UInt8(truncatingIfNeeded: services.count * width / 8 + 1), type.rawValue]
                    + services.flatMap(\.littleEndianBytes)
            }
        }
        return AdvertisingPackets(
            advertising: AdvertisingPackets.flags + lists(advertising) + advertising.structures,
            scanResponse: lists(scanResponse) + scanResponse.structures)
    }
}

extension String {
    /// The longest beginning of at most `limit` UTF-8 bytes that does not cut a Unicode scalar.
    func prefix(utf8Count limit: Int) -> String {
        var text = UnicodeScalarView()
        var count = 0
        for scalar in unicodeScalars {
            count += UTF8.width(scalar)
            guard count <= limit else { break }
            text.append(scalar)
        }
        return String(text)
    }
}
