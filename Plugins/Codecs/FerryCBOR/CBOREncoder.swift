import Ferry

/// The place of one value in a ``CBORWriter``, as its encoder.
struct CBORSlot {
    let writer: CBORWriter
    let node: Int

    func embed<T: Encodable>(_ value: T) throws { try writer.embed(value, node) }
}

extension CBORSlot: Encoder {
    var codingPath: [any CodingKey] { writer.tree.path(node) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        writer.tree.begin(node, isMap: true)
        return KeyedEncodingContainer(CBOREntries(writer: writer, node: node))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        writer.tree.begin(node, isMap: false)
        return CBORElements(writer: writer, node: node)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension CBORSlot: SingleValueEncodingContainer {
    func encodeNil() throws { try writer.tree.scalar(node) { $0.append(0xF6) } }
    func encode(_ value: Bool) throws { try writer.tree.scalar(node) { $0.append(value ? 0xF5 : 0xF4) } }
    func encode(_ value: String) throws { try writer.tree.scalar(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: Double) throws { try writer.tree.scalar(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: Float) throws { try writer.tree.scalar(node) { CBORNumber.append(Double(value), to: &$0) } }
    func encode(_ value: Int) throws { try encode(Int64(value)) }
    func encode(_ value: Int8) throws { try encode(Int64(value)) }
    func encode(_ value: Int16) throws { try encode(Int64(value)) }
    func encode(_ value: Int32) throws { try encode(Int64(value)) }
    func encode(_ value: Int64) throws { try writer.tree.scalar(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: UInt) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt8) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt16) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt32) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt64) throws { try writer.tree.scalar(node) { CBORNumber.append(0, value, to: &$0) } }

    func encode(_ value: Int128) throws {
        if let short = Int64(exactly: value) { return try encode(short) }
        if value >= 0 { return try encode(UInt128(value)) }
        // -1 - n has the bits of n, all of them inverted.
        try encode(1, magnitude: UInt128(~value))
    }

    func encode(_ value: UInt128) throws { try encode(0, magnitude: value) }

    private func encode(_ major: UInt8, magnitude: UInt128) throws {
        if let short = UInt64(exactly: magnitude) {
            return try writer.tree.scalar(node) { CBORNumber.append(major, short, to: &$0) }
        }
        try writer.tree.scalar(node, depth: 1) { bytes in
            let width = (128 - magnitude.leadingZeroBitCount + 7) / 8
            CBORNumber.append(6, UInt64(2 + major), to: &bytes)
            CBORNumber.append(2, UInt64(width), to: &bytes)
            for octet in (0..<width).reversed() { bytes.append(UInt8(truncatingIfNeeded: magnitude >> (8 * octet))) }
        }
    }

    func encode<T: Encodable>(_ value: T) throws {
        if try writer.writeKnown(value, node) { return }
        writer.tree.note(T.self, node)
        try value.encode(to: self)
        try writer.tree.end(node)
    }
}

/// The entries of a map.
struct CBOREntries<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let writer: CBORWriter
    let node: Int

    var codingPath: [any CodingKey] { writer.tree.path(node) }

    func encodeNil(forKey key: Key) throws { try writer.tree.scalar(node, key) { $0.append(0xF6) } }
    func encode(_ value: Bool, forKey key: Key) throws {
        try writer.tree.scalar(node, key) { $0.append(value ? 0xF5 : 0xF4) }
    }
    func encode(_ value: String, forKey key: Key) throws {
        try writer.tree.scalar(node, key) { CBORNumber.append(value, to: &$0) }
    }
    func encode(_ value: Double, forKey key: Key) throws {
        try writer.tree.scalar(node, key) { CBORNumber.append(value, to: &$0) }
    }
    func encode(_ value: Float, forKey key: Key) throws { try encode(Double(value), forKey: key) }
    func encode(_ value: Int, forKey key: Key) throws { try encode(Int64(value), forKey: key) }
    func encode(_ value: Int8, forKey key: Key) throws { try encode(Int64(value), forKey: key) }
    func encode(_ value: Int16, forKey key: Key) throws { try encode(Int64(value), forKey: key) }
    func encode(_ value: Int32, forKey key: Key) throws { try encode(Int64(value), forKey: key) }
    func encode(_ value: Int64, forKey key: Key) throws {
        try writer.tree.scalar(node, key) { CBORNumber.append(value, to: &$0) }
    }
    func encode(_ value: UInt, forKey key: Key) throws { try encode(UInt64(value), forKey: key) }
    func encode(_ value: UInt8, forKey key: Key) throws { try encode(UInt64(value), forKey: key) }
    func encode(_ value: UInt16, forKey key: Key) throws { try encode(UInt64(value), forKey: key) }
    func encode(_ value: UInt32, forKey key: Key) throws { try encode(UInt64(value), forKey: key) }
    func encode(_ value: UInt64, forKey key: Key) throws {
        try writer.tree.scalar(node, key) { CBORNumber.append(0, value, to: &$0) }
    }
    func encode(_ value: Int128, forKey key: Key) throws { try slot(key).encode(value) }
    func encode(_ value: UInt128, forKey key: Key) throws { try slot(key).encode(value) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try slot(key, T.self).encode(value) }

    private func slot(_ key: any CodingKey, _ type: Any.Type? = nil) -> CBORSlot {
        CBORSlot(writer: writer, node: writer.tree.addChild(of: node, key: key, type: type))
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> { slot(key).container(keyedBy: keyType) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { slot(key).unkeyedContainer() }
    func superEncoder() -> any Encoder { slot(CBORKey.superclass) }
    func superEncoder(forKey key: Key) -> any Encoder { slot(key) }
}

/// The elements of an array.
struct CBORElements: UnkeyedEncodingContainer {
    let writer: CBORWriter
    let node: Int

    var codingPath: [any CodingKey] { writer.tree.path(node) }
    var count: Int { writer.tree.count(node) }

    func encodeNil() throws { try writer.tree.element(node) { $0.append(0xF6) } }
    func encode(_ value: Bool) throws { try writer.tree.element(node) { $0.append(value ? 0xF5 : 0xF4) } }
    func encode(_ value: String) throws { try writer.tree.element(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: Double) throws { try writer.tree.element(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: Float) throws { try encode(Double(value)) }
    func encode(_ value: Int) throws { try encode(Int64(value)) }
    func encode(_ value: Int8) throws { try encode(Int64(value)) }
    func encode(_ value: Int16) throws { try encode(Int64(value)) }
    func encode(_ value: Int32) throws { try encode(Int64(value)) }
    func encode(_ value: Int64) throws { try writer.tree.element(node) { CBORNumber.append(value, to: &$0) } }
    func encode(_ value: UInt) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt8) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt16) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt32) throws { try encode(UInt64(value)) }
    func encode(_ value: UInt64) throws { try writer.tree.element(node) { CBORNumber.append(0, value, to: &$0) } }
    func encode(_ value: Int128) throws { try slot().encode(value) }
    func encode(_ value: UInt128) throws { try slot().encode(value) }

    func encode<T: Encodable>(_ value: T) throws {
        // A node for each number would cost more than the number.
        if T.self == Int.self, let number = value as? Int {
            try encode(Int64(number))
        } else if T.self == Double.self, let number = value as? Double {
            try encode(number)
        } else if T.self == String.self, let text = value as? String {
            try encode(text)
        } else {
            try slot(T.self).encode(value)
        }
    }

    private func slot(_ type: Any.Type? = nil) -> CBORSlot {
        CBORSlot(writer: writer, node: writer.tree.addChild(of: node, key: nil, type: type))
    }

    func nestedContainer<NestedKey: CodingKey>(keyedBy keyType: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        slot().container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { slot().unkeyedContainer() }
    func superEncoder() -> any Encoder { slot() }
}
