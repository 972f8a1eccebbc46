#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryJSON
    import FerryPropertyList
    import FerrySequenced
    import FerryTesting
    import FerryZlib
    import Glibc
    import TestSupport
    import Testing

    /// 2 000 messages each way between two adapters of a real bluetoothd: all framings, codecs and compression.
    @Suite(
        .tags(.adapter), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(10)))
    struct MessageTests {
        enum Mix: String, CaseIterable, Sendable {
            case lengthJSON, lengthPropertyListZlib, endOfMessageXML, endOfMessageJSONZlib, endOfMessageText
            case sequencedBytes, sequencedJSON, sequencedPropertyListZlib

            func cross(_ links: Links, _ sizes: [Int]) async throws {
                typealias Record = Traffic.Record
                let length = LengthPrefixFraming(), sequenced = SequencedFraming()
                let marker = try EndOfMessageFraming(chunkSize: nil)
                let binary = PropertyListCodec<Record>(), zlib = ZlibCompression()
                switch self {
                case .lengthJSON: try await Traffic.cross(links, sizes, JSONCodec<Record>(), length)
                case .lengthPropertyListZlib: try await Traffic.cross(links, sizes, binary, length, zlib)
                case .endOfMessageXML:
                    try await Traffic.cross(links, sizes, PropertyListCodec<Record>(format: .xml), marker)
                case .endOfMessageJSONZlib: try await Traffic.cross(links, sizes, JSONCodec<Record>(), marker, zlib)
                case .endOfMessageText:
                    // As the well-known sample has it: 20 bytes at a time.
                    try await Traffic.cross(links, sizes.map { min($0, 2000) }, TextCodec(), EndOfMessageFraming())
                case .sequencedBytes: try await Traffic.cross(links, sizes, BytesCodec(), sequenced)
                case .sequencedJSON: try await Traffic.cross(links, sizes, JSONCodec<Record>(), sequenced)
                case .sequencedPropertyListZlib: try await Traffic.cross(links, sizes, binary, sequenced, zlib)
                }
            }
        }

        /// How many messages all mixes together send each way: 2 000, or `FERRY_MESSAGES`.
        static let count = getenv("FERRY_MESSAGES").flatMap { Int(String(cString: $0)) } ?? 2000

        @Test(arguments: Array(Mix.allCases.enumerated()))
        func messagesCrossBothWays(_ part: Int, _ mix: Mix) async throws {
            // A configuration that says so is believed: there is one ATT bearer.
            #expect(try await Machine.adapters().peripheral.advice == nil)
            let links = try await Links.open()
            let count = max(1, Self.count / Mix.allCases.count)
            try await mix.cross(links, Traffic.sizes(part * count..<(part + 1) * count))
            try await links.end()
        }

        /// bluetoothd drops what a subscription's socket does not hold, some 160 values of 512 bytes.
        @Test(.timeLimit(.minutes(5))) func aSlowReceiverLosesNothing() async throws {
            let links = try await Links.open()
            let meter = Meter(from: links.peripheral, to: links.central, delay: 3000)
            let seconds = try await meter.send(2000)
            #expect(seconds > 2000 * 0.003)
            try await links.end()
        }
    }
#endif
