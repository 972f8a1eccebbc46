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
