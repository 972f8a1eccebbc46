import Ferry
import FerryBluetooth
import TestSupport
import Testing

@testable import FerryCommand

/// What the commands that look at peripherals print and read, without a radio.
@Suite("ferry scan, inspect, watch: text", .tags(.program, .gatt), .timeLimit(.minutes(5))) struct ExploreTests {
    private func discovery(
        _ number: Int, _ name: String?, _ rssi: Int, _ services: [BluetoothUUID] = []
    ) -> Discovery {
        Discovery(
            peripheral: PeerID(rawValue: UInt128(number)),
            identity: PeerIdentity(
                bluetoothAddress: 0xC000_0000_0000 + UInt64(number), isRandom: true, isProven: false),
            advertisement: AdvertisementData(localName: name, services: services), rssi: rssi)
    }

    private func at(_ seconds: Double) -> Timestamp { .zero + .seconds(seconds) }

    @Test("The strongest stands first, services have names, nothing takes over the terminal") func table() {
        var table = ScanTable()
        table.hear(discovery(1, "far\u{1B}[2J", -90, [.battery]), at: at(0))
        table.hear(discovery(2, "Belt", -48, [.heartRate, BluetoothUUID(0xFEAA as UInt16)]), at: at(1))
        table.hear(discovery(3, nil, -60), at: at(12))
        #expect(
            table.lines(at: at(12.5)) == [
                "NAME     ADDRESS                   RSSI    AGE  SERVICES",
                "Belt     C0:00:00:00:00:02/random   -48   11 s  Heart Rate, FEAA",
                "-        C0:00:00:00:00:03/random   -60  0.5 s  -",
                "far\u{FFFD}[2J  C0:00:00:00:00:01/random   -90   12 s  Battery",
            ])
        #expect(table.lines(at: at(12.5), width: 10).allSatisfy { $0.count <= 10 })
        #expect(table.lines(at: at(12.5), height: 3).last == "and 2 more")
        #expect(table.lines(at: at(12.5), height: 4).count == 4)
    }

    @Test("Strength is averaged, and what is heard later is added") func averages() {
        var table = ScanTable()
        table.hear(discovery(1, nil, -40, [.battery]), at: at(0))
        table.hear(discovery(1, "Late", -80, [.heartRate]), at: at(1))
        #expect(
            table.lines(at: at(1))[1] == "Late  C0:00:00:00:00:01/random   -50  0.0 s  Battery, Heart Rate")
    }

    @Test("Manufacturer data stands in a column of its own where there is any") func manufacturer() {
        var table = ScanTable()
        table.hear(discovery(1, "Plain", -40), at: at(0))
        #expect(table.lines(at: at(0))[0].hasSuffix("SERVICES"))
        let data: [UInt8] = [0x4C, 0x00, 0x02, 0x15] + Array(repeating: 7, count: 40)
        table.hear(
            Discovery(
                peripheral: discovery(2, nil, -50).peripheral, identity: discovery(2, nil, -50).identity,
                advertisement: AdvertisementData(manufacturerData: data), rssi: -50), at: at(0))
        let lines = table.lines(at: at(0))
        #expect(lines[0].hasSuffix("SERVICES  MANUFACTURER DATA"))
        #expect(
            lines[1].hasSuffix("-         -") && lines[2].contains("-         Apple 02 15") && lines[2].hasSuffix("...")
        )
        #expect(Manufacturer.text([0x34, 0x12]) == "0x1234" && Manufacturer.text([9]) == "09")
    }

    @Test("Filters", arguments: [("room", nil, [], 2), (nil, -50, [], 1), (nil, nil, [BluetoothUUID.battery], 1)])
    func filters(_ name: String?, _ rssi: Int?, _ services: [BluetoothUUID], _ count: Int) {
        var table = ScanTable(ScanTable.Filter(name: name, rssi: rssi, services: services))
        table.hear(discovery(1, "Bathroom", -60, [.battery]), at: .zero)
        table.hear(discovery(2, "ROOM", -40), at: .zero)
        table.hear(discovery(3, nil, -70), at: .zero)
        #expect(table.size == count)
    }

    @Test("A peripheral that takes a new address each time does not fill the memory") func bound() {
        var table = ScanTable()
        for number in 0..<1003 { table.hear(discovery(number, nil, -50), at: at(Double(number))) }
        #expect(table.size == 1000 && table.forgotten == 3)
        #expect(!table.lines(at: at(1003)).contains { $0.contains("C0:00:00:00:00:02") })
    }

    @Test("Values as bytes, text and numbers")
    func values() {
        func text(_ format: ValueFormat, _ value: [UInt8], _ uuid: BluetoothUUID? = nil) -> String {
            format.text(value, of: uuid)
        }
        #expect(text(.auto, [0x57]) == "57 (87)")
        #expect(text(.auto, [0x01, 0x02]) == "01 02 (513)")
        #expect(text(.auto, [1, 2, 3]) == "01 02 03")
        #expect(text(.auto, Array("Ferry".utf8)) == "\"Ferry\"")
        #expect(text(.auto, Array("AB".utf8)) == "41 42 (16961)")
        #expect(text(.auto, Array("AB".utf8), .deviceName) == "\"AB\"")
        #expect(text(.auto, [0x41, 0x1B, 0x42, 0x43, 0x44]) == "41 1B 42 43 44")
        #expect(text(.auto, [0x1B], .deviceName) == "\"\\u{1B}\"")
        #expect(text(.auto, []) == "(empty)")
        #expect(text(.text, [0xFF]) == "FF (not UTF-8)")
        #expect(text(.int16, [0x00, 0x80, 0xFF, 0x7F]) == "-32768 32767")
        #expect(text(.uint16, [1, 2, 3]) == "01 02 03 (3 bytes are no uint16)")
        #expect(text(.int8, [0x80]) == "-128")
        #expect(text(.uint64, [UInt8](repeating: 0xFF, count: 8)) == "18446744073709551615")
        #expect(text(.int64, [UInt8](repeating: 0xFF, count: 8)) == "-1")
        #expect(text(.hex, Array("Ferry".utf8)) == "46 65 72 72 79")
    }

    @Test("Values end with the service that they are of, and not with another") func withdrawn() async {
        let events = VisitEvents()
        events.watch([AttributeID(rawValue: 7)])
        events.peripheralDidUpdate(AttributeID(rawValue: 9), value: ([1] as [UInt8]).span.bytes)
        events.peripheralDidModifyServices([])
        events.peripheralDidModifyServices([AttributeID(rawValue: 8)])
        #expect(!events.isWithdrawn)
        events.peripheralDidUpdate(AttributeID(rawValue: 9), value: ([2] as [UInt8]).span.bytes)
        events.peripheralDidModifyServices([AttributeID(rawValue: 8), AttributeID(rawValue: 7)])
        events.peripheralDidUpdate(AttributeID(rawValue: 9), value: ([3] as [UInt8]).span.bytes)
        #expect(events.isWithdrawn && events.reason == nil)
        var values: [[UInt8]] = []
        for await update in events.updates { values.append(update.value) }
        #expect(values == [[1], [2]])
    }

    @Test("What is typed becomes bytes, and comes back as it was") func typing() throws {
        #expect(try ValueFormat.hex.bytes("0x01fF") == [1, 0xFF])
        #expect(try ValueFormat.hex.bytes("01 FF:02") == [1, 0xFF, 2])
        #expect(try ValueFormat.hex.bytes("") == [])
        #expect(try ValueFormat.text.bytes("é") == [0xC3, 0xA9])
        #expect(try ValueFormat.int16.bytes("-32768 32767") == [0x00, 0x80, 0xFF, 0x7F])
        #expect(try ValueFormat.uint8.bytes("0,255") == [0, 255])
        #expect(try ValueFormat.int64.bytes("-9223372036854775808").last == 0x80)
        #expect(try ValueFormat.uint64.bytes("18446744073709551615") == [UInt8](repeating: 0xFF, count: 8))
        for format in [ValueFormat.uint8, .int8, .uint16, .int16, .uint32, .int32, .uint64, .int64] {
            let bytes = try format.bytes("7 99")
            #expect(format.text(bytes) == "7 99", "\(format)")
        }
    }

    @Test(
        "What cannot be a value is refused",
        arguments: [
            (ValueFormat.hex, "0g", "\"g\" is no hexadecimal digit"), (.hex, "123", "3 hexadecimal digits"),
            (.uint8, "256", "give 0 to 255"), (.uint8, "-1", "give 0 to 255"), (.int8, "128", "give -128 to 127"),
            (.int8, "-129", "-128 to 127"), (.int64, "9223372036854775808", "no int64"), (.uint16, "1.5", "no uint16"),
            (.uint16, " ", "no number"), (.text, String(repeating: "x", count: 513), "513 bytes"),
        ])
    func wrong(_ format: ValueFormat, _ typed: String, _ words: String) {
        let error = #expect(throws: BluetoothError.self) { try format.bytes(typed) }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test("The tree of a peripheral") func tree() {
        var tree = AttributeTree(name: "Room", identity: "C0:00:00:00:00:01/random", rssi: -48, attMTU: 185)
        tree.services = [
            AttributeTree.Service(
                uuid: "180F", name: "Battery",
                characteristics: [
                    AttributeTree.Characteristic(
                        uuid: "2A19", name: "Battery Level", properties: ["read", "notify"], hex: "57", value: "57 (87)"
                    )
                ]),
            AttributeTree.Service(
                uuid: "FE59",
                characteristics: [
                    AttributeTree.Characteristic(
                        uuid: "FE5A", properties: ["read"], description: "A secret", error: "Insufficient\nEncryption")
                ]),
        ]
        #expect(
            tree.text() == """
                Room  C0:00:00:00:00:01/random  -48 dBm  ATT_MTU 185
                Battery  180F
                  Battery Level  2A19  read, notify
                    = 57 (87)
                FE59
                  FE5A  read
                      A secret
                    ! Insufficient\u{FFFD}Encryption

                """)
        tree.services = []
        #expect(tree.text().hasSuffix("It offers no services.\n"))
    }

    @Test("A characteristic goes by its UUID, its name, and its service where that is needed") func names() throws {
        func found(_ service: UInt16, _ characteristic: UInt16, _ id: UInt32) -> AttributeName.Found {
            AttributeName.Found(
                service: RemoteService(id: AttributeID(rawValue: 0), uuid: BluetoothUUID(service), isPrimary: true),
                characteristic: RemoteCharacteristic(
                    id: AttributeID(rawValue: id), uuid: BluetoothUUID(characteristic), properties: .read))
        }
        let all = [found(0x180F, 0x2A19, 1), found(0x181A, 0x2A6E, 2), found(0x181A, 0x2A19, 3)]
        for (name, id) in [
            ("2a6e", 2), ("temperature", 2), ("180F/2A19", 1), ("Environmental Sensing/Battery Level", 3),
        ] {
            #expect(try AttributeName(name).find(in: all).characteristic.id.rawValue == UInt32(id), "\(name)")
        }
        let several = #expect(throws: BluetoothError.self) { try AttributeName("2A19").find(in: all) }
        #expect(several?.message.contains("180F/2A19, 181A/2A19. Name the service as well") == true)
        let none = #expect(throws: BluetoothError.self) { try AttributeName("2A00").find(in: all) }
        #expect(none?.message.contains("There are: 180F/2A19 (Battery Level)") == true)
        #expect(try AttributeName.service("heart rate") == .heartRate)
        #expect(throws: BluetoothError.self) { try AttributeName.service("hart rate") }
    }
}
