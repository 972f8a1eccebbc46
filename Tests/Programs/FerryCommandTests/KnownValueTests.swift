import Ferry
import FerryBluetooth
import Foundation
import TestSupport
import Testing

@testable import FerryCommand

@Suite("Known values", .tags(.program)) struct KnownValueTests {
    private static let heartRate = BluetoothUUID(0x2A37 as UInt16)
    private static let battery = BluetoothUUID(0x2A19 as UInt16)
    private static let temperature = BluetoothUUID(0x2A6E as UInt16)
    private static let humidity = BluetoothUUID(0x2A6F as UInt16)
    private static let measurement = BluetoothUUID(0x2A1C as UInt16)

    @Test(
        "Values are shown in the units of the assigned numbers",
        arguments: [
            (heartRate, [0x00, 0x3F], "00 3F (63 bpm)"),
            (heartRate, [0x01, 0x2C, 0x01], "01 2C 01 (300 bpm)"),
            (heartRate, [0x04, 0x40], "04 40 (64 bpm, no contact)"),
            (
                heartRate, [0x1E, 0x40, 0x05, 0x01, 0x00, 0x04, 0x00, 0x02],
                "1E 40 05 01 00 04 00 02 (64 bpm, contact, 261 kJ, RR 1.000 0.500 s)"
            ),
            (battery, [0x57], "57 (87 %)"), (battery, [100], "64 (100 %)"),
            (temperature, [0x48, 0xF4], "48 F4 (-30.00 °C)"), (temperature, [0x00, 0x80], "00 80 (not known)"),
            (humidity, [0x10, 0x27], "10 27 (100.00 %)"), (humidity, [0xFF, 0xFF], "FF FF (not known)"),
            (measurement, [0x00, 0x6E, 0x01, 0x00, 0xFF], "00 6E 01 00 FF (36.6 °C)"),
            (measurement, [0x05, 0x8A, 0x26, 0x00, 0xFE, 0x02], "05 8A 26 00 FE 02 (98.66 °F, type 2)"),
            (
                measurement, [0x02, 0xFB, 0xFF, 0xFF, 0x00, 0xEA, 0x07, 11, 25, 9, 5, 0],
                "02 FB FF FF 00 EA 07 0B 19 09 05 00 (-5.0 °C, 2026-11-25 09:05:00)"
            ),
            (measurement, [0x00, 0xFF, 0xFF, 0x7F, 0x00], "00 FF FF 7F 00 (not known)"),
        ] as [(BluetoothUUID, [UInt8], String)]) func shown(uuid: BluetoothUUID, value: [UInt8], text: String)
    {
        #expect(ValueFormat.auto.text(value, of: uuid) == text)
    }

    @Test(
        "A value that does not fit its definition is not decoded",
        arguments: [
            (heartRate, []), (heartRate, [0]), (heartRate, [1, 60]), (heartRate, [0, 60, 1]), (heartRate, [8, 60, 1]),
            (heartRate, [16, 60, 1]), (battery, [101]), (battery, [1, 2]), (temperature, [0x4C, 0x95]),
            (temperature, [1]), (humidity, [0x11, 0x27]), (measurement, [0, 1, 2, 3]),
            (measurement, [2, 0, 0, 0, 0, 0xEA, 7]), (measurement, [4, 0, 0, 0, 0]),
            (BluetoothUUID(0x2A00 as UInt16), [1]),
        ] as [(BluetoothUUID, [UInt8])]) func refused(uuid: BluetoothUUID, value: [UInt8])
    {
        #expect(KnownValue(value, of: uuid) == nil)
    }

    @Test("JSON has numbers and leaves out what the value does not have") func json() throws {
        func json(_ value: [UInt8], _ uuid: BluetoothUUID) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return String(decoding: try encoder.encode(try #require(KnownValue(value, of: uuid))), as: UTF8.self)
        }
        #expect(
            try json([0x16, 0x40, 0x00, 0x02], Self.heartRate)
                == #"{"heartRate":64,"rrIntervals":[0.5],"sensorContact":true}"#)
        #expect(try json([0xFF, 0xFF], Self.humidity) == "{}")
        // The largest exponents are numbers that JSON has.
        #expect(try json([0, 0xFD, 0xFF, 0x7F, 0x7F], Self.measurement).contains("e+133"))
        #expect(try json([0, 1, 0, 0, 0x80], Self.measurement).contains("e-128"))
    }
}
