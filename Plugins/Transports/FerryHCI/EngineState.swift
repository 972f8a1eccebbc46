#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import NIOCore

    /// All that changes, behind the engine's lock.
    struct EngineState: ~Copyable, Sendable {
        let name: String
        var host: LEHost
        var splitter = H4Splitter()
        var batch = EventBatch()
        var output: [UInt8] = []
        var capture: CaptureFile?
        var line = Line.none
        var isPumpScheduled = false
        /// When the pump ran last or was scheduled.
        var now: Int64 = 0
        var timer: (scheduled: Scheduled<Void>, deadline: Int64)?
        var startWaiters: [Waiter<Void>] = []
        var wasReady = false
        var use = Use.held

        var lastOwner: UInt64 = 0
        var peripherals = OpenRoles<PeripheralOwner>()
        var centrals = OpenRoles<CentralOwner>()
        var advertising = Advertising.off

        /// By the addresses that last, where they are known.
        var peers = PeerTable<Address>()
        /// Of peers that have a name.
        var heard: [Address: Heard] = [:]
        var links: [ConnectionID: LinkState] = [:]
        var attempts = ConnectionAttempts<Address, HCIConnection>()
        var operations: [OperationID: Operation] = [:]
        var securing: [ConnectionID: [Waiter<Void>]] = [:]
        /// What a person is asked while a connection's peer pairs.
        var questions: [ConnectionID: Task<Void, Never>] = [:]
        var signalStrengths: [ConnectionID: [Waiter<Int>]] = [:]
        var channels: [CreditChannelID: HCIL2CAPChannel] = [:]
        var requests = HeldRequests<ServerRequestID>()
        /// The content of the file beside the bonds.
        var storedPeers = KnownPeers()
        /// Whether it will be written soon.
        var isStoringPeers = false

        init(_ name: String, _ host: consuming LEHost) {
            self.name = name
            self.host = host
        }

        /// Who keeps the channel open.
        enum Use {
            case held
            /// Open roles alone: the adapter's last reference is gone.
            case abandoned
            /// Connections that have not ended yet.
            case closing
        }

        /// The NIO channel to the controller.
        enum Line {
            case none
            case open(any Channel)
            /// Keeps the event loop reachable.
            case lost(any Channel)
        }

        var channel: (any Channel)? { if case .open(let channel) = line { channel } else { nil } }

        /// Which role advertises: one at a time.
        enum Advertising {
            case off
            case starting(owner: UInt64, Waiter<Void>)
            case on(owner: UInt64)

            var owner: UInt64? {
                switch self {
                case .off: nil
                case .starting(let owner, _), .on(let owner): owner
                }
            }

            /// Returns the waiter of an advertisement that gives way to another one.
            mutating func start(_ owner: UInt64, _ waiter: Waiter<Void>) -> Waiter<Void>? {
                let former: Waiter<Void>? = if case .starting(_, let former) = self { former } else { nil }
                self = .starting(owner: owner, waiter)
                return former
            }

            /// It is on the air. Returns the waiter to tell.
            mutating func didStart() -> Waiter<Void>? {
                guard case .starting(let owner, let waiter) = self else { return nil }
                self = .on(owner: owner)
                return waiter
            }

            /// It has ended. Returns what it was.
            mutating func end() -> Advertising {
                defer { self = .off }
                return self
            }
        }

        enum Operation {
            case waiter(Waiter<ClientResult>)
            case write(HCIConnection, AttributeID)
            case openChannel(Waiter<HCIL2CAPChannel>)
        }

        struct PeripheralOwner {
            let id: UInt64
            let events: any PeripheralRoleEvents
            var services: [ServiceHandles] = []
            var psms: Set<UInt16> = []

            func published(_ handle: UInt16) -> Bool {
                services.contains { $0.service <= handle && handle <= $0.end }
            }
        }

        struct CentralOwner {
            let events: any CentralRoleEvents
            var scan: Scan<Address>?
        }

        /// The last advertisement of a peer.
        struct Heard {
            var advertisement: [UInt8] = []
            var scanResponse: [UInt8] = []
            var isConnectable = false
            var count = 0

            var data: AdvertisementData {
                AdvertisementData(parsing: advertisement, scanResponse: scanResponse, isConnectable: isConnectable)
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
            /// Who asked for something after the end, before it was told.
            var endWaiters: [@Sendable (BluetoothError) -> Void] = []
            /// Values that came before anybody here subscribed, at most 1024: a bonded server keeps subscriptions.
            private var unclaimed: [(handle: UInt16, value: [UInt8])] = []
            private var claimed: Set<UInt16> = []

            init(peer: PeerID, isCentral: Bool) {
                self.peer = peer
                self.isCentral = isCentral
            }

            /// Whether an owner here has subscribed to a characteristic, or has ended its subscription.
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
        /// the same under all its private addresses.
        mutating func peerID(_ address: Address) -> PeerID {
            let lasting = host.resolve(address)
            if let known = peers.name(of: lasting) { return known }
            let held =
                links.keys.compactMap { host.peer(of: $0) } + attempts.keys
                + host.bonds.flatMap { [$0.peer, $0.lastingAddress] }
            let (name, forgotten) = peers.name(lasting, held: Set(held))
            for address in forgotten {
                heard[address] = nil
                centrals.update { $0.scan?.forget(address) }
            }
            return name
        }

        /// Who is at the other end of a connection, while there is one: proven where the link is encrypted with the key of a
        /// bond, which goes by the address that the peer calls its own.
        func identity(_ id: ConnectionID) -> PeerIdentity? {
            let lasting = host.identityAddress(of: id)
            guard let address = lasting ?? host.peer(of: id) else { return nil }
            return PeerIdentity(address, isProven: host.security(of: id)?.isBonded == true, lasts: lasting != nil)
        }

        /// Who an advertiser says it is.
        mutating func claimedIdentity(_ address: Address) -> PeerIdentity {
            let lasting = host.resolve(address)
            let isBonds = lasting != address || host.bonds.contains { $0.peer == address }
            return PeerIdentity(lasting, isProven: false, lasts: isBonds)
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
            let id = ConnectionID(rawValue: UInt32(truncatingIfNeeded: central.connection))
            guard self.central(id) == central, links[id]?.isEnding == false else { return nil }
            return id
        }

        /// The peer of a connection as a central, as peripheral roles name it.
        func central(_ id: ConnectionID) -> ConnectedCentral? {
            links[id].map { ConnectedCentral(peer: $0.peer, connection: UInt64(id.rawValue)) }
        }

        /// A peer's connection, the first if it has two, while it lasts and this side has not ended it.
        func connection(_ peer: PeerID) -> ConnectionID? {
            links.filter { $0.value.peer == peer && !$0.value.isEnding }.keys.min { $0.rawValue < $1.rawValue }
        }

        mutating func makeOwnerID() -> UInt64 {
            lastOwner += 1
            return lastOwner
        }

        /// Who published the characteristic with this handle.
        func owner(of handle: UInt16) -> PeripheralOwner? { peripherals.all.first { $0.published(handle) } }

        /// Ends a connection for an owner.
        mutating func disconnect(_ id: ConnectionID, at now: Int64) {
            links[id]?.isEnding = true
            host.disconnect(id, at: now)
        }

        func requirePower() throws(BluetoothError) {
            guard case .ready = host.state else { throw .notPoweredOn(name, adapterState) }
        }
    }

    extension PeerIdentity {
        /// - Parameter lasts: whether the address names a bond, so that it lasts also where it is a private one.
        init(_ address: Address, isProven: Bool, lasts: Bool = false) {
            let identity = PeerIdentity(
                bluetoothAddress: address.value, isRandom: address.kind == .random, isProven: isProven)
            self =
                lasts && identity.certainty == .connection
                ? PeerIdentity(identity.name, certainty: .address) : identity
        }
    }

    /// A host's words in the seam's.
    extension BluetoothError {
        /// - Parameter isWanted: whether this side has asked for the end. Then that is the reason, also where the peer has gone and
        ///   does not confirm it, or ends the connection too.
        init(_ reason: HCIErrorCode, isWanted: Bool = false) {
            let code: Code =
                switch reason {
                case _ where isWanted: .disconnectedLocally
                case .terminatedByLocalHost, .authenticationFailure: .disconnectedLocally
                case .failedToBeEstablished: .connectionFailed
                case .remoteUserTerminated, .remoteLowResources, .remotePowerOff: .disconnectedByPeer
                default: .connectionTimeout
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
            case .bearerClosed:
                self.init(
                    .att(.unlikelyError),
                    "The peer closed the channel of the request before it answered. It may have written, or not.")
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
