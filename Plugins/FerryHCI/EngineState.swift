#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import NIOCore

    /// All that changes, behind the engine's lock.
    struct EngineState: ~Copyable, Sendable {
        /// Peers that have a name and of which it is kept what was heard, at most, beside those that are connected, being
        /// connected to or bonded: anyone can advertise under a new address as often as they like.
        static let peerLimit = 1024

        var host: LEHost
        var splitter = H4Splitter()
        var batch = EventBatch()
        var output: [UInt8] = []
        var capture: CaptureFile?
        var channel: (any Channel)?
        /// Keeps the event loop reachable once the channel is gone.
        var lastChannel: (any Channel)?
        var isPumpScheduled = false
        /// When the pump ran last or was scheduled.
        var now: Int64 = 0
        var timer: Scheduled<Void>?
        var timerDeadline: Int64?
        var startWaiters: [Waiter<Void>] = []
        var wasReady = false
        /// Whether only open roles keep the channel.
        var isAbandoned = false
        /// Whether the channel is to be closed once the connections have ended.
        var isClosing = false

        var nextOwner: UInt64 = 1
        var peripherals: [PeripheralOwner] = []
        var centrals: [CentralOwner] = []
        var advertisingOwner: UInt64?
        var advertisingWaiter: Waiter<Void>?

        var peerIDs: [Address: PeerID] = [:]
        var addresses: [PeerID: Address] = [:]
        /// Peers that have a name, in the order in which they may lose it.
        private var namedPeers: CircularBuffer<Address> = []
        var heard: [Address: Heard] = [:]
        var links: [ConnectionID: LinkState] = [:]
        var connecting: [Address: [Attempt]] = [:]
        var operations: [OperationID: Operation] = [:]
        var securing: [ConnectionID: [Waiter<Void>]] = [:]
        /// What a person is asked while a connection's peer pairs.
        var questions: [ConnectionID: Task<Void, Never>] = [:]
        var signalStrengths: [ConnectionID: [Waiter<Int>]] = [:]
        var channels: [CreditChannelID: HCIL2CAPChannel] = [:]
        var requests: [ServerRequestID: UInt64] = [:]
        /// What is in the file beside the bonds.
        var storedPeers = KnownPeers()
        /// Whether it will be written soon.
        var isStoringPeers = false

        init(_ host: consuming LEHost) { self.host = host }

        enum Operation {
            case waiter(Waiter<ClientResult>)
            case write(HCIConnection, AttributeID)
            case openChannel(Waiter<HCIL2CAPChannel>)
        }

        /// Somebody who waits for a connection.
        struct Attempt {
            let waiter: Waiter<HCIConnection>
            let peripheral: PeerID
            let owner: UInt64
            let events: any PeripheralConnectionEvents
        }

        struct PeripheralOwner {
            let id: UInt64
            let events: any PeripheralRoleEvents
            var services: [ServiceHandles] = []
            var psms: Set<UInt16> = []
        }

        struct CentralOwner {
            let id: UInt64
            let events: any CentralRoleEvents
            var scan: ScanRequest?
            var reported: Set<Address> = []
        }

        /// What has been heard of a peer last.
        struct Heard {
            var advertisement = AdvertisingData()
            var scanResponse = AdvertisingData()
            var isConnectable = false
            var count = 0

            var data: AdvertisingData {
                var data = advertisement
                data.merge(scanResponse)
                return data
            }
        }

        /// What the shell keeps of a connection.
        struct LinkState {
            let peer: PeerID
            let isCentral: Bool
            var owners: [HCIConnection] = []
            var services: [UInt16: ClosedRange<UInt16>] = [:]
            var characteristics: [UInt16: DiscoveredCharacteristic] = [:]
            /// This peer's subscriptions to local characteristics.
            var subscriptions: [UInt16: UInt64] = [:]
            /// Whether this side has asked for its end.
            var isEnding = false
            /// Values that came before anybody here subscribed, at most 1024: a bonded server keeps subscriptions.
            private var unclaimed: [(handle: UInt16, value: [UInt8])] = []
            private var claimed: Set<UInt16> = []

            init(peer: PeerID, isCentral: Bool) {
                self.peer = peer
                self.isCentral = isCentral
            }

            /// Whether somebody here has subscribed to a characteristic, or has ended its subscription.
            func isClaimed(_ handle: UInt16) -> Bool { claimed.contains(handle) }

            mutating func keep(_ handle: UInt16, _ value: [UInt8]) {
                if unclaimed.count < 1024 { unclaimed.append((handle, value)) }
            }

            /// What came for who subscribes now for the first time.
            mutating func claim(_ handle: UInt16) -> [[UInt8]] {
                guard claimed.insert(handle).inserted else { return [] }
                defer { unclaimed.removeAll { $0.handle == handle } }
                return unclaimed.filter { $0.handle == handle }.map(\.value)
            }
        }

        var adapterState: AdapterState {
            switch host.state {
            case .ready: .poweredOn
            case .failed: .poweredOff
            case .off, .starting: wasReady ? .resetting : .unknown
            }
        }

        /// The name of a peer: the same for one address while it is in use, and among the last that were; for a bonded peer
        /// the same whatever private address it uses.
        mutating func peerID(_ address: Address) -> PeerID {
            let lasting = host.resolve(address)
            if let known = peerIDs[lasting] {
                // The address it had when it was connected to serves while it is.
                if lasting != address, addresses[known].flatMap({ host.connection(to: $0) }) == nil {
                    addresses[known] = address
                }
                return known
            }
            let made = PeerID(rawValue: UInt128.random(in: 1 ... .max))
            peerIDs[lasting] = made
            addresses[made] = address
            namedPeers.append(lasting)
            if namedPeers.count > Self.peerLimit { forgetOldestPeer() }
            return made
        }

        /// A peer has told the address that it keeps: it goes by the name that it has already.
        mutating func didBond(_ bond: Bond) {
            guard let name = peerIDs[bond.peer], peerIDs[bond.lastingAddress] == nil else { return }
            peerIDs[bond.lastingAddress] = name
            namedPeers.append(bond.lastingAddress)
        }

        /// Forgets the peer that was named first of those that nobody needs.
        private mutating func forgetOldestPeer() {
            for _ in 0..<namedPeers.count {
                let address = namedPeers.removeFirst()
                let isInUse =
                    host.connection(to: address) != nil || connecting[address] != nil
                    || host.bonds.contains { $0.peer == address || $0.identity == address }
                guard !isInUse else {
                    namedPeers.append(address)
                    continue
                }
                if let peer = peerIDs.removeValue(forKey: address) { addresses[peer] = nil }
                heard[address] = nil
                for place in centrals.indices { centrals[place].reported.remove(address) }
                return
            }
        }

        /// Who is at the other end of a connection, while there is one: proven where the link is encrypted with the key of a
        /// bond, which goes by the address that the peer calls its own.
        func identity(_ id: ConnectionID) -> PeerIdentity? {
            guard let address = host.identityAddress(of: id) ?? host.peer(of: id) else { return nil }
            return PeerIdentity(address, isProven: host.security(of: id)?.isBonded == true)
        }

        /// Who an advertiser says it is.
        mutating func claimedIdentity(_ address: Address) -> PeerIdentity {
            PeerIdentity(host.resolve(address), isProven: false)
        }

        /// The address by which a peer can be connected to without being heard first: the host listens for those whose
        /// private addresses change.
        func address(_ identity: PeerIdentity) -> Address? {
            guard identity.certainty > .connection, let (value, isRandom) = identity.bluetoothAddress else {
                return nil
            }
            return Address(value, isRandom ? .random : .public)
        }

        /// A central's connection while it lasts and this side has not ended it.
        func connection(_ central: ConnectedCentral) -> ConnectionID? {
            guard let id = connection(central.peer), UInt64(id.rawValue) == central.connection,
                links[id]?.isEnding == false
            else { return nil }
            return id
        }

        /// The peer of a connection as a central, as peripheral roles name it.
        func central(_ id: ConnectionID) -> ConnectedCentral? {
            links[id].map { ConnectedCentral(peer: $0.peer, connection: UInt64(id.rawValue)) }
        }

        func connection(_ peer: PeerID) -> ConnectionID? { addresses[peer].flatMap { host.connection(to: $0) } }

        /// Who published the characteristic with this handle.
        func owner(of handle: UInt16) -> PeripheralOwner? {
            peripherals.first { $0.services.contains { $0.service <= handle && handle <= $0.end } }
        }

        /// Whether the role published the characteristic. In place, for it is asked for each value.
        func isOwner(_ id: UInt64, of handle: UInt16) -> Bool {
            for place in peripherals.indices where peripherals[place].id == id {
                for service in peripherals[place].services.indices {
                    let end = peripherals[place].services[service].end
                    if peripherals[place].services[service].service <= handle, handle <= end { return true }
                }
            }
            return false
        }

        /// Ends a connection for an owner.
        mutating func disconnect(_ id: ConnectionID, at now: Int64) {
            links[id]?.isEnding = true
            host.disconnect(id, at: now)
        }

        func requirePower() throws(BluetoothError) {
            guard case .ready = host.state else {
                throw BluetoothError(.notPoweredOn, "The HCI controller is \(adapterState), not powered on.")
            }
        }
    }

    extension PeerIdentity {
        init(_ address: Address, isProven: Bool) {
            self.init(bluetoothAddress: address.value, isRandom: address.kind == .random, isProven: isProven)
        }
    }

    /// A host's words in the seam's.
    extension BluetoothError {
        /// - Parameter isWanted: whether this side has asked for the end, which a peer that is gone already does not confirm.
        init(_ reason: HCIErrorCode, isWanted: Bool = false) {
            let code: Code =
                switch reason {
                case .terminatedByLocalHost, .authenticationFailure: .disconnectedLocally
                case .failedToBeEstablished: .connectionFailed
                case .remoteUserTerminated, .remoteLowResources, .remotePowerOff: .disconnectedByPeer
                default: isWanted ? .disconnectedLocally : .connectionTimeout
                }
            let hint =
                reason == .authenticationFailure
                ? " The peer has lost its keys, or another uses its address. If it is the peer, forget it and pair again."
                : ""
            self.init(code, "The connection has ended: \(reason).\(hint)")
        }

        init(_ failure: ClientFailure) {
            switch failure {
            case .refused(let code):
                self.init(.att(ATTError(rawValue: code.rawValue)), "The peer refused the request: \(code).")
            case .malformedResponse:
                self.init(.att(.unlikelyError), "The peer's answer makes no sense as ATT.")
            case .noConfiguration:
                self.init(.notSupported, "The characteristic has no Client Characteristic Configuration descriptor.")
            case .disconnected(let reason): self.init(reason)
            case .tooManyRequests:
                self.init(.invalidArgument, "Too many requests wait on this connection; wait for some of them.")
            }
        }
    }

    extension BluetoothUUID {
        init(_ uuid: BluetoothHost.UUID) { self.init(uuid.value) }
    }

    extension BluetoothHost.UUID {
        init(_ uuid: BluetoothUUID) { self.init(uuid.value) }
    }
#endif
