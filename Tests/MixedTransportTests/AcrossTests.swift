#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Which of the two processes this is, if any.
    private enum Side: String {
        case guest, outside

        static let own = ProcessInfo.processInfo.environment["FERRY_ACROSS"].flatMap(Side.init)
    }

    /// Ferry on bluetoothd in the virtual machine, against the hosts outside. All controllers are outside, too; a port brings
    /// one of them to the guest's kernel.
    ///
    /// Two processes, one of them in the guest, run these tests in the same order. Each has a service of its own, so that
    /// the two meet on the air and need not agree otherwise.
    @Suite(
        .tags(.adapter), .enabled(if: Side.own != nil, "needs two processes: scripts/interop across"), .serialized,
        .timeLimit(.minutes(5)))
    struct AcrossTests {
        @Test(arguments: Way.allCases, Array(zip(Mix.allCases, 10...)))
        func messagesOfMixedSizesCross(way: Way, mix: (Mix, UInt128)) async throws {
            let (mix, number) = mix
            let layout = mix.layout(Layout.uuid(way == .hostServes ? number : number + 10))
            let host = Side.own == .outside ? try await Guest.host() : nil
            defer { host?.close() }
            let transport: GATTTransport
            if let host {
                transport = GATTTransport(adapter: host, configuration: layout)
            } else {
                transport = GATTTransport(adapter: try await Guest.bluez(), configuration: layout)
            }
            guard (way == .hostServes) == (Side.own == .outside) else {
                let link = try await transport.connect(timeout: .unreached)
                return try await mix.exchange(over: link, isCentral: true)
            }
            let listener = try await transport.listen()
            defer { listener.close() }
            var incoming = listener.links.makeAsyncIterator()
            try await mix.exchange(over: try #require(await incoming.next()), isCentral: false)
        }

        /// Where Bumble's host finds a controller.
        private static var transport: String {
            "tcp-client:" + Guest.channel.split(separator: ":").dropFirst(2).joined(separator: ":")
        }

        @Test func bluezServesACardToBumble() async throws {
            if Side.own == .guest { return try await Bumble.serve(on: try await Guest.bluez()) }
            try await Bumble.hasTheCard(try Bumble.central(Self.transport))
        }

        @Test func bluezFetchesACardFromBumble() async throws {
            if Side.own == .guest { return try await Bumble.fetch(with: try await Guest.bluez()) }
            try await Bumble.isDone(try Bumble.peripheral(Self.transport))
        }
    }
#endif
