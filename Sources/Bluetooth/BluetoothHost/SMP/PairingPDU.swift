/// Commands of the Security Manager Protocol (Core Specification 5.4, Vol 3, Part H, 3.5 and 3.6). Keys and numbers are
/// held most significant octet first, and sent the other way round.
enum PairingPDU: Sendable, Equatable {
    case request(PairingFeatures)
    case response(PairingFeatures)
    case confirm([UInt8])
    case random([UInt8])
    case failed(UInt8)
    case encryptionInformation([UInt8])
    case centralIdentification(diversifier: UInt16, random: UInt64)
    case identityInformation([UInt8])
    /// Nil for an address of a type that does not exist (3.6.5).
    case identityAddress(Address?)
    case signingInformation
    case securityRequest(authentication: UInt8)
    case publicKey(x: [UInt8], y: [UInt8])
    case check([UInt8])
    case keypress

    /// Reads a command; nil for one that does not exist (3.3 asks for "command not supported" then).
    static func decode(_ bytes: [UInt8]) throws(MalformedPacket) -> PairingPDU? {
        var reader = ByteReader(bytes)
        let code = try reader.u8()
        let pdu: PairingPDU
        switch code {
        case 0x01: pdu = .request(try PairingFeatures(&reader))
        case 0x02: pdu = .response(try PairingFeatures(&reader))
        case 0x03: pdu = .confirm(try reader.reversed(16))
        case 0x04: pdu = .random(try reader.reversed(16))
        case 0x05: pdu = .failed(try reader.u8())
        case 0x06: pdu = .encryptionInformation(try reader.reversed(16))
        case 0x07: pdu = .centralIdentification(diversifier: try reader.u16(), random: try reader.u64())
        case 0x08: pdu = .identityInformation(try reader.reversed(16))
        case 0x09:
            let kind = Address.Kind(rawValue: try reader.u8())
            let address = try Address(&reader, kind: kind ?? .public)
            pdu = .identityAddress(kind == nil ? nil : address)
        case 0x0A:
            _ = try reader.bytes(16)
            pdu = .signingInformation
        case 0x0B: pdu = .securityRequest(authentication: try reader.u8())
        case 0x0C: pdu = .publicKey(x: try reader.reversed(32), y: try reader.reversed(32))
        case 0x0D: pdu = .check(try reader.reversed(16))
        case 0x0E:
            _ = try reader.u8()
            pdu = .keypress
        default: return nil
        }
        guard reader.remaining == 0 else { throw MalformedPacket() }
        return pdu
    }

    var bytes: [UInt8] {
        switch self {
        case .request(let features): return [0x01] + features.bytes
        case .response(let features): return [0x02] + features.bytes
        case .confirm(let value): return [0x03] + value.reversed()
        case .random(let value): return [0x04] + value.reversed()
        case .failed(let reason): return [0x05, reason]
        case .encryptionInformation(let key): return [0x06] + key.reversed()
        case .centralIdentification(let diversifier, let random):
            var bytes: [UInt8] = [0x07]
            bytes.append(u16: diversifier)
            bytes.append(u64: random)
            return bytes
        case .identityInformation(let key): return [0x08] + key.reversed()
        case .identityAddress(let address):
            guard let address else { return [0x09] + [UInt8](repeating: 0xFF, count: 7) }
            return [0x09, address.kind.rawValue] + address.bytes
        case .signingInformation: return [0x0A] + [UInt8](repeating: 0, count: 16)
        case .securityRequest(let authentication): return [0x0B, authentication]
        case .publicKey(let x, let y): return [0x0C] + x.reversed() + y.reversed()
        case .check(let value): return [0x0D] + value.reversed()
        case .keypress: return [0x0E, 0]
        }
    }
}

/// What one side brings to a pairing (3.5.1, 3.5.2).
struct PairingFeatures: Sendable, Equatable {
    static let bonding: UInt8 = 0x01
    static let authenticated: UInt8 = 0x04
    static let secureConnections: UInt8 = 0x08
    /// Key distribution: the long term key of legacy pairing, the identity.
    static let encryptionKey: UInt8 = 0x01
    static let identityKey: UInt8 = 0x02

    var capability: UInt8
    var hasOOBData: UInt8 = 0
    var authentication: UInt8
    var keySize: UInt8 = 16
    var initiatorKeys: UInt8
    var responderKeys: UInt8

    init(capability: IOCapability, authentication: UInt8, initiatorKeys: UInt8, responderKeys: UInt8) {
        self.capability = capability.rawValue
        self.authentication = authentication
        self.initiatorKeys = initiatorKeys
        self.responderKeys = responderKeys
    }

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        capability = try reader.u8()
        hasOOBData = try reader.u8()
        authentication = try reader.u8()
        keySize = try reader.u8()
        initiatorKeys = try reader.u8()
        responderKeys = try reader.u8()
    }

    var bytes: [UInt8] { [capability, hasOOBData, authentication, keySize, initiatorKeys, responderKeys] }
    /// As f6 takes them.
    var capabilities: [UInt8] { [authentication, hasOOBData, capability] }
    func has(_ bit: UInt8) -> Bool { authentication & bit != 0 }
}

extension ByteReader {
    /// Reads a field that is sent least significant octet first.
    mutating func reversed(_ count: Int) throws(MalformedPacket) -> [UInt8] { Array(try bytes(count).reversed()) }
}
