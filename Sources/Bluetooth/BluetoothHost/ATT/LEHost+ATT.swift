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
        guard configuration.maximumMTU > ATT.defaultMTU, connections[index].request == .none else { return }
        connections[index].requestBearer = nil
        connections[index].request = .exchangeMTU(deadline: now + ATT.transactionTimeout)
        send(
            ATTPDU.make(ATTOpcode.exchangeMTURequest, UInt16(configuration.maximumMTU)), on: ChannelID.att, to: index,
            at: now)
    }

    /// - Parameter channel: the bearer; nil for the fixed channel.
    mutating func receiveResponse(_ index: Int, _ pdu: [UInt8], by channel: UInt32?, at now: Int64) {
        // Nothing was asked, or not there.
        guard connections[index].requestBearer == channel else { return }
        switch connections[index].request.take() {
        case .none: return
        case .exchangeMTU:
            if pdu.count == 3, pdu[0] == ATTOpcode.exchangeMTUResponse {
                mtuDidChange(index, peer: Int(pdu[1]) | Int(pdu[2]) << 8)
            }
        case .procedure: procedureDidReceive(index, pdu, at: now)
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

// Enhanced ATT bearers: requests through L2CAP channels of their own, so that one that waits holds up no other (Core
// Specification 5.4, Vol 3, Part F, 3.2.11 and 3.3.2, and Part G, 5.3.2 and 5.4).

/// What a server keeps of one of a client's bearers.
struct ServerBearer: Sendable {
    /// The channel; nil for the fixed one.
    var channel: UInt32?
    var mtu = ATT.defaultMTU
    /// Parts of a write. Those of one bearer are not mixed with those of another.
    var prepared: [WritePart] = []
    var pendingRequest: PendingServerRequest?
    var waitingRequests: Deque<[UInt8]> = []
}

extension LEHost {
    /// Where the channels are (Assigned Numbers, 2.5).
    static let bearerPSM: UInt16 = 0x0027
    /// Enhanced bearers of one connection, at most.
    static let bearerLimit = 5
    /// What opens a channel that is none of the application's, to which nothing is told of it.
    static let ownOperation = OperationID(rawValue: 0)

    func isBearer(psm: UInt16) -> Bool { configuration.usesEnhancedBearers && psm == Self.bearerPSM }

    /// The largest SDU that is taken on a channel. A bearer's is its ATT_MTU (Part G, 5.3.2).
    func channelMTU(psm: UInt16) -> UInt16 {
        guard isBearer(psm: psm) else { return CreditChannel.mtu }
        return max(UInt16(clamping: configuration.maximumMTU), Self.enhancedMinimum)
    }

    // MARK: Opening

    /// Opens one to a server that takes them, once the link is encrypted, unless there is one.
    mutating func openBearer(_ index: Int, at now: Int64) {
        guard configuration.usesEnhancedBearers, connections[index].isCentral, connections[index].watch.takesBearers,
            connections[index].security.isEncrypted, connections[index].closing == nil,
            !connections[index].channels.contains(where: { isBearer(psm: $0.psm) }), let local = freeChannel(index)
        else { return }
        // Not tried again when it is refused.
        connections[index].watch.takesBearers = false
        var channel = CreditChannel(
            id: UInt32(truncatingIfNeeded: makeID()), psm: Self.bearerPSM, local: local, state: .connecting)
        channel.localMTU = Int(channelMTU(psm: Self.bearerPSM))
        connections[index].channels.append(channel)
        askForChannels(
            index, psm: Self.bearerPSM, [.init(local: local, operation: Self.ownOperation)], at: now)
    }

    mutating func bearerDidOpen(_ index: Int, _ channel: UInt32) {
        connections[index].shelf.append(ServerBearer(channel: channel))
    }

    /// One has been closed, by either side. What the client asked through it is asked once more where that does no harm.
    mutating func bearerDidClose(_ index: Int, _ channel: UInt32, at now: Int64) {
        connections[index].shelf.removeAll { $0.channel == channel }
        guard connections[index].requestBearer == channel else { return }
        connections[index].requestBearer = nil
        guard case .procedure = connections[index].request, !connections[index].procedures.isEmpty else { return }
        connections[index].request = .none
        switch connections[index].procedures[0].request {
        case .write, .configure:
            let procedure = connections[index].procedures.removeFirst()
            finish(index, procedure.id, .failure(.bearerClosed), at: now)
        default:
            if connections[index].procedures[0].wasRepeated {
                let procedure = connections[index].procedures.removeFirst()
                finish(index, procedure.id, .failure(.bearerClosed), at: now)
            } else {
                connections[index].procedures[0].startAgain()
            }
        }
        pumpProcedures(index, at: now)
    }

    // MARK: Both sides

    /// The ATT_MTU of a bearer: the smaller of what the two sides take.
    private func mtu(_ index: Int, bearer channel: UInt32) -> Int {
        connections[index].channels.first { $0.id == channel }.map { min($0.localMTU, $0.remoteMTU) } ?? ATT.defaultMTU
    }

    /// Sends by a bearer: at once as far as the peer has given credits, so that later PDUs of the fixed channel do not
    /// overtake it.
    private mutating func send(_ pdu: [UInt8], by channel: UInt32, _ index: Int, at now: Int64) {
        guard
            let place = connections[index].channels.firstIndex(where: { $0.id == channel && $0.state == .open })
        else { return }
        guard connections[index].transmit.count < Self.hardQueueLimit,
            connections[index].channels[place].trySend(pdu.span.bytes)
        else { return abort(index, "it sends requests and does not take the answers", at: now) }
        while connections[index].pump(channel: place, at: now) {}
    }

    /// Takes an ATT PDU that came by a bearer.
    mutating func receiveATT(_ index: Int, _ pdu: [UInt8], by channel: UInt32, at now: Int64) {
        guard let opcode = pdu.first, isWithinMTU(index, pdu.count, mtu(index, bearer: channel), at: now) else {
            return
        }
        switch opcode {
        case ATTOpcode.exchangeMTURequest:
            // The channel has said it (Part F, 3.4.2.1).
            send(ATTPDU.error(opcode, handle: 0, .requestNotSupported), by: channel, index, at: now)
        case ATTOpcode.indication:
            guard pdu.count >= 3 else { return }
            indicationDidArrive(index, UInt16(pdu[1]) | UInt16(pdu[2]) << 8, pdu.span.bytes.extracting(3..<pdu.count))
            send([ATTOpcode.confirmation], by: channel, index, at: now)
            pumpProcedures(index, at: now)
        case ATTOpcode.confirmation: break  // indications leave by the fixed channel
        case let opcode where ATTOpcode.isResponse(opcode): receiveResponse(index, pdu, by: channel, at: now)
        case let opcode
        where opcode & 0x40 != 0 || opcode == ATTOpcode.notification
            || opcode == ATTOpcode.multipleNotification:
            take(index, pdu.span.bytes, at: now)
        default: withBearer(channel, of: index) { $0.receiveRequest(index, pdu, at: now) }
        }
    }

    // MARK: Server

    /// Serves by a bearer what the body serves.
    mutating func withBearer(_ channel: UInt32?, of index: Int, _ body: (inout LEHost) -> Void) {
        guard connections[index].bearer.channel != channel else { return body(&self) }
        guard let place = connections[index].shelf.firstIndex(where: { $0.channel == channel }) else { return }
        swapBearer(index, place)
        if let channel { connections[index].bearer.mtu = mtu(index, bearer: channel) }
        body(&self)
        swapBearer(index, place)
    }

    private mutating func swapBearer(_ index: Int, _ place: Int) {
        let shelved = connections[index].shelf[place]
        connections[index].shelf[place] = connections[index].bearer
        connections[index].bearer = shelved
    }

    /// Answers by the bearer that is served, cut to its ATT_MTU.
    mutating func respond(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        let mtu = connections[index].bearer.mtu
        let cut = pdu.count > mtu ? Array(pdu.prefix(mtu)) : pdu
        if let channel = connections[index].bearer.channel {
            send(cut, by: channel, index, at: now)
        } else {
            send(cut, on: ChannelID.att, to: index, at: now)
        }
    }

    // MARK: Client

    /// The bearer for a procedure that begins: one by which a request can leave at once, behind all that was sent before.
    func chooseBearer(_ index: Int) -> UInt32? {
        guard configuration.usesEnhancedBearers else { return nil }
        return connections[index].channels.first {
            isBearer(psm: $0.psm) && $0.state == .open && $0.queuedCount == 0
                && $0.sendCredits * $0.remoteMPS >= min($0.localMTU, $0.remoteMTU) + 2
        }?.id
    }

    /// The ATT_MTU of the bearer by which the client asks.
    func requestMTU(_ index: Int) -> Int {
        connections[index].requestBearer.map { mtu(index, bearer: $0) } ?? connections[index].attMTU
    }

    mutating func sendRequest(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        if let channel = connections[index].requestBearer {
            send(pdu, by: channel, index, at: now)
        } else {
            send(pdu, on: ChannelID.att, to: index, at: now)
        }
    }
}
