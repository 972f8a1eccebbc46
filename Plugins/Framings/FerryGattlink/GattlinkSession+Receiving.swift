public import Ferry

extension GattlinkFraming.Session {
    /// Takes a packet that arrived. Ignored, as Golden Gate ignores them: control packets of an unknown kind, data before both sides have
    /// begun, packets behind one that was lost, and an acknowledgement of packets that were not sent.
    ///
    /// - Throws: `malformedStream` for a control packet that is cut, and for a stream that should carry IPv4 datagrams and does not;
    ///   `messageTooLarge` for a datagram above ``/Ferry/Limits/maximumMessageSize``; `incompatiblePeer` for a peer of another version. The
    ///   same again for every later packet.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        if case .failed(let error) = phase { throw error }
        guard !chunk.isEmpty else { return }
        switch GattlinkPacket(chunk) {
        case .resetRequest: if case .closed = phase {} else { receiveResetRequest(at: now) }
        case .resetComplete(let versions, let takes, let sends):
            try receiveResetComplete(versions, takes: takes, sends: sends)
        case .unknown: break
        case .malformed:
            let bytes = chunk.withUnsafeBytes { $0.prefix(8).hexadecimal(separator: " ") }
            throw fail(
                FerryError(
                    .malformedStream,
                    "A packet of \(chunk.byteCount) bytes from the peer (\(bytes)) is no end of a reset: 5 bytes were expected. Check that it "
                        + "speaks Gattlink."))
        case .data(let acknowledged, let number, let start):
            guard case .open = phase else { return }
            if let acknowledged { receiveAcknowledgement(of: acknowledged, at: now) }
            guard let number else { return }
            let arrival = receiving.receive(number)
            guard arrival != .early else { return }
            if case .due = acknowledgement {
            } else {
                acknowledgement = .waits(until: now + configuration.acknowledgementDelay)
            }
            if arrival == .due { try take(chunk.extracting(droppingFirst: start), at: now) }
        }
    }

    /// The next bytes of the stream.
    private mutating func take(_ bytes: RawSpan, at now: Timestamp) throws(FerryError) {
        guard content == .datagrams else {
            guard !bytes.isEmpty else { return }
            events.received(bytes.withUnsafeBytes { [UInt8]($0) })
            deliveredMessages += 1
            return
        }
        stall.chunkArrived(at: now)
        var rest = bytes
        while !rest.isEmpty {
            // The length is in the first 4 bytes.
            let wanted = (arrivingSize ?? 4) - assembler.count
            let count = min(wanted, rest.byteCount)
            assembler.append(rest.extracting(first: count))
            rest = rest.extracting(droppingFirst: count)
            guard count == wanted else { return }
            if arrivingSize == nil {
                try readHead()
            } else {
                arrivingSize = nil
                events.received(assembler.takeExpected())
                deliveredMessages += 1
            }
        }
    }

    private mutating func readHead() throws(FerryError) {
        var head: [UInt8] = []
        assembler.withBytes { head = [UInt8]($0) }
        let size = Int(head[2]) << 8 | Int(head[3])
        guard head[0] >> 4 == 4, size >= GattlinkFraming.shortestDatagram else {
            throw fail(
                FerryError(
                    .malformedStream,
                    "Datagram \(deliveredMessages + 1) from the peer begins with \(head.hexadecimal(separator: " ")), "
                        + "as no IPv4 datagram does. If the peer shortens heads, have the stream carry bytes: GattlinkFraming(.stream)."
                ))
        }
        guard size <= maximumMessageSize else {
            throw fail(
                .messageTooLarge(
                    receiving: "announces \(size) bytes", afterMessages: deliveredMessages, limit: maximumMessageSize))
        }
        arrivingSize = size
        assembler.begin(expecting: size)
    }
}
