import Ferry
import FerryCBOR
import FerryJSON
import Workloads

private struct Card: Codable, Sendable {
    var name = "Ada Lovelace"
    var organization = "Analytical Engines"
    var mail = "ada@example.org"
    var phone = "+44 20 7946 0000"
    var born = 1815
    var topics = ["mathematics", "engines"]
}

private struct Reading: Codable, Sendable {
    enum CodingKeys: Int, CodingKey { case sensor = 1, celsius, humidity, at, isValid }

    var sensor: UInt16
    var celsius: Double
    var humidity: Double
    var at: Int
    var isValid = true
}

private struct Track: Codable, Sendable {
    var identifier = 5
    var points: [[Double]]
    var notes: [String: String]
}

/// CBOR beside JSON: bytes, and the time of both ways, of three sets of records.
func checkCodecs(_ report: inout Report) throws {
    report.heading("CBOR beside JSON, medians of 21 rounds")
    let readings = (0..<100).map { Reading(sensor: 7, celsius: 21.53, humidity: 45.1, at: 1_700_000_000 + $0) }
    let track = Track(
        points: (0..<200).map { [Double($0) * 0.1, Double($0) * 0.37] },
        notes: Dictionary(uniqueKeysWithValues: (0..<30).map { ("key \($0)", "value \($0)") }))
    try compare("a card", Card(), passes: 500, &report)
    try compare("100 readings, integer keys", readings, passes: 10, &report)
    try compare("a track of 200 points", track, passes: 10, &report)
}

private func compare<Message: Codable & Sendable>(
    _ name: String, _ message: Message, passes: Int, _ report: inout Report
) throws {
    let (cbor, json) = (CBORCodec<Message>(), JSONCodec<Message>())
    let (short, long) = (try cbor.encode(message), try json.encode(message))
    var writing: [Double] = []
    var reading: [Double] = []
    for _ in 0..<21 {
        writing.append(
            try seconds(passes) { _ = try json.encode(message) } / seconds(passes) { _ = try cbor.encode(message) })
        reading.append(
            try seconds(passes) { _ = try json.decode(long) } / seconds(passes) { _ = try cbor.decode(short) })
    }
    report.line("\(name)", "\(short.count) bytes, JSON \(long.count)")
    for (way, ratios) in [("encoding", writing), ("decoding", reading)] {
        let ratio = median(ratios)
        report.line("    \(way)", "\(rounded(ratio)) x JSON's rate", target: "at least 3", isMet: ratio >= 3)
    }
}

private func seconds(_ passes: Int, _ body: () throws -> Void) rethrows -> Double {
    let elapsed = try ContinuousClock().measure { for _ in 0..<passes { try body() } }
    return elapsed / .seconds(1)
}
