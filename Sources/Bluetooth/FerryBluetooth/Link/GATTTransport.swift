public import Ferry

/// Links over GATT, on any adapter: a peripheral listens, a central connects.
///
/// Towards the central chunks travel as notifications or indications, towards the peripheral as writes. The chunk size
/// is the connection's: ATT_MTU - 3, at most 512 bytes, or 510 where chunks are written without response
/// (``GATTConfiguration/maximumWriteWithoutResponse``), and follows every change of ATT_MTU. A link whose peer stalls
/// or is lost with long values continues with short ones (``ValueSizeMemory``). Each central has its own link.
public struct GATTTransport: Transport {
    private let adapter: any BluetoothAdapter
    private let configuration: GATTConfiguration
    private let time: any TimeSource
    private let acceptTimeout: Duration
    /// Where links remember which peers stall or die of long values: by default a memory of this transport and its copies.
    /// Several transports may share one. Set it before ``listen()`` and ``connect(timeout:)``.
    public var valueSizes = ValueSizeMemory()

    /// Makes a transport; nothing happens on the air yet.
    ///
    /// - Parameters:
    ///   - adapter: the controller with its host.
    ///   - configuration: how links are laid over GATT.
    ///   - time: where the time comes from.
    ///   - acceptTimeout: how long a central's link may wait to be taken from the listener; then the central is
    ///     disconnected.
    public init(
        adapter: any BluetoothAdapter, configuration: GATTConfiguration, time: any TimeSource = SystemTime(),
        acceptTimeout: Duration = .seconds(30)
    ) {
        self.acceptTimeout = acceptTimeout

        self.adapter = adapter
        self.configuration = configuration
        self.time = time
    }

    /// Publishes the service and advertises it until the listener is closed or released, or the task that takes its
    /// links is cancelled. A link whose last reference is released is closed.
    ///
    /// - Throws: `transportUnavailable`, which names the missing part.
    public func listen() async throws(FerryError) -> LinkListener {
        try await GATTPeripheral(adapter, configuration, valueSizes, time).listen(acceptTimeout: acceptTimeout)
    }

    /// Connects to the first peripheral that advertises the service within the signal-strength window. An adapter has
    /// one link over a service to a peripheral at a time: each would receive the other's chunks.
    ///
    /// - Throws: `timedOut` with the peripherals heard meanwhile, `cancelled`, `disconnected`, `peerNotFound` or
    ///   `transportUnavailable`.
    public func connect(timeout: Duration) async throws(FerryError) -> any Link {
        try await connect(GATTCentral(adapter, configuration, valueSizes), timeout)
    }

    /// Connects to this peripheral and no other, at any signal strength and under any local name: directly where the
    /// adapter can, else when a scan hears it. The link is returned once the peer is known with the certainty of
    /// `peer`.
    ///
    /// - Throws: as ``connect(timeout:)``; `peerNotFound` when the answering peer is not known to be that peer, and for
    ///   an identity that is good for one connection only.
    public func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        guard peer.certainty > .connection else { throw .cannotBeRecognized(peer) }
        return try await connect(GATTCentral(adapter, configuration, valueSizes, to: peer), timeout)
    }

    private func connect(_ central: GATTCentral, _ timeout: Duration) async throws(FerryError) -> any Link {
        let outcome = await withTaskGroup(of: Result<any Link, FerryError>?.self) { [time] group in
            group.addTask {
                do throws(FerryError) { return .success(try await central.connect(time)) } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                try? await time.sleep(for: timeout)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            // A link made at the very moment of the timeout has no owner.
            if first == nil, case .success(let link)?? = await group.next() { link.close() }
            return first
        }
        if Task.isCancelled, case .success(let link)? = outcome { link.close() }
        if Task.isCancelled { throw FerryError(.cancelled, "Connecting was cancelled.") }
        guard let outcome else {
            throw FerryError(.timedOut, "No link within \(timeout). \(central.whatWasHeard)")
        }
        return try outcome.get()
    }
}
