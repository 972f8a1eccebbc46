#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryFleet
    import FerryGateway
    import FerryLoopback
    import FerryNATS
    import FerryRecords
    import Foundation
    import TestSupport

    /// A server, and a virtual radio with a peer that exchanges with whichever gateway comes.
    struct FleetAir {
        let server: NATSServer
        let peer: RecordStore
        private let radio = LoopbackRadio()
        private let layout: GATTConfiguration
        private let listener: LinkListener
        private let serving: Task<Void, any Error>

        init() async throws {
            server = try NATSServer()
            try await server.start()
            layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
            serving = Task { [peer, listener] in
                for await link in listener.links {
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    try? await peer.forgetIdentity(of: "collector")
                    _ = try? await peer.exchange(over: channel, with: "collector")
                }
            }
        }

        /// A gateway of the fleet. It takes records of 1000 bytes at most; one that had this name before has left it its store.
        func gateway(
            _ name: String,
            _ change: (inout PeerRounds.Configuration, inout Gateway.Configuration) -> Void = { _, _ in }
        ) throws -> Whole {
            var configuration = RecordStore.Configuration()
            configuration.greeting = configuration.patience
            configuration.largestRecord = 1000
            let store = try RecordStore.open(
                server.folder.appending(path: name).path(), configuration: configuration)
            return try Whole(.init(short: name, server), store, radio.makeAdapter(), layout, change)
        }

        /// The gateways are ended before.
        func end() async {
            listener.close()
            serving.cancel()
            _ = await serving.result
            await peer.close()
        }

        /// A gateway with all its parts.
        final class Whole: Sendable {
            let keeper: LeaseKeeper
            let store: RecordStore
            private let hearing: RadioHearing
            private let task: Task<Void, any Error>

            fileprivate init(
                _ leases: LeaseKeeper.Configuration, _ store: RecordStore, _ adapter: LoopbackAdapter,
                _ layout: GATTConfiguration,
                _ change: (inout PeerRounds.Configuration, inout Gateway.Configuration) -> Void
            ) throws {
                let keeper = try LeaseKeeper(leases)
                let transport = GATTTransport(adapter: adapter, configuration: layout)
                var bounds = PeerRounds.Configuration()
                bounds.interval = .milliseconds(50)
                bounds.idle = .milliseconds(200)
                bounds.connectTimeout = .unreached
                bounds.roomInterval = .seconds(2)
                hearing = RadioHearing(adapter, layout.service) { [weak keeper] in keeper?.heard($0, signal: $1) }
                var configuration = Gateway.Configuration(
                    servers: leases.servers.servers, name: leases.name, stream: "records")
                configuration.servers = leases.servers
                configuration.servers.requestTimeout = .seconds(30)
                configuration.stream.maximumBytes = 1 << 24
                configuration.retention = .milliseconds(500)
                configuration.lookInterval = .milliseconds(50)
                change(&bounds, &configuration)
                let rounds = try PeerRounds(store, keeper, configuration: bounds) {
                    (peer, timeout) throws(FerryError) in
                    guard let identity = PeerIdentity(peer) else { throw FerryError(.peerNotFound, peer) }
                    return try await transport.connect(to: identity, timeout: timeout)
                }
                let gateway = try Gateway(store, configuration) { keeper.token(of: $0) }
                (self.keeper, self.store) = (keeper, store)
                task = Task {
                    async let publishing: Void = gateway.run()
                    async let owning: Void = keeper.run(rounds)
                    _ = try await (publishing, owning)
                }
            }

            func end() async {
                task.cancel()
                _ = await task.result
                hearing.close()
                await store.close()
            }
        }
    }
#endif
