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
            connections[index].channels[place].drain == nil, sdu.byteCount > 0,
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

    /// Closes a channel after its queue has left, or when nothing of it has left for 5 s, and after 60 s at the latest;
    /// ``HostEvent/channelClosed(_:)`` follows when the peer has agreed.
    public mutating func closeChannel(_ channel: CreditChannelID, at now: Int64) {
        guard let (index, place) = find(channel), connections[index].channels[place].state == .open,
            connections[index].channels[place].drain == nil
        else { return }
        connections[index].channels[place].drain = CreditChannel.Drain(at: now)
        closeDrained(index, at: now)
    }

    /// Closes channels that were to be closed and have nothing left to send, or have had their time.
    mutating func closeDrained(_ index: Int, at now: Int64) {
        for place in connections[index].channels.indices {
            let channel = connections[index].channels[place]
            guard let drain = channel.drain, channel.queuedCount == 0 || drain.deadline <= now else { continue }
            close(index, place, at: now)
        }
    }

    private mutating func close(_ index: Int, _ place: Int, at now: Int64) {
        connections[index].channels[place].state = .closing
        connections[index].channels[place].drain = nil
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

// Enhanced credit-based channels: several by one request, and new sizes for those that are open (Core Specification 5.4,
// Vol 3, Part A, 4.25 to 4.28).

extension LEHost {
    /// Channels of one request, at most (4.25).
    static let requestLimit = 5
    /// The least MTU and MPS (4.25).
    static let enhancedMinimum: UInt16 = 64
    /// How long a peer that says it has yet to decide may take, in nanoseconds (ERTX, 6.2.2: 60 to 300 s).
    static let pendingTimeout: Int64 = 60_000_000_000

    // MARK: What the application does

    /// Opens 1 to 5 channels by one request, or, where the peer does not know that request, by one each. Each has an
    /// operation, with ``HostEvent/channelOpened(_:_:psm:_:)`` or ``HostEvent/channelRefused(_:_:_:)``.
    ///
    /// - Returns: nil when the connection has ended, or for another number.
    public mutating func openChannels(
        _ id: ConnectionID, psm: UInt16, count: Int, at now: Int64
    ) -> [OperationID]? {
        guard let index = index(id), (1...Self.requestLimit).contains(count) else { return nil }
        var opening: [Connection.OpeningChannel] = []
        var operations: [OperationID] = []
        for _ in 0..<count {
            let operation = OperationID(rawValue: makeID())
            operations.append(operation)
            guard !connections[index].security.isHeldBack else {
                openChannel(index, psm: psm, operation, at: now)
                continue
            }
            guard let local = freeChannel(index) else {
                pending.events.append(.channelRefused(operation, id, .noResources))
                continue
            }
            connections[index].channels.append(
                CreditChannel(id: UInt32(truncatingIfNeeded: makeID()), psm: psm, local: local, state: .connecting))
            opening.append(.init(local: local, operation: operation))
        }
        if !opening.isEmpty { askForChannels(index, psm: psm, opening, at: now) }
        return operations
    }

    /// Takes larger SDUs on channels that were opened together, or by a peer's request for several.
    /// ``HostEvent/channelsReconfigured(_:_:_:)`` follows.
    ///
    /// - Returns: nil unless these are 1 to 5 such channels of one connection, and `mtu` is at most 65 535 bytes and not
    ///   below what one of them takes now: an MTU never becomes smaller.
    public mutating func reconfigureChannels(_ channels: [CreditChannelID], mtu: Int, at now: Int64) -> OperationID? {
        let found = channels.compactMap { find($0) }
        guard (1...Self.requestLimit).contains(channels.count), found.count == channels.count, mtu <= 0xFFFF,
            let index = found.first?.0, found.allSatisfy({ $0.0 == index }), Set(channels).count == channels.count,
            found.allSatisfy({ place in
                let channel = connections[index].channels[place.1]
                return channel.isEnhanced && channel.state == .open && channel.localMTU <= mtu
            })
        else { return nil }
        let operation = OperationID(rawValue: makeID())
        let locals = found.map { connections[index].channels[$0.1].local }
        ask(
            index,
            .reconfigureRequest(mtu: UInt16(truncatingIfNeeded: mtu), mps: CreditChannel.mps, channels: locals),
            .reconfigure(locals, mtu: mtu, operation), at: now)
        return operation
    }

    mutating func askForChannels(
        _ index: Int, psm: UInt16, _ opening: [Connection.OpeningChannel], at now: Int64
    ) {
        ask(
            index,
            .enhancedRequest(
                EnhancedRequest(
                    psm: psm, mtu: channelMTU(psm: psm), mps: CreditChannel.mps, credits: CreditChannel.credits,
                    sources: opening.map(\.local))), .openChannels(opening, isPending: false), at: now)
    }

    // MARK: What the peer answers

    mutating func channelsWereAnswered(
        _ index: Int, _ identifier: UInt8, _ waiting: [Connection.OpeningChannel], wasPending: Bool,
        _ command: SignallingCommand, at now: Int64
    ) {
        switch command {
        case .enhancedResponse(_, _, _, 0x000D...0x000F, _) where !wasPending:
            connections[index].signalRequests.append(
                Connection.SignalRequest(
                    identifier: identifier, kind: .openChannels(waiting, isPending: true),
                    deadline: now + Self.pendingTimeout))
        case .enhancedResponse(let mtu, let mps, let credits, let result, let destinations):
            connections[index].takesEnhancedRequests = true
            let result = ChannelResult(rawValue: result)
            let isRefusalOfAll = ![.success, .noResources, .invalidSourceChannel, .sourceChannelInUse].contains(result)
            for (place, channel) in waiting.enumerated() {
                let remote = place < destinations.count ? destinations[place] : 0
                guard remote != 0, !isRefusalOfAll else {
                    let reason = result == .success ? .unacceptableParameters : result
                    channelWasRefused(index, channel.local, channel.operation, reason, at: now)
                    continue
                }
                if let place = connections[index].channels.firstIndex(where: { $0.local == channel.local }) {
                    connections[index].channels[place].isEnhanced = true
                }
                channelDidOpen(
                    index, channel.local, channel.operation, remote: remote, mtu: mtu, mps: mps, credits: credits,
                    atLeast: Self.enhancedMinimum, at: now)
            }
        case .reject:
            // It does not know the request: one channel at a time then.
            connections[index].takesEnhancedRequests = false
            for channel in waiting {
                guard let psm = connections[index].channels.first(where: { $0.local == channel.local })?.psm else {
                    continue
                }
                guard !isBearer(psm: psm) else {
                    channelWasRefused(index, channel.local, channel.operation, .psmNotSupported, at: now)
                    continue
                }
                askForChannel(index, psm: psm, local: channel.local, channel.operation, at: now)
            }
        default:
            for channel in waiting { channelWasRefused(index, channel.local, channel.operation, .rejected, at: now) }
        }
    }

    mutating func reconfigurationWasAnswered(
        _ index: Int, _ locals: [UInt16], mtu: Int, _ operation: OperationID, _ command: SignallingCommand
    ) {
        var result = ReconfigurationResult.rejected
        if case .reconfigureResponse(let code) = command { result = ReconfigurationResult(rawValue: code) }
        if result == .success {
            for place in connections[index].channels.indices
            where locals.contains(connections[index].channels[place].local) {
                connections[index].channels[place].localMTU = mtu
            }
        }
        pending.events.append(.channelsReconfigured(operation, connections[index].id, result))
    }

    // MARK: What the peer asks

    mutating func channelsWereRequested(
        _ index: Int, _ identifier: UInt8, _ request: EnhancedRequest, at now: Int64
    ) {
        connections[index].takesEnhancedRequests = true
        var destinations = [UInt16](repeating: 0, count: min(request.sources.count, Self.requestLimit))
        var opened: [CreditChannelID] = []
        var result = ChannelResult.success
        if let reason = refusal(index, request) {
            result = reason
        } else {
            for (place, source) in request.sources.enumerated() {
                guard let local = accept(index, request, source, &result) else { continue }
                destinations[place] = local.channel
                opened.append(local.id)
            }
        }
        answer(
            index, identifier,
            .enhancedResponse(
                mtu: channelMTU(psm: request.psm), mps: CreditChannel.mps, credits: CreditChannel.credits,
                result: result.rawValue, destinations: destinations), at: now)
        for channel in opened {
            if isBearer(psm: request.psm) {
                bearerDidOpen(index, channel.rawValue)
                continue
            }
            pending.events.append(.channelOpened(channel, connections[index].id, psm: request.psm, nil))
        }
    }

    /// Why none of the channels can be opened, if so.
    private func refusal(_ index: Int, _ request: EnhancedRequest) -> ChannelResult? {
        guard (1...Self.requestLimit).contains(request.sources.count),
            Set(request.sources).count == request.sources.count
        else { return .invalidParameters }
        if let reason = refusal(index, psm: request.psm, isEnhanced: true) { return reason }
        guard request.mtu >= Self.enhancedMinimum, (Self.enhancedMinimum...65533).contains(request.mps) else {
            return .unacceptableParameters
        }
        return nil
    }

    private mutating func accept(
        _ index: Int, _ request: EnhancedRequest, _ source: UInt16, _ result: inout ChannelResult
    ) -> (channel: UInt16, id: CreditChannelID)? {
        guard ChannelID.dynamic.contains(source) else {
            result = .invalidSourceChannel
            return nil
        }
        guard !connections[index].channels.contains(where: { $0.state != .connecting && $0.remote == source }) else {
            result = .sourceChannelInUse
            return nil
        }
        let bearerCount = connections[index].channels.count { isBearer(psm: $0.psm) }
        guard !isBearer(psm: request.psm) || bearerCount < Self.bearerLimit, let local = freeChannel(index) else {
            result = .noResources
            return nil
        }
        var channel = CreditChannel(
            id: UInt32(truncatingIfNeeded: makeID()), psm: request.psm, local: local, state: .open)
        channel.localMTU = Int(channelMTU(psm: request.psm))
        channel.isEnhanced = true
        channel.remote = source
        channel.remoteMTU = Int(request.mtu)
        channel.remoteMPS = Int(request.mps)
        channel.sendCredits = Int(request.credits)
        connections[index].channels.append(channel)
        return (local, CreditChannelID(rawValue: channel.id))
    }

    /// The peer takes other sizes from now on.
    mutating func reconfigure(
        _ index: Int, mtu: UInt16, mps: UInt16, _ remotes: [UInt16]
    ) -> ReconfigurationResult {
        guard (1...Self.requestLimit).contains(remotes.count), mtu >= Self.enhancedMinimum,
            (Self.enhancedMinimum...65533).contains(mps)
        else { return .unacceptableParameters }
        let places = remotes.compactMap { remote in
            connections[index].channels.firstIndex { $0.remote == remote && $0.state == .open && $0.isEnhanced }
        }
        guard places.count == remotes.count else { return .invalidChannel }
        let channels = places.map { connections[index].channels[$0] }
        guard channels.allSatisfy({ $0.remoteMTU <= Int(mtu) }) else { return .mtuReduced }
        guard places.count == 1 || channels.allSatisfy({ $0.remoteMPS <= Int(mps) }) else { return .mpsReduced }
        for place in places {
            connections[index].channels[place].remoteMTU = Int(mtu)
            connections[index].channels[place].remoteMPS = Int(mps)
        }
        return .success
    }
}
