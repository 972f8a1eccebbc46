// LE credit-based channels, both roles (Core Specification 5.4, Vol 3, Part A, 4.22 to 4.24, 10.1).

extension LEHost {
    /// Channels of one connection, at most.
    static let channelLimit = 16

    /// Takes channels that peers open by `psm` (0x0001 to 0x00FF; the dynamic ones begin at 0x0080), over encrypted links
    /// only where that is wanted. Returns false when the number is taken or none.
    public mutating func listen(psm: UInt16, encryptionRequired: Bool = false) -> Bool {
        guard (1...0xFF).contains(psm), listeners[psm] == nil, !isBearer(psm: psm) else { return false }
        listeners[psm] = encryptionRequired
        return true
    }

    /// Takes no more channels by `psm`; open ones go on.
    public mutating func stopListening(psm: UInt16) { listeners[psm] = nil }

    /// Opens a channel; ``HostEvent/channelOpened(_:_:psm:_:)`` or ``HostEvent/channelRefused(_:_:_:)`` follows.
    ///
    /// - Returns: nil when the connection has ended.
    public mutating func openChannel(_ id: ConnectionID, psm: UInt16, at now: Int64) -> OperationID? {
        guard let index = index(id) else { return nil }
        let operation = OperationID(rawValue: makeID())
        openChannel(index, psm: psm, operation, at: now)
        return operation
    }

    mutating func openChannel(_ index: Int, psm: UInt16, _ operation: OperationID, at now: Int64) {
        guard !connections[index].security.isHeldBack else {
            connections[index].security.channels.append((psm, operation))
            return
        }
        guard let local = freeChannel(index) else {
            pending.events.append(.channelRefused(operation, connections[index].id, .noResources))
            return
        }
        connections[index].channels.append(
            CreditChannel(id: UInt32(truncatingIfNeeded: makeID()), psm: psm, local: local, state: .connecting))
        if connections[index].takesEnhancedRequests {
            askForChannels(index, psm: psm, [.init(local: local, operation: operation)], at: now)
        } else {
            askForChannel(index, psm: psm, local: local, operation, at: now)
        }
    }

    /// By the request for one channel, which every peer with channels knows.
    mutating func askForChannel(
        _ index: Int, psm: UInt16, local: UInt16, _ operation: OperationID, at now: Int64
    ) {
        ask(
            index,
            .connectionRequest(
                psm: psm, source: local, mtu: CreditChannel.mtu, mps: CreditChannel.mps, credits: CreditChannel.credits),
            .openChannel(local: local, operation), at: now)
    }

    /// Queues an SDU, copying it, or returns false when the channel's queue is full, in which case
    /// ``HostEvent/channelReady(_:)`` follows; nil when the channel is not open or the SDU is empty or above
    /// ``maximumSDU(_:)``.
    public mutating func trySend(_ sdu: RawSpan, on channel: CreditChannelID) -> Bool? {
        guard let (index, place) = find(channel), connections[index].channels[place].state == .open,
            connections[index].channels[place].drainDeadline == nil, sdu.byteCount > 0,
            sdu.byteCount <= connections[index].channels[place].remoteMTU
        else { return nil }
        return connections[index].channels[place].trySend(sdu)
    }

    /// The most bytes of an SDU that the peer takes, or nil when the channel is not open.
    public func maximumSDU(_ channel: CreditChannelID) -> Int? {
        guard let (index, place) = find(channel), connections[index].channels[place].state == .open else { return nil }
        return connections[index].channels[place].remoteMTU
    }

    /// Stops giving the peer credits, or goes on.
    public mutating func setReceiving(_ isReceiving: Bool, on channel: CreditChannelID, at now: Int64) {
        guard let (index, place) = find(channel) else { return }
        connections[index].channels[place].isReceiving = isReceiving
        returnCredits(index, place, at: now)
    }

    /// How long a channel that is closed may go on sending what is queued, in nanoseconds.
    static let drainTime: Int64 = 5_000_000_000

    /// Closes a channel once what is queued has left, or after 5 s; ``HostEvent/channelClosed(_:)`` follows when the peer
    /// has agreed.
    public mutating func closeChannel(_ channel: CreditChannelID, at now: Int64) {
        guard let (index, place) = find(channel), connections[index].channels[place].state == .open,
            connections[index].channels[place].drainDeadline == nil
        else { return }
        connections[index].channels[place].drainDeadline = now + Self.drainTime
        closeDrained(index, at: now)
    }

    /// Closes channels that were to be closed and have nothing left to send, or have had their time.
    mutating func closeDrained(_ index: Int, at now: Int64) {
        for place in connections[index].channels.indices {
            let channel = connections[index].channels[place]
            guard let deadline = channel.drainDeadline, channel.queuedCount == 0 || deadline <= now else { continue }
            close(index, place, at: now)
        }
    }

    private mutating func close(_ index: Int, _ place: Int, at now: Int64) {
        connections[index].channels[place].state = .closing
        connections[index].channels[place].drainDeadline = nil
        let channel = connections[index].channels[place]
        ask(
            index, .disconnectionRequest(destination: channel.remote, source: channel.local),
            .closeChannel(id: channel.id), at: now)
    }

    func find(_ channel: CreditChannelID) -> (Int, Int)? {
        for index in connections.indices {
            if let place = connections[index].channels.firstIndex(where: { $0.id == channel.rawValue }) {
                return (index, place)
            }
        }
        return nil
    }

    mutating func freeChannel(_ index: Int) -> UInt16? {
        connections[index].channels.count < Self.channelLimit ? connections[index].takeChannel() : nil
    }

    mutating func removeChannel(_ index: Int, _ place: Int, at now: Int64) {
        let channel = connections[index].channels.remove(at: place)
        if isBearer(psm: channel.psm) {
            bearerDidClose(index, channel.id, at: now)
        } else if channel.state != .connecting {
            pending.events.append(.channelClosed(CreditChannelID(rawValue: channel.id)))
        }
    }

    // MARK: What the peer does

    /// Why no channel can be opened by a PSM, if none can.
    func refusal(_ index: Int, psm: UInt16, isEnhanced: Bool = false) -> ChannelResult? {
        let isBearer = isEnhanced && isBearer(psm: psm)
        guard let needsEncryption = isBearer ? true : listeners[psm] else { return .psmNotSupported }
        guard needsEncryption, !connections[index].security.isEncrypted else { return nil }
        return usableBond(index) == nil ? .insufficientAuthentication : .insufficientEncryption
    }

    mutating func channelWasRequested(
        _ index: Int, _ identifier: UInt8, psm: UInt16, source: UInt16, mtu: UInt16, mps: UInt16, credits: UInt16,
        at now: Int64
    ) {
        func refuse(_ host: inout LEHost, _ result: ChannelResult) {
            host.answer(
                index, identifier,
                .connectionResponse(destination: 0, mtu: 0, mps: 0, credits: 0, result: result.rawValue), at: now)
        }
        if let reason = refusal(index, psm: psm) { return refuse(&self, reason) }
        guard ChannelID.dynamic.contains(source) else { return refuse(&self, .invalidSourceChannel) }
        guard !connections[index].channels.contains(where: { $0.state != .connecting && $0.remote == source }) else {
            return refuse(&self, .sourceChannelInUse)
        }
        guard mtu >= 23, (23...65533).contains(mps) else { return refuse(&self, .unacceptableParameters) }
        guard let local = freeChannel(index) else { return refuse(&self, .noResources) }
        var channel = CreditChannel(id: UInt32(truncatingIfNeeded: makeID()), psm: psm, local: local, state: .open)
        channel.remote = source
        channel.remoteMTU = Int(mtu)
        channel.remoteMPS = Int(mps)
        channel.sendCredits = Int(credits)
        connections[index].channels.append(channel)
        answer(
            index, identifier,
            .connectionResponse(
                destination: local, mtu: CreditChannel.mtu, mps: CreditChannel.mps, credits: CreditChannel.credits,
                result: 0), at: now)
        pending.events.append(
            .channelOpened(CreditChannelID(rawValue: channel.id), connections[index].id, psm: psm, nil))
    }

    mutating func channelDidOpen(
        _ index: Int, _ local: UInt16, _ operation: OperationID, remote: UInt16, mtu: UInt16, mps: UInt16,
        credits: UInt16, atLeast minimum: UInt16 = 23, at now: Int64
    ) {
        guard
            let place = connections[index].channels.firstIndex(where: { $0.local == local && $0.state == .connecting })
        else {
            tellRefusal(index, operation, .rejected)
            return
        }
        let isTaken = connections[index].channels.contains { $0.state != .connecting && $0.remote == remote }
        guard ChannelID.dynamic.contains(remote), !isTaken, mtu >= minimum, (minimum...65533).contains(mps) else {
            // The peer takes it for open.
            let id = connections[index].channels[place].id
            channelWasRefused(index, local, operation, .unacceptableParameters, at: now)
            return ask(
                index, .disconnectionRequest(destination: remote, source: local), .closeChannel(id: id), at: now)
        }
        connections[index].channels[place].remote = remote
        connections[index].channels[place].remoteMTU = Int(mtu)
        connections[index].channels[place].remoteMPS = Int(mps)
        connections[index].channels[place].sendCredits = Int(credits)
        connections[index].channels[place].state = .open
        let channel = connections[index].channels[place]
        guard !isBearer(psm: channel.psm) else { return bearerDidOpen(index, channel.id) }
        pending.events.append(
            .channelOpened(
                CreditChannelID(rawValue: channel.id), connections[index].id, psm: channel.psm, operation))
    }

    /// Tells the application why its channel was not opened.
    private mutating func tellRefusal(_ index: Int, _ operation: OperationID, _ result: ChannelResult) {
        guard operation != Self.ownOperation else { return }
        pending.events.append(.channelRefused(operation, connections[index].id, result))
    }

    mutating func channelWasRefused(
        _ index: Int, _ local: UInt16, _ operation: OperationID, _ result: ChannelResult, at now: Int64
    ) {
        let psm = connections[index].channels.first { $0.local == local }?.psm
        connections[index].channels.removeAll { $0.local == local }
        // Once more when the link is encrypted; a link that is encrypted already cannot become more so.
        if let psm, operation != Self.ownOperation,
            result == .insufficientAuthentication || result == .insufficientEncryption,
            !connections[index].security.isEncrypted,
            connections[index].security.isBusy || beginSecurity(index, at: now)
        {
            connections[index].security.channels.append((psm, operation))
            return
        }
        tellRefusal(index, operation, result)
    }

    /// More credits than 65 535 in all end the channel (4.24).
    mutating func creditsDidArrive(_ index: Int, _ remote: UInt16, _ credits: Int, at now: Int64) {
        guard
            let place = connections[index].channels.firstIndex(where: { $0.remote == remote && $0.state == .open })
        else { return }
        guard credits > 0, connections[index].channels[place].sendCredits + credits <= 65535 else {
            pending.events.append(.diagnostic("\(connections[index].peer) gives \(credits) credits too many or none."))
            return close(index, place, at: now)
        }
        connections[index].channels[place].sendCredits += credits
    }

    mutating func receiveChannel(_ index: Int, _ local: UInt16, _ payload: RawSpan, at now: Int64) {
        guard let place = connections[index].channels.firstIndex(where: { $0.local == local && $0.state == .open })
        else { return }
        switch connections[index].channels[place].receive(payload) {
        case .partial: break
        case .complete:
            let id = CreditChannelID(rawValue: connections[index].channels[place].id)
            if isBearer(psm: connections[index].channels[place].psm) {
                return bearerDidReceive(index, place, at: now)
            }
            connections[index].channels[place].takeSDU { sdu in
                pending.events.append(.channelReceived(id, pending.store(sdu)))
            }
        case .violation(let why):
            pending.events.append(.diagnostic("\(connections[index].peer) breaks a channel's rules: \(why)."))
            return close(index, place, at: now)
        }
        returnCredits(index, place, at: now)
    }

    private mutating func bearerDidReceive(_ index: Int, _ place: Int, at now: Int64) {
        let id = connections[index].channels[place].id
        var pdu: [UInt8] = []
        connections[index].channels[place].takeSDU { pdu = [UInt8](copying: $0) }
        returnCredits(index, place, at: now)
        receiveATT(index, pdu, by: id, at: now)
    }

    private mutating func returnCredits(_ index: Int, _ place: Int, at now: Int64) {
        let credits = connections[index].channels[place].creditsToReturn()
        guard credits > 0 else { return }
        let identifier = connections[index].takeSignalIdentifier()
        answer(
            index, identifier,
            .flowControlCredit(channel: connections[index].channels[place].local, credits: credits), at: now)
    }
}
