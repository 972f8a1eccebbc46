// The GATT server's requests (Core Specification 5.4, Vol 3, Part F, 3.4 and Part G, 4).

extension LEHost {
    /// Parts of prepared writes that one client may have waiting, and their bytes.
    static let preparedLimit = 128
    static let preparedByteLimit = 8192

    /// Carries out a request, or asks the application to.
    mutating func serve(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        do throws(ATTRequest.Refusal) {
            let request = try ATTRequest.decode(pdu)
            try checkAwareness(index, request)
            if let answer = try answer(index, request, pdu, at: now) { respond(index, answer, at: now) }
            if case .exchangeMTU(let peer) = request { mtuDidChange(index, peer: Int(peer)) }
        } catch {
            refuse(index, pdu.first ?? 0, error.handle, error.code, at: now)
        }
    }

    /// The answer, or nil when the application has been asked.
    private mutating func answer(
        _ index: Int, _ request: ATTRequest, _ pdu: [UInt8], at now: Int64
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        switch request {
        case .exchangeMTU: return ATTPDU.make(ATTOpcode.exchangeMTUResponse, UInt16(configuration.maximumMTU))
        case .findInformation(let range): return try database.findInformation(range, mtu: connections[index].bearer.mtu)
        case .findByTypeValue(let range, let type, let value):
            return try database.findByTypeValue(range, type, value, mtu: connections[index].bearer.mtu) {
                readError(index, $0) == nil
            }
        case .readByGroupType(let range, let type):
            return try database.readByGroupType(range, type, mtu: connections[index].bearer.mtu)
        case .readByType(let range, let type): return try readByType(index, range, type)
        case .read(let handle): return try read(index, handle, offset: 0, isBlob: false)
        case .readBlob(let handle, let offset): return try read(index, handle, offset: Int(offset), isBlob: true)
        case .readMultiple(let handles, let isVariable):
            for handle in handles { _ = try readable(index, handle) }
            return try readMultiple(index, handles, from: 0, isVariable, collected: [])
        case .write(let handle, let value): return try write(index, handle, value)
        case .prepareWrite(let handle, let offset, let value):
            return try prepareWrite(index, handle, Int(offset), value, pdu)
        case .executeWrite(let isCommit): return try executeWrite(index, isCommit)
        }
    }

    // MARK: Reading

    private func readable(_ index: Int, _ handle: UInt16) throws(ATTRequest.Refusal) -> Attribute {
        guard let attribute = database.attribute(handle) else {
            throw ATTRequest.Refusal(handle: handle, code: .invalidHandle)
        }
        if let code = readError(index, attribute) { throw ATTRequest.Refusal(handle: handle, code: code) }
        return attribute
    }

    func readError(_ index: Int, _ attribute: Attribute) -> ATTErrorCode? {
        if !attribute.access.contains(.read) { return .readNotPermitted }
        return attribute.access.contains(.readEncrypted) ? securityError(index, attribute) : nil
    }

    /// What the link lacks for an attribute that needs an encrypted one, if anything.
    private func securityError(_ index: Int, _ attribute: Attribute) -> ATTErrorCode? {
        let link = connections[index].security.link
        let needsSecureConnections = attribute.access.contains(.secureConnections)
        let needsAuthentication = needsSecureConnections || attribute.access.contains(.authenticated)
        guard link.isEncrypted, link.isAuthenticated || !needsAuthentication,
            link.isSecureConnections || !needsSecureConnections
        else {
            return encryptionError(
                index, needsAuthentication: needsAuthentication, needsSecureConnections: needsSecureConnections)
        }
        return nil
    }

    /// A value that the host knows, or nil when the application does.
    private mutating func knownValue(_ index: Int, _ attribute: Attribute) -> [UInt8]? {
        switch attribute.content {
        case .fixed(let value): return value
        case .configuration:
            var value: [UInt8] = []
            value.append(u16: connections[index].configurations[attribute.handle] ?? 0)
            return value
        case .clientFeatures: return [connections[index].clientFeatures.rawValue]
        case .databaseHash:
            if connections[index].awareness == .unaware { connections[index].awareness = .learning }
            return database.keepHash(by: configuration.cryptography)
        case .application: return nil
        }
    }

    /// Asks the application for a value.
    private mutating func ask(
        _ index: Int, _ opcode: UInt8, _ handle: UInt16, _ kind: PendingServerRequest.Kind, offset: Int = 0
    ) {
        let id = ServerRequestID(rawValue: makeID())
        connections[index].bearer.pendingRequest = PendingServerRequest(
            id: id, opcode: opcode, handle: handle, kind: kind)
        pending.events.append(.readRequest(id, connections[index].id, handle: handle, offset: offset))
    }

    private mutating func read(
        _ index: Int, _ handle: UInt16, offset: Int, isBlob: Bool
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        let attribute = try readable(index, handle)
        guard let value = knownValue(index, attribute) else {
            ask(
                index, isBlob ? ATTOpcode.readBlobRequest : ATTOpcode.readRequest, handle, isBlob ? .readBlob : .read,
                offset: offset)
            return nil
        }
        guard offset <= value.count else { throw ATTRequest.Refusal(handle: handle, code: .invalidOffset) }
        return [isBlob ? ATTOpcode.readBlobResponse : ATTOpcode.readResponse] + value[offset...]
    }

    /// Values of one type; the list ends where their length changes, or the application has to be asked (3.4.4.1).
    private mutating func readByType(
        _ index: Int, _ range: ClosedRange<UInt16>, _ type: UUID
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        let mtu = connections[index].bearer.mtu
        var entries: [UInt8] = []
        var entryCount = 0
        for attribute in database.attributes(in: range) where attribute.type == type {
            if let code = readError(index, attribute) {
                if entries.isEmpty { throw ATTRequest.Refusal(handle: attribute.handle, code: code) }
                break
            }
            guard let value = knownValue(index, attribute) else {
                if entries.isEmpty {
                    ask(index, ATTOpcode.readByTypeRequest, attribute.handle, .readByType)
                    return nil
                }
                break
            }
            let cut = value.prefix(min(mtu - 4, 253))
            if entries.isEmpty { entryCount = cut.count + 2 }
            guard cut.count + 2 == entryCount, 2 + entries.count + entryCount <= mtu else { break }
            entries.append(u16: attribute.handle)
            entries += cut
        }
        guard !entries.isEmpty else {
            throw ATTRequest.Refusal(handle: range.lowerBound, code: .attributeNotFound)
        }
        return [ATTOpcode.readByTypeResponse, UInt8(entryCount)] + entries
    }

    /// Goes through the values of Read Multiple; nil when the application has been asked for one of them.
    mutating func readMultiple(
        _ index: Int, _ handles: [UInt16], from start: Int, _ isVariable: Bool, collected: [UInt8]
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        var collected = collected
        let opcode = isVariable ? ATTOpcode.readMultipleVariableRequest : ATTOpcode.readMultipleRequest
        for place in start..<handles.count where collected.count < connections[index].bearer.mtu {
            let attribute = try readable(index, handles[place])
            guard let value = knownValue(index, attribute) else {
                ask(
                    index, opcode, handles[place],
                    .readMultiple(handles, next: place, isVariable: isVariable, collected: collected))
                return nil
            }
            if isVariable { collected.append(u16: UInt16(truncatingIfNeeded: value.count)) }
            collected += value
        }
        return [isVariable ? ATTOpcode.readMultipleVariableResponse : ATTOpcode.readMultipleResponse] + collected
    }

    // MARK: Writing

    private func writable(
        _ index: Int, _ handle: UInt16, _ needed: AttributeAccess
    ) throws(ATTRequest.Refusal) -> Attribute {
        guard let attribute = database.attribute(handle) else {
            throw ATTRequest.Refusal(handle: handle, code: .invalidHandle)
        }
        guard attribute.access.contains(needed) else {
            throw ATTRequest.Refusal(handle: handle, code: .writeNotPermitted)
        }
        if attribute.access.contains(.writeEncrypted), let code = securityError(index, attribute) {
            throw ATTRequest.Refusal(handle: handle, code: code)
        }
        return attribute
    }

    private mutating func write(
        _ index: Int, _ handle: UInt16, _ value: [UInt8]
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        let attribute = try writable(index, handle, .write)
        guard value.count <= ATT.maximumValueLength else {
            throw ATTRequest.Refusal(handle: handle, code: .invalidAttributeValueLength)
        }
        if case .configuration = attribute.content {
            try configure(index, attribute, value)
            return [ATTOpcode.writeResponse]
        }
        if attribute.content == .clientFeatures {
            try writeFeatures(index, handle, value)
            return [ATTOpcode.writeResponse]
        }
        askToWrite(
            index, ATTOpcode.writeRequest, handle, .write, [WritePart(handle: handle, offset: 0, value: value)])
        return nil
    }

    private mutating func askToWrite(
        _ index: Int, _ opcode: UInt8, _ handle: UInt16, _ kind: PendingServerRequest.Kind, _ parts: [WritePart]
    ) {
        let id = ServerRequestID(rawValue: makeID())
        connections[index].bearer.pendingRequest = PendingServerRequest(
            id: id, opcode: opcode, handle: handle, kind: kind)
        pending.events.append(.writeRequest(id, connections[index].id, parts))
    }

    /// Writes a client's configuration (Vol 3, Part G, 3.3.3.3).
    private mutating func configure(
        _ index: Int, _ attribute: Attribute, _ value: [UInt8]
    ) throws(ATTRequest.Refusal) {
        guard value.count == 2 else {
            throw ATTRequest.Refusal(handle: attribute.handle, code: .invalidAttributeValueLength)
        }
        let bits = UInt16(value[0]) | UInt16(value[1]) << 8
        // Properties have notify in bit 4 and indicate in bit 5; the configuration has them in bits 0 and 1.
        guard bits & ~(attribute.group >> 4 & 0x3) == 0 else {
            throw ATTRequest.Refusal(handle: attribute.handle, code: .valueNotAllowed)
        }
        guard case .configuration(let characteristic) = attribute.content,
            connections[index].configurations[attribute.handle] ?? 0 != bits
        else { return }
        connections[index].configurations[attribute.handle] = bits == 0 ? nil : bits
        guard characteristic != database.serviceChanged else { return }
        pending.events.append(.configurationChanged(connections[index].id, handle: characteristic, bits: bits))
    }

    mutating func receiveWriteCommand(_ index: Int, _ handle: UInt16, _ value: RawSpan) {
        do throws(ATTRequest.Refusal) {
            let attribute = try writable(index, handle, .writeCommand)
            guard value.byteCount <= ATT.maximumValueLength, !isOutOfStep(index) else { return }
            if case .configuration = attribute.content {
                try configure(index, attribute, [UInt8](copying: value))
            } else {
                let bytes = pending.store(value)
                pending.events.append(.writeCommand(connections[index].id, handle: handle, bytes))
            }
        } catch {}  // commands have no answer (3.4.5.3)
    }

    private mutating func prepareWrite(
        _ index: Int, _ handle: UInt16, _ offset: Int, _ value: [UInt8], _ pdu: [UInt8]
    ) throws(ATTRequest.Refusal) -> [UInt8]? {
        _ = try writable(index, handle, .write)
        let waiting = connections[index].bearer.prepared.reduce(0) { $0 + $1.value.count }
        guard connections[index].bearer.prepared.count < Self.preparedLimit,
            waiting + value.count <= Self.preparedByteLimit
        else { throw ATTRequest.Refusal(handle: handle, code: .prepareQueueFull) }
        connections[index].bearer.prepared.append(WritePart(handle: handle, offset: offset, value: value))
        return [ATTOpcode.prepareWriteResponse] + pdu.dropFirst()
    }

    private mutating func executeWrite(_ index: Int, _ isCommit: Bool) throws(ATTRequest.Refusal) -> [UInt8]? {
        let parts = connections[index].bearer.prepared
        connections[index].bearer.prepared = []
        guard isCommit, !parts.isEmpty else { return [ATTOpcode.executeWriteResponse] }
        var forApplication: [WritePart] = []
        var configurations: [(Attribute, [UInt8])] = []
        var features: [(UInt16, [UInt8])] = []
        for part in parts {
            let attribute = try writable(index, part.handle, .write)
            guard part.offset <= ATT.maximumValueLength else {
                throw ATTRequest.Refusal(handle: part.handle, code: .invalidOffset)
            }
            guard part.offset + part.value.count <= ATT.maximumValueLength else {
                throw ATTRequest.Refusal(handle: part.handle, code: .invalidAttributeValueLength)
            }
            if case .configuration = attribute.content {
                guard part.offset == 0 else { throw ATTRequest.Refusal(handle: part.handle, code: .invalidOffset) }
                configurations.append((attribute, part.value))
            } else if attribute.content == .clientFeatures {
                guard part.offset == 0 else { throw ATTRequest.Refusal(handle: part.handle, code: .invalidOffset) }
                features.append((part.handle, part.value))
            } else {
                forApplication.append(part)
            }
        }
        for (attribute, value) in configurations { try configure(index, attribute, value) }
        for (handle, value) in features { try writeFeatures(index, handle, value) }
        guard !forApplication.isEmpty else { return [ATTOpcode.executeWriteResponse] }
        askToWrite(index, ATTOpcode.executeWriteRequest, forApplication[0].handle, .execute, forApplication)
        return nil
    }
}
