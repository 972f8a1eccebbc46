public import Ferry

/// The peripheral role: publishes services, advertises them, and updates subscribers.
///
/// Centrals are named by their connection (``ConnectedCentral``). Once it has ended nothing that is asked of it has an effect
/// on anybody, the same central's next connection included.
public protocol PeripheralRole: AnyObject, Sendable {
    /// Publishes a service, which is fixed from then on.
    ///
    /// - Throws: `notPoweredOn`, or `invalidArgument` with the definition's defect.
    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService

    /// Withdraws a service. Unknown ones are ignored.
    func unpublish(_ service: AttributeID)

    /// Starts to advertise, in place of the advertisement before.
    ///
    /// - Returns: what went on the air and what did not fit.
    /// - Throws: `notPoweredOn` or `advertisingFailed`; `invalidArgument` for data that do not fit, or an interval out of range;
    ///   `notSupported` for what the adapter's platform cannot do.
    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport

    /// Stops advertising. Connections go on.
    func stopAdvertising()

    /// Queues a new value for subscribers, copying it, or returns false when the transmit queue is full; then
    /// ``PeripheralRoleEvents/peripheralIsReadyToUpdate()`` follows when there is space. Recipients that are not
    /// subscribed are passed over. A value longer than a recipient's ``maximumUpdateValueLength(for:)`` is cut for it.
    ///
    /// An indication takes a central's place until it is confirmed: further values for that central are refused.
    ///
    /// - Throws: `unknownAttribute`, `notSupported` when the characteristic neither notifies nor indicates, `notConnected`
    ///   when the one named recipient is not connected, or `notPoweredOn`.
    func tryUpdateValue(_ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients)
        throws(BluetoothError) -> Bool

    /// The most bytes of a value that a subscribed central receives at once (ATT_MTU - 3, at most 512), or nil when it
    /// is not connected.
    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int?

    /// Who a central is, as surely as is known at present, or nil when it is not connected.
    func identity(of central: ConnectedCentral) -> PeerIdentity?

    /// Answers a read request or a group of write requests. Each is answered once; further answers are ignored.
    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>)

    /// Asks a central to pause sending values, or to go on, by the link layer's flow control. Adapters that cannot do
    /// that ignore it.
    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral)

    /// Ends the connection to a central, after the values already queued for it are sent, as far as the adapter can tell
    /// and within the supervision timeout.
    func disconnect(_ central: ConnectedCentral)

    /// Offers an L2CAP channel; centrals that open it come as ``PeripheralRoleEvents/peripheralDidOpen(_:)``.
    ///
    /// - Throws: `notPoweredOn`, `outOfResources` when all 128 dynamic PSMs are in use, or `notSupported`.
    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM

    /// Withdraws an L2CAP channel; open ones go on. It is not answered: one that is asked for at the same moment may still open.
    func unpublishL2CAPChannel(_ psm: PSM)

    /// Withdraws everything, refuses pending requests with `unlikelyError`, and ends the role; no event follows.
    func close()
}

/// What happens in the peripheral role: what begins with `central` a central has done, what begins with `peripheral` concerns
/// this side. Each has an empty default.
public protocol PeripheralRoleEvents: AnyObject, Sendable {
    /// The adapter's state: first of all events, and whenever it changes.
    func peripheralAdapterDidChange(_ state: AdapterState)
    /// A central subscribed to a characteristic.
    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription)
    /// A central ended its subscription, or disconnected with one in force.
    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID)
    /// A central asks for a value; ``PeripheralRole/respond(to:with:)`` with the value from `offset` on.
    func peripheralDidReceive(_ request: ReadRequest)
    /// A central asks for values to be written, all or none; answer the request once, with an empty value.
    func peripheralDidReceive(_ request: WriteRequest)
    /// A central wrote without asking for a response. The bytes are valid during the call only.
    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID)
    /// There may be space in the transmit queue again; it names neither central nor characteristic.
    func peripheralIsReadyToUpdate()
    /// A central with a subscription has disconnected. The ends of its subscriptions follow.
    /// The first reason counts: `disconnectedLocally` where this side has ended it, also where the central ends it
    /// meanwhile or is out of reach.
    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError)
    /// A central opened a published L2CAP channel.
    func peripheralDidOpen(_ channel: any L2CAPChannel)
    /// Advertising stopped without being asked to.
    func peripheralDidStopAdvertising(_ reason: BluetoothError)
}

extension PeripheralRoleEvents {
    /// Does nothing.
    public func peripheralAdapterDidChange(_ state: AdapterState) {}
    /// Does nothing.
    public func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {}
    /// Does nothing.
    public func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {}
    /// Leaves the request unanswered.
    public func peripheralDidReceive(_ request: ReadRequest) {}
    /// Leaves the request unanswered.
    public func peripheralDidReceive(_ request: WriteRequest) {}
    /// Does nothing.
    public func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {}
    /// Does nothing.
    public func peripheralIsReadyToUpdate() {}
    /// Does nothing.
    public func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {}
    /// Closes the channel.
    public func peripheralDidOpen(_ channel: any L2CAPChannel) { channel.close() }
    /// Does nothing.
    public func peripheralDidStopAdvertising(_ reason: BluetoothError) {}
}

/// One connection of one central. A central that comes back has another one.
public struct ConnectedCentral: Sendable, Hashable {
    /// The central, which keeps its name.
    public let peer: PeerID
    /// The adapter's number of the connection, which no other connection of the adapter ever has.
    public let connection: UInt64

    /// Made by adapters.
    public init(peer: PeerID, connection: UInt64) {
        self.peer = peer
        self.connection = connection
    }
}

extension ConnectedCentral: CustomStringConvertible {
    /// The central's name and the connection's number.
    public var description: String { "\(peer)#\(connection)" }
}

/// Whom a new value is for.
public enum UpdateRecipients: Sendable, Hashable {
    /// Every subscribed central.
    case all
    /// One central.
    case one(ConnectedCentral)
    /// Some centrals.
    case some([ConnectedCentral])
}

/// Names a request that waits for an answer.
public struct RequestID: Sendable, Hashable {
    /// The adapter's number.
    public let rawValue: UInt64
    /// Made by adapters.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A central asks for a characteristic's value.
public struct ReadRequest: Sendable, Hashable {
    /// The name to answer with.
    public let id: RequestID
    /// Who asks.
    public let central: ConnectedCentral
    /// What for.
    public let characteristic: AttributeID
    /// From which byte on.
    public let offset: Int

    /// Made by adapters.
    public init(id: RequestID, central: ConnectedCentral, characteristic: AttributeID, offset: Int) {
        self.id = id
        self.central = central
        self.characteristic = characteristic
        self.offset = offset
    }
}

/// A central asks for values to be written: one for a plain write, several for prepared ones.
public struct WriteRequest: Sendable, Hashable {
    /// One value and where it goes.
    public struct Part: Sendable, Hashable {
        /// The characteristic to write.
        public let characteristic: AttributeID
        /// The place of the first byte.
        public let offset: Int
        /// The bytes.
        public let value: [UInt8]

        /// Made by adapters.
        public init(characteristic: AttributeID, offset: Int, value: [UInt8]) {
            self.characteristic = characteristic
            self.offset = offset
            self.value = value
        }
    }

    /// The name to answer with.
    public let id: RequestID
    /// Who asks.
    public let central: ConnectedCentral
    /// The values to write, in order.
    public let parts: [Part]

    /// Made by adapters.
    public init(id: RequestID, central: ConnectedCentral, parts: [Part]) {
        self.id = id
        self.central = central
        self.parts = parts
    }
}
