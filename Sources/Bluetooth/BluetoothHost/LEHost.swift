import DequeModule

/// What a peripheral would like of its connections (Core Specification 5.4, Vol 3, Part C, 12.3): a device on a battery long
/// intervals, or latency.
public struct PreferredParameters: Sendable, Hashable {
    /// Connection intervals, in units of 1.25 ms, within 6 to 3200.
    public var interval: ClosedRange<UInt16>
    /// Connection events that the peripheral may leave out, at most 499.
    public var latency: UInt16
    /// Silence after which a connection is lost, in units of 10 ms, within 10 to 3200; it must hold two whole rounds of events
    /// that are left out.
    public var supervisionTimeout: UInt16

    /// Makes a wish. One whose values do not fit each other is not told to anybody.
    public init(interval: ClosedRange<UInt16>, latency: UInt16 = 0, supervisionTimeout: UInt16 = 500) {
        self.interval = interval
        self.latency = latency
        self.supervisionTimeout = supervisionTimeout
    }

    var isValid: Bool { LEHost.areValid(interval, latency, supervisionTimeout) }

    /// The value of the characteristic Peripheral Preferred Connection Parameters.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for field in [interval.lowerBound, interval.upperBound, latency, supervisionTimeout] {
            bytes.append(u16: field)
        }
        return bytes
    }

    func areMet(by parameters: ConnectionParameters) -> Bool {
        interval.contains(parameters.interval) && parameters.latency == latency
    }
}

/// How a host is to behave.
public struct HostConfiguration: Sendable {
    /// The host's own address, by which bonded peers know it with ``privacy`` too; see ``Address/staticRandom(_:)``.
    public var address: Address
    /// The value of the Device Name characteristic, at most 248 bytes of UTF-8.
    public var deviceName = "Ferry"
    /// The ATT_MTU to ask for and to agree to: 23 to 517.
    public var maximumMTU = ATT.maximumMTU
    /// The range of connection intervals to connect with, in units of 1.25 ms. The default, 15 to 30 ms, suits phones. Shorter
    /// ones are given to no peripheral that asks for them.
    public var connectionInterval: ClosedRange<UInt16> = 12...24
    /// The longest connection interval that a peripheral is given when it asks for one, in units of 1.25 ms. Default 500 ms; the
    /// upper bound of ``connectionInterval`` where that is longer. A peripheral that asks for a range gets the part of it that is
    /// allowed. Its request is refused where there is none.
    public var slowestInterval: UInt16 = 400
    /// Connection events that a peripheral may leave out.
    public var latency: UInt16 = 0
    /// Whether to look for peers and connect to them on the LE Coded physical layer too, for distance (Vol 6, Part B, 3.3). Where the
    /// controller has it; it takes half of the time from listening on LE 1M, and connections stay on the layer they are made on.
    public var usesCodedPHY = false
    /// Silence after which a connection is lost, in units of 10 ms. Default 5 s.
    public var supervisionTimeout: UInt16 = 500
    /// What to ask of centrals, as peripheral: they can read it, and those that chose otherwise are asked once, 5 s after they
    /// connected, when discovery is over (Vol 3, Part C, 9.3.9.2 and 12.3). Nil for no wish.
    public var preferredParameters: PreferredParameters?
    /// How the host's address changes, so that only bonded peers recognise it; nil to use ``address`` always. It needs
    /// cryptography.
    public var privacy: PrivacyOptions?
    /// Whether to use enhanced ATT bearers (Vol 3, Part G, 5.3.2): as server to take up to five of each client, as
    /// client to open one, over encrypted links. They keep a pending request from holding up others. The host sends in
    /// order over any bearer, and values by the fixed channel alone; a peer that uses several may send write commands
    /// out of order.
    public var usesEnhancedBearers = false
    /// How to pair; nil not to.
    public var pairing: PairingOptions?
    /// Cryptography for the Database Hash; pairing's unless given. Without any there is no hash.
    public var cryptography: (any PairingCryptography)?
    /// Bytes of values that may wait on one connection, headers included, before more are refused.
    public var maximumQueuedBytes = 8192

    /// The defaults, with the host's address.
    public init(address: Address) { self.address = address }
}

/// A Bluetooth LE host: everything between HCI packets and GATT, as one value without I/O, clock or randomness.
///
/// The owner feeds it packets of the controller and the time (nanoseconds of any clock that never runs backwards), and
/// after every call that changes it
/// 1. takes packets for the controller with ``nextPacket(into:at:)`` until it returns false,
/// 2. takes events with ``swapEvents(_:)``,
/// 3. reads ``deadline`` and sees to it that ``wake(at:)`` is called then.
///
/// Nothing a controller or a peer sends can make it trap, or grow beyond the limits named in ``HostConfiguration`` and
/// below. A peer that breaks the rules is disconnected, and a ``HostEvent/diagnostic(_:)`` says why.
public struct LEHost: ~Copyable, Sendable {
    /// Bytes that may wait on one connection in all. Only a peer that sends requests and takes no answers comes here.
    static let hardQueueLimit = 65536
    /// Commands that may wait before those that only improve something are left out.
    static let commandLimit = 64

    let configuration: HostConfiguration

    /// Whether the host can be used.
    public internal(set) var state = HostState.off
    /// What the controller said of itself.
    public internal(set) var controller = ControllerInfo()

    var commands = CommandQueue()
    var restarts = 0
    var connections: [Connection] = []
    var earlyData = EarlyData()
    /// ACL packets that the controller has room for.
    var freeBuffers = 0
    /// Whose turn it is to send.
    var turn = 0

    var advertiser = Advertiser()
    var scanner = Scanner()
    var initiator = Initiator()

    var database: AttributeDatabase
    var rememberedClients: [RememberedClient] = []
    /// Attributes that were found on peers.
    var discoveries = DiscoveryCache()
    /// PSMs on which channels are taken, and whether they need an encrypted link.
    var listeners: [UInt16: Bool] = [:]
    var keyring: Keyring
    var privacy: Privacy
    /// Whether peers may ask to pair. Those with keys that are kept are encrypted with all the same, and this side may ask
    /// others (GAP's bondable mode, Core Specification 5.4, Vol 3, Part C, 9.4).
    public var isPairable = true
    var backoff = PairingBackoff()
    var outOfBand = OutOfBand()

    var pending = EventBatch()
    var lastID: UInt64 = 0

    /// Makes a host that is off.
    public init(_ configuration: HostConfiguration) {
        var bounded = configuration
        bounded.maximumMTU = min(max(configuration.maximumMTU, ATT.defaultMTU), ATT.maximumMTU)
        bounded.cryptography = configuration.cryptography ?? configuration.pairing?.cryptography
        bounded.maximumQueuedBytes = min(max(configuration.maximumQueuedBytes, 1024), Self.hardQueueLimit / 2)
        self.configuration = bounded
        database = AttributeDatabase(genericServicesOf: bounded)
        keyring = Keyring(bounded.pairing)
        privacy = Privacy(address: Self.makePrivateAddress(bounded) ?? bounded.address)
    }

    // MARK: Packets in

    /// Takes one packet of the controller, from its H4 indicator on.
    public mutating func receive(_ packet: RawSpan, at now: Int64) {
        guard packet.byteCount >= 3, let type = H4PacketType(rawValue: packet.u8(0)) else {
            pending.events.append(
                .diagnostic("The controller sent \(packet.byteCount) bytes that are no HCI packet; they are ignored."))
            return
        }
        switch type {
        case .acl: receiveACL(packet, at: now)
        case .event:
            if packet.u8(1) == HCIEvent.numberOfCompletedPackets {
                receiveCompletedPackets(packet)
            } else {
                do throws(MalformedPacket) {
                    handle(try HCIEvent([UInt8](copying: packet.extracting(1..<packet.byteCount))), at: now)
                } catch {
                    pending.events.append(.diagnostic("The controller sent a malformed event; it is ignored."))
                }
            }
        case .command, .synchronous, .isochronous: break
        }
    }

    private mutating func handle(_ event: HCIEvent, at now: Int64) {
        switch event {
        case .commandComplete(let credits, let opcode, let parameters):
            guard let command = commands.complete(opcode: opcode, credits: credits, at: now) else { return }
            let status = HCIErrorCode(rawValue: parameters.first ?? HCIErrorCode.unspecified.rawValue)
            commandDidEnd(command, status, Array(parameters.dropFirst()), at: now)
        case .commandStatus(let status, let credits, let opcode):
            guard let command = commands.complete(opcode: opcode, credits: credits, at: now) else { return }
            commandDidEnd(command, HCIErrorCode(rawValue: status), [], at: now)
        case .disconnectionComplete(let status, let handle, let reason):
            earlyData.drop(handle)
            if status == 0 { connectionDidEnd(handle, HCIErrorCode(rawValue: reason), at: now) }
        case .encryptionChange(let status, let handle, let isEnabled):
            encryptionDidChange(handle, HCIErrorCode(rawValue: status), isEnabled: isEnabled, at: now)
        case .hardwareError(let code):
            restart("The controller reports hardware error 0x\(String(code, radix: 16)).", at: now)
        case .dataBufferOverflow:
            pending.events.append(.diagnostic("The controller reports a data buffer overflow."))
        case .connectionComplete(let connection):
            connectionDidComplete(connection, at: now)
            for packet in earlyData.take(connection.handle, at: now) { receiveACL(packet.span.bytes, at: now) }
        case .connectionUpdateComplete(let status, let handle, let parameters):
            guard status == 0, let index = index(handle: handle) else { return }
            connections[index].parameters = parameters
            pending.events.append(.parametersChanged(connections[index].id, parameters))
        case .advertisingReports(let reports):
            seek(among: reports, at: now)
            guard let peers = scanner.request?.peers else { return }
            for report in reports where peers.isEmpty || peers.contains(report.address) {
                if let whole = scanner.fragments.join(report) {
                    pending.events.append(.advertisementReceived(whole))
                }
            }
        case .longTermKeyRequest(let handle, let random, let diversifier):
            longTermKeyWasRequested(handle, random: random, diversifier: diversifier, at: now)
        case .connectionParameterRequest(let handle, let minimum, let maximum, let latency, let timeout):
            answerParameterRequest(handle, minimum...max(minimum, maximum), latency, timeout, at: now)
        case .dataLengthChange, .phyUpdateComplete, .advertisingSetTerminated, .other: break
        }
    }

    // MARK: Packets out

    /// Appends the next packet for the controller, in H4 form, to `output`; returns false when there is none or the
    /// controller has no room for it.
    public mutating func nextPacket(into output: inout [UInt8], at now: Int64) -> Bool {
        if commands.isIdle {
            finishClosing(at: now)
            if privacy.due != .nothing { changeAddresses(at: now) }
        }
        if let command = commands.next(at: now) {
            command.write(into: &output)
            return true
        }
        return nextACLPacket(into: &output, at: now)
    }

    /// Exchanges `batch`, whose events have been handled, for the events since the last call.
    public mutating func swapEvents(_ batch: inout EventBatch) {
        batch.removeAll()
        swap(&batch, &pending)
    }

    // MARK: Time

    /// When to call ``wake(at:)``, or nil.
    ///
    /// Changes nothing; mutating only so that no connection is copied to be asked.
    public var deadline: Int64? {
        mutating get {
            var earliest = Int64.max
            if let deadline = commands.deadline { earliest = deadline }
            if let deadline = initiator.deadline { earliest = min(earliest, deadline) }
            if let deadline = privacy.deadline { earliest = min(earliest, deadline) }
            for index in connections.indices {
                if let deadline = connections[index].deadline { earliest = min(earliest, deadline) }
            }
            return earliest == .max ? nil : earliest
        }
    }

    /// Ends overdue requests, commands and connections.
    public mutating func wake(at now: Int64) {
        if let deadline = commands.deadline, deadline <= now, !commands.extend(at: now) {
            if let command = commands.giveUp(at: now) { return optionalCommandDidFail(command, at: now) }
            let command = commands.inFlight.map { "\($0.opcode)" } ?? "a command: it says it has no room for any"
            restart(
                "The controller did not answer \(command) within \(CommandQueue.timeout / 1_000_000_000) s.", at: now)
            return
        }
        rotateInitiator(at: now)
        expirePrivacy(at: now)
        for index in connections.indices where (connections[index].deadline ?? .max) <= now {
            expire(index, at: now)
        }
        for id in connections.filter({ ($0.closing?.deadline ?? .max) <= now }).map(\.handle) {
            connectionDidEnd(id, .unspecified, at: now)
        }
    }

    // MARK: Names

    mutating func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }

    func index(handle: UInt16) -> Int? { connections.indices.first { connections[$0].handle == handle } }
    func index(_ id: ConnectionID) -> Int? { connections.indices.first { connections[$0].id == id } }

    /// Answers a question of the controller's, which waits for it.
    mutating func reply(_ opcode: Opcode, at now: Int64, _ build: (inout [UInt8]) -> Void) {
        guard controller.supports(opcode), commands.count < Self.commandLimit else { return }
        commands.enqueue(HCICommand(opcode, for: .reply, build), at: now)
    }

    /// Sends a command that improves something, unless far too many wait already.
    mutating func tune(_ opcode: Opcode, at now: Int64, _ build: (inout [UInt8]) -> Void) {
        guard controller.supports(opcode), commands.count < Self.commandLimit else { return }
        commands.enqueue(HCICommand(opcode, for: .tuning, build), at: now)
    }
}
