/// A service found on a peer.
public struct DiscoveredService: Sendable, Hashable, Codable {
    /// The handles of its attributes, its declaration first.
    public let handles: ClosedRange<UInt16>
    /// The service's type.
    public let uuid: UUID
    /// Primary or secondary.
    public let isPrimary: Bool
}

/// A characteristic found on a peer.
public struct DiscoveredCharacteristic: Sendable, Hashable, Codable {
    /// The handle of its value.
    public let value: UInt16
    /// Characteristic properties (Core Specification 5.4, Vol 3, Part G, 3.3.1.1).
    public let properties: UInt8
    /// The characteristic's type.
    public let uuid: UUID
    /// Its last handle; descriptors lie between the value and here.
    public internal(set) var end: UInt16
}

/// A descriptor found on a peer.
public struct DiscoveredDescriptor: Sendable, Hashable, Codable {
    /// Its handle.
    public let handle: UInt16
    /// Its type.
    public let uuid: UUID
}

/// What a client asks of a server.
public enum ClientRequest: Sendable {
    /// Primary services, of one type or all.
    case services(UUID?)
    /// Services that the service with these handles includes.
    case includedServices(in: ClosedRange<UInt16>)
    /// Characteristics of the service with these handles.
    case characteristics(in: ClosedRange<UInt16>)
    /// Descriptors within these handles.
    case descriptors(in: ClosedRange<UInt16>)
    /// A value, however long.
    case read(UInt16)
    /// The first value of a type within these handles.
    case readByType(ClosedRange<UInt16>, UUID)
    /// A value of at most 512 bytes; in parts where it does not fit a PDU.
    case write(UInt16, [UInt8])
    /// A characteristic's Client Characteristic Configuration, looked for between the handles.
    case configure(value: UInt16, end: UInt16, bits: UInt16)
}

/// What came of a ``ClientRequest``.
public enum ClientResult: Sendable, Hashable, Codable {
    /// Services, in order of their handles.
    case services([DiscoveredService])
    /// Characteristics, in order.
    case characteristics([DiscoveredCharacteristic])
    /// Descriptors, in order.
    case descriptors([DiscoveredDescriptor])
    /// A value.
    case value([UInt8])
    /// It is done.
    case done
}

/// Why a ``ClientRequest`` failed.
public enum ClientFailure: Error, Sendable, Equatable {
    /// The server answered with an error.
    case refused(ATTErrorCode)
    /// The server's answer makes no sense.
    case malformedResponse
    /// The characteristic has no Client Characteristic Configuration.
    case noConfiguration
    /// The connection ended first.
    case disconnected(HCIErrorCode)
    /// Too many requests wait.
    case tooManyRequests
    /// The server closed the enhanced bearer before it answered: it may have written, or not.
    case bearerClosed
}

/// A GATT procedure as a sequence of ATT requests (Core Specification 5.4, Vol 3, Part G, 4).
///
/// Handles asked for only ever rise, and values have at most 512 bytes, so no server can keep a procedure going for good; and
/// ``ATT/procedureTimeout`` bounds the whole.
struct ClientProcedure: Sendable {
    /// The next question to the server.
    private enum Step: Sendable {
        case services(from: UInt16, UUID?)
        case included(ClosedRange<UInt16>)
        case includedType(handle: UInt16, index: Int, rest: ClosedRange<UInt16>?)
        case characteristics(ClosedRange<UInt16>)
        case descriptors(ClosedRange<UInt16>)
        case read(UInt16)
        case readByType(ClosedRange<UInt16>, UUID)
        case write(UInt16, [UInt8])
        case prepare(UInt16, [UInt8], offset: Int, sent: Int)
        case execute(isCommit: Bool, failure: ClientFailure?)
        case findConfiguration(ClosedRange<UInt16>, bits: UInt16)
    }

    let id: UInt64
    let request: ClientRequest
    /// Whether nothing has been asked yet.
    private(set) var isFresh = true
    /// When it is given up as a whole, set with its first request.
    var deadline: Int64?
    /// Whether the link was encrypted when the last request was sent.
    var isSentEncrypted = false
    /// The Client Characteristic Configuration that was found.
    private(set) var configuration: DiscoveredDescriptor?
    /// Whether it was begun a second time.
    private(set) var wasRepeated = false
    private var step: Step
    private var services: [DiscoveredService] = []
    private var characteristics: [DiscoveredCharacteristic] = []
    private var descriptors: [DiscoveredDescriptor] = []
    private var value: [UInt8] = []
    /// The opcode of the request that waits for its answer.
    private var asked: UInt8 = 0

    enum Progress: Equatable {
        case again
        case finished(Result<ClientResult, ClientFailure>)
    }

    init(_ request: ClientRequest, id: UInt64) {
        self.id = id
        self.request = request
        step = Self.firstStep(of: request)
    }

    /// Passes over the search for a Client Characteristic Configuration that is known.
    mutating func writeConfiguration(to descriptor: DiscoveredDescriptor) {
        guard case .findConfiguration(_, let bits) = step else { return }
        var value: [UInt8] = []
        value.append(u16: bits)
        step = .write(descriptor.handle, value)
    }

    /// Starts again, and forgets the results.
    mutating func startAgain() {
        self = ClientProcedure(request, id: id)
        wasRepeated = true
    }

    private static func firstStep(of request: ClientRequest) -> Step {
        switch request {
        case .services(let uuid): .services(from: 1, uuid)
        case .includedServices(let range): .included(range)
        case .characteristics(let range): .characteristics(range)
        case .descriptors(let range): .descriptors(range)
        case .read(let handle): .read(handle)
        case .readByType(let range, let uuid): .readByType(range, uuid)
        case .write(let handle, let value): .write(handle, value)
        case .configure(let value, let end, let bits):
            .findConfiguration(min(value, .max - 1) + 1...max(end, min(value, .max - 1) + 1), bits: bits)
        }
    }

    /// The next request to send.
    mutating func nextRequest(mtu: Int) -> [UInt8] {
        isFresh = false
        let request = makeRequest(mtu: mtu)
        asked = request[0]
        return request
    }

    private mutating func makeRequest(mtu: Int) -> [UInt8] {
        switch step {
        case .services(let start, nil):
            return ATTPDU.make(ATTOpcode.readByGroupTypeRequest, start, 0xFFFF, 0x2800)
        case .services(let start, let uuid?):
            return ATTPDU.make(ATTOpcode.findByTypeValueRequest, start, 0xFFFF, 0x2800, value: uuid.bytes)
        case .included(let range):
            return ATTPDU.make(ATTOpcode.readByTypeRequest, range.lowerBound, range.upperBound, 0x2802)
        case .characteristics(let range):
            return ATTPDU.make(ATTOpcode.readByTypeRequest, range.lowerBound, range.upperBound, 0x2803)
        case .descriptors(let range), .findConfiguration(let range, _):
            return ATTPDU.make(ATTOpcode.findInformationRequest, range.lowerBound, range.upperBound)
        case .includedType(let handle, _, _): return ATTPDU.make(ATTOpcode.readRequest, handle)
        case .read(let handle):
            return value.isEmpty
                ? ATTPDU.make(ATTOpcode.readRequest, handle)
                : ATTPDU.make(ATTOpcode.readBlobRequest, handle, UInt16(truncatingIfNeeded: value.count))
        case .readByType(let range, let uuid):
            return ATTPDU.make(
                ATTOpcode.readByTypeRequest, range.lowerBound, range.upperBound, value: uuid.bytes)
        case .write(let handle, let bytes):
            if bytes.count <= mtu - 3 { return ATTPDU.make(ATTOpcode.writeRequest, handle, value: bytes) }
            return prepare(handle, bytes, offset: 0, mtu: mtu)
        case .prepare(let handle, let bytes, let offset, _):
            return prepare(handle, bytes, offset: offset, mtu: mtu)
        case .execute(let isCommit, _):
            return ATTPDU.make(ATTOpcode.executeWriteRequest, value: [isCommit ? 1 : 0])
        }
    }

    private mutating func prepare(_ handle: UInt16, _ bytes: [UInt8], offset: Int, mtu: Int) -> [UInt8] {
        let count = min(bytes.count - offset, mtu - 5)
        step = .prepare(handle, bytes, offset: offset, sent: count)
        return ATTPDU.make(
            ATTOpcode.prepareWriteRequest, handle, UInt16(truncatingIfNeeded: offset),
            value: Array(bytes[offset..<offset + count]))
    }

    /// Takes the server's answer to the last request.
    mutating func receive(_ pdu: [UInt8], mtu: Int) -> Progress {
        do throws(MalformedPacket) {
            var reader = ByteReader(pdu)
            let opcode = try reader.u8()
            guard opcode == ATTOpcode.errorResponse else {
                return try receive(opcode, &reader, isFull: pdu.count >= mtu)
            }
            // An error names its request (Vol 3, Part F, 3.4.1.1). That of another says nothing of this one, least of all
            // that a list has ended.
            guard try reader.u8() == asked else { throw MalformedPacket() }
            _ = try reader.u16()
            let code = ATTErrorCode(rawValue: try reader.u8())
            guard reader.remaining == 0 else { throw MalformedPacket() }
            return fail(code)
        } catch {
            guard case .prepare = step else { return .finished(.failure(.malformedResponse)) }
            // What the server has taken of the write is not to stay in its queue.
            step = .execute(isCommit: false, failure: .malformedResponse)
            return .again
        }
    }

    /// What an error response means here: often only the end of a list (Vol 3, Part G, 4.4.1 and others).
    private mutating func fail(_ code: ATTErrorCode) -> Progress {
        let isEnd = code == .attributeNotFound
        switch step {
        case .services where isEnd, .included where isEnd: return .finished(.success(.services(services)))
        case .characteristics where isEnd: return .finished(.success(.characteristics(characteristics)))
        case .descriptors where isEnd: return .finished(.success(.descriptors(descriptors)))
        case .findConfiguration where isEnd: return .finished(.failure(.noConfiguration))
        case .read where !value.isEmpty && (code == .attributeNotLong || code == .invalidOffset):
            return .finished(.success(.value(value)))
        case .prepare:
            step = .execute(isCommit: false, failure: .refused(code))
            return .again
        case .execute(false, let failure?): return .finished(.failure(failure))
        default: return .finished(.failure(.refused(code)))
        }
    }

    private mutating func receive(
        _ opcode: UInt8, _ reader: inout ByteReader, isFull: Bool
    ) throws(MalformedPacket) -> Progress {
        switch (step, opcode) {
        case (.services(let start, nil), ATTOpcode.readByGroupTypeResponse):
            let length = Int(try reader.u8())
            guard length == 6 || length == 20, reader.remaining >= length else { throw MalformedPacket() }
            var last = start
            while reader.remaining > 0 {
                last = try addService(&reader, after: last, uuid: nil, length: length)
            }
            return advance(past: last, { .services(from: $0, nil) }, .services(services))

        case (.services(let start, let uuid?), ATTOpcode.findByTypeValueResponse):
            guard reader.remaining >= 4 else { throw MalformedPacket() }
            var last = start
            while reader.remaining > 0 { last = try addService(&reader, after: last, uuid: uuid, length: 4) }
            return advance(past: last, { .services(from: $0, uuid) }, .services(services))

        case (.included(let range), ATTOpcode.readByTypeResponse):
            return try receiveIncluded(&reader, range)

        case (.includedType(_, let index, let rest), ATTOpcode.readResponse):
            guard let uuid = UUID(bytes: reader.rest()) else { throw MalformedPacket() }
            services[index] = DiscoveredService(handles: services[index].handles, uuid: uuid, isPrimary: false)
            guard let rest else { return .finished(.success(.services(services))) }
            step = .included(rest)
            return .again

        case (.characteristics(let range), ATTOpcode.readByTypeResponse):
            return try receiveCharacteristics(&reader, range)

        case (.descriptors(let range), ATTOpcode.findInformationResponse):
            let found = try findInformation(&reader, range)
            descriptors += found.filter {
                ![UUID.primaryService, .secondaryService, .characteristic].contains($0.uuid)
            }
            let last = found.last?.handle ?? range.upperBound
            guard last < range.upperBound else { return .finished(.success(.descriptors(descriptors))) }
            step = .descriptors(last + 1...range.upperBound)
            return .again

        case (.findConfiguration(let range, let bits), ATTOpcode.findInformationResponse):
            let found = try findInformation(&reader, range)
            if let first = found.first(where: { $0.uuid == .clientConfiguration }) {
                configuration = first
                writeConfiguration(to: first)
                return .again
            }
            let last = found.last?.handle ?? range.upperBound
            guard last < range.upperBound else { return .finished(.failure(.noConfiguration)) }
            step = .findConfiguration(last + 1...range.upperBound, bits: bits)
            return .again

        case (.read, ATTOpcode.readResponse), (.read, ATTOpcode.readBlobResponse):
            value += reader.rest()
            // No value is longer (Vol 3, Part F, 3.2.9), and a part of one is not the value.
            guard value.count <= ATT.maximumValueLength else { throw MalformedPacket() }
            guard isFull, value.count < ATT.maximumValueLength else { return .finished(.success(.value(value))) }
            return .again

        case (.readByType, ATTOpcode.readByTypeResponse):
            let length = Int(try reader.u8())
            guard length >= 2 else { throw MalformedPacket() }
            _ = try reader.u16()
            return .finished(.success(.value(try reader.bytes(length - 2))))

        case (.write, ATTOpcode.writeResponse):
            guard reader.remaining == 0 else { throw MalformedPacket() }
            return .finished(.success(.done))

        case (.prepare(let handle, let bytes, let offset, let sent), ATTOpcode.prepareWriteResponse):
            let (echoedHandle, echoedOffset) = (try reader.u16(), try reader.u16())
            // The echo lets the client notice damage and cancel (Vol 3, Part G, 4.9.4).
            guard echoedHandle == handle, Int(echoedOffset) == offset,
                reader.rest().elementsEqual(bytes[offset..<offset + sent])
            else {
                step = .execute(isCommit: false, failure: .malformedResponse)
                return .again
            }
            if offset + sent == bytes.count {
                step = .execute(isCommit: true, failure: nil)
            } else {
                step = .prepare(handle, bytes, offset: offset + sent, sent: 0)
            }
            return .again

        case (.execute(_, let failure), ATTOpcode.executeWriteResponse):
            guard reader.remaining == 0 else { throw MalformedPacket() }
            return .finished(failure.map { .failure($0) } ?? .success(.done))

        default: throw MalformedPacket()
        }
    }
}

// MARK: - Lists

extension ClientProcedure {
    /// Reads one entry of a service list; handles must rise.
    private mutating func addService(
        _ reader: inout ByteReader, after last: UInt16, uuid: UUID?, length: Int
    ) throws(MalformedPacket) -> UInt16 {
        let start = try reader.u16()
        let end = try reader.u16()
        let type: UUID
        if let uuid {
            type = uuid
        } else {
            guard let read = UUID(bytes: try reader.bytes(length - 4)) else { throw MalformedPacket() }
            type = read
        }
        guard start >= last, start <= end, services.last.map({ $0.handles.upperBound < start }) ?? true else {
            throw MalformedPacket()
        }
        services.append(DiscoveredService(handles: start...end, uuid: type, isPrimary: true))
        return end
    }

    private mutating func advance(
        past last: UInt16, _ next: (UInt16) -> Step, _ result: ClientResult
    ) -> Progress {
        guard last < .max else { return .finished(.success(result)) }
        step = next(last + 1)
        return .again
    }

    private mutating func receiveIncluded(
        _ reader: inout ByteReader, _ range: ClosedRange<UInt16>
    ) throws(MalformedPacket) -> Progress {
        let length = Int(try reader.u8())
        guard length == 6 || length == 8, reader.remaining >= length else { throw MalformedPacket() }
        var next = range.lowerBound
        var isLast = false
        while reader.remaining > 0 {
            let handle = try reader.u16()
            let start = try reader.u16()
            let end = try reader.u16()
            guard !isLast, handle >= next, handle <= range.upperBound, start > 0, start <= end else {
                throw MalformedPacket()
            }
            isLast = handle == range.upperBound
            next = isLast ? handle : handle + 1
            let uuid = length == 8 ? UUID(short: try reader.u16()) : UUID(0 as UInt128)
            services.append(DiscoveredService(handles: start...end, uuid: uuid, isPrimary: false))
            if length == 6 {
                // A 128-bit type is not in the declaration: read the included service's own (Vol 3, Part G, 4.5.1).
                step = .includedType(
                    handle: start, index: services.count - 1, rest: isLast ? nil : next...range.upperBound)
                return .again
            }
        }
        guard !isLast else { return .finished(.success(.services(services))) }
        step = .included(next...range.upperBound)
        return .again
    }

    private mutating func receiveCharacteristics(
        _ reader: inout ByteReader, _ range: ClosedRange<UInt16>
    ) throws(MalformedPacket) -> Progress {
        let length = Int(try reader.u8())
        guard length == 7 || length == 21, reader.remaining >= length else { throw MalformedPacket() }
        var last = range.lowerBound
        while reader.remaining > 0 {
            let declaration = try reader.u16()
            let properties = try reader.u8()
            let value = try reader.u16()
            guard declaration >= last, value > declaration, value <= range.upperBound,
                let uuid = UUID(bytes: try reader.bytes(length - 5))
            else { throw MalformedPacket() }
            if !characteristics.isEmpty {
                guard characteristics[characteristics.count - 1].value < declaration else { throw MalformedPacket() }
                characteristics[characteristics.count - 1].end = declaration - 1
            }
            characteristics.append(
                DiscoveredCharacteristic(value: value, properties: properties, uuid: uuid, end: range.upperBound))
            last = value
        }
        guard last < range.upperBound else { return .finished(.success(.characteristics(characteristics))) }
        step = .characteristics(last + 1...range.upperBound)
        return .again
    }

    private func findInformation(
        _ reader: inout ByteReader, _ range: ClosedRange<UInt16>
    ) throws(MalformedPacket) -> [DiscoveredDescriptor] {
        let format = try reader.u8()
        guard format == 1 || format == 2, reader.remaining > 0 else { throw MalformedPacket() }
        var found: [DiscoveredDescriptor] = []
        while reader.remaining > 0 {
            let handle = try reader.u16()
            guard range.contains(handle), found.last.map({ $0.handle < handle }) ?? true,
                let uuid = UUID(bytes: try reader.bytes(format == 1 ? 2 : 16))
            else { throw MalformedPacket() }
            found.append(DiscoveredDescriptor(handle: handle, uuid: uuid))
        }
        return found
    }
}
