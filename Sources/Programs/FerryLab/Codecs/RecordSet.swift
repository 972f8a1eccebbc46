package import Ferry
import FerryJSON

/// Records to compare codecs with: those of a file, or one of three sets that are the same at each call.
package struct RecordSet: Sendable {
    var name: String
    var records: [RecordValue]

    /// The names of the built-in sets.
    package static let names = ["cards", "readings", "events"]

    /// Most records of a file.
    static let mostRecords = 10_000

    /// - Parameter text: a name of a built-in set, or a file with a JSON value on each line, 2 to 10 000.
    /// - Throws: `FerryError` with `unreadableFile`, which names the line.
    package init(_ text: String) throws(FerryError) {
        name = text
        switch text {
        case "cards": records = Self.cards()
        case "readings": records = Self.readings()
        case "events": records = Self.events()
        default: records = try Self.records(in: text)
        }
    }

    private static func records(in path: String) throws(FerryError) -> [RecordValue] {
        let lines = SampleFile.lines(of: try SampleFile.contents(of: path))
        guard (2...mostRecords).contains(lines.count) else {
            throw FerryError(
                .unreadableFile,
                "'\(path)' has \(lines.count) line\(lines.count == 1 ? "" : "s"); give 2 to \(mostRecords) records, a JSON value on each line, or one of the "
                    + "built-in sets: \(names.joined(separator: ", ")).")
        }
        var records: [RecordValue] = []
        let codec = JSONCodec<RecordValue>()
        for (number, line) in lines.enumerated() {
            do { records.append(try codec.decode(line)) } catch {
                throw FerryError(
                    .unreadableFile, "Record \(number + 1) of '\(path)' is not a JSON value: \(error.message)")
            }
        }
        return records
    }

    /// The records as messages of JSON, which most apps begin with.
    package func messages(batch: Int) throws(FerryError) -> [(name: String, bytes: [UInt8])] {
        var messages: [(name: String, bytes: [UInt8])] = []
        for (index, message) in CodecComparison.messages(records, batch).enumerated() {
            messages.append(("\(name), message \(index + 1)", try JSONCodec<RecordValue>().encode(message)))
        }
        return messages
    }

    // MARK: The built-in sets

    private static func object(_ members: [(String, RecordValue)]) -> RecordValue {
        .object(
            members.map { RecordValue.Member(key: RecordKey($0.0), value: $0.1) }.sorted {
                $0.key.stringValue < $1.key.stringValue
            })
    }

    /// Contacts: names, an organization, addresses; some have all of them.
    private static func cards() -> [RecordValue] {
        let first = ["Ada", "Grace", "Edsger", "Barbara", "Alan", "Radia", "Donald", "Frances", "Ken", "Margaret"]
        let last = ["Lovelace", "Hopper", "Dijkstra", "Liskov", "Turing", "Perlman", "Knuth", "Allen", "Hamilton"]
        let places = ["Analytical Engines", "Harbour Logistics", "North Observatory", "Institute of Clocks"]
        var random = SeededGenerator(seed: 1)
        func pick(_ words: [String]) -> String { words[Int(random.next() % UInt64(words.count))] }
        return (0..<200).map { _ in
            let (given, family) = (pick(first), pick(last))
            let mail = "\(given.lowercased()).\(family.lowercased())\(random.next() % 100)@example.org"
            var members: [(String, RecordValue)] = [
                ("firstName", .text(given)), ("lastName", .text(family)), ("organization", .text(pick(places))),
                ("mail", .text(mail)),
            ]
            if random.next() % 3 > 0 {
                members.append(("phone", .text("+44 20 \(1000 + random.next() % 9000) \(1000 + random.next() % 9000)")))
            }
            return object(members)
        }
    }

    /// A sensor's values, one record each time it measures.
    private static func readings() -> [RecordValue] {
        var random = SeededGenerator(seed: 2)
        return (0..<200).map { index in
            func part(_ low: UInt64, _ spread: UInt64) -> RecordValue {
                .real(Double(low + random.next() % spread) / 10)
            }
            return object([
                ("sensor", .integer(Int64(1 + random.next() % 12))), ("celsius", part(180, 90)),
                ("humidity", part(300, 400)), ("battery", .integer(Int64(2700 + random.next() % 400))),
                ("measuredAt", .integer(1_700_000_000 + Int64(index) * 60)), ("isValid", .bool(random.next() % 50 > 0)),
            ])
        }
    }

    /// Lines of a device's journal.
    private static func events() -> [RecordValue] {
        let levels = ["info", "info", "info", "notice", "warning", "error"]
        let parts = ["radio", "battery", "storage", "sensor.front", "sensor.rear", "update"]
        let texts = [
            "connected", "connection lost", "charging", "voltage is low", "page written", "checksum is wrong",
            "restarted after watchdog", "firmware verified",
        ]
        var random = SeededGenerator(seed: 3)
        func pick(_ words: [String]) -> RecordValue { .text(words[Int(random.next() % UInt64(words.count))]) }
        return (0..<200).map { index in
            object([
                ("sequence", .integer(Int64(40_000 + index))), ("uptime", .integer(Int64(index) * 7_919)),
                ("level", pick(levels)), ("component", pick(parts)), ("message", pick(texts)),
                (
                    "values",
                    .list((0..<random.next() % 4).map { _ in .integer(Int64(random.next() % 1000) - 500) })
                ),
            ])
        }
    }
}
