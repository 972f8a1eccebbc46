package import Ferry
import FerryCBOR
import FerryJSON
import FerryPropertyList
import FerryZlib

/// The same records by each codec, plain and compressed: their bytes in a message, and how many a second cross the air.
package struct CodecComparison: Codable, Sendable {
    /// A codec that is compared.
    enum Codec: String, Codable, CaseIterable, Sendable {
        case json = "JSON"
        case propertyList = "property list"
        case cbor = "CBOR"
        case numberedCBOR = "CBOR, integer keys"
        case protobuf = "Protocol Buffers"
    }

    /// How one codec does with one compression.
    struct Figure: Codable, Hashable, Sendable {
        /// Of a record on average, with the compression's envelope, without the framing.
        var bytes: Double
        /// `nil` until the link was simulated.
        var recordsPerSecond: Double?
    }

    struct Row: Codable, Hashable, Sendable {
        var codec: Codec
        var plain: Figure
        var zlib: Figure
        /// `nil` where the records that a dictionary was trained on share nothing.
        var dictionary: Figure?
    }

    /// A built-in set or a file.
    var records: String
    /// How many records were judged.
    var judged: Int
    /// Records in a message.
    var batch: Int
    /// The checksum of the given dictionary; `nil` where each codec has another, trained on the records that
    /// were not judged.
    var dictionary: String?
    /// The codecs that can write the records, in the order of ``Codec``.
    var rows: [Row]

    /// Writes the records by each codec.
    ///
    /// - Parameters:
    ///   - set: the records. Without a dictionary every second message is judged, and the others train.
    ///   - batch: records in a message, as a list; 1 for the record itself.
    ///   - dictionary: what all codecs are compressed with.
    /// - Throws: `FerryError`, when too few records are left to judge.
    package init(_ set: RecordSet, batch: Int, dictionary: [UInt8]?) throws(FerryError) {
        records = set.name
        self.batch = batch
        self.dictionary = dictionary.map { DictionaryFile($0).checksum }
        rows = []
        let schema = RecordSchema(of: set.records)
        let messages = Self.messages(set.records, batch)
        let training = dictionary == nil ? messages.indices.filter { $0 % 2 == 0 } : []
        let judging = dictionary == nil ? messages.indices.filter { $0 % 2 == 1 } : Array(messages.indices)
        guard !judging.isEmpty else {
            throw FerryError(
                .invalidConfiguration,
                "\(set.records.count) records in messages of \(batch) are \(messages.count) messages: one trains and the "
                    + "next is judged. Give more records, or a smaller batch.")
        }
        judged = judging.count * batch
        for codec in Codec.allCases {
            var encoded: [[UInt8]] = []
            // A codec that has no null, or nothing but objects at the top, is left out.
            do { for message in messages { encoded.append(try Self.encode(message, codec, schema)) } } catch {
                continue
            }
            let judgedMessages = judging.map { encoded[$0] }
            func figure(_ sum: Int) -> Figure { Figure(bytes: Double(sum) / Double(judging.count * batch)) }
            let own = dictionary ?? (try? ZlibCompression.dictionary(trainedOn: training.map { encoded[$0] }))
            var withDictionary: Figure?
            if let own {
                withDictionary = figure(try DictionaryGain.size(of: judgedMessages, ZlibCompression(dictionary: own)))
            }
            rows.append(
                Row(
                    codec: codec, plain: figure(judgedMessages.reduce(0) { $0 + $1.count }),
                    zlib: figure(try DictionaryGain.size(of: judgedMessages, ZlibCompression())),
                    dictionary: withDictionary))
        }
    }

    /// Whole batches; the rest is left out.
    static func messages(_ records: [RecordValue], _ batch: Int) -> [RecordValue] {
        guard batch > 1 else { return records }
        return stride(from: 0, to: records.count - batch + 1, by: batch).map { .list(Array(records[$0..<$0 + batch])) }
    }

    private static func encode(_ message: RecordValue, _ codec: Codec, _ schema: RecordSchema) throws -> [UInt8] {
        switch codec {
        case .json: try JSONCodec<RecordValue>().encode(message)
        case .propertyList: try PropertyListCodec<RecordValue>().encode(message)
        case .cbor: try CBORCodec<RecordValue>().encode(message)
        case .numberedCBOR: try CBORCodec<RecordValue>().encode(message.numbered(by: schema))
        case .protobuf: ProtobufWriter.message(message, schema)
        }
    }

    /// Simulates a channel that sends messages of each size, one after the other.
    ///
    /// - Parameter settings: the link and the channel; their message size and compression are the comparison's.
    package mutating func measure(on settings: BenchSettings) throws {
        var known: [Int: Double] = [:]
        func rate(_ bytes: Double) throws -> Double {
            let size = max(1, Int((bytes * Double(batch)).rounded()))
            var settings = settings
            settings.messageSize = size
            settings.compression = .none
            let goodput = try known[size] ?? BenchRun.simulate(settings).result.goodput
            known[size] = goodput
            return goodput * 1_000 / 8 / Double(size) * Double(batch)
        }
        for index in rows.indices {
            rows[index].plain.recordsPerSecond = try rate(rows[index].plain.bytes)
            rows[index].zlib.recordsPerSecond = try rate(rows[index].zlib.bytes)
            if let bytes = rows[index].dictionary?.bytes {
                rows[index].dictionary?.recordsPerSecond = try rate(bytes)
            }
        }
    }

    /// A table for people.
    package func text() -> String {
        let head = ["codec", "bytes", "rec/s", "zlib", "rec/s", "dictionary", "rec/s"]
        let table =
            [head]
            + rows.map { row in
                [row.codec.rawValue]
                    + [row.plain, row.zlib, row.dictionary].flatMap { figure in
                        [
                            figure.map { number($0.bytes, 1) } ?? "-",
                            figure?.recordsPerSecond.map { number($0, 0) } ?? "-",
                        ]
                    }
            }
        let widths = head.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        let lines = table.map { row in
            row.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + padding : padding + row[column]
            }.joined(separator: "  ")
        }
        let trained =
            dictionary.map { "dictionary \($0)" } ?? "a dictionary trained on the other records, for each codec one"
        let messages = batch == 1 ? "each a message" : "\(batch) in a message"
        return (["\(judged) records of \(records), \(messages); \(trained):", ""] + lines).joined(separator: "\n")
            + "\n"
    }
}
