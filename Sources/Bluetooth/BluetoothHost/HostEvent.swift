/// Names a connection for as long as the host lives; never used twice, unlike the controller's handles.
public struct ConnectionID: Sendable, Hashable {
    /// Counts from 1.
    public let rawValue: UInt32
    /// Names the connection with this number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// Names a credit-based channel; never used twice.
public struct CreditChannelID: Sendable, Hashable {
    /// Counts from 1.
    public let rawValue: UInt32
}

/// Names a request that waits for the application's answer.
public struct ServerRequestID: Sendable, Hashable {
    /// Counts from 1.
    public let rawValue: UInt64
    /// Names the request with that number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Names a question to a person; never used twice.
public struct PairingQuestionID: Sendable, Hashable {
    /// Counts from 1.
    public let rawValue: UInt64
}

/// Names an operation that the application began.
public struct OperationID: Sendable, Hashable {
    /// Counts from 1.
    public let rawValue: UInt64
}

/// Bytes that came with an event; ``EventBatch/withBytes(_:_:)`` lends them.
public struct ByteRange: Sendable, Hashable {
    let offset: Int
    /// How many.
    public let count: Int
}

/// Whether the host can be used.
public enum HostState: Sendable, Equatable {
    /// Not started.
    case off
    /// The controller is being set up.
    case starting
    /// In use.
    case ready
    /// Out of use until it is started again; the text says what happened and what to do.
    case failed(String)
}

/// One value that a client wants written, of those in a ``HostEvent/writeRequest(_:_:_:)``.
public struct WritePart: Sendable, Equatable {
    /// The characteristic's value.
    public let handle: UInt16
    /// The place of the first byte.
    public let offset: Int
    /// The bytes.
    public let value: [UInt8]
}

/// An event of the host.
public enum HostEvent: Sendable {
    /// The host can be used, or cannot any more.
    case stateChanged(HostState)
    /// Something that a person who looks for a fault wants to read.
    case diagnostic(String)

    /// The requested advertisement is on the air.
    case advertisingStarted
    /// The controller refused to advertise; nothing is on the air.
    case advertisingFailed(HCIErrorCode)
    /// The controller refused to scan.
    case scanFailed(HCIErrorCode)
    /// A scan heard something.
    case advertisementReceived(AdvertisingReport)

    /// A connection was made, by this side when `isCentral`.
    case connected(ConnectionID, peer: Address, isCentral: Bool)
    /// A connection that was asked for could not be made.
    case connectionFailed(peer: Address, HCIErrorCode)
    /// A connection has ended; nothing follows about it.
    case disconnected(ConnectionID, HCIErrorCode)
    /// The strength of a peer's signal, in dBm, or nil when the controller does not say.
    case rssi(ConnectionID, Int8?)
    /// The connection's parameters have changed.
    case parametersChanged(ConnectionID, ConnectionParameters)
    /// ATT_MTU has changed.
    case mtuChanged(ConnectionID, Int)

    /// Two devices that pair need a person: ``LEHost/answerPairing(_:_:at:)``.
    case pairingQuestion(PairingQuestionID, ConnectionID, PairingQuestion)
    /// The connection is encrypted, with a key that a person had a part in when `isAuthenticated`.
    case secured(ConnectionID, isAuthenticated: Bool)
    /// The connection could not be made secure.
    case pairingFailed(ConnectionID, PairingFailure)
    /// There are keys to keep, in place of earlier ones of the same peer; or a bond's peer has proven its identity
    /// (``Bond/isIdentityBelieved``), which is to be kept with its keys.
    case bonded(ConnectionID, Bond)

    /// A server sent a characteristic's value, as a notification or an indication (which has been confirmed).
    case valueReceived(ConnectionID, handle: UInt16, ByteRange)
    /// A server's services within these handles have changed.
    case servicesChanged(ConnectionID, ClosedRange<UInt16>)
    /// What an operation came to.
    case completed(OperationID, ConnectionID, Result<ClientResult, ClientFailure>)

    /// A client wrote without asking for a response.
    case writeCommand(ConnectionID, handle: UInt16, ByteRange)
    /// A client asks for a value from `offset` on: ``LEHost/respond(to:with:at:)``.
    case readRequest(ServerRequestID, ConnectionID, handle: UInt16, offset: Int)
    /// A client asks for values to be written, all or none: ``LEHost/respond(to:with:at:)``.
    case writeRequest(ServerRequestID, ConnectionID, [WritePart])
    /// A client changed its Client Characteristic Configuration: bit 0 notifications, bit 1 indications.
    case configurationChanged(ConnectionID, handle: UInt16, bits: UInt16)
    /// There is room again for values on a connection that had none.
    case readyToSend(ConnectionID)

    /// A credit-based channel is open. Incoming ones have no operation.
    case channelOpened(CreditChannelID, ConnectionID, psm: UInt16, OperationID?)
    /// The peer did not open a channel.
    case channelRefused(OperationID, ConnectionID, ChannelResult)
    /// What came of ``LEHost/reconfigureChannels(_:mtu:at:)``.
    case channelsReconfigured(OperationID, ConnectionID, ReconfigurationResult)
    /// An SDU arrived.
    case channelReceived(CreditChannelID, ByteRange)
    /// There is room again in a channel that had none.
    case channelReady(CreditChannelID)
    /// A channel has ended; nothing follows about it.
    case channelClosed(CreditChannelID)
}

/// Events in the order they happened, with the bytes that belong to them. Kept and handed back to
/// ``LEHost/swapEvents(_:)``, so that in the steady state nothing is allocated for them.
public struct EventBatch: Sendable {
    /// The events.
    public internal(set) var events: [HostEvent] = []
    var bytes: [UInt8] = []

    /// An empty batch.
    public init() {}

    /// Whether there are none.
    public var isEmpty: Bool { events.isEmpty }

    /// Lends the bytes that came with an event of this batch.
    public func withBytes<Result>(_ range: ByteRange, _ body: (RawSpan) -> Result) -> Result {
        body(bytes.span.bytes.extracting(range.offset..<range.offset + range.count))
    }

    mutating func store(_ span: RawSpan) -> ByteRange {
        let offset = bytes.count
        bytes.append(copying: span)
        return ByteRange(offset: offset, count: span.byteCount)
    }

    mutating func removeAll() {
        events.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
    }
}
