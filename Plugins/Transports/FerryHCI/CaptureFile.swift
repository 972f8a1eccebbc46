#if HCI
    import BluetoothHost
    import FerryBluetooth
    import Foundation

    /// Writes every packet to a btsnoop file, in the order they pass. A record is in the file as soon as the packets that
    /// passed with it, so that a crash leaves a whole capture, and so does a disk that is full.
    struct CaptureFile: ~Copyable, Sendable {
        private let descriptor: Int32
        /// Whole records.
        private var buffer: [UInt8]
        /// Bytes of the file that are whole records.
        private var length = 0
        private let path: String
        /// The error of the last write; nothing more is written after it.
        private var writing = Writing.fine

        private enum Writing {
            case fine
            case failed(String)
            /// It has failed, and the complaint was taken.
            case ended(String)
        }

        /// Why nothing more is written.
        var failure: String? {
            switch writing {
            case .fine: nil
            case .failed(let why), .ended(let why): why
            }
        }

        /// - Throws: `invalidArgument` when the file cannot be made.
        init(path: String, header: [UInt8] = BTSnoop.header) throws(BluetoothError) {
            buffer = header
            self.path = path
            descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw BluetoothError(
                    .invalidArgument, "The capture \(path) cannot be written: \(String(cString: strerror(errno))).")
            }
            flush()
            if let failure {
                throw BluetoothError(.invalidArgument, "The capture \(path) cannot be written: \(failure).")
            }
        }

        deinit { if descriptor >= 0 { Foundation.close(descriptor) } }

        /// Once, for people, that nothing more is written, and why.
        mutating func takeComplaint() -> String? {
            guard case .failed(let why) = writing else { return nil }
            writing = .ended(why)
            return "The capture \(path) is not written any further: \(why). Its packets so far are whole."
        }

        mutating func add(_ packet: RawSpan, isReceived: Bool) {
            guard failure == nil else { return }
            BTSnoop.append(packet, isReceived: isReceived, microseconds: Self.microseconds, to: &buffer)
        }

        /// Adds what the monitor channel says, for a file with its header.
        mutating func addMonitored(_ message: RawSpan, only adapter: UInt16?) -> BTSnoop.MonitorOutcome {
            guard failure == nil else { return .passedOver }
            return BTSnoop.appendMonitor(message, microseconds: Self.microseconds, only: adapter, to: &buffer)
        }

        private static var microseconds: Int64 {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000
        }

        /// Writes the added packets. A full disk ends the capture, not the connection.
        mutating func flush() {
            guard !buffer.isEmpty else { return }
            var start = 0
            while start < buffer.count, failure == nil {
                let written = buffer.withUnsafeBytes {
                    write(descriptor, $0.baseAddress.map { $0 + start }, $0.count - start)
                }
                if written > 0 {
                    start += written
                } else if errno != EINTR {
                    writing = .failed(String(cString: strerror(errno)))
                }
            }
            // Half a record would make it a file that is damaged.
            if failure == nil { length += buffer.count } else { ftruncate(descriptor, off_t(length)) }
            buffer.removeAll(keepingCapacity: true)
        }
    }
#endif
