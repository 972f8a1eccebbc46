import DequeModule

/// All that the host keeps of one connection.
struct Connection: Sendable {
    let id: ConnectionID
    /// The controller's name for it.
    let handle: UInt16
    let isCentral: Bool
    let peer: Address
    /// What this side was called when the connection was made.
    let local: Address
    var parameters: ConnectionParameters
    /// When to ask the central for other parameters, as peripheral.
    var parameterDeadline: Int64?

    // MARK: L2CAP
    var transmit = TransmitQueue()
    var reassembler = Reassembler()
    /// Packets that the controller holds.
    var inFlight = 0
    /// Whether a value was refused since the last ``HostEvent/readyToSend(_:)``.
    var wantsReady = false
    var nextSignalIdentifier: UInt8 = 1
    var signalRequests: [SignalRequest] = []
    var channels: [CreditChannel] = []
    private var nextChannel = ChannelID.dynamic.lowerBound
    /// Whether the peer is known to understand requests for several channels.
    var takesEnhancedRequests = false

    // MARK: ATT
    var attMTU = ATT.defaultMTU

    // MARK: SMP
    var security = ConnectionSecurity()

    // MARK: GATT client
    var procedures: Deque<ClientProcedure> = []
    /// The enhanced bearer by which the first of them asks; nil for the fixed channel.
    var requestBearer: UInt32?
    var isExchangingMTU = false
    /// When the outstanding request is given up, if there is one.
    var requestDeadline: Int64?
    var watch = ServerWatch()

    // MARK: GATT server
    var configurations: [UInt16: UInt16] = [:]
    /// The bearer that is being served; between calls the fixed channel.
    var bearer = ServerBearer()
    /// The others.
    var shelf: [ServerBearer] = []
    var indicationDeadline: Int64?
    var clientFeatures: ClientFeatures = []
    var awareness = ChangeAwareness.aware
    /// Services that the client is still to be told of.
    var changedServices: ClosedRange<UInt16>?
    /// Whether the indication that waits for its confirmation is Service Changed.
    var indicatesServiceChanged = false

    // MARK: Ending
    var closing: Closing? { didSet { isLeaving = closing?.isCommandSent == true } }
    /// Whether the controller has been told to end it. Kept apart, for to look into `closing` copies the whole connection.
    private(set) var isLeaving = false

    struct Closing {
        let reason: HCIErrorCode
        var isCommandSent: Bool
        var deadline: Int64
    }

    /// A signalling request that waits for its response.
    struct SignalRequest {
        let identifier: UInt8
        let kind: Kind
        let deadline: Int64

        enum Kind {
            case parameterUpdate
            case openChannel(local: UInt16, OperationID)
            case openChannels([OpeningChannel], isPending: Bool)
            case closeChannel(id: UInt32)
            case reconfigure([UInt16], mtu: Int, OperationID)
        }
    }

    /// A channel that was asked for, and by what operation.
    struct OpeningChannel {
        let local: UInt16
        let operation: OperationID
    }

    init(_ event: LEConnectionComplete, id: ConnectionID, local: Address) {
        self.id = id
        handle = event.handle
        isCentral = event.isCentral
        peer = event.peer
        self.local = event.local ?? local
        parameters = event.parameters
    }

    /// The earliest thing this connection waits for.
    ///
    /// Mutating, as ``hasRoom(for:limit:)`` is.
    var deadline: Int64? {
        mutating get {
            // While it is being ended nothing else counts.
            if let closing { return closing.deadline }
            var earliest = Int64.max
            if let deadline = security.deadline { earliest = min(earliest, deadline) }
            if let parameterDeadline { earliest = min(earliest, parameterDeadline) }
            if let requestDeadline { earliest = min(earliest, requestDeadline) }
            if let indicationDeadline { earliest = min(earliest, indicationDeadline) }
            for request in signalRequests { earliest = min(earliest, request.deadline) }
            for place in channels.indices { earliest = min(earliest, channels[place].drainDeadline ?? .max) }
            return earliest == .max ? nil : earliest
        }
    }

    /// The next identifier for a signalling request: 1 to 255, none of a request that waits (Core Specification 5.4, Vol 3,
    /// Part A, 4). Far fewer wait than there are.
    mutating func takeSignalIdentifier() -> UInt8 {
        var taken = nextSignalIdentifier
        for _ in 0..<255 where signalRequests.contains(where: { $0.identifier == taken }) {
            taken = taken == 255 ? 1 : taken + 1
        }
        nextSignalIdentifier = taken == 255 ? 1 : taken + 1
        return taken
    }

    /// A number for this side's end of a new channel. They go round, so that what is late of an ended channel does not meet a
    /// new one.
    mutating func takeChannel() -> UInt16? {
        for _ in ChannelID.dynamic {
            let local = nextChannel
            nextChannel = local == ChannelID.dynamic.upperBound ? ChannelID.dynamic.lowerBound : local + 1
            if !channels.contains(where: { $0.local == local }) { return local }
        }
        return nil
    }

    /// Moves a channel's next frame to the queue if it may be sent. Returns whether it did.
    mutating func pump(channel place: Int) -> Bool { channels[place].pump(into: &transmit) }

    /// Queues a notification, in one PDU with the one before it where the client takes that.
    mutating func appendNotification(handle: UInt16, _ value: RawSpan) {
        if clientFeatures.contains(.multipleNotifications) {
            transmit.appendNotification(handle: handle, value, atMost: attMTU)
        } else {
            transmit.appendValue(ATTOpcode.notification, handle: handle, value)
        }
    }

    /// Whether a value of so many bytes may be queued, within `limit` bytes of queue.
    ///
    /// Mutating, as a method that is not would be called with a copy of the connection, for each value.
    mutating func hasRoom(for count: Int, limit: Int) -> Bool {
        closing == nil && (transmit.isEmpty || transmit.count + count + 7 <= limit)
    }
}
