// The LE signalling channel (Core Specification 5.4, Vol 3, Part A, 4): connection parameters and channels.

extension LEHost {
    /// How long a signalling request may wait, in nanoseconds (RTX, Vol 3, Part A, 6.2.1: 1 to 60 s).
    static let signallingTimeout: Int64 = 30_000_000_000

    mutating func receiveSignalling(_ index: Int, _ payload: [UInt8], at now: Int64) {
        let identifier: UInt8
        let command: SignallingCommand
        do throws(MalformedPacket) {
            (identifier, command) = try SignallingCommand.decode(payload)
        } catch {
            // A request whose length cannot be read is answered with "not understood" (4.1).
            if payload.count >= 2, payload[1] != 0, payload[0] != 0x01 {
                answer(index, payload[1], .reject(reason: 0x0000), at: now)
            }
            return
        }
        switch command {
        case .parameterUpdateRequest(let minimum, let maximum, let latency, let timeout):
            parameterUpdateWasRequested(index, identifier, minimum, maximum, latency, timeout, at: now)
        case .connectionRequest(let psm, let source, let mtu, let mps, let credits):
            channelWasRequested(
                index, identifier, psm: psm, source: source, mtu: mtu, mps: mps, credits: credits, at: now)
        case .disconnectionRequest(let destination, let source):
            // One that the peer is still to answer has no other end yet.
            guard
                let place = connections[index].channels.firstIndex(where: {
                    $0.local == destination && $0.state != .connecting
                })
            else {
                return answer(index, identifier, .rejectChannel(destination: destination, source: source), at: now)
            }
            // A request for another device's channel end is ignored (4.6).
            guard connections[index].channels[place].remote == source else { return }
            answer(index, identifier, .disconnectionResponse(destination: destination, source: source), at: now)
            removeChannel(index, place, at: now)
        case .flowControlCredit(let channel, let credits):
            creditsDidArrive(index, channel, Int(credits), at: now)
        case .unknown:
            answer(index, identifier, .reject(reason: 0x0000), at: now)
        case .enhancedRequest(let request): channelsWereRequested(index, identifier, request, at: now)
        case .reconfigureRequest(let mtu, let mps, let channels):
            let result = reconfigure(index, mtu: mtu, mps: mps, channels)
            answer(index, identifier, .reconfigureResponse(result: result.rawValue), at: now)
        case .reject, .rejectChannel, .parameterUpdateResponse, .connectionResponse, .disconnectionResponse,
            .enhancedResponse,
            .reconfigureResponse:
            responseDidArrive(index, identifier, command, at: now)
        }
    }

    mutating func answer(_ index: Int, _ identifier: UInt8, _ command: SignallingCommand, at now: Int64) {
        send(command.encode(identifier: identifier), on: ChannelID.signalling, to: index, at: now)
    }

    mutating func ask(_ index: Int, _ command: SignallingCommand, _ kind: Connection.SignalRequest.Kind, at now: Int64)
    {
        let identifier = connections[index].takeSignalIdentifier()
        connections[index].signalRequests.append(
            Connection.SignalRequest(identifier: identifier, kind: kind, deadline: now + Self.signallingTimeout))
        answer(index, identifier, command, at: now)
    }

    private mutating func responseDidArrive(
        _ index: Int, _ identifier: UInt8, _ command: SignallingCommand, at now: Int64
    ) {
        guard
            let place = connections[index].signalRequests.firstIndex(where: {
                $0.identifier == identifier && isAnswer(index, to: $0.kind, command)
            })
        else { return }
        let request = connections[index].signalRequests.remove(at: place)
        switch (request.kind, command) {
        case (.openChannel(let local, let operation), .connectionResponse(let remote, let mtu, let mps, let credits, 0)):
            channelDidOpen(
                index, local, operation, remote: remote, mtu: mtu, mps: mps, credits: credits, at: now)
        case (.openChannel(let local, let operation), .connectionResponse(_, _, _, _, let result)):
            channelWasRefused(index, local, operation, ChannelResult(rawValue: result), at: now)
        case (.openChannel(let local, let operation), _): channelWasRefused(index, local, operation, .rejected, at: now)
        case (.openChannels(let waiting, let wasPending), let command):
            channelsWereAnswered(index, identifier, waiting, wasPending: wasPending, command, at: now)
        case (.reconfigure(let locals, let mtu, let operation), let command):
            reconfigurationWasAnswered(index, locals, mtu: mtu, operation, command)
        case (.closeChannel(let id), _):
            if let place = connections[index].channels.firstIndex(where: { $0.id == id }) {
                removeChannel(index, place, at: now)
            }
        case (.parameterUpdate, .parameterUpdateResponse(0)): break
        case (.parameterUpdate, _):
            pending.events.append(.diagnostic("\(connections[index].peer) keeps the connection's parameters."))
        }
    }

    /// Whether a response is of the kind that a request asks for; one that is not is passed over, for an identifier proves
    /// little.
    private func isAnswer(
        _ index: Int, to request: Connection.SignalRequest.Kind, _ command: SignallingCommand
    ) -> Bool {
        switch (request, command) {
        case (_, .reject), (.openChannel, .connectionResponse), (.openChannels, .connectionResponse),
            (.openChannel, .enhancedResponse), (.openChannels, .enhancedResponse), (.reconfigure, .reconfigureResponse),
            (.parameterUpdate, .parameterUpdateResponse):
            return true
        case (.closeChannel(let id), .disconnectionResponse(let destination, let source)):
            guard let channel = connections[index].channels.first(where: { $0.id == id }) else { return true }
            return channel.remote == destination && channel.local == source
        default: return false
        }
    }

    /// Gives up signalling requests that are overdue.
    mutating func expireSignalling(_ index: Int, at now: Int64) {
        closeDrained(index, at: now)
        while let place = connections[index].signalRequests.firstIndex(where: { $0.deadline <= now }) {
            let request = connections[index].signalRequests.remove(at: place)
            switch request.kind {
            case .openChannel(let local, let operation): channelWasRefused(index, local, operation, .timedOut, at: now)
            case .openChannels(let waiting, _):
                for channel in waiting {
                    channelWasRefused(index, channel.local, channel.operation, .timedOut, at: now)
                }
            case .reconfigure(_, _, let operation):
                pending.events.append(.channelsReconfigured(operation, connections[index].id, .timedOut))
            case .closeChannel(let id):
                if let place = connections[index].channels.firstIndex(where: { $0.id == id }) {
                    removeChannel(index, place, at: now)
                }
            case .parameterUpdate:
                pending.events.append(.diagnostic("\(connections[index].peer) did not answer a parameter request."))
            }
        }
    }
}

// MARK: - Connection parameters

extension LEHost {
    /// Asks for other connection parameters: of the controller as central, of the peer as peripheral.
    ///
    /// - Parameters:
    ///   - id: the connection.
    ///   - interval: in units of 1.25 ms, within 6 to 3200.
    ///   - latency: connection events that the peripheral may leave out, at most 499.
    ///   - supervisionTimeout: in units of 10 ms, within 10 to 3200.
    ///   - now: the time.
    /// - Returns: false when the values do not fit each other, the peer is still to answer the request before, or the
    ///   connection has ended.
    public mutating func requestParameters(
        _ id: ConnectionID, interval: ClosedRange<UInt16>, latency: UInt16, supervisionTimeout: UInt16, at now: Int64
    ) -> Bool {
        guard let index = index(id), Self.areValid(interval, latency, supervisionTimeout) else { return false }
        if connections[index].isCentral {
            updateParameters(index, interval, latency, supervisionTimeout, at: now)
        } else {
            let isWaiting = connections[index].signalRequests.contains {
                if case .parameterUpdate = $0.kind { true } else { false }
            }
            guard !isWaiting else { return false }
            ask(
                index,
                .parameterUpdateRequest(
                    minimum: interval.lowerBound, maximum: interval.upperBound, latency: latency,
                    timeout: supervisionTimeout), .parameterUpdate, at: now)
        }
        return true
    }

    /// How long a peripheral leaves a new connection as it is, in nanoseconds (TGAP(conn_pause_peripheral), Vol 3, Part C,
    /// Appendix A).
    static let peripheralPause: Int64 = 5_000_000_000

    mutating func askForPreferredParameters(_ index: Int, at now: Int64) {
        guard (connections[index].parameterDeadline ?? .max) <= now else { return }
        connections[index].parameterDeadline = nil
        guard let preferred = configuration.preferredParameters, !preferred.areMet(by: connections[index].parameters)
        else { return }
        _ = requestParameters(
            connections[index].id, interval: preferred.interval, latency: preferred.latency,
            supervisionTimeout: preferred.supervisionTimeout, at: now)
    }

    /// Core Specification 5.4, Vol 6, Part B, 4.5.2: the timeout must hold two whole rounds of skipped events.
    static func areValid(_ interval: ClosedRange<UInt16>, _ latency: UInt16, _ timeout: UInt16) -> Bool {
        interval.lowerBound >= 6 && interval.upperBound <= 3200 && latency <= 499 && (10...3200).contains(timeout)
            && Int(timeout) * 8 > (1 + Int(latency)) * Int(interval.upperBound) * 2
    }

    private mutating func parameterUpdateWasRequested(
        _ index: Int, _ identifier: UInt8, _ minimum: UInt16, _ maximum: UInt16, _ latency: UInt16, _ timeout: UInt16,
        at now: Int64
    ) {
        guard connections[index].isCentral else {
            answer(index, identifier, .reject(reason: 0x0000), at: now)
            return
        }
        let isBusy = commands.contains(.connectionUpdate(connection: connections[index].handle))
        guard minimum <= maximum, Self.areValid(minimum...maximum, latency, timeout), !isBusy,
            let interval = allowed(minimum...maximum)
        else {
            answer(index, identifier, .parameterUpdateResponse(result: 1), at: now)
            return
        }
        answer(index, identifier, .parameterUpdateResponse(result: 0), at: now)
        updateParameters(index, interval, latency, timeout, at: now)
    }

    /// The part of a range of connection intervals that peripherals are given.
    private func allowed(_ interval: ClosedRange<UInt16>) -> ClosedRange<UInt16>? {
        let own = configuration.connectionInterval
        let bounds = own.lowerBound...max(own.upperBound, configuration.slowestInterval)
        return bounds.overlaps(interval) ? interval.clamped(to: bounds) : nil
    }

    private mutating func updateParameters(
        _ index: Int, _ interval: ClosedRange<UInt16>, _ latency: UInt16, _ timeout: UInt16, at now: Int64
    ) {
        let handle = connections[index].handle
        guard commands.count < Self.commandLimit else { return }
        commands.enqueue(
            HCICommand(.leConnectionUpdate, for: .connectionUpdate(connection: handle)) {
                for field in [handle, interval.lowerBound, interval.upperBound, latency, timeout, 0, 0] {
                    $0.append(u16: field)
                }
            }, at: now)
    }

    /// The same request by way of the link layer (Vol 4, Part E, 7.7.65.6).
    mutating func answerParameterRequest(
        _ handle: UInt16, _ interval: ClosedRange<UInt16>, _ latency: UInt16, _ timeout: UInt16, at now: Int64
    ) {
        // A central chooses; what it asks for as such needs no leave.
        let isCentral = index(handle: handle).map { connections[$0].isCentral } ?? true
        guard Self.areValid(interval, latency, timeout), let interval = isCentral ? allowed(interval) : interval else {
            reply(.leRemoteConnectionParameterRequestNegativeReply, at: now) {
                $0.append(u16: handle)
                $0.append(HCIErrorCode(rawValue: 0x3B).rawValue)
            }
            return
        }
        reply(.leRemoteConnectionParameterRequestReply, at: now) {
            for field in [handle, interval.lowerBound, interval.upperBound, latency, timeout, 0, 0] {
                $0.append(u16: field)
            }
        }
    }
}
