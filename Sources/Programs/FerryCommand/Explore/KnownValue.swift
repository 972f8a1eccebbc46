import FerryBluetooth
import FerryLab

/// A value that the Bluetooth SIG's GATT Specification Supplement defines, in its units.
///
/// Of heart rates, battery levels, temperatures and humidities. Fields that a value does not have are `nil`.
struct KnownValue: Encodable, Equatable {
    /// In beats a minute.
    var heartRate: Int?
    /// Whether the sensor touches the skin; `nil` where the sensor cannot tell.
    var sensorContact: Bool?
    /// In kJ since the last reset.
    var energyExpended: Int?
    /// Times between heartbeats, oldest first, in s.
    var rrIntervals: [Double]?
    /// In percent.
    var batteryLevel: Int?
    /// In ``temperatureUnit``; `nil` where the sensor does not know it.
    var temperature: Double?
    /// Degrees Celsius or Fahrenheit.
    var temperatureUnit: TemperatureUnit?
    /// Year, month, day, hours, minutes and seconds, by the sensor's clock; the supplement's 0 is a part not known.
    var time: String?
    /// Where the body's temperature is measured, by the supplement's number.
    var temperatureType: Int?
    /// Relative, in percent; `nil` where the sensor does not know it.
    var humidity: Double?
    /// For people.
    var text = ""

    private enum CodingKeys: String, CodingKey {
        case heartRate, sensorContact, energyExpended, rrIntervals, batteryLevel, temperature, temperatureUnit, time
        case temperatureType, humidity
    }

    enum TemperatureUnit: String, Encodable {
        case celsius = "°C"
        case fahrenheit = "°F"
    }

    /// Decodes a value; `nil` for a characteristic that is not known here, and for a value that does not fit its definition.
    init?(_ value: [UInt8], of uuid: BluetoothUUID) {
        var bytes = LittleEndianBytes(rest: value[...])
        let isDecoded =
            switch uuid {
            case BluetoothUUID(0x2A37 as UInt16): decodeHeartRate(&bytes)
            case BluetoothUUID(0x2A19 as UInt16): decodeBatteryLevel(&bytes)
            case BluetoothUUID(0x2A6E as UInt16): decodeTemperature(&bytes)
            case BluetoothUUID(0x2A6F as UInt16): decodeHumidity(&bytes)
            case BluetoothUUID(0x2A1C as UInt16): decodeTemperatureMeasurement(&bytes)
            default: false
            }
        // Bytes after the last field are of a definition that is not known.
        guard isDecoded, bytes.rest.isEmpty else { return nil }
    }

    /// Heart Rate Measurement: flags, rate, energy, RR intervals.
    private mutating func decodeHeartRate(_ bytes: inout LittleEndianBytes) -> Bool {
        guard let flags = bytes.unsigned(1), let rate = bytes.unsigned(flags & 1 == 0 ? 1 : 2) else { return false }
        heartRate = rate
        var words = ["\(rate) bpm"]
        // Bit 2: the sensor can tell; bit 1: it touches.
        if flags & 4 != 0 {
            let touches = flags & 2 != 0
            sensorContact = touches
            words.append(touches ? "contact" : "no contact")
        }
        if flags & 8 != 0 {
            guard let energy = bytes.unsigned(2) else { return false }
            energyExpended = energy
            words.append("\(energy) kJ")
        }
        if flags & 16 != 0 {
            var intervals: [Double] = []
            while !bytes.rest.isEmpty {
                guard let interval = bytes.unsigned(2) else { return false }
                intervals.append(Double(interval) / 1_024)
            }
            rrIntervals = intervals
            if !intervals.isEmpty {
                words.append("RR " + intervals.map { number($0, 3) }.joined(separator: " ") + " s")
            }
        }
        text = words.joined(separator: ", ")
        return true
    }

    /// Battery Level: uint8 in percent; more than 100 is reserved.
    private mutating func decodeBatteryLevel(_ bytes: inout LittleEndianBytes) -> Bool {
        guard let level = bytes.unsigned(1), level <= 100 else { return false }
        batteryLevel = level
        text = "\(level) %"
        return true
    }

    /// Temperature: sint16 in 0.01 °C from absolute zero; 0x8000 is not known.
    private mutating func decodeTemperature(_ bytes: inout LittleEndianBytes) -> Bool {
        guard let bits = bytes.unsigned(2) else { return false }
        let hundredths = Int(Int16(truncatingIfNeeded: bits))
        temperatureUnit = .celsius
        guard bits != 0x8000 else {
            text = "not known"
            return true
        }
        guard hundredths >= -27_315 else { return false }
        temperature = Double(hundredths) / 100
        text = "\(number(Double(hundredths) / 100, 2)) °C"
        return true
    }

    /// Humidity: uint16 in 0.01 %; 0xFFFF is not known, and between 100 % and that is reserved.
    private mutating func decodeHumidity(_ bytes: inout LittleEndianBytes) -> Bool {
        guard let hundredths = bytes.unsigned(2) else { return false }
        guard hundredths != 0xFFFF else {
            text = "not known"
            return true
        }
        guard hundredths <= 10_000 else { return false }
        humidity = Double(hundredths) / 100
        text = "\(number(Double(hundredths) / 100, 2)) %"
        return true
    }

    /// Temperature Measurement: flags, temperature (IEEE 11073-20601 FLOAT), time, type.
    private mutating func decodeTemperatureMeasurement(_ bytes: inout LittleEndianBytes) -> Bool {
        guard let flags = bytes.unsigned(1), let bits = bytes.unsigned(4) else { return false }
        let unit: TemperatureUnit = flags & 1 == 0 ? .celsius : .fahrenheit
        temperatureUnit = unit
        temperature = Self.medicalFloat(UInt32(bits))
        var words = [temperature.map { "\($0) \(unit.rawValue)" } ?? "not known"]
        if flags & 2 != 0 {
            guard let year = bytes.unsigned(2) else { return false }
            var parts: [Int] = []
            for _ in 0..<5 {
                guard let part = bytes.unsigned(1) else { return false }
                parts.append(part)
            }
            let two = parts.map { $0 < 10 ? "0\($0)" : "\($0)" }
            let moment = "\(year)-\(two[0])-\(two[1]) \(two[2]):\(two[3]):\(two[4])"
            time = moment
            words.append(moment)
        }
        if flags & 4 != 0 {
            guard let type = bytes.unsigned(1) else { return false }
            temperatureType = type
            words.append("type \(type)")
        }
        text = words.joined(separator: ", ")
        return true
    }

    /// A FLOAT: a signed exponent of ten in the upper 8 bits, a signed mantissa in the lower 24; `nil` for its five special
    /// mantissas (not a number, not at this resolution, two infinities, reserved).
    private static func medicalFloat(_ bits: UInt32) -> Double? {
        let mantissa = Int32(bitPattern: bits << 8) >> 8
        guard (-0x7F_FFFD...0x7F_FFFD).contains(mantissa) else { return nil }
        let exponent = Int(Int8(truncatingIfNeeded: bits >> 24))
        // By way of text, which rounds once: 366 and -1 is 36.6 and not beside it.
        return Double("\(mantissa)e\(exponent)")
    }
}

/// Reads numbers, little end first.
private struct LittleEndianBytes {
    var rest: ArraySlice<UInt8>

    /// The next `width` bytes, at most 4; `nil`, with nothing taken, where there are fewer.
    mutating func unsigned(_ width: Int) -> Int? {
        guard rest.count >= width else { return nil }
        let number = rest.prefix(width).reversed().reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(width)
        return number
    }
}
