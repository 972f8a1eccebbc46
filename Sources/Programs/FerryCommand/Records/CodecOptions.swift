import ArgumentParser
import Ferry
import FerryJSON
import FerryLab

/// Which records codecs are compared with.
struct CodecOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Compare codecs with these records: a file with a JSON value on each line, or a built-in set: "
                + "\(RecordSet.names.joined(separator: ", ")).", valueName: "records"))
    var records: String?

    @Option(name: .long, help: "With --records: how many of them are in a message.")
    var batch = 1

    @Option(
        name: .long,
        help: ArgumentHelp(
            "With --records: the compression dictionary, of ferry dictionary. (default: trained on every second record)",
            valueName: "file"))
    var dictionary: String?

    /// Whether any of the options was given.
    var isGiven: Bool { records != nil || batch != 1 || dictionary != nil }

    /// The records; `nil` where none were asked for.
    ///
    /// - Throws: `FerryError`, for the options that go with records only, too.
    func set() throws(FerryError) -> RecordSet? {
        guard let records else {
            guard !isGiven else {
                throw FerryError(
                    .invalidConfiguration, "--batch and --dictionary are for the records of --records: name these too.")
            }
            return nil
        }
        guard (1...1000).contains(batch) else {
            throw FerryError(.invalidConfiguration, "--batch is \(batch); give 1 to 1000 records in a message.")
        }
        return try RecordSet(records)
    }

    /// The records by each codec, not yet simulated.
    func comparison(of set: RecordSet) throws(FerryError) -> CodecComparison {
        var known: [UInt8]?
        if let dictionary { known = try DictionaryFile.read(dictionary).bytes }
        return try CodecComparison(set, batch: batch, dictionary: known)
    }

    /// The records as messages of JSON, which most apps begin with.
    func messages(of set: RecordSet) throws(FerryError) -> [(name: String, bytes: [UInt8])] {
        try set.messages(batch: batch)
    }
}
