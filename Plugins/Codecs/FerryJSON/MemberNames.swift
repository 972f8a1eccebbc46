/// The names of the members of the objects that are open, to find one that occurs twice. Foundation's decoder keeps one of
/// two without a word. Names are compared as it compares them: unescaped, by canonical equivalence.
struct MemberNames {
    private var sets: [Set<String>] = []
    private var openCount = 0

    /// An object begins.
    mutating func open() {
        if openCount == sets.count { sets.append([]) }
        openCount += 1
    }

    /// The innermost object ends. Its set is kept for the next one, unless emptying it costs more than making a new one.
    mutating func close() {
        openCount -= 1
        if sets[openCount].count > 32 { sets[openCount] = [] } else { sets[openCount].removeAll(keepingCapacity: true) }
    }

    /// Adds a name of the innermost object, as it stands between the quotes. Returns it when it was there already.
    mutating func insertTwice(_ quoted: ArraySlice<UInt8>) -> String? {
        let name =
            quoted.contains(UInt8(ascii: "\\")) ? Self.unescaped(quoted) : String(decoding: quoted, as: UTF8.self)
        return sets[openCount - 1].insert(name).inserted ? nil : name
    }

    /// The escapes were checked before.
    private static func unescaped(_ quoted: ArraySlice<UInt8>) -> String {
        var units: [UInt16] = []
        var rest = String(decoding: quoted, as: UTF8.self).utf16[...]
        while let unit = rest.popFirst() {
            guard unit == UInt16(UInt8(ascii: "\\")), let escape = rest.popFirst() else {
                units.append(unit)
                continue
            }
            switch UInt8(truncatingIfNeeded: escape) {
            case UInt8(ascii: "u"):
                units.append(UInt16(String(Substring(rest.prefix(4))), radix: 16) ?? 0)
                rest = rest.dropFirst(4)
            case UInt8(ascii: "b"): units.append(0x08)
            case UInt8(ascii: "f"): units.append(0x0C)
            case UInt8(ascii: "n"): units.append(0x0A)
            case UInt8(ascii: "r"): units.append(0x0D)
            case UInt8(ascii: "t"): units.append(0x09)
            default: units.append(escape)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }
}
