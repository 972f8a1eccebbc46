import DequeModule

/// Peers to connect to. Controllers make one attempt at a time: for one peer, or for all in their filter accept list, so
/// that several are awaited at once. Those for whom there is no room, and all where there is no list, have turns.
///
/// There are controllers that take a list and do not use it. Until the list has brought a connection, peers are tried one
/// by one too.
struct Initiator: Sendable {
    /// How long peers are tried while others wait, in nanoseconds.
    static let slice: Int64 = 4_000_000_000

    /// Bonded peers that are to be heard first, by the addresses that the application calls them.
    var sought: [Address] = []
    /// Those that have been heard: under which address, and what the application calls them.
    var found: [(address: Address, peer: Address)] = []
    /// Wanted, but not part of the attempt.
    var waiting: Deque<Address> = []
    var attempt: Attempt?
    var listTrust = ListTrust.untested

    /// The controller's one attempt.
    struct Attempt: Sendable {
        /// One at least.
        let peers: [Address]
        let usesList: Bool
        /// When others have their turn.
        let sliceEnd: Int64
        /// Peers that the application no longer wants.
        var dropped: [Address] = []
        var isCancelling = false
    }

    /// Whether the controller uses the list that it takes.
    enum ListTrust: Sendable, Equatable {
        case untested
        /// An attempt by the list brought no connection: the next one is for one peer.
        case doubted
        /// It has brought a connection.
        case proven

        /// An attempt has brought a connection.
        mutating func attemptDidSucceed(usedList: Bool) {
            if usedList { self = .proven } else if self == .doubted { self = .untested }
        }

        /// An attempt's time is over.
        mutating func attemptDidExpire(usedList: Bool) {
            if self != .proven { self = usedList ? .doubted : .untested }
        }
    }

    var current: [Address] { attempt?.peers ?? [] }
    var usesList: Bool { attempt?.usesList ?? false }

    var deadline: Int64? {
        guard let attempt, !attempt.isCancelling else { return nil }
        // A peer that was heard under an address may have changed it since.
        let isFound = attempt.peers.contains { address in found.contains { $0.address == address } }
        return !waiting.isEmpty || isFound || attempt.usesList && listTrust != .proven ? attempt.sliceEnd : nil
    }

    /// What the application calls the peer with this address, which is not sought any more.
    mutating func name(of address: Address) -> Address {
        guard let place = found.firstIndex(where: { $0.address == address }) else { return address }
        return found.remove(at: place).peer
    }

    /// The attempt is over; gives those of its peers that are still wanted, and those that are not.
    mutating func end() -> (wanted: [Address], dropped: [Address]) {
        guard let attempt = attempt.take() else { return ([], []) }
        return (attempt.peers.filter { !attempt.dropped.contains($0) }, attempt.dropped)
    }

    mutating func controllerWasReset() {
        waiting.prepend(contentsOf: end().wanted)
        for (address, peer) in found {
            waiting.removeAll { $0 == address }
            sought.append(peer)
        }
        found = []
        listTrust = .untested
    }
}

extension LEHost {
    /// Connects to a peer; the attempt goes on until ``HostEvent/connected(_:peer:isCentral:)``,
    /// ``HostEvent/connectionFailed(peer:_:)`` or ``cancelConnection(to:at:)``. Several peers are awaited at once as far as
    /// the controller's filter accept list has room, and have turns beyond that.
    ///
    /// A bonded peer that gave a key for its private addresses may be called by any of its addresses: it is listened for, and
    /// connected to under the address that it has then.
    ///
    /// - Returns: false when the host is not ready, or is connected to that peer or connecting to it already.
    public mutating func connect(to peer: Address, at now: Int64) -> Bool {
        guard state == .ready, connection(to: peer) == nil, !initiator.waiting.contains(peer) else { return false }
        if hasToBeSought(peer) {
            let lasting = resolve(peer)
            let sought = initiator.sought + initiator.found.map(\.peer)
            guard !sought.contains(where: { resolve($0) == lasting }) else { return false }
            seek(peer, at: now)
            return true
        }
        // The controller resolves to the identity, by each of the names that the application may use.
        let target = resolve(peer)
        if initiator.current.contains(target) {
            guard let place = initiator.attempt?.dropped.firstIndex(of: target) else { return false }
            initiator.attempt?.dropped.remove(at: place)
            return true
        }
        guard !initiator.waiting.contains(target) else { return false }
        wait(for: target, calledBy: peer)
        // The list must not change while an attempt goes by it, so a new attempt takes the newcomer in.
        if initiator.listTrust != .doubted, initiator.current.count < usableListSize { cancelAttempt(at: now) }
        reconcileInitiator(at: now)
        return true
    }

    private mutating func wait(for address: Address, calledBy name: Address) {
        if address != name { initiator.found.append((address, name)) }
        initiator.waiting.append(address)
    }

    /// Gives up connecting to a peer. ``HostEvent/connectionFailed(peer:_:)`` follows, or, when it was too late,
    /// ``HostEvent/connected(_:peer:isCentral:)``.
    public mutating func cancelConnection(to name: Address, at now: Int64) {
        if let place = initiator.sought.firstIndex(of: name) {
            initiator.sought.remove(at: place)
            pending.events.append(.connectionFailed(peer: name, .unknownConnection))
            return reconcileScanning(at: now)
        }
        let peer = initiator.found.first { $0.peer == name }?.address ?? name
        if let index = initiator.waiting.firstIndex(of: peer) {
            initiator.waiting.remove(at: index)
            pending.events.append(.connectionFailed(peer: initiator.name(of: peer), .unknownConnection))
        } else if let attempt = initiator.attempt, attempt.peers.contains(peer), !attempt.dropped.contains(peer) {
            initiator.attempt?.dropped.append(peer)
            cancelAttempt(at: now)
        }
    }

    /// The connection to a peer, if there is one; to a bonded one also under another of its addresses.
    public func connection(to peer: Address) -> ConnectionID? {
        if let found = connections.first(where: { $0.peer == peer && $0.closing == nil }) { return found.id }
        guard !connections.isEmpty, let bond = keyring.bond(with: peer) else { return nil }
        return connections.first { $0.closing == nil && keyring.bond(with: $0.peer)?.peer == bond.peer }?.id
    }

    /// The peer of a connection, or nil when it has ended.
    public func peer(of id: ConnectionID) -> Address? { index(id).map { connections[$0].peer } }

    /// Peers that an attempt by the list may have: none while a scan goes by it.
    private var usableListSize: Int { scanner.air.usesList ? 0 : controller.filterAcceptListSize }

    mutating func reconcileInitiator(at now: Int64) {
        guard state == .ready, initiator.attempt == nil, !initiator.waiting.isEmpty, !privacy.isHeld else { return }
        let size = usableListSize
        let usesList = initiator.waiting.count > 1 && size > 1 && initiator.listTrust != .doubted
        let count = usesList ? min(size, initiator.waiting.count) : 1
        let attempt = Initiator.Attempt(
            peers: Array(initiator.waiting.prefix(count)), usesList: usesList, sliceEnd: now + Initiator.slice)
        initiator.waiting.removeFirst(count)
        initiator.attempt = attempt
        if usesList { fillFilterAcceptList(attempt.peers, at: now) }
        createConnection(attempt, at: now)
    }

    /// Puts peers in the controller's list, in place of those that are there (Vol 4, Part E, 7.8.15 and 7.8.16).
    mutating func fillFilterAcceptList(_ peers: [Address], at now: Int64) {
        commands.enqueue(HCICommand(.leClearFilterAcceptList, for: .filterAcceptList), at: now)
        for peer in peers {
            commands.enqueue(
                HCICommand(.leAddDeviceToFilterAcceptList, for: .filterAcceptList) {
                    $0 += [peer.kind.rawValue] + peer.bytes
                }, at: now)
        }
    }

    /// The controller does not take a peer in its list: it is done without.
    mutating func filterAcceptListDidFail(_ status: HCIErrorCode, at now: Int64) {
        guard controller.filterAcceptListSize > 0 else { return }
        controller.filterAcceptListSize = 0
        pending.events.append(
            .diagnostic("The controller's filter accept list cannot be used: \(status). Peers are tried in turn."))
        if initiator.usesList { cancelAttempt(at: now) }
        if scanner.air.usesList { scanner.needsRestart = true }
        reconcileScanning(at: now)
    }

    private mutating func createConnection(_ attempt: Initiator.Attempt, at now: Int64) {
        let interval = configuration.connectionInterval
        let isExtended = controller.usesExtendedAdvertising
        let usesCodedPHY = usesCodedPHY
        let policy: UInt8 = attempt.usesList ? 1 : 0
        let peer = attempt.usesList ? Address(0, .public) : attempt.peers[0]
        commands.enqueue(
            HCICommand(isExtended ? .leExtendedCreateConnection : .leCreateConnection, for: .connect) {
                // Own address random; listening all the time, in windows of 60 ms, with two physical layers in turns.
                if isExtended {
                    $0 += [policy, 0x01, peer.kind.rawValue] + peer.bytes + [usesCodedPHY ? 0x05 : 0x01]
                }
                for _ in 0..<(usesCodedPHY ? 2 : 1) {
                    $0.append(u16: usesCodedPHY ? 192 : 96)
                    $0.append(u16: 96)
                    if !isExtended { $0 += [policy, peer.kind.rawValue] + peer.bytes + [0x01] }
                    $0.append(u16: interval.lowerBound)
                    $0.append(u16: interval.upperBound)
                    $0.append(u16: configuration.latency)
                    $0.append(u16: configuration.supervisionTimeout)
                    $0 += [0, 0, 0, 0]  // connection event lengths: no wish
                }
            }, at: now)
    }

    /// Whether to listen on the LE Coded physical layer too.
    var usesCodedPHY: Bool {
        configuration.usesCodedPHY && controller.hasCodedPHY && controller.usesExtendedAdvertising
    }

    mutating func rotateInitiator(at now: Int64) {
        guard let deadline = initiator.deadline, deadline <= now else { return }
        initiator.listTrust.attemptDidExpire(usedList: initiator.usesList)
        cancelAttempt(at: now)
    }

    mutating func cancelAttempt(at now: Int64) {
        guard initiator.attempt?.isCancelling == false else { return }
        initiator.attempt?.isCancelling = true
        commands.enqueue(HCICommand(.leCreateConnectionCancel, for: .cancelConnect), at: now)
    }

    mutating func connectCommandDidFail(_ status: HCIErrorCode, at now: Int64) {
        let (wanted, dropped) = initiator.end()
        for peer in wanted + dropped {
            pending.events.append(.connectionFailed(peer: initiator.name(of: peer), status))
        }
        reconcileInitiator(at: now)
    }

    /// Nothing to cancel: the connection was made in the same moment, or the attempt has failed.
    mutating func cancelCommandDidFail(at now: Int64) { initiator.attempt?.isCancelling = false }

    mutating func connectionDidComplete(_ event: LEConnectionComplete, at now: Int64) {
        guard event.status == 0 else {
            attemptDidEnd(HCIErrorCode(rawValue: event.status), at: now)
            return
        }
        guard index(handle: event.handle) == nil else {
            pending.events.append(.diagnostic("The controller made connection \(event.handle) twice; it is ignored."))
            return
        }
        if event.isResolved { controllerDidResolve() }
        let id = ConnectionID(rawValue: UInt32(truncatingIfNeeded: makeID()))
        let local = event.isCentral ? privacy.address : privacy.former ?? privacy.address
        let connection = Connection(event, id: id, local: local)
        connections.append(connection)
        pending.events.append(.connected(connection.id, peer: event.peer, isCentral: event.isCentral))
        if event.isCentral {
            // An attempt may have been for an identity that the controller resolves to.
            let isAwaited = initiator.current.contains(event.peer)
            let peer = isAwaited ? event.peer : resolve(event.peer)
            if isAwaited || !cancelledAttemptDidSucceed(peer, at: now) { attemptDidSucceed(peer, at: now) }
        } else {
            advertiser.air.centralDidConnect()
            reconcileAdvertising(at: now)
            if let preferred = configuration.preferredParameters, preferred.isValid {
                connections[connections.count - 1].parameterDeadline = now + Self.peripheralPause
            }
        }
        improve(connections.count - 1, at: now)
    }

    private mutating func attemptDidEnd(_ status: HCIErrorCode, at now: Int64) {
        guard let wasCancelled = initiator.attempt?.isCancelling else { return }
        let (wanted, dropped) = initiator.end()
        for peer in dropped { pending.events.append(.connectionFailed(peer: initiator.name(of: peer), status)) }
        if wasCancelled {
            wait(for: wanted, at: now)
        } else {
            for peer in wanted { pending.events.append(.connectionFailed(peer: initiator.name(of: peer), status)) }
        }
        reconcileInitiator(at: now)
    }

    /// Peers that are still wanted are tried again; those that were heard under an address are listened for again.
    private mutating func wait(for wanted: [Address], at now: Int64) {
        for address in wanted {
            let peer = initiator.name(of: address)
            if hasToBeSought(peer) { seek(peer, at: now) } else { wait(for: address, calledBy: peer) }
        }
    }

    /// The attempt has brought a connection; its other peers are tried again.
    private mutating func attemptDidSucceed(_ peer: Address, at now: Int64) {
        let usedList = initiator.usesList
        initiator.listTrust.attemptDidSucceed(usedList: usedList)
        let (wanted, dropped) = initiator.end()
        for lost in dropped where lost != peer {
            pending.events.append(.connectionFailed(peer: initiator.name(of: lost), .unknownConnection))
        }
        _ = initiator.name(of: peer)
        // One that was tried alone is reached even if the controller calls it by another address.
        if usedList { initiator.waiting.prepend(contentsOf: wanted.filter { $0 != peer }) }
        reconcileInitiator(at: now)
    }

    /// There are controllers that say of an attempt that it was cancelled, and bring its connection a moment later (RootCanal
    /// does). Its peer, which waits for another attempt by then, needs none.
    private mutating func cancelledAttemptDidSucceed(_ peer: Address, at now: Int64) -> Bool {
        if let place = initiator.waiting.firstIndex(where: { resolve($0) == peer }) {
            _ = initiator.name(of: initiator.waiting.remove(at: place))
            return true
        }
        guard let place = initiator.sought.firstIndex(where: { resolve($0) == peer }) else { return false }
        initiator.sought.remove(at: place)
        reconcileScanning(at: now)
        return true
    }

    /// Asks for longer packets and, as central, for the faster physical layer and a larger ATT_MTU.
    private mutating func improve(_ index: Int, at now: Int64) {
        let handle = connections[index].handle
        if controller.hasDataLengthExtension {
            let (octets, time) = (controller.maximumTransmitOctets, controller.maximumTransmitTime)
            tune(.leSetDataLength, at: now) { for field in [handle, octets, time] { $0.append(u16: field) } }
        }
        guard connections[index].isCentral else { return }
        // Who listens on the coded physical layer wants distance, not speed.
        if controller.has2MPHY, !usesCodedPHY {
            tune(.leSetPHY, at: now) {
                $0.append(u16: handle)
                $0 += [0x00, 0x02, 0x02, 0x00, 0x00]  // 2M preferred both ways
            }
        }
        // Nothing is said to a bonded peer, nor believed of it, before it has proved that it is the one.
        if usableBond(index) != nil, beginSecurity(index, at: now), connections[index].security.encryption.bond != nil {
            connections[index].security.hold = .held
        } else if let bond = bond(index), canPair, !keyring.isStrongEnough(bond) {
            guard beginSecurity(index, at: now) else { return refuseWeakBond(index, at: now) }
            connections[index].security.hold = .held
        } else {
            beginATT(index, at: now)
        }
    }

    /// What a client does first.
    mutating func beginATT(_ index: Int, at now: Int64) {
        exchangeMTU(index, at: now)
        watchServer(index, at: now)
    }
}
