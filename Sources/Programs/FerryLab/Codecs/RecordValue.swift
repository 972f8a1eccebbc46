import FoundationEssentials

/// A record of any shape, so that codecs can be compared without the app's types.
///
/// An object's member that is null is left out, as Swift's coders leave out a property that is nil.
indirect enum RecordValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case real(Double)
    case text(String)
    case list([RecordValue])
    case object([Member])

    /// A member of an object.
    struct Member: Hashable, Sendable {
        var key: RecordKey
        var value: RecordValue
    }

    /// The members of this object and of those in it get integers for keys.
    func numbered(by schema: RecordSchema, at path: String = "") -> RecordValue {
        switch self {
        case .list(let items): .list(items.map { $0.numbered(by: schema, at: path) })
        case .object(let members):
            .object(
                members.map { member in
                    let name = member.key.stringValue
                    return Member(
                        key: RecordKey(name, number: schema.number(of: name, at: path)),
                        value: member.value.numbered(by: schema, at: RecordSchema.path(path, name)))
                })
        default: self
        }
    }
}

/// The name of a member, or its integer for codecs that write those.
struct RecordKey: CodingKey, Hashable, Sendable {
    let stringValue: String
    let intValue: Int?

    init(_ name: String, number: Int? = nil) {
        stringValue = name
        intValue = number
    }

    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { self.init("\(intValue)", number: intValue) }
}

extension RecordValue: Codable {
    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: RecordKey.self) {
            var members: [Member] = []
            for key in container.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
                let value = try container.decode(RecordValue.self, forKey: key)
                if value != .null { members.append(Member(key: key, value: value)) }
            }
            self = .object(members)
        } else if var container = try? decoder.unkeyedContainer() {
            var items: [RecordValue] = []
            while !container.isAtEnd { items.append(try container.decode(RecordValue.self)) }
            self = .list(items)
        } else {
            self = try Self.scalar(in: try decoder.singleValueContainer())
        }
    }

    private static func scalar(in container: any SingleValueDecodingContainer) throws -> RecordValue {
        if container.decodeNil() { return .null }
        if let value = try? container.decode(Bool.self) { return .bool(value) }
        if let value = try? container.decode(Int64.self) { return .integer(value) }
        if let value = try? container.decode(UInt64.self) { return .unsigned(value) }
        if let value = try? container.decode(Double.self) { return .real(value) }
        return .text(try container.decode(String.self))
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try Self.write(value, to: encoder)
        case .integer(let value): try Self.write(value, to: encoder)
        case .unsigned(let value): try Self.write(value, to: encoder)
        case .real(let value): try Self.write(value, to: encoder)
        case .text(let value): try Self.write(value, to: encoder)
        case .list(let items):
            var container = encoder.unkeyedContainer()
            for item in items { try container.encode(item) }
        case .object(let members):
            var container = encoder.container(keyedBy: RecordKey.self)
            for member in members { try container.encode(member.value, forKey: member.key) }
        }
    }

    private static func write(_ value: some Encodable, to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
