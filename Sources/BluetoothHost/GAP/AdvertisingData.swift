/// Advertising data: length, type and value, again and again (Core Specification 5.4, Vol 3, Part C, 11, and the Core
/// Specification Supplement, Part A).
public struct AdvertisingData: Sendable, Hashable {
    /// The local name, whole or shortened.
    public var localName: String?
    /// Whether the local name is only its beginning.
    public var isNameShortened = false
    /// Services that are named.
    public var services: [UUID] = []
    /// Transmit power in dBm.
    public var txPower: Int8?
    /// Manufacturer's data, company identifier first.
    public var manufacturerData: [UInt8]?
    /// Data of services.
    public var serviceData: [UUID: [UInt8]] = [:]

    /// Nothing.
    public init() {}

    /// Reads what is understood and passes over the rest. Data ends where a length is 0 or leads past the end.
    public init(_ bytes: [UInt8]) {
        var start = 0
        while start < bytes.count {
            let count = Int(bytes[start])
            guard count > 0, start + count < bytes.count else { return }
            read(bytes[start + 1], bytes[(start + 2)..<(start + 1 + count)])
            start += 1 + count
        }
    }

    private mutating func read(_ type: UInt8, _ value: ArraySlice<UInt8>) {
        switch type {
        case 0x02, 0x03: readServices(value, width: 2)
        case 0x04, 0x05: readServices(value, width: 4)
        case 0x06, 0x07: readServices(value, width: 16)
        case 0x08, 0x09:
            localName = String(decoding: value, as: UTF8.self)
            isNameShortened = type == 0x08
        case 0x0A: txPower = value.first.map { Int8(bitPattern: $0) }
        case 0x16: readServiceData(value, width: 2)
        case 0x20: readServiceData(value, width: 4)
        case 0x21: readServiceData(value, width: 16)
        case 0xFF: manufacturerData = Array(value)
        default: break
        }
    }

    private mutating func readServices(_ value: ArraySlice<UInt8>, width: Int) {
        var rest = value
        while rest.count >= width {
            if let uuid = UUID(bytes: rest.prefix(width)), !services.contains(uuid) { services.append(uuid) }
            rest = rest.dropFirst(width)
        }
    }

    private mutating func readServiceData(_ value: ArraySlice<UInt8>, width: Int) {
        guard value.count >= width, let uuid = UUID(bytes: value.prefix(width)) else { return }
        serviceData[uuid] = Array(value.dropFirst(width))
    }

    /// Takes what a scan response says beside what an advertisement said.
    public mutating func merge(_ other: AdvertisingData) {
        if let name = other.localName, localName == nil || isNameShortened {
            localName = name
            isNameShortened = other.isNameShortened
        }
        for service in other.services where !services.contains(service) { services.append(service) }
        txPower = other.txPower ?? txPower
        manufacturerData = other.manufacturerData ?? manufacturerData
        serviceData.merge(other.serviceData) { $1 }
    }
}

extension AdvertisingPayload {
    /// Fits a name and services into two times 31 bytes: flags and services first, then the name, in the scan response
    /// where the advertisement is full. The name is shortened, at a character, when it must be; services that find no
    /// place are returned.
    public static func fitting(
        localName: String?, services: [UUID]
    ) -> (payload: AdvertisingPayload, omitted: [UUID], isNameShortened: Bool) {
        var data: [UInt8] = [0x02, 0x01, 0x06]  // general discoverable, no BR/EDR
        var response: [UInt8] = []
        var omitted: [UUID] = []
        let short = services.filter(\.isShort)
        let long = services.filter { !$0.isShort }
        // The name wants its place in the scan response kept free as far as the services allow.
        for (uuids, width, type) in [(short, 2, UInt8(0x02)), (long, 16, 0x06)] where !uuids.isEmpty {
            let inData = min(uuids.count, max(0, 31 - data.count - 2) / width)
            let inResponse =
                localName == nil ? min(uuids.count - inData, max(0, 31 - response.count - 2) / width) : 0
            let isComplete = inData + inResponse == uuids.count && inResponse == 0
            append(uuids[..<inData], type + (isComplete ? 1 : 0), to: &data)
            append(uuids[inData..<inData + inResponse], type, to: &response)
            omitted += uuids[(inData + inResponse)...]
        }
        var isShortened = false
        if let localName {
            let whole = Array(localName.utf8)
            if data.count + 2 + whole.count <= 31 {
                data += [UInt8(whole.count + 1), 0x09] + whole
            } else {
                var name = localName
                while name.utf8.count > 29 { name.removeLast() }
                isShortened = name.utf8.count < whole.count
                response += [UInt8(name.utf8.count + 1), isShortened ? 0x08 : 0x09] + Array(name.utf8)
            }
        }
        return (AdvertisingPayload(data: data, scanResponse: response), omitted, isShortened)
    }

    private static func append(_ uuids: ArraySlice<UUID>, _ type: UInt8, to data: inout [UInt8]) {
        guard let first = uuids.first else { return }
        data.append(UInt8(truncatingIfNeeded: uuids.count * first.bytes.count + 1))
        data.append(type)
        for uuid in uuids { data += uuid.bytes }
    }
}
