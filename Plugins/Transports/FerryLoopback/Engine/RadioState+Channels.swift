import Ferry
import FerryBluetooth

// L2CAP channels with credits.
extension RadioState {
    // MARK: Opening

    /// Takes a PSM for a role that offers a channel.
    mutating func publishPSM(owner: Int, node: Node, encryptionRequired: Bool) throws(BluetoothError) -> PSM {
        for number in 0x80...0xFF as ClosedRange<UInt16> where node.psms[number] == nil {
            node.psms[number] = PublishedPSM(owner: owner, encryptionRequired: encryptionRequired)
            return PSM(rawValue: number)
        }
        throw BluetoothError.noPSM
    }

    /// A central's request to open a channel has arrived.
    mutating func serveOpen(
        _ psm: PSM, _ client: Int, _ waiter: Waiter<Int>, on link: AirLink
    ) {
        do throws(BluetoothError) {
            let id = try open(psm, client, on: link)
            send(.channelOpened(id, waiter), .down, on: link)
        } catch {
            send(.channelRefused(error, waiter), .down, on: link)
        }
        resume(link)
    }

    private mutating func open(_ psm: PSM, _ client: Int, on link: AirLink) throws(BluetoothError) -> Int {
        try clients[client]?.life.requireOpen()
        guard let published = nodes[link.peripheral].psms[psm.rawValue], peripherals[published.owner] != nil else {
            throw BluetoothError(
                .channelRefused, "the peripheral offers no channel with PSM 0x\(String(psm.rawValue, radix: 16))")
        }
        if published.encryptionRequired, let error = encrypt(link) {
            throw BluetoothError(
                .channelRefused, "the channel needs encryption; pairing failed with ATT error \(error.rawValue)")
        }
        let centralEnd = nextID()
        let peripheralEnd = nextID()
        let credits = configuration.l2capCredits
        channels[centralEnd] = ChannelEnd(
            id: centralEnd, other: peripheralEnd, link: link.id, psm: psm, peer: link.peripheralName,
            direction: .up, owner: client, credits: credits)
        channels[peripheralEnd] = ChannelEnd(
            id: peripheralEnd, other: centralEnd, link: link.id, psm: psm, peer: link.centralName,
            direction: .down, owner: published.owner, credits: credits)
        link.channels += [centralEnd, peripheralEnd]
        events.append(.channelOpened(owner: published.owner, peripheralEnd))
        return centralEnd
    }

    /// The link ends while channels are being opened.
    mutating func endOpenings(_ link: AirLink, _ reason: BluetoothError) {
        for control in Array(link.up.control) + Array(link.down.control) {
            switch control.pdu {
            case .openChannel(_, _, let waiter), .channelOpened(_, let waiter), .channelRefused(_, let waiter):
                events.append(.call { waiter.resume(.failure(reason)) })
            default: break
            }
        }
    }

    // MARK: Sending

    func frames(_ length: Int) -> Int {
        (length + 2 + configuration.l2capMPS - 1) / configuration.l2capMPS  // 2 bytes of SDU length
    }

    mutating func trySend(_ chunk: UnsafeRawBufferPointer, on id: Int) throws(FerryError) -> Bool {
        guard let end = channels[id] else { throw .channelClosedHere }
        try end.life.checkSending(chunk.count, maximum: configuration.l2capMTU)
        guard let link = links[end.link] else { throw .channelClosedByPeer }
        let ring = end.ring ?? ValueRing(capacity: configuration.l2capCredits, slotSize: configuration.l2capMTU)
        end.ring = ring
        guard end.credits > 0, !ring.isFull else {
            end.wantsReady = true
            mayBeReadyEarly(.readyToSend(channel: id))
            return false
        }
        ring.push(
            chunk, length: chunk.count, attribute: AttributeID(rawValue: 0), order: 0, isIndication: false)
        end.credits -= frames(chunk.count)
        end.queuedFrames += frames(chunk.count)
        announceFrames(of: chunk.count, end.direction, on: link)
        resume(link)
        wake()
        return true
    }

    func queuedFrames(_ link: AirLink, _ direction: Direction) -> Int {
        link.channels.reduce(0) { sum, id in
            guard let end = channels[id], end.direction == direction else { return sum }
            return sum + end.queuedFrames
        }
    }

    func hasFrames(_ link: AirLink) -> Bool {
        link.channels.contains { id in channels[id].map(canDeliver) ?? false }
    }

    /// The same for the channels of one direction.
    func hasFrames(_ link: AirLink, _ direction: Direction) -> Bool {
        link.channels.contains { id in channels[id].map { $0.direction == direction && canDeliver($0) } ?? false }
    }

    private func canDeliver(_ end: ChannelEnd) -> Bool {
        guard end.ring?.isEmpty == false else { return false }
        return channels[end.other]?.takesChunks ?? false
    }

    /// Lets frames of a link's channels cross; a chunk of which all have is delivered.
    mutating func transmitFrame(_ link: AirLink) -> Step? {
        for index in link.channels.indices {
            // Another channel begins in each turn, so that none starves the rest of a small budget.
            let id = link.channels[(index + link.rotation) % link.channels.count]
            guard let end = channels[id], canDeliver(end), let ring = end.ring,
                let receiver = channels[end.other]?.receiver
            else { continue }
            let needed = frames(ring.first.length)
            let lane = link.lane(end.direction)
            let sent = min(needed - end.sentFrames, lane.budget)
            end.sentFrames += sent
            end.queuedFrames -= sent
            lane.budget -= sent
            guard end.sentFrames == needed else { continue }
            if link.hasFaults, chunkFails(link) { return nil }
            delivering = Delivering(link: link, lane: .channel(id), isIndication: false)
            return .chunk(receiver, UnsafeBytes(ring: ring, bytes: ring.bytes(of: ring.first)))
        }
        return nil
    }

    /// A chunk has been delivered: its credits come back, unless the receiver has paused.
    mutating func concludeChunk(_ id: Int, _ link: AirLink) {
        guard let end = channels[id], let ring = end.ring, !ring.isEmpty, let other = channels[end.other] else {
            return
        }
        let cost = frames(ring.first.length)
        ring.popFirst()
        end.sentFrames = 0
        if other.isReceiving { end.credits += cost } else { other.withheld += cost }
        if end.life.isClosing, ring.isEmpty { endChannel(id) }
    }

    /// Tells the channels of a link that credits have come back, at the end of its turn.
    mutating func signalReadyToSend(_ link: AirLink) {
        for id in link.channels {
            guard let end = channels[id], end.wantsReady, end.credits > 0 else { continue }
            end.wantsReady = false
            signalReady(.readyToSend(channel: id))
        }
    }

    mutating func setReceiving(_ isReceiving: Bool, channel id: Int) {
        guard let end = channels[id] else { return }
        end.isReceiving = isReceiving
        guard isReceiving, let other = channels[end.other], let link = links[end.link] else { return }
        other.credits += end.withheld
        end.withheld = 0
        signalReadyToSend(link)
        resume(link)
        wake()
    }

    // MARK: Ending

    /// The owner closes the channel: it ends once its queue has been delivered, or when nothing of it has left for the
    /// supervision timeout.
    mutating func closeChannel(_ id: Int) {
        guard let end = channels[id], end.life.close() else { return }
        if end.ring?.isEmpty ?? true {
            endChannel(id)
        } else {
            setForcedClose(id, end)
        }
        wake()
    }

    private mutating func setForcedClose(_ id: Int, _ end: ChannelEnd) {
        setTimer(after: configuration.supervisionTimeout, .forcedClose(channel: id, queuedFrames: end.queuedFrames))
    }

    /// A supervision timeout has passed since `queuedFrames` frames of a closed channel were queued.
    mutating func forcedCloseDue(_ id: Int, before queuedFrames: Int) {
        guard let end = channels[id], end.life.end == nil, end.queuedFrames < queuedFrames else {
            return endChannel(id)
        }
        setForcedClose(id, end)
    }

    /// Ends both sides of a channel now, which this one has closed.
    mutating func endChannel(_ id: Int) {
        guard let end = channels[id], end.life.end == nil else { return }
        finish(end, .channelClosedHere)
        if let other = channels[end.other] { finish(other, .channelClosedByPeer) }
        links[end.link]?.channels.removeAll { $0 == id || $0 == end.other }
    }

    /// The connection below a channel has ended.
    mutating func channelLinkEnded(_ id: Int, _ ending: Ending) {
        guard let end = channels[id] else { return }
        let reason = end.direction == .up ? ending.central : ending.peripheral
        let plain = reason.code == .disconnectedLocally ? FerryError.channelClosedHere : .channelClosedByPeer
        finish(end, FerryError(plain.code, plain.message, cause: reason))
    }

    private mutating func finish(_ end: ChannelEnd, _ reason: FerryError) {
        if let (receiver, reason) = end.life.end(reason) {
            events.append(.call { receiver.linkDidClose(reason) })
        }
        end.ring = nil
        if end.isAbandoned { channels[end.id] = nil }
        wake()
    }

    /// The last reference to the channel is gone: it closes.
    mutating func abandonChannel(_ id: Int) {
        guard let end = channels[id] else { return }
        end.isAbandoned = true
        if end.life.end == nil { closeChannel(id) } else { channels[id] = nil }
    }
}
