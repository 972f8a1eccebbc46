#if BlueZ
    import DequeModule
    import Ferry
    import Glibc
    import Synchronization

    /// Delivers the values that bluetoothd gives through a socket.
    ///
    /// bluetoothd drops values that the socket does not hold, some 160 of 512 bytes. So when it has not been empty for
    /// a few milliseconds, another thread empties it, even with a slow receiver or a busy bus thread. Undelivered
    /// values wait here.
    final class ValueReader: Sendable {
        /// How many values wait at most; more stay in the socket.
        static let mostWaiting = 4096
        /// How long a part takes, unless a single value takes longer, in microseconds.
        static let part: UInt64 = 5000
        /// How long values are left in the socket.
        static let patience = Duration.milliseconds(5)

        enum Outcome {
            /// Everything has been delivered.
            case done
            /// More waits, in the socket or here.
            case behind
            /// Everything has been delivered, and nothing comes any more.
            case ended
        }

        private struct State {
            var waiting = Deque<[UInt8]>()
            /// Whether the socket was found empty since the last ``takeOut()``.
            var wasEmpty = false
            var isEnded = false
        }

        let descriptor: FileDescriptor
        let deliver: @Sendable (RawSpan) -> Void
        private let state = Mutex(State())

        init(_ descriptor: FileDescriptor, deliver: @escaping @Sendable (RawSpan) -> Void) {
            self.descriptor = descriptor
            self.deliver = deliver
        }

        /// Delivers a part of the received values; on one thread alone, which has other things to do between two parts.
        ///
        /// - Parameter now: the time, in microseconds from anywhere.
        func read(now: () -> UInt64 = { BusThread.now }) -> Outcome {
            let end = now() + Self.part
            while deliverNext() { if now() >= end { return .behind } }
            return state.withLock { state in
                // Something may have been taken out meanwhile.
                guard state.waiting.isEmpty else { return .behind }
                return state.isEnded ? .ended : .done
            }
        }

        /// Delivers one value, unless there is none.
        private func deliverNext() -> Bool {
            withBuffer { buffer in
                let (value, count) = state.withLock { state in
                    let value = state.waiting.popFirst()
                    return (value, value == nil ? receive(buffer, &state) : 0)
                }
                if let value {
                    deliver(value.span.bytes)
                } else if count > 0 {
                    deliver(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count])))
                } else {
                    return false
                }
                return true
            }
        }

        /// Takes out of the socket what it holds, as far as there is room, unless it has been found empty since the last
        /// time. On any thread.
        ///
        /// - Returns: whether something waits that did not before, and whether nothing comes any more.
        func takeOut() -> (isNew: Bool, isEnded: Bool) {
            withBuffer { buffer in
                state.withLock { state in
                    let waited = !state.waiting.isEmpty
                    while !state.wasEmpty, state.waiting.count < Self.mostWaiting {
                        let count = receive(buffer, &state)
                        if count > 0 { state.waiting.append(Array(buffer[..<count])) }
                    }
                    state.wasEmpty = false
                    return (!waited && !state.waiting.isEmpty, state.isEnded)
                }
            }
        }

        /// Ends the socket: only values already received follow.
        func end() { shutdown(descriptor.rawValue, Int32(SHUT_RDWR)) }

        /// Nothing is wanted any more.
        func stop() {
            state.withLock { state in
                state.waiting = []
                state.isEnded = true
            }
        }

        /// Receives the next packet; 0 if there is none.
        private func receive(_ buffer: UnsafeMutableRawBufferPointer, _ state: inout State) -> Int {
            while !state.isEnded {
                let count = recv(
                    descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(truncatingIfNeeded: MSG_DONTWAIT))
                if count > 0 { return count }
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { break }
                state.isEnded = true
            }
            state.wasEmpty = true
            return 0
        }

        private func withBuffer<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
            withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8, body)
        }
    }

    extension BusThread {
        /// Has a reader deliver values until its socket ends, which `onEnd` reports, or until ``unwatch(_:)``.
        func watch(_ reader: ValueReader, onEnd: @escaping () -> Void) {
            watch(reader.descriptor.rawValue, Int32(POLLIN)) { [weak self] _ in
                guard let self else { return }
                switch reader.read() {
                case .done: break
                case .behind: self.callAgain(reader.descriptor.rawValue)
                case .ended:
                    self.unwatch(reader.descriptor.rawValue)
                    onEnd()
                }
            }
        }

        /// Empties a reader's socket when `busy`, which delivers its values, has not done so for a while. Until
        /// ``ValueReader/stop()`` or the socket's end.
        func relieve(_ busy: BusThread, of reader: ValueReader) {
            let descriptor = reader.descriptor.rawValue
            watch(descriptor, Int32(POLLIN)) { [weak self] _ in
                self?.unwatch(descriptor)
                self?.schedule(after: ValueReader.patience) {
                    let (isNew, isEnded) = reader.takeOut()
                    // Its poll finds nothing in the socket any more.
                    if isNew { busy.execute { busy.callAgain(reader.descriptor.rawValue) } }
                    if !isEnded { self?.relieve(busy, of: reader) }
                }
            }
        }
    }
#endif
