#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// An LE credit-based channel as a link: a chunk is an SDU, and the peer's credits are the backpressure.
    final class HCIL2CAPChannel: L2CAPChannel {
        let psm: PSM
        let peerID: PeerID
        let role: LinkRole?
        let maximumChunkSize: Int
        private let engine: HCIEngine
        private let id: CreditChannelID
        private let connection: ConnectionID
        private let knownIdentity: KnownIdentity
        private let state = Mutex(State())

        private struct State {
            var life = ChannelLife.open(nil)
            /// SDUs that came before there was a receiver: at most as many as the peer had credits for.
            var early: [[UInt8]] = []
        }

        init(
            _ engine: HCIEngine, _ id: CreditChannelID, on connection: ConnectionID, psm: PSM, peerID: PeerID,
            identity: PeerIdentity?, role: LinkRole, maximum: Int
        ) {
            self.role = role
            self.engine = engine
            self.id = id
            self.connection = connection
            knownIdentity = KnownIdentity(peerID, identity)
            self.psm = psm
            self.peerID = peerID
            maximumChunkSize = maximum
        }

        var peer: PeerIdentity { knownIdentity.update(engine.state.withLock { $0.identity(connection) }) }

        func activate(_ receiver: any LinkReceiver) {
            engine.deliver { [self] in
                let (early, end) = state.withLock { state in
                    defer { state.early = [] }
                    return (state.early, state.life.activate(receiver))
                }
                for sdu in early { receiver.linkDidReceive(sdu.span.bytes) }
                setReceiving(true)
                if let end { receiver.linkDidClose(end) }
            }
        }

        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            try state.withLock { (state) throws(FerryError) in
                try state.life.checkSending(chunk.byteCount, maximum: maximumChunkSize)
            }
            let id = id
            let outcome: Bool?
            do throws(BluetoothError) {
                outcome = try engine.change { state, _ in state.host.trySend(chunk, on: id) }
            } catch {
                throw FerryError(.disconnected, "The L2CAP channel cannot be used.", cause: error)
            }
            guard let outcome else { throw .channelClosedByPeer }
            return outcome
        }

        func setReceiving(_ isReceiving: Bool) {
            try? engine.change { [id] state, now in state.host.setReceiving(isReceiving, on: id, at: now) }
        }

        func close() {
            guard state.withLock({ $0.life.close() }) else { return }
            try? engine.change { [id] state, now in state.host.closeChannel(id, at: now) }
        }

        // MARK: Events, on the event loop

        func didReceive(_ sdu: RawSpan) {
            let receiver = state.withLock { state in
                if state.life.receiver == nil { state.early.append([UInt8](copying: sdu)) }
                return state.life.receiver
            }
            if let receiver { receiver.linkDidReceive(sdu) } else { setReceiving(false) }
        }

        func isReady() { state.withLock { $0.life.receiver }?.linkIsReady() }

        func didClose() {
            let told = state.withLock { $0.life.end(.channelClosedByPeer) }
            if let told { told.receiver.linkDidClose(told.reason) }
        }
    }
#endif
