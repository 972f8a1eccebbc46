import FerryBluetooth
import FerryTesting
import TestSupport
import Testing

@Suite("Reading what is on the air", .tags(.bluetooth, .advertising)) struct AdvertisementParsingTests {
    @Test("A thermometer's packet and scan response") func golden() {
        let heard = AdvertisementData(
            parsing: [
                0x02, 0x01, 0x06,  // flags
                0x05, 0x02, 0x09, 0x18, 0x0F, 0x18,  // incomplete list of 16-bit services
                0x05, 0x08, 0x54, 0x68, 0x65, 0x72,  // shortened name
                0x02, 0x0A, 0xF8,  // -8 dBm
                0x04, 0x16, 0x0F, 0x18, 0x63,  // data of the Battery service
                0x05, 0xFF, 0x4C, 0x00, 0x02, 0x15,  // manufacturer's data
            ],
            scanResponse: [
                0x0C, 0x09, 0x54, 0x68, 0x65, 0x72, 0x6D, 0x6F, 0x6D, 0x65, 0x74, 0x65, 0x72,  // complete name
                0x03, 0x03, 0x0F, 0x18,  // named twice
                0x05, 0x05, 0x78, 0x56, 0x34, 0x12,  // 32-bit
                0x11, 0x07, 0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                0x00,
            ], isConnectable: false)
        #expect(
            heard
                == AdvertisementData(
                    localName: "Thermometer",
                    services: [
                        .healthThermometer, .battery, BluetoothUUID(0x1234_5678 as UInt32),
                        BluetoothUUID(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF as UInt128),
                    ], txPower: -8, isConnectable: false, manufacturerData: [0x4C, 0x00, 0x02, 0x15],
                    serviceData: [.battery: [0x63]]))
    }

    @Test(
        "Damaged structures end or are passed over; what stood before counts",
        arguments: [
            ([], AdvertisementData()),
            ([0x00], AdvertisementData()),
            ([0x01], AdvertisementData()),
            ([0xFF], AdvertisementData()),
            ([0x03, 0x03, 0x0F], AdvertisementData()),
            ([0x03, 0x03, 0x0F, 0x18, 0x00, 0x02, 0x09, 0x46], AdvertisementData(services: [.battery])),
            ([0x03, 0x03, 0x0F, 0x18, 0xFF, 0x09, 0x46], AdvertisementData(services: [.battery])),
            ([0x04, 0x03, 0x0F, 0x18, 0x0D], AdvertisementData(services: [.battery])),
            ([0x01, 0x03, 0x02, 0x09, 0x46], AdvertisementData(localName: "F")),
            ([0x01, 0x09], AdvertisementData()),
            ([0x01, 0x0A, 0x03, 0x0A, 0x01, 0x02], AdvertisementData()),
            ([0x02, 0x16, 0x0F, 0x02, 0x21, 0x00, 0x02, 0xFF, 0x4C], AdvertisementData()),
            ([0x03, 0x16, 0x0F, 0x18], AdvertisementData(serviceData: [.battery: []])),
            ([0x04, 0x09, 0x46, 0x00, 0x47], AdvertisementData(localName: "F")),
            ([0x03, 0x09, 0x46, 0xC3], AdvertisementData(localName: "F\u{FFFD}")),
            ([0x02, 0x08, 0x46, 0x02, 0x08, 0x47], AdvertisementData(localName: "F")),
            ([0x02, 0x09, 0x46, 0x02, 0x09, 0x47, 0x02, 0x08, 0x48], AdvertisementData(localName: "F")),
        ] as [([UInt8], AdvertisementData)])
    func damaged(bytes: [UInt8], expected: AdvertisementData) {
        #expect(AdvertisementData(parsing: bytes) == expected)
    }

    @Test("What was encoded is read back, within every budget")
    func roundTrip() throws {
        var generator = SplitMix64(seed: 0xFE44_0001)
        for _ in 0..<2000 {
            let services = (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                switch Int.random(in: 0...2, using: &generator) {
                case 0: BluetoothUUID(UInt16.random(in: 0...20, using: &generator))
                case 1: BluetoothUUID(UInt32.random(in: 0...UInt32.max, using: &generator))
                default: BluetoothUUID(UInt128.random(in: 0...UInt128.max, using: &generator))
                }
            }
            let name = String("Zoë 🚢 at the pier with Ørsted, 日本語".prefix(Int.random(in: 0...34, using: &generator)))
            for budget in [AdvertisingBudget.legacy, .coreBluetooth, .extended] {
                let report = Advertisement(localName: name, services: services).fitted(to: budget)
                let packets = try report.encoded(for: budget)
                #expect(packets.advertising.count <= budget.advertisingBytes)
                #expect(packets.scanResponse.count <= budget.scanResponseBytes)
                let heard = AdvertisementData(parsing: packets.advertising, scanResponse: packets.scanResponse)
                #expect(heard.localName == report.advertised.localName)
                #expect(Set(heard.services) == Set(report.advertised.services))
                #expect(Set(report.advertised.services + report.omittedServices) == Set(services))
                #expect(name.hasPrefix(report.advertised.localName ?? "") || report.isNameShortened)
            }
        }
    }

    @Test("No bytes are a trap, and nothing grows beyond them") func hostile() {
        var generator = SplitMix64(seed: 0xFE44_0002)
        let types: [UInt8] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x16, 0x20, 0x21, 0xFF, 0x00]
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0...62, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            if bytes.count > 1 {
                bytes[0] = UInt8(Int.random(in: 0...bytes.count, using: &generator))
                bytes[1] = types.randomElement(using: &generator) ?? 0
            }
            let heard = AdvertisementData(parsing: bytes, scanResponse: bytes)
            #expect(heard.services.count * 2 <= bytes.count)
            #expect((heard.localName?.utf8.count ?? 0) <= bytes.count * 3)
            #expect(heard.serviceData.count * 4 <= bytes.count)
        }
    }
}
