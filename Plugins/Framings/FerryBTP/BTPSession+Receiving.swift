public import Ferry

extension BTPFraming.Session {
    /// Takes a packet that arrived.
    ///
    /// Taken, as connectedhomeip takes them: bits without meaning, parts of a message that are shorter than a packet, bytes beyond a
    /// message's length (left out), content after an acknowledgement alone (left out), a message of no bytes, and one packet more than
    /// the window.
    ///
    /// - Throws: `malformedStream` for a packet that cannot be one or has a number that was not due; `messageTooLarge` for a length above
    ///   ``/Ferry/Limits/maximumMessageSize``, before memory is taken; `incompatiblePeer` for a peer with other versions. The same
    ///   again for every later packet.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        if receiveMiddle(chunk, at: now) { return }
        switch phase {
        case .failed(let error): throw error
        case .open(let window, let packetSize):
            try receive(chunk, window, packetSize, at: now)
        case .awaitsResponse:
            try receiveResponse(
                [UInt8](chunk.withUnsafeBytes { $0.prefix(BTPRequest.byteCount) }), chunk.byteCount, at: now)
        case .awaitsRequest:
            try receiveRequest([UInt8](chunk.withUnsafeBytes { $0.prefix(BTPRequest.byteCount) }), chunk.byteCount)
        case .owesRequest, .owesResponse:
            throw fail(malformed("came before the handshake was answered", chunk))
        }
    }

    /// Takes most packets: with nothing but the middle of a message, in their turn. Returns false for any other, and has done nothing.
    @inline(__always)
    private mutating func receiveMiddle(_ chunk: RawSpan, at now: Timestamp) -> Bool {
        let count = chunk.byteCount &- 2
        guard count > 0, case .arriving(let missing, let surplus) = inbound, count <= missing,
            chunk.unsafeLoad(as: UInt8.self) == BTPFlags.more.rawValue, case .open(var window, let packetSize) = phase,
            window.receivedInTurn(chunk.unsafeLoad(fromByteOffset: 1, as: UInt8.self))
        else { return false }
        phase = .open(window, packetSize: packetSize)
        packetCame(at: now)
        stall.chunkArrived(at: now)
        assembler.append(chunk.extracting(droppingFirst: 2))
        inbound = .arriving(missing: missing &- count, surplus: surplus)
        return true
    }

    private mutating func packetCame(at now: Timestamp) {
        if case .none = acknowledgement { acknowledgement = .waits(until: now + configuration.acknowledgementDelay) }
    }

    // MARK: The handshake

    private mutating func receiveRequest(_ packet: [UInt8], _ count: Int) throws(FerryError) {
        guard let request = BTPRequest(packet) else {
            throw fail(.noHandshake(packet, count, "a request of 9 bytes that begins with 65 6C"))
        }
        // A request without a version in common is answered all the same.
        if request.versions.contains(BTPFraming.version) { try check(window: request.window) }
        phase = .owesResponse(request)
    }

    private mutating func receiveResponse(_ packet: [UInt8], _ count: Int, at now: Timestamp) throws(FerryError) {
        guard let response = BTPResponse(packet), count < BTPRequest.byteCount else {
            throw fail(.noHandshake(packet, count, "a response of 6 bytes that begins with 65 6C"))
        }
        guard response.version == BTPFraming.version else {
            throw fail(.noCommonVersion(response.version == 0 ? [] : [response.version]))
        }
        guard Int(response.fragment) >= BTPFraming.packetSizes.lowerBound else {
            throw fail(
                FerryError(
                    .malformedStream,
                    "The peer's handshake response allows packets of \(response.fragment) bytes; 20 at least were expected "
                        + "(BLE_ERROR_INVALID_FRAGMENT_SIZE)."))
        }
        try check(window: response.window)
        let window = BTPWindow(role, size: Int(response.window))
        open(window, min(Int(response.fragment), BTPFraming.packetSizes.upperBound), at: now)
    }

    private mutating func check(window: UInt8) throws(FerryError) {
        guard !BTPFraming.windows.contains(Int(window)) else { return }
        throw fail(
            FerryError(
                .malformedStream,
                "The peer's handshake has a window of \(window) packets; 3 at least were expected, as fewer leave no place for "
                    + "acknowledgements."))
    }

    // MARK: Packets

    private mutating func receive(
        _ chunk: RawSpan, _ before: BTPWindow, _ packetSize: Int, at now: Timestamp
    ) throws(FerryError) {
        guard let header = BTPHeader(chunk) else { throw fail(malformed("ends within its head", chunk)) }
        var window = before
        do throws(BTPWindow.Violation) {
            if let acknowledged = header.acknowledged {
                try window.acknowledged(acknowledged)
                unacknowledgedSince = now
            }
            try window.received(header.sequence)
        } catch {
            throw fail(malformed(Self.text(error, header), chunk))
        }
        phase = .open(window, packetSize: packetSize)
        packetCame(at: now)
        guard header.flags.hasData else { return }
        stall.chunkArrived(at: now)
        try receiveData(header, chunk)
    }

    private static func text(_ violation: BTPWindow.Violation, _ header: BTPHeader) -> String {
        switch violation {
        case .sequence(let expected):
            "has number \(header.sequence); \(expected) was due (BLE_ERROR_INVALID_BTP_SEQUENCE_NUMBER). A packet was lost or doubled"
        case .overrun(let count):
            "is the \(count)th without an acknowledgement, more than the window allows"
        case .acknowledgement(let waiting, let newest):
            "acknowledges number \(header.acknowledged ?? 0), which is none of the \(waiting) up to \(newest) that wait for it "
                + "(BLE_ERROR_INVALID_ACK)"
        }
    }

    private mutating func receiveData(_ header: BTPHeader, _ chunk: RawSpan) throws(FerryError) {
        let content = chunk.extracting(droppingFirst: header.byteCount)
        var (missing, surplus): (Int, Int)
        switch inbound {
        case .none:
            guard let length = header.length else {
                throw fail(
                    malformed("goes on with a message that has not begun (BLE_ERROR_INVALID_BTP_HEADER_FLAGS)", chunk))
            }
            guard Int(length) <= inboundLimit else {
                throw fail(
                    .messageTooLarge(
                        receiving: "announces \(length) bytes", afterMessages: deliveredMessages, limit: inboundLimit))
            }
            (missing, surplus) = (Int(length), 0)
            assembler.begin(expecting: missing)
        case .arriving(let rest, let more):
            guard header.length == nil else {
                throw fail(
                    malformed("begins a message within another (BLE_ERROR_INVALID_BTP_HEADER_FLAGS)", chunk))
            }
            (missing, surplus) = (rest, more)
        }
        let taken = min(missing, content.byteCount)
        if taken > 0 { assembler.append(content.extracting(first: taken)) }
        missing -= taken
        surplus += content.byteCount - taken
        guard header.flags.contains(.end) else {
            // The rest of one packet may be padding; more than that is no message.
            guard surplus <= BTPFraming.packetSizes.upperBound else {
                throw fail(malformed("goes \(surplus) bytes beyond its message's length, without its end", chunk))
            }
            inbound = .arriving(missing: missing, surplus: surplus)
            return
        }
        guard missing == 0 else {
            throw fail(
                malformed("ends a message that lacks \(missing) bytes (BLE_ERROR_REASSEMBLER_MISSING_DATA)", chunk))
        }
        inbound = .none
        events.received(assembler.takeExpected())
        deliveredMessages += 1
    }

    private func malformed(_ what: String, _ chunk: RawSpan) -> FerryError {
        let first = chunk.withUnsafeBytes { [UInt8]($0.prefix(8)) }
        return FerryError(
            .malformedStream,
            "A packet of \(chunk.byteCount) bytes from the peer (\(hexadecimal(first))) \(what). BTP cannot mend it: connect again."
        )
    }
}

extension FerryError {
    static func noHandshake(_ packet: [UInt8], _ count: Int, _ expected: String) -> FerryError {
        FerryError(
            .malformedStream,
            "The peer began with \(count) bytes (\(hexadecimal(packet))); \(expected) was expected. Check that it speaks Matter's BTP, and "
                + "that one side alone has connected.")
    }

    static func noCommonVersion(_ versions: [UInt8]) -> FerryError {
        let theirs = versions.isEmpty ? "none that this side knows" : versions.map(String.init).joined(separator: ", ")
        return FerryError(
            .incompatiblePeer,
            "The two sides have no version of BTP in common: this one has \(BTPFraming.version), the peer \(theirs).")
    }
}

/// For messages.
private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.isEmpty ? "none" : bytes.hexadecimal(separator: " ")
}
