import Ferry

/// The entries of a map, found by what a coding key says of itself: the one whose key is its integer, or else its name.
///
/// Apart from ``CBORMap``, which is generic and is not specialised for an app's keys: what stands there costs several times
/// what it costs here.
struct CBORMapEntries {
    /// Maps with more entries are searched by halves, so that many do not cost the square of their number.
    private static let fewEntries = 16

    let map: CBORValue
    let count: Int
    private let start: Int
    /// The places of the keys, in the order of deterministic maps; empty for few.
    private let sorted: [UInt32]

    init(_ map: CBORValue) {
        self.map = map
        let parsed = map.message.parsed
        let item = map.item
        start = item + 1
        count = Int(parsed.items[item].value)
        guard count > Self.fewEntries else {
            sorted = []
            return
        }
        sorted = Self.places(start, count, parsed).sorted {
            parsed.storage.precedes(parsed.items[Int($0)], parsed.items[Int($1)])
        }
    }

    private static func places(_ start: Int, _ count: Int, _ parsed: CBORItems) -> [UInt32] {
        var places: [UInt32] = []
        places.reserveCapacity(count)
        var index = start
        for _ in 0..<count {
            places.append(UInt32(index))
            index = Int(parsed.items[index + 1].next)
        }
        return places
    }

    /// The keys, as integers or names, in the order in which they stand.
    var keys: [(number: Int?, name: String?)] {
        let parsed = map.message.parsed
        return Self.places(start, count, parsed).map { place in
            let key = parsed.items[Int(place)]
            return switch key.kind {
            case .unsigned: (Int(exactly: key.value), nil)
            case .negative: (Int(exactly: -1 - Int128(key.value)), nil)
            default: (nil, String(decoding: parsed.content(Int(place)), as: UTF8.self))
            }
        }
    }

    /// The value at the key with this integer, or else with this name.
    func value(_ number: Int?, _ name: String) -> CBORValue? {
        if let number,
            let place = number < 0
                ? find(.negative, UInt64(~number), nil) : find(.unsigned, UInt64(number), nil)
        {
            return map.inner(place + 1)
        }
        var name = name
        return name.withUTF8 { name in
            find(.text, UInt64(name.count), name).map { map.inner($0 + 1) }
        }
    }

    private func find(_ kind: CBORItems.Kind, _ value: UInt64, _ text: UnsafeBufferPointer<UInt8>?) -> Int? {
        let parsed = map.message.parsed
        guard !sorted.isEmpty else {
            var index = start
            for _ in 0..<count {
                if order(kind, value, text, parsed, index) == 0 { return index }
                index = Int(parsed.items[index + 1].next)
            }
            return nil
        }
        var range = 0..<sorted.count
        while let middle = range.isEmpty ? nil : range.lowerBound + range.count / 2 {
            let order = order(kind, value, text, parsed, Int(sorted[middle]))
            if order == 0 { return Int(sorted[middle]) }
            range = order < 0 ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return nil
    }

    /// Negative if the wanted key precedes the one at `index`, 0 if it is that one.
    private func order(
        _ kind: CBORItems.Kind, _ value: UInt64, _ text: UnsafeBufferPointer<UInt8>?, _ parsed: CBORItems, _ index: Int
    ) -> Int {
        let key = parsed.items[index]
        if kind != key.kind { return kind.rawValue < key.kind.rawValue ? -1 : 1 }
        if value != key.value { return value < key.value ? -1 : 1 }
        guard let text else { return 0 }
        let content = parsed.content(index)
        if content.elementsEqual(text) { return 0 }
        return text.lexicographicallyPrecedes(content) ? -1 : 1
    }
}

/// The entries of a map, by coding keys.
struct CBORMap<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let entries: CBORMapEntries

    init(_ map: CBORValue) { entries = CBORMapEntries(map) }

    var codingPath: [any CodingKey] { entries.map.codingPath }

    var allKeys: [Key] {
        entries.keys.compactMap { number, name in
            if let number { return Key(intValue: number) }
            return name.flatMap { Key(stringValue: $0) }
        }
    }

    private func value(_ key: Key) -> CBORValue? { entries.value(key.intValue, key.stringValue) }

    private func required(_ key: Key) throws -> CBORValue {
        if let value = value(key) { return value }
        throw DecodingError.keyNotFound(
            key,
            .init(
                codingPath: codingPath, debugDescription: "The map has \(entries.count) entries, and none for the key"))
    }

    // MARK: Values

    // What reads numbers is inlined, so that the compiler makes it for each type of them: what it does at run time for any type
    // costs several times as much.

    func contains(_ key: Key) -> Bool { value(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try required(key).isNull }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try required(key).decode(type, at: key) }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let value = value(key), !value.isNull else { return nil }
        return try value.decode(type, at: key)
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        let value = try required(key)
        return try value.told(key) { () throws(CBORMismatch) in try value.bool() }
    }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        let value = try required(key)
        return try value.told(key) { () throws(CBORMismatch) in try value.string() }
    }

    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try real(type, key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try real(type, key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try whole(type, key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try whole(type, key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try whole(type, key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try whole(type, key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try whole(type, key) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try whole(type, key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try whole(type, key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try whole(type, key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try whole(type, key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try whole(type, key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try whole(type, key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try whole(type, key) }

    @inline(__always)
    private func whole<T: FixedWidthInteger>(_ type: T.Type, _ key: Key) throws -> T {
        let value = try required(key)
        return try value.told(key) { () throws(CBORMismatch) in try value.integer(type) }
    }

    @inline(__always)
    private func real<T: BinaryFloatingPoint>(_ type: T.Type, _ key: Key) throws -> T {
        let value = try required(key)
        return try value.told(key) { () throws(CBORMismatch) in try value.real(type) }
    }

    // MARK: Containers

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try required(key).within(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try required(key).within(key).unkeyedContainer()
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { try required(key).within(key) }

    func superDecoder() throws -> any Decoder {
        let key = CBORKey.superclass
        guard let value = entries.value(key.intValue, key.stringValue) else {
            throw DecodingError.keyNotFound(
                key, .init(codingPath: codingPath, debugDescription: "The map has no entry for the superclass"))
        }
        return value.within(key)
    }
}

/// The elements of an array, one after another.
struct CBORArray: UnkeyedDecodingContainer {
    private let array: CBORValue
    private let total: Int
    private var next: Int
    private(set) var currentIndex = 0

    init(_ array: CBORValue) {
        self.array = array
        let item = array.item
        total = Int(array.message.parsed.items[item].value)
        next = item + 1
    }

    var codingPath: [any CodingKey] { array.codingPath }
    var count: Int? { total }
    var isAtEnd: Bool { currentIndex == total }

    private func element(_ type: Any.Type) throws -> CBORValue {
        guard isAtEnd else { return array.inner(next) }
        throw DecodingError.valueNotFound(
            type,
            .init(
                codingPath: codingPath + [CBORKey.index(currentIndex)],
                debugDescription: "The array has \(total) elements only"))
    }

    private mutating func advance() {
        next = Int(array.message.parsed.items[next].next)
        currentIndex += 1
    }

    mutating func decodeNil() throws -> Bool {
        guard try element(Never.self).isNull else { return false }
        advance()
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let result = try element(type).decode(type, at: CBORKey.index(currentIndex))
        advance()
        return result
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        let container = try elementWithPath().container(keyedBy: type)
        advance()
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try elementWithPath().unkeyedContainer()
        advance()
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try elementWithPath()
        advance()
        return decoder
    }

    private func elementWithPath() throws -> CBORValue {
        try element((any Decoder).self).within(CBORKey.index(currentIndex))
    }
}
