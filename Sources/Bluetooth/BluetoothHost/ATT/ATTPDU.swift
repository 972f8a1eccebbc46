/// Attribute Protocol opcodes (Core Specification 5.4, Vol 3, Part F, 3.4.8).
enum ATTOpcode {
    static let errorResponse: UInt8 = 0x01
    static let exchangeMTURequest: UInt8 = 0x02
    static let exchangeMTUResponse: UInt8 = 0x03
    static let findInformationRequest: UInt8 = 0x04
    static let findInformationResponse: UInt8 = 0x05
    static let findByTypeValueRequest: UInt8 = 0x06
    static let findByTypeValueResponse: UInt8 = 0x07
    static let readByTypeRequest: UInt8 = 0x08
    static let readByTypeResponse: UInt8 = 0x09
    static let readRequest: UInt8 = 0x0A
    static let readResponse: UInt8 = 0x0B
    static let readBlobRequest: UInt8 = 0x0C
    static let readBlobResponse: UInt8 = 0x0D
    static let readMultipleRequest: UInt8 = 0x0E
    static let readMultipleResponse: UInt8 = 0x0F
    static let readByGroupTypeRequest: UInt8 = 0x10
    static let readByGroupTypeResponse: UInt8 = 0x11
    static let writeRequest: UInt8 = 0x12
    static let writeResponse: UInt8 = 0x13
    static let prepareWriteRequest: UInt8 = 0x16
    static let prepareWriteResponse: UInt8 = 0x17
    static let executeWriteRequest: UInt8 = 0x18
    static let executeWriteResponse: UInt8 = 0x19
    static let notification: UInt8 = 0x1B
    static let indication: UInt8 = 0x1D
    static let confirmation: UInt8 = 0x1E
    static let readMultipleVariableRequest: UInt8 = 0x20
    static let readMultipleVariableResponse: UInt8 = 0x21
    static let multipleNotification: UInt8 = 0x23
    static let writeCommand: UInt8 = 0x52
    static let signedWriteCommand: UInt8 = 0xD2

    /// PDUs that only a server sends, as answers.
    static func isResponse(_ opcode: UInt8) -> Bool {
        switch opcode {
        case errorResponse, exchangeMTUResponse, findInformationResponse, findByTypeValueResponse, readByTypeResponse,
            readResponse, readBlobResponse, readMultipleResponse, readByGroupTypeResponse, writeResponse,
            prepareWriteResponse, executeWriteResponse, readMultipleVariableResponse:
            true
        default: false
        }
    }
}

/// Bounds of the Attribute Protocol.
public enum ATT {
    /// ATT_MTU before the exchange (Core Specification 5.4, Vol 3, Part G, 5.2.1).
    public static let defaultMTU = 23
    /// The largest useful ATT_MTU: a whole value with a prepared write's header.
    public static let maximumMTU = 517
    /// Most bytes of a value (Vol 3, Part F, 3.2.9).
    public static let maximumValueLength = 512
    /// How long a request or an indication may wait for its answer, in nanoseconds (Vol 3, Part F, 3.3.3).
    public static let transactionTimeout: Int64 = 30_000_000_000
    /// How long a ``ClientRequest`` may take as a whole, however many requests of ATT it is made of, in nanoseconds: a server
    /// that tells one handle at a time, each just within ``transactionTimeout``, could go on for weeks. Ferry's own choice.
    public static let procedureTimeout: Int64 = 300_000_000_000
}

/// An error code of the Attribute Protocol (Core Specification 5.4, Vol 3, Part F, 3.4.1.1).
public struct ATTErrorCode: Error, Sendable, Hashable, CustomStringConvertible {
    /// The code as sent.
    public let rawValue: UInt8
    /// Makes a code; 0x80 to 0x9F belong to the application.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    static let invalidHandle = ATTErrorCode(rawValue: 0x01)
    static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
    static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
    static let invalidPDU = ATTErrorCode(rawValue: 0x04)
    static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
    static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
    static let invalidOffset = ATTErrorCode(rawValue: 0x07)
    static let prepareQueueFull = ATTErrorCode(rawValue: 0x09)
    static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
    static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
    static let invalidAttributeValueLength = ATTErrorCode(rawValue: 0x0D)
    static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)
    static let unlikelyError = ATTErrorCode(rawValue: 0x0E)
    static let unsupportedGroupType = ATTErrorCode(rawValue: 0x10)
    static let insufficientResources = ATTErrorCode(rawValue: 0x11)
    static let databaseOutOfSync = ATTErrorCode(rawValue: 0x12)
    static let valueNotAllowed = ATTErrorCode(rawValue: 0x13)

    /// The code in hexadecimal.
    public var description: String { "ATT error 0x\(String(rawValue, radix: 16))" }
}

/// A client's request, decoded (Core Specification 5.4, Vol 3, Part F, 3.4).
enum ATTRequest: Sendable, Equatable {
    case exchangeMTU(UInt16)
    case findInformation(ClosedRange<UInt16>)
    case findByTypeValue(ClosedRange<UInt16>, type: UUID, value: [UInt8])
    case readByType(ClosedRange<UInt16>, type: UUID)
    case read(UInt16)
    case readBlob(UInt16, offset: UInt16)
    case readMultiple([UInt16], isVariable: Bool)
    case readByGroupType(ClosedRange<UInt16>, type: UUID)
    case write(UInt16, value: [UInt8])
    case prepareWrite(UInt16, offset: UInt16, value: [UInt8])
    case executeWrite(isCommit: Bool)

    /// Why a request cannot be carried out, and the handle to name in the error response.
    struct Refusal: Error, Equatable {
        let handle: UInt16
        let code: ATTErrorCode
    }

    /// Decodes a PDU from its opcode on.
    static func decode(_ pdu: [UInt8]) throws(Refusal) -> ATTRequest {
        do throws(MalformedPacket) {
            var reader = ByteReader(pdu)
            let opcode = try reader.u8()
            let request = try decode(opcode, &reader)
            guard reader.remaining == 0 else { throw MalformedPacket() }
            if let request { return request }
        } catch {
            throw Refusal(handle: 0, code: .invalidPDU)
        }
        switch pdu[0] {
        case ATTOpcode.findInformationRequest, ATTOpcode.findByTypeValueRequest, ATTOpcode.readByTypeRequest,
            ATTOpcode.readByGroupTypeRequest:
            // A range that is empty or begins at 0 has its own error (3.4.3.1).
            var reader = ByteReader(pdu, from: 1)
            throw Refusal(handle: (try? reader.u16()) ?? 0, code: .invalidHandle)
        default: throw Refusal(handle: 0, code: .requestNotSupported)
        }
    }

    /// Nil for an opcode that is no request or for a range that is none.
    private static func decode(_ opcode: UInt8, _ reader: inout ByteReader) throws(MalformedPacket) -> ATTRequest? {
        switch opcode {
        case ATTOpcode.exchangeMTURequest: return .exchangeMTU(try reader.u16())
        case ATTOpcode.findInformationRequest:
            return try range(&reader).map { .findInformation($0) }
        case ATTOpcode.findByTypeValueRequest:
            let range = try range(&reader)
            let type = UUID(short: try reader.u16())
            let value = reader.rest()
            return range.map { .findByTypeValue($0, type: type, value: value) }
        case ATTOpcode.readByTypeRequest, ATTOpcode.readByGroupTypeRequest:
            let range = try range(&reader)
            guard [2, 16].contains(reader.remaining), let type = UUID(bytes: reader.rest()) else {
                throw MalformedPacket()
            }
            return range.map {
                opcode == ATTOpcode.readByTypeRequest ? .readByType($0, type: type) : .readByGroupType($0, type: type)
            }
        case ATTOpcode.readRequest: return .read(try reader.u16())
        case ATTOpcode.readBlobRequest: return .readBlob(try reader.u16(), offset: try reader.u16())
        case ATTOpcode.readMultipleRequest, ATTOpcode.readMultipleVariableRequest:
            guard reader.remaining >= 4 else { throw MalformedPacket() }
            var handles: [UInt16] = []
            while reader.remaining > 0 { handles.append(try reader.u16()) }
            return .readMultiple(handles, isVariable: opcode == ATTOpcode.readMultipleVariableRequest)
        case ATTOpcode.writeRequest: return .write(try reader.u16(), value: reader.rest())
        case ATTOpcode.prepareWriteRequest:
            return .prepareWrite(try reader.u16(), offset: try reader.u16(), value: reader.rest())
        case ATTOpcode.executeWriteRequest:
            let flags = try reader.u8()
            guard flags <= 1 else { throw MalformedPacket() }
            return .executeWrite(isCommit: flags == 1)
        default:
            _ = reader.rest()
            return nil
        }
    }

    private static func range(_ reader: inout ByteReader) throws(MalformedPacket) -> ClosedRange<UInt16>? {
        let start = try reader.u16()
        let end = try reader.u16()
        return start == 0 || start > end ? nil : start...end
    }
}

/// Builds PDUs.
enum ATTPDU {
    static func error(_ request: UInt8, handle: UInt16, _ code: ATTErrorCode) -> [UInt8] {
        var pdu = [ATTOpcode.errorResponse, request]
        pdu.append(u16: handle)
        pdu.append(code.rawValue)
        return pdu
    }

    static func make(_ opcode: UInt8, _ fields: UInt16..., value: [UInt8] = []) -> [UInt8] {
        var pdu = [opcode]
        for field in fields { pdu.append(u16: field) }
        return pdu + value
    }
}
