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

        /// A stream that is out of step, and a channel that ends: the log says why the adapter is out of use.
        @Test(arguments: [false, true]) func theLogSaysWhyTheAdapterIsOutOfUse(isOutOfStep: Bool) throws {
            let journal = Journal()
            var options = HCIConfiguration()
            options.log = { journal.add($0) }
            let engine = HCIEngine(name: "test", HostConfiguration(address: .staticRandom(1)), options)
            let channel = EmbeddedChannel()
            engine.channelDidOpen(channel)
            if isOutOfStep { engine.receive(ByteBuffer(bytes: [0x07, 0, 0])) } else { engine.channelDidClose("gone") }
            channel.embeddedEventLoop.run()
            let lines = journal.all.filter { $0.contains("The adapter is out of use") }
            #expect(lines.count == 1)
            #expect(lines.first?.contains(isOutOfStep ? "out of step" : "gone") == true)
        }

        /// The first reason counts: this side has asked for the end, and what comes of that does not change why.
        @Test(arguments: [
            (HCIErrorCode.connectionTimeout, false, BluetoothError.Code.connectionTimeout),
            (.connectionTimeout, true, .disconnectedLocally), (.terminatedByLocalHost, false, .disconnectedLocally),
            (.remoteUserTerminated, false, .disconnectedByPeer), (.failedToBeEstablished, false, .connectionFailed),
            (.remoteUserTerminated, true, .disconnectedLocally), (.failedToBeEstablished, true, .disconnectedLocally),
        ])
        func theReasonOfAnEnd(reason: HCIErrorCode, isWanted: Bool, code: BluetoothError.Code) {
            #expect(BluetoothError(reason, isWanted: isWanted).code == code)
        }
    }
#endif
