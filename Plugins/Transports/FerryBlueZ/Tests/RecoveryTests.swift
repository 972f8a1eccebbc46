#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerrySequenced
    import FerryTesting
    import TestSupport
    import Testing

    /// bluetoothd, the bus or an adapter goes away in the middle of a message: both ends are told, and when it is back the
    /// same listener is found again and messages cross.
    @Suite(
        .tags(.adapter, .recovery), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct RecoveryTests {
        enum Fault: String, CaseIterable, Sendable {
            case daemonKilled, busKilled, peripheralRemoved, centralRemoved, switchedOff

            var breaks: String {
                switch self {
                case .daemonKilled: "kill_bluetoothd"
                case .busKilled: "kill_bus; wait_until 100 has_ended $(cat /run/bluetoothd.pid) || kill_bluetoothd"
                case .peripheralRemoved: "kill_controller 0"
                case .centralRemoved: "kill_controller 1"
                case .switchedOff: "in_guest btmgmt --index 0 power off </dev/null"
                }
            }

            var mends: String {
                switch self {
                case .daemonKilled: "restart_bluetoothd"
                case .busKilled: "start_bus && restart_bluetoothd"
                case .peripheralRemoved: "start_controller 0"
                case .centralRemoved: "start_controller 1"
                case .switchedOff: "in_guest btmgmt --index 0 power on </dev/null"
                }
            }

            /// The states that the peripheral's and the central's adapter are in meanwhile.
            var states: (peripheral: AdapterState, central: AdapterState) {
                switch self {
                case .daemonKilled, .busKilled: (.resetting, .resetting)
                case .peripheralRemoved: (.unsupported, .poweredOn)
                case .centralRemoved: (.poweredOn, .unsupported)
                case .switchedOff: (.poweredOff, .poweredOn)
                }
            }
        }

        @Test(arguments: Fault.allCases)
        func messagesCrossAgainAfter(_ fault: Fault) async throws {
            let (serving, asking) = try await Machine.adapters()
            let links = try await Links.open()
            let message = [UInt8].sample(1, 4_000_000)
            let (peripheral, central) = (try channel(links.peripheral), try channel(links.central))
            let sent = Task { try await peripheral.send(message, timeout: .unreached) }
            try await Machine.time.wait("fault", for: "the message to be under way") {
                central.statistics.chunksReceived > 20
            }

            try await Machine.shell(fault.breaks)
            await #expect(throws: (any Error).self, "the message cannot have been sent") { try await sent.value }
            let rest = await Machine.rest(of: central)
            #expect(rest.isEmpty, "a message that was not sent whole was delivered")
            #expect(peripheral.closeReason != nil)
            try await Machine.wait(for: fault.states.peripheral, of: serving)
            try await Machine.wait(for: fault.states.central, of: asking)
            let troubled = fault == .centralRemoved ? asking : serving
            #expect(troubled.trouble?.isEmpty == false, "it says what is wrong")

            try await Machine.shell(fault.mends)
            try await Machine.wait(for: .poweredOn, of: serving)
            try await Machine.wait(for: .poweredOn, of: asking)
            let again = try await Links.next(on: links.listener)
            try await Traffic.cross(again, [1, 20, 5000], BytesCodec(), SequencedFraming())
            try await again.end()
        }

        /// Everything is open when both leave the bus, as when a program ends. bluetoothd 5.66 crashes when it hears of that
        /// before it has heard that the subscription is over: without Ferry's telling it, once in a few times.
        @Test func bluetoothdOutlivesAdaptersThatClose() async throws {
            _ = try await Machine.adapters()
            for _ in 0..<4 {
                let (serving, asking) = try await Machine.open()
                _ = try await Links.open(serving, asking)
                serving.close()
                asking.close()
                try await Links.waitForSilence()
                try await Machine.shell("! has_ended $(cat /run/bluetoothd.pid)")
            }
        }

        private func channel(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(over: link, codec: BytesCodec(), framing: LengthPrefixFraming())
        }
    }
#endif
