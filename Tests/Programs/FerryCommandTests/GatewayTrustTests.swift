#if NATS && Records && Seal
    import ArgumentParser
    import Ferry
    import FerrySeal
    import FerryTransports
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand
    @testable import FerryRecords

    /// Whom a gateway lets in.
    @Suite(.tags(.program, .records, .hostility), .timeLimit(.minutes(5))) struct GatewayTrustTests {
        @Test func theFileAndTheOptionsSayWhomItTrusts() throws {
            let file = try GatewaySettings.read(
                Data(#"{"trust": {"seal": "always", "identity": "k", "trusted": "t"}}"#.utf8), "file")
            let trust = try file.trustRequest()
            #expect(trust.sealing == .always && !trust.showsCode)
            #expect(trust.identity == "k" && trust.trusted == "t")
            let command = try GatewayCommand.parse(["--plain", "--trusted", "list"])
            #expect(try command.settings().trust == TrustSettings(seal: "never", trusted: "list"))
            #expect(try command.settings().trustRequest().sealing == .never)
            let error = #expect(throws: (any Error).self) { try GatewayCommand.parse(["--code", "x"]) }
            #expect(error.map { GatewayCommand.fullMessage(for: $0).contains("ferry invite") } == true)
        }

        private func sender(_ folder: String, _ name: String, _ store: RecordStore) throws -> RecordsSender {
            let options = try TransferOptions.parse([
                "--transport", "unix:\(folder)s", "--sealed", "--timeout", "1", "--identity", "\(folder)\(name)",
                "--trusted", "\(folder)\(name)-trusts",
            ])
            return RecordsSender(
                store, to: "gateway", stream: "", asLines: false, options, listens: false, isFleet: false, inbox: nil,
                TransferReport(verb: "Sent", isJSON: false, isQuiet: true))
        }

        /// The hub of a gateway over a sealed transport: a stranger's records stay with the stranger, and the key is the peer's name.
        @Test func onlyTrustedKeysBringRecords() async throws {
            let folder =
                FileManager.default.temporaryDirectory.appendingPathComponent("trust-\(UUID().uuidString.prefix(8))")
                .path
                + "/"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: folder) }
            var request = TrustRequest()
            request.sealing = .always
            (request.identity, request.trusted) = (folder + "gateway", folder + "gateway-trusts")
            request.showsCode = false
            let own = try TrustFolder(identity: folder + "gateway").key { _ in }.publicKey
            var keys: [String: String] = [:]
            for name in ["friend", "stranger"] {
                let key = try TrustFolder(identity: folder + name).key { _ in }.publicKey
                keys[name] = "key:\(key.fingerprint)"
                _ = try TrustFolder(trusted: folder + name + "-trusts").trust(own, name: "gateway")
                if name == "friend" { _ = try TrustFolder(trusted: folder + "gateway-trusts").trust(key, name: name) }
            }
            let store = try RecordStore.open(folder + "in")
            let transport = try TransferOptions.open(
                try NamedTransport.parse("unix:\(folder)s", program: "ferry"), "gateway", request)
            let hub = try RecordHub(
                store, over: transport,
                channel: { link throws(FerryError) in try RecordsChannel.open(over: link) { $0 } })
            let running = Task { try await hub.run() }

            let (bad, good) = (try RecordStore.open(folder + "bad"), try RecordStore.open(folder + "good"))
            try await bad.append([6, 6, 6], to: "gateway")
            try await good.append([1], to: "gateway")
            let refusal = await #expect(throws: (any Error).self) { try await sender(folder, "stranger", bad).run([]) }
            #expect(
                refusal.map { explanation(of: $0).contains("does not accept this side's key") } == true,
                "\(refusal as Any)")
            #expect(try await bad.waiting().map(\.count) == [1])
            try await sender(folder, "friend", good).run([])
            #expect(try await good.waiting().map(\.count) == [0])
            let peers = try await store.peers()
            #expect(peers.map(\.name) == [keys["friend"]] && peers.first?.certainty == .key, "\(peers)")
            running.cancel()
            _ = await running.result
            for store in [store, bad, good] { await store.close() }
        }
    }
#endif
