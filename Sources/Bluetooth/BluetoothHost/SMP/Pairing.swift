/// One pairing of two devices, from features to keys (Core Specification 5.4, Vol 3, Part H, 2.3): LE Secure Connections
/// with Just Works, numeric comparison, a passkey or out-of-band data, and legacy pairing with all of these but comparison.
struct Pairing: Sendable {
    /// Rounds of Secure Connections' passkey entry, one for each bit.
    static let rounds = 20

    let isInitiator: Bool
    let local: Address
    let peer: Address
    let options: PairingOptions
    /// Who the peer is told this is, where its addresses change.
    let identity: OwnIdentity?
    let outOfBand: OutOfBand
    let functions: PairingFunctions
    /// The keys of this peer that are kept already.
    let existing: Bond?
    /// Whether the link is encrypted with them, so that it is the same peer that pairs anew.
    let isProven: Bool
    /// Whether keys are kept, where the options say so, also of a pairing without a number that the peer has asked for.
    let bondsStrangers: Bool

    private(set) var step = Step.idle
    private(set) var method = Method.justWorks
    private(set) var isSecureConnections = false
    private var request: PairingFeatures?
    private var response: PairingFeatures?
    private var keys: PairingKeyPair?
    private var peerX: [UInt8] = []
    private var secret: [UInt8] = []
    private var localRandom: [UInt8] = []
    private var peerRandom: [UInt8] = []
    private var localConfirm: [UInt8] = []
    private var peerConfirm: [UInt8]?
    private var peerCheck: [UInt8]?
    private var passkey: UInt32?
    private var round = 0
    private var macKey: [UInt8] = []
    private var distribution = KeyDistribution()
    private var outputs: [Output] = []
    /// Whether this side has ended it before anything was exchanged that could be guessed, and without asking anybody.
    private(set) var isRefused = false

    private static let authenticationRequirements = Failure(reason: 0x03)
    private static let confirmFailed = Failure(reason: 0x04)
    private static let invalidParameters = Failure(reason: 0x0A)
    private static let checkFailed = Failure(reason: 0x0B)

    init(
        isInitiator: Bool, local: Address, peer: Address, options: PairingOptions, identity: OwnIdentity? = nil,
        outOfBand: OutOfBand = OutOfBand(), existing: Bond? = nil, isProven: Bool = false,
        bondsStrangers: Bool = true
    ) {
        self.bondsStrangers = bondsStrangers
        self.outOfBand = outOfBand
        self.identity = identity
        self.existing = existing
        self.isProven = isProven
        self.isInitiator = isInitiator
        self.local = local
        self.peer = peer
        self.options = options
        functions = PairingFunctions(cryptography: options.cryptography)
    }

    /// Whether a person compared or entered a number, or carried data.
    var isAuthenticated: Bool { method != .justWorks }

    private var ownAuthentication: UInt8 {
        var bits = outOfBand.temporaryKey == nil ? PairingFeatures.secureConnections : 0
        if options.bonds { bits |= PairingFeatures.bonding }
        if options.requiresAuthentication || options.capability != .noInputNoOutput {
            bits |= PairingFeatures.authenticated
        }
        return bits
    }

    /// Keys that this side has for the peer besides an encryption key.
    private var ownKeys: UInt8 { identity == nil ? 0 : PairingFeatures.identityKey }

    // MARK: What happens

    /// Begins as the initiator.
    mutating func begin() -> [Output] {
        var features = PairingFeatures(
            capability: options.capability, authentication: ownAuthentication,
            initiatorKeys: options.bonds ? ownKeys : 0,
            responderKeys: options.bonds ? PairingFeatures.encryptionKey | PairingFeatures.identityKey : 0)
        features.hasOOBData = outOfBand.flag
        request = features
        step = .features
        return [.send(.request(features))]
    }

    mutating func receive(_ pdu: PairingPDU) -> [Output] {
        attempt { pairing throws(Failure) in try pairing.handle(pdu) }
    }

    /// Handles a person's answer; ignores answers to questions that are not open.
    mutating func answer(_ answer: PairingAnswer) -> [Output] {
        attempt { pairing throws(Failure) in
            switch answer {
            case .allow(let isAllowed):
                guard pairing.step == .consent else { return }
                guard isAllowed else {
                    let why = pairing.weakened.map { _ in PairingFailure.wouldReplaceKeys }
                    throw Failure(reason: why == nil ? 0x05 : 0x03, why: why)
                }
                pairing.proceed()
            case .confirm(let isSame):
                guard pairing.step == .person else { return }
                guard isSame else { throw Failure(reason: 0x0C) }
                try pairing.makeLongTermKey()
            case .passkey(let number):
                guard pairing.method == .enter, pairing.passkey == nil else { return }
                guard number < 1_000_000 else { throw Failure(reason: 0x01) }
                pairing.passkey = number
                try pairing.passkeyIsKnown()
            }
        }
    }

    /// The link has been encrypted with the key of this pairing.
    mutating func linkWasEncrypted() -> [Output] {
        attempt { pairing throws(Failure) in
            guard pairing.step == .encryption else { return }
            pairing.step = .keys
            pairing.distributeKeys()
        }
    }

    /// Ends the pairing for a reason of this side's own.
    mutating func abandon(_ reason: UInt8) -> [Output] {
        attempt { _ throws(Failure) in throw Failure(reason: reason) }
    }

    private mutating func attempt(_ body: (inout Pairing) throws(Failure) -> Void) -> [Output] {
        guard step != .over else { return [] }
        outputs = []
        do throws(Failure) {
            try body(&self)
        } catch {
            isRefused = step == .idle || step == .features
            step = .over
            outputs += [.send(.failed(error.reason)), .failed(error.why ?? .here(error.reason))]
        }
        defer { outputs = [] }
        return outputs
    }

    private mutating func handle(_ pdu: PairingPDU) throws(Failure) {
        switch (pdu, step) {
        case (.failed(let reason), _):
            step = .over
            outputs.append(.failed(.peer(reason)))
        case (.keypress, _): break
        case (.request(let features), .idle) where !isInitiator: try accept(features)
        case (.response(let features), .features): try agree(features)
        case (.publicKey(let x, let y), .publicKey): try receiveKey(x, y)
        case (.confirm(let value), .confirm): try receiveConfirm(value)
        case (.random(let value), .random): try receiveRandom(value)
        case (.check(let value), .person) where !isInitiator && peerCheck == nil: peerCheck = value
        case (.check(let value), .check): try receiveCheck(value)
        case (_, .keys):
            guard distribution.receive(pdu) else { throw Failure(reason: 0x08) }
            finishKeys()
        default: throw Failure(reason: 0x08)
        }
    }

    // MARK: Phase 1: features

    /// As the responder.
    private mutating func accept(_ features: PairingFeatures) throws(Failure) {
        request = features
        let bonds = options.bonds && features.has(PairingFeatures.bonding)
        var answer = PairingFeatures(
            capability: options.capability, authentication: ownAuthentication,
            initiatorKeys: bonds ? features.initiatorKeys & PairingFeatures.identityKey : 0,
            responderKeys: bonds ? features.responderKeys & (PairingFeatures.encryptionKey | ownKeys) : 0)
        answer.hasOOBData = outOfBand.flag
        try choose(features, answer)
        if !isAuthenticated, !bondsStrangers {
            answer.authentication &= ~PairingFeatures.bonding
            (answer.initiatorKeys, answer.responderKeys) = (0, 0)
        }
        response = answer
        try proceedIfAllowed()
    }

    /// As the initiator.
    private mutating func agree(_ features: PairingFeatures) throws(Failure) {
        guard let request else { throw Failure(reason: 0x08) }
        response = features
        try choose(request, features)
        try proceedIfAllowed()
    }

    /// The keys that this pairing would replace with weaker ones, or with such that prove nothing.
    private var weakened: Bond? {
        guard let existing else { return nil }
        let isMatched = existing.isMatched(byAuthenticated: isAuthenticated, secureConnections: isSecureConnections)
        return isMatched && (isAuthenticated || isProven) ? nil : existing
    }

    private mutating func proceedIfAllowed() throws(Failure) {
        let weakened = weakened
        guard options.asksToAllow, !isAuthenticated || weakened != nil else {
            guard weakened == nil else { throw Failure(reason: 0x03, why: .wouldReplaceKeys) }
            return proceed()
        }
        step = .consent
        let proposal = PairingProposal(
            isAuthenticated: isAuthenticated, isSecureConnections: isSecureConnections, replaced: weakened)
        outputs.append(.ask(.allow(proposal)))
    }

    /// To authentication.
    private mutating func proceed() {
        if !isInitiator, let response { outputs.append(.send(.response(response))) }
        guard isSecureConnections else { return beginLegacy() }
        step = .publicKey
        if isInitiator {
            let own = makeKeys()
            keys = own
            outputs.append(.send(.publicKey(x: own.x, y: own.y)))
        }
    }

    private mutating func choose(_ initiator: PairingFeatures, _ responder: PairingFeatures) throws(Failure) {
        guard let first = IOCapability(rawValue: initiator.capability),
            let second = IOCapability(rawValue: responder.capability)
        else { throw Self.invalidParameters }
        // Shorter keys are for those who want to break them.
        guard min(initiator.keySize, responder.keySize) == 16, max(initiator.keySize, responder.keySize) == 16 else {
            throw Failure(reason: 0x06)
        }
        isSecureConnections =
            initiator.has(PairingFeatures.secureConnections) && responder.has(PairingFeatures.secureConnections)
        let (isTaken, isGiven) = isInitiator ? (initiator, responder) : (responder, initiator)
        if try usesOutOfBand(isHere: isTaken.hasOOBData != 0, isThere: isGiven.hasOOBData != 0) {
            return method = .outOfBand
        }
        let wantsNumbers =
            initiator.has(PairingFeatures.authenticated) || responder.has(PairingFeatures.authenticated)
        let shown = wantsNumbers ? Self.method(first, second, isSecureConnections, isInitiator) : .justWorks
        guard isSecureConnections || !options.requiresSecureConnections,
            shown != .justWorks || !options.requiresAuthentication
        else { throw Self.authenticationRequirements }
        method = shown
    }

    /// Shows or asks for the six digits.
    private mutating func askForPasskey() {
        if method == .enter { outputs.append(.ask(.enterPasskey)) }
        guard method == .show else { return }
        let number = options.cryptography.random(4).reduce(0) { $0 << 8 | UInt32($1) } % 1_000_000
        passkey = number
        outputs.append(.ask(.show(number)))
    }

    private mutating func passkeyIsKnown() throws(Failure) {
        if isInitiator {
            sendConfirm()
        } else if let waiting = peerConfirm {
            try receiveConfirm(waiting)
        }
    }

    // MARK: Phase 2: authentication

    private mutating func beginLegacy() {
        step = .confirm
        askForPasskey()
        if method == .justWorks || method == .outOfBand { passkey = 0 }
        if isInitiator, passkey != nil { sendConfirm() }
    }

    /// Those that the data were made with, where they serve.
    private func makeKeys() -> PairingKeyPair {
        let made = method == .outOfBand ? outOfBand.own?.keys : nil
        return made ?? options.cryptography.makeKeyPair()
    }

    private mutating func receiveKey(_ x: [UInt8], _ y: [UInt8]) throws(Failure) {
        let own = keys ?? makeKeys()
        keys = own
        // A key that comes back is not the peer's own, and one that everybody has protects nothing (2.3.5.6.1).
        guard x != own.x, x != Self.debugKey, let shared = options.cryptography.sharedSecret(own, x: x, y: y) else {
            throw Self.invalidParameters
        }
        peerX = x
        secret = shared
        if !isInitiator { outputs.append(.send(.publicKey(x: own.x, y: own.y))) }
        switch method {
        case .outOfBand:
            if let data = outOfBand.peers.first, functions.f4(x, x, data.random, 0) != data.confirm {
                throw Self.confirmFailed
            }
            step = .random
            localRandom = options.cryptography.random(16)
            if isInitiator { outputs.append(.send(.random(localRandom))) }
        case .justWorks, .compare:
            step = isInitiator ? .confirm : .random
            if !isInitiator { sendConfirm() }
        case .show, .enter:
            step = .confirm
            askForPasskey()
            if isInitiator, passkey != nil { sendConfirm() }
        }
    }

    /// The octet that stands for one bit of the passkey (2.3.5.6.3), or 0 without one.
    private var roundOctet: UInt8 {
        guard method == .show || method == .enter, let passkey else { return 0 }
        return 0x80 | UInt8(truncatingIfNeeded: passkey >> UInt32(round) & 1)
    }

    private func confirmValue(_ random: [UInt8], isOwn: Bool) -> [UInt8] {
        let own = keys?.x ?? []
        guard isSecureConnections else { return legacyConfirm(random) }
        return isOwn
            ? functions.f4(own, peerX, random, roundOctet) : functions.f4(peerX, own, random, roundOctet)
    }

    private func legacyConfirm(_ random: [UInt8]) -> [UInt8] {
        guard let request, let response else { return [] }
        return functions.c1(
            temporaryKey, random: random, request: PairingPDU.request(request).bytes.reversed(),
            response: PairingPDU.response(response).bytes.reversed(), initiator: isInitiator ? local : peer,
            responder: isInitiator ? peer : local)
    }

    /// The passkey as 128 bits, 0 without one; in legacy pairing the out-of-band data.
    private var temporaryKey: [UInt8] {
        if method == .outOfBand, let key = outOfBand.temporaryKey { return key }
        let number = method == .justWorks || method == .compare ? 0 : passkey ?? 0
        return [UInt8](repeating: 0, count: 12) + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private mutating func sendConfirm() {
        localRandom = options.cryptography.random(16)
        localConfirm = confirmValue(localRandom, isOwn: true)
        outputs.append(.send(.confirm(localConfirm)))
    }

    private mutating func receiveConfirm(_ value: [UInt8]) throws(Failure) {
        // A reflected value proves nothing, and the next message would reveal the passkey (2.3.5.5, ES-24491).
        if isInitiator, !localConfirm.isEmpty, value == localConfirm { throw Self.confirmFailed }
        peerConfirm = value
        let isJustShown = isSecureConnections && (method == .justWorks || method == .compare)
        if isInitiator {
            guard isJustShown || passkey != nil else { throw Failure(reason: 0x08) }
            if isJustShown { localRandom = options.cryptography.random(16) }
            outputs.append(.send(.random(localRandom)))
        } else {
            guard passkey != nil else { return }  // the person has not entered it yet
            sendConfirm()
        }
        step = .random
    }

    private mutating func receiveRandom(_ value: [UInt8]) throws(Failure) {
        let isJustShown = isSecureConnections && (method == .justWorks || method == .compare)
        let isCarried = isSecureConnections && method == .outOfBand
        // With nothing entered only the responder commits itself; with data that were carried both have.
        if !isCarried, isInitiator || !isJustShown {
            guard let expected = peerConfirm, confirmValue(value, isOwn: false) == expected else {
                throw Self.confirmFailed
            }
        }
        peerConfirm = nil
        peerRandom = value
        if !isInitiator { outputs.append(.send(.random(localRandom))) }
        guard isSecureConnections else { return legacyKey() }
        switch method {
        case .justWorks, .outOfBand: try makeLongTermKey()
        case .compare:
            step = .person
            let own = keys?.x ?? []
            let number =
                isInitiator
                ? functions.g2(own, peerX, localRandom, peerRandom)
                : functions.g2(peerX, own, peerRandom, localRandom)
            outputs.append(.ask(.compare(number)))
        case .show, .enter:
            round += 1
            if round == Self.rounds { return try makeLongTermKey() }
            step = .confirm
            if isInitiator { sendConfirm() }
        }
    }

    private mutating func legacyKey() {
        let key =
            isInitiator
            ? functions.s1(temporaryKey, peerRandom, localRandom) : functions.s1(temporaryKey, localRandom, peerRandom)
        step = .encryption
        outputs.append(.encrypt(key: key))
    }

    /// Makes the long term key and checks that the peer has the same (2.3.5.6.5).
    private mutating func makeLongTermKey() throws(Failure) {
        let made =
            isInitiator
            ? functions.f5(secret, localRandom, peerRandom, local, peer)
            : functions.f5(secret, peerRandom, localRandom, peer, local)
        macKey = made.mac
        distribution.longTermKey = made.longTermKey
        step = .check
        if isInitiator { outputs.append(.send(.check(checkValue(isOwn: true)))) }
        if let waiting = peerCheck { try receiveCheck(waiting) }
    }

    private func checkValue(isOwn: Bool) -> [UInt8] {
        let features = isOwn == isInitiator ? request : response
        let capabilities = features?.capabilities ?? []
        let shared = method == .outOfBand ? carriedRandom(isOwn: isOwn) : temporaryKey
        return isOwn
            ? functions.f6(macKey, localRandom, peerRandom, shared, capabilities, local, peer)
            : functions.f6(macKey, peerRandom, localRandom, shared, capabilities, peer, local)
    }

    /// The random number that came from the other side by the other way, with which a side shows that it has it; 0 without
    /// one (2.3.5.6.4).
    private func carriedRandom(isOwn: Bool) -> [UInt8] {
        let theirs = isInitiator ? response : request
        let known = isOwn ? outOfBand.peers.first?.random : theirs?.hasOOBData == 0 ? nil : outOfBand.own?.random
        return known ?? [UInt8](repeating: 0, count: 16)
    }

    private mutating func receiveCheck(_ value: [UInt8]) throws(Failure) {
        guard value == checkValue(isOwn: false) else { throw Self.checkFailed }
        if !isInitiator { outputs.append(.send(.check(checkValue(isOwn: true)))) }
        step = .encryption
        outputs.append(.encrypt(key: distribution.longTermKey))
    }

    // MARK: Phase 3: keys

    private mutating func distributeKeys() {
        guard let request, let response else { return }
        let bonds = request.has(PairingFeatures.bonding) && response.has(PairingFeatures.bonding)
        // Secure Connections make the long term key without sending it (2.4.2.1).
        let mask = (bonds ? 0x03 : 0) & (isSecureConnections ? ~PairingFeatures.encryptionKey : 0xFF)
        let fromResponder = request.responderKeys & response.responderKeys & mask
        let fromInitiator = request.initiatorKeys & response.initiatorKeys & mask
        distribution.expect(isInitiator ? fromResponder : fromInitiator)
        distribution.owesIdentity = (isInitiator ? fromInitiator : fromResponder) & ownKeys != 0
        distribution.bonds = bonds
        distribution.hasKey = isSecureConnections
        if !isInitiator, fromResponder & PairingFeatures.encryptionKey != 0 {
            distribution.longTermKey = options.cryptography.random(16)
            distribution.diversifier = UInt16(
                options.cryptography.random(2).reduce(0) { $0 << 8 | UInt16($1) })
            distribution.random = options.cryptography.random(8).reduce(0) { $0 << 8 | UInt64($1) }
            distribution.hasKey = true
            outputs += [
                .send(.encryptionInformation(distribution.longTermKey)),
                .send(.centralIdentification(diversifier: distribution.diversifier, random: distribution.random)),
            ]
        }
        if !isInitiator { sendIdentity() }
        finishKeys()
    }

    private mutating func sendIdentity() {
        guard distribution.owesIdentity, let identity else { return }
        distribution.owesIdentity = false
        outputs += [
            .send(.identityInformation(identity.resolvingKey)), .send(.identityAddress(identity.address)),
        ]
    }

    /// The responder's keys come first, then the initiator's (3.6.1).
    private mutating func finishKeys() {
        guard distribution.isComplete else { return }
        sendIdentity()
        step = .over
        guard distribution.bonds, distribution.hasKey else { return outputs.append(.finished(nil)) }
        outputs.append(
            .finished(
                Bond(
                    peer: peer, identity: distribution.identity, longTermKey: distribution.longTermKey,
                    diversifier: distribution.diversifier, random: distribution.random,
                    identityResolvingKey: distribution.resolvingKey, isAuthenticated: isAuthenticated,
                    isSecureConnections: isSecureConnections, peerIsCentral: !isInitiator)))
    }
}
