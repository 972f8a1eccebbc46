extension CharacteristicProperties: CustomStringConvertible {
    /// The members' names, such as `[read, notify]`; bits without a name come last, in hexadecimal.
    public var description: String {
        describe(
            UInt32(rawValue),
            names: [
                "broadcast", "read", "writeWithoutResponse", "write", "notify", "indicate",
                "authenticatedSignedWrites", "extendedProperties", "notifyEncryptionRequired",
                "indicateEncryptionRequired",
            ])
    }
}

extension AttributePermissions: CustomStringConvertible {
    /// The members' names, such as `[readable, writeable]`; bits without a name come last, in hexadecimal.
    public var description: String {
        describe(
            UInt32(rawValue),
            names: [
                "readable", "writeable", "readEncryptionRequired", "writeEncryptionRequired", "authenticationRequired",
                "secureConnectionsRequired",
            ])
    }
}

/// Names the bits of an option set, the lowest first.
private func describe(_ bits: UInt32, names: [String]) -> String {
    var members = names.indices.filter { bits & 1 << UInt32($0) != 0 }.map { names[$0] }
    let rest = (bits >> UInt32(names.count)) << UInt32(names.count)
    if rest != 0 { members.append("0x" + String(rest, radix: 16, uppercase: true)) }
    return "[" + members.joined(separator: ", ") + "]"
}
