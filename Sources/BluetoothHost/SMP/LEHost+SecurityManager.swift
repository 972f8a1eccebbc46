// The Security Manager on its fixed channel, and the controller's part in it: encryption (Core Specification 5.4, Vol 3,
// Part H and Vol 4, Part E, 7.8.24 to 7.8.26).

import DequeModule

/// What the host keeps of a connection's security.
struct LinkSecurity: Sendable {
    /// How long the peer may take for its next command, in nanoseconds (Vol 3, Part H, 3.4).
    static let timeout: Int64 = 30_000_000_000
    /// Pairings that may fail on one connection before further ones are refused (2.3.6).
    static let failureLimit = 3
    /// Further ones that are refused before the peer is disconnected.
    static let refusalLimit = 16

    var isEncrypted = false
    /// Whether the key in use is one that a person had a part in.
    var isAuthenticated = false
    var pairing: Pairing?
    var deadline: Int64?
    var failures = 0
    var refusals = 0
    /// No pairing is possible on this connection any more: the peer did not answer in time (3.4).
    var isDead = false
    /// The key of the pairing under way, for the controller's question.
    var pairingKey: [UInt8]?
    /// The key that encryption was started with comes from a bond with this authentication.
    var bondInUse: Bond?
    /// Whether encryption was asked of the controller, as central.
    var isEncrypting = false
    /// Whether an ATT request waits for the link to be secure.
    var isAwaited = false
    /// Channels to open again once the link is secure.
    var channels: [(psm: UInt16, operation: OperationID)] = []

    /// Whether something is under way that ends with an encrypted link or a failure.
    var isBusy: Bool { pairing != nil || isEncrypting }
}

extension LEHost {
    private static let pairingNotSupported: UInt8 = 0x05
    private static let commandNotSupported: UInt8 = 0x07
    private static let repeatedAttempts: UInt8 = 0x09
    private static let invalidParameters: UInt8 = 0x0A

    // MARK: What the application does

    /// Keys of earlier connections, in place of those known now.
    public mutating func setBonds(_ bonds: [Bond]) {
        self.bonds = bonds
        rememberedClients.removeAll { client in !bonds.contains { $0.peer == client.address } }
    }

    /// Encrypts a connection: with the bond's key, or by pairing. As peripheral it asks the central to.
    /// ``HostEvent/secured(_:isAuthenticated:)`` or ``HostEvent/pairingFailed(_:_:)`` follows, unless the link is secure.
    ///
    /// - Returns: false when the connection has ended, or this host or its controller cannot encrypt.
    public mutating func secure(_ id: ConnectionID, at now: Int64) -> Bool {
        guard let index = index(id), connections[index].closing == nil else { return false }
        if connections[index].security.isEncrypted || connections[index].security.isBusy { return true }
        return beginSecurity(index, at: now)
    }

    /// Answers a ``HostEvent/pairingQuestion(_:_:)``. Answers that come too late are ignored.
    public mutating func answerPairing(_ id: ConnectionID, _ answer: PairingAnswer, at now: Int64) {
        guard let index = index(id), var pairing = connections[index].security.pairing else { return }
        let outputs = pairing.answer(answer)
        connections[index].security.pairing = pairing
        carryOut(index, outputs, at: now)
    }

    /// Whether a connection is encrypted; nil when it has ended.
    public func isEncrypted(_ id: ConnectionID) -> Bool? { index(id).map { connections[$0].security.isEncrypted } }

    /// Whether connections can be encrypted: by this host's configuration and its controller.
    public var pairs: Bool { canPair }

    var canPair: Bool { configuration.pairing != nil && controller.canEncrypt }

    /// The bond with a peer: by its address, or by the key that its private address was made of.
    func bond(with peer: Address) -> Bond? {
        if let known = bonds.first(where: { $0.peer == peer || $0.identity == peer }) { return known }
        guard let cryptography = configuration.pairing?.cryptography else { return nil }
        let functions = PairingFunctions(cryptography: cryptography)
        return bonds.first { bond in bond.identityResolvingKey.map { functions.resolves(peer, by: $0) } ?? false }
    }

    /// What a client is told that wants what needs encryption (Vol 3, Part C, 10.3.1).
    func encryptionError(_ index: Int) -> ATTErrorCode {
        bond(with: connections[index].peer) == nil ? .insufficientAuthentication : .insufficientEncryption
    }

    // MARK: Starting

    /// Starts to make a link secure. Returns false when that cannot be.
    mutating func beginSecurity(_ index: Int, at now: Int64) -> Bool {
        guard canPair, let options = configuration.pairing, !connections[index].security.isDead else { return false }
        guard connections[index].isCentral else {
            connections[index].security.deadline = now + LinkSecurity.timeout
            var authentication = PairingFeatures.secureConnections
            if options.bonds { authentication |= PairingFeatures.bonding }
            if options.requiresAuthentication { authentication |= PairingFeatures.authenticated }
            sendPairing(index, .securityRequest(authentication: authentication), at: now)
            return true
        }
        if let bond = bond(with: connections[index].peer), bond.isSecureConnections || !bond.peerIsCentral {
            startEncryption(index, bond.longTermKey, bond.diversifier, bond.random, at: now)
            connections[index].security.bondInUse = bond
            return true
        }
        var pairing = makePairing(index, options)
        let outputs = pairing.begin()
        connections[index].security.pairing = pairing
        connections[index].security.deadline = now + LinkSecurity.timeout
        carryOut(index, outputs, at: now)
        return true
    }

    private func makePairing(_ index: Int, _ options: PairingOptions) -> Pairing {
        Pairing(
            isInitiator: connections[index].isCentral, local: configuration.address, peer: connections[index].peer,
            options: options)
    }

    private mutating func startEncryption(
        _ index: Int, _ key: [UInt8], _ diversifier: UInt16, _ random: UInt64, at now: Int64
    ) {
        let handle = connections[index].handle
        connections[index].security.isEncrypting = true
        commands.enqueue(
            HCICommand(.leEnableEncryption, for: .encrypt(connection: handle)) {
                $0.append(u16: handle)
                $0.append(u64: random)
                $0.append(u16: diversifier)
                $0 += key.reversed()
            }, at: now)
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
                connections[index].security.pairing = makePairing(index, options)
            case .securityRequest where connections[index].isCentral:
                guard !connections[index].security.isEncrypted, !connections[index].security.isBusy else { return }
                if mayPair(index, at: now) { _ = beginSecurity(index, at: now) }
                return
            case .request, .securityRequest: return refusePairing(index, Self.commandNotSupported, at: now)
            default: return  // the rest of a pairing that is over
            }
        } else if case .securityRequest = command {
            return  // it is being done
        }
        guard var pairing = connections[index].security.pairing else { return }
        connections[index].security.deadline = now + LinkSecurity.timeout
        let outputs = pairing.receive(command)
        connections[index].security.pairing = pairing
        carryOut(index, outputs, at: now)
    }

    /// Whether a peer that asks may pair now; it is told when not.
    private mutating func mayPair(_ index: Int, at now: Int64) -> Bool {
        let reason =
            !canPair
            ? Self.pairingNotSupported
            : connections[index].security.failures >= LinkSecurity.failureLimit ? Self.repeatedAttempts : nil
        guard let reason else { return true }
        connections[index].security.refusals += 1
        if connections[index].security.refusals > LinkSecurity.refusalLimit {
            abort(index, "it asks to pair again and again", at: now)
        } else {
            sendPairing(index, .failed(reason), at: now)
        }
        return false
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

    private mutating func carryOut(_ index: Int, _ outputs: [Pairing.Output], at now: Int64) {
        for output in outputs {
            switch output {
            case .send(let command): sendPairing(index, command, at: now)
            case .ask(let question): pending.events.append(.pairingQuestion(connections[index].id, question))
            case .encrypt(let key):
                connections[index].security.pairingKey = key
                if connections[index].isCentral { startEncryption(index, key, 0, 0, at: now) }
            case .finished(let bond):
                let isAuthenticated = connections[index].security.pairing?.isAuthenticated ?? false
                if let bond {
                    bonds.removeAll { $0.peer == bond.peer || bond.identity != nil && $0.identity == bond.identity }
                    bonds.append(bond)
                    pending.events.append(.bonded(connections[index].id, bond))
                }
                securityDidSucceed(index, isAuthenticated: isAuthenticated, at: now)
            case .failed(let failure): securityDidFail(index, failure, at: now)
            }
        }
    }

    // MARK: Encryption

    /// The controller asks a peripheral for the key that the central encrypts with.
    mutating func longTermKeyWasRequested(_ handle: UInt16, random: UInt64, diversifier: UInt16, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        var key: [UInt8]?
        if random == 0, diversifier == 0, let current = connections[index].security.pairingKey {
            key = current
        } else if let bond = bond(with: connections[index].peer), bond.isSecureConnections || bond.peerIsCentral,
            bond.random == random, bond.diversifier == diversifier
        {
            connections[index].security.bondInUse = bond
            key = bond.longTermKey
        }
        guard let key else {
            tune(.leLongTermKeyRequestNegativeReply, at: now) { $0.append(u16: handle) }
            return
        }
        tune(.leLongTermKeyRequestReply, at: now) {
            $0.append(u16: handle)
            $0 += key.reversed()
        }
    }

    /// Encryption Change, or Encryption Key Refresh Complete.
    mutating func encryptionDidChange(_ handle: UInt16, _ status: HCIErrorCode, isEnabled: Bool, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        connections[index].security.isEncrypting = false
        guard status == .success, isEnabled else {
            if status == .success { connections[index].security.isEncrypted = false }
            return securityDidFail(index, .notEncrypted(status), at: now)
        }
        connections[index].security.isEncrypted = true
        if var pairing = connections[index].security.pairing {
            connections[index].security.pairingKey = nil
            let outputs = pairing.linkWasEncrypted()
            connections[index].security.pairing = pairing
            carryOut(index, outputs, at: now)
        } else {
            let isAuthenticated = connections[index].security.bondInUse?.isAuthenticated ?? false
            recall(index, at: now)
            securityDidSucceed(index, isAuthenticated: isAuthenticated, at: now)
        }
    }

    mutating func encryptCommandDidFail(_ handle: UInt16, _ status: HCIErrorCode, at now: Int64) {
        guard let index = index(handle: handle) else { return }
        connections[index].security.isEncrypting = false
        securityDidFail(index, .notEncrypted(status), at: now)
    }

    mutating func expireSecurity(_ index: Int, at now: Int64) {
        guard (connections[index].security.deadline ?? .max) <= now else { return }
        connections[index].security.deadline = nil
        // A central may ignore a request for security; a peer that stops in the middle may not go on.
        connections[index].security.isDead = connections[index].security.pairing != nil
        securityDidFail(index, .timedOut, at: now)
    }

    // MARK: Ends

    private mutating func endSecurity(_ index: Int) {
        connections[index].security.pairing = nil
        connections[index].security.pairingKey = nil
        connections[index].security.deadline = nil
    }

    private mutating func securityDidSucceed(_ index: Int, isAuthenticated: Bool, at now: Int64) {
        endSecurity(index)
        connections[index].security.isAuthenticated = isAuthenticated
        pending.events.append(.secured(connections[index].id, isAuthenticated: isAuthenticated))
        connections[index].security.isAwaited = false
        let waiting = connections[index].security.channels
        connections[index].security.channels = []
        for channel in waiting { openChannel(index, psm: channel.psm, channel.operation, at: now) }
        pumpProcedures(index, at: now)
    }

    private mutating func securityDidFail(_ index: Int, _ failure: PairingFailure, at now: Int64) {
        endSecurity(index)
        connections[index].security.failures += 1
        pending.events.append(.pairingFailed(connections[index].id, failure))
        let waiting = connections[index].security.channels
        connections[index].security.channels = []
        for channel in waiting {
            pending.events.append(
                .channelRefused(channel.operation, connections[index].id, .insufficientAuthentication))
        }
        guard connections[index].security.isAwaited else { return }
        connections[index].security.isAwaited = false
        if let procedure = connections[index].procedures.popFirst() {
            finish(index, procedure.id, .failure(.refused(.insufficientAuthentication)))
        }
        pumpProcedures(index, at: now)
    }
}
