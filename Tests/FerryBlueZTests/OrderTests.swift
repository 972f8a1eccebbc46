#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryZlib
    import Testing

    /// BlueZ 5.66 with its default of three ATT bearers, over which it reorders notifications.
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(5)))
    struct OrderTests {
        /// Nothing wrong is delivered: every message arrives as it was sent, or the sender is told.
        @Test func theSequencedFramingDeliversNothingWrong() async throws {
            let links = try await Links.open()
            try await Traffic.cross(links, Traffic.sizes(0..<200), BytesCodec(), SequencedFraming(), ZlibCompression())
            try await links.end()
        }
    }
#endif
