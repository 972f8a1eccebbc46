#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryFleet
    import FerryGateway
    import FerryRecords
    import FerryTransports
    import Foundation

    /// A gateway of a fleet: it hears peers, owns some by leases, and visits those.
    struct GatewayFleet: Sendable {
        let keeper: LeaseKeeper
        let rounds: PeerRounds
        /// Peers that are named in the configuration: they count as heard all the time, all equally well.
        private let named: [String]
        private let hearing: RadioHearing?

        /// - Parameters:
        ///   - transport: peers are heard and reached over it; nil where all are named.
        ///   - named: names and transports of peers that listen there.
        ///   - trust: whose keys are trusted.
        ///   - log: the log.
        init(
            _ store: RecordStore, _ configuration: LeaseKeeper.Configuration, _ bounds: PeerRounds.Configuration,
            over transport: NamedTransport?, named: [String: NamedTransport], _ trust: TrustRequest,
            _ log: GatewayLog
        ) async throws(FerryError) {
            let keeper = try LeaseKeeper(configuration, observer: log.observer)
            var reach: [String: any Transport] = [:]
            for (name, transport) in named { reach[name] = try TransferOptions.open(transport, "gateway", trust) }
            var radio: (any Transport)?
            var hearing: RadioHearing?
            if let transport {
                guard case .adapters(let make) = transport.opening else {
                    throw FerryError(
                        .invalidConfiguration,
                        "With --fleet a gateway looks for its peers, which \(transport) cannot. Name a radio, such as bluez; or "
                            + "name the peers and where each listens, with peers in the configuration, and no transport."
                    )
                }
                var options = RadioOptions()
                options.onAdvice = { note($0) }
                let adapter = try await make(options)("gateway").adapter
                radio = GATTTransport(adapter: adapter, configuration: TransferOptions.layout)
                hearing = RadioHearing(adapter, TransferOptions.layout.service) { [weak keeper] peer, signal in
                    keeper?.heard(peer, signal: signal)
                }
            }
            let (reached, other) = (reach, radio)
            rounds = try PeerRounds(
                store, keeper, configuration: bounds, observer: log.observer,
                channel: { link throws(FerryError) in try RecordsChannel.open(over: link) { log.watch($0) } }
            ) { (peer, timeout) throws(FerryError) in
                if let transport = reached[peer] { return try await transport.connect(timeout: timeout) }
                guard let other, let identity = PeerIdentity(peer) else {
                    throw FerryError(.peerNotFound, "Nothing says how peer \(peer) is reached.")
                }
                return try await other.connect(to: identity, timeout: timeout)
            }
            self.keeper = keeper
            self.named = named.keys.sorted()
            self.hearing = hearing
        }

        /// Until the task is cancelled.
        ///
        /// - Parameter downlink: carries messages for the peers that it owns.
        func run(with downlink: Downlink?) async throws {
            defer { hearing?.close() }
            let visitors = PeerVisitors([rounds] + (downlink.map { [$0] } ?? []))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    while true {
                        for peer in named { keeper.heard(peer, signal: -60) }
                        try await Task.sleep(for: .seconds(1))
                    }
                }
                group.addTask { try await keeper.run(visitors) }
                // Cancelled or not, the keeper gives its leases up before this returns.
                defer { group.cancelAll() }
                while try await group.next() != nil {}
            }
        }
    }
#endif
