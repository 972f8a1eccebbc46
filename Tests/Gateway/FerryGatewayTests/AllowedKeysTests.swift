#if NATS && Records
    import Ferry
    import FerryNATS
    import FerryRecords
    import Foundation
    import GatewayRig
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import RecordsWorker

    /// The list of keys that gateways share, in a bucket of a real server.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(5)))
    struct AllowedKeysTests {
        private let victim = "wnhcmk2778an1jdpc99zt7mv2d886nf7"
        private let mallory = "0000000000000000000000000000000a"

        private func keys(_ server: NATSServer, strangers: Bool = false) -> AllowedKeys {
            var servers = NATSConfiguration(servers: [server.url])
            servers.connectTimeout = .unreached
            servers.requestTimeout = .unreached
            servers.reconnectDelay = .milliseconds(20)
            var configuration = AllowedKeys.Configuration(servers: servers, bucket: "keys")
            configuration.acceptsStrangers = strangers
            return AllowedKeys(configuration)
        }

        private func key(_ fingerprint: String) -> PeerIdentity { PeerIdentity(fingerprint, certainty: .key) }

        /// A channel of a gateway to a peer that has proven a key, and the peer's end.
        private func channels(_ fingerprint: String) throws -> (MessageChannel<[UInt8], [UInt8]>, any Link) {
            let (near, far) = PacketLink.pair(
                near: PeerIdentity("gateway", certainty: .connection), far: key(fingerprint))
            return (try MessageChannel(over: near, codec: BytesCodec()), far)
        }

        @Test func aRevokedKeyIsRefusedByEveryGateway() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await server.connect()
            let lists = [keys(server), keys(server)]
            try await lists[0].set(.allowed(name: "press-7"), of: victim, on: connection)
            var stores: [RecordStore] = []
            for (number, list) in lists.enumerated() {
                var configuration = RecordStore.Configuration()
                configuration.acceptsStrangers = false
                let path = server.folder.appending(path: "gateway\(number)").path()
                let store = try RecordStore.open(path, configuration: configuration)
                store.decideTrust { list.trust($0) }
                stores.append(store)
            }
            let running = zip(lists, stores).map { list, store in
                Task { try await list.run { store.decideTrustAgain() } }
            }
            for list in lists { try await until("the list is read") { list.trust(key(victim)) == .trusted } }
            #expect(lists[1].trust(key(mallory)) == .refused("its key is not on the list of allowed keys."))
            #expect(lists[1].trust(PeerIdentity("tcp:1", certainty: .connection)) == .stranger)

            // A peer is taken at both, though neither has met it, and stays.
            let peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            var exchanges: [Task<RecordStore.Summary, any Error>] = []
            for store in stores {
                try? await peer.forgetIdentity(of: "gateway")
                let (near, far) = try channels(victim)
                exchanges.append(Task { try await store.exchange(over: near) })
                try await peer.append([1], to: "gateway")
                let sending = Task {
                    try await peer.exchange(over: try MessageChannel(over: far, codec: BytesCodec()), with: "gateway")
                }
                try await peer.drained("gateway", within: .unreached)
                // The next gateway's exchange ends this side's older one; the gateway's goes on until its link ends.
                if store.path != stores.last?.path {
                    sending.cancel()
                    _ = try? await sending.value
                    _ = try? await exchanges.removeLast().value
                }
            }
            let clock = ContinuousClock()
            let start = clock.now
            try await lists[0].set(.revoked(name: "press-7"), of: victim, on: connection)
            // The exchange that runs is ended, for the reason.
            let error = await #expect(throws: FerryError.self) { try await exchanges[0].value }
            #expect(error?.code == .strangePeer && error?.message.contains("its key was revoked") == true)
            for list in lists {
                try await until("the list is read") { list.trust(key(victim)) == .refused("its key was revoked.") }
            }
            // What Gateway.md and Trust.md state, for all gateways.
            let stated = AllowedKeys.Configuration(servers: NATSConfiguration(servers: []), bucket: "").interval
            #expect(stated == .seconds(5) && clock.now - start < stated)
            let (near, far) = try channels(victim)
            async let refused = peer.exchange(over: try MessageChannel(over: far, codec: BytesCodec()), with: "gateway")
            await #expect(throws: FerryError.self) { try await stores[0].exchange(over: near) }
            _ = try? await refused
            #expect(
                try await lists[0].entries(on: connection) == [
                    .init(fingerprint: victim, standing: .revoked(name: "press-7"))
                ])
            try await lists[0].remove(victim, on: connection)
            #expect(try await lists[0].entries(on: connection).isEmpty)
            for task in running { task.cancel() }
            for task in running {
                let error = await #expect(throws: FerryError.self) { try await task.value }
                #expect(error?.code == .cancelled)
            }
            for store in stores + [peer] { await store.close() }
        }

        /// A list that was never read refuses nobody whom the store knows, and lets in nobody else.
        @Test func withoutAServerTheStoreKnowsWhom() async throws {
            let list = AllowedKeys(.init(servers: NATSConfiguration(servers: ["nats://127.0.0.1:1"]), bucket: "keys"))
            #expect(list.trust(key(victim)) == .stranger)
            #expect(list.trust(PeerIdentity("a", certainty: .bond)) == .trusted)
        }

        @Test func onlyFingerprintsAreKeysOfTheList() throws {
            try AllowedKeys.check(victim)
            for text in ["", "x", victim.uppercased(), victim + "0", "../../../../../../../../../../../..", "*"] {
                #expect(throws: FerryError.self) { try AllowedKeys.check(text) }
            }
            #expect(AllowedKeys.standing(Array("allowed press 7".utf8)) == .allowed(name: "press 7"))
            #expect(AllowedKeys.standing(Array("revoked".utf8)) == .revoked(name: ""))
            for bytes in [[], [0xFF], Array("ALLOWED x".utf8), [UInt8](repeating: 0x61, count: 300)] {
                #expect(AllowedKeys.standing(bytes) == nil)
            }
        }
    }
#endif
