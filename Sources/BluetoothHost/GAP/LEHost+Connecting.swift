import DequeModule

/// Peers to connect to. Controllers try one at a time; when several wait each has its turn, so that one that is away
/// does not keep the others waiting.
struct Initiator: Sendable {
    /// How long a peer is tried while others wait, in nanoseconds.
    static let slice: Int64 = 4_000_000_000

    var waiting: Deque<Address> = []
    var current: Address?
    /// The attempt is being cancelled.
    var isCancelling = false
    /// Whether the peer is to be tried again once the cancelled attempt has ended.
    var isRotating = false
    var sliceEnd: Int64?

    var deadline: Int64? { current == nil || isCancelling || waiting.isEmpty ? nil : sliceEnd }

    mutating func controllerWasReset() {
        if let current, !isCancelling || isRotating { waiting.prepend(current) }
        current = nil
        isCancelling = false
        isRotating = false
    }
}

extension LEHost {
    /// Connects to a peer; the attempt goes on until ``HostEvent/connected(_:peer:isCentral:)``,
    /// ``HostEvent/connectionFailed(peer:_:)`` or ``cancelConnection(to:at:)``.
    ///
    /// - Returns: false when the host is not ready, or is connected to that peer or connecting to it already.
    public mutating func connect(to peer: Address, at now: Int64) -> Bool {
        guard state == .ready, connection(to: peer) == nil, !initiator.waiting.contains(peer) else { return false }
        if initiator.current == peer {
            guard initiator.isCancelling, !initiator.isRotating else { return false }
            initiator.isRotating = true
            return true
        }
        initiator.waiting.append(peer)
        reconcileInitiator(at: now)
        return true
    }

    /// Gives up connecting to a peer. ``HostEvent/connectionFailed(peer:_:)`` follows, or, when it was too late,
    /// ``HostEvent/connected(_:peer:isCentral:)``.
    public mutating func cancelConnection(to peer: Address, at now: Int64) {
        if let index = initiator.waiting.firstIndex(of: peer) {
            initiator.waiting.remove(at: index)
            pending.events.append(.connectionFailed(peer: peer, .unknownConnection))
        } else if initiator.current == peer {
            initiator.isRotating = false
            cancelAttempt(at: now)
        }
    }

    /// The connection to a peer, if there is one.
    public func connection(to peer: Address) -> ConnectionID? {
        connections.first { $0.peer == peer && $0.closing == nil }?.id
    }

    /// The peer of a connection, or nil when it has ended.
    public func peer(of id: ConnectionID) -> Address? { index(id).map { connections[$0].peer } }

    mutating func reconcileInitiator(at now: Int64) {
        guard state == .ready, initiator.current == nil, let peer = initiator.waiting.popFirst() else { return }
        initiator.current = peer
        initiator.sliceEnd = now + Initiator.slice
        let interval = configuration.connectionInterval
        let isExtended = controller.usesExtendedAdvertising
        commands.enqueue(
            HCICommand(isExtended ? .leExtendedCreateConnection : .leCreateConnection, for: .connect) {
                // No filter, own address random, LE 1M; listening all the time, in windows of 60 ms.
                if isExtended { $0 += [0x00, 0x01, peer.kind.rawValue] + peer.bytes + [0x01] }
                $0.append(u16: 96)
                $0.append(u16: 96)
                if !isExtended { $0 += [0x00, peer.kind.rawValue] + peer.bytes + [0x01] }
                $0.append(u16: interval.lowerBound)
                $0.append(u16: interval.upperBound)
                $0.append(u16: configuration.latency)
                $0.append(u16: configuration.supervisionTimeout)
                $0 += [0, 0, 0, 0]  // connection event lengths: no wish
            }, at: now)
    }

    mutating func rotateInitiator(at now: Int64) {
        guard let deadline = initiator.deadline, deadline <= now else { return }
        initiator.isRotating = true
        cancelAttempt(at: now)
    }

    private mutating func cancelAttempt(at now: Int64) {
        guard !initiator.isCancelling else { return }
        initiator.isCancelling = true
        commands.enqueue(HCICommand(.leCreateConnectionCancel, for: .cancelConnect), at: now)
    }

    mutating func connectCommandDidFail(_ status: HCIErrorCode, at now: Int64) {
        guard let peer = initiator.current else { return }
        initiator.current = nil
        initiator.isCancelling = false
        pending.events.append(.connectionFailed(peer: peer, status))
        reconcileInitiator(at: now)
    }

    /// Nothing to cancel: the connection was made in the same moment, or the attempt has failed.
    mutating func cancelCommandDidFail(at now: Int64) { initiator.isCancelling = false }

    mutating func connectionDidComplete(_ event: LEConnectionComplete, at now: Int64) {
        guard event.status == 0 else {
            attemptDidEnd(HCIErrorCode(rawValue: event.status), at: now)
            return
        }
        guard index(handle: event.handle) == nil else {
            pending.events.append(.diagnostic("The controller made connection \(event.handle) twice; it is ignored."))
            return
        }
        let connection = Connection(event, id: ConnectionID(rawValue: UInt32(truncatingIfNeeded: makeID())))
        connections.append(connection)
        pending.events.append(.connected(connection.id, peer: event.peer, isCentral: event.isCentral))
        if event.isCentral {
            initiator.current = nil
            initiator.isCancelling = false
            reconcileInitiator(at: now)
        } else {
            // A connection ends the advertising that it came from (Vol 4, Part E, 7.8.9, 7.8.56).
            if advertiser.changing == nil { advertiser.applied = nil }
            reconcileAdvertising(at: now)
        }
        improve(connections.count - 1, at: now)
    }

    private mutating func attemptDidEnd(_ status: HCIErrorCode, at now: Int64) {
        guard let peer = initiator.current else { return }
        let isRotating = initiator.isRotating
        initiator.current = nil
        initiator.isCancelling = false
        initiator.isRotating = false
        if isRotating {
            initiator.waiting.append(peer)
        } else {
            pending.events.append(.connectionFailed(peer: peer, status))
        }
        reconcileInitiator(at: now)
    }

    /// Asks for longer packets and, as central, for the faster physical layer and a larger ATT_MTU.
    private mutating func improve(_ index: Int, at now: Int64) {
        let handle = connections[index].handle
        if controller.hasDataLengthExtension {
            let (octets, time) = (controller.maximumTransmitOctets, controller.maximumTransmitTime)
            tune(.leSetDataLength, at: now) { for field in [handle, octets, time] { $0.append(u16: field) } }
        }
        guard connections[index].isCentral else { return }
        if controller.has2MPHY {
            tune(.leSetPHY, at: now) {
                $0.append(u16: handle)
                $0 += [0x00, 0x02, 0x02, 0x00, 0x00]  // 2M preferred both ways
            }
        }
        if canPair, bond(with: connections[index].peer) != nil { _ = beginSecurity(index, at: now) }
        exchangeMTU(index, at: now)
        watchServer(index, at: now)
    }
}

// MARK: - Connections

extension LEHost {
    /// Ends a connection once what is queued has left, or after 1 s. ``HostEvent/disconnected(_:_:)`` follows.
    public mutating func disconnect(_ id: ConnectionID, at now: Int64) {
        guard let index = index(id), connections[index].closing == nil else { return }
        connections[index].closing = Connection.Closing(
            reason: .remoteUserTerminated, isCommandSent: false, deadline: now + 1_000_000_000)
    }

    /// Asks the controller how strongly the peer is heard; ``HostEvent/rssi(_:_:)`` follows. Returns false when the
    /// connection has ended or the controller cannot tell.
    public mutating func readRSSI(_ id: ConnectionID, at now: Int64) -> Bool {
        guard let index = index(id), controller.supports(.readRSSI) else { return false }
        let handle = connections[index].handle
        if !commands.contains(.readRSSI(connection: handle)) {
            commands.enqueue(
                HCICommand(.readRSSI, for: .readRSSI(connection: handle)) { $0.append(u16: handle) }, at: now)
        }
        return true
    }

    /// Disconnects a peer that breaks the rules.
    mutating func abort(_ index: Int, _ why: String, at now: Int64) {
        guard connections[index].closing?.isCommandSent != true else { return }
        pending.events.append(.diagnostic("\(connections[index].peer) is disconnected: \(why)."))
        connections[index].closing = Connection.Closing(
            reason: .remoteUserTerminated, isCommandSent: false, deadline: now)
        sendDisconnect(index, at: now)
    }

    /// Sends the command to disconnect for connections that have nothing left to send.
    mutating func finishClosing(at now: Int64) {
        for index in connections.indices {
            guard let closing = connections[index].closing, !closing.isCommandSent,
                connections[index].transmit.isEmpty, connections[index].inFlight == 0
            else { continue }
            sendDisconnect(index, at: now)
        }
    }

    private mutating func sendDisconnect(_ index: Int, at now: Int64) {
        guard let closing = connections[index].closing else { return }
        let handle = connections[index].handle
        // The end comes at the latest after the supervision timeout, which is below 32 s.
        connections[index].closing?.isCommandSent = true
        connections[index].closing?.deadline = now + 40_000_000_000
        commands.enqueue(
            HCICommand(.disconnect, for: .disconnect(connection: handle)) {
                $0.append(u16: handle)
                $0.append(closing.reason.rawValue)
            }, at: now)
    }

    /// Something that a connection waited for did not come in time.
    mutating func expire(_ index: Int, at now: Int64) {
        if let closing = connections[index].closing {
            if !closing.isCommandSent, closing.deadline <= now { sendDisconnect(index, at: now) }
            return
        }
        if (connections[index].requestDeadline ?? .max) <= now {
            abort(index, "it did not answer an ATT request within 30 s", at: now)
        } else if (connections[index].indicationDeadline ?? .max) <= now {
            abort(index, "it did not confirm an indication within 30 s", at: now)
        } else {
            expireSecurity(index, at: now)
            expireSignalling(index, at: now)
        }
    }

    /// A connection is over: whatever waits for it is told.
    mutating func connectionDidEnd(_ handle: UInt16, _ reason: HCIErrorCode, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        let connection = connections.remove(at: index)
        // Some controllers, btvirt's among them, give this side's own reason back instead of 0x16.
        let isOwnDoing = connection.closing.map { $0.isCommandSent && $0.reason == reason } ?? false
        let reason = isOwnDoing ? .terminatedByLocalHost : reason
        // The controller has dropped what it held for the connection (Vol 4, Part E, 4.3).
        freeBuffers += connection.inFlight
        for procedure in connection.procedures {
            if connection.watch.procedure == procedure.id { continue }
            pending.events.append(
                .completed(OperationID(rawValue: procedure.id), connection.id, .failure(.disconnected(reason))))
        }
        for request in connection.signalRequests {
            switch request.kind {
            case .openChannel(_, let operation):
                pending.events.append(.channelRefused(operation, connection.id, .timedOut))
            case .openChannels(let waiting, _):
                for channel in waiting {
                    pending.events.append(.channelRefused(channel.operation, connection.id, .timedOut))
                }
            case .reconfigure(_, _, let operation):
                pending.events.append(.channelsReconfigured(operation, connection.id, .timedOut))
            case .closeChannel, .parameterUpdate: break
            }
        }
        for waiting in connection.security.channels {
            pending.events.append(.channelRefused(waiting.operation, connection.id, .timedOut))
        }
        for channel in connection.channels where channel.state != .connecting {
            pending.events.append(.channelClosed(CreditChannelID(rawValue: channel.id)))
        }
        remember(connection)
        pending.events.append(.disconnected(connection.id, reason))
        advertiser.isPaused = false
        reconcileAdvertising(at: now)
    }
}
