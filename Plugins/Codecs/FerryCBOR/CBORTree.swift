/// What the values of a message have written so far: a tree, since containers may be filled in any order and maps are
/// sorted in the end.
///
/// Scalars are bytes in one array; neighbours in an array share a node.
struct CBORTree {
    /// What a value has written.
    private enum State { case nothing, scalars, array, map }

    /// No more than integers, for there is one a scalar.
    private struct Node {
        var state = State.nothing
        let parent: Int32
        /// How many arrays, maps and tags it is in.
        let depth: Int32
        var firstChild: Int32 = -1
        var lastChild: Int32 = -1
        var nextSibling: Int32 = -1
        /// Elements or entries.
        var count: Int32 = 0
        /// The bytes of its key, and of its scalars, which follow them or stand elsewhere.
        var key: Range<Int32> = 0..<0
        var content: Range<Int32> = 0..<0
        /// Its place in `slots`; -1 for a scalar.
        var slot: Int32 = -1
    }

    /// The state of a value that encodes itself.
    private struct Slot {
        /// For coding paths; nil for an element, whose number counts, and for the message.
        let key: (any CodingKey)?
        let index: Int32
        /// The type of the value, if it is known.
        var type: Any.Type?
    }

    let maximumDepth: Int
    let maximumValues: Int
    private var nodes: [Node] = []
    private var slots: [Slot] = []
    private var bytes: [UInt8] = []
    private var values = 0
    /// What went wrong where nothing can be thrown.
    private var failure: (any Error)?

    init(maximumDepth: Int, maximumValues: Int) {
        self.maximumDepth = maximumDepth
        self.maximumValues = maximumValues
        nodes.reserveCapacity(16)
        bytes.reserveCapacity(128)
    }

    // MARK: Places

    mutating func addRoot(depth: Int, type: Any.Type) -> Int {
        nodes.append(Node(parent: -1, depth: Int32(depth), slot: 0))
        slots.append(Slot(key: nil, index: 0, type: type))
        return 0
    }

    /// A new value at `key` of the map, or at the end of the array, that is `node`.
    mutating func addChild(of node: Int, key: (any CodingKey)?, type: Any.Type? = nil) -> Int {
        let start = end
        if let key { write(key.stringValue, key.intValue, of: node) }
        let child = Node(parent: Int32(node), depth: nodes[node].depth + 1, key: start..<end, slot: Int32(slots.count))
        slots.append(Slot(key: key, index: nodes[node].count, type: type))
        return append(child, to: node)
    }

    private var end: Int32 { Int32(bytes.count) }

    @discardableResult
    private mutating func append(_ child: Node, to node: Int) -> Int {
        let index = nodes.count
        nodes.append(child)
        let last = Int(nodes[node].lastChild)
        if last < 0 { nodes[node].firstChild = Int32(index) } else { nodes[last].nextSibling = Int32(index) }
        nodes[node].lastChild = Int32(index)
        nodes[node].count += 1
        return index
    }

    func count(_ node: Int) -> Int { Int(nodes[node].count) }

    func depth(_ node: Int) -> Int { Int(nodes[node].depth) }

    /// A value of this type is what the node writes.
    mutating func note(_ type: Any.Type, _ node: Int) { slots[Int(nodes[node].slot)].type = type }

    /// The coding path of a node, and of a key in it.
    func path(_ node: Int, _ key: (any CodingKey)? = nil) -> [any CodingKey] {
        var keys: [any CodingKey] = key.map { [$0] } ?? []
        var node = Int32(node)
        while node > 0 {
            let slot = slots[Int(nodes[Int(node)].slot)]
            keys.append(slot.key ?? CBORKey.index(Int(slot.index)))
            node = nodes[Int(node)].parent
        }
        return keys.reversed()
    }

    func error(_ value: Any, _ node: Int, _ key: (any CodingKey)?, _ why: String) -> EncodingError {
        .invalidValue(value, .init(codingPath: path(node, key), debugDescription: why))
    }

    private mutating func fail(_ node: Int, _ why: String) {
        if failure == nil { failure = error("", node, nil, why) }
    }

    // MARK: Containers

    /// Makes a node a map or an array; the same again is no change.
    mutating func begin(_ node: Int, isMap: Bool) {
        let state = isMap ? State.map : .array
        guard nodes[node].state != state else { return }
        guard nodes[node].state == .nothing else {
            return fail(node, "The value encodes itself in two ways: as a container and as something else")
        }
        nodes[node].state = state
        values += 1
        if depth(node) >= maximumDepth { fail(node, "The message nests deeper than \(maximumDepth) levels") }
        if values > maximumValues { fail(node, "The message has more values than \(maximumValues)") }
    }

    /// Ends a value that has encoded itself; one that has written nothing is a map without entries.
    mutating func end(_ node: Int) throws {
        if nodes[node].state == .nothing { begin(node, isMap: true) }
        if let failure { throw failure }
    }

    // MARK: Keys

    private mutating func write(_ name: String, _ number: Int?, of node: Int) {
        if let number, isInteger(name, number, node) {
            CBORNumber.append(Int64(number), to: &bytes)
        } else {
            CBORNumber.append(name, to: &bytes)
        }
    }

    /// Whether a coding key with an integer goes as that. Keys of dictionaries with text for keys have an integer too
    /// where the text is one, `007` too.
    private func isInteger(_ name: String, _ number: Int, _ node: Int) -> Bool {
        guard let first = name.utf8.first, first < 0x3A, Int(name) == number else { return true }
        return name == "\(number)" && !(slots[Int(nodes[node].slot)].type is any NamedValues.Type)
    }

    // MARK: Scalars

    /// Writes an item as the value of `node`.
    ///
    /// - Parameters:
    ///   - depth: how many arrays, maps and tags are in it, one in another.
    ///   - values: how many values it is.
    mutating func scalar(
        _ node: Int, depth: Int = 0, values: Int = 1, _ write: (inout [UInt8]) -> Void
    ) throws {
        guard nodes[node].state == .nothing else {
            throw error("", node, nil, "The value encodes itself in two ways: as a scalar and as something else")
        }
        guard self.depth(node) + depth <= maximumDepth else {
            throw error("", node, nil, "The message nests deeper than \(maximumDepth) levels")
        }
        if let refusal = count(values) { throw failure ?? error("", node, nil, refusal) }
        let start = end
        write(&bytes)
        nodes[node].state = .scalars
        nodes[node].content = start..<end
    }

    /// Writes a scalar at `key` of the map `node`.
    mutating func scalar(_ node: Int, _ key: some CodingKey, _ write: (inout [UInt8]) -> Void) throws {
        // The key becomes an existential where it is told of only: that costs as much as writing it.
        if let refusal = count(1) { throw failure ?? error("", node, key, refusal) }
        let start = end
        self.write(key.stringValue, key.intValue, of: node)
        let middle = end
        write(&bytes)
        append(
            Node(
                state: .scalars, parent: Int32(node), depth: nodes[node].depth + 1, key: start..<middle,
                content: middle..<end), to: node)
    }

    /// Writes a scalar at the end of the array `node`.
    mutating func element(_ node: Int, _ write: (inout [UInt8]) -> Void) throws {
        if let refusal = count(1) { throw failure ?? error("", node, nil, refusal) }
        let start = end
        write(&bytes)
        let last = Int(nodes[node].lastChild)
        if last >= 0, nodes[last].state == .scalars, nodes[last].content.upperBound == start {
            nodes[last].content = nodes[last].content.lowerBound..<end
            nodes[node].count += 1
        } else {
            append(
                Node(state: .scalars, parent: Int32(node), depth: nodes[node].depth + 1, content: start..<end),
                to: node)
        }
    }

    /// Counts values, and says why no more can be written, if so.
    private mutating func count(_ count: Int) -> String? {
        if failure != nil { return "" }
        values += count
        guard values <= maximumValues else { return "The message has more values than \(maximumValues)" }
        guard bytes.count < Int(Int32.max) / 2 else { return "The message is longer than 1 GiB" }
        return nil
    }

    // MARK: Output

    private typealias Bytes = UnsafeBufferPointer<UInt8>

    /// The message.
    ///
    /// - Throws: `EncodingError` for a key that is written twice, and for what could not be thrown before.
    func finish() throws -> [UInt8] {
        if let failure { throw failure }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 3 * slots.count)
        // Lent once, not at each access: a small message is written in the time of a few of those.
        try bytes.withUnsafeBufferPointer { bytes in try write(0, bytes, to: &output) }
        return output
    }

    private func write(_ index: Int, _ bytes: Bytes, to output: inout [UInt8]) throws {
        let node = nodes[index]
        switch node.state {
        case .nothing: CBORNumber.append(5, 0, to: &output)
        case .scalars: append(node.content, of: bytes, to: &output)
        case .array:
            CBORNumber.append(4, UInt64(node.count), to: &output)
            var child = node.firstChild
            while child >= 0 {
                try write(Int(child), bytes, to: &output)
                child = nodes[Int(child)].nextSibling
            }
        case .map:
            CBORNumber.append(5, UInt64(node.count), to: &output)
            try writeEntries(index, bytes, to: &output)
        }
    }

    private func append(_ range: Range<Int32>, of bytes: Bytes, to output: inout [UInt8]) {
        output += UnsafeBufferPointer(rebasing: bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }

    private func writeEntries(_ map: Int, _ bytes: Bytes, to output: inout [UInt8]) throws {
        guard !isSorted(map, bytes) else {
            var child = nodes[map].firstChild
            while child >= 0 {
                try writeEntry(Int(child), bytes, to: &output)
                child = nodes[Int(child)].nextSibling
            }
            return
        }
        var entries: [Int] = []
        entries.reserveCapacity(Int(nodes[map].count))
        var child = nodes[map].firstChild
        while child >= 0 {
            entries.append(Int(child))
            child = nodes[Int(child)].nextSibling
        }
        entries.sort { precedes($0, $1, bytes) }
        for index in entries.indices.dropFirst() where !precedes(entries[index - 1], entries[index], bytes) {
            throw error("", map, nil, "A key is written twice: \(name(entries[index]))")
        }
        for entry in entries { try writeEntry(entry, bytes, to: &output) }
    }

    private func writeEntry(_ entry: Int, _ bytes: Bytes, to output: inout [UInt8]) throws {
        let node = nodes[entry]
        guard node.state == .scalars, node.key.upperBound == node.content.lowerBound else {
            append(node.key, of: bytes, to: &output)
            return try write(entry, bytes, to: &output)
        }
        append(node.key.lowerBound..<node.content.upperBound, of: bytes, to: &output)
    }

    /// The key of an entry, for errors.
    private func name(_ entry: Int) -> String {
        let key = Array(bytes[Int(nodes[entry].key.lowerBound)..<Int(nodes[entry].key.upperBound)])
        guard let parsed = try? CBORReader.read(key, maximumDepth: 1, maximumValues: 1) else { return "" }
        return parsed.storage.name(parsed.items[0])
    }

    private func isSorted(_ map: Int, _ bytes: Bytes) -> Bool {
        var left = nodes[map].firstChild
        guard left >= 0 else { return true }
        while true {
            let right = nodes[Int(left)].nextSibling
            guard right >= 0 else { return true }
            guard precedes(Int(left), Int(right), bytes) else { return false }
            left = right
        }
    }

    private func precedes(_ left: Int, _ right: Int, _ bytes: Bytes) -> Bool {
        let (left, right) = (nodes[left].key, nodes[right].key)
        let count = Int(min(left.upperBound - left.lowerBound, right.upperBound - right.lowerBound))
        let (start, other) = (Int(left.lowerBound), Int(right.lowerBound))
        // The first byte decides for most: it has the length of a short text.
        if count > 0, bytes[start] != bytes[other] { return bytes[start] < bytes[other] }
        for offset in 0..<count where bytes[start + offset] != bytes[other + offset] {
            return bytes[start + offset] < bytes[other + offset]
        }
        return left.upperBound - left.lowerBound < right.upperBound - right.lowerBound
    }
}

/// Dictionaries with text for keys.
private protocol NamedValues {}
extension Dictionary: NamedValues where Key == String {}
