import FerryBluetooth

/// A peripheral's services and characteristics with their values, and as text: a value.
struct AttributeTree: Sendable, Encodable {
    struct Service: Sendable, Encodable {
        var uuid: String
        var name: String?
        var characteristics: [Characteristic] = []
    }

    struct Characteristic: Sendable, Encodable {
        var uuid: String
        var name: String?
        var properties: [String]
        /// What the peripheral calls it: the User Description descriptor.
        var description: String?
        /// The value's bytes in hexadecimal; nil where it was not read.
        var hex: String?
        /// The value for people.
        var value: String?
        /// Why it could not be read.
        var error: String?
    }

    var name: String?
    var identity: String
    var rssi: Int?
    var attMTU: Int
    var services: [Service] = []

    /// The lines of the tree.
    func text() -> String {
        var lines: [String] = []
        var title = [name?.forTerminal, identity.forTerminal].compactMap { $0 }
        if let rssi { title.append("\(rssi) dBm") }
        title.append("ATT_MTU \(attMTU)")
        lines.append(title.joined(separator: "  "))
        if services.isEmpty { lines.append("It offers no services.") }
        for service in services {
            lines.append(([service.name, service.uuid].compactMap { $0 }).joined(separator: "  "))
            for characteristic in service.characteristics {
                var words = [characteristic.name, characteristic.uuid].compactMap { $0 }
                words.append(characteristic.properties.joined(separator: ", "))
                lines.append("  " + words.joined(separator: "  "))
                if let description = characteristic.description { lines.append("      \(description.forTerminal)") }
                if let value = characteristic.value { lines.append("    = \(value)") }
                if let error = characteristic.error { lines.append("    ! \(error.forTerminal)") }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension CharacteristicProperties {
    /// What can be done, in the words that people use.
    var words: [String] {
        let all: [(Self, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write without response"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
            (.authenticatedSignedWrites, "signed write"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}

/// A characteristic among those of a peripheral, by what a person typed: `2A19`, `Battery Level`, `180F/2A19`.
struct AttributeName: Sendable {
    /// A characteristic that was found, with the service that it is in.
    struct Found: Sendable {
        var service: RemoteService
        var characteristic: RemoteCharacteristic

        var path: String { "\(service.uuid)/\(characteristic.uuid)" }
    }

    let text: String
    private let service: String?
    private let characteristic: String

    init(_ text: String) {
        self.text = text
        // Names have no slash; a UUID has none.
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        service = parts.count == 2 ? parts[0] : nil
        characteristic = parts.last ?? text
    }

    /// - Throws: `unknownAttribute` with what there is, `invalidArgument` when several go by that name.
    func find(in all: [Found]) throws(BluetoothError) -> Found {
        let matches = all.filter { found in
            Self.matches(characteristic, found.characteristic.uuid)
                && (service.map { Self.matches($0, found.service.uuid) } ?? true)
        }
        guard let first = matches.first else {
            let list = all.prefix(20).map { "\($0.path) (\($0.characteristic.uuid.label))" }.joined(separator: ", ")
            throw BluetoothError(
                .unknownAttribute,
                "There is no characteristic \(text.debugDescription). "
                    + (all.isEmpty ? "There are none at all." : "There are: \(list)\(all.count > 20 ? ", ..." : "")."))
        }
        guard matches.count == 1 else {
            let list = matches.prefix(20).map(\.path).joined(separator: ", ")
            throw BluetoothError(
                .invalidArgument,
                "\(text.debugDescription) names \(matches.count) characteristics: \(list). Name the service as well.")
        }
        return first
    }

    /// Whether the text is this UUID or its name.
    static func matches(_ text: String, _ uuid: BluetoothUUID) -> Bool {
        if let name = uuid.name, name.lowercased() == text.lowercased() { return true }
        return (try? BluetoothUUID(text)) == uuid
    }

    /// A service by its UUID or its name.
    ///
    /// - Throws: `invalidArgument`.
    static func service(_ text: String) throws(BluetoothError) -> BluetoothUUID {
        for number in 0x1800...0x18FF as ClosedRange<UInt16> where matches(text, BluetoothUUID(number)) {
            return BluetoothUUID(number)
        }
        return try BluetoothUUID(text)
    }
}
