// The Security Manager on its fixed channel (Core Specification 5.4, Vol 3, Part H).

import DequeModule

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

    /// Answers a ``HostEvent/pairingQuestion(_:_:_:)``. Ignores late answers, even where another pairing has begun
    /// meanwhile and asks the same: the first pairing's answer does not answer the second's question.
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
        let room = keyring.room(replacing: existing, isStranger: !isCentral, at: now)
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

// A link's encryption: the controller's part in its security (Core Specification 5.4, Vol 4, Part E, 7.8.24 to 7.8.26), and
// what follows when it is secure or cannot be.

extension LEHost {
    mutating func startEncryption(
        _ index: Int, _ key: [UInt8], _ diversifier: UInt16, _ random: UInt64, of bond: Bond? = nil, at now: Int64
    ) {
        let handle = connections[index].handle
        connections[index].security.encryption = .asked(bond)
        connections[index].security.deadline = now + ConnectionSecurity.timeout
        commands.enqueue(
            HCICommand(.leEnableEncryption, for: .encrypt(connection: handle)) {
                $0.append(u16: handle)
                $0.append(u64: random)
                $0.append(u16: diversifier)
                $0 += key.reversed()
            }, at: now)
    }

    /// The error for a client whose request needs a stronger link (Vol 3, Part C, 10.3.1, Table 10.2).
    func encryptionError(
        _ index: Int, needsAuthentication: Bool = false, needsSecureConnections: Bool = false
    ) -> ATTErrorCode {
        guard !connections[index].security.isEncrypted, let bond = usableBond(index),
            bond.isAuthenticated || !needsAuthentication, bond.isSecureConnections || !needsSecureConnections
        else { return .insufficientAuthentication }
        return .insufficientEncryption
    }

    /// The controller asks a peripheral for the key that the central encrypts with.
    mutating func longTermKeyWasRequested(_ handle: UInt16, random: UInt64, diversifier: UInt16, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        let key: [UInt8]
        if random == 0, diversifier == 0, let current = connections[index].security.pairingKey {
            connections[index].security.encryption = .keyGiven(nil)
            key = current
        } else if let bond = usableBond(index), bond.random == random, bond.diversifier == diversifier {
            connections[index].security.encryption = .keyGiven(bond)
            key = bond.longTermKey
        } else {
            connections[index].security.encryption = .none
            return reply(.leLongTermKeyRequestNegativeReply, at: now) { $0.append(u16: handle) }
        }
        reply(.leLongTermKeyRequestReply, at: now) {
            $0.append(u16: handle)
            $0 += key.reversed()
        }
    }

    /// Encryption Change, or Encryption Key Refresh Complete.
    mutating func encryptionDidChange(_ handle: UInt16, _ status: HCIErrorCode, isEnabled: Bool, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        let cause = connections[index].security.encryption.take()
        // That a link is encrypted no more is acted on in any case.
        if case .none = cause, status != .success || isEnabled {
            pending.events.append(
                .diagnostic(
                    "The controller tells of an encryption of the link to \(connections[index].peer) that nothing has led to; "
                        + "it is ignored."))
            return
        }
        guard status == .success else { return encryptionDidFail(index, status, cause.bond, at: now) }
        guard isEnabled else {
            // No procedure of an LE link does that; secrets would go in the clear from here on.
            connections[index].security.link = LinkSecurity()
            securityDidFail(index, .notEncrypted(status), with: cause.bond, at: now)
            return abort(index, "its link is not encrypted any more", reason: .authenticationFailure, at: now)
        }
        connections[index].security.isEncrypted = true
        if var pairing = connections[index].security.pairing {
            connections[index].security.pairingKey = nil
            let outputs = pairing.linkWasEncrypted()
            connections[index].security.pairing = pairing
            carryOut(index, outputs, at: now)
        } else {
            var link = LinkSecurity()
            link.isEncrypted = true
            if let bond = cause.bond {
                link.isAuthenticated = bond.isAuthenticated
                link.isSecureConnections = bond.isSecureConnections
                link.isBonded = true
                bondDidServe(index, bond, at: now)
            }
            connections[index].security.link = link
            recall(index, at: now)
            securityDidSucceed(index, link, at: now)
        }
    }

    mutating func encryptCommandDidFail(_ handle: UInt16, _ status: HCIErrorCode, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        encryptionDidFail(index, status, connections[index].security.encryption.take().bond, at: now)
    }

    /// A device without the key of a bond is another, or the peer has lost the key: nothing is said to it in the clear, and the
    /// application is told, for it alone can know which of the two it is (Vol 3, Part C, 10.3.2).
    private mutating func encryptionDidFail(_ index: Int, _ status: HCIErrorCode, _ bond: Bond?, at now: Int64) {
        securityDidFail(index, .notEncrypted(status), with: bond, at: now)
        guard connections[index].isCentral, bond != nil else { return }
        abort(
            index, "it does not have the key that is kept for it. It has lost it, or is another device",
            reason: .authenticationFailure, at: now)
    }

    mutating func expireSecurity(_ index: Int, at now: Int64) {
        guard (connections[index].security.deadline ?? .max) <= now else { return }
        connections[index].security.deadline = nil
        if connections[index].security.isEncrypting {
            let bond = connections[index].security.encryption.take().bond
            return encryptionDidFail(index, .linkLayerResponseTimeout, bond, at: now)
        }
        // A central may ignore a request for security; a peer that stops in the middle may not go on.
        if connections[index].security.pairing != nil {
            connections[index].security.isDead = true
            backoff.didFail(lastingAddress(index), at: now)
        }
        securityDidFail(index, .timedOut, at: now)
    }

    /// A bonded server whose keys are weaker than is demanded now is not spoken to in the clear either: it is disconnected, once
    /// it has been told why it was not paired with.
    mutating func refuseWeakBond(_ index: Int, at now: Int64) {
        guard connections[index].closing == nil else { return }
        pending.events.append(
            .diagnostic(
                "\(connections[index].peer) is disconnected: the keys that are kept for it are weaker than is demanded now, and "
                    + "it has not paired anew."))
        connections[index].closing = Connection.Closing(
            reason: .authenticationFailure, isCommandSent: false, deadline: now + 1_000_000_000)
    }

    // MARK: Ends

    private mutating func endSecurity(_ index: Int) {
        connections[index].security.pairing = nil
        connections[index].security.question = nil
        connections[index].security.pairingKey = nil
        connections[index].security.deadline = nil
    }

    mutating func securityDidSucceed(_ index: Int, _ link: LinkSecurity, at now: Int64) {
        if link.isBonded, connections[index].security.pairing != nil { serverWasBonded(index) }
        endSecurity(index)
        connections[index].security.link = link
        pending.events.append(.secured(connections[index].id, isAuthenticated: link.isAuthenticated))
        connections[index].security.isAwaited = false
        if connections[index].security.isHeldBack {
            connections[index].security.hold = .none
            beginATT(index, at: now)
        }
        let waiting = connections[index].security.channels
        connections[index].security.channels = []
        for channel in waiting { openChannel(index, psm: channel.psm, channel.operation, at: now) }
        openBearer(index, at: now)
        pumpProcedures(index, at: now)
    }

    /// - Parameter bond: whose key did not encrypt the link; nil where a pairing failed.
    mutating func securityDidFail(
        _ index: Int, _ failure: PairingFailure, with bond: Bond? = nil, at now: Int64
    ) {
        let isNewKeyAwaited = connections[index].security.isHeldBack && bond == nil
        endSecurity(index)
        pending.events.append(.pairingFailed(connections[index].id, failure))
        let waiting = connections[index].security.channels
        connections[index].security.channels = []
        for channel in waiting {
            pending.events.append(
                .channelRefused(channel.operation, connections[index].id, .insufficientAuthentication))
        }
        if isNewKeyAwaited { return refuseWeakBond(index, at: now) }
        guard connections[index].security.isAwaited else { return }
        connections[index].security.isAwaited = false
        if let procedure = connections[index].procedures.popFirst() {
            finish(index, procedure.id, .failure(.refused(.insufficientAuthentication)), at: now)
        }
        pumpProcedures(index, at: now)
    }
}

// Keys that are kept, and whose they are.

extension LEHost {
    /// Keys shared with peers.
    public var bonds: [Bond] { keyring.bonds }

    /// Keys of earlier connections, in place of those known now.
    public mutating func setBonds(_ bonds: [Bond]) {
        keyring.replaceAll(by: bonds)
        bondsDidChange()
        rememberedClients.removeAll { client in !bonds.contains { $0.peer == client.address } }
    }

    /// Forgets a peer's keys, and all data kept with them. The peer is meant by the address it was paired by, its
    /// identity address, also where that is only claimed, or any private address that its key resolves. A connection
    /// that is encrypted stays so, but is not ``LinkSecurity/isBonded`` any more.
    ///
    /// - Returns: the removed bond; nil when there were no keys.
    @discardableResult public mutating func forget(_ peer: Address) -> Bond? {
        guard let bond = keyring.bond(with: peer) ?? keyring.bond(claiming: peer) else { return nil }
        for index in connections.indices where self.bond(index)?.peer == bond.peer {
            connections[index].security.link.isBonded = false
        }
        discoveries.remove(bond.lastingAddress)
        setBonds(bonds.filter { $0.peer != bond.peer })
        return bond
    }

    /// The bond with a connection's peer.
    func bond(_ index: Int) -> Bond? { keyring.bond(with: connections[index].peer) }

    /// The bond with a connection's peer whose key serves in these roles, and meets the options of now.
    func usableBond(_ index: Int) -> Bond? {
        keyring.usable(with: connections[index].peer, asCentral: connections[index].isCentral)
    }

    /// The controller's resolving list may have to be another now.
    private mutating func bondsDidChange() { privacy.require(.check) }

    // MARK: New keys

    /// Keeps the keys of a pairing, unless the peer claims to be another whose keys are worth more.
    ///
    /// - Parameters:
    ///   - made: the new bond.
    ///   - replaced: the bond that the pairing was allowed to replace.
    ///   - now: the time.
    /// - Returns: the bond as it is kept, or whose address the peer has claimed.
    mutating func keep(_ made: Bond, replacing replaced: Bond?, at now: Int64) -> Result<Bond, PairingFailure> {
        let own = [configuration.address, privacy.address, controller.publicAddress]
        let judgement = keyring.judge(made, replacing: replaced, own: own, at: now)
        if let disbelief = judgement.disbelief { pending.events.append(.diagnostic(disbelief)) }
        switch judgement.outcome {
        case .refused(let owner): return .failure(.identityInUse(owner))
        case .kept(let replaced, let displaced):
            if let displaced {
                pending.events.append(
                    .diagnostic(
                        "The keys of \(displaced), which has not come back since it paired, make room for \(made.peer)'s."
                    ))
                forget(displaced)
            }
            keyring.keep(judgement.bond, replacing: replaced, at: now)
            bondsDidChange()
            rememberedClients.removeAll { replaced.contains($0.address) }
            return .success(judgement.bond)
        }
    }

    /// A link has been encrypted with a bond's key: the peer has come back.
    private mutating func bondDidServe(_ index: Int, _ bond: Bond, at now: Int64) {
        guard let proven = keyring.didServe(bond, at: connections[index].peer, at: now) else { return }
        bondsDidChange()
        pending.events.append(.bonded(connections[index].id, proven))
    }
}
