import DequeModule
import Ferry
import Synchronization

/// A peripheral that waits for centrals: publishes the service, advertises it, and makes a link for each central that
/// subscribes. Links are isolated from one another: each has its own framing, queue and end.
final class GATTPeripheral: PeripheralRoleEvents {
    private let adapter: any BluetoothAdapter
    private let configuration: GATTConfiguration
    private let power = PowerWait()
    private let state = Mutex(State())

    private struct State {
        var role: (any PeripheralRole)?
        var isListening = false
        var isPublished = false
        var inbound: AttributeID?
        var outbound: AttributeID?
        /// The links, which belong to whoever took them and close when nobody keeps them any more.
        var links: [ConnectedCentral: WeakLink] = [:]
        var order: [WeakLink] = []  // whom to tell first that there is space; rotates
        /// Not kept: it ends with whoever took it.
        weak var listener: LinkListener?
    }

    private struct WeakLink {
        let central: ConnectedCentral
        weak var link: GATTPeripheralLink?
    }

    init(_ adapter: any BluetoothAdapter, _ configuration: GATTConfiguration) {
        self.adapter = adapter
        self.configuration = configuration
    }

    // MARK: Listening

    func listen(_ time: any TimeSource, acceptTimeout: Duration) async throws(FerryError) -> LinkListener {
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
            state.withLock {
                $0.outbound = service.characteristics.first
                $0.inbound = service.characteristics.last
                $0.isPublished = true
            }
            let advertisement = Advertisement(localName: configuration.localName, services: [configuration.service])
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

    /// The role is of no use once nobody listens and the last link has ended.
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
                return ([], state.isListening && !state.isPublished && state.listener != nil ? state.role : nil)
            }
            state.isPublished = false
            defer {
                state.links = [:]
                state.order = []
            }
            return (state.order.compactMap(\.link), nil)
        }
        for link in lost {
            link.didEnd(FerryError(.disconnected, "\(adapter.name) is not powered on any more (\(adapterState))."))
        }
        if let republishes { Task { await listenAgain(on: republishes) } }
    }

    private func listenAgain(on role: any PeripheralRole) async {
        do {
            try await publishAndAdvertise(on: role)
            // Unless the power has gone again meanwhile.
            state.withLock { $0.isPublished ? $0.listener : nil }?.resume()
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
            "Adapter \(adapter.name) \(what), so that nobody can come. Listening goes on once it is ready again.")
    }

    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        let (link, listener) = state.withLock { state -> (GATTPeripheralLink?, LinkListener?) in
            guard characteristic == state.outbound, state.links[central] == nil, let role = state.role else {
                return (nil, nil)
            }
            let link = GATTPeripheralLink(to: central, of: characteristic, on: role)
            let weak = WeakLink(central: central, link: link)
            state.links[central] = weak
            state.order.append(weak)
            return (link, state.listener)
        }
        guard let link else { return }
        // A central that comes after listening has ended, or while too many wait, is sent away.
        if listener?.offer(link) != true { link.close() }
    }

    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        guard characteristic == state.withLock({ $0.outbound }) else { return }
        end(central, FerryError(.disconnected, "The central ended its subscription."))
    }

    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
        end(central, FerryError("The connection to the central ended", reason))
    }

    private func end(_ central: ConnectedCentral, _ reason: FerryError) {
        let link = state.withLock { state in
            state.order.removeAll { $0.central == central }
            return state.links.removeValue(forKey: central)?.link
        }
        link?.didEnd(reason)
        closeRoleIfUnused()
    }

    func peripheralIsReadyToUpdate() {
        // Whoever is told first gets the space, so the turn goes round.
        let order = state.withLock { state in
            if state.order.count > 1 { state.order.append(state.order.removeFirst()) }
            return state.order
        }
        for entry in order { entry.link?.isReady() }
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        link(of: central, writing: characteristic)?.didReceive(value)
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        state.withLock { $0.role }?.respond(to: request.id, with: .failure(.readNotPermitted))
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        guard let role = state.withLock({ $0.role }) else { return }
        // A write longer than ATT_MTU - 3 comes in parts; together they are one chunk.
        var value: [UInt8] = []
        for part in request.parts {
            guard part.characteristic == request.parts[0].characteristic, part.offset == value.count else {
                return role.respond(to: request.id, with: .failure(.invalidOffset))
            }
            value += part.value
        }
        guard let characteristic = request.parts.first?.characteristic,
            let link = link(of: request.central, writing: characteristic)
        else {
            // Ferry's link begins with the subscription.
            return role.respond(to: request.id, with: .failure(.clientConfigurationImproperlyConfigured))
        }
        link.didReceive(value, answering: request.id)
    }

    private func link(of central: ConnectedCentral, writing characteristic: AttributeID) -> GATTPeripheralLink? {
        state.withLock { characteristic == $0.inbound ? $0.links[central]?.link : nil }
    }
}
