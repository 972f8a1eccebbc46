import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message that is being decoded.
final class CBORMessage {
    let parsed: CBORItems
    let maximumDepth: Int
    let maximumValues: Int
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ parsed: CBORItems, maximumDepth: Int, maximumValues: Int) {
        self.parsed = parsed
        self.maximumDepth = maximumDepth
        self.maximumValues = maximumValues
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try CBORValue(message: self, index: 0, depth: 0, path: nil).decode(type)
    }
}

/// Where a value stands among the values around it; made only for those that have values in them.
final class CBORPath {
    private let parent: CBORPath?
    private let key: any CodingKey

    init(_ parent: CBORPath?, _ key: any CodingKey) {
        self.parent = parent
        self.key = key
    }

    static func keys(_ path: CBORPath?) -> [any CodingKey] {
        Array(sequence(first: path, next: { $0?.parent }).compactMap { $0?.key }.reversed())
    }
}

/// The key of an element, of a superclass, or of an entry that no coding key stands for.
enum CBORKey: CodingKey {
    case index(Int)
    case name(String)

    static let superclass = CBORKey.name("super")

    init(stringValue: String) { self = .name(stringValue) }
    init(intValue: Int) { self = .index(intValue) }

    var stringValue: String {
        switch self {
        case .index(let index): "\(index)"
        case .name(let name): name
        }
    }

    var intValue: Int? {
        guard case .index(let index) = self else { return nil }
        return index
    }
}

/// Why an item is not the value that is asked for.
enum CBORMismatch: Error {
    /// The item is of another type.
    case type(expected: String)
    /// The item is null.
    case null(expected: String)
    /// The item is of the type, and its value is none.
    case value(String)
}

/// One item, as the decoder of a value.
struct CBORValue {
    let message: CBORMessage
    let index: UInt32
    /// How many arrays, maps and tags it is in.
    let depth: UInt32
    let path: CBORPath?

    init(message: CBORMessage, index: Int, depth: Int, path: CBORPath?) {
        self.message = message
        self.index = UInt32(index)
        self.depth = UInt32(depth)
        self.path = path
    }

    var item: Int { message.parsed.untagged(Int(index)) }

    var isNull: Bool { message.parsed.items[item].kind == .null }

    // MARK: Errors

    private func failure(_ mismatch: CBORMismatch, _ key: (any CodingKey)?, _ type: Any.Type) -> DecodingError {
        func context(_ text: String) -> DecodingError.Context {
            .init(codingPath: CBORPath.keys(path) + (key.map { [$0] } ?? []), debugDescription: text)
        }
        let found = message.parsed.described(item)
        return switch mismatch {
        case .type(let expected): .typeMismatch(type, context("Expected \(expected), found \(found)"))
        case .null(let expected): .valueNotFound(type, context("Expected \(expected), found \(found)"))
        case .value(let why): .dataCorrupted(context("\(why): \(found)"))
        }
    }

    private func wrong(_ expected: String) -> CBORMismatch {
        isNull ? .null(expected: expected) : .type(expected: expected)
    }

    /// Runs `read`, and says of what it throws where that is: in this value, or in the one at `key` in it.
    @inline(__always)
    func told<T>(_ key: (any CodingKey)?, _ read: () throws(CBORMismatch) -> T) throws -> T {
        do { return try read() } catch { throw failure(error, key, T.self) }
    }

    // MARK: Scalars

    func bool() throws(CBORMismatch) -> Bool {
        let item = message.parsed.items[item]
        guard item.kind == .bool else { throw wrong("a truth value") }
        return item.value == 1
    }

    func string() throws(CBORMismatch) -> String {
        let item = item
        guard message.parsed.items[item].kind == .text else { throw wrong("text") }
        return String(decoding: message.parsed.content(item), as: UTF8.self)
    }

    /// An integer, or a floating-point number that is one.
    @inline(__always)
    func integer<T: FixedWidthInteger>(_ type: T.Type) throws(CBORMismatch) -> T {
        let item = message.parsed.items[item]
        let result: T? =
            switch item.kind {
            case .unsigned: T(exactly: item.value)
            case .negative: T(exactly: -1 - Int128(item.value))
            case .real: T(exactly: Double(bitPattern: item.value))
            case .bytes: try bignum()
            default: throw wrong("an integer")
            }
        guard let result else { throw .value("The number does not fit \(type)") }
        return result
    }

    /// An integer as bytes (RFC 8949, 3.4.3), the first is the highest; nil if it does not fit.
    @inline(never)
    private func bignum<T: FixedWidthInteger>() throws(CBORMismatch) -> T? {
        guard let tag = message.parsed.innerTag(Int(index)), tag == 2 || tag == 3 else { throw wrong("an integer") }
        var magnitude: UInt128 = 0
        for byte in message.parsed.content(item) {
            guard magnitude.leadingZeroBitCount >= 8 else { return nil }
            magnitude = magnitude << 8 | UInt128(byte)
        }
        if tag == 2 { return T(exactly: magnitude) }
        return Int128(exactly: magnitude).flatMap { T(exactly: -1 - $0) }
    }

    /// A floating-point number, or an integer that is one without loss. A `Float` is the nearest to what a `Double`
    /// says.
    @inline(__always)
    func real<T: BinaryFloatingPoint>(_ type: T.Type) throws(CBORMismatch) -> T {
        let item = message.parsed.items[item]
        let result: T? =
            switch item.kind {
            case .real: T(Double(bitPattern: item.value))
            case .unsigned: T(exactly: item.value)
            case .negative: T(exactly: -1 - Int128(item.value))
            default: throw wrong("a number")
            }
        guard let result else { throw .value("The number does not fit \(type)") }
        return result
    }

    /// A byte string.
    func bytes() throws(CBORMismatch) -> [UInt8] {
        let item = item
        guard message.parsed.items[item].kind == .bytes else { throw wrong("bytes") }
        return Array(message.parsed.content(item))
    }

    // MARK: Values of Foundation's types

    private func uuid() throws(CBORMismatch) -> UUID {
        if message.parsed.items[item].kind == .text {
            guard let uuid = UUID(uuidString: try string()) else { throw .value("The text is no UUID") }
            return uuid
        }
        let bytes = try bytes()
        guard bytes.count == 16 else { throw .value("A UUID has 16 bytes, not \(bytes.count)") }
        return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// The message in this byte string (RFC 8949, 3.4.5.1).
    func embedded() throws -> CBORValue {
        let item = item
        let parsed = message.parsed
        guard parsed.items[item].kind == .bytes else {
            throw failure(wrong("a message in a byte string"), nil, [UInt8].self)
        }
        let content = parsed.content(item)
        let depth = Int(depth) + 1
        let inner = try CBORReader.read(
            parsed.items[item].isJoined ? parsed.storage.joined : parsed.storage.message,
            in: content.startIndex..<content.endIndex, maximumDepth: message.maximumDepth - depth,
            maximumValues: message.maximumValues)
        let told = CBORMessage(inner, maximumDepth: message.maximumDepth, maximumValues: message.maximumValues)
        return CBORValue(message: told, index: 0, depth: depth, path: path)
    }

    // MARK: Any value

    /// The value of this item.
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try decode(type, at: nil) }

    /// The value of this item, which is the one at `key` in that of `path`.
    func decode<T: Decodable>(_ type: T.Type, at key: (any CodingKey)?) throws -> T {
        /// What `read` returns is a `T`: both are the type that was asked for.
        func same<Known>(_ read: (CBORValue) throws(CBORMismatch) -> Known) throws -> T {
            let value = try told(key) { () throws(CBORMismatch) in try read(self) }
            return unsafeBitCast(value, to: type)
        }
        // The elements of arrays are asked for in this way: a decoder for each number would cost more than the number.
        if type == Int.self { return try same { value throws(CBORMismatch) in try value.integer(Int.self) } }
        if type == Double.self { return try same { value throws(CBORMismatch) in try value.real(Double.self) } }
        if type == String.self { return try same { value throws(CBORMismatch) in try value.string() } }
        if type == Date.self { return try same { value throws(CBORMismatch) in try CBORDates.read(value) } }
        if type == UUID.self { return try same { value throws(CBORMismatch) in try value.uuid() } }
        if type == Data.self, message.parsed.items[item].kind != .array {
            return try same { value throws(CBORMismatch) in Data(try value.bytes()) }
        }
        if type == [UInt8].self, message.parsed.items[item].kind == .bytes {
            return try same { value throws(CBORMismatch) in try value.bytes() }
        }
        // Arrays of these decode themselves slowly.
        if type == [Double].self {
            return unsafeBitCast(
                try elements(at: key) { value throws(CBORMismatch) in try value.real(Double.self) }, to: type)
        }
        if type == [Int].self {
            return unsafeBitCast(
                try elements(at: key) { value throws(CBORMismatch) in try value.integer(Int.self) }, to: type)
        }
        if type == [String].self {
            return unsafeBitCast(try elements(at: key) { value throws(CBORMismatch) in try value.string() }, to: type)
        }
        return try T(from: placed(key))
    }

    /// This value, or that of which the path ends with `key`.
    private func placed(_ key: (any CodingKey)?) -> CBORValue { key.map { within($0) } ?? self }

    /// The elements of this array, which is the value at `key`. The path is made for errors only: it costs more than a few numbers.
    private func elements<Element>(
        at key: (any CodingKey)?, _ read: (CBORValue) throws(CBORMismatch) -> Element
    ) throws -> [Element] {
        let array = item
        guard message.parsed.items[array].kind == .array else {
            throw placed(key).failure(wrong("an array"), nil, [Element].self)
        }
        var elements: [Element] = []
        elements.reserveCapacity(Int(message.parsed.items[array].value))
        var index = array + 1
        while index < message.parsed.items[array].next {
            let element = inner(index)
            do throws(CBORMismatch) { elements.append(try read(element)) } catch {
                throw placed(key).inner(index).failure(error, CBORKey.index(elements.count), Element.self)
            }
            index = Int(message.parsed.items[index].next)
        }
        return elements
    }

    /// This value with its place among others.
    func within(_ key: any CodingKey) -> CBORValue {
        CBORValue(message: message, index: Int(index), depth: Int(depth), path: CBORPath(path, key))
    }

    /// The value at `index`, in this one.
    func inner(_ index: Int) -> CBORValue {
        let tags = item - Int(self.index)
        return CBORValue(message: message, index: index, depth: Int(depth) + tags + 1, path: path)
    }
}

extension CBORValue: Decoder {
    var codingPath: [any CodingKey] { CBORPath.keys(path) }
    var userInfo: [CodingUserInfoKey: Any] { message.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard message.parsed.items[item].kind == .map else {
            throw failure(wrong("a map"), nil, [String: Any].self)
        }
        return KeyedDecodingContainer(CBORMap(self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard message.parsed.items[item].kind == .array else { throw failure(wrong("an array"), nil, [Any].self) }
        return CBORArray(self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension CBORValue: SingleValueDecodingContainer {
    func decodeNil() -> Bool { isNull }
    func decode(_ type: Bool.Type) throws -> Bool { try told(nil) { () throws(CBORMismatch) in try bool() } }
    func decode(_ type: String.Type) throws -> String { try told(nil) { () throws(CBORMismatch) in try string() } }
    func decode(_ type: Double.Type) throws -> Double { try told(nil) { () throws(CBORMismatch) in try real(type) } }
    func decode(_ type: Float.Type) throws -> Float { try told(nil) { () throws(CBORMismatch) in try real(type) } }
    func decode(_ type: Int.Type) throws -> Int { try whole(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try whole(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try whole(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try whole(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try whole(type) }
    func decode(_ type: Int128.Type) throws -> Int128 { try whole(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try whole(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try whole(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try whole(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try whole(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try whole(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try whole(type) }

    @inline(__always)
    private func whole<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        try told(nil) { () throws(CBORMismatch) in try integer(type) }
    }
}
