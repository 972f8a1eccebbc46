/// Commands of the LE signalling channel (Core Specification 5.4, Vol 3, Part A, 4).
enum SignallingCommand: Sendable, Equatable {
    case reject(reason: UInt16)
    /// A reject for a channel that is none, with the two ends that the request named (4.1, Table 4.4).
    case rejectChannel(destination: UInt16, source: UInt16)
    case disconnectionRequest(destination: UInt16, source: UInt16)
    case disconnectionResponse(destination: UInt16, source: UInt16)
    case parameterUpdateRequest(minimum: UInt16, maximum: UInt16, latency: UInt16, timeout: UInt16)
    case parameterUpdateResponse(result: UInt16)
    case connectionRequest(psm: UInt16, source: UInt16, mtu: UInt16, mps: UInt16, credits: UInt16)
    case connectionResponse(destination: UInt16, mtu: UInt16, mps: UInt16, credits: UInt16, result: UInt16)
    case flowControlCredit(channel: UInt16, credits: UInt16)
    /// Several channels at once (4.25), the ends at the sender's side.
    case enhancedRequest(EnhancedRequest)
    /// One end for each of the request, 0 where there is none (4.26).
    case enhancedResponse(mtu: UInt16, mps: UInt16, credits: UInt16, result: UInt16, destinations: [UInt16])
    /// New sizes that the sender takes on channels, which are named by the ends at its side (4.27).
    case reconfigureRequest(mtu: UInt16, mps: UInt16, channels: [UInt16])
    case reconfigureResponse(result: UInt16)
    case unknown(code: UInt8)

    /// Decodes a C-frame's payload, which on LE holds one command.
    static func decode(_ payload: [UInt8]) throws(MalformedPacket) -> (identifier: UInt8, SignallingCommand) {
        var reader = ByteReader(payload)
        let code = try reader.u8()
        let identifier = try reader.u8()
        guard Int(try reader.u16()) == reader.remaining, identifier != 0 else { throw MalformedPacket() }
        return (identifier, try decode(code, &reader))
    }

    private static func decode(
        _ code: UInt8, _ reader: inout ByteReader
    ) throws(MalformedPacket) -> SignallingCommand {
        switch code {
        case 0x01: return .reject(reason: try reader.u16())
        case 0x06: return .disconnectionRequest(destination: try reader.u16(), source: try reader.u16())
        case 0x07: return .disconnectionResponse(destination: try reader.u16(), source: try reader.u16())
        case 0x12:
            return .parameterUpdateRequest(
                minimum: try reader.u16(), maximum: try reader.u16(), latency: try reader.u16(),
                timeout: try reader.u16())
        case 0x13: return .parameterUpdateResponse(result: try reader.u16())
        case 0x14:
            return .connectionRequest(
                psm: try reader.u16(), source: try reader.u16(), mtu: try reader.u16(), mps: try reader.u16(),
                credits: try reader.u16())
        case 0x15:
            return .connectionResponse(
                destination: try reader.u16(), mtu: try reader.u16(), mps: try reader.u16(),
                credits: try reader.u16(), result: try reader.u16())
        case 0x16: return .flowControlCredit(channel: try reader.u16(), credits: try reader.u16())
        case 0x17:
            return .enhancedRequest(
                EnhancedRequest(
                    psm: try reader.u16(), mtu: try reader.u16(), mps: try reader.u16(), credits: try reader.u16(),
                    sources: try channels(&reader)))
        case 0x18:
            return .enhancedResponse(
                mtu: try reader.u16(), mps: try reader.u16(), credits: try reader.u16(), result: try reader.u16(),
                destinations: try channels(&reader))
        case 0x19:
            return .reconfigureRequest(
                mtu: try reader.u16(), mps: try reader.u16(), channels: try channels(&reader))
        case 0x1A: return .reconfigureResponse(result: try reader.u16())
        default: return .unknown(code: code)
        }
    }

    /// All that is left; how many are too many is for the answer to say.
    private static func channels(_ reader: inout ByteReader) throws(MalformedPacket) -> [UInt16] {
        var channels: [UInt16] = []
        while reader.remaining > 0 { channels.append(try reader.u16()) }
        return channels
    }

    func encode(identifier: UInt8) -> [UInt8] {
        let (code, fields): (UInt8, [UInt16]) =
            switch self {
            case .reject(let reason): (0x01, [reason])
            case .rejectChannel(let destination, let source): (0x01, [0x0002, destination, source])
            case .disconnectionRequest(let destination, let source): (0x06, [destination, source])
            case .disconnectionResponse(let destination, let source): (0x07, [destination, source])
            case .parameterUpdateRequest(let minimum, let maximum, let latency, let timeout):
                (0x12, [minimum, maximum, latency, timeout])
            case .parameterUpdateResponse(let result): (0x13, [result])
            case .connectionRequest(let psm, let source, let mtu, let mps, let credits):
                (0x14, [psm, source, mtu, mps, credits])
            case .connectionResponse(let destination, let mtu, let mps, let credits, let result):
                (0x15, [destination, mtu, mps, credits, result])
            case .flowControlCredit(let channel, let credits): (0x16, [channel, credits])
            case .enhancedRequest(let request):
                (0x17, [request.psm, request.mtu, request.mps, request.credits] + request.sources)
            case .enhancedResponse(let mtu, let mps, let credits, let result, let destinations):
                (0x18, [mtu, mps, credits, result] + destinations)
            case .reconfigureRequest(let mtu, let mps, let channels): (0x19, [mtu, mps] + channels)
            case .reconfigureResponse(let result): (0x1A, [result])
            case .unknown(let code): (code, [])
            }
        var bytes: [UInt8] = [code, identifier]
        bytes.append(u16: UInt16(truncatingIfNeeded: 2 * fields.count))
        for field in fields { bytes.append(u16: field) }
        return bytes
    }
}

/// A request for several channels at once (Core Specification 5.4, Vol 3, Part A, 4.25).
struct EnhancedRequest: Sendable, Equatable {
    let psm: UInt16
    let mtu: UInt16
    let mps: UInt16
    let credits: UInt16
    /// The ends at the sender's side.
    let sources: [UInt16]
}

/// Results of a request for credit-based channels (Core Specification 5.4, Vol 3, Part A, 4.22 and 4.26).
public struct ChannelResult: Sendable, Hashable, CustomStringConvertible {
    /// The result as sent.
    public let rawValue: UInt16
    /// Makes a result.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The channel is open.
    public static let success = ChannelResult(rawValue: 0x0000)
    /// No listener on that PSM.
    public static let psmNotSupported = ChannelResult(rawValue: 0x0002)
    /// The peer has no resources.
    public static let noResources = ChannelResult(rawValue: 0x0004)
    /// The link must be encrypted first, and there is no key yet.
    public static let insufficientAuthentication = ChannelResult(rawValue: 0x0005)
    /// The link must be encrypted first.
    public static let insufficientEncryption = ChannelResult(rawValue: 0x0008)
    /// The channel number is outside the dynamic range.
    public static let invalidSourceChannel = ChannelResult(rawValue: 0x0009)
    /// The channel number is in use.
    public static let sourceChannelInUse = ChannelResult(rawValue: 0x000A)
    /// MTU, MPS or credits are not acceptable.
    public static let unacceptableParameters = ChannelResult(rawValue: 0x000B)
    /// The request for several channels breaks a rule.
    public static let invalidParameters = ChannelResult(rawValue: 0x000C)
    /// The peer does not know the request. Not sent over the air.
    public static let rejected = ChannelResult(rawValue: 0xFFFE)
    /// No answer in time. Not sent over the air.
    public static let timedOut = ChannelResult(rawValue: 0xFFFF)

    /// What the result means, and its number.
    public var description: String {
        let name =
            switch rawValue {
            case 0x0000: "success"
            case 0x0002: "PSM not supported"
            case 0x0004: "no resources"
            case 0x0005: "insufficient authentication"
            case 0x0006: "insufficient authorization"
            case 0x0007: "encryption key size too short"
            case 0x0008: "insufficient encryption"
            case 0x0009: "invalid source channel"
            case 0x000A: "source channel already in use"
            case 0x000B: "unacceptable parameters"
            case 0x000C: "invalid parameters"
            case 0x000D: "pending"
            case 0x000E: "pending for authentication"
            case 0x000F: "pending for authorization"
            case 0xFFFE: "request rejected"
            case 0xFFFF: "no answer in time"
            default: "reserved result"
            }
        return "\(name) (0x\(String(rawValue, radix: 16)))"
    }
}

/// Results of a request to change channels' sizes (Core Specification 5.4, Vol 3, Part A, 4.28).
public struct ReconfigurationResult: Sendable, Hashable, CustomStringConvertible {
    /// The result as sent.
    public let rawValue: UInt16
    /// Makes a result.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The channels have the new sizes.
    public static let success = ReconfigurationResult(rawValue: 0x0000)
    /// An MTU may not become smaller.
    public static let mtuReduced = ReconfigurationResult(rawValue: 0x0001)
    /// An MPS may become smaller on one channel at a time only.
    public static let mpsReduced = ReconfigurationResult(rawValue: 0x0002)
    /// A channel is none.
    public static let invalidChannel = ReconfigurationResult(rawValue: 0x0003)
    /// The sizes, or the number of channels, are not acceptable.
    public static let unacceptableParameters = ReconfigurationResult(rawValue: 0x0004)
    /// The peer does not know the request. Not sent over the air.
    public static let rejected = ReconfigurationResult(rawValue: 0xFFFE)
    /// No answer in time, or the connection ended. Not sent over the air.
    public static let timedOut = ReconfigurationResult(rawValue: 0xFFFF)

    /// What the result means, and its number.
    public var description: String {
        let name =
            switch rawValue {
            case 0x0000: "success"
            case 0x0001: "MTU must not become smaller"
            case 0x0002: "MPS must not become smaller on several channels"
            case 0x0003: "invalid channel"
            case 0x0004: "unacceptable parameters"
            case 0xFFFE: "request rejected"
            case 0xFFFF: "no answer in time"
            default: "reserved result"
            }
        return "\(name) (0x\(String(rawValue, radix: 16)))"
    }
}
