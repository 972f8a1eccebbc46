// Enhanced ATT bearers: requests through L2CAP channels of their own, so that one that waits holds up no other (Core
// Specification 5.4, Vol 3, Part F, 3.2.11 and 3.3.2, and Part G, 5.3.2 and 5.4).

import DequeModule

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
        guard connections[index].requestDeadline != nil, !connections[index].procedures.isEmpty else { return }
        connections[index].requestDeadline = nil
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

    /// Sends by a bearer: at once as far as the peer has given credits, so that what is sent by the fixed channel afterwards does
    /// not overtake it.
    private mutating func send(_ pdu: [UInt8], by channel: UInt32, _ index: Int, at now: Int64) {
        guard
            let place = connections[index].channels.firstIndex(where: { $0.id == channel && $0.state == .open })
        else { return }
        guard connections[index].transmit.count < Self.hardQueueLimit,
            connections[index].channels[place].trySend(pdu.span.bytes)
        else { return abort(index, "it sends requests and does not take the answers", at: now) }
        while connections[index].pump(channel: place) {}
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
