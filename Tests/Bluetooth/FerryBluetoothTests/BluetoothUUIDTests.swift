import FerryBluetooth
import TestSupport
import Testing

@Suite("Bluetooth UUIDs", .tags(.bluetooth, .gatt)) struct BluetoothUUIDTests {
    @Test(
        "The three written forms, in either case, name the same number",
        arguments: [
            ("180F", 0x180F), ("180f", 0x180F), ("0000180F", 0x180F), ("0000180F-0000-1000-8000-00805F9B34FB", 0x180F),
            ("0000180f-0000-1000-8000-00805f9b34fb", 0x180F), ("0000", 0), ("FFFF", 0xFFFF), ("12345678", 0x1234_5678),
            ("ffffffff", 0xFFFF_FFFF),
        ] as [(String, UInt32)])
    func parsing(text: String, number: UInt32) throws {
        let uuid = try BluetoothUUID(text)
        #expect(uuid == BluetoothUUID(number))
        #expect(uuid.value == 0x1000_8000_0080_5F9B_34FB as UInt128 + UInt128(number) << 96)
    }

    @Test("A 128-bit UUID of an app's own keeps every bit") func ownUUID() throws {
        let uuid = try BluetoothUUID("E07F0AE8-00BB-47F5-94F4-4A7174EA3032"[...])
        #expect(uuid.value == 0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032)
        #expect(uuid.bitWidth == 128)
        #expect(uuid.description == "E07F0AE8-00BB-47F5-94F4-4A7174EA3032")
        #expect(uuid.name == nil)
    }

    @Test(
        "Every other text is refused, with the place and the legal forms",
        arguments: [
            ("", "it has 0 characters"),
            ("180", "it has 3 characters"),
            ("180F0", "it has 5 characters"),
            ("0x180F", "it has 6 characters"),
            ("E07F0AE800BB47F594F44A7174EA3032", "it has 32 characters"),
            ("{0000180F-0000-1000-8000-00805F9B34FB}", "it has more than 36 characters"),
            ("18-F", "\"-\" at place 3 is not a hexadecimal digit"),
            ("180G", "\"G\" at place 4 is not a hexadecimal digit"),
            (" 180", "\" \" at place 1 is not a hexadecimal digit"),
            ("18\u{FF10}F", "\"\u{FF10}\" at place 3 is not a hexadecimal digit"),
            ("-80F", "\"-\" at place 1 is not a hexadecimal digit"),
            ("18F\n", "\"\\n\" at place 4 is not a hexadecimal digit"),
            ("0000180F00000-1000-8000-00805F9B34FB", "a hyphen is due at place 9, not \"0\""),
            ("0000180F-0000-1000-8000-00805F9B34FX", "\"X\" at place 36 is not a hexadecimal digit"),
        ])
    func refusing(text: String, reason: String) {
        let error = #expect(throws: BluetoothError.self) { try BluetoothUUID(text) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("Write 4 or 8 hexadecimal digits") == true)
    }

    @Test("A hostile text makes a short error") func longText() {
        let combining = "180" + "F" + String(repeating: "\u{301}", count: 100_000)
        for text in [String(repeating: "9", count: 1_000_000), combining] {
            let error = #expect(throws: BluetoothError.self) { try BluetoothUUID(text) }
            #expect((error?.message.utf8.count ?? .max) < 1200)
        }
    }

    @Test(
        "The description is the shortest form, in capitals",
        arguments: [
            (0x0000_180F, "180F"), (0x0000_000A, "000A"), (0x0001_0000, "00010000"), (0xABCD_EF01, "ABCDEF01"),
        ] as [(UInt32, String)])
    func description(number: UInt32, text: String) throws {
        #expect(BluetoothUUID(number).description == text)
        #expect(try BluetoothUUID(text) == BluetoothUUID(number))
    }

    @Test("Bytes in both orders, shortest form") func bytes() throws {
        #expect(BluetoothUUID.battery.littleEndianBytes == [0x0F, 0x18])
        #expect(BluetoothUUID.battery.bigEndianBytes == [0x18, 0x0F])
        let wide = BluetoothUUID(0x1234_5678 as UInt32)
        #expect(wide.littleEndianBytes == [0x78, 0x56, 0x34, 0x12])
        #expect(
            wide.attBytes == [
                0xFB, 0x34, 0x9B, 0x5F, 0x80, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12,
            ])
        #expect(BluetoothUUID.battery.attBytes == [0x0F, 0x18])
        let own = try BluetoothUUID("00112233-4455-6677-8899-AABBCCDDEEFF")
        #expect(own.bigEndianBytes == (0..<16).map { $0 * 0x11 })
        #expect(own.littleEndianBytes == (0..<16).reversed().map { $0 * 0x11 })
        #expect(own.attBytes == own.littleEndianBytes)
    }

    @Test("Bytes of every legal length are read, of others refused") func fromBytes() throws {
        #expect(try BluetoothUUID(littleEndianBytes: [0x0F, 0x18]) == .battery)
        #expect(try BluetoothUUID(littleEndianBytes: [0x0F, 0x18, 0, 0]) == .battery)
        #expect(try BluetoothUUID(littleEndianBytes: [0xFF, 0x0F, 0x18, 0xFF][1..<3]) == .battery)
        #expect(try BluetoothUUID(bigEndianBytes: [0x18, 0x0F]) == .battery)
        let own = try BluetoothUUID("00112233-4455-6677-8899-AABBCCDDEEFF")
        #expect(try BluetoothUUID(littleEndianBytes: own.littleEndianBytes) == own)
        #expect(try BluetoothUUID(bigEndianBytes: own.bigEndianBytes) == own)
        for count in 0...33 where ![2, 4, 16].contains(count) {
            let error = #expect(throws: BluetoothError.self) {
                try BluetoothUUID(littleEndianBytes: [UInt8](repeating: 0, count: count))
            }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("\(count) were given") == true)
        }
    }
}

@Suite("Assigned numbers", .tags(.bluetooth, .gatt)) struct AssignedNumbersTests {
    @Test(
        "Names of well-known attributes",
        arguments: [
            (.genericAccess, "Generic Access"), (.genericAttribute, "Generic Attribute"),
            (.deviceInformation, "Device Information"), (.heartRate, "Heart Rate"), (.battery, "Battery"),
            (.currentTime, "Current Time"), (.healthThermometer, "Health Thermometer"),
            (.humanInterfaceDevice, "Human Interface Device"), (.environmentalSensing, "Environmental Sensing"),
            (.primaryService, "Primary Service"), (.secondaryService, "Secondary Service"), (.include, "Include"),
            (.characteristic, "Characteristic"),
            (.characteristicExtendedProperties, "Characteristic Extended Properties"),
            (.characteristicUserDescription, "Characteristic User Description"),
            (.clientCharacteristicConfiguration, "Client Characteristic Configuration"),
            (.serverCharacteristicConfiguration, "Server Characteristic Configuration"),
            (.characteristicPresentationFormat, "Characteristic Presentation Format"),
            (.characteristicAggregateFormat, "Characteristic Aggregate Format"),
            (.deviceName, "Device Name"), (.appearance, "Appearance"),
            (.peripheralPreferredConnectionParameters, "Peripheral Preferred Connection Parameters"),
            (.serviceChanged, "Service Changed"), (.batteryLevel, "Battery Level"),
            (.modelNumberString, "Model Number String"), (.serialNumberString, "Serial Number String"),
            (.firmwareRevisionString, "Firmware Revision String"),
            (.hardwareRevisionString, "Hardware Revision String"),
            (.softwareRevisionString, "Software Revision String"),
            (.manufacturerNameString, "Manufacturer Name String"),
            (.heartRateMeasurement, "Heart Rate Measurement"),
            (.clientSupportedFeatures, "Client Supported Features"), (.databaseHash, "Database Hash"),
        ] as [(BluetoothUUID, String)])
    func names(uuid: BluetoothUUID, name: String) {
        #expect(uuid.name == name)
    }

    @Test("Several hundred names, each tidy; numbers without a name have none") func table() {
        var named = 0
        for number in UInt16.min...UInt16.max {
            guard let name = BluetoothUUID(number).name else { continue }
            named += 1
            #expect(name.first?.isWhitespace == false && name.last?.isWhitespace == false && name.utf8.count > 2)
        }
        #expect(named == 603)
        #expect(BluetoothUUID(0x1817 as UInt16).name == nil)
        #expect(BluetoothUUID(0xFFFF as UInt16).name == nil)
        // A wider number never takes the name of its low half.
        #expect(BluetoothUUID(0x0001_180F as UInt32).name == nil)
    }
}
