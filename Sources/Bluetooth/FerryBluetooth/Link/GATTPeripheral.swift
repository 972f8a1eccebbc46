import DequeModule
import Ferry
import Synchronization

/// A peripheral that waits for centrals: publishes the service, advertises it, and makes a link for each central that
/// subscribes, or begins as the layout says. Links are isolated from one another: each has its own framing, queue and end.
final class GATTPeripheral: PeripheralRoleEvents {
    private let adapter: any BluetoothAdapter
    private let configuration: GATTConfiguration
    private let valueSizes: ValueSizeMemory
    private let time: any TimeSource
    private let power = PowerWait()
    private let state = Mutex(State())

    private struct State {
        var role: (any PeripheralRole)?
        var isListening = false
        /// The published attributes; nil before, and after the adapter was off.
        var attributes: GATTAttributes?
        /// Centrals that have taken one of the two steps with which a link with a state begins.
        var beginners: [ConnectedCentral: Beginner] = [:]
        /// The links, owned by the tasks that took them; each closes when its last reference is released.
        var links: [ConnectedCentral: WeakLink] = [:]
        var order: [WeakLink] = []  // whom to tell first that there is space; rotates
        /// Not kept: it ends with its last reference.
        weak var listener: LinkListener?
    }

    /// The step that a central has taken, when the other is still to come.
    private enum Beginner { case subscribed, started }

    /// The most centrals that may have begun and not subscribed: of these no adapter tells that they have gone.
    private static let maximumUnsubscribed = 16

    private struct WeakLink {
        let central: ConnectedCentral
        weak var link: GATTPeripheralLink?
        /// Whether the adapter will tell the end of the connection.
        var isSubscribed: Bool
    }

    init(
        _ adapter: any BluetoothAdapter, _ configuration: GATTConfiguration, _ valueSizes: ValueSizeMemory,
        _ time: any TimeSource
    ) {
        self.adapter = adapter
        self.configuration = configuration
        self.valueSizes = valueSizes
        self.time = time
    }

    // MARK: Listening

    func listen(acceptTimeout: Duration) async throws(FerryError) -> LinkListener {
        let role = adapter.openPeripheral(self)
        state.withLock {
            $0.role = role
            $0.isListening = true
        }
        do {
            try await power.wait(for: adapter.name, time)
            try await publishAndAdvertise(on: role)
        } catch {
            role.close()
            throw error
        }
        let listener = LinkListener(acceptTimeout: acceptTimeout, time: time) { [weak self] in self?.stopListening() }
        state.withLock { $0.listener = listener }
        // It may have gone before there was anybody to tell.
        if let power = power.state, power != .poweredOn { listener.interrupt(lost(power)) }
        return listener
    }

    private func publishAndAdvertise(on role: any PeripheralRole) async throws(FerryError) {
        do throws(BluetoothError) {
            let service = try await role.publish(configuration.definition)
            state.withLock { $0.attributes = GATTAttributes(service, of: configuration) }
            var advertisement = Advertisement(localName: configuration.localName, services: [configuration.service])
            if let data = configuration.advertisedData { advertisement.serviceData = [configuration.service: data] }
            let report = try await role.startAdvertising(advertisement)
            guard report.omittedServices.isEmpty else {
                throw BluetoothError(
                    .advertisingFailed,
                    "Service \(configuration.service) does not fit into the advertisement; shorten the local name.")
            }
        } catch {
            throw FerryError("\(adapter.name) cannot offer service \(configuration.service)", error)
        }
    }

    private func stopListening() {
        let role = state.withLock { state in
            state.isListening = false
            state.listener = nil
            return state.role
        }
        role?.stopAdvertising()
        closeRoleIfUnused()
    }

    /// The role is of no use after listening and the last link have ended.
    private func closeRoleIfUnused() {
        let role = state.withLock { state -> (any PeripheralRole)? in
            guard !state.isListening, state.links.isEmpty else { return nil }
            defer { state.role = nil }
            return state.role
        }
        role?.close()
    }

    // MARK: PeripheralRoleEvents

    func peripheralAdapterDidChange(_ adapterState: AdapterState) {
        power.note(adapterState)
        let listener = state.withLock { $0.listener }
        if adapterState != .poweredOn { listener?.interrupt(lost(adapterState)) }
        let (lost, republishes) = state.withLock { state -> ([GATTPeripheralLink], (any PeripheralRole)?) in
            guard adapterState != .poweredOn else {
                // Services do not survive a power cycle; offer them again.
                return ([], state.isListening && state.attributes == nil && state.listener != nil ? state.role : nil)
            }
            state.attributes = nil
            defer {
                state.links = [:]
                state.order = []
                state.beginners = [:]
            }
            return (state.order.compactMap(\.link), nil)
        }
        for link in lost {
            link.didEnd(FerryError(.disconnected, "\(adapter.name) is not powered on any more (\(adapterState))."))
        }
        if let republishes { time.startTask { [self] in await listenAgain(on: republishes) } }
    }

    private func listenAgain(on role: any PeripheralRole) async {
        do {
            try await publishAndAdvertise(on: role)
            // Unless the power has gone again meanwhile.
            state.withLock { $0.attributes == nil ? nil : $0.listener }?.resume()
        } catch {
            // The next change of power has another turn.
            state.withLock { $0.listener }?.interrupt(error)
        }
    }

    private func lost(_ state: AdapterState) -> FerryError {
        let what =
            switch state {
            case .poweredOff: "has been switched off"
            case .unauthorized: "may not be used by this process any more"
            case .unsupported: "has been removed, or closed"
            case .unknown, .resetting: "has gone, or the service or driver that runs it"
            case .poweredOn: "is on"
            }
        return FerryError(
            .transportUnavailable,
            "Adapter \(adapter.name) \(what), so that no central can connect. Listening resumes once it is ready again."
        )
    }

    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        guard characteristic == state.withLock({ $0.attributes?.updates }) else { return }
        if let link = link(to: central) {
            state.withLock { state in
                state.links[central]?.isSubscribed = true
                if let place = state.order.firstIndex(where: { $0.central == central }) {
                    state.order[place].isSubscribed = true
                }
            }
            return link.didSubscribe()
        }
        take(.subscribed, by: central)
    }

    /// A link with a state begins with the second of two steps, any other with the subscription.
    private func take(_ step: Beginner, by central: ConnectedCentral) {
        let isComplete = state.withLock { state -> Bool in
            guard configuration.sides.state != nil, state.links[central] == nil else { return step == .subscribed }
            guard let first = state.beginners[central] else {
                // Of those that have subscribed the adapter tells the end.
                let others = state.beginners.values.count { $0 == .started }
                if step == .subscribed || others < Self.maximumUnsubscribed { state.beginners[central] = step }
                return false
            }
            guard first != step else { return false }
            state.beginners[central] = nil
            return true
        }
        if isComplete { begin(with: central, isSubscribed: true) }
    }

    /// Makes a link for a central that has none, and offers it. Returns nil where there is one, or no place for another.
    @discardableResult
    private func begin(with central: ConnectedCentral, isSubscribed: Bool) -> GATTPeripheralLink? {
        let (link, listener) = state.withLock { state -> (GATTPeripheralLink?, LinkListener?) in
            guard state.links[central] == nil, let role = state.role, let attributes = state.attributes else {
                return (nil, nil)
            }
            let others = state.order.count { !$0.isSubscribed }
            guard isSubscribed || others < Self.maximumUnsubscribed else { return (nil, nil) }
            let link = GATTPeripheralLink(
                to: central, over: attributes, sides: configuration.sides, isSubscribed: isSubscribed, on: role,
                valueSizes, time
            ) { [weak self] in
                _ = self?.remove(central)
                self?.closeRoleIfUnused()
            }
            let weak = WeakLink(central: central, link: link, isSubscribed: isSubscribed)
            state.links[central] = weak
            state.order.append(weak)
            return (link, state.listener)
        }
        guard let link else { return nil }
        // A central that comes after listening has ended, or while too many wait, is sent away.
        if listener?.offer(link) != true { link.close() }
        return link
    }

    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        guard characteristic == state.withLock({ $0.attributes?.updates }) else { return }
        end(central, FerryError(.disconnected, "The central ended its subscription."))
    }

    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
        end(central, FerryError("The connection to the central ended", reason), isLoss: reason.isLoss)
    }

    private func end(_ central: ConnectedCentral, _ reason: FerryError, isLoss: Bool = false) {
        remove(central)?.didEnd(reason, isLoss: isLoss)
        closeRoleIfUnused()
    }

    private func remove(_ central: ConnectedCentral) -> GATTPeripheralLink? {
        state.withLock { state in
            state.order.removeAll { $0.central == central }
            state.beginners[central] = nil
            return state.links.removeValue(forKey: central)?.link
        }
    }

    private func link(to central: ConnectedCentral) -> GATTPeripheralLink? {
        state.withLock { $0.links[central]?.link }
    }

    func peripheralIsReadyToUpdate() {
        // The link notified first gets the space, so the turn rotates.
        let order = state.withLock { state in
            if state.order.count > 1 { state.order.append(state.order.removeFirst()) }
            return state.order
        }
        for entry in order { entry.link?.isReady() }
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        if let link = link(of: central, writing: characteristic) { return link.didReceive(value) }
        guard characteristic == state.withLock({ $0.attributes?.state }) else { return }
        set(value.withUnsafeBytes { [UInt8]($0) }, by: central)
    }

    /// The central has set the state.
    private func set(_ value: [UInt8], by central: ConnectedCentral) {
        guard let side = configuration.sides.state else { return }
        switch side.meaning(of: value) {
        case .start: take(.started, by: central)
        case .end: sendAway(central, side.endedByPeer)
        case .unknown(let error): sendAway(central, error)
        }
    }

    private func sendAway(_ central: ConnectedCentral, _ reason: FerryError) {
        let role = state.withLock { $0.role }
        end(central, reason)
        role?.disconnect(central)
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        guard let (role, attributes) = state.withLock({ state in state.role.map { ($0, state.attributes) } }) else {
            return
        }
        if let note = attributes?.notes.firstIndex(of: request.characteristic) {
            let value = link(to: request.central)?.note(note) ?? configuration.sides.notes[note].bytes
            return role.respond(
                to: request.id,
                with: request.offset <= value.count
                    ? .success(Array(value[request.offset...])) : .failure(.invalidOffset))
        }
        guard request.characteristic == attributes?.queue else {
            return role.respond(to: request.id, with: .failure(.readNotPermitted))
        }
        // Before the link there is nothing to read.
        guard let link = link(to: request.central) else { return role.respond(to: request.id, with: .success([])) }
        role.respond(to: request.id, with: link.read(from: request.offset))
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        guard let (role, attributes) = state.withLock({ state in state.role.map { ($0, state.attributes) } }) else {
            return
        }
        // A write longer than ATT_MTU - 3 comes in parts; together they are one chunk.
        var value: [UInt8] = []
        for part in request.parts {
            guard part.characteristic == request.parts[0].characteristic, part.offset == value.count else {
                return role.respond(to: request.id, with: .failure(.invalidOffset))
            }
            value += part.value
        }
        if let characteristic = request.parts.first?.characteristic, characteristic == attributes?.state {
            role.respond(to: request.id, with: .success([]))
            return set(value, by: request.central)
        }
        guard let characteristic = request.parts.first?.characteristic,
            let link = link(of: request.central, writing: characteristic)
        else {
            // Unless the layout says otherwise the link begins with the subscription.
            return role.respond(to: request.id, with: .failure(.clientConfigurationImproperlyConfigured))
        }
        link.didReceive(value, answering: request.id)
    }

    private func link(of central: ConnectedCentral, writing characteristic: AttributeID) -> GATTPeripheralLink? {
        let (isChunk, link) = state.withLock { state in
            (characteristic == state.attributes?.writes, state.links[central]?.link)
        }
        guard isChunk, link == nil, configuration.firstStep == .firstWrite else { return isChunk ? link : nil }
        return begin(with: central, isSubscribed: false)
    }
}
