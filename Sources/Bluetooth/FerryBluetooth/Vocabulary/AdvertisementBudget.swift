/// How much an advertisement may hold, in bytes of AD structures: each one's data and the two bytes of length and type
/// before it.
public struct AdvertisingBudget: Sendable, Hashable {
    /// Bytes in the advertising packet, of which the flags take ``AdvertisingPackets/flags``'s three.
    public var advertisingBytes: Int
    /// Bytes in the scan response, which only scanners that ask for it receive.
    public var scanResponseBytes: Int
    /// Whether the scan response holds the local name and nothing else.
    public var scanResponseIsForName: Bool
    /// Whether services that do not fit go to an overflow area, where peers that look for them by name find them.
    public var hasOverflowArea: Bool

    /// Describes a budget; negative sizes count as zero.
    public init(
        advertisingBytes: Int, scanResponseBytes: Int, scanResponseIsForName: Bool = false,
        hasOverflowArea: Bool = false
    ) {
        self.advertisingBytes = max(0, advertisingBytes)
        self.scanResponseBytes = max(0, scanResponseBytes)
        self.scanResponseIsForName = scanResponseIsForName
        self.hasOverflowArea = hasOverflowArea
    }

    /// Legacy advertising: 31 bytes and 31 more in the scan response (Core Specification 5.4, Vol 6, Part B, 2.3.1.1
    /// and 2.3.2.2).
    public static let legacy = AdvertisingBudget(advertisingBytes: 31, scanResponseBytes: 31)

    /// What `CBPeripheralManager.startAdvertising(_:)` documents: 28 bytes besides the flags for names and services, 10
    /// bytes of local name in the scan response, an overflow area for further services.
    ///
    /// Apple's text leaves the two header bytes of each structure out of both figures. The first cannot be meant so,
    /// because 28 bytes, the flags and a header are more than a packet's 31; it is taken with headers here and the
    /// second without.
    public static let coreBluetooth = AdvertisingBudget(
        advertisingBytes: 31, scanResponseBytes: 12, scanResponseIsForName: true, hasOverflowArea: true)

    /// Extended advertising that takes connections: 245 bytes in one packet and no scan response, for such
    /// advertisements are neither chained nor scannable (Core Specification 5.4, Vol 6, Part B, 2.3.4: 255 bytes, less
    /// 10 of extended header).
    public static let extended = AdvertisingBudget(advertisingBytes: 245, scanResponseBytes: 0)
}

extension Advertisement {
    /// What of this advertisement goes on the air within a budget, and what does not.
    ///
    /// The data of services and of the manufacturer come first, and are never cut: ``AdvertisingReport/encoded(for:)`` throws
    /// when there is no space for them. Services follow, in their order, each into the first packet that has space; one that is
    /// named twice is advertised once. The local name comes last: whole if a packet has space for it, otherwise in the packet
    /// with more, cut between Unicode scalars. An empty name is no name. Names are at most 248 bytes (Core Specification 5.4,
    /// Vol 3, Part C, 3.2.2).
    public func fitted(to budget: AdvertisingBudget) -> AdvertisingReport {
        var layout = AdvertisingLayout(budget)
        layout.placeData(serviceData: serviceData, manufacturerData: manufacturerData)
        var seen: Set<BluetoothUUID> = []
        var advertised: [BluetoothUUID] = []
        var omitted: [BluetoothUUID] = []
        for service in services where seen.insert(service).inserted {
            if layout.place(service) { advertised.append(service) } else { omitted.append(service) }
        }
        let name = localName.flatMap { layout.place(name: $0) }
        return AdvertisingReport(
            advertised: AdvertisementData(
                localName: name, services: advertised, overflowServices: budget.hasOverflowArea ? omitted : [],
                isConnectable: isConnectable, manufacturerData: manufacturerData, serviceData: serviceData),
            omittedServices: omitted, isNameShortened: name ?? "" != localName ?? "")
    }
}

/// The bytes of an advertisement as a controller takes them.
public struct AdvertisingPackets: Sendable, Hashable {
    /// The AD structures of the advertising packet.
    public var advertising: [UInt8]
    /// The AD structures of the scan response; empty when there is none.
    public var scanResponse: [UInt8]

    /// Flags every advertisement of Ferry's begins with: general discoverable, no BR/EDR (Core Specification
    /// Supplement, Part A, 1.3).
    public static let flags: [UInt8] = [0x02, 0x01, 0x06]

    /// Made by ``AdvertisingReport/encoded(for:)``, or from a controller's bytes.
    public init(advertising: [UInt8], scanResponse: [UInt8] = []) {
        self.advertising = advertising
        self.scanResponse = scanResponse
    }
}

extension AdvertisingReport {
    /// The raw AD structures, the flags first. Lists from which services were left out are marked incomplete, a cut
    /// name as shortened. A report made by ``Advertisement/fitted(to:)`` always fits the same budget.
    ///
    /// An overflow area has no published form: its services are not in these bytes.
    ///
    /// - Throws: `invalidArgument` with what does not fit, with a manufacturer's data that have no company identifier, or with
    ///   a transmit power outside -127...127 dBm.
    public func encoded(for budget: AdvertisingBudget) throws(BluetoothError) -> AdvertisingPackets {
        var layout = AdvertisingLayout(budget)
        if let data = advertised.manufacturerData, data.count < 2 {
            throw BluetoothError(
                .invalidArgument,
                "The manufacturer's data have \(data.count) bytes; they begin with the company identifier, which has 2."
            )
        }
        if let missing = layout.placeData(
            serviceData: advertised.serviceData, manufacturerData: advertised.manufacturerData)
        {
            try fits(false, missing, budget)
        }
        for service in advertised.services {
            try fits(layout.place(service), "service \(service)", budget)
        }
        if let power = advertised.txPower {
            guard let power = Int8(exactly: power), power != .min else {
                throw BluetoothError(
                    .invalidArgument,
                    "A transmit power of \(power) dBm cannot be advertised; -127 to 127 dBm can.")
            }
            try fits(layout.place(.txPower, [UInt8(bitPattern: power)]), "the transmit power", budget)
        }
        if let name = advertised.localName, !name.isEmpty {
            try fits(
                layout.place(name: name, isShortened: isNameShortened) == name,
                "the local name (\(name.utf8.count) bytes)", budget)
        }
        return layout.packets(missing: omittedServices + advertised.overflowServices)
    }

    private func fits(_ fits: Bool, _ what: String, _ budget: AdvertisingBudget) throws(BluetoothError) {
        guard !fits else { return }
        throw BluetoothError(
            .invalidArgument,
            "The advertisement is too long: \(what) does not fit into \(budget.advertisingBytes) bytes and "
                + "\(budget.scanResponseBytes) in the scan response. Leave something out, or use "
                + "Advertisement.fitted(to:).")
    }
}

extension AdvertisementData {
    /// The raw AD structures of a complete advertisement; see ``AdvertisingReport/encoded(for:)``.
    ///
    /// - Throws: `invalidArgument` with what does not fit.
    public func encoded(for budget: AdvertisingBudget = .legacy) throws(BluetoothError) -> AdvertisingPackets {
        try AdvertisingReport(advertised: self).encoded(for: budget)
    }
}
