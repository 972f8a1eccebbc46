#if HCI
    import BluetoothHost
    public import FerryBluetooth
    import Synchronization

    /// A Bluetooth adapter on an HCI controller, with its own host: no daemon and no kernel stack in between.
    ///
    /// Backpressure is the radio's: a value is refused when the connection's share of the controller's buffers and its
    /// bounded queue are used up, and the readiness comes when the controller has sent packets.
    ///
    /// The channel stays open until ``close()``, or until neither the adapter is referenced nor any role of it open.
    ///
    /// Limits: controller-to-host flow control is not used, so `setReceiving` has an effect on L2CAP channels only.
    public final class HCIAdapter: BluetoothAdapter {
        let engine: HCIEngine

        /// What to call the adapter in messages: its channel.
        public var name: String { engine.name }
        /// Whether it can be used now.
        public var state: AdapterState { engine.state.withLock { $0.adapterState } }

        private init(_ engine: HCIEngine) { self.engine = engine }

        deinit { engine.abandon() }

        /// Opens the channel and sets up the controller.
        ///
        /// - Parameters:
        ///   - channel: where the controller is.
        ///   - options: how to behave; the defaults suit most uses.
        /// - Throws: `notPoweredOn` with the defect: nothing listens there, or the controller does not answer.
        public static func open(
            _ channel: HCIChannel, _ options: HCIConfiguration = HCIConfiguration()
        ) async throws(BluetoothError) -> HCIAdapter {
            var random = SystemRandomNumberGenerator()
            let stored = try options.pairing?.bondFile.map { BondFile(path: $0) }?.read()
            let bonds = stored?.bonds.compactMap(\.bond) ?? []
            guard bonds.count == stored?.bonds.count ?? 0 else {
                throw BluetoothError(
                    .invalidArgument,
                    "The bond file \(options.pairing?.bondFile ?? "") has a key that is not 32 hexadecimal digits. Mend it, "
                        + "or remove it and pair anew.")
            }
            let address = Address.staticRandom(options.address ?? stored?.address ?? random.next())
            guard (stored?.identityResolvingKey == nil) == (stored?.ownResolvingKey == nil) else {
                throw BluetoothError(
                    .invalidArgument,
                    "The bond file \(options.pairing?.bondFile ?? "") has a local identity resolving key that is not 32 "
                        + "hexadecimal digits. Mend it, or remove the file and pair anew.")
            }
            // Kept also while addresses do not change, for peers that bonded when they did.
            let fresh = options.privacy == nil ? nil : LibraryCryptography().random(16)
            let resolvingKey = stored?.ownResolvingKey ?? fresh
            let engine = HCIEngine(
                name: "\(channel)", options.hostConfiguration(address, resolvingKey: resolvingKey ?? []),
                resolvingKey: resolvingKey, options)
            let known = options.pairing?.bondFile.map { BondFile(path: $0).readPeers() } ?? KnownPeers()
            engine.state.withLock { state in
                state.host.setBonds(bonds)
                state.host.isPairable = options.pairing?.isPairable ?? false
                state.host.setKnownPeers(known)
                state.storedPeers = known
            }
            if let capture = options.capture {
                try engine.state.withLock { state throws(BluetoothError) in
                    state.capture = try CaptureFile(path: capture)
                }
            }
            let adapter = HCIAdapter(engine)
            do {
                try await channel.open(for: engine)
            } catch let known as BluetoothError {
                throw known
            } catch {
                throw BluetoothError(
                    .notPoweredOn,
                    "Cannot reach an HCI controller at \(channel): \(HCIChannel.words(for: error)). Is it running there?"
                )
            }
            try await engine.waitUntilReady()
            return adapter
        }

        /// Opens the peripheral role.
        public func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
            HCIPeripheralRole(engine, engine.openPeripheral(events))
        }

        /// Opens the central role.
        public func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
            HCICentralRole(engine, engine.openCentral(events))
        }

        /// Closes the channel; connections end.
        public func close() { engine.close() }
    }
#endif
