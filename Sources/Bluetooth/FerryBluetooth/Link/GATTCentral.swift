import Ferry
import Synchronization

/// A central on its way to one link: finds a peripheral that offers the service, or the one that is wanted, connects,
/// discovers, subscribes.
final class GATTCentral: CentralRoleEvents {
    private let adapter: any BluetoothAdapter
    private let configuration: GATTConfiguration
    private let valueSizes: ValueSizeMemory
    /// The peer to connect to; nil for any that offers the service.
    private let wanted: PeerIdentity?
    private let power = PowerWait()
    private let state = Mutex(State())

    private struct State {
        var search = Search.open
        var heardOutside: [PeerID: Int] = [:]  // signal strengths outside the window, for the error's text
        var heardOthers: Set<PeerIdentity> = []  // who offers the service and is not the one, for the same
        var isConnecting = false
    }

    private enum Search {
        case open
        case awaited(AsyncStream<PeerID>.Continuation)
        case over(PeerID)
    }

    init(
        _ adapter: any BluetoothAdapter, _ configuration: GATTConfiguration, _ valueSizes: ValueSizeMemory,
        to wanted: PeerIdentity? = nil
    ) {
        self.adapter = adapter
        self.configuration = configuration
        self.valueSizes = valueSizes
        self.wanted = wanted
    }

    /// What the scan has met so far that did not match, for people.
    var whatWasHeard: String {
        let (heard, others, isConnecting) = state.withLock {
            ($0.heardOutside.values.sorted(by: >), $0.heardOthers.map(\.name).sorted(), $0.isConnecting)
        }
        if let wanted {
            if isConnecting { return "Peer \(wanted) did not answer; is it on, in range and advertising?" }
            let whom = others.isEmpty ? "no other peripheral" : "others: \(others.joined(separator: ", "))"
            return "Peer \(wanted) was not heard, and \(whom) that offers service \(configuration.service)."
        }
        guard let window = configuration.rssi, !heard.isEmpty else {
            return
                "Nothing that offers service \(configuration.service) was heard; is the peripheral on and advertising?"
        }
        let list = heard.map { "\($0) dBm" }.joined(separator: ", ")
        return
            "\(heard.count) peripheral\(heard.count == 1 ? " was" : "s were") heard outside the signal-strength window "
            + "\(window.lowerBound)...\(window.upperBound) dBm: \(list). Move closer, or widen the window."
    }

    func connect(_ time: any TimeSource) async throws(FerryError) -> any Link {
        let role = adapter.openCentral(self)
        do {
            try await power.wait(for: adapter.name, time)
            let known = wanted.flatMap { role.retrievePeripheral($0) }
            let peripheral = if let known { known } else { try await find(with: role) }
            state.withLock { $0.isConnecting = true }
            return try await open(peripheral, with: role, time)
        } catch {
            role.close()
            throw error
        }
    }

    // MARK: Finding

    private func find(with role: any CentralRole) async throws(FerryError) -> PeerID {
        // A peer is known by its identity, under any current name.
        let request = ScanRequest(
            services: [configuration.service], allowsDuplicates: configuration.rssi != nil,
            name: wanted == nil ? configuration.localName : nil)
        do { try role.startScan(request) } catch { throw FerryError("\(adapter.name) cannot scan", error) }
        defer { role.stopScan() }

        let (peripherals, continuation) = AsyncStream<PeerID>.makeStream()
        let found = state.withLock { state -> PeerID? in
            if case .over(let peripheral) = state.search { return peripheral }
            state.search = .awaited(continuation)
            return nil
        }
        if let found { continuation.yield(found) }
        for await peripheral in peripherals { return peripheral }
        throw FerryError(.cancelled, "The search for service \(configuration.service) was cancelled.")
    }

    func centralAdapterDidChange(_ adapterState: AdapterState) { power.note(adapterState) }

    func centralDidDiscover(_ discovery: Discovery) {
        let waiter = state.withLock { state -> AsyncStream<PeerID>.Continuation? in
            if wanted == nil, let window = configuration.rssi, !window.contains(discovery.rssi) {
                if state.heardOutside.count < 16 || state.heardOutside[discovery.peripheral] != nil {
                    state.heardOutside[discovery.peripheral] = discovery.rssi
                }
                return nil
            }
            if let wanted, discovery.identity.name != wanted.name {
                if state.heardOthers.count < 16 { state.heardOthers.insert(discovery.identity) }
                return nil
            }
            if case .over = state.search { return nil }
            defer { state.search = .over(discovery.peripheral) }
            return if case .awaited(let continuation) = state.search { continuation } else { nil }
        }
        waiter?.yield(discovery.peripheral)
    }

    // MARK: Opening

    private func open(
        _ peripheral: PeerID, with role: any CentralRole, _ time: any TimeSource
    ) async throws(FerryError) -> any Link {
        let claim = try LinkClaim(adapter, peripheral, configuration.service)
        var isOpen = false
        defer { if !isOpen { claim.release() } }
        let events = GATTCentralEvents(claim, time)
        let connection: any PeripheralConnection
        do { connection = try await role.connect(to: peripheral, events: events) } catch {
            throw FerryError("Cannot connect to peripheral \(peripheral)", error)
        }
        let result = await withTaskCancellationHandler {
            do throws(BluetoothError) {
                return Result<_, BluetoothError>.success(try await subscribe(on: connection, events, role, time))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            connection.disconnect()  // which ends every request that waits
        }
        do throws(FerryError) {
            switch result {
            case .success(let link):
                try recognize(connection)
                isOpen = true
                return link
            case .failure(let error):
                throw FerryError("Cannot set up the link to peripheral \(peripheral)", error)
            }
        } catch {
            connection.disconnect()
            throw error
        }
    }

    /// Whether the peer is the one that is wanted: known again no less surely than it was known before.
    private func recognize(_ connection: any PeripheralConnection) throws(FerryError) {
        guard let wanted, !wanted.recognizes(connection.identity) else { return }
        throw FerryError(
            .peerNotFound,
            "A peer answered for \(wanted) that is known as \(connection.identity) only, so nothing was sent to it."
                + (wanted.certainty == .bond ? " One of the two sides may have lost its keys: pair again." : ""))
    }

    private func subscribe(
        on connection: any PeripheralConnection, _ events: GATTCentralEvents, _ role: any CentralRole,
        _ time: any TimeSource
    ) async throws(BluetoothError) -> GATTCentralLink {
        let services = try await connection.discoverServices([configuration.service])
        // Before any request asks for encryption: that would pair with an unknown peer, and make it the bonded one.
        do throws(FerryError) { try recognize(connection) } catch {
            throw BluetoothError(.unknownPeer, error.message)
        }
        let found = try await findCharacteristics(on: connection, in: services)
        let (inbound, outbound) = (found.inbound, found.outbound)
        let sides = try sides(of: found)
        for value in configuration.sides.values where value.use == .compared {
            try await compare(value, on: connection, sides)
        }
        let writeType = writeType(for: outbound)
        var limit = writeType == .withoutResponse ? configuration.maximumWriteWithoutResponse : .max
        if let length = configuration.sides.length { limit = min(limit, try await read(length, on: connection, sides)) }
        let subscription = try subscription(for: inbound)
        let attributes = GATTAttributes(
            service: found.service, updates: inbound.id, writes: outbound.id,
            state: configuration.sides.state.flatMap { sides[$0.uuid]?.id },
            queue: configuration.sides.queue.flatMap { sides[$0]?.id },
            notes: configuration.sides.notes.compactMap { sides[$0.uuid]?.id })
        let sizer = ValueSizer(valueSizes, for: connection.identity, time)
        events.begin(
            connection, attributes, configuration.sides.state, sizer,
            configuration.firstStep == .firstWrite ? .owesFirstWrite(subscription) : .open)
        // Before the link begins at the peripheral, which may tell of a change at once.
        for (note, attribute) in zip(configuration.sides.notes, attributes.notes) {
            if note.isNotified { try await connection.setSubscription(.notify, to: attribute) }
            events.noteDidRead(attribute, try await connection.readValue(of: attribute))
        }
        if configuration.firstStep == .subscription {
            try await connection.setSubscription(subscription, to: inbound.id)
            if let state = attributes.state { try await connection.setSubscription(.notify, to: state) }
            events.owesStart(on: connection)
        }
        return GATTCentralLink(
            role, connection, events, outbound: outbound.id, writeType: writeType, sizer: sizer,
            limit: max(1, limit))
    }

    // MARK: Side characteristics

    /// Those that the layout needs, by UUID.
    private func sides(of found: Found) throws(BluetoothError) -> [BluetoothUUID: RemoteCharacteristic] {
        var sides: [BluetoothUUID: RemoteCharacteristic] = [:]
        for uuid in configuration.sides.needed {
            guard let side = found.all.first(where: { $0.uuid == uuid }) else {
                throw BluetoothError(
                    .unknownAttribute, "Its service \(configuration.service) has no characteristic \(uuid).")
            }
            sides[uuid] = side
        }
        return sides
    }

    private func compare(
        _ value: SideCharacteristics.Value, on connection: any PeripheralConnection,
        _ sides: [BluetoothUUID: RemoteCharacteristic]
    ) async throws(BluetoothError) {
        guard let side = sides[value.uuid] else { return }
        let met = try await connection.readValue(of: side.id)
        guard met == value.bytes else {
            throw BluetoothError(
                .unknownPeer,
                "Its characteristic \(value.uuid) is \(hexadecimal(met)), not \(hexadecimal(value.bytes)): it is not the "
                    + "peripheral that was meant, and nothing was sent to it.")
        }
    }

    private func read(
        _ length: SideCharacteristics.Length, on connection: any PeripheralConnection,
        _ sides: [BluetoothUUID: RemoteCharacteristic]
    ) async throws(BluetoothError) -> Int {
        guard let side = sides[length.uuid] else { return .max }
        let met = try await connection.readValue(of: side.id)
        guard let bytes = length.bytes(in: met), bytes > 0 else {
            throw BluetoothError(
                .notSupported,
                "Its characteristic \(length.uuid) is \(hexadecimal(met)); a length of 2 bytes above 0 was expected.")
        }
        return bytes
    }

    /// What a service offers for the link.
    private struct Found {
        var service: AttributeID
        var inbound: RemoteCharacteristic
        var outbound: RemoteCharacteristic
        var all: [RemoteCharacteristic]
    }

    /// The most services of one type that are looked into.
    private static let maximumServices = 16

    /// Finds the characteristics of the link. A peripheral may have several services of one type, and a service several
    /// characteristics (Core Specification 5.4, Vol 3, Part G, 3.1 and 3.3): the first suitable one counts.
    private func findCharacteristics(
        on connection: any PeripheralConnection, in services: [RemoteService]
    ) async throws(BluetoothError) -> Found {
        guard !services.isEmpty else {
            throw BluetoothError(
                .unknownAttribute, "It does not offer service \(configuration.service) although it advertises it.")
        }
        let writeUUID = configuration.writeCharacteristic ?? configuration.characteristic
        let wanted = Array(Set([configuration.characteristic, writeUUID] + configuration.sides.needed))
        var silent: Found?
        for service in services.prefix(Self.maximumServices) {
            let all = try await connection.discoverCharacteristics(wanted, of: service.id)
            guard
                let inbound = all.filter({ $0.uuid == configuration.characteristic })
                    .max(by: { suitsSubscription($0) < suitsSubscription($1) })
            else { continue }
            // A peripheral that only sends (the classic transfer sample) has nothing to write to: then sending throws.
            let writable = all.filter { $0.uuid == writeUUID }.max { suitsWriting($0) < suitsWriting($1) } ?? inbound
            let isInboundAsGood = inbound.uuid == writeUUID && suitsWriting(inbound) == suitsWriting(writable)
            let outbound = isInboundAsGood ? inbound : writable
            let found = Found(service: service.id, inbound: inbound, outbound: outbound, all: all)
            if suitsSubscription(inbound) > 0 { return found }
            if silent == nil { silent = found }
        }
        if let silent { return silent }
        throw BluetoothError(
            .unknownAttribute,
            "Its service \(configuration.service) has no characteristic \(configuration.characteristic).")
    }

    /// How well a characteristic serves to subscribe to: 2 in the configured way, 1 in the other, 0 not at all.
    private func suitsSubscription(_ characteristic: RemoteCharacteristic) -> Int {
        let properties = characteristic.properties
        if properties.offers(configuration.subscription) { return 2 }
        return properties.offersSubscription ? 1 : 0
    }

    /// How well a characteristic serves to write to, likewise.
    private func suitsWriting(_ characteristic: RemoteCharacteristic) -> Int {
        let isCommand = characteristic.properties.contains(.writeWithoutResponse)
        let isRequest = characteristic.properties.contains(.write)
        let isConfigured = configuration.writeType == .withoutResponse ? isCommand : isRequest
        return isConfigured ? 2 : isCommand || isRequest ? 1 : 0
    }

    /// The configured way of writing, or the only one that the peripheral offers.
    private func writeType(for characteristic: RemoteCharacteristic) -> WriteType {
        let offersCommand = characteristic.properties.contains(.writeWithoutResponse)
        let offersRequest = characteristic.properties.contains(.write)
        switch configuration.writeType {
        case .withoutResponse: return offersCommand || !offersRequest ? .withoutResponse : .withResponse
        case .withResponse: return offersRequest || !offersCommand ? .withResponse : .withoutResponse
        }
    }

    /// The configured subscription, or the only one that the peripheral offers.
    private func subscription(for characteristic: RemoteCharacteristic) throws(BluetoothError) -> Subscription {
        let offersNotify = characteristic.properties.offers(.notify)
        let offersIndicate = characteristic.properties.offers(.indicate)
        switch (configuration.subscription, offersNotify, offersIndicate) {
        case (.notify, true, _), (.indicate, true, false): return .notify
        case (.indicate, _, true), (.notify, false, true): return .indicate
        case (_, false, false):
            throw BluetoothError(
                .notSupported,
                "Its characteristic \(characteristic.uuid) offers neither notifications nor indications.")
        }
    }
}
