// How two sides come to a key, and which keys are none.

extension Pairing {
    /// What follows from a command, in order.
    enum Output: Sendable, Equatable {
        case send(PairingPDU)
        case ask(PairingQuestion)
        /// The link can be encrypted with this key: the initiator starts, the responder is asked for it.
        case encrypt(key: [UInt8])
        case finished(Bond?)
        case failed(PairingFailure)
    }

    enum Method: Sendable, Equatable { case justWorks, compare, show, enter, outOfBand }

    enum Step: Sendable {
        case idle, features, consent, publicKey, confirm, random, person, check, encryption, keys, over
    }

    struct Failure: Error {
        let reason: UInt8
        let why: PairingFailure?

        init(reason: UInt8, why: PairingFailure? = nil) { (self.reason, self.why) = (reason, why) }
    }

    /// Which side shows and which enters (2.3.5.1, Table 2.8).
    static func method(
        _ initiator: IOCapability, _ responder: IOCapability, _ isSecureConnections: Bool, _ isInitiator: Bool
    ) -> Method {
        if isSecureConnections, initiator.canCompare, responder.canCompare { return .compare }
        if initiator.canShow, responder.canEnter { return isInitiator ? .show : .enter }
        if initiator.canEnter, responder.canShow { return isInitiator ? .enter : .show }
        return initiator.canEnter && responder.canEnter ? .enter : .justWorks
    }

    /// Whether to use out-of-band data. Where this side has some of the peer, another method is refused: falling back
    /// to Just Works would lose the protection that the data were carried for.
    ///
    /// - Parameters:
    ///   - isHere: whether this side has data from the peer, or the key of legacy pairing.
    ///   - isThere: whether the peer says so.
    func usesOutOfBand(isHere: Bool, isThere: Bool) throws(Failure) -> Bool {
        let notAvailable = Failure(reason: 0x02)
        guard isSecureConnections else {
            // Both need the same key (2.3.5.1, Table 2.6).
            guard isHere else { return false }
            guard !options.requiresSecureConnections else { throw Failure(reason: 0x03) }
            guard isThere, outOfBand.temporaryKey != nil else { throw notAvailable }
            return true
        }
        // The peer cannot have what this side has not made.
        guard !isThere || outOfBand.own != nil else { throw notAvailable }
        return isHere || isThere
    }

    /// The private key that everybody knows, for who looks for faults in captures (2.3.5.6.1): its public key's x.
    static let debugKey: [UInt8] = [
        0x20, 0xB0, 0x03, 0xD2, 0xF2, 0x97, 0xBE, 0x2C, 0x5E, 0x2C, 0x83, 0xA7, 0xE9, 0xF9, 0xA5, 0xB9, 0xEF, 0xF4,
        0x91, 0x11, 0xAC, 0xF4, 0xFD, 0xDB, 0xCC, 0x03, 0x01, 0x48, 0x0E, 0x35, 0x9D, 0xE6,
    ]
}
