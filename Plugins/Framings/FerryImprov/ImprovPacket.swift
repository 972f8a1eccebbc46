public import Ferry

/// A command of Improv or its result: a number and strings.
///
/// | bytes | meaning |
/// |---|---|
/// | 1 | the command's number |
/// | 1 | how many bytes follow, without the last |
/// | 1 and its content, for each string | a string's length in bytes, and the string |
/// | 1 | the sum of all before it, modulo 256 |
///
/// Source: improv-wifi.com/ble; PyPI py-improv-ble-client 2.0.1 (`protocol.py`), against which it is tested.
public struct ImprovPacket: Sendable, Hashable {
    /// The command, or the one that the result is for.
    public var command: Command
    /// Its strings, which are UTF-8 by convention; with a byte for the length of each at most 255 bytes together.
    public var strings: [[UInt8]]

    /// Numbers of commands.
    public struct Command: RawRepresentable, Sendable, Hashable {
        /// The number.
        public var rawValue: UInt8
        /// A command by its number.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Use this network: its name and password. The result has addresses where the device can be reached.
        public static let wifiSettings = Command(rawValue: 1)
        /// Blink, or the like. It has no result.
        public static let identify = Command(rawValue: 2)
        /// What the device is.
        public static let deviceInfo = Command(rawValue: 3)
        /// The networks that the device hears: a result for each, and one without strings.
        public static let scan = Command(rawValue: 4)
        /// The device's name in the network, which a string sets.
        public static let hostname = Command(rawValue: 5)
    }

    /// Describes a packet.
    public init(_ command: Command, _ strings: [[UInt8]] = []) {
        self.command = command
        self.strings = strings
    }

    /// Describes a packet with text.
    public init(_ command: Command, text: [String]) { self.init(command, text.map { [UInt8]($0.utf8) }) }

    /// Its bytes.
    ///
    /// - Throws: `encodingFailed` for strings that are too long together.
    public func bytes() throws(FerryError) -> [UInt8] {
        let count = strings.reduce(0) { $0 + 1 + $1.count }
        guard count <= 255 else {
            throw FerryError(
                .encodingFailed,
                "The strings of an Improv command have 255 bytes together at most, with one more for each; these have \(count). Shorten "
                    + "them.")
        }
        var bytes = [command.rawValue, UInt8(count)]
        for string in strings { bytes += [UInt8(string.count)] + string }
        return bytes + [Self.sum(bytes)]
    }

    /// Reads a packet, which has exactly these bytes.
    ///
    /// - Throws: `decodingFailed` that names the mistake.
    public init(_ bytes: [UInt8]) throws(FerryError) {
        func wrong(_ what: String) -> FerryError {
            FerryError(
                .decodingFailed, "An Improv packet of \(bytes.count) bytes from the peer \(what). Ask again.")
        }
        guard bytes.count >= 3, bytes.count == 3 + Int(bytes[1]) else {
            throw wrong(bytes.count < 3 ? "is too short" : "says that it has \(3 + Int(bytes[1]))")
        }
        let sum = Self.sum(bytes.dropLast())
        guard bytes[bytes.count - 1] == sum else {
            throw wrong("has the sum \(bytes[bytes.count - 1]) where \(sum) was due")
        }
        self.init(Command(rawValue: bytes[0]))
        var rest = bytes[2..<bytes.count - 1]
        while let count = rest.popFirst() {
            guard rest.count >= count else {
                throw wrong("has a string of \(count) bytes where \(rest.count) are left")
            }
            strings.append(Array(rest.prefix(Int(count))))
            rest = rest.dropFirst(Int(count))
        }
    }

    /// The strings as text; bytes that are not UTF-8 are replaced.
    public var text: [String] { strings.map { String(decoding: $0, as: UTF8.self) } }

    private static func sum(_ bytes: some Sequence<UInt8>) -> UInt8 { bytes.reduce(0, &+) }
}
