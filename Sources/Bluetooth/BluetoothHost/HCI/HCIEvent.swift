/// Events of the controller, as far as an LE host needs them (Core Specification 5.4, Vol 4, Part E, 7.7).
///
/// Number Of Completed Packets is read in place by the host, for it comes with every few packets.
enum HCIEvent: Sendable {
    case commandComplete(credits: UInt8, opcode: UInt16, parameters: [UInt8])
    case commandStatus(status: UInt8, credits: UInt8, opcode: UInt16)
    case disconnectionComplete(status: UInt8, handle: UInt16, reason: UInt8)
    case encryptionChange(status: UInt8, handle: UInt16, isEnabled: Bool)
    case hardwareError(UInt8)
    case dataBufferOverflow
    case connectionComplete(LEConnectionComplete)
    case connectionUpdateComplete(status: UInt8, handle: UInt16, ConnectionParameters)
    case advertisingReports([AdvertisingReport])
    case longTermKeyRequest(handle: UInt16, random: UInt64, diversifier: UInt16)
    case connectionParameterRequest(handle: UInt16, minimum: UInt16, maximum: UInt16, latency: UInt16, timeout: UInt16)
    case dataLengthChange(handle: UInt16, transmitOctets: UInt16, receiveOctets: UInt16)
    case phyUpdateComplete(status: UInt8, handle: UInt16, transmit: UInt8, receive: UInt8)
    case advertisingSetTerminated(status: UInt8, set: UInt8)
    case other

    static let numberOfCompletedPackets: UInt8 = 0x13

    /// Decodes an event packet without its H4 indicator.
    init(_ packet: [UInt8]) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        let code = try reader.u8()
        guard Int(try reader.u8()) == reader.remaining else { throw MalformedPacket() }
        switch code {
        case 0x05:
            self = .disconnectionComplete(
                status: try reader.u8(), handle: try reader.u16() & 0x0FFF, reason: try reader.u8())
        case 0x08:
            self = .encryptionChange(
                status: try reader.u8(), handle: try reader.u16() & 0x0FFF, isEnabled: try reader.u8() != 0)
        case 0x0E:
            self = .commandComplete(credits: try reader.u8(), opcode: try reader.u16(), parameters: reader.rest())
        case 0x0F:
            self = .commandStatus(status: try reader.u8(), credits: try reader.u8(), opcode: try reader.u16())
        case 0x10: self = .hardwareError(try reader.u8())
        case 0x1A: self = .dataBufferOverflow
        // Encryption Key Refresh Complete: a link that was encrypted is so with a new key (7.7.39).
        case 0x30:
            self = .encryptionChange(status: try reader.u8(), handle: try reader.u16() & 0x0FFF, isEnabled: true)
        case 0x3E: self = try Self.leMeta(&reader)
        default: self = .other
        }
    }

    private static func leMeta(_ reader: inout ByteReader) throws(MalformedPacket) -> HCIEvent {
        switch try reader.u8() {
        case 0x01: return .connectionComplete(try LEConnectionComplete(&reader, isEnhanced: false))
        case 0x0A, 0x29: return .connectionComplete(try LEConnectionComplete(&reader, isEnhanced: true))
        case 0x02: return .advertisingReports(try AdvertisingReport.legacy(&reader))
        case 0x0D: return .advertisingReports(try AdvertisingReport.extended(&reader))
        case 0x03:
            return .connectionUpdateComplete(
                status: try reader.u8(), handle: try reader.u16() & 0x0FFF, try ConnectionParameters(&reader))
        case 0x05:
            return .longTermKeyRequest(
                handle: try reader.u16() & 0x0FFF, random: try reader.u64(), diversifier: try reader.u16())
        case 0x06:
            return .connectionParameterRequest(
                handle: try reader.u16() & 0x0FFF, minimum: try reader.u16(), maximum: try reader.u16(),
                latency: try reader.u16(), timeout: try reader.u16())
        case 0x07:
            let handle = try reader.u16() & 0x0FFF
            let transmit = try reader.u16()
            _ = try reader.u16()
            return .dataLengthChange(handle: handle, transmitOctets: transmit, receiveOctets: try reader.u16())
        case 0x0C:
            return .phyUpdateComplete(
                status: try reader.u8(), handle: try reader.u16() & 0x0FFF, transmit: try reader.u8(),
                receive: try reader.u8())
        case 0x12: return .advertisingSetTerminated(status: try reader.u8(), set: try reader.u8())
        default: return .other
        }
    }
}

/// How often two connected devices meet (Core Specification 5.4, Vol 6, Part B, 4.5.1).
public struct ConnectionParameters: Sendable, Hashable {
    /// Connection interval in units of 1.25 ms.
    public var interval: UInt16
    /// Connection events that the peripheral may leave out.
    public var latency: UInt16
    /// Silence after which the connection is lost, in units of 10 ms.
    public var supervisionTimeout: UInt16

    /// Makes parameters; the units are the specification's.
    public init(interval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
        self.interval = interval
        self.latency = latency
        self.supervisionTimeout = supervisionTimeout
    }

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        self.init(interval: try reader.u16(), latency: try reader.u16(), supervisionTimeout: try reader.u16())
    }
}

/// LE Connection Complete and LE Enhanced Connection Complete (7.7.65.1, 7.7.65.10).
struct LEConnectionComplete: Sendable {
    let status: UInt8
    let handle: UInt16
    let isCentral: Bool
    /// The address that the peer used, also where the controller has resolved it.
    let peer: Address
    /// Whether the controller knows whose private address that is.
    let isResolved: Bool
    /// The private address that the controller made for this side, where it did.
    let local: Address?
    let parameters: ConnectionParameters

    init(_ reader: inout ByteReader, isEnhanced: Bool) throws(MalformedPacket) {
        status = try reader.u8()
        handle = try reader.u16() & 0x0FFF
        isCentral = try reader.u8() == 0
        let type = try reader.u8()
        let named = try Address(&reader, kind: type & 1 == 0 ? .public : .random)
        isResolved = type & 2 != 0
        let own = isEnhanced ? try Address(&reader, kind: .random) : nil
        let used = isEnhanced ? try Address(&reader, kind: .random) : nil
        // Without resolution these fields are all 0 (7.7.65.10).
        local = own.flatMap { $0.value == 0 ? nil : $0 }
        peer = used.flatMap { $0.value == 0 ? nil : $0 } ?? named
        parameters = try ConnectionParameters(&reader)
    }
}

/// One advertisement or scan response, as the controller reports it.
public struct AdvertisingReport: Sendable, Hashable {
    /// Who advertises.
    public let address: Address
    /// Whether the controller has put the peer's identity address in place of a private one.
    let isResolved: Bool
    /// Whether it takes connections. A scan response does not say; it repeats the advertisement's.
    public let isConnectable: Bool
    /// Whether this is the answer to an active scan's request.
    public let isScanResponse: Bool
    /// How strongly it was heard, in dBm; 127 when not known.
    public let rssi: Int8
    /// Advertising data as it is on the air (Core Specification Supplement, Part A).
    public internal(set) var data: [UInt8]
    /// Whether the controller has more of the data to tell, in a report that follows.
    let isPartial: Bool
    /// The advertising set, which tells an advertiser's trains of data apart.
    var set: UInt8 = 0xFF

    /// Reports of LE Advertising Report (7.7.65.2), which older controllers send.
    static func legacy(_ reader: inout ByteReader) throws(MalformedPacket) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(try reader.u8()) {
            let type = try reader.u8()
            let isResolved = reader.isIdentityNext
            let address = try Address(&reader)
            let data = try reader.bytes(Int(try reader.u8()))
            reports.append(
                AdvertisingReport(
                    address: address, isResolved: isResolved, isConnectable: type <= 1, isScanResponse: type == 4,
                    rssi: try reader.i8(),
                    data: data, isPartial: false))
        }
        return reports
    }

    /// Reports of LE Extended Advertising Report (7.7.65.13).
    static func extended(_ reader: inout ByteReader) throws(MalformedPacket) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(try reader.u8()) {
            let type = try reader.u16()
            let isResolved = reader.isIdentityNext
            let address = try Address(&reader)
            _ = try reader.bytes(2)  // primary and secondary PHY
            let set = try reader.u8()
            _ = try reader.u8()  // transmit power
            let rssi = try reader.i8()
            _ = try reader.bytes(9)  // periodic interval, directed address
            let data = try reader.bytes(Int(try reader.u8()))
            reports.append(
                AdvertisingReport(
                    address: address, isResolved: isResolved, isConnectable: type & 0x01 != 0,
                    isScanResponse: type & 0x08 != 0, rssi: rssi,
                    data: data, isPartial: type >> 5 & 0x03 == 1, set: set))
        }
        return reports
    }
}

extension ByteReader {
    /// Whether the address type that comes next is an identity address's, which the controller has resolved to: 2 or 3.
    fileprivate var isIdentityNext: Bool { peek.map { $0 == 2 || $0 == 3 } ?? false }
}
