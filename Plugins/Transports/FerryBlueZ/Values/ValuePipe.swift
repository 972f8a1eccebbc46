#if BlueZ
    import Glibc
    import Synchronization

    /// An object that is read so that the peer answers.
    struct BarrierTarget: Sendable {
        let path: String
        let interface: String
    }

    /// A socket that `AcquireNotify` or `AcquireWrite` made: one packet is one value (org.bluez.GattCharacteristic(5)).
    ///
    /// bluetoothd reads at once into a queue without bound, so that a writable socket says nothing about the radio; a
    /// ``FlowWindow`` bounds the values in flight.
    final class ValuePipe: Sendable {
        enum Outcome { case taken, full, ended }

        /// The most bytes of a value that goes to a central at an ATT_MTU. A value for several handles (Core Specification 5.4, Vol 3,
        /// Part F, 3.4.7.4) has two bytes more of header than a notification, and bluetoothd may choose it.
        static func limit(ofMTU mtu: Int) -> Int { min(mtu - 5, 512) }

        private struct State {
            var window: FlowWindow
            var wantsReady = false
            var isEnded = false
            var barrier: BarrierTarget?

            mutating func takeReady() -> Bool {
                guard wantsReady, window.hasSpace, !isEnded else { return false }
                wantsReady = false
                return true
            }
        }

        let descriptor: FileDescriptor
        /// The most bytes of a value.
        let limit: Int
        private let state: Mutex<State>
        private let onBarrierDue: @Sendable (ValuePipe) -> Void
        private let onBlocked: @Sendable (ValuePipe) -> Void

        /// - Parameters:
        ///   - window: the most values on their way.
        ///   - onBarrierDue: called on the sender's thread when a barrier is due; ``barrierPassed()`` follows it.
        ///   - onBlocked: called on the sender's thread when the socket is full; ``isWritable()`` follows it.
        init(
            _ descriptor: FileDescriptor, limit: Int, window: Int,
            onBarrierDue: @escaping @Sendable (ValuePipe) -> Void, onBlocked: @escaping @Sendable (ValuePipe) -> Void
        ) {
            self.descriptor = descriptor
            self.limit = limit
            state = Mutex(State(window: FlowWindow(maximum: window)))
            self.onBarrierDue = onBarrierDue
            self.onBlocked = onBlocked
            _ = fcntl(descriptor.rawValue, F_SETFL, O_NONBLOCK)
        }

        /// Sends one value of at least one byte; bytes above the limit are cut off.
        func trySend(_ value: RawSpan) -> Outcome {
            var isBarrierDue = false
            var isBlocked = false
            let outcome = state.withLock { state -> Outcome in
                guard !state.isEnded else {
                    state.wantsReady = true
                    return .ended
                }
                guard state.window.hasSpace else {
                    state.wantsReady = true
                    return .full
                }
                let sent = value.withUnsafeBytes { bytes in
                    send(
                        descriptor.rawValue, bytes.baseAddress, min(bytes.count, limit),
                        Int32(truncatingIfNeeded: MSG_DONTWAIT) | Int32(truncatingIfNeeded: MSG_NOSIGNAL))
                }
                guard sent >= 0 else {
                    state.wantsReady = true
                    guard errno == EAGAIN || errno == ENOBUFS || errno == EINTR else { return .ended }
                    isBlocked = true
                    return .full
                }
                state.window.take(sent)
                isBarrierDue = state.window.beginBarrier(at: BusThread.now)
                return .taken
            }
            if isBarrierDue { onBarrierDue(self) }
            if isBlocked { onBlocked(self) }
            return outcome
        }

        var inFlight: Int { state.withLock { $0.isEnded ? 0 : $0.window.inFlight } }

        /// The bytes that the barrier is behind.
        var markedBytes: Int { state.withLock { $0.window.markedBytes } }

        /// What the barriers read, once it has been looked for.
        var barrier: BarrierTarget? {
            get { state.withLock { $0.barrier } }
            set { state.withLock { $0.barrier = newValue } }
        }

        /// Asks for a barrier behind everything, unless there is nothing to wait for or one is under way.
        func requestLastBarrier() {
            let isDue = state.withLock { !$0.isEnded && $0.window.beginBarrier(at: BusThread.now, isLast: true) }
            if isDue { onBarrierDue(self) }
        }

        /// The values before the barrier have passed. Returns whether the sender waits for space.
        func barrierPassed() -> Bool {
            let now = BusThread.now
            let (isReady, isBarrierDue) = state.withLock { state in
                state.window.barrierPassed(at: now)
                // Values sent after the barrier may fill a window that has become smaller.
                return (state.takeReady(), !state.isEnded && state.window.beginBarrier(at: now))
            }
            if isBarrierDue { onBarrierDue(self) }
            return isReady
        }

        /// The one value on its way is confirmed. Returns whether the sender waits for space.
        func confirmed() -> Bool {
            state.withLock { state in
                if !state.window.hasBarrier { _ = state.window.beginBarrier(at: BusThread.now, isLast: true) }
                state.window.barrierPassed(at: BusThread.now)
                return state.takeReady()
            }
        }

        /// The socket has space again. Returns whether the sender waits for it.
        func isWritable() -> Bool { state.withLock { $0.takeReady() } }

        /// Nothing is sent any more. Returns whether the sender still waits for space.
        @discardableResult
        func end() -> Bool {
            let (wasOpen, wantsReady) = state.withLock { state in
                defer { state.isEnded = true }
                return (!state.isEnded, state.wantsReady)
            }
            if wasOpen { shutdown(descriptor.rawValue, Int32(SHUT_RDWR)) }
            return wantsReady
        }
    }
#endif
