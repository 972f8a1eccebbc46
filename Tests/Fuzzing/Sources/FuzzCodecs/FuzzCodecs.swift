import Ferry
import FerryCBOR
import FerryJSON
import FerryPropertyList
import FerryZlib
import FuzzDriver

/// One message for a codec or a compression, made of arbitrary bytes, under libFuzzer.
///
/// An input's first byte chooses: 0 CBOR of a type with names, 1 CBOR of one with integers, 2 JSON, 3 a property list, 4 deflate
/// without and 5 with a dictionary, after two bytes that state the plain length.
///
/// Nothing may trap or hang; what is read can be written and read again; what was compressed becomes as long as was stated, or is
/// refused.
private struct Part: Codable, Hashable, Sendable {
    var numbers: [Int]
    var levels: [String: Double]
    var raw: [UInt8]?
}

private struct Named: Codable, Hashable, Sendable {
    var name: String
    var large: Int128
    var level: Double
    var short: Float?
    var parts: [Part]
}

private struct Numbered: Codable, Hashable, Sendable {
    enum CodingKeys: Int, CodingKey {
        case sensor = 1
        case name = 2
        case level = 3
        case samples = -1
        case inner = 40
    }

    var sensor: UInt16
    var name: String
    var level: Double?
    var samples: [Int]?
    var inner: CBOREmbedded<Part>?
}

private struct Listed: Codable, Hashable, Sendable {
    var name: String
    var count: Int
    var parts: [[String: Double]]
}

private let dictionary = Array(
    "{\"count\":,\"firstName\":\"organization\":\"Analytical Engines\",\"mail\":\"@example.org\"".utf8)
private let plain = ZlibCompression()
private let shared = ZlibCompression(dictionary: dictionary)

private func check<C: Codec>(_ codec: C, _ payload: [UInt8]) where C.Message: Equatable {
    guard let message = try? codec.decode(payload), let again = try? codec.encode(message) else { return }
    // A number that is none does not equal itself, and is written in one way.
    guard let read = try? codec.decode(again), read == message || (try? codec.encode(read)) == again else {
        preconditionFailure("\(message) did not survive")
    }
}

/// What arrives by a channel with this compression and is not refused is compressed, and restored.
private func restore(_ payload: ArraySlice<UInt8>, _ compression: ZlibCompression, count: Int) {
    let bytes = Array(payload)
    guard let message = try? compression.decompress(bytes.span.bytes, plainCount: count) else { return }
    precondition(message.count == count)
    var again: [UInt8] = []
    guard (try? compression.compress(message.span.bytes, into: &again, budget: .max)) == true,
        (try? compression.decompress(again.span.bytes, plainCount: count)) == message
    else { preconditionFailure("\(count) bytes did not survive") }
}

private func play(_ input: UnsafeRawBufferPointer) {
    guard let kind = input.first else { return }
    let payload = Array(input.dropFirst())
    switch kind % 6 {
    case 0: check(CBORCodec<Named>(maximumDepth: 16, maximumValues: 1000), payload)
    case 1: check(CBORCodec<Numbered>(maximumDepth: 16, maximumValues: 1000), payload)
    case 2: check(JSONCodec<Named>(maximumDepth: 16, maximumValues: 1000), payload)
    case 3: check(PropertyListCodec<Listed>(maximumDepth: 16), payload)
    default:
        // The length that the sender states: as a channel checks it, 64 KiB at most.
        guard payload.count >= 2 else { return }
        restore(
            payload.dropFirst(2), kind % 6 == 4 ? plain : shared, count: Int(payload[0]) << 8 | Int(payload[1]))
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    play(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
