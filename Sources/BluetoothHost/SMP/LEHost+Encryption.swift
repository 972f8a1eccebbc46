// A link's encryption: the controller's part in its security (Core Specification 5.4, Vol 4, Part E, 7.8.24 to 7.8.26), and
// what follows when it is secure or cannot be.

import DequeModule

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

    /// What a client is told that wants what needs a stronger link (Vol 3, Part C, 10.3.1, Table 10.2).
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
            // Nothing on an LE link does that; whatever was secret would go in the clear from here on.
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
            index, "it does not have the key that is kept for it. It has lost it, or is somebody else",
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
