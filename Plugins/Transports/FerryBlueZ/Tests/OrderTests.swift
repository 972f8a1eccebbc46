#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerrySequenced
    import Glibc
    import TestSupport
    import Testing

    /// BlueZ 5.66 with its default of three ATT bearers, over which it does not keep the order of values.
    @Suite(
        .tags(.adapter), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(15)))
    struct OrderTests {
        private static let isLong = getenv("FERRY_MESSAGES") != nil

        /// What mends the order, and what does not: 120 messages of each each way, or `FERRY_MESSAGES` of each kind together.
        private static let mending: [MessageTests.Mix] =
            isLong ? [.sequencedBytes, .sequencedPropertyListZlib] : [.sequencedBytes]
        private static let plain = MessageTests.Mix.allCases.filter {
            isLong ? !$0.rawValue.hasPrefix("sequenced") : [.lengthJSON, .endOfMessageXML].contains($0)
        }

        private static func sizes(_ mixes: [MessageTests.Mix]) -> [Int] {
            Traffic.sizes(0..<(isLong ? max(1, MessageTests.count / mixes.count) : 120))
        }

        /// That is noticed, and said; one value at a time is on its way then, and everything arrives.
        @Test(arguments: plain)
        func itIsNoticedAndTheOrderKept(_ mix: MessageTests.Mix) async throws {
            let (serving, asking) = try await Machine.adapters()
            for adapter in [serving, asking] {
                #expect(try #require(adapter.advice).contains("Channels = 1"))
            }
            let links = try await Links.open(serving, asking)
            try await mix.cross(links, Self.sizes(Self.plain))
            try await links.end()
        }

        /// The sequenced framing puts chunks back into their order, however many are on their way.
        @Test(arguments: mending)
        func theSequencedFramingMendsTheOrder(_ mix: MessageTests.Mix) async throws {
            var configuration = BlueZConfiguration()
            configuration.allowsReordering = true
            let (serving, asking) = try await Machine.open(configuration)
            #expect(serving.advice == nil)
            let links = try await Links.open(serving, asking)
            try await mix.cross(links, Self.sizes(Self.mending))
            try await links.end()
            serving.close()
            asking.close()
        }
    }
#endif
