import ArgumentParser
import Ferry
import FerryCBOR
import FerryJSON
import FerryPropertyList
import FerrySequenced
import FerryTransports
import FerryZlib

/// What both sides of an exchange must agree on.
struct Recipe: Sendable {
    var framing = FramingChoice.eom
    var codec = CodecChoice.json
    var compresses = false
    /// The most bytes in a chunk; nil for the framing's default.
    var chunkSize: Int?

    /// Opens a channel for cards over a link.
    func open(over link: any Link, time: any TimeSource = SystemTime()) throws(FerryError) -> MessageChannel<Card, Card>
    {
        func channel(_ framing: some Framing) throws(FerryError) -> MessageChannel<Card, Card> {
            try MessageChannel(
                over: link, codec: codec.make(), framing: framing,
                compression: compresses ? ZlibCompression() : nil, chunkSize: chunkSize, time: time)
        }
        return try channel(ProtectedTransport.framing(framing.make(chunkSize: chunkSize), over: link))
    }
}

/// How chunks become messages again.
enum FramingChoice: String, CaseIterable, ExpressibleByArgument, Sendable {
    case eom, length, sequenced

    func make(chunkSize: Int?) throws(FerryError) -> any Framing {
        switch self {
        case .eom: try EndOfMessageFraming(chunkSize: chunkBound(chunkSize))
        case .length: LengthPrefixFraming()
        case .sequenced: SequencedFraming()
        }
    }

    /// Whether the peer says that it has the message.
    var acknowledges: Bool { self == .sequenced }

    /// The most bytes in a chunk, or nil for what the link takes. Those who use a marker use 20, the value that fits
    /// every Bluetooth LE connection.
    func chunkBound(_ chosen: Int?) -> Int? { chosen ?? (self == .eom ? 20 : nil) }

    var title: String {
        switch self {
        case .eom: "the marker EOM after the last chunk"
        case .length: "the message's length before its first byte"
        case .sequenced: "numbered chunks, acknowledged and sent again when lost"
        }
    }
}

/// How cards become bytes.
enum CodecChoice: String, CaseIterable, ExpressibleByArgument, Sendable {
    case json, cbor, plist, xml

    func make() -> any Codec<Card> {
        switch self {
        case .json: JSONCodec<Card>()
        case .cbor: CBORCodec<Card>()
        case .plist: PropertyListCodec<Card>(format: .binary)
        case .xml: PropertyListCodec<Card>(format: .xml)
        }
    }

    var title: String {
        switch self {
        case .json: "JSON"
        case .cbor: "CBOR"
        case .plist: "binary property list"
        case .xml: "XML property list"
        }
    }
}
