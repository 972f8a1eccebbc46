#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Several attempts at once that are called off at any moment, as a gateway's are whose leases are over.
    @Suite(.tags(.adapter, .recovery), .timeLimit(.minutes(5))) struct CancelledConnectTests {
        @Test func whatIsCalledOffLeavesNoConnection() async throws {
            let folder = Interop.folder()
            let peers = 5
            let air = try Interop.Script(
                executable: Interop.program("virtual-controllers"), ["--count", "\(peers + 1)", "unix:\(folder)"])
            defer { air.stop() }
            #expect(await air.hasPrinted("Controller \(peers) serves unix:\(folder)\(peers)."), "\(air.output)")
            let central = try await HCIAdapter.open(.unix(path: folder + "0"))
            var listeners: [LinkListener] = []
            var adapters: [HCIAdapter] = []
            for number in 1...peers {
                let adapter = try await HCIAdapter.open(.unix(path: folder + "\(number)"))
                let transport = GATTTransport(adapter: adapter, configuration: try layout(number))
                adapters.append(adapter)
                listeners.append(try await transport.listen())
            }
            let serving = listeners.map { listener in
                Task {
                    for await link in listener.links {
                        Task {
                            let channel = try MessageChannel(over: link, codec: BytesCodec())
                            for try await _ in channel.messages {}
                        }
                    }
                }
            }
            var known: [(PeerIdentity, GATTTransport)] = []
            for number in 1...peers {
                let transport = GATTTransport(adapter: central, configuration: try layout(number))
                let link = try await transport.connect(timeout: .unreached)
                known.append((link.peer, transport))
                link.close()
            }
            func count(_ words: [String]) -> Int {
                air.lines.count { line in words.contains { line.contains($0) } }
            }
            let rounds = ProcessInfo.processInfo.environment["FERRY_CANCELS"].flatMap { Int($0) } ?? 20
            for round in 0..<rounds {
                let tasks = known.map { identity, transport in
                    Task {
                        let link = try await transport.connect(to: identity, timeout: .unreached)
                        let channel = try MessageChannel(over: link, codec: BytesCodec())
                        defer { channel.close() }
                        for try await _ in channel.messages {}
                    }
                }
                try await Task.sleep(for: .milliseconds(.random(in: 0...80)))
                for task in tasks { task.cancel() }
                for task in tasks { _ = await task.result }
                try await until("the end of each connection of round \(round): \(air.output.suffix(1500))") {
                    count([" is connected to "]) == count([" are disconnected", " are lost", " are ended"])
                }
            }
            for listener in listeners { listener.close() }
            for task in serving { task.cancel() }
            #expect(!air.lines.contains { $0.hasPrefix("!!") }, "\(air.output)")
        }

        private func layout(_ number: Int) throws -> GATTConfiguration {
            try GATTConfiguration(service: BluetoothUUID("FE0\(number)"), characteristic: BluetoothUUID("FE1\(number)"))
        }
    }
#endif
