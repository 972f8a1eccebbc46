#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Synchronization

    /// Ferry's host on both controllers: values go from the peripheral to the central.
    final class FerryPair: Sendable {
        private let sender: Sender
        private let receiver: Receiver
        private let connection: any PeripheralConnection
        private let psm: PSM
        private let adapters: [HCIAdapter]

        private init(
            _ sender: Sender, _ receiver: Receiver, _ connection: any PeripheralConnection, _ psm: PSM,
            _ adapters: [HCIAdapter]
        ) {
            self.sender = sender
            self.receiver = receiver
            self.connection = connection
            self.psm = psm
            self.adapters = adapters
        }

        static func connect(_ channels: [HCIChannel], length: Int, mtu: Int) async throws -> FerryPair {
            var configuration = HCIConfiguration()
            configuration.maximumMTU = mtu
            let serving = try await HCIAdapter.open(channels[0], configuration)
            let asking = try await HCIAdapter.open(channels[1], configuration)
            let sender = Sender(length: length)
            let receiver = Receiver()
            let peripheral = serving.openPeripheral(sender)
            let uuid = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
            let published = try await peripheral.publish(
                ServiceDefinition(
                    uuid, characteristics: [CharacteristicDefinition(uuid, properties: .notify, permissions: [])]))
            sender.state.withLock { $0.update = (peripheral, published.characteristics[0]) }
            let psm = try await peripheral.publishL2CAPChannel(encryptionRequired: false)
            _ = try await peripheral.startAdvertising(Advertisement(services: [uuid]))
            let central = asking.openCentral(receiver)
            try central.startScan(ScanRequest(services: [uuid], allowsDuplicates: true))
            let found = await receiver.found.wait()
            central.stopScan()
            let connection = try await central.connect(to: found, events: receiver)
            receiver.central.withLock { $0 = central }
            return FerryPair(sender, receiver, connection, psm, [serving, asking])
        }

        func notify(_ count: Int) async throws -> Measured {
            let service = try await connection.discoverServices(nil).last
            guard let service,
                let characteristic = try await connection.discoverCharacteristics(nil, of: service.id).first
            else { throw ThroughputError(description: "The characteristic was not found.") }
            try await connection.setSubscription(.notify, to: characteristic.id)
            return await run(count)
        }

        func sendOnChannel(_ count: Int) async throws -> Measured {
            let channel = try await connection.openL2CAPChannel(psm)
            channel.activate(receiver)
            await sender.opened.wait()
            return await run(count)
        }

        private func run(_ count: Int) async -> Measured {
            receiver.wanted.store(count, ordering: .relaxed)
            sender.state.withLock { $0.remaining = count }
            let stop = Measured.start()
            sender.send()
            await receiver.finished.wait()
            let measured = stop()
            for adapter in adapters { adapter.close() }
            return measured
        }
    }

    /// Something that happens once, and whoever waits for it.
    final class Moment<Value: Sendable>: Sendable {
        private let (stream, continuation) = AsyncStream<Value>.makeStream()

        func happen(_ value: Value) { continuation.yield(value) }

        func wait() async -> Value {
            for await value in stream { return value }
            fatalError("a moment's stream never ends")
        }
    }

    /// Sends as much as is taken, and goes on when there is room again.
    private final class Sender: PeripheralRoleEvents, LinkReceiver {
        struct State {
            var update: (any PeripheralRole, AttributeID)?
            var channel: (any L2CAPChannel)?
            var remaining = 0
        }

        let state = Mutex(State())
        let opened = Moment<Void>()
        private let value: [UInt8]

        init(length: Int) { value = [UInt8](repeating: 0x55, count: length) }

        func send() {
            let value = value
            state.withLock { state in
                while state.remaining > 0 {
                    if let channel = state.channel {
                        guard (try? channel.trySend(value.span.bytes)) == true else { return }
                    } else if let (role, characteristic) = state.update {
                        guard (try? role.tryUpdateValue(value.span.bytes, of: characteristic, for: .all)) == true else {
                            return
                        }
                    }
                    state.remaining -= 1
                }
            }
        }

        func peripheralIsReadyToUpdate() { send() }
        func linkIsReady() { send() }
        func linkDidReceive(_ chunk: RawSpan) {}
        func linkDidClose(_ reason: FerryError) {}
        func peripheralDidOpen(_ channel: any L2CAPChannel) {
            state.withLock { $0.channel = channel }
            channel.activate(self)
            opened.happen(())
        }
    }

    /// Counts what arrives.
    private final class Receiver: CentralRoleEvents, PeripheralConnectionEvents, LinkReceiver {
        let found = Moment<PeerID>()
        let finished = Moment<Void>()
        let wanted = Atomic(0)
        /// Kept open as long as it receives.
        let central = Mutex<(any CentralRole)?>(nil)

        private func count() {
            if wanted.subtract(1, ordering: .relaxed).newValue == 0 { finished.happen(()) }
        }

        func centralDidDiscover(_ discovery: Discovery) { found.happen(discovery.peripheral) }
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) { count() }
        func peripheralDidDisconnect(_ reason: BluetoothError) {}
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) { count() }
        func linkDidClose(_ reason: FerryError) {}
    }
#endif
