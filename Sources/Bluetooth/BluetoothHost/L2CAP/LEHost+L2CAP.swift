// Data between the controller and the channels (Core Specification 5.4, Vol 4, Part E, 4.1 and Vol 3, Part A).

extension LEHost {
    /// Takes an ACL packet. A frame that is whole is read in place.
    mutating func receiveACL(_ packet: RawSpan, at now: Int64) {
        guard packet.byteCount >= 5, Int(packet.u16(3)) == packet.byteCount - 5 else { return }
        let header = packet.u16(1)
        guard let index = index(handle: header & 0x0FFF) else {
            return earlyData.keep(packet, of: header & 0x0FFF, at: now)
        }
        guard !connections[index].isLeaving else { return }
        let isStart = header >> 12 & 0x3 != 1
        let fragment = packet.extracting(5..<packet.byteCount)
        if isStart, fragment.byteCount >= 4, Int(fragment.u16(0)) == fragment.byteCount - 4,
            connections[index].reassembler.isEmpty
        {
            receiveFrame(index, fragment, at: now)
            return
        }
        switch connections[index].reassembler.append(fragment, isStart: isStart) {
        case .partial: break
        case .malformed(let why): abort(index, "its L2CAP fragments do not fit together: \(why)", at: now)
        case .complete:
            let frame = connections[index].reassembler.take()
            receiveFrame(index, frame.span.bytes, at: now)
            connections[index].reassembler.recycle(frame)
        }
    }

    private mutating func receiveFrame(_ index: Int, _ frame: RawSpan, at now: Int64) {
        let payload = frame.extracting(4..<frame.byteCount)
        switch frame.u16(2) {
        case ChannelID.att: receiveATT(index, payload, at: now)
        case ChannelID.signalling: receiveSignalling(index, [UInt8](copying: payload), at: now)
        case ChannelID.securityManager: receiveSecurityManager(index, payload, at: now)
        case let channel: receiveChannel(index, channel, payload, at: now)
        }
    }

    /// Takes Number Of Completed Packets (Vol 4, Part E, 7.7.19): the controller has room again.
    mutating func receiveCompletedPackets(_ packet: RawSpan) {
        guard packet.byteCount >= 4 else { return }
        let count = min(Int(packet.u8(3)), (packet.byteCount - 4) / 4)
        for entry in 0..<count {
            let handle = packet.u16(4 + 4 * entry) & 0x0FFF
            guard let index = index(handle: handle) else { continue }
            let completed = min(Int(packet.u16(6 + 4 * entry)), connections[index].inFlight)
            connections[index].inFlight -= completed
            freeBuffers += completed
        }
    }

    /// Appends the next ACL packet, giving each connection with something to send its turn and no more than its share
    /// of the controller's buffers: a peer that is out of range cannot hold up the others.
    mutating func nextACLPacket(into output: inout [UInt8], at now: Int64) -> Bool {
        guard freeBuffers > 0, !connections.isEmpty else { return false }
        let share = max(1, controller.aclPacketCount / connections.count)
        for offset in 0..<connections.count {
            let index = (turn + offset) % connections.count
            guard connections[index].inFlight < share, !connections[index].isLeaving else { continue }
            pumpChannels(index, at: now)
            guard !connections[index].transmit.isEmpty else { continue }
            connections[index].transmit.cut(
                into: &output, connection: connections[index].handle, atMost: controller.aclPacketLength)
            connections[index].inFlight += 1
            freeBuffers -= 1
            turn = index + 1
            if connections[index].wantsReady, connections[index].transmit.count <= configuration.maximumQueuedBytes / 2,
                connections[index].indication == .none
            {
                connections[index].wantsReady = false
                pending.events.append(.readyToSend(connections[index].id))
            }
            return true
        }
        return false
    }

    /// Moves frames of credit-based channels to the connection's queue, one of each channel in turn, while it is short.
    private mutating func pumpChannels(_ index: Int, at now: Int64) {
        guard !connections[index].channels.isEmpty else { return }
        var hasMoved = true
        while hasMoved, connections[index].transmit.count < 4 * controller.aclPacketLength {
            hasMoved = false
            for place in connections[index].channels.indices {
                guard connections[index].pump(channel: place, at: now) else { continue }
                hasMoved = true
                if connections[index].channels[place].takeReady() {
                    let id = connections[index].channels[place].id
                    pending.events.append(.channelReady(CreditChannelID(rawValue: id)))
                }
            }
        }
        closeDrained(index, at: now)
    }

    /// Queues a PDU that cannot be refused: an answer, or a request of the host's own.
    mutating func send(_ payload: [UInt8], on channel: UInt16, to index: Int, at now: Int64) {
        guard connections[index].transmit.count < Self.hardQueueLimit else {
            abort(index, "it sends requests and does not take the answers", at: now)
            return
        }
        connections[index].transmit.append(payload, on: channel)
    }
}
