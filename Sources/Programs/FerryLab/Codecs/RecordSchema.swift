import Ferry

/// What a developer would declare for some records: numbers for the members of each object, and the kinds of numbers.
///
/// Members that more records have get smaller numbers, for 1 to 15 take a byte less in Protocol Buffers than those above,
/// and those to 23 a byte less in CBOR.
struct RecordSchema: Sendable {
    /// What a schema must know of the numbers at a path.
    struct Numbers: OptionSet, Sendable {
        let rawValue: UInt8

        static let reals = Numbers(rawValue: 1)
        static let negatives = Numbers(rawValue: 2)
        /// Those that are no `Float` exactly.
        static let long = Numbers(rawValue: 4)
    }

    private var numbers: [String: [String: Int]] = [:]
    private var kinds: [String: Numbers] = [:]

    init(of records: [RecordValue]) {
        var counts: [String: [String: Int]] = [:]
        for record in records { visit(record, "", &counts) }
        numbers = counts.mapValues { names in
            let order = names.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            return Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1.key, $0 + 1) })
        }
    }

    /// The path of a member of the object at `path`.
    static func path(_ path: String, _ name: String) -> String { "\(path)\u{0}\(name)" }

    /// The number of a member, from 1.
    func number(of name: String, at path: String) -> Int? { numbers[path]?[name] }

    /// What the numbers at `path` are like.
    func kind(at path: String) -> Numbers { kinds[path] ?? [] }

    private mutating func visit(_ value: RecordValue, _ path: String, _ counts: inout [String: [String: Int]]) {
        switch value {
        case .list(let items): for item in items { visit(item, path, &counts) }
        case .object(let members):
            for member in members {
                counts[path, default: [:]][member.key.stringValue, default: 0] += 1
                visit(member.value, Self.path(path, member.key.stringValue), &counts)
            }
        case .integer(let number):
            if number < 0 { kinds[path, default: []].insert(.negatives) }
            if Int64(exactly: Float(number)) != number { kinds[path, default: []].insert(.long) }
        case .unsigned: kinds[path, default: []].insert(.long)
        case .real(let number):
            kinds[path, default: []].insert(.reals)
            if Double(Float(number)) != number { kinds[path, default: []].insert(.long) }
        case .null, .bool, .text: break
        }
    }
}

/// Records in the wire format of Protocol Buffers, by the schema that a developer would write for them: members as `optional`
/// fields, whole numbers as `uint64` or `sint64`, others as `float` where that is exact and else as `double`, lists of numbers
/// packed.
struct ProtobufWriter {
    let schema: RecordSchema
    private(set) var bytes: [UInt8] = []

    private enum WireType: UInt64 {
        case varint = 0
        case eight = 1
        case delimited = 2
        case four = 5
    }

    init(_ schema: RecordSchema) { self.schema = schema }

    /// One message; a record that is no object becomes field 1 of one.
    static func message(_ record: RecordValue, _ schema: RecordSchema) -> [UInt8] {
        var writer = ProtobufWriter(schema)
        writer.writeMessage(record, "")
        return writer.bytes
    }

    private mutating func writeMessage(_ value: RecordValue, _ path: String) {
        guard case .object(let members) = value else { return writeField(1, value, path) }
        for member in members {
            let name = member.key.stringValue
            guard let number = schema.number(of: name, at: path) else { continue }
            writeField(number, member.value, RecordSchema.path(path, name))
        }
    }

    private mutating func writeField(_ number: Int, _ value: RecordValue, _ path: String) {
        switch value {
        case .null: break
        case .text(let text): writeDelimited(number, Array(text.utf8))
        case .object: writeDelimited(number, message(value, path))
        case .list(let items):
            guard !items.isEmpty, items.allSatisfy(\.isPackable) else {
                for item in items {
                    if case .list = item {
                        writeDelimited(number, message(item, path))
                    } else {
                        writeField(number, item, path)
                    }
                }
                return
            }
            var packed = ProtobufWriter(schema)
            for item in items { _ = packed.writeScalar(item, path) }
            writeDelimited(number, packed.bytes)
        case .bool, .integer, .unsigned, .real:
            var scalar = ProtobufWriter(schema)
            let type = scalar.writeScalar(value, path)
            writeTag(number, type)
            bytes += scalar.bytes
        }
    }

    private func message(_ value: RecordValue, _ path: String) -> [UInt8] {
        var writer = ProtobufWriter(schema)
        writer.writeMessage(value, path)
        return writer.bytes
    }

    private mutating func writeScalar(_ value: RecordValue, _ path: String) -> WireType {
        let kind = schema.kind(at: path)
        let isShort = !kind.contains(.long)
        switch value {
        case .bool(let value): writeVarint(value ? 1 : 0)
        case .integer(let value) where kind.contains(.reals): return writeReal(Double(value), isShort: isShort)
        case .unsigned(let value) where kind.contains(.reals): return writeReal(Double(value), isShort: isShort)
        case .integer(let value) where kind.contains(.negatives):
            writeVarint(UInt64(bitPattern: value << 1 ^ value >> 63))
        case .integer(let value): writeVarint(UInt64(bitPattern: value))
        case .unsigned(let value): writeVarint(value)
        case .real(let value): return writeReal(value, isShort: isShort)
        case .null, .text, .list, .object: break
        }
        return .varint
    }

    private mutating func writeReal(_ value: Double, isShort: Bool) -> WireType {
        if isShort {
            withUnsafeBytes(of: Float(value).bitPattern.littleEndian) { bytes += $0 }
            return .four
        }
        withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes += $0 }
        return .eight
    }

    private mutating func writeTag(_ number: Int, _ type: WireType) { writeVarint(UInt64(number) << 3 | type.rawValue) }

    private mutating func writeDelimited(_ number: Int, _ content: [UInt8]) {
        writeTag(number, .delimited)
        writeVarint(UInt64(content.count))
        bytes += content
    }

    private mutating func writeVarint(_ value: UInt64) { Varint.append(value, to: &bytes) }
}

extension RecordValue {
    /// Whether Protocol Buffers write a list of such values as one field.
    fileprivate var isPackable: Bool {
        switch self {
        case .bool, .integer, .unsigned, .real: true
        case .null, .text, .list, .object: false
        }
    }
}
