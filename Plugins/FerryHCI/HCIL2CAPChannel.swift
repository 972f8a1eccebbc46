#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// An LE credit-based channel as a link: a chunk is an SDU, and the peer's credits are the backpressure.
    final class HCIL2CAPChannel: L2CAPChannel {
        let psm: PSM
        let peerID: PeerID
        let maximumChunkSize: Int
        private let engine: HCIEngine
        private let id: CreditChannelID
        private let connection: ConnectionID
        private let knownIdentity: KnownIdentity
        private let state = Mutex(State())

        private struct State {
            var receiver: (any LinkReceiver)?
            /// SDUs that came before there was a receiver: at most as many as the peer had credits for.
            var early: [[UInt8]] = []
            var isClosedHere = false
            var end: FerryError?
            var isOver = false
        }

        init(
            _ engine: HCIEngine, _ id: CreditChannelID, on connection: ConnectionID, psm: PSM, peerID: PeerID,
            identity: PeerIdentity, maximum: Int
        ) {
            self.engine = engine
            self.id = id
            self.connection = connection
            knownIdentity = KnownIdentity(identity)
            self.psm = psm
            self.peerID = peerID
            maximumChunkSize = maximum
        }

        var peer: PeerIdentity { knownIdentity.update(engine.state.withLock { $0.identity(connection) }) }

        func activate(_ receiver: any LinkReceiver) {
            engine.deliver { [self] in
                let (early, end) = state.withLock { state in
                    state.receiver = receiver
                    var early: [[UInt8]] = []
                    swap(&early, &state.early)
                    return (early, state.end)
                }
                for sdu in early { receiver.linkDidReceive(sdu.span.bytes) }
                setReceiving(true)
                if let end { finish(receiver, end) }
            }
        }

        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            if let end = state.withLock({ $0.end }) { throw end }
            guard chunk.byteCount > 0 else { throw FerryError(.emptyChunk, "An L2CAP channel carries no empty SDUs.") }
            guard chunk.byteCount <= maximumChunkSize else {
                throw FerryError(
                    .chunkTooLarge, "\(chunk.byteCount) bytes are above this channel's MTU of \(maximumChunkSize).")
            }
            let id = id
            let outcome: Bool?
            do throws(BluetoothError) {
                outcome = try engine.change { state, _ in state.host.trySend(chunk, on: id) }
            } catch {
                throw FerryError(.disconnected, "The L2CAP channel cannot be used.", cause: error)
            }
            guard let outcome else { throw FerryError(.disconnected, "The L2CAP channel has ended.") }
            return outcome
        }

        func setReceiving(_ isReceiving: Bool) {
            try? engine.change { [id] state, now in state.host.setReceiving(isReceiving, on: id, at: now) }
        }

        func close() {
            let hasEnded = state.withLock { state in
                state.isClosedHere = true
                return state.end != nil
            }
            guard hasEnded else {
                try? engine.change { [id] state, now in state.host.closeChannel(id, at: now) }
                return
            }
            let end = FerryError(.closed, "The L2CAP channel was closed by this side.")
            engine.deliver { [self] in if let receiver = state.withLock({ $0.receiver }) { finish(receiver, end) } }
        }

        // MARK: Events, on the event loop

        func didReceive(_ sdu: RawSpan) {
            let receiver = state.withLock { state in
                if state.receiver == nil { state.early.append([UInt8](copying: sdu)) }
                return state.receiver
            }
            if let receiver { receiver.linkDidReceive(sdu) } else { setReceiving(false) }
        }

        func isReady() { state.withLock { $0.receiver }?.linkIsReady() }

        func didClose() {
            let (receiver, end) = state.withLock { state in
                let end =
                    state.isClosedHere
                    ? FerryError(.closed, "The L2CAP channel was closed by this side.")
                    : FerryError(.disconnected, "The peer, or the connection's end, closed the L2CAP channel.")
                state.end = end
                return (state.receiver, end)
            }
            if let receiver { finish(receiver, end) }
        }

        private func finish(_ receiver: any LinkReceiver, _ end: FerryError) {
            let isFirst = state.withLock { state in
                state.receiver = nil
                defer { state.isOver = true }
                return !state.isOver
            }
            if isFirst { receiver.linkDidClose(end) }
        }
    }
#endif
