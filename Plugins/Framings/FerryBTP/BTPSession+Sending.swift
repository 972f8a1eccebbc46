public import Ferry

extension BTPFraming.Session {
    /// Takes a message to be sent; it leaves when the handshake is complete.
    ///
    /// - Throws: `messageTooLarge` above ``/Ferry/Limits/maximumMessageSize`` or 65 535 bytes.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= BTPFraming.maximumMessageSize else {
            throw FerryError(
                .messageTooLarge,
                "The message to be sent has \(payload.count) bytes; BTP can express \(BTPFraming.maximumMessageSize). Send less at once."
            )
        }
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its packets has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers the next packet: of the handshake, of a message, or an acknowledgement alone.
    ///
    /// - Throws: what `offer` throws, `chunkSizeTooSmall` below 20 bytes, and `incompatiblePeer` once a peer with other versions has been
    ///   answered so.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        switch phase {
        case .awaitsResponse, .awaitsRequest: return .idle
        case .failed(let error):
            if error.code == .incompatiblePeer { throw error }
            return .idle
        case .owesRequest:
            let size = try checked(maximumChunkSize())
            let request = BTPRequest(mtu: UInt16(min(size, Int(UInt16.max))), window: UInt8(configuration.window))
            guard try offer(request.bytes.span.bytes) else { return .refused }
            phase = .awaitsResponse
            return .accepted
        case .owesResponse(let request):
            return try answer(request, atMost: try checked(maximumChunkSize()), at: now, offer)
        case .open(let window, let packetSize):
            let hasData = !outbound.isEmpty && window.maySendData
            let isDue = if case .due = acknowledgement { true } else { false }
            let acknowledges = isDue || window.isAcknowledgementUrgent
            guard hasData || (acknowledges && window.maySendAcknowledgement) else { return .idle }
            let size = min(packetSize, try checked(maximumChunkSize()))
            return try hasData ? sendData(window, size, at: now, offer) : acknowledge(window, at: now, offer)
        }
    }

    private func checked(_ size: Int) throws(FerryError) -> Int {
        guard size >= BTPFraming.packetSizes.lowerBound else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The link takes chunks of \(size) bytes; BTP needs \(BTPFraming.packetSizes.lowerBound), an ATT_MTU of 23."
            )
        }
        return size
    }

    // MARK: The handshake

    private mutating func answer(
        _ request: BTPRequest, atMost size: Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let isKnown = request.versions.contains(BTPFraming.version)
        let window = min(Int(request.window), configuration.window)
        let packetSize = Self.packetSize(asked: request.mtu, own: size)
        let response = BTPResponse(
            version: isKnown ? BTPFraming.version : 0, fragment: UInt16(packetSize), window: UInt8(window))
        guard try offer(response.bytes.span.bytes) else { return .refused }
        guard isKnown else {
            _ = fail(.noCommonVersion(request.versions))
            return .accepted
        }
        open(BTPWindow(role, size: window), packetSize, at: now)
        return .accepted
    }

    /// The size of packets that is safe for each meaning of a request's MTU: connectedhomeip sends ATT_MTU, matter.js ATT_MTU - 3, and some
    /// 0 for what they do not know.
    ///
    /// - Parameter own: what this side can send at once, ATT_MTU - 3.
    static func packetSize(asked: UInt16, own: Int) -> Int {
        let theirs = asked == 0 ? own : Int(asked) - 3
        let sizes = BTPFraming.packetSizes
        return max(sizes.lowerBound, min(theirs, own, sizes.upperBound))
    }

    mutating func open(_ window: BTPWindow, _ packetSize: Int, at now: Timestamp) {
        phase = .open(window, packetSize: packetSize)
        handshakeDeadline = nil
        unacknowledgedSince = now
        if window.owed > 0 { acknowledgement = .waits(until: now + configuration.acknowledgementDelay) }
    }

    // MARK: Packets

    private mutating func sendData(
        _ window: BTPWindow, _ size: Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let total = outbound.first.payload.count
        let start = outbound.acceptedBytes
        var header = BTPHeader(
            outbound.hasBegun ? .more : .begin, acknowledged: window.acknowledgement, sequence: window.nextToSend,
            length: outbound.hasBegun ? nil : UInt16(total))
        let end = min(total, start + size - header.byteCount)
        if end == total { header.flags.insert(.end) }
        scratch.removeAll(keepingCapacity: true)
        header.append(to: &scratch)
        outbound.first.payload.withUnsafeBytes {
            scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[start..<end]))
        }
        guard try offer(scratch.span.bytes) else { return .refused }
        packetLeft(at: now)
        outbound.accept(upTo: end, telling: &events)
        return .accepted
    }

    private mutating func acknowledge(
        _ window: BTPWindow, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        scratch.removeAll(keepingCapacity: true)
        BTPHeader([], acknowledged: window.acknowledgement, sequence: window.nextToSend).append(to: &scratch)
        guard try offer(scratch.span.bytes) else { return .refused }
        packetLeft(at: now)
        return .accepted
    }

    /// It acknowledges all received packets.
    private mutating func packetLeft(at now: Timestamp) {
        guard case .open(var window, let packetSize) = phase else { return }
        if window.unacknowledged == 0 { unacknowledgedSince = now }
        window.sent()
        phase = .open(window, packetSize: packetSize)
        acknowledgement = .none
    }
}
