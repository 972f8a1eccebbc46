import Ferry

/// The data items of one message (RFC 8949, 3), in the order in which they stand, each before its contents.
struct CBORItems: Sendable {
    enum Kind: UInt8, Sendable {
        case unsigned, negative, bytes, text, array, map, tag, bool, null, real, simple
    }

    struct Item: Sendable {
        let kind: Kind
        /// Whether it is a string that came in pieces, and its content is in `joined`.
        var isJoined = false
        /// The byte of the message at which it begins.
        let at: UInt32
        /// Where the content of a string begins.
        let start: UInt32
        /// The index behind its last item.
        var next: UInt32
        /// An integer's argument, a string's length in bytes, the number of elements or entries, a tag's number, 0 or
        /// 1, the bits of a `Double`, or the number of a simple value.
        var value: UInt64
    }

    /// The bytes of strings: those of the message, and the content of strings that came in pieces.
    struct Storage: Sendable {
        let message: [UInt8]
        var joined: [UInt8] = []

        func content(_ item: Item) -> ArraySlice<UInt8> {
            (item.isJoined ? joined : message)[Int(item.start)..<Int(item.start) + Int(item.value)]
        }

        func isASCII(_ text: Item) -> Bool {
            UTF8Text.isASCII(text.isJoined ? joined : message, Int(text.start)..<Int(text.start) + Int(text.value))
        }

        /// The order of keys in a deterministic map (RFC 8949, 4.2.1): that of their bytes, if each is as short as can
        /// be.
        func precedes(_ left: Item, _ right: Item) -> Bool {
            if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
            if left.value != right.value { return left.value < right.value }
            return left.kind == .text && content(left).lexicographicallyPrecedes(content(right))
        }

        /// What a key is as a coding key.
        func name(_ key: Item) -> String {
            switch key.kind {
            case .unsigned: "\(key.value)"
            case .negative: "\(-1 - Int128(key.value))"
            default: String(decoding: content(key), as: UTF8.self)
            }
        }
    }

    let storage: Storage
    let items: [Item]

    /// The item at `index` without the tags before it.
    func untagged(_ index: Int) -> Int {
        var index = index
        while items[index].kind == .tag { index += 1 }
        return index
    }

    /// The number of the tag right before an item, at `index` or behind further tags; nil where there is none.
    func innerTag(_ index: Int) -> UInt64? {
        let content = untagged(index)
        return content == index ? nil : items[content - 1].value
    }

    func content(_ index: Int) -> ArraySlice<UInt8> { storage.content(items[index]) }

    /// What the item is, and where, for errors.
    func described(_ index: Int) -> String {
        let item = items[index]
        let name =
            switch item.kind {
            case .unsigned, .negative: "an integer"
            case .bytes: "a byte string"
            case .text: "text"
            case .array: "an array"
            case .map: "a map"
            case .tag: "tag \(item.value)"
            case .bool: "a truth value"
            case .null: "null"
            case .real: "a floating-point number"
            case .simple: "the simple value \(item.value)"
            }
        return "\(name) at byte \(item.at)"
    }
}
