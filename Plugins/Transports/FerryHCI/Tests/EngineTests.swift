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

        /// Every state of the adapter's advertisement with every event: the waiter to tell, or the state before, and the next state.
        @Test func advertisement() {
            typealias Advertising = EngineState.Advertising
            let (first, second) = (Waiter<Void>(), Waiter<Void>())
            func describe(_ waiter: Waiter<Void>?) -> String { waiter.map { $0 === first ? "first" : "second" } ?? "-" }
            func describe(_ state: Advertising) -> String {
                switch state {
                case .off: "off"
                case .starting(let owner, let waiter): "starting \(owner) \(describe(waiter))"
                case .on(let owner): "on \(owner)"
                }
            }
            let table: [(Advertising, start: String, didStart: String, end: String)] = [
                (.off, "-: starting 7 second", "-: off", "off: off"),
                (.starting(owner: 7, first), "first: starting 7 second", "first: on 7", "starting 7 first: off"),
                (.on(owner: 7), "-: starting 7 second", "-: on 7", "on 7: off"),
            ]
            for row in table {
                var state = row.0
                #expect(describe(state.start(7, second)) + ": " + describe(state) == row.start)
                state = row.0
                #expect(describe(state.didStart()) + ": " + describe(state) == row.didStart)
                state = row.0
                #expect(describe(state.end()) + ": " + describe(state) == row.end)
            }
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
