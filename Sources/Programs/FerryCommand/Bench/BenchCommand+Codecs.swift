import ArgumentParser
import Ferry
import FerryLab

extension Bench {
    /// What `ferry bench --records --json` prints for each point.
    private struct CodecPoint: Encodable {
        var settings: BenchSettings
        var codecs: CodecComparison
    }

    func checkCodecs() throws(FerryError) {
        guard transport.isSimulated, peer == nil, !serve, !connect, !csv, report == nil, compare == nil else {
            throw FerryError(
                .invalidConfiguration,
                "--records compares codecs on the simulated link, as a table or JSON. Leave --transport, --peer, --serve, "
                    + "--connect, --csv, --report and --compare out.")
        }
        _ = try codecs.set()
        _ = try points()
    }

    /// Compares codecs at each point of the sweep.
    func compareCodecs() throws {
        guard let set = try codecs.set() else { return }
        let comparison = try codecs.comparison(of: set)
        // The sizes and the compression of the messages are the comparison's.
        var points: [BenchSettings] = []
        for var point in try self.points() {
            point.messageSize = 1
            point.compression = .none
            if !points.contains(point) { points.append(point) }
        }
        var results: [CodecPoint] = []
        for (index, point) in points.enumerated() {
            var codecs = comparison
            try codecs.measure(on: point)
            results.append(CodecPoint(settings: point, codecs: codecs))
            guard !json else { continue }
            Swift.print(index > 0 ? "\n" : "", terminator: "")
            Swift.print("\(ResultTable.name(of: point, among: points)):\n\n\(codecs.text())", terminator: "")
        }
        if json { Swift.print(try JSONFile.text(results), terminator: "") }
    }
}
