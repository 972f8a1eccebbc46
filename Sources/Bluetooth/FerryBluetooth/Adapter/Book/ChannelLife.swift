public import Ferry

/// The life of one side of an L2CAP channel, towards its owner.
public enum ChannelLife: Sendable {
    /// It can be used; without a receiver until it is activated.
    case open((any LinkReceiver)?)
    /// This side has closed it; the queue still goes out.
    case closing((any LinkReceiver)?)
    /// It has ended before there was a receiver to tell.
    case ended(FerryError)
    /// The receiver has been told of the end.
    case over(FerryError)

    /// Who is told of events.
    public var receiver: (any LinkReceiver)? {
        switch self {
        case .open(let receiver), .closing(let receiver): receiver
        case .ended, .over: nil
        }
    }

    /// Why it has ended, once it has.
    public var end: FerryError? {
        switch self {
        case .open, .closing: nil
        case .ended(let reason), .over(let reason): reason
        }
    }

    /// Whether this side has closed it, and it has not ended yet.
    public var isClosing: Bool { if case .closing = self { true } else { false } }

    /// Refuses a chunk that cannot be sent.
    ///
    /// - Throws: `emptyChunk`, `chunkTooLarge`, `closed`, or the reason of the end.
    public func checkSending(_ count: Int, maximum: Int) throws(FerryError) {
        if let end { throw end }
        if isClosing { throw .channelClosedHere }
        guard count > 0 else { throw FerryError(.emptyChunk, "An L2CAP channel carries no empty SDUs.") }
        guard count <= maximum else {
            throw FerryError(.chunkTooLarge, "\(count) bytes are above the \(maximum) that this L2CAP channel takes.")
        }
    }

    /// Takes the receiver; a second one is ignored. Returns the reason to tell it at once, if the channel has ended.
    public mutating func activate(_ receiver: any LinkReceiver) -> FerryError? {
        switch self {
        case .open(nil): self = .open(receiver)
        case .closing(nil): self = .closing(receiver)
        case .ended(let reason):
            self = .over(reason)
            return reason
        case .open, .closing, .over: break
        }
        return nil
    }

    /// This side closes it. Returns whether that is to be done: not when it was before, or the channel has ended.
    public mutating func close() -> Bool {
        switch self {
        case .open(let receiver):
            self = .closing(receiver)
            return true
        case .ended:
            self = .ended(.channelClosedHere)
            return false
        case .closing, .over: return false
        }
    }

    /// It has ended; that this side has closed it goes before any other reason. Returns who is to be told, and what, once.
    public mutating func end(_ reason: FerryError) -> (receiver: any LinkReceiver, reason: FerryError)? {
        guard end == nil else { return nil }
        let reason = isClosing && reason.code != .closed ? .channelClosedHere : reason
        guard let receiver else {
            self = .ended(reason)
            return nil
        }
        self = .over(reason)
        return (receiver, reason)
    }
}

extension FerryError {
    /// This side closed an L2CAP channel.
    public static let channelClosedHere = FerryError(.closed, "The L2CAP channel was closed by this side.")
    /// The peer closed an L2CAP channel.
    public static let channelClosedByPeer = FerryError(
        .disconnected, "The L2CAP channel was closed by the peer, or the connection has ended.")
}
