extension AdvertisementData {
    /// Reads raw AD structures as a scanner hears them, of the advertising packet and then of the scan response.
    ///
    /// Scanners hear every advertiser on the air, so nothing here is an error. Per packet, reading ends at a structure
    /// of length zero (early termination, Core Specification 5.4, Vol 3, Part C, 11) or at one that claims more bytes
    /// than there are; earlier structures count. Unknown types, and UUIDs and values that are cut short, are skipped.
    /// Of several structures of one kind, lists are joined; of names the first counts, a complete one before a
    /// shortened one; of other kinds the first. A name ends at its first zero byte, and bytes of it that are not UTF-8
    /// become U+FFFD. Memory stays within a small multiple of the bytes given.
    ///
    /// - Parameters:
    ///   - advertising: the AD structures of the advertising packet.
    ///   - scanResponse: those of the scan response, empty when none came.
    ///   - isConnectable: whether the packet's type allows connections, which the structures do not say.
    public init(parsing advertising: [UInt8], scanResponse: [UInt8] = [], isConnectable: Bool = true) {
        self.init(isConnectable: isConnectable)
        var reader = ADReader()
        reader.read(advertising, into: &self)
        reader.read(scanResponse, into: &self)
    }
}

/// What must be remembered between the two packets of an advertisement.
private struct ADReader {
    private var known: Set<BluetoothUUID> = []
    private var hasCompleteName = false

    mutating func read(_ bytes: [UInt8], into result: inout AdvertisementData) {
        var rest = bytes[...]
        while let length = rest.popFirst(), length > 0, Int(length) <= rest.count, let type = rest.first {
            read(type, rest.prefix(Int(length)).dropFirst(), into: &result)
            rest = rest.dropFirst(Int(length))
        }
    }

    private mutating func read(_ type: UInt8, _ data: ArraySlice<UInt8>, into result: inout AdvertisementData) {
        switch type {
        case 0x02, 0x03: readServices(data, size: 2, into: &result)
        case 0x04, 0x05: readServices(data, size: 4, into: &result)
        case 0x06, 0x07: readServices(data, size: 16, into: &result)
        case 0x08, 0x09:
            let isComplete = type == 0x09
            guard result.localName == nil || isComplete && !hasCompleteName else { return }
            let text = data.prefix { $0 != 0 }
            guard !text.isEmpty else { return }
            result.localName = String(decoding: text, as: UTF8.self)
            hasCompleteName = isComplete
        case 0x0A:
            guard result.txPower == nil, data.count == 1, let power = data.first else { return }
            result.txPower = Int(Int8(bitPattern: power))
        case 0x16: readServiceData(data, size: 2, into: &result)
        case 0x20: readServiceData(data, size: 4, into: &result)
        case 0x21: readServiceData(data, size: 16, into: &result)
        case 0xFF:
            guard result.manufacturerData == nil, data.count >= 2 else { return }
            result.manufacturerData = Array(data)
        default: return
        }
    }

    private mutating func readServices(_ data: ArraySlice<UInt8>, size: Int, into result: inout AdvertisementData) {
        var rest = data
        while rest.count >= size {
            guard let service = try? BluetoothUUID(littleEndianBytes: rest.prefix(size)) else { return }
            rest = rest.dropFirst(size)
            if known.insert(service).inserted { result.services.append(service) }
        }
    }

    private func readServiceData(_ data: ArraySlice<UInt8>, size: Int, into result: inout AdvertisementData) {
        guard data.count >= size, let service = try? BluetoothUUID(littleEndianBytes: data.prefix(size)),
            result.serviceData[service] == nil
        else { return }
        result.serviceData[service] = Array(data.dropFirst(size))
    }
}
