#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import Glibc
    import Testing

    /// BlueZ 5.66 with its default of three ATT bearers, over which it does not keep the order of values.
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(15)))
    struct OrderTests {
        /// How many messages each mix sends each way: 120, or half of `FERRY_MESSAGES`.
        private static let count = getenv("FERRY_MESSAGES") == nil ? 120 : max(1, MessageTests.count / 2)

        /// What does not mend the order, and how many messages of it.
        private static let plain: [MessageTests.Mix] =
            getenv("FERRY_MESSAGES") == nil
            ? [.lengthJSON, .endOfMessageXML]
            : MessageTests.Mix.allCases.filter { !$0.rawValue.hasPrefix("sequenced") }
        private static let plainCount = getenv("FERRY_MESSAGES") == nil ? count : max(1, MessageTests.count / plain.count)

        private static let mixes: [MessageTests.Mix] =
            getenv("FERRY_MESSAGES") == nil ? [.sequencedBytes] : [.sequencedBytes, .sequencedPropertyListZlib]

        /// That is noticed, and said; one value at a time is on its way then, and everything arrives.
        @Test(arguments: plain)
        func itIsNoticedAndTheOrderKept(_ mix: MessageTests.Mix) async throws {
            let (serving, asking) = try await Machine.adapters()
            for adapter in [serving, asking] {
                #expect(try #require(adapter.advice).contains("Channels = 1"))
            }
            let links = try await Links.open(serving, asking)
            try await mix.cross(links, Traffic.sizes(0..<Self.plainCount))
            try await links.end()
        }

        /// The sequenced framing puts chunks back into their order, however many are on their way.
        @Test(arguments: mixes)
        func theSequencedFramingMendsTheOrder(_ mix: MessageTests.Mix) async throws {
            var configuration = BlueZConfiguration()
            configuration.allowsReordering = true
            let serving = try await BlueZAdapter.open("bluez:hci0", configuration: configuration)
            let asking = try await BlueZAdapter.open("bluez:hci1", configuration: configuration)
            #expect(serving.advice == nil)
            let links = try await Links.open(serving, asking)
            try await mix.cross(links, Traffic.sizes(0..<Self.count))
            try await links.end()
            serving.close()
            asking.close()
        }
    }
#endif
