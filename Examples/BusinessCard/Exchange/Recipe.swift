import ArgumentParser
import Ferry

/// What both sides of an exchange must agree on.
struct Recipe: Sendable {
    var framing = FramingChoice.eom
    var codec = CodecChoice.json
    var compresses = false
    /// The most bytes in a chunk; nil for the framing's default.
    var chunkSize: Int?
}

/// How chunks become messages again.
enum FramingChoice: String, CaseIterable, ExpressibleByArgument, Sendable {
    case eom, length

    func make(chunkSize: Int?) throws(FerryError) -> any Framing {
        switch self {
        case .eom: try EndOfMessageFraming(chunkSize: chunkSize ?? 20)
        case .length: LengthPrefixFraming()
        }
    }

    var title: String {
        switch self {
        case .eom: "eom: the marker EOM after the last chunk"
        case .length: "length: the message's length before the first byte"
        }
    }
}

/// How cards become bytes.
enum CodecChoice: String, CaseIterable, ExpressibleByArgument, Sendable {
    case json, plist, xml

    var title: String {
        switch self {
        case .json: "JSON"
        case .plist: "binary property list"
        case .xml: "XML property list"
        }
    }
}
