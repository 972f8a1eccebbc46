// The Attribute Protocol's bearer on the fixed channel (Core Specification 5.4, Vol 3, Part F, 3.3).

import DequeModule

/// A client's request that waits for the application.
struct PendingServerRequest: Sendable {
    enum Kind {
        case read
        case readBlob
        case readByType
        /// Several values for one answer; `next` is the place of the one that is waited for.
        case readMultiple([UInt16], next: Int, isVariable: Bool, collected: [UInt8])
        case write
        case execute
    }

    let id: ServerRequestID
    let opcode: UInt8
    let handle: UInt16
    var kind: Kind
}

extension LEHost {
    /// Requests of one client that may wait while the application answers one. A client sends the next after the answer
    /// (3.3.2), so more than a few is a flood.
    static let waitingRequestLimit = 4

    /// Takes an ATT PDU of the fixed channel.
    mutating func receiveATT(_ index: Int, _ pdu: RawSpan, at now: Int64) {
        guard pdu.byteCount >= 1, isWithinMTU(index, pdu.byteCount, connections[index].attMTU, at: now) else { return }
        take(index, pdu, at: now)
    }

    /// Takes an ATT PDU of the fixed channel, or one that may come by any bearer. Values that need no answer are read in place.
    mutating func take(_ index: Int, _ pdu: RawSpan, at now: Int64) {
        let opcode = pdu.u8(0)
        switch opcode {
        case ATTOpcode.notification:
            guard pdu.byteCount >= 3, isBelieved(index) else { return }
            valueDidArrive(index, pdu.u16(1), pdu.extracting(3..<pdu.byteCount))
        case ATTOpcode.writeCommand:
            guard pdu.byteCount >= 3 else { return }
            receiveWriteCommand(index, pdu.u16(1), pdu.extracting(3..<pdu.byteCount))
        case ATTOpcode.multipleNotification: if isBelieved(index) { receiveValues(index, pdu) }
        case ATTOpcode.indication:
            guard pdu.byteCount >= 3 else { return }
            if isBelieved(index) { indicationDidArrive(index, pdu.u16(1), pdu.extracting(3..<pdu.byteCount)) }
            send([ATTOpcode.confirmation], on: ChannelID.att, to: index, at: now)
            pumpProcedures(index, at: now)
        case ATTOpcode.confirmation: confirmationDidArrive(index, at: now)
        case ATTOpcode.signedWriteCommand: break  // needs a bond's signing key; there are none
        case let opcode where ATTOpcode.isResponse(opcode):
            receiveResponse(index, [UInt8](copying: pdu), by: nil, at: now)
        case let opcode where opcode & 0x40 != 0: break  // unknown commands are ignored (3.3)
        default: receiveRequest(index, [UInt8](copying: pdu), at: now)
        }
    }

    /// Whether a PDU is no longer than ATT_MTU (Core Specification 5.4, Vol 3, Part F, 3.2.8). A peer that sends longer ones is
    /// disconnected: to pass over one would lose a value, and to take it would have the peer choose how much this side holds.
    mutating func isWithinMTU(_ index: Int, _ count: Int, _ mtu: Int, at now: Int64) -> Bool {
        if count <= mtu { return true }
        abort(index, "it sends an ATT PDU of \(count) bytes, and ATT_MTU is \(mtu)", at: now)
        return false
    }

    /// Whether a value is the server's: those in the name of a bonded peer that has not proved itself are not.
    private mutating func isBelieved(_ index: Int) -> Bool {
        guard connections[index].security.isHeldBack else { return true }
        if connections[index].security.hold == .held {
            connections[index].security.hold = .dropping
            let peer = connections[index].peer
            pending.events.append(
                .diagnostic("Values of \(peer) are dropped: its keys are kept, and the link is not encrypted yet."))
        }
        // What may have changed on the server is looked for again.
        discoveries.forget(lastingAddress(index))
        return false
    }

    private mutating func valueDidArrive(_ index: Int, _ handle: UInt16, _ value: RawSpan) {
        let bytes = pending.store(value)
        pending.events.append(.valueReceived(connections[index].id, handle: handle, bytes))
    }

    /// Multiple Handle Value Notification (3.4.7.4): handle, length and value, again and again.
    private mutating func receiveValues(_ index: Int, _ pdu: RawSpan) {
        var offset = 1
        while offset + 4 <= pdu.byteCount {
            let count = Int(pdu.u16(offset + 2))
            guard offset + 4 + count <= pdu.byteCount else { return }
            valueDidArrive(index, pdu.u16(offset), pdu.extracting(offset + 4..<offset + 4 + count))
            offset += 4 + count
        }
    }

    mutating func indicationDidArrive(_ index: Int, _ handle: UInt16, _ value: RawSpan) {
        if connections[index].watch.serviceChanged == handle {
            guard value.byteCount == 4, value.u16(0) > 0, value.u16(0) <= value.u16(2) else { return }
            serverDidChange(index, value.u16(0)...value.u16(2))
        } else {
            valueDidArrive(index, handle, value)
        }
    }

    private mutating func confirmationDidArrive(_ index: Int, at now: Int64) {
        guard connections[index].indicationDeadline != nil else { return }
        connections[index].indicationDeadline = nil
        indicationWasConfirmed(index, at: now)
    }

    mutating func receiveRequest(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        guard connections[index].bearer.pendingRequest == nil else {
            guard connections[index].bearer.waitingRequests.count < Self.waitingRequestLimit else {
                abort(index, "it sends ATT requests without waiting for the answers", at: now)
                return
            }
            connections[index].bearer.waitingRequests.append(pdu)
            return
        }
        serve(index, pdu, at: now)
    }

    /// Carries out requests that came while the application answered another.
    mutating func serveWaiting(_ index: Int, at now: Int64) {
        while connections[index].bearer.pendingRequest == nil,
            let pdu = connections[index].bearer.waitingRequests.popFirst()
        {
            serve(index, pdu, at: now)
        }
    }

    mutating func refuse(_ index: Int, _ opcode: UInt8, _ handle: UInt16, _ code: ATTErrorCode, at now: Int64) {
        respond(index, ATTPDU.error(opcode, handle: handle, code), at: now)
    }

    // MARK: Client

    /// Asks for a larger ATT_MTU, before anything else (3.4.2).
    mutating func exchangeMTU(_ index: Int, at now: Int64) {
        guard configuration.maximumMTU > ATT.defaultMTU, connections[index].requestDeadline == nil else { return }
        connections[index].isExchangingMTU = true
        connections[index].requestBearer = nil
        connections[index].requestDeadline = now + ATT.transactionTimeout
        send(
            ATTPDU.make(ATTOpcode.exchangeMTURequest, UInt16(configuration.maximumMTU)), on: ChannelID.att, to: index,
            at: now)
    }

    /// - Parameter channel: the bearer; nil for the fixed channel.
    mutating func receiveResponse(_ index: Int, _ pdu: [UInt8], by channel: UInt32?, at now: Int64) {
        // Nothing was asked, or not there.
        guard connections[index].requestDeadline != nil, connections[index].requestBearer == channel else { return }
        connections[index].requestDeadline = nil
        if connections[index].isExchangingMTU {
            connections[index].isExchangingMTU = false
            if pdu.count == 3, pdu[0] == ATTOpcode.exchangeMTUResponse {
                mtuDidChange(index, peer: Int(pdu[1]) | Int(pdu[2]) << 8)
            }
        } else {
            procedureDidReceive(index, pdu, at: now)
        }
        pumpProcedures(index, at: now)
    }

    /// Both sides use the smaller of what they name, and at least 23.
    mutating func mtuDidChange(_ index: Int, peer: Int) {
        let mtu = min(max(peer, ATT.defaultMTU), configuration.maximumMTU)
        guard mtu != connections[index].attMTU else { return }
        connections[index].attMTU = mtu
        connections[index].bearer.mtu = mtu
        pending.events.append(.mtuChanged(connections[index].id, mtu))
    }

    /// ATT_MTU of a connection, or nil when it has ended.
    public func attMTU(of id: ConnectionID) -> Int? { index(id).map { connections[$0].attMTU } }
}
