import Ferry
import FerryBluetooth

/// How a characteristic's value is shown and typed.
enum ValueFormat: String, CaseIterable, Sendable {
    case auto, hex, text, uint8, int8, uint16, int16, uint32, int32, uint64, int64

    /// Bytes of one number, which lies little end first as GATT has it, and whether it has a sign; nil where it is none.
    private var number: (width: Int, isSigned: Bool)? {
        switch self {
        case .auto, .hex, .text: nil
        case .uint8: (1, false)
        case .int8: (1, true)
        case .uint16: (2, false)
        case .int16: (2, true)
        case .uint32: (4, false)
        case .int32: (4, true)
        case .uint64: (8, false)
        case .int64: (8, true)
        }
    }

    // MARK: Showing

    /// The value for people. What does not fit the format is shown as bytes, with the reason.
    ///
    /// - Parameter uuid: the characteristic's type, of which `auto` knows some that are text and some that have units.
    func text(_ value: [UInt8], of uuid: BluetoothUUID? = nil) -> String {
        if value.isEmpty { return "(empty)" }
        switch self {
        case .hex: return Self.hexadecimal(value)
        case .text: return Self.quoted(value) ?? "\(Self.hexadecimal(value)) (not UTF-8)"
        case .auto:
            if let uuid, let known = KnownValue(value, of: uuid) {
                return "\(Self.hexadecimal(value)) (\(known.text))"
            }
            let isText = uuid.map(Self.areText.contains) ?? false
            if isText || value.count >= 4, let text = Self.quoted(value, ifPrintable: !isText) { return text }
            guard [1, 2, 4, 8].contains(value.count) else { return Self.hexadecimal(value) }
            return "\(Self.hexadecimal(value)) (\(Self.unsigned(value[...])))"
        default:
            guard let numbers = numbers(value) else {
                return "\(Self.hexadecimal(value)) (\(value.count) bytes are no \(rawValue))"
            }
            return numbers.joined(separator: " ")
        }
    }

    /// The numbers in a value; nil when it is not made of such.
    func numbers(_ value: [UInt8]) -> [String]? {
        guard let (width, isSigned) = number, !value.isEmpty, value.count % width == 0 else { return nil }
        return stride(from: 0, to: value.count, by: width).map { start in
            let bits = Self.unsigned(value[start..<start + width])
            guard isSigned else { return "\(bits)" }
            let shift = 64 - 8 * UInt64(width)
            return "\(Int64(bitPattern: bits << shift) >> Int64(shift))"
        }
    }

    /// Characteristics that the Bluetooth SIG defines as UTF-8 text.
    private static let areText: Set<BluetoothUUID> = [
        .deviceName, .modelNumberString, .serialNumberString, .firmwareRevisionString, .hardwareRevisionString,
        .softwareRevisionString, .manufacturerNameString, .characteristicUserDescription,
    ]

    private static func unsigned(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    static func hexadecimal(_ value: [UInt8]) -> String {
        value.hexadecimal(separator: " ", uppercase: true)
    }

    /// The value as text in quotes, with what could move the cursor escaped; nil when it is not UTF-8.
    static func quoted(_ value: [UInt8], ifPrintable: Bool = false) -> String? {
        guard let text = String(validating: value, as: UTF8.self) else { return nil }
        let isPrintable = text.unicodeScalars.allSatisfy {
            ![.control, .format, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator]
                .contains($0.properties.generalCategory)
        }
        if isPrintable { return "\"\(text)\"" }
        return ifPrintable ? nil : text.debugDescription
    }

    // MARK: Typing

    /// Reads what a person has typed.
    ///
    /// - Throws: `invalidArgument` with the text met and the legal ones, and above 512 bytes (Core Specification 5.4, Vol 3,
    ///   Part F, 3.2.9).
    func bytes(_ text: String) throws(BluetoothError) -> [UInt8] {
        let bytes: [UInt8]
        switch self {
        case .auto, .hex: bytes = try Self.bytes(hexadecimal: text)
        case .text: bytes = Array(text.utf8)
        default: bytes = try numbers(typed: text)
        }
        guard bytes.count <= 512 else {
            throw BluetoothError(
                .invalidArgument, "The value has \(bytes.count) bytes, and a characteristic holds 512 at most.")
        }
        return bytes
    }

    private static func bytes(hexadecimal text: String) throws(BluetoothError) -> [UInt8] {
        let digits = text.hasPrefix("0x") ? text.dropFirst(2) : text[...]
        var values: [UInt8] = []
        for character in digits where character != " " && character != ":" {
            guard character.isASCII, let digit = character.hexDigitValue else {
                throw BluetoothError(
                    .invalidArgument,
                    "\(String(character).debugDescription) is no hexadecimal digit. Give pairs of digits (01 FF), or say "
                        + "what the value is, such as --as text or --as uint16.")
            }
            values.append(UInt8(digit))
        }
        guard values.count % 2 == 0 else {
            throw BluetoothError(
                .invalidArgument,
                "\(values.count) hexadecimal digits do not make whole bytes. Give pairs, such as 01 FF.")
        }
        return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    private func numbers(typed text: String) throws(BluetoothError) -> [UInt8] {
        guard let (width, isSigned) = number else { return [] }
        let most = UInt64.max >> UInt64(64 - 8 * width + (isSigned ? 1 : 0))
        let least = isSigned ? -Int64(most) - 1 : 0
        var bytes: [UInt8] = []
        for word in text.split(whereSeparator: { $0 == " " || $0 == "," }) {
            let bits: UInt64
            if let number = UInt64(word), number <= most {
                bits = number
            } else if isSigned, let number = Int64(word), number < 0, number >= least {
                bits = UInt64(bitPattern: number)
            } else {
                throw BluetoothError(
                    .invalidArgument, "\(String(word).debugDescription) is no \(rawValue): give \(least) to \(most).")
            }
            for place in 0..<width { bytes.append(UInt8(truncatingIfNeeded: bits >> (8 * UInt64(place)))) }
        }
        guard !bytes.isEmpty else {
            throw BluetoothError(.invalidArgument, "There is no number in \(text.debugDescription).")
        }
        return bytes
    }
}
