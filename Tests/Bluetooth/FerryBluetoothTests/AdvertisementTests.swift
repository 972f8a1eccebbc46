import FerryBluetooth
import TestSupport
import Testing

/// The business card's service, as bytes on the air.
private let cardService = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
private let cardBytes: [UInt8] = [
    0x32, 0x30, 0xEA, 0x74, 0x71, 0x4A, 0xF4, 0x94, 0xF5, 0x47, 0xBB, 0x00, 0xE8, 0x0A, 0x7F, 0xE0,
]
private let otherService = BluetoothUUID(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF as UInt128)
private let otherBytes: [UInt8] = (0..<16).reversed().map { $0 * 0x11 }
private let wideService = BluetoothUUID(0x1234_5678 as UInt32)

@Suite("Advertising within a budget", .tags(.bluetooth, .advertising)) struct AdvertisementTests {
    @Test("Everything fits: complete lists and a complete name, in the first packet") func complete() throws {
        let advertisement = Advertisement(localName: "Ferry", services: [.battery, .heartRate])
        let report = advertisement.fitted(to: .legacy)
        #expect(
            report
                == AdvertisingReport(
                    advertised: AdvertisementData(localName: "Ferry", services: [.battery, .heartRate])))
        #expect(
            try report.encoded(for: .legacy)
                == AdvertisingPackets(advertising: [
                    0x02, 0x01, 0x06,  // flags
                    0x05, 0x03, 0x0F, 0x18, 0x0D, 0x18,  // complete list of 16-bit services
                    0x06, 0x09, 0x46, 0x65, 0x72, 0x72, 0x79,  // complete local name
                ]))
    }

    @Test("Lists of all three widths, the narrow first") func threeWidths() throws {
        let advertisement = Advertisement(services: [cardService, wideService, .battery])
        #expect(
            try advertisement.fitted(to: .legacy).encoded(for: .legacy)
                == AdvertisingPackets(
                    advertising: [0x02, 0x01, 0x06, 0x03, 0x03, 0x0F, 0x18, 0x05, 0x05, 0x78, 0x56, 0x34, 0x12]
                        + [0x11, 0x07] + cardBytes))
    }

    @Test("A service that the first packet cannot take goes to the scan response, and both lists are incomplete")
    func scanResponse() throws {
        let report = Advertisement(localName: "Ferry", services: [cardService, otherService]).fitted(to: .legacy)
        #expect(report.advertised.services == [cardService, otherService])
        #expect(report.omittedServices.isEmpty && !report.isNameShortened)
        let packets = try report.encoded(for: .legacy)
        #expect(
            packets
                == AdvertisingPackets(
                    advertising: [0x02, 0x01, 0x06, 0x11, 0x06] + cardBytes + [0x06, 0x09] + Array("Ferry".utf8),
                    scanResponse: [0x11, 0x06] + otherBytes))
    }

    @Test("What does not fit is reported, and a smaller service after it still goes out") func omitted() throws {
        let third = BluetoothUUID(0xFFEE as UInt128)
        let report = Advertisement(services: [cardService, otherService, third, .battery]).fitted(to: .legacy)
        #expect(report.advertised.services == [cardService, otherService, .battery])
        #expect(report.omittedServices == [third])
        #expect(report.advertised.overflowServices.isEmpty)
        let packets = try report.encoded(for: .legacy)
        #expect(
            packets.advertising == [0x02, 0x01, 0x06, 0x03, 0x03, 0x0F, 0x18, 0x11, 0x06] + cardBytes)
    }

    @Test("A name of 26 bytes fits the first packet, of 29 the scan response, of 30 neither")
    func nameLengths() throws {
        for (length, inResponse, shortened) in [
            (26, false, false), (27, true, false), (29, true, false), (30, true, true),
        ] {
            let name = String(repeating: "n", count: length)
            let report = Advertisement(localName: name).fitted(to: .legacy)
            #expect(report.isNameShortened == shortened)
            let packets = try report.encoded(for: .legacy)
            let structure = [UInt8(min(length, 29) + 1), shortened ? 0x08 : 0x09] + name.utf8.prefix(29)
            #expect(packets.scanResponse == (inResponse ? structure : []))
            #expect(packets.advertising == [0x02, 0x01, 0x06] + (inResponse ? [] : structure))
        }
    }

    @Test("CoreBluetooth: 28 bytes of structures, 10 bytes of name in the scan response, the rest in the overflow area")
    func coreBluetooth() throws {
        let eight = Advertisement(localName: "01234567", services: [cardService]).fitted(to: .coreBluetooth)
        #expect(
            try eight.encoded(for: .coreBluetooth)
                == AdvertisingPackets(
                    advertising: [0x02, 0x01, 0x06, 0x11, 0x07] + cardBytes + [0x09, 0x09] + Array("01234567".utf8)))

        let long = Advertisement(localName: "0123456789ABCDEF", services: [cardService, otherService, .battery])
        let report = long.fitted(to: .coreBluetooth)
        #expect(report.advertised.localName == "0123456789")
        #expect(report.isNameShortened)
        #expect(report.advertised.services == [cardService, .battery])
        #expect(report.omittedServices == [otherService])
        #expect(report.advertised.overflowServices == [otherService])
        #expect(
            try report.encoded(for: .coreBluetooth)
                == AdvertisingPackets(
                    advertising: [0x02, 0x01, 0x06, 0x03, 0x03, 0x0F, 0x18, 0x11, 0x06] + cardBytes,
                    scanResponse: [0x0B, 0x08] + Array("0123456789".utf8)))
    }

    @Test("CoreBluetooth: 13 16-bit services fill the first packet; the fourteenth overflows") func thirteen() {
        let services = (0..<14).map { BluetoothUUID(0x1800 + UInt16($0)) }
        let report = Advertisement(localName: "A", services: services).fitted(to: .coreBluetooth)
        #expect(report.advertised.services == Array(services[..<13]))
        #expect(report.advertised.overflowServices == [services[13]])
        #expect(report.advertised.localName == "A" && !report.isNameShortened)
    }

    @Test("Extended: 242 bytes besides the flags") func extended() throws {
        let name = String(repeating: "n", count: 248)
        let report = Advertisement(localName: name).fitted(to: .extended)
        #expect(report.isNameShortened && report.advertised.localName?.utf8.count == 240)
        let packets = try report.encoded(for: .extended)
        #expect(packets.advertising.count == 245 && packets.scanResponse.isEmpty)
        #expect(packets.advertising[3...4] == [0xF1, 0x08])
        // One list's length byte counts 254 bytes of data, 15 services of 16 bytes, however large the packet is.
        let services = (1...20).map { BluetoothUUID(UInt128($0)) }
        let roomy = AdvertisingBudget(advertisingBytes: 1650, scanResponseBytes: 0)
        #expect(Advertisement(services: services).fitted(to: roomy).omittedServices == Array(services[15...]))
    }

    @Test(
        "A name is cut between Unicode scalars",
        arguments: [
            ("Zoë Fährmann", 4, "Zoë"), ("Zoë", 3, "Zo"), ("🚢🚢🚢", 10, "🚢🚢"), ("🚢", 3, nil), ("日本語", 8, "日本"),
            ("e\u{301}", 2, "e"), ("", 10, nil), ("Ferry", 0, nil), ("Ferry", 5, "Ferry"),
        ] as [(String, Int, String?)])
    func scalars(name: String, space: Int, expected: String?) throws {
        let budget = AdvertisingBudget(advertisingBytes: 3 + 2 + space, scanResponseBytes: 0)
        let report = Advertisement(localName: name).fitted(to: budget)
        #expect(report.advertised.localName.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
        #expect(report.isNameShortened == (expected ?? "" != name))
        #expect(try report.encoded(for: budget).advertising.count <= budget.advertisingBytes)
    }

    @Test("A budget too small even for the flags leaves everything out, and says so") func noSpace() {
        for bytes in [Int.min, -1, 0, 2, 3, 4] {
            let budget = AdvertisingBudget(advertisingBytes: bytes, scanResponseBytes: bytes < 0 ? bytes : 0)
            let report = Advertisement(localName: "Ferry", services: [.battery]).fitted(to: budget)
            #expect(report.omittedServices == [.battery] && report.isNameShortened)
            #expect(report.advertised == AdvertisementData())
        }
    }

    @Test("A service named twice is advertised once") func duplicates() {
        let report = Advertisement(services: [.battery, .battery]).fitted(to: .legacy)
        #expect(report.advertised.services == [.battery] && report.omittedServices.isEmpty)
    }

    @Test("Power, service data and manufacturer's data are encoded; too much of them is an error") func otherData()
        throws
    {
        let data = AdvertisementData(
            localName: "F", services: [.battery], txPower: -4, manufacturerData: [0xFF, 0xFF, 0x01],
            serviceData: [.battery: [0x64], wideService: []])
        #expect(
            try data.encoded().advertising == [
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0F, 0x18, 0x04, 0x16, 0x0F, 0x18, 0x64, 0x05, 0x20, 0x78, 0x56, 0x34,
                0x12, 0x04, 0xFF, 0xFF, 0xFF, 0x01, 0x02, 0x0A, 0xFC, 0x02, 0x09, 0x46,
            ])
        for (data, place) in [
            (AdvertisementData(manufacturerData: Array(repeating: 0, count: 30)), "the manufacturer's data (30 bytes)"),
            (AdvertisementData(serviceData: [.battery: Array(repeating: 0, count: 28)]), "the data of service 180F"),
            (AdvertisementData(localName: String(repeating: "n", count: 30)), "the local name (30 bytes)"),
            (
                AdvertisementData(services: [cardService, otherService, BluetoothUUID(1 as UInt128)]),
                "service 00000000-"
            ),
            (AdvertisementData(manufacturerData: [0x4C]), "1 bytes; they begin with the company identifier"),
            (AdvertisementData(txPower: 128), "128 dBm"), (AdvertisementData(txPower: .min), "dBm"),
        ] {
            let error = #expect(throws: BluetoothError.self) { try data.encoded() }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains(place) == true, "\(error?.message ?? "")")
        }
    }

    @Test("Data of services and of the manufacturer go before services and names, and are never cut")
    func dataComeFirst() throws {
        var advertisement = Advertisement(
            localName: "A name of twenty-nine letters", services: [cardService, otherService],
            manufacturerData: [0xFF, 0xFF, 1, 2], serviceData: [.battery: [100]], isConnectable: false)
        let report = advertisement.fitted(to: .legacy)
        #expect(report.advertised.manufacturerData == [0xFF, 0xFF, 1, 2])
        #expect(report.advertised.serviceData == [.battery: [100]])
        #expect(!report.advertised.isConnectable)
        #expect(report.omittedServices == [otherService])
        let packets = try report.encoded(for: .legacy)
        #expect(
            packets.advertising
                == [0x02, 0x01, 0x06, 0x04, 0x16, 0x0F, 0x18, 100, 0x05, 0xFF, 0xFF, 0xFF, 1, 2]
                + packets.advertising[14...])
        #expect(packets.scanResponse == [0x11, 0x06] + cardBytes + packets.scanResponse[18...])
        advertisement.manufacturerData = [UInt8](repeating: 1, count: 30)
        let error = #expect(throws: BluetoothError.self) {
            try advertisement.fitted(to: .legacy).encoded(for: .legacy)
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("the manufacturer's data (30 bytes)") == true)
        advertisement.manufacturerData = [UInt8](repeating: 1, count: 200)
        let long = try advertisement.fitted(to: .extended).encoded(for: .extended)
        #expect(long.advertising.count <= 245 && long.scanResponse.isEmpty)
        #expect(AdvertisementData(parsing: long.advertising).manufacturerData?.count == 200)
    }

    @Test("Intervals are those that controllers know") func intervals() throws {
        #expect(try Advertisement().validInterval == nil)
        let widest = Duration.milliseconds(20) ... .milliseconds(10_240)
        #expect(try Advertisement(interval: widest).validInterval == widest)
        for wrong in [.milliseconds(19) ... .seconds(1), .seconds(1) ... .milliseconds(10_241)]
            as [ClosedRange<Duration>]
        {
            let error = #expect(throws: BluetoothError.self) { try Advertisement(interval: wrong).validInterval }
            #expect(error?.code == .invalidArgument)
        }
    }
}
