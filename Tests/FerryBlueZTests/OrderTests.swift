#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import Glibc
    import Testing

    /// BlueZ 5.66 with its default of three ATT bearers, over which it reorders notifications.
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(5)))
    struct OrderTests {
        /// How many messages each mix sends each way: 120, or half of `FERRY_MESSAGES`.
        private static let count = getenv("FERRY_MESSAGES") == nil ? 120 : max(1, MessageTests.count / 2)

        private static let mixes: [MessageTests.Mix] =
            getenv("FERRY_MESSAGES") == nil ? [.sequencedBytes] : [.sequencedBytes, .sequencedPropertyListZlib]

        /// The sequenced framing puts chunks back into their order: everything arrives.
        @Test(arguments: mixes)
        func theSequencedFramingMendsTheOrder(_ mix: MessageTests.Mix) async throws {
            let links = try await Links.open()
            try await mix.cross(links, Traffic.sizes(0..<Self.count))
            try await links.end()
        }

        /// Other framings cannot. With one value at a time on its way there is nothing to put out of order.
        @Test func oneValueAtATimeKeepsTheOrder() async throws {
            var configuration = BlueZConfiguration()
            configuration.window = 1
            let serving = try await BlueZAdapter.open("bluez:hci0", configuration: configuration)
            let asking = try await BlueZAdapter.open("bluez:hci1", configuration: configuration)
            let links = try await Links.open(serving, asking)
            try await Traffic.cross(links, Traffic.sizes(0..<50), BytesCodec(), LengthPrefixFraming())
            try await links.end()
            serving.close()
            asking.close()
        }
    }
#endif
