import Ferry
import FerryBluetooth
import FerryTransports
import Synchronization

/// An adapter's central role, for looking around.
final class Explorer: CentralRoleEvents {
    /// An event while a scan runs.
    enum Event: Sendable {
        case heard(Discovery, at: Timestamp)
        /// Time has passed.
        case tick
        /// The adapter cannot go on.
        case lost(FerryError)
    }

    private struct State {
        var isReady = false
        var loss: FerryError?
        var events: AsyncStream<Event>.Continuation?
        var role: (any CentralRole)?
        var demonstration: Demonstration?
    }

    private let opened: OpenedAdapter
    private let power = PowerWait()
    private let state = Mutex(State())
    let time = SystemTime()

    private init(_ opened: OpenedAdapter) { self.opened = opened }

    /// On an adapter that is open already, which is closed with it.
    static func open(_ adapter: OpenedAdapter) async throws -> Explorer {
        let explorer = Explorer(adapter)
        do { try await explorer.start() } catch {
            explorer.close()
            throw error
        }
        return explorer
    }

    static func open(_ transport: NamedTransport, pairing: RadioPairing? = nil) async throws -> Explorer {
        guard case .adapters(let make) = transport.opening else {
            throw FerryError(.invalidConfiguration, "\(transport) is no Bluetooth adapter.")
        }
        var options = RadioOptions()
        options.onAdvice = { note($0) }
        options.pairing = pairing
        let adapters = try make(options)
        var demonstration: Demonstration?
        if !transport.reachesOtherProcesses {
            var opened: [OpenedAdapter] = []
            for number in 0..<Demonstration.count { opened.append(try await adapters("demonstration \(number)")) }
            demonstration = try await Demonstration(opened)
        }
        let explorer = Explorer(try await adapters("explorer"))
        explorer.state.withLock { $0.demonstration = demonstration }
        do { try await explorer.start() } catch {
            explorer.close()
            throw error
        }
        return explorer
    }

    private func start() async throws(FerryError) {
        let role = opened.adapter.openCentral(self)
        state.withLock { $0.role = role }
        try await power.wait(for: opened.adapter.name, time)
        state.withLock { $0.isReady = true }
    }

    func close() {
        let (role, demonstration) = state.withLock { state in
            defer { (state.role, state.demonstration, state.events) = (nil, nil, nil) }
            return (state.role, state.demonstration)
        }
        role?.close()
        demonstration?.close()
        opened.close()
    }

    fileprivate func role() throws(FerryError) -> any CentralRole {
        let (role, loss) = state.withLock { ($0.role, $0.loss) }
        if let loss { throw loss }
        guard let role else { throw FerryError(.closed, "The adapter has been given back.") }
        return role
    }

    // MARK: Events

    func centralAdapterDidChange(_ adapterState: AdapterState) {
        power.note(adapterState)
        let (events, loss) = state.withLock { state -> (AsyncStream<Event>.Continuation?, FerryError?) in
            guard state.isReady, adapterState != .poweredOn, state.loss == nil else { return (nil, nil) }
            let loss = FerryError(
                .transportUnavailable, "Adapter \(opened.adapter.name) is gone: it is \(adapterState.words) now.")
            state.loss = loss
            return (state.events, loss)
        }
        if let loss { events?.yield(.lost(loss)) }
    }

    func centralDidDiscover(_ discovery: Discovery) {
        let now = time.now
        state.withLock { $0.events }?.yield(.heard(discovery, at: now))
    }

    // MARK: Scanning

    /// The peripherals heard until the time is over or the task is cancelled. One scan at a time.
    ///
    /// - Parameters:
    ///   - request: what to look for.
    ///   - duration: for how long.
    ///   - tick: how often the body is told of time; nil for never.
    ///   - body: takes each event; returns whether to go on.
    func scan(
        _ request: ScanRequest, for duration: Duration, tick: Duration? = nil, _ body: (Event) throws -> Bool
    ) async throws {
        // An event that comes faster than it is taken is heard again soon.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(1024))
        state.withLock { $0.events = continuation }
        defer { state.withLock { $0.events = nil } }
        let role = try role()
        let end = time.schedule(at: time.now + duration) { continuation.finish() }
        defer { end.cancel() }
        let clock = tick.map { tick in
            Task { [time] in
                while !Task.isCancelled {
                    continuation.yield(.tick)
                    try await time.sleep(until: time.now + tick)
                }
            }
        }
        defer { clock?.cancel() }
        do throws(BluetoothError) { try role.startScan(request) } catch {
            throw FerryError(.transportUnavailable, "Adapter \(opened.adapter.name) cannot scan: \(error.message)")
        }
        defer { role.stopScan() }
        for await event in events {
            if case .lost(let error) = event { throw error }
            guard try body(event) else { return }
        }
        try Task.checkCancellation()
    }

    // MARK: Connecting

    /// Finds the peripheral, by its name or address, and connects to it.
    ///
    /// - Throws: `peerNotFound` with who was heard, `timedOut`, or why the connection could not be made.
    func visit(_ peer: String, within timeout: Duration) async throws -> Visit {
        let role = try role()
        let deadline = time.now + timeout
        let quoted = peer.forTerminal.debugDescription
        let search = WaitNotice.schedule("Looking \(WaitNotice.limit(timeout)) for \(quoted).")
        defer { search.cancel() }
        var found: (id: PeerID, name: String?, rssi: Int?)?
        let identity = PeerIdentity(peer, certainty: .address)
        if identity.bluetoothAddress != nil, let known = role.retrievePeripheral(identity) { found = (known, nil, nil) }
        if found == nil {
            var others: [String] = []
            try await scan(ScanRequest(), for: timeout) { event in
                guard case .heard(let discovery, _) = event else { return true }
                if Self.isMeant(peer, discovery) {
                    found = (discovery.peripheral, discovery.advertisement.localName, discovery.rssi)
                    return false
                }
                let name = discovery.advertisement.localName ?? discovery.identity.name
                if others.count < 10, !others.contains(name) { others.append(name) }
                return true
            }
            guard found != nil else {
                let heard = others.isEmpty ? "none" : others.map(\.forTerminal).joined(separator: ", ")
                throw FerryError(
                    .peerNotFound,
                    "\(quoted) was not heard within \(TransferReport.time(timeout / .seconds(1))); heard: \(heard)."
                )
            }
        }
        guard let found else { throw FerryError(.peerNotFound, "\(quoted) was not found.") }
        search.cancel()
        let wait = WaitNotice.schedule("Connecting to \(quoted), \(WaitNotice.limit(max(.zero, deadline - time.now))).")
        defer { wait.cancel() }
        let visit = VisitEvents()
        let connecting = Task { () throws -> any PeripheralConnection in
            try await role.connect(to: found.id, events: visit)
        }
        let isLate = Atomic(false)
        let timer = time.schedule(at: deadline) {
            isLate.store(true, ordering: .relaxed)
            connecting.cancel()
        }
        defer { timer.cancel() }
        do {
            let connection = try await withTaskCancellationHandler {
                try await connecting.value
            } onCancel: {
                connecting.cancel()
            }
            return Visit(connection: connection, events: visit, name: found.name, rssi: found.rssi)
        } catch {
            guard isLate.load(ordering: .relaxed) else { throw error }
            throw FerryError(
                .timedOut,
                "\(quoted) did not take the connection within \(TransferReport.time(timeout / .seconds(1)))."
            )
        }
    }

    /// Whether a person who typed this means that peripheral.
    static func isMeant(_ text: String, _ discovery: Discovery) -> Bool {
        if discovery.advertisement.localName == text { return true }
        let name = discovery.identity.name.lowercased()
        let typed = text.lowercased()
        return name == typed || name.split(separator: "/").first.map(String.init) == typed
    }
}

extension AdapterState {
    fileprivate var words: String {
        switch self {
        case .unknown: "in no known state"
        case .resetting: "being reset"
        case .unsupported: "without Bluetooth LE"
        case .unauthorized: "forbidden to this process"
        case .poweredOff: "switched off"
        case .poweredOn: "on"
        }
    }
}

/// A connection to a peripheral that a command looks at.
struct Visit: Sendable {
    let connection: any PeripheralConnection
    let events: VisitEvents
    let name: String?
    let rssi: Int?

    /// Every characteristic, service by service.
    func attributes() async throws(BluetoothError) -> [(service: RemoteService, found: [AttributeName.Found])] {
        let services = try await connection.discoverServices(nil)
        var all: [(service: RemoteService, found: [AttributeName.Found])] = []
        for service in services {
            let characteristics = try await connection.discoverCharacteristics(nil, of: service.id)
            all.append((service, characteristics.map { AttributeName.Found(service: service, characteristic: $0) }))
        }
        return all
    }

    /// The one that a person means.
    func characteristic(_ name: String) async throws(BluetoothError) -> AttributeName.Found {
        let all = try await attributes()
        return try AttributeName(name).find(in: all.flatMap(\.found))
    }

    /// A descriptor of a characteristic.
    ///
    /// - Throws: `unknownAttribute` with the descriptors that there are.
    func descriptor(_ name: String, of found: AttributeName.Found) async throws(BluetoothError) -> RemoteDescriptor {
        let all = try await connection.discoverDescriptors(of: found.characteristic.id)
        if let own = all.first(where: { AttributeName.matches(name, $0.uuid) }) { return own }
        let list = all.map(\.uuid.label).joined(separator: ", ")
        throw BluetoothError(
            .unknownAttribute,
            "\(found.characteristic.uuid.label) has no descriptor \(name.forTerminal.debugDescription). "
                + (all.isEmpty ? "It has none." : "There are: \(list)."))
    }

    /// Disconnects, and waits up to 5 s until that is done.
    func end() async {
        connection.disconnect()
        let time = SystemTime()
        let timer = time.schedule(at: time.now + .seconds(5)) { events.finish() }
        defer { timer.cancel() }
        await events.ended()
    }
}

/// What happens on the connection.
final class VisitEvents: PeripheralConnectionEvents {
    /// A value that came, and when.
    struct Update: Sendable {
        var characteristic: AttributeID
        var value: [UInt8]
        var time: Timestamp
    }

    /// Values, until the connection has ended.
    let updates: AsyncStream<Update>
    private let continuation: AsyncStream<Update>.Continuation
    private let end: AsyncStream<Void>
    private let ending: AsyncStream<Void>.Continuation
    private struct State {
        var reason: BluetoothError?
        var dropped = 0
        var watched: Set<AttributeID> = []
        var isWithdrawn = false
    }
    private let state = Mutex(State())
    private let time: any TimeSource
    private let ready = Bell()

    init(time: any TimeSource = SystemTime()) {
        self.time = time
        (updates, continuation) = AsyncStream.makeStream(of: Update.self, bufferingPolicy: .bufferingOldest(4096))
        (end, ending) = AsyncStream.makeStream()
    }

    /// Why the connection has ended; nil before.
    var reason: BluetoothError? { state.withLock { $0.reason } }
    /// Values that came faster than they were taken.
    var dropped: Int { state.withLock { $0.dropped } }

    /// Whether the peripheral has changed or withdrawn a service that was to be watched.
    var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

    /// Values are of use while these services are there: they end with one.
    func watch(_ services: Set<AttributeID>) { state.withLock { $0.watched = services } }

    /// Ends the values, not the connection.
    func stop() { continuation.finish() }

    func finish() {
        continuation.finish()
        ending.finish()
    }

    func ended() async { for await _ in end {} }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        let update = Update(characteristic: characteristic, value: value.withUnsafeBytes { Array($0) }, time: time.now)
        if case .dropped = continuation.yield(update) { state.withLock { $0.dropped += 1 } }
    }

    func peripheralIsReadyToWrite() { ready.ring() }

    /// Waits until a write may find a place, or for 50 ms: an adapter may forget to say so.
    func readyToWrite(_ time: any TimeSource) async throws {
        await ready.wait(until: time.now + .milliseconds(50), by: time)
        try Task.checkCancellation()
    }

    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {}
    func peripheralDidChangeMTU(_ attMTU: Int) {}

    func peripheralDidModifyServices(_ services: [AttributeID]) {
        let isWithdrawn = state.withLock { state in
            state.isWithdrawn = state.isWithdrawn || !state.watched.isDisjoint(with: services)
            return state.isWithdrawn
        }
        if isWithdrawn { stop() }
    }

    func peripheralDidDisconnect(_ reason: BluetoothError) {
        state.withLock { $0.reason = reason }
        ready.ring()
        finish()
    }
}
