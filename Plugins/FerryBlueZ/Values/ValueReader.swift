#if BlueZ
    import DequeModule
    import Glibc

    /// Delivers the values that bluetoothd gives through a socket.
    ///
    /// bluetoothd drops what the socket does not hold, some 160 values of 512 bytes. So it is emptied every few milliseconds,
    /// however slow the receiver is, and what the receiver is behind with waits here.
    ///
    /// Belongs to the bus thread, which has other things to do between two parts.
    final class ValueReader: Sendable {
        /// How many values wait at most; more stay in the socket.
        static let mostWaiting = 4096
        /// How long a part takes, unless a single value takes longer, in microseconds.
        static let part: UInt64 = 5000

        enum Outcome {
            /// Everything has been delivered.
            case done
            /// More waits, in the socket or here.
            case behind
            /// Everything has been delivered, and nothing comes any more.
            case ended
        }

        let descriptor: FileDescriptor
        private let deliver: @Sendable (RawSpan) -> Void
        // Of the bus thread alone.
        nonisolated(unsafe) private var waiting = Deque<[UInt8]>()
        nonisolated(unsafe) private var isEnded = false

        init(_ descriptor: FileDescriptor, deliver: @escaping @Sendable (RawSpan) -> Void) {
            self.descriptor = descriptor
            self.deliver = deliver
        }

        /// Delivers a part of what has come.
        ///
        /// - Parameter now: the time, in microseconds from anywhere.
        func read(now: () -> UInt64 = { BusThread.now }) -> Outcome {
            let end = now() + Self.part
            while deliverNext() {
                guard now() >= end else { continue }
                takeOut()
                return .behind
            }
            return isEnded ? .ended : .done
        }

        /// Delivers everything that has come.
        func readRest() {
            while deliverNext() {}
        }

        /// Delivers one value, unless there is none.
        private func deliverNext() -> Bool {
            guard let value = waiting.popFirst() else { return receive(deliver) }
            deliver(value.span.bytes)
            return true
        }

        /// Takes out of the socket what it holds, as far as there is room.
        private func takeOut() {
            while waiting.count < Self.mostWaiting, receive({ waiting.append($0.withUnsafeBytes { Array($0) }) }) {}
        }

        /// Receives the next packet, unless there is none.
        private func receive(_ body: (RawSpan) -> Void) -> Bool {
            withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { buffer in
                while !isEnded {
                    let count = recv(
                        descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(truncatingIfNeeded: MSG_DONTWAIT))
                    if count > 0 {
                        let value = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
                        body(RawSpan(_unsafeBytes: value))
                        return true
                    }
                    if count < 0, errno == EINTR { continue }
                    if count < 0, errno == EAGAIN { return false }
                    isEnded = true
                }
                return false
            }
        }
    }

    extension BusThread {
        /// Has a reader deliver what comes until its socket ends, of which `onEnd` is told, or until ``unwatch(_:)``.
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
    }
#endif
