public import Ferry

/// The central role: finds peripherals and connects to them.
public protocol CentralRole: AnyObject, Sendable {
    /// Starts to look for peripherals, in place of an earlier scan.
    ///
    /// - Throws: `notPoweredOn`, or `invalidArgument`.
    func startScan(_ request: ScanRequest) throws(BluetoothError)

    /// Stops looking.
    func stopScan()

    /// Connects to a peripheral that was found or is otherwise known. The wait does not expire: cancel the task to end
    /// it. The connection belongs to the caller, who ends it with ``PeripheralConnection/disconnect()``.
    ///
    /// - Parameters:
    ///   - peripheral: whom to connect to.
    ///   - events: who is told what happens on the connection, from its beginning: events may come before this call has
    ///     returned, and none comes if it throws. The adapter keeps `events` alive until the connection has ended.
    /// - Throws: `unknownPeer`, `connectionFailed`, `cancelled`, `notPoweredOn`, `roleClosed`.
    func connect(to peripheral: PeerID, events: any PeripheralConnectionEvents) async throws(BluetoothError)
        -> any PeripheralConnection

    /// Which of these peripherals can be connected to without a scan.
    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID]

    /// The peripheral with this identity, whether or not it has been met: what ``connect(to:events:)`` then connects to says
    /// who it is in ``PeripheralConnection/identity``. Nil when the identity is not one of this adapter's, or when it takes
    /// a scan to find the peripheral, whose ``Discovery/identity`` has the same name.
    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID?

    /// The peripherals connected to this machine, by any owner, that offer one of `services`.
    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID]

    /// Ends the scan and every connection of this role object, and its waits for others; no event follows.
    func close()
}

/// What happens in the central role. Each has an empty default.
public protocol CentralRoleEvents: AnyObject, Sendable {
    /// The adapter's state: first of all events, and whenever it changes.
    func centralAdapterDidChange(_ state: AdapterState)
    /// A scan found a peripheral, heard that it advertises something else, or heard it again when duplicates are asked for.
    func centralDidDiscover(_ discovery: Discovery)
}

extension CentralRoleEvents {
    /// Does nothing.
    public func centralAdapterDidChange(_ state: AdapterState) {}
    /// Does nothing.
    public func centralDidDiscover(_ discovery: Discovery) {}
}

/// What to look for.
public struct ScanRequest: Sendable, Hashable {
    /// Services of which an advertisement must name at least one; empty for any.
    public var services: [BluetoothUUID]
    /// Whether a peripheral is reported each time it is heard, and not only when what it advertises is new.
    public var allowsDuplicates: Bool
    /// The signal strengths to report, in dBm; nil for any.
    public var rssi: ClosedRange<Int>?
    /// The local name to look for; nil for any.
    public var name: String?

    /// Describes a scan.
    public init(
        services: [BluetoothUUID] = [], allowsDuplicates: Bool = false, rssi: ClosedRange<Int>? = nil,
        name: String? = nil
    ) {
        self.services = services
        self.allowsDuplicates = allowsDuplicates
        self.rssi = rssi
        self.name = name
    }
}

/// A peripheral that was heard.
public struct Discovery: Sendable, Hashable {
    /// The peripheral.
    public let peripheral: PeerID
    /// Who it says it is. Nothing is proven before it is connected: its certainty is never that of a bond.
    public let identity: PeerIdentity
    /// What it advertises.
    public let advertisement: AdvertisementData
    /// How strongly it was heard, in dBm.
    public let rssi: Int

    /// Made by adapters.
    public init(peripheral: PeerID, identity: PeerIdentity, advertisement: AdvertisementData, rssi: Int) {
        self.peripheral = peripheral
        self.identity = identity
        self.advertisement = advertisement
        self.rssi = rssi
    }
}

/// A connection to a peripheral, owned by its creator.
///
/// Requests are carried out one at a time in the order of the calls, as ATT demands. All of them throw `notConnected`
/// (or the reason of the disconnection) once the connection has ended or ``disconnect()`` was called; nothing that is asked
/// of it then has an effect on the peripheral's next connection.
public protocol PeripheralConnection: AnyObject, Sendable {
    /// The peripheral.
    var peripheral: PeerID { get }

    /// Who the peripheral is, as surely as is known at present, or was when the connection ended.
    var identity: PeerIdentity { get }

    /// ATT_MTU at present: 23 until the exchange is done, at most 517.
    var attMTU: Int { get }

    /// Finds primary services; nil for all.
    func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService]

    /// Finds the services that a service includes; nil for all.
    func discoverIncludedServices(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteService]

    /// Finds a service's characteristics; nil for all.
    func discoverCharacteristics(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteCharacteristic]

    /// Finds a characteristic's descriptors.
    func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor]

    /// Reads a characteristic's or descriptor's whole value, in several steps when it is long.
    ///
    /// - Throws: `att` with the peer's error, `unknownAttribute`, `timedOut`.
    func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8]

    /// Writes a value of at most 512 bytes and waits for the response; long ones as prepared writes.
    ///
    /// - Throws: `att` with the peer's error, `valueTooLong`, `unknownAttribute`, `timedOut`.
    func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError)

    /// Queues a write, copying the value, or returns false when the queue is full; then
    /// ``PeripheralConnectionEvents/peripheralIsReadyToWrite()`` follows when there is space. Of writes with response
    /// one waits at a time; its answer comes as ``PeripheralConnectionEvents/peripheralDidWrite(_:result:)``.
    ///
    /// - Throws: `valueTooLong` above ``maximumWriteLength(_:)``, `unknownAttribute`, `notSupported`.
    func tryWriteValue(_ value: RawSpan, to characteristic: AttributeID, type: WriteType) throws(BluetoothError) -> Bool

    /// The most bytes that ``tryWriteValue(_:to:type:)`` takes: ATT_MTU - 3 at most 512, for either type.
    func maximumWriteLength(_ type: WriteType) -> Int

    /// Subscribes to a characteristic, or ends the subscription with nil.
    ///
    /// - Throws: `notSupported` when the characteristic does not offer it; otherwise as ``writeValue(_:to:)``.
    func setSubscription(_ subscription: Subscription?, to characteristic: AttributeID) async throws(BluetoothError)

    /// The strength of the peer's signal now, in dBm.
    func readRSSI() async throws(BluetoothError) -> Int

    /// Opens an L2CAP channel.
    ///
    /// - Throws: `channelRefused`, `timedOut`.
    func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel

    /// Asks the peer to pause sending values, or to go on, by the link layer's flow control. Adapters that cannot do
    /// that ignore it.
    func setReceiving(_ isReceiving: Bool)

    /// Ends the connection, after the writes already queued are sent, as far as the adapter can tell and within the
    /// supervision timeout; ``PeripheralConnectionEvents/peripheralDidDisconnect(_:)`` follows. A second call does nothing.
    func disconnect()
}

/// Whether a write is answered.
public enum WriteType: Sendable, Hashable {
    /// The peer answers.
    case withResponse
    /// The peer does not answer.
    case withoutResponse
}

/// What the peripheral at the other end of a connection does, or has answered. Each but the disconnection has an empty default.
public protocol PeripheralConnectionEvents: AnyObject, Sendable {
    /// A subscribed characteristic has a new value. The bytes are valid during the call only.
    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan)
    /// There may be space for a write again.
    func peripheralIsReadyToWrite()
    /// The answer to a write with response that ``PeripheralConnection/tryWriteValue(_:to:type:)`` queued.
    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>)
    /// ATT_MTU has changed.
    func peripheralDidChangeMTU(_ attMTU: Int)
    /// Services were changed or withdrawn; their attributes are not valid any more. There may be new ones to discover; an
    /// empty list says that there are, and that the others are as they were.
    func peripheralDidModifyServices(_ services: [AttributeID])
    /// The connection has ended; nothing follows.
    /// The first reason counts: an owner that has ended the connection is told `disconnectedLocally`, also where the peer ends it
    /// meanwhile or is out of reach.
    func peripheralDidDisconnect(_ reason: BluetoothError)
}

extension PeripheralConnectionEvents {
    /// Does nothing.
    public func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {}
    /// Does nothing.
    public func peripheralIsReadyToWrite() {}
    /// Does nothing.
    public func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {}
    /// Does nothing.
    public func peripheralDidChangeMTU(_ attMTU: Int) {}
    /// Does nothing.
    public func peripheralDidModifyServices(_ services: [AttributeID]) {}
}
