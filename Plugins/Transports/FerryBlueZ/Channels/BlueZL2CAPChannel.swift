#if BlueZ
    import Ferry
    import FerryBluetooth
    import Glibc
    import Synchronization

    /// An LE credit-based channel over a kernel socket: one packet is one SDU.
    ///
    /// The kernel counts the credits. It takes packets until the peer's credits are used up and the socket's buffer is
    /// full, so a full socket is backpressure from the peer itself; and it returns credits as packets are read, so that a
    /// receiver who pauses stops the peer. Kernels that return them earlier (see ``Kernel``) cannot be paused.
    final class BlueZL2CAPChannel: L2CAPChannel {
        /// The most bytes of a chunk: with 23 bytes in a K-frame, the least there may be, its buffers still fit in a
        /// socket's (socket(7), `wmem_default`).
        static let chunkLimit = 4096
        /// Packets that are handed on before others get their turn.
        private static let batch = 64

        private struct State {
            var descriptor: FileDescriptor?
            var life = ChannelLife.open(nil)
            var isReceiving = true
            var wantsReady = false
            /// The first error that the socket told, which it does once.
            var failure: Int32?

            /// Receives the SDUs: nil once this side has closed.
            var taker: (any LinkReceiver)? { life.isClosing ? nil : life.receiver }
        }

        let psm: PSM
        let peerID: PeerID
        let peer: PeerIdentity
        let role: LinkRole?
        let maximumChunkSize: Int
        private let thread: BusThread
        private let canPause: Bool
        private let queuedBytes: @Sendable (Int32) -> Int
        private let onEnd: @Sendable (BlueZL2CAPChannel) -> Void
        private let state: Mutex<State>
        /// Of the thread alone.
        nonisolated(unsafe) private let buffer: UnsafeMutableRawBufferPointer
        nonisolated(unsafe) private var watched: Int32 = 0

        /// - Parameters:
        ///   - descriptor: a connected socket that does not block.
        ///   - sendMTU: the most bytes that the peer takes in a packet.
        ///   - receiveMTU: the most bytes that it sends.
        ///   - canPause: whether unread packets stop the peer.
        ///   - queuedBytes: how much has not left the socket.
        ///   - onEnd: called once, on the thread, when the channel has ended.
        init(
            _ descriptor: FileDescriptor, psm: PSM, peerID: PeerID, peer: PeerIdentity, role: LinkRole? = nil,
            sendMTU: Int, receiveMTU: Int, canPause: Bool,
            on thread: BusThread, queuedBytes: @escaping @Sendable (Int32) -> Int = L2CAPSocket.queuedBytes,
            onEnd: @escaping @Sendable (BlueZL2CAPChannel) -> Void
        ) {
            self.psm = psm
            self.role = role
            self.peerID = peerID
            self.peer = peer
            maximumChunkSize = max(1, min(sendMTU, Self.chunkLimit))
            self.thread = thread
            self.canPause = canPause
            self.queuedBytes = queuedBytes
            self.onEnd = onEnd
            state = Mutex(State(descriptor: descriptor))
            buffer = .allocate(byteCount: max(1, receiveMTU), alignment: 8)
        }

        deinit { buffer.deallocate() }

        // MARK: From any thread

        func activate(_ receiver: any LinkReceiver) {
            thread.execute { [self] in
                let end = state.withLock { $0.life.activate(receiver) }
                if let end { receiver.linkDidClose(end) } else { updateWatch() }
            }
        }

        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            enum Outcome {
                case taken
                case full(isFirst: Bool)
            }
            let outcome = try state.withLock { (state) throws(FerryError) -> Outcome in
                try state.life.checkSending(chunk.byteCount, maximum: maximumChunkSize)
                guard let descriptor = state.descriptor else { throw .channelClosedHere }
                if let failure = state.failure { throw .lost(failure) }
                let sent = chunk.withUnsafeBytes { bytes in
                    send(descriptor.rawValue, bytes.baseAddress, bytes.count, Self.flags)
                }
                if sent >= 0 { return .taken }
                let number = errno
                if [EAGAIN, EINTR, ENOBUFS, ENOMEM].contains(number) {
                    defer { state.wantsReady = true }
                    return .full(isFirst: !state.wantsReady)
                }
                state.failure = number
                throw .lost(number)
            }
            switch outcome {
            case .taken: return true
            case .full(let isFirst):
                if isFirst { thread.execute { [self] in waitForSpace() } }
                return false
            }
        }

        private static let flags = Int32(truncatingIfNeeded: MSG_DONTWAIT) | Int32(truncatingIfNeeded: MSG_NOSIGNAL)

        func setReceiving(_ isReceiving: Bool) {
            guard canPause else { return }
            let changed = state.withLock { state in
                defer { state.isReceiving = isReceiving }
                return state.isReceiving != isReceiving
            }
            if changed { thread.execute { [self] in updateWatch() } }
        }

        func close() {
            guard state.withLock({ $0.life.close() }) else { return }
            thread.execute { [self] in
                updateWatch()
                drain(nil)
            }
        }

        // MARK: On the thread

        private func updateWatch() {
            let (descriptor, events) = state.withLock { state -> (FileDescriptor?, Int32) in
                guard state.taker != nil else { return (state.descriptor, 0) }
                return (
                    state.descriptor, (state.isReceiving ? POLLIN : 0) | (state.wantsReady ? POLLOUT : 0)
                )
            }
            guard let descriptor, events != watched else { return }
            watched = events
            guard events != 0 else { return thread.unwatch(descriptor.rawValue) }
            thread.watch(descriptor.rawValue, events) { [self] events in socketDidChange(descriptor, Int32(events)) }
        }

        /// The kernel may have refused for want of memory although the socket has space, and would say so at once.
        private func waitForSpace() {
            guard let descriptor = state.withLock({ $0.descriptor }) else { return isReady() }
            var entry = pollfd(fd: descriptor.rawValue, events: Int16(POLLOUT), revents: 0)
            guard poll(&entry, 1, 0) > 0 else { return updateWatch() }
            thread.schedule(after: .milliseconds(2)) { [weak self] in self?.isReady() }
        }

        private func isReady() {
            let receiver = state.withLock { state in
                state.wantsReady = false
                return state.life.receiver
            }
            updateWatch()
            receiver?.linkIsReady()
        }

        private func socketDidChange(_ descriptor: FileDescriptor, _ events: Int32) {
            if events & POLLOUT != 0 { isReady() }
            let hasEnded = events & (POLLHUP | POLLERR) != 0
            if events & POLLIN != 0 || hasEnded { receive(from: descriptor, hasEnded: hasEnded) }
        }

        /// Delivers the received SDUs, and then the end, if it has come too.
        private func receive(from descriptor: FileDescriptor, hasEnded: Bool) {
            for _ in 0..<Self.batch {
                let (receiver, isReceiving) = state.withLock { ($0.taker, $0.isReceiving) }
                guard let receiver else { return }
                guard isReceiving else {
                    if hasEnded { noteEnd(descriptor) }
                    return
                }
                let count = recv(descriptor.rawValue, buffer.baseAddress, buffer.count, Self.flags)
                if count > 0 {
                    receiver.linkDidReceive(
                        RawSpan(
                            _unsafeBytes: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])))
                } else if count == 0 {
                    // The end, or an empty SDU, with more behind it or not: a socket tells its end before what came before
                    // it, and may have ended since `events` were looked at.
                    if L2CAPSocket.hasHungUp(descriptor.rawValue), L2CAPSocket.waitingBytes(descriptor.rawValue) == 0 {
                        return end(as: nil)
                    }
                } else if errno == EAGAIN {
                    if hasEnded { end(as: nil) }
                    return
                } else if errno != EINTR {
                    // A socket tells its error once, and then what came before.
                    let number = errno
                    let isFirst = state.withLock { state in
                        defer { state.failure = state.failure ?? number }
                        return state.failure == nil
                    }
                    if !isFirst { return end(as: nil) }
                }
            }
        }

        /// The end has come while the owner has paused: report it after the undelivered SDUs, or when the owner sends.
        private func noteEnd(_ descriptor: FileDescriptor) {
            state.withLock { $0.failure = $0.failure ?? ECONNRESET }
            watched = 0
            thread.unwatch(descriptor.rawValue)
        }

        /// Closes when the queue has gone out, or has had its time.
        private func drain(_ begun: ChannelDrain?) {
            guard let descriptor = state.withLock({ $0.life.end == nil ? $0.descriptor : nil }) else {
                return end(as: .channelClosedHere)
            }
            let (now, waiting) = (SystemTime().now, queuedBytes(descriptor.rawValue))
            var drain = begun ?? ChannelDrain(waiting, at: now)
            guard drain.hasTime(for: waiting, at: now), !L2CAPSocket.hasHungUp(descriptor.rawValue) else {
                return end(as: .channelClosedHere)
            }
            thread.schedule(after: .milliseconds(5)) { [self, drain] in self.drain(drain) }
        }

        /// Ends at once, without waiting for the queue: the adapter goes.
        func abort() { end(as: .channelClosedHere) }

        private func end(as reason: FerryError?) {
            let (descriptor, isFirst, told) = state.withLock { state in
                let isFirst = state.life.end == nil
                let told = state.life.end(reason ?? .lost(state.failure ?? ECONNRESET))
                return (state.descriptor.take(), isFirst, told)
            }
            if let descriptor {
                watched = 0
                thread.unwatch(descriptor.rawValue)
            }
            if isFirst { onEnd(self) }
            if let told { told.receiver.linkDidClose(told.reason) }
        }
    }

    extension FerryError {
        /// - Parameter number: what the kernel gives as the reason of an end (its `bt_to_errno`).
        fileprivate static func lost(_ number: Int32) -> FerryError {
            switch number {
            case ECONNRESET, EPIPE, ENOTCONN: .channelClosedByPeer
            case ETIMEDOUT:
                FerryError(.disconnected, "Nothing was heard of the peer of the L2CAP channel for too long.")
            case ECONNABORTED: FerryError(.disconnected, "This side ended the connection of the L2CAP channel.")
            default: FerryError(.disconnected, "The L2CAP channel has ended: \(String(cString: strerror(number))).")
            }
        }
    }
#endif
