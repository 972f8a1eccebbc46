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
    var request = OutstandingRequest.none
    var watch = ServerWatch()

    // MARK: GATT server
    var configurations: [UInt16: UInt16] = [:]
    /// The bearer that is being served; between calls the fixed channel.
    var bearer = ServerBearer()
    /// The others.
    var shelf: [ServerBearer] = []
    var indication = OpenIndication.none
    var clientFeatures: ClientFeatures = []
    var awareness = ChangeAwareness.aware
    /// Services that the client is still to be told of.
    var changedServices: ClosedRange<UInt16>?

    // MARK: Ending
    var closing: Closing? { didSet { isLeaving = closing?.isCommandSent == true } }
    /// Whether the controller has been told to end it. Kept apart, for to look into `closing` copies the whole connection.
    private(set) var isLeaving = false

    struct Closing {
        let reason: HCIErrorCode
        var isCommandSent: Bool
        var deadline: Int64
    }

    /// The one request that the client may have open (Core Specification 5.4, Vol 3, Part F, 3.3.2), and when the connection is
    /// given up over it.
    enum OutstandingRequest: Equatable {
        case none
        case exchangeMTU(deadline: Int64)
        /// Of the first procedure.
        case procedure(deadline: Int64)

        var deadline: Int64? {
            switch self {
            case .none: nil
            case .exchangeMTU(let deadline), .procedure(let deadline): deadline
            }
        }

        /// Removes and returns the outstanding request.
        mutating func take() -> OutstandingRequest {
            defer { self = .none }
            return self
        }
    }

    /// The one indication that the server may have open (3.3.2), and when the connection is given up over it.
    enum OpenIndication: Equatable {
        case none
        case value(deadline: Int64)
        case serviceChanged(deadline: Int64)

        var deadline: Int64? {
            switch self {
            case .none: nil
            case .value(let deadline), .serviceChanged(let deadline): deadline
            }
        }

        var isServiceChanged: Bool { if case .serviceChanged = self { true } else { false } }

        /// Removes and returns the open indication, which is confirmed.
        mutating func take() -> OpenIndication {
            defer { self = .none }
            return self
        }
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

    /// The earliest deadline of this connection.
    ///
    /// Mutating, as ``hasRoom(for:limit:)`` is.
    var deadline: Int64? {
        mutating get {
            // While it is being ended nothing else counts.
            if let closing { return closing.deadline }
            var earliest = Int64.max
            if let deadline = security.deadline { earliest = min(earliest, deadline) }
            if let parameterDeadline { earliest = min(earliest, parameterDeadline) }
            if let deadline = request.deadline { earliest = min(earliest, deadline) }
            if let deadline = indication.deadline { earliest = min(earliest, deadline) }
            for request in signalRequests { earliest = min(earliest, request.deadline) }
            for place in channels.indices { earliest = min(earliest, channels[place].drain?.deadline ?? .max) }
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

    /// A number for this side's end of a new channel. They go round, so that a late frame of an ended channel does not meet a
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
    mutating func pump(channel place: Int, at now: Int64) -> Bool { channels[place].pump(into: &transmit, at: now) }

    /// Queues a notification, in one PDU with the one before it where the client takes that.
    mutating func appendNotification(handle: UInt16, _ value: RawSpan) {
        if clientFeatures.contains(.multipleNotifications) {
            transmit.appendNotification(handle: handle, value, atMost: attMTU)
        } else {
            transmit.appendValue(ATTOpcode.notification, handle: handle, value)
        }
    }

    /// Whether a value of `count` bytes may be queued, within `limit` bytes of queue.
    ///
    /// Mutating, as a method that is not would be called with a copy of the connection, for each value.
    mutating func hasRoom(for count: Int, limit: Int) -> Bool {
        closing == nil && (transmit.isEmpty || transmit.count + count + 7 <= limit)
    }
}
