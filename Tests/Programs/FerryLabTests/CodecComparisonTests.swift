import Ferry
import FerryJSON
import FerryZlib
import Foundation
import TestSupport
import Testing

@testable import FerryLab

@Suite(
    "codecs compared: ferry advise --records, bench --records and dictionary", .tags(.program), .timeLimit(.minutes(5)))
struct CodecComparisonTests {
    private func record(_ json: String) throws -> RecordValue { try JSONCodec<RecordValue>().decode(Array(json.utf8)) }

    private func protobuf(_ lines: String...) throws -> [String] {
        let records = try lines.map(record)
        let schema = RecordSchema(of: records)
        return records.map { ProtobufWriter.message($0, schema).map { String(format: "%02x", $0) }.joined() }
    }

    /// Bytes of protobuf.dev/programming-guides/encoding, and of Python's `struct` for the floating-point numbers.
    @Test("Protocol Buffers are written as their specification has them") func goldenProtobuf() throws {
        #expect(try protobuf(#"{"a":150}"#) == ["089601"])
        #expect(try protobuf(#"{"b":"testing"}"#) == ["0a0774657374696e67"])
        #expect(try protobuf(#"{"c":{"a":150}}"#) == ["0a03089601"])
        #expect(try protobuf(#"{"f":[3,270,86942]}"#) == ["0a06038e029ea705"])
        #expect(try protobuf(#"{"a":-2,"b":true}"#, #"{"a":1}"#) == ["08031001", "0802"])
        #expect(try protobuf(#"{"x":0.5}"#, #"{"x":2}"#) == ["0d0000003f", "0d00000040"])
        #expect(try protobuf(#"{"x":0.1}"#, #"{"x":2}"#) == ["099a9999999999b93f", "090000000000000040"])
        #expect(try protobuf(#"{"x":18446744073709551615}"#) == ["08ffffffffffffffffff01"])
        #expect(try protobuf(#"{"t":["a","b"],"n":null,"e":[]}"#) == ["12016112" + "0162"])
        #expect(try protobuf(#"[{"a":1},{"a":2}]"#) == ["0a0208010a020802"])
        #expect(try protobuf("[[1,2],[3]]") == ["0a040a0201020a030a0103"])
    }

    @Test("Members that more records have get smaller numbers, and each object has its own")
    func numbers() throws {
        let records = try [#"{"z":1,"in":{"q":1}}"#, #"{"a":1,"z":2}"#, #"{"z":3,"in":{}}"#].map(record)
        let schema = RecordSchema(of: records)
        #expect(["z", "in", "a", "q"].map { schema.number(of: $0, at: "") } == [1, 2, 3, nil])
        #expect(schema.number(of: "q", at: RecordSchema.path("", "in")) == 1)
        // The keys are the integers, and JSON still has the names.
        let numbered = records[0].numbered(by: schema)
        #expect(try JSONCodec<RecordValue>().decode(JSONCodec<RecordValue>().encode(numbered)) == records[0])
    }

    @Test("Documentation/Codecs.md has the sizes that the codecs give") func page() throws {
        let page = try String(
            contentsOf: packageFolder.appending(path: "Documentation/Codecs.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.map { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        for (name, batch) in [("cards", 1), ("readings", 1), ("events", 1), ("readings", 10)] {
            let comparison = try CodecComparison(RecordSet(name), batch: batch, dictionary: nil)
            #expect(comparison.rows.count == 5)
            for row in comparison.rows {
                let title = batch == 1 ? name : "\(name), \(batch) in a message"
                let found = try #require(
                    rows.first { $0.starts(with: [title, row.codec.rawValue]) }, "\(title), \(row.codec.rawValue)")
                #expect(found[2] == number(row.plain.bytes, 1), "\(title): \(row)")
                // Builds of libz differ in the matches that they find.
                for (text, bytes) in zip(found[3...], [row.zlib.bytes, row.dictionary?.bytes ?? 0]) {
                    let stated = try #require(Double(text))
                    #expect(abs(stated - bytes) < 0.03 * bytes + 0.06, "\(title): \(row)")
                }
                // A dictionary halves what compression alone leaves, in records of their own.
                if batch == 1 { #expect((row.dictionary?.bytes ?? 1e9) < 0.8 * row.zlib.bytes) }
            }
        }
    }

    @Test("More records cross in fewer bytes, and messages of one size at one rate") func rates() throws {
        var comparison = try CodecComparison(RecordSet("readings"), batch: 10, dictionary: nil)
        try comparison.measure(on: settings { $0.seconds = 2 })
        let json = try #require(comparison.rows.first)
        let (plain, zlib) = (try #require(json.plain.recordsPerSecond), try #require(json.zlib.recordsPerSecond))
        let dictionary = try #require(json.dictionary?.recordsPerSecond)
        #expect(plain > 50 && zlib > 1.5 * plain && dictionary > 1.2 * zlib, "\(comparison.text())")
        #expect(comparison.text().contains("100 records of readings, 10 in a message; a dictionary trained"))
    }

    @Test("A codec that cannot write the records is left out") func leftOut() throws {
        let set = try file(["[1,null]", "[2,null]", "3"])
        let comparison = try CodecComparison(set, batch: 1, dictionary: Array("dictionary".utf8))
        #expect(comparison.rows.map(\.codec) == [.json, .cbor, .numberedCBOR, .protobuf])
        #expect(comparison.judged == 3 && comparison.dictionary?.count == 8)
        let error = #expect(throws: FerryError.self) { _ = try CodecComparison(set, batch: 2, dictionary: nil) }
        #expect(error?.message.contains("Give more records, or a smaller batch") == true)
    }

    private func file(_ lines: [String]) throws -> RecordSet {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("records-\(UUID().uuidString)").path
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try RecordSet(path)
    }

    @Test("A line that is no JSON is named, and so are too few") func badRecords() throws {
        let bad = #expect(throws: FerryError.self) { _ = try file(["{}", "{\"a\":}"]) }
        #expect(bad?.message.contains("Record 2 of '") == true && bad?.message.contains("column 6") == true, "\(bad!)")
        for lines in [[], ["{}"]] {
            let error = #expect(throws: FerryError.self) { _ = try file(lines) }
            #expect(error?.message.contains("give 2 to 10000 records") == true)
        }
    }
}
