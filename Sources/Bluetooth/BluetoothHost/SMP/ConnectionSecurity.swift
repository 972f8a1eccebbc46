import DequeModule

/// The state of a connection's security.
struct ConnectionSecurity: Sendable {
    /// How long the peer may take for its next command, and the controller to encrypt, in nanoseconds
    /// (Core Specification 5.4, Vol 3, Part H, 3.4).
    static let timeout: Int64 = 30_000_000_000
    /// Pairings that are refused at once on one connection before the peer is disconnected.
    static let refusalLimit = 16

    /// How strong the link is now.
    var link = LinkSecurity()
    var isEncrypted: Bool {
        get { link.isEncrypted }
        set { link.isEncrypted = newValue }
    }

    var pairing: Pairing?
    /// The open question to a person.
    var question: PairingQuestionID?
    var deadline: Int64?
    var refusals = 0
    /// No pairing is possible on this connection any more: the peer did not answer in time (3.4).
    var isDead = false
    /// The key of the pairing under way, for the controller's question.
    var pairingKey: [UInt8]?
    var encryption = Cause.none
    /// Whether encryption was asked of the controller, as central.
    var isEncrypting: Bool { if case .asked = encryption { true } else { false } }
    var hold = Hold.none
    var isHeldBack: Bool { hold != .none }
    /// Whether an ATT request waits for the link to be secure.
    var isAwaited = false
    /// Channels to open once the link is secure.
    var channels: [(psm: UInt16, operation: OperationID)] = []

    /// What may lead to an encrypted link, with the bond whose key is used; nil for the key of the pairing under way. A controller
    /// that tells of an encrypted link without any cause is not believed.
    enum Cause: Sendable {
        case none
        /// This side has asked for it, as central.
        case asked(Bond?)
        /// This side has given the key that the controller asked for, as peripheral.
        case keyGiven(Bond?)

        var bond: Bond? {
            switch self {
            case .none: nil
            case .asked(let bond), .keyGiven(let bond): bond
            }
        }

        /// Returns the cause, which has led to an outcome.
        mutating func take() -> Cause {
            defer { self = .none }
            return self
        }
    }

    /// Whether ATT and channels wait for a bonded server to prove who it is, or to pair anew where its keys are weaker than is
    /// demanded now: until the link is encrypted anybody may answer in its name (BLESA).
    enum Hold: Sendable {
        case none
        case held
        /// The application has been told that values of the server are dropped.
        case dropping
    }

    /// Whether something is under way that ends with an encrypted link or a failure.
    var isBusy: Bool { pairing != nil || isEncrypting }
}
