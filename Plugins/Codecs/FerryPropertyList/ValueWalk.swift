import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An encoder that writes nothing: it looks for values of a message that Foundation's coder turned into others, where the
/// property list does not show it. `$null` may have been nil, and a date another date.
struct ValueWalk: Encoder {
    enum Format { case binary, xml }

    static let tooLarge = "A number is too large for the type's 32 bits"

    /// How many infinite numbers a message may have; the next one is refused.
    final class Infinities {
        var left: Int

        init(_ left: Int) { self.left = left }
    }

    let format: Format
    let infinities: Infinities?
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(format: Format, infinities: Infinities? = nil, codingPath: [any CodingKey] = []) {
        (self.format, self.infinities, self.codingPath) = (format, infinities, codingPath)
    }

    /// Goes through a value and all that it encodes.
    ///
    /// - Throws: `EncodingError` with the coding path of the first value that is refused.
    func visit<Value: Encodable>(_ value: Value) throws {
        switch value {
        case let text as String:
            guard text == "$null" else { return }
            throw refusal(value, "Foundation's coders use the string \"$null\" for nil. Send another string")
        case let date as Date:
            let seconds = date.timeIntervalSinceReferenceDate
            let obstacle = format == .xml ? CodedDate.obstacleAsText(seconds) : CodedDate.obstacle(seconds)
            // Not the date itself: printing one that is not a number ends the process.
            if let obstacle { throw refusal(seconds, obstacle) }
        case let real as Float:
            try count(real.isInfinite, real)
        case let real as Double:
            try count(real.isInfinite, real)
        case is Data, is Bool, is Int, is Int8, is Int16, is Int32, is Int64, is UInt, is UInt8, is UInt16, is UInt32,
            is UInt64:
            return
        default: try value.encode(to: self)
        }
    }

    private func count(_ isInfinite: Bool, _ value: Any) throws {
        guard isInfinite, let infinities else { return }
        guard infinities.left > 0 else { throw refusal(value, Self.tooLarge) }
        infinities.left -= 1
    }

    private func refusal(_ value: Any, _ reason: String) -> EncodingError {
        .invalidValue(value, .init(codingPath: codingPath, debugDescription: reason))
    }

    private func at(_ key: any CodingKey) -> ValueWalk {
        ValueWalk(format: format, infinities: infinities, codingPath: codingPath + [key])
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed(walk: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Unkeyed(walk: self) }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(walk: self) }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let walk: ValueWalk
        var codingPath: [any CodingKey] { walk.codingPath }

        func encodeNil(forKey key: Key) {}
        func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try walk.at(key).visit(value) }
        func nestedContainer<NestedKey: CodingKey>(
            keyedBy keyType: NestedKey.Type, forKey key: Key
        ) -> KeyedEncodingContainer<NestedKey> { walk.at(key).container(keyedBy: keyType) }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            walk.at(key).unkeyedContainer()
        }
        func superEncoder() -> any Encoder { walk.at(Index(stringValue: "super")) }
        func superEncoder(forKey key: Key) -> any Encoder { walk.at(key) }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let walk: ValueWalk
        var codingPath: [any CodingKey] { walk.codingPath }
        var count = 0

        private mutating func next() -> ValueWalk {
            defer { count += 1 }
            return walk.at(Index(intValue: count))
        }

        mutating func encodeNil() { count += 1 }
        mutating func encode<Value: Encodable>(_ value: Value) throws { try next().visit(value) }
        mutating func nestedContainer<NestedKey: CodingKey>(
            keyedBy keyType: NestedKey.Type
        ) -> KeyedEncodingContainer<NestedKey> { next().container(keyedBy: keyType) }
        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
        mutating func superEncoder() -> any Encoder { next() }
    }

    private struct Single: SingleValueEncodingContainer {
        let walk: ValueWalk
        var codingPath: [any CodingKey] { walk.codingPath }

        func encodeNil() {}
        func encode<Value: Encodable>(_ value: Value) throws { try walk.visit(value) }
    }

    private struct Index: CodingKey {
        let stringValue: String
        let intValue: Int?

        init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
        init(intValue: Int) { (stringValue, self.intValue) = ("Index \(intValue)", intValue) }
    }
}
