// Connections from the first moment to the last, as central and as peripheral.

import DequeModule

extension LEHost {
    /// Ends a connection once its queue has left, or after 1 s. ``HostEvent/disconnected(_:_:)`` follows.
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
    mutating func abort(
        _ index: Int, _ why: String, reason: HCIErrorCode = .remoteUserTerminated, at now: Int64
    ) {
        guard connections[index].closing?.isCommandSent != true else { return }
        pending.events.append(.diagnostic("\(connections[index].peer) is disconnected: \(why)."))
        connections[index].closing = Connection.Closing(reason: reason, isCommandSent: false, deadline: now)
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

    /// A deadline of a connection has passed.
    mutating func expire(_ index: Int, at now: Int64) {
        if let closing = connections[index].closing {
            if !closing.isCommandSent, closing.deadline <= now { sendDisconnect(index, at: now) }
            return
        }
        if (connections[index].request.deadline ?? .max) <= now {
            let isWhole = (connections[index].procedures.first?.deadline ?? .max) <= now
            abort(
                index,
                isWhole
                    ? "it did not come to the end of what it was asked within \(ATT.procedureTimeout / 1_000_000_000) s"
                    : "it did not answer an ATT request within 30 s", at: now)
        } else if (connections[index].indication.deadline ?? .max) <= now {
            abort(index, "it did not confirm an indication within 30 s", at: now)
        } else {
            expireSecurity(index, at: now)
            askForPreferredParameters(index, at: now)
            expireSignalling(index, at: now)
        }
    }

    /// A connection has ended: reports that, and fails its pending requests.
    mutating func connectionDidEnd(_ handle: UInt16, _ reason: HCIErrorCode, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        let connection = connections.remove(at: index)
        // Some controllers, btvirt's among them, give this side's own reason back instead of 0x16.
        let isOwnDoing =
            connection.closing.map { $0.isCommandSent && ($0.reason == reason || reason == .terminatedByLocalHost) }
            ?? false
        // A peer that could not prove who it is was not simply let go.
        let ownReason =
            connection.closing?.reason == .authenticationFailure
            ? HCIErrorCode.authenticationFailure : .terminatedByLocalHost
        let reason = isOwnDoing ? ownReason : reason
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
                for channel in waiting where channel.operation != Self.ownOperation {
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
        for channel in connection.channels where channel.state != .connecting && !isBearer(psm: channel.psm) {
            pending.events.append(.channelClosed(CreditChannelID(rawValue: channel.id)))
        }
        remember(connection)
        pending.events.append(.disconnected(connection.id, reason))
        advertiser.wish.resume()
        reconcileAdvertising(at: now)
    }
}
