public import Ferry

extension GattlinkFraming.Session {
    /// Takes a message to be sent; it leaves when both sides have begun.
    ///
    /// - Throws: `messageTooLarge` above ``/Ferry/Limits/maximumMessageSize``; `gattlink.notADatagram` for an empty message, and for one
    ///   that is no IPv4 datagram where the stream carries them.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        switch content {
        case .datagrams:
            guard payload.count >= GattlinkFraming.shortestDatagram, payload[0] >> 4 == 4,
                Int(payload[2]) << 8 | Int(payload[3]) == payload.count
            else {
                throw FerryError(
                    .notADatagram,
                    "The message of \(payload.count) bytes is no IPv4 datagram with that length in its head. Send datagrams, or have the "
                        + "stream carry bytes: GattlinkFraming(.stream).")
            }
        case .stream:
            guard !payload.isEmpty else {
                throw FerryError(.notADatagram, "An empty message is no part of a stream.")
            }
        }
        waiting.append(payload, as: id)
    }

    /// The same. A message counts as sent when the link has taken it, and with the receipt `delivered` when the peer has acknowledged
    /// it.
    public mutating func enqueue(
        _ payload: [UInt8], as id: MessageID, options: SendOptions, at now: Timestamp
    ) throws(FerryError) {
        try enqueue(payload, as: id, at: now)
        if options.receipt == .delivered { deliveries.insert(id) }
    }

    /// Takes a message back if none of its bytes has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
        guard waiting.cancel(id) else { return false }
        deliveries.remove(id)
        return true
    }

    /// Nothing has left, not all of it, or it may have arrived.
    public func fate(of id: MessageID) -> MessageFate {
        guard let message = begun.first(where: { $0.id == id }) else { return waiting.fate(of: id) }
        return message.progress == .leaving ? .takenBack : .mayHaveArrived
    }

    /// Offers the next packet: of the begin, with data, with an acknowledgement, or with both.
    ///
    /// - Throws: what `offer` throws, and `chunkSizeTooSmall` below 5 bytes, or when a packet that goes again does not fit any more.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        switch phase {
        case .closed, .failed, .asking(isOut: true), .answering(isOut: true): return .idle
        case .asking(isOut: false):
            guard try offerControl([0x80], maximumChunkSize(), offer) else { return .refused }
            phase = .asking(isOut: true)
            repeatDeadline = now + .seconds(1)
            return .accepted
        case .answering(isOut: false):
            guard try offerControl(resetComplete, maximumChunkSize(), offer) else { return .refused }
            phase = .answering(isOut: true)
            repeatDeadline = now + .seconds(2)
            return .accepted
        case .open(owesAnswer: true):
            guard try offerControl(resetComplete, maximumChunkSize(), offer) else { return .refused }
            phase = .open(owesAnswer: false)
            return .accepted
        case .open(owesAnswer: false):
            let hasData = sending.hasPlace && (sending.again != nil || hasNews)
            guard hasData || owesAcknowledgement else { return .idle }
            return try sendPacket(try checked(maximumChunkSize()), hasData, at: now, offer)
        }
    }

    private var resetComplete: [UInt8] {
        let window = UInt8(configuration.window)
        return [0x81, 0, 0, window, window]
    }

    private func offerControl(
        _ packet: [UInt8], _ size: Int, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Bool {
        _ = try checked(size)
        return try offer(packet.span.bytes)
    }

    private func checked(_ size: Int) throws(FerryError) -> Int {
        guard size >= GattlinkPacket.longestControl else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The link takes chunks of \(size) bytes; Gattlink needs \(GattlinkPacket.longestControl) at least.")
        }
        return size
    }

    // MARK: Packets

    private var owesAcknowledgement: Bool {
        if case .due = acknowledgement { true } else { receiving.isUrgent }
    }

    /// Whether there are bytes that have not left yet.
    private var hasNews: Bool { next.message < acknowledgedMessages + begun.count || !waiting.isEmpty }

    private mutating func sendPacket(
        _ size: Int, _ hasData: Bool, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let acknowledges = owesAcknowledgement
        let room = size - (acknowledges ? 2 : 1)
        var packet = hasData ? sending.again ?? news(atMost: room) : nil
        // A packet goes again as long as it was: an acknowledgement for which it leaves no place goes by itself.
        if acknowledges, let again = packet, again.count > room { packet = nil }
        scratch.removeAll(keepingCapacity: true)
        if acknowledges { scratch.append(0x40 | receiving.acknowledgement) }
        if let packet {
            guard packet.count <= room else {
                throw fail(
                    FerryError(
                        .chunkSizeTooSmall,
                        "The link takes chunks of \(size) bytes, and a packet of \(packet.count + 1) has to go again: connect anew."
                    ))
            }
            scratch.append(sending.number)
            payload(of: packet.message).withUnsafeBytes {
                scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[packet.start..<packet.end]))
            }
        }
        guard try offer(scratch.span.bytes) else { return .refused }
        if acknowledges {
            receiving.acknowledged()
            acknowledgement = .none
        }
        if let packet { left(packet, at: now) }
        return .accepted
    }

    /// The next bytes that have not left yet, of one message.
    private func news(atMost room: Int) -> SendingWindow.Packet {
        let count = payload(of: next.message).count - next.offset
        return SendingWindow.Packet(message: next.message, start: next.offset, count: min(count, room))
    }

    private func payload(of message: Int) -> [UInt8] {
        let place = message - acknowledgedMessages
        return place < begun.count ? begun[place].payload : waiting.first.payload
    }

    private mutating func left(_ packet: SendingWindow.Packet, at now: Timestamp) {
        let isNew = sending.again == nil
        if sending.packets.isEmpty { silentSince = now }
        sending.left(packet)
        if resendDeadline == nil { resendDeadline = now + configuration.resendInterval }
        guard isNew else { return }
        let place = packet.message - acknowledgedMessages
        if place == begun.count {
            begun.append(Begun(id: waiting.first.id, payload: waiting.first.payload))
            waiting.removeFirst()
        }
        let isLast = packet.end == begun[place].payload.count
        next = isLast ? (packet.message + 1, 0) : (packet.message, packet.end)
        guard begun[place].progress != .told else { return }
        if isLast { begun[place].progress = .out }
        let id = begun[place].id
        events.progress(id, acceptedBytes: packet.end)
        guard isLast, !deliveries.contains(id) else { return }
        begun[place].progress = .told
        events.sent(id)
    }

    /// The peer has all packets up to a number.
    mutating func receiveAcknowledgement(of number: UInt8, at now: Timestamp) {
        var last: SendingWindow.Packet?
        sending.acknowledge(number) { last = $0 }
        guard let last else { return }
        silentSince = now
        resendDeadline = sending.packets.isEmpty ? nil : now + configuration.resendInterval
        // Of the message in which it ends, something may be missing.
        while let message = begun.first,
            acknowledgedMessages < last.message
                || last.message == acknowledgedMessages && last.end == message.payload.count
        {
            if message.progress != .told { events.sent(message.id) }
            deliveries.remove(message.id)
            begun.removeFirst()
            acknowledgedMessages += 1
        }
    }
}
