extension ChannelState {
    /// Takes a place in the order of sending for a message that is still being encoded; ``submit(_:as:_:_:at:)`` or
    /// ``forfeit(_:at:)`` follows. A channel that takes no more messages gives no place.
    mutating func reserve(_ id: MessageID) {
        guard !isOver, !isDraining else { return }
        order.reserve(id)
    }

    /// A message that has a place will not be sent.
    mutating func forfeit(_ id: MessageID, at now: Timestamp) {
        order.forfeit(id)
        enqueueNext(at: now)
    }

    /// Takes a payload to be sent, at its place in the order: the one that was reserved, or the last.
    mutating func submit(
        _ payload: [UInt8], as id: MessageID, _ options: SendOptions, _ send: PendingSend, at now: Timestamp
    ) {
        do {
            try admit(payload, as: id)
        } catch {
            send.timer?.cancel()
            effects.complete(send, .failure(error.telling(.nothingSent)))
            return forfeit(id, at: now)
        }
        outboundBytes += payload.count
        let message = PlacedMessage(id: id, payload: payload, options: options, send: send)
        if order.isEmpty { return enqueue(message, at: now) }
        order.put(message)
        enqueueNext(at: now)
    }

    private func admit(_ payload: [UInt8], as id: MessageID) throws(FerryError) {
        if let closeReason {
            throw FerryError(closeReason.code, "The channel is closed; nothing was sent.", cause: closeReason)
        }
        guard !isDraining || order.hasPlace(id) else {
            throw FerryError(.closed, "The channel is being closed and takes no more messages; nothing was sent.")
        }
        guard payload.count - envelopeCount <= limits.maximumMessageSize else {
            throw FerryError(
                .messageTooLarge,
                "The message has \(payload.count - envelopeCount) bytes; Limits.maximumMessageSize is \(limits.maximumMessageSize). "
                    + "Raise it on both sides, or send less at once.")
        }
        guard outboundBytes == 0 || outboundBytes + payload.count <= limits.maximumOutboundBytes else {
            throw FerryError(
                .queueFull,
                "\(outboundBytes) bytes wait to be sent and the message has \(payload.count); "
                    + "Limits.maximumOutboundBytes is \(limits.maximumOutboundBytes). Await earlier sends first.")
        }
    }

    /// Hands over the messages that wait for none before them any more.
    private mutating func enqueueNext(at now: Timestamp) {
        while let message = order.popNext() { enqueue(message, at: now) }
    }

    private mutating func enqueue(_ message: PlacedMessage, at now: Timestamp) {
        do {
            try session.enqueue(message.payload, as: message.id, options: message.options, at: now)
        } catch {
            return fail(message, error.telling(.nothingSent))
        }
        sends[message.id] = message.send
    }

    /// A message that the session has not got fails.
    mutating func fail(_ message: PlacedMessage, _ error: FerryError) {
        outboundBytes -= message.payload.count
        message.send.timer?.cancel()
        effects.complete(message.send, .failure(error))
    }

    /// The sender gives up: its task was cancelled, or its timeout has passed. What cannot be taken back is finished, so that
    /// the peer stays in step; only its sender stops waiting.
    mutating func abandon(_ id: MessageID, because cause: Abandonment, at now: Timestamp) {
        if let message = order.takeBack(id) {
            let error = FerryError(
                cause.code,
                "\(cause.what) with \(extent(message.send)). It was taken back in time: the peer does not get it.",
                fate: .nothingSent)
            return fail(message, error)
        }
        guard let send = sends[id], send.completion != nil else { return }
        let fate = session.fate(of: id)
        if session.cancel(id, at: now) {
            let known = fate == .nothingSent ? MessageFate.nothingSent : .takenBack
            let error = FerryError(
                cause.code, "\(cause.what) with \(extent(send)). It was taken back in time: the peer does not get it.",
                fate: known)
            return complete(id, .failure(error))
        }
        let error = FerryError(
            cause.code,
            "\(cause.what) with \(extent(send)). The channel goes on and finishes the message, so that the peer stays in "
                + "step; close the channel to stop it.", fate: .mayHaveArrived)
        send.timer?.cancel()
        effects.complete(send, .failure(error))
        // Its completion must not be called any more.
        sends[id]?.completion = nil
        sends[id]?.progress = nil
    }

    /// Offers chunks to the link until it refuses or nothing is left.
    mutating func pump(
        atMost maximumChunkSize: () -> Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) {
        guard case .open = life, !isOver else { return drainEvents(at: now) }
        let bound = chunkSize
        let sentBefore = statistics.chunksSent
        var accepted = 0
        var acceptedBytes = 0
        var outcome = Transmission.idle
        var failure: FerryError?
        var cuts = 0
        var isShrunk = false
        do {
            repeat {
                isShrunk = false
                outcome = try session.transmitAll(atMost: min(maximumChunkSize(), bound), at: now) {
                    (chunk: RawSpan) throws(FerryError) -> Bool in
                    do throws(FerryError) {
                        guard try offer(chunk) else { return false }
                    } catch {
                        // The link has become smaller since it was asked: the same bytes are cut anew.
                        guard error.code == .chunkTooLarge, cuts < 16, maximumChunkSize() < chunk.byteCount else {
                            throw error
                        }
                        cuts += 1
                        isShrunk = true
                        return false
                    }
                    accepted += 1
                    acceptedBytes += chunk.byteCount
                    return true
                }
            } while isShrunk && outcome == .refused
        } catch {
            failure = error
        }
        note(outcome, accepted, acceptedBytes, at: now)
        drainEvents(at: now)
        if let failure { stopSending(failure, at: now) }
        if probedAt == now, statistics.chunksSent > sentBefore { statistics.lostReadySignals += 1 }
        probedAt = nil
        if isDraining, sends.isEmpty, order.isEmpty { finish(Self.drained, at: now) }
    }

    private mutating func note(_ outcome: Transmission, _ accepted: Int, _ bytes: Int, at now: Timestamp) {
        statistics.chunksSent += accepted
        statistics.bytesSent += bytes
        if accepted > 0 {
            stalledFor = .zero
            if let since = refusedSince { statistics.timeWaiting += now - since }
            refusedSince = nil
        }
        if outcome == .refused, refusedSince == nil {
            statistics.waitsForReady += 1
            refusedSince = now
            stalledFor = .zero
        }
        if outcome == .idle { refusedSince = nil }
    }

    mutating func complete(_ id: MessageID, _ result: Result<Void, FerryError>) {
        guard let send = sends.removeValue(forKey: id) else { return }
        outboundBytes -= send.totalBytes
        send.timer?.cancel()
        effects.complete(send, result)
    }

    private static var drained: FerryError {
        FerryError(.closed, "The channel was closed by this side after all that was to be sent.")
    }
}

extension FramingSession {
    /// Offers chunks until one is refused or none is left. Within the extension, so that a session behind `any` is opened
    /// once for all of them.
    fileprivate mutating func transmitAll(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        while true {
            let outcome = try transmit(atMost: maximumChunkSize(), at: now, offer)
            guard outcome == .accepted else { return outcome }
        }
    }
}
