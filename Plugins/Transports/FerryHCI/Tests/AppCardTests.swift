#if HCI && canImport(CoreBluetoothRig)
    import CoreBluetoothRig
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerryLoopback
    import TestSupport
    import Testing

    @testable import BusinessCard

    /// Business cards between an app's adapter and the others, in both roles.
    @Suite(.tags(.adapter, .coreBluetooth), .serialized, .timeLimit(.minutes(5))) struct AppCardTests {
        enum Apps: CaseIterable { case serves, asks, both }

        @Test(arguments: Apps.allCases) func cardsCrossTheVirtualRadio(_ apps: Apps) async throws {
            let radio = LoopbackRadio()
            try await exchange(apps, radio.makeAdapter(), radio.makeAdapter())
        }

        @Test(arguments: Apps.allCases) func cardsCrossTwoControllers(_ apps: Apps) async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let near = try await HCIAdapter.open(radio.channels[0])
            let far = try await HCIAdapter.open(radio.channels[1])
            defer {
                near.close()
                far.close()
            }
            try await exchange(apps, near, far)
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        /// One card by each framing.
        private func exchange(_ apps: Apps, _ near: any BluetoothAdapter, _ far: any BluetoothAdapter) async throws {
            let layout = GATTConfiguration(
                service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
            let serving: any BluetoothAdapter = apps == .asks ? near : overCoreBluetooth(near)
            let asking: any BluetoothAdapter = apps == .serves ? far : overCoreBluetooth(far)
            let listener = try await GATTTransport(adapter: serving, configuration: layout).listen()
            defer { listener.close() }
            var links = listener.links.makeAsyncIterator()
            for framing in FramingChoice.allCases {
                let console = Console(showsBar: false) { _ in }
                let recipe = Recipe(framing: framing, codec: .json)
                let link = try await GATTTransport(adapter: asking, configuration: layout).connect(timeout: .unreached)
                async let arrival = Party(role: "client", recipe: recipe, console: console).receive(over: link)
                let served = try #require(await links.next())
                let delivery = try await Party(role: "server", recipe: recipe, console: console).handOver(
                    .example, over: served)
                #expect(try await arrival.card == .example, "\(framing)")
                #expect(delivery.messageBytes > 0)
            }
        }
    }
#endif
