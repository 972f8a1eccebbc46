// The Security Manager on its fixed channel (Core Specification 5.4, Vol 3, Part H).

extension LEHost {
    private static let pairingNotSupported: UInt8 = 0x05
    private static let commandNotSupported: UInt8 = 0x07
    private static let repeatedAttempts: UInt8 = 0x09
    private static let invalidParameters: UInt8 = 0x0A

    // MARK: What the application does

    /// Encrypts a connection: with the bond's key, or by pairing. As peripheral it asks the central to.
    /// ``HostEvent/secured(_:isAuthenticated:)`` or ``HostEvent/pairingFailed(_:_:)`` follows, unless the link is secure.
    ///
    /// - Returns: false when the connection has ended, or this host or its controller cannot encrypt.
    public mutating func secure(_ id: ConnectionID, at now: Int64) -> Bool {
        guard let index = index(id), connections[index].closing == nil else { return false }
        if connections[index].security.isEncrypted || connections[index].security.isBusy { return true }
        return beginSecurity(index, isOwnWish: true, at: now)
    }

    /// Answers a ``HostEvent/pairingQuestion(_:_:_:)``. Answers that come too late are ignored, also where another pairing has
    /// begun meanwhile and asks the same: what was said of the first is not said of the second.
    public mutating func answerPairing(_ question: PairingQuestionID, _ answer: PairingAnswer, at now: Int64) {
        guard let index = connections.indices.first(where: { connections[$0].security.question == question }),
            var pairing = connections[index].security.pairing
        else { return }
        connections[index].security.question = nil
        let outputs = pairing.answer(answer)
        connections[index].security.pairing = pairing
        carryOut(index, outputs, at: now)
    }

    /// Whether connections can be encrypted: by this host's configuration and its controller.
    public var pairs: Bool { canPair }

    var canPair: Bool { configuration.pairing != nil && controller.canEncrypt }

    // MARK: Starting

    /// Starts to make a link secure: with the key of a bond where it is good enough, by pairing where not, or where the link
    /// is encrypted already. Returns false when that cannot be.
    ///
    /// - Parameter isOwnWish: whether the application asked for it, so that it need not be asked whether to pair.
    mutating func beginSecurity(_ index: Int, isOwnWish: Bool = false, at now: Int64) -> Bool {
        guard canPair, var options = configuration.pairing, !connections[index].security.isDead else { return false }
        guard connections[index].isCentral else {
            connections[index].security.deadline = now + ConnectionSecurity.timeout
            var authentication = PairingFeatures.secureConnections
            if options.bonds { authentication |= PairingFeatures.bonding }
            if options.requiresAuthentication { authentication |= PairingFeatures.authenticated }
            sendPairing(index, .securityRequest(authentication: authentication), at: now)
            return true
        }
        if !connections[index].security.isEncrypted, let bond = usableBond(index) {
            startEncryption(index, bond.longTermKey, bond.diversifier, bond.random, of: bond, at: now)
            return true
        }
        guard !mustWait(index, at: now) else {
            guard isOwnWish else { return false }
            pending.events.append(.pairingFailed(connections[index].id, .here(Self.repeatedAttempts)))
            return true
        }
        if isOwnWish { options.asksToAllow = false }
        var pairing = makePairing(index, options, at: now)
        let outputs = pairing.begin()
        connections[index].security.pairing = pairing
        connections[index].security.deadline = now + ConnectionSecurity.timeout
        carryOut(index, outputs, at: now)
        return true
    }

    private mutating func makePairing(_ index: Int, _ options: PairingOptions, at now: Int64) -> Pairing {
        var options = options
        let existing = bond(index)
        let isCentral = connections[index].isCentral
        let room =
            !options.bonds || existing != nil
            ? Newcomers.Room.forAll
            : newcomers.room(beside: bonds.count, of: options.maximumBonds, isStranger: !isCentral, at: now)
        let peer = connections[index].peer
        switch room {
        case .forAll: break
        case .forAuthenticated(.tooManyStrangers):
            pending.events.append(
                .diagnostic(
                    "\(peer) is paired with for this connection only, unless by a number: too many peers have paired without one "
                        + "within an hour."))
        case .none, .forAuthenticated(.full):
            pending.events.append(
                .diagnostic(
                    "\(peer) is paired with for this connection only: keys of \(bonds.count) peers are kept."
                        + " Forget some of them."))
        }
        if room == .none || room != .forAll && isCentral { options.bonds = false }
        return Pairing(
            isInitiator: connections[index].isCentral, local: connections[index].local, peer: connections[index].peer,
            options: options, identity: ownIdentity,
            outOfBand: outOfBand.with([connections[index].peer, lastingAddress(index)]), existing: existing,
            isProven: connections[index].security.link.isBonded, bondsStrangers: room == .forAll)
    }

    /// Whether the peer has to wait before it may pair. One that has proved who it is has not: those who failed in its name were
    /// others.
    private func mustWait(_ index: Int, at now: Int64) -> Bool {
        !connections[index].security.link.isBonded && backoff.isWaiting(lastingAddress(index), at: now)
    }

    // MARK: What the peer does

    mutating func receiveSecurityManager(_ index: Int, _ pdu: RawSpan, at now: Int64) {
        guard !connections[index].security.isDead, pdu.byteCount >= 1, pdu.byteCount <= 65 else { return }
        let command: PairingPDU?
        do throws(MalformedPacket) {
            command = try PairingPDU.decode([UInt8](copying: pdu))
        } catch {
            return refusePairing(index, Self.invalidParameters, at: now)
        }
        guard let command else { return refusePairing(index, Self.commandNotSupported, at: now) }
        if connections[index].security.pairing == nil {
            switch command {
            case .request where !connections[index].isCentral:
                guard mayPair(index, at: now), let options = configuration.pairing else { return }
                connections[index].security.pairing = makePairing(index, options, at: now)
            case .securityRequest(let authentication) where connections[index].isCentral:
                securityWasRequested(index, authentication, at: now)
                return
            case .request, .securityRequest: return refusePairing(index, Self.commandNotSupported, at: now)
            default: return  // the rest of a pairing that is over
            }
        } else if case .securityRequest = command {
            return  // it is being done
        }
        guard var pairing = connections[index].security.pairing else { return }
        connections[index].security.deadline = now + ConnectionSecurity.timeout
        let outputs = pairing.receive(command)
        connections[index].security.pairing = pairing
        carryOut(index, outputs, at: now)
    }

    /// A peripheral wants the link secure (2.4.6). One that wants more than the link is, is paired with anew; to no purpose
    /// where this side has nothing to show or enter.
    private mutating func securityWasRequested(_ index: Int, _ authentication: UInt8, at now: Int64) {
        guard !connections[index].security.isBusy else { return }
        let link = connections[index].security.link
        if link.isEncrypted {
            let wantsNumber = authentication & PairingFeatures.authenticated != 0 && !link.isAuthenticated
            guard wantsNumber, configuration.pairing?.capability != .noInputNoOutput else { return }
        } else if usableBond(index) != nil {
            _ = beginSecurity(index, at: now)
            return
        }
        if mayPair(index, at: now) { _ = beginSecurity(index, at: now) }
    }

    /// Whether a peer that asks may pair now; it is told when not.
    private mutating func mayPair(_ index: Int, at now: Int64) -> Bool {
        let reason =
            !canPair || !isPairable
            ? Self.pairingNotSupported
            : mustWait(index, at: now) ? Self.repeatedAttempts : nil
        guard let reason else { return true }
        if !countRefusal(index, at: now) { sendPairing(index, .failed(reason), at: now) }
        return false
    }

    /// Whether a peer is disconnected, for it has been refused too often on this connection.
    private mutating func countRefusal(_ index: Int, at now: Int64) -> Bool {
        connections[index].security.refusals += 1
        guard connections[index].security.refusals > ConnectionSecurity.refusalLimit else { return false }
        abort(index, "it asks to pair again and again", at: now)
        return true
    }

    private mutating func refusePairing(_ index: Int, _ reason: UInt8, at now: Int64) {
        guard var pairing = connections[index].security.pairing else {
            return sendPairing(index, .failed(reason), at: now)
        }
        carryOut(index, pairing.abandon(reason), at: now)
    }

    private mutating func sendPairing(_ index: Int, _ command: PairingPDU, at now: Int64) {
        send(command.bytes, on: ChannelID.securityManager, to: index, at: now)
    }

    mutating func carryOut(_ index: Int, _ outputs: [Pairing.Output], at now: Int64) {
        for output in outputs {
            switch output {
            case .send(let command): sendPairing(index, command, at: now)
            case .ask(let question):
                let id = PairingQuestionID(rawValue: makeID())
                connections[index].security.question = id
                pending.events.append(.pairingQuestion(id, connections[index].id, question))
            case .encrypt(let key):
                connections[index].security.pairingKey = key
                if connections[index].isCentral { startEncryption(index, key, 0, 0, at: now) }
            case .finished(let bond): pairingDidFinish(index, bond, at: now)
            case .failed(let failure): pairingDidFail(index, failure, at: now)
            }
        }
    }

    private mutating func pairingDidFinish(_ index: Int, _ made: Bond?, at now: Int64) {
        guard let pairing = connections[index].security.pairing else { return }
        var link = LinkSecurity()
        link.isEncrypted = true
        link.isAuthenticated = pairing.isAuthenticated
        link.isSecureConnections = pairing.isSecureConnections
        if let made {
            switch keep(made, replacing: pairing.existing, at: now) {
            case .success(let bond):
                link.isBonded = true
                pending.events.append(.bonded(connections[index].id, bond))
            case .failure(let failure):
                connections[index].security.link = LinkSecurity()
                securityDidFail(index, failure, at: now)
                abort(index, "\(failure)", reason: .authenticationFailure, at: now)
                return
            }
        }
        outOfBandDidServe(pairing)
        for address in [connections[index].peer, lastingAddress(index)] { backoff.didSucceed(address) }
        securityDidSucceed(index, link, at: now)
    }

    /// Only a failure that may have been a guess makes the peer wait. A request that this side refuses at once is none, and a
    /// stranger that uses the peer's address could otherwise make the peer wait.
    private mutating func pairingDidFail(_ index: Int, _ failure: PairingFailure, at now: Int64) {
        if connections[index].security.pairing?.isRefused == true {
            _ = countRefusal(index, at: now)
        } else {
            backoff.didFail(lastingAddress(index), at: now)
        }
        securityDidFail(index, failure, at: now)
    }
}
