#if HCI
    import BluetoothHost
    import FerryBluetooth
    import NIOCore
    import NIOEmbedded
    import TestSupport
    import Testing

    @testable import FerryHCI

    /// The shell round the host, on a loop that runs when it is told to.
    @Suite(.tags(.adapter)) struct EngineTests {
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

        /// A peer that is gone already does not confirm the end that was asked for.
        @Test(arguments: [
            (HCIErrorCode.connectionTimeout, false, BluetoothError.Code.connectionTimeout),
            (.connectionTimeout, true, .disconnectedLocally), (.terminatedByLocalHost, false, .disconnectedLocally),
            (.remoteUserTerminated, true, .disconnectedByPeer), (.failedToBeEstablished, true, .connectionFailed),
        ])
        func theReasonOfAnEnd(reason: HCIErrorCode, isWanted: Bool, code: BluetoothError.Code) {
            #expect(BluetoothError(reason, isWanted: isWanted).code == code)
        }
    }
#endif
