import Ferry

/// Reads the data items of a message that nests no deeper and holds no more values than allowed, and whose maps have
/// integers and text for keys, each once.
///
/// Lenient as RFC 8949, 4.2 and 3.2.2 allow: items of indefinite length, and arguments longer than they must be.
/// Written without recursion: the open containers are a list, so no input can exhaust the stack.
struct CBORReader {
    typealias Item = CBORItems.Item

    /// An array, a map or a tag of which items are missing.
    private struct Container {
        /// Its place in `items`.
        let item: Int
        let kind: CBORItems.Kind
        /// How many items belong to it, two an entry; nil until a break says so.
        let total: UInt64?
        var done: UInt64 = 0
        var keys = MapKeys()

        var expectsKey: Bool { kind == .map && done & 1 == 0 }
    }

    /// The keys of a map, as far as they were read.
    private struct MapKeys {
        var order = Order.none
        var kinds: Kinds = []

        /// Keys that ascend are not there twice.
        enum Order {
            case none
            case ascending(last: Int)
            case mixed
        }

        struct Kinds: OptionSet {
            let rawValue: UInt8

            static let number = Kinds(rawValue: 1)
            static let text = Kinds(rawValue: 2)
            /// Text beyond ASCII may be equal with other bytes.
            static let foreignText = Kinds(rawValue: 4)
        }

        /// Whether keys of different bytes may have the same name.
        var mayShareNames: Bool { kinds.contains(.foreignText) || kinds.isSuperset(of: [.number, .text]) }
        var isMixed: Bool { if case .mixed = order { true } else { false } }
    }

    private var storage: CBORItems.Storage
    private let end: Int
    private let maximumDepth: Int
    private let maximumValues: Int
    private var position: Int
    private var values = 0
    private var items: [Item] = []
    private var open: [Container] = []

    /// - Parameters:
    ///   - bytes: those of a message.
    ///   - range: where in them the items stand.
    private init(_ bytes: [UInt8], _ range: Range<Int>, maximumDepth: Int, maximumValues: Int) {
        storage = CBORItems.Storage(message: bytes)
        position = range.lowerBound
        end = range.upperBound
        self.maximumDepth = maximumDepth
        self.maximumValues = maximumValues
        items.reserveCapacity(min(range.count, maximumValues, 64))
    }

    /// The one item in `range` of `bytes`, and all that is in it.
    ///
    /// - Throws: `decodingFailed` with the item found, and at which byte.
    static func read(
        _ bytes: [UInt8], in range: Range<Int>? = nil, maximumDepth: Int, maximumValues: Int
    ) throws(FerryError) -> CBORItems {
        guard UInt32(exactly: bytes.count) != nil else {
            throw FerryError(.decodingFailed, "A message of \(bytes.count) bytes is too long for CBOR: 4 GiB are read.")
        }
        var reader = CBORReader(
            bytes, range ?? 0..<bytes.count, maximumDepth: maximumDepth, maximumValues: maximumValues)
        repeat { try reader.readItem() } while !reader.open.isEmpty
        guard reader.position == reader.end else {
            throw reader.malformed("bytes follow the message's only item", at: reader.position)
        }
        return CBORItems(storage: reader.storage, items: reader.items)
    }

    private func malformed(_ what: String, at position: Int) -> FerryError {
        FerryError(
            .decodingFailed,
            "The received CBOR cannot be read: \(what), at byte \(position) of \(end). Both sides must use the same codec."
        )
    }

    // MARK: Items

    private mutating func readItem() throws(FerryError) {
        let at = position
        let (major, argument) = try head()
        let expectsKey = open.last?.expectsKey ?? false
        if major == 7, argument == nil { return try readBreak(at) }
        if expectsKey {
            guard major == 0 || major == 1 || major == 3 else {
                throw malformed("a key is neither an integer nor text", at: at)
            }
        } else if major != 6 {
            values += 1
            guard values <= maximumValues else {
                throw malformed("there are more values than \(maximumValues)", at: at)
            }
        }
        switch major {
        case 0: add(.unsigned, at, value: argument ?? 0)
        case 1: add(.negative, at, value: argument ?? 0)
        case 2: try readString(.bytes, at, length: argument)
        case 3: try readString(.text, at, length: argument)
        case 4: return try beginContainer(.array, at, count: argument)
        case 5: return try beginContainer(.map, at, count: argument)
        case 6: return try beginContainer(.tag, at, count: argument)
        default: try readSimple(at, argument ?? 0)
        }
        if expectsKey { try noteKey() }
        try endItem()
    }

    /// The major type and the argument; nil for 31, which says that the length comes later, or of major type 7 that it
    /// ends.
    private mutating func head() throws(FerryError) -> (major: UInt8, argument: UInt64?) {
        let at = position
        let initial = try byte()
        let (major, information) = (initial >> 5, initial & 31)
        switch information {
        case 0..<24: return (major, UInt64(information))
        case 24...27:
            let count = 1 << Int(information - 24)
            guard end - position >= count else { throw malformed("it ends within a number", at: at) }
            var argument: UInt64 = 0
            for _ in 0..<count { argument = try argument << 8 | UInt64(byte()) }
            return (major, argument)
        case 31 where ![0, 1, 6].contains(major): return (major, nil)
        default: throw malformed("the initial byte \(initial) is not defined", at: at)
        }
    }

    private mutating func byte() throws(FerryError) -> UInt8 {
        guard position < end else { throw malformed("it ends where an item was expected", at: position) }
        defer { position += 1 }
        return storage.message[position]
    }

    private mutating func add(_ kind: CBORItems.Kind, _ at: Int, start: Int = 0, value: UInt64) {
        items.append(
            Item(kind: kind, at: UInt32(at), start: UInt32(start), next: UInt32(items.count + 1), value: value))
    }

    // MARK: Strings

    private mutating func readString(_ kind: CBORItems.Kind, _ at: Int, length: UInt64?) throws(FerryError) {
        guard let length else { return try readPieces(kind, at) }
        let start = try readContent(kind, at, length)
        add(kind, at, start: start, value: length)
    }

    /// Steps over the content of a string, and returns where it begins.
    private mutating func readContent(
        _ kind: CBORItems.Kind, _ at: Int, _ length: UInt64
    ) throws(FerryError) -> Int {
        guard length <= UInt64(end - position) else {
            throw malformed("a string of \(length) bytes has only \(end - position)", at: at)
        }
        let start = position
        position += Int(length)
        if kind == .text, let offset = UTF8Text.firstInvalidOffset(in: storage.message, start..<position) {
            throw malformed("text is not UTF-8", at: offset)
        }
        return start
    }

    /// A string of indefinite length (RFC 8949, 3.2.3): pieces of the same type, each with a length, until a break.
    private mutating func readPieces(_ kind: CBORItems.Kind, _ at: Int) throws(FerryError) {
        let start = storage.joined.count
        while true {
            let piece = position
            let (major, length) = try head()
            if major == 7, length == nil { break }
            guard major == (kind == .text ? 3 : 2), let length else {
                throw malformed("a string in pieces has something else in it", at: piece)
            }
            let content = try readContent(kind, piece, length)
            storage.joined += storage.message[content..<position]
        }
        add(kind, at, start: start, value: UInt64(storage.joined.count - start))
        items[items.count - 1].isJoined = true
    }

    // MARK: Numbers

    private mutating func readSimple(_ at: Int, _ argument: UInt64) throws(FerryError) {
        switch (storage.message[at] & 31, argument) {
        case (25, _): add(.real, at, value: CBORNumber.double(half: UInt16(truncatingIfNeeded: argument)).bitPattern)
        case (26, _):
            add(.real, at, value: Double(Float(bitPattern: UInt32(truncatingIfNeeded: argument))).bitPattern)
        case (27, _): add(.real, at, value: argument)
        case (24, 0..<32): throw malformed("the simple value \(argument) has a byte too many", at: at)
        case (_, 20), (_, 21): add(.bool, at, value: argument - 20)
        case (_, 22), (_, 23): add(.null, at, value: 0)
        default: add(.simple, at, value: argument)
        }
    }

    // MARK: Containers

    private mutating func beginContainer(
        _ kind: CBORItems.Kind, _ at: Int, count: UInt64?
    ) throws(FerryError) {
        guard open.count < maximumDepth else {
            throw malformed("it nests deeper than \(maximumDepth) levels", at: at)
        }
        let width: UInt64 = kind == .map ? 2 : 1
        // Each item has a byte at least.
        if kind != .tag, let count, count > UInt64(end - position) / width {
            throw malformed("a container of \(count) has only \(end - position) bytes", at: at)
        }
        let total = kind == .tag ? 1 : count.map { $0 * width }
        open.append(Container(item: items.count, kind: kind, total: total))
        add(kind, at, value: count ?? 0)
        if total == 0 { try endContainer() }
    }

    private mutating func readBreak(_ at: Int) throws(FerryError) {
        guard let container = open.last, container.total == nil, container.kind != .map || container.expectsKey else {
            throw malformed("a break where an item was expected", at: at)
        }
        try endContainer()
    }

    /// Counts the item that has ended, and ends the containers that are complete with it.
    private mutating func endItem() throws(FerryError) {
        guard !open.isEmpty else { return }
        open[open.count - 1].done += 1
        if open[open.count - 1].done == open[open.count - 1].total { try endContainer() }
    }

    private mutating func endContainer() throws(FerryError) {
        while let container = open.popLast() {
            items[container.item].next = UInt32(items.count)
            if container.kind == .map { try checkKeys(container) }
            if container.kind != .tag {
                items[container.item].value = container.kind == .map ? container.done / 2 : container.done
            }
            guard !open.isEmpty else { return }
            open[open.count - 1].done += 1
            guard open[open.count - 1].done == open[open.count - 1].total else { return }
        }
    }

    // MARK: Keys

    private mutating func noteKey() throws(FerryError) {
        let index = items.count - 1
        let key = items[index]
        var keys = open[open.count - 1].keys
        if key.kind == .text {
            keys.kinds.insert(.text)
            if !keys.kinds.contains(.foreignText), !storage.isASCII(key) { keys.kinds.insert(.foreignText) }
        } else {
            keys.kinds.insert(.number)
        }
        switch keys.order {
        case .none: keys.order = .ascending(last: index)
        case .ascending(let last):
            keys.order = storage.precedes(items[last], key) ? .ascending(last: index) : .mixed
        case .mixed: break
        }
        open[open.count - 1].keys = keys
    }

    /// Refuses a map with a key twice: ascending ones are not, and others are sorted first.
    private func checkKeys(_ map: Container) throws(FerryError) {
        guard map.keys.isMixed || map.keys.mayShareNames else { return }
        var keys: [Item] = []
        var index = map.item + 1
        for _ in 0..<map.done / 2 {
            keys.append(items[index])
            index = Int(items[index + 1].next)
        }
        if map.keys.isMixed {
            keys.sort { storage.precedes($0, $1) }
            for (left, right) in zip(keys, keys.dropFirst()) where !storage.precedes(left, right) {
                throw malformed("the key \(storage.name(left)) is there twice", at: Int(right.at))
            }
        }
        guard map.keys.mayShareNames else { return }
        // A coding key is a name: 7 and "7" are one, and so are the two ways to write "é".
        var names: Set<String> = []
        for key in keys where !names.insert(storage.name(key)).inserted {
            throw malformed("the key \(storage.name(key)) is there twice", at: Int(key.at))
        }
    }
}
