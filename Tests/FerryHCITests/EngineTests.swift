#if HCI
    import BluetoothHost
    import FerryBluetooth
    import NIOCore
    import NIOEmbedded
    import Testing

    @testable import FerryHCI

    /// The shell round the host, on a loop that runs when it is told to.
    @Suite struct EngineTests {
        @Test func aRefusedCallDoesNotHoldUpTheNext() throws {
            let engine = HCIEngine(name: "test", HostConfiguration(address: .staticRandom(1)), HCIConfiguration())
            let channel = EmbeddedChannel()
            engine.channelDidOpen(channel)
            #expect(try channel.readOutbound(as: ByteBuffer.self) != nil, "Reset")
            #expect(throws: BluetoothError.self) {
                try engine.change { _, _ throws(BluetoothError) in throw BluetoothError(.valueTooLong, "refused") }
            }
            channel.embeddedEventLoop.run()
            try engine.change { state, now in state.host.start(at: now) }
            channel.embeddedEventLoop.run()
            #expect(try channel.readOutbound(as: ByteBuffer.self) != nil, "Reset, again")
        }
    }
#endif
