import Ferry
import Foundation
import GRDB

@testable import FerryRecords

/// The bytes of an input, read in order; zeros follow the last one.
struct Input: Sendable {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func below(_ limit: Int) -> Int { Int(byte()) % limit }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

    /// A small number, one beside a power of two, or any.
    mutating func number() -> Int64 {
        let kind = byte()
        switch kind % 4 {
        case 0, 1: return Int64(kind / 4)
        case 2: return (1 << Int64(byte() % 64)) &+ Int64(kind / 4) &- 32
        default: return bytes(8).reduce(0) { $0 << 8 | Int64($1) }
        }
    }

    /// A number as the wire has them, from 0 to 2^63 - 1.
    mutating func wireNumber() -> UInt64 { UInt64(number() & .max) }

    /// A value of any type, and the SQL that takes it.
    mutating func value() -> (sql: String, value: DatabaseValue) {
        switch below(10) {
        case 0: return ("?", .null)
        case 1...4: return ("?", number().databaseValue)
        case 5: return ("?", Double(number()).databaseValue)
        case 6: return ("?", Double(bitPattern: UInt64(bitPattern: number())).databaseValue)
        // Valid or not: SQLite takes any bytes for a text.
        case 7: return ("CAST(? AS TEXT)", Data(bytes(below(16))).databaseValue)
        case 8: return ("?", ["s", "b", "ferry-relay:o:t", "ferry-relay:", ""][below(5)].databaseValue)
        default: return ("?", Data(bytes(below(16))).databaseValue)
        }
    }
}

/// A table of a store's, and its columns but the checksum in the order in which the checksum takes them.
struct Table: Sendable {
    let name: String
    let tag: RowChecksum.Table?
    /// The column that tells rows apart.
    let key: String
    let columns: [String]

    private init(_ name: String, _ tag: RowChecksum.Table?, key: String, _ columns: String) {
        self.name = "ferry_\(name)"
        self.tag = tag
        self.key = key
        self.columns = columns.split(separator: " ").map(String.init)
    }

    static let all = [
        Table("store", .store, key: "high", "high low"),
        Table("opening", .opening, key: "generation", "generation nonce"),
        Table("peer", .peer, key: "id", "id name high low certainty generation nonce largest"),
        Table(
            "outbound", .outbound, key: "id",
            "id peer name last generation nonce acknowledged count bytes priority"),
        Table(
            "inbound", .inbound, key: "id",
            "id peer name generation nonce sequence number count bytes relayed relayed_at"),
        Table("position", .position, key: "stream", "stream generation nonce sequence"),
        Table("waiting", .waiting, key: "sequence", "stream generation priority expires sequence record"),
        Table("arrived", .arrived, key: "number", "stream generation nonce number sequence record"),
        Table("withdrawn", nil, key: "id", "id stream sequence"),
        Table("notice", nil, key: "id", "id at peer text"),
    ]

    /// SQL's `ferry_sum(tag, values...)`, the checksum of a row with these values, of any types.
    static let sum = DatabaseFunction("ferry_sum", pure: true) { values in
        guard let tag = UInt8.fromDatabaseValue(values[0]), let table = RowChecksum.Table(rawValue: tag) else {
            return nil
        }
        var checksum = RowChecksum(table)
        for value in values.dropFirst() {
            switch value.storage {
            case .null: checksum.add(nil as Int64?)
            case .int64(let number): checksum.add(number)
            case .double(let number): checksum.add(bits: number.bitPattern)
            case .string(let text): checksum.add(text)
            case .blob(let data): checksum.add(Array(data))
            }
        }
        return checksum.column
    }
}

/// Changes that a stranger made to the rows of a store.
enum Mutation {
    /// Makes one to four changes, and then the checksums as the input says: as they were, none, or right. A change that SQLite
    /// refuses is left out.
    static func apply(_ input: inout Input, to database: Database) {
        for _ in 0...input.below(4) { try? change(&input, database) }
        let sums = input.below(4)
        guard sums > 0 else { return }
        for table in Table.all {
            guard let tag = table.tag else { continue }
            let sum =
                sums == 1 ? "NULL" : "ferry_sum(\(tag.rawValue), \(table.columns.joined(separator: ", ")))"
            try? run("UPDATE \(table.name) SET checksum = \(sum)", [], database)
        }
    }

    private static func change(_ input: inout Input, _ database: Database) throws {
        let table = Table.all[input.below(Table.all.count)]
        let column = input.below(table.columns.count + 1)
        let name = column < table.columns.count ? table.columns[column] : table.tag == nil ? table.key : "checksum"
        let row = input.below(4)
        let place =
            row == 0
            ? "" : " WHERE \(table.key) IS (SELECT \(table.key) FROM \(table.name) LIMIT 1 OFFSET \(row - 1))"
        switch input.below(8) {
        case 0: try run("DELETE FROM \(table.name)\(place)", [], database)
        case 1:
            let (sql, value) = input.value()
            let values = table.columns.map { $0 == name ? sql : $0 }.joined(separator: ", ")
            try run(
                "INSERT INTO \(table.name) (\(table.columns.joined(separator: ", "))) SELECT \(values) FROM \(table.name)\(place)",
                values.contains("?") ? [value] : [], database)
        case 2:
            let other = table.columns[input.below(table.columns.count)]
            try run("UPDATE \(table.name) SET \(name) = \(other)\(place)", [], database)
        default:
            let (sql, value) = input.value()
            try run("UPDATE \(table.name) SET \(name) = \(sql)\(place)", [value], database)
        }
    }

    private static func run(_ sql: String, _ values: [DatabaseValue], _ database: Database) throws {
        try database.cachedStatement(sql: sql).execute(arguments: StatementArguments(values))
    }
}
