#if HCI
    import BluetoothHost
    public import FerryBluetooth
    import Foundation
    import NIOCore
    import NIOPosix
    import Synchronization

    /// Records the packets between Linux and its Bluetooth adapters, for every user of them: the kernel's own host,
    /// bluetoothd or programs with a user channel. It only listens: it sends nothing and disturbs no program.
    ///
    /// The source is the kernel's monitor channel (`HCI_CHANNEL_MONITOR`), which sees every adapter and needs CAP_NET_RAW.
    /// Packets have the time at which they were read. Under more traffic than is read in time the kernel drops messages.
    public final class HCIMonitor: Sendable {
        /// The adapters to record.
        public enum Source: Sendable, Hashable, CustomStringConvertible {
            /// All adapters.
            case all
            /// The adapter with this number, and messages about none.
            case adapter(UInt16)

            /// What ``init(_:)`` reads, for messages.
            public static let forms = ["hci:monitor", "hci:monitor:NUMBER"]

            /// Reads `hci:monitor`, for all adapters, or `hci:monitor:NUMBER`.
            ///
            /// - Throws: `invalidArgument` with the defect and the accepted forms.
            public init(_ specification: String) throws(BluetoothError) {
                let parts = specification.split(separator: ":", omittingEmptySubsequences: false)
                guard parts.count == 2 || parts.count == 3, parts[0] == "hci", parts[1] == "monitor" else {
                    throw Self.error(specification)
                }
                guard parts.count == 3 else {
                    self = .all
                    return
                }
                guard let number = UInt16(parts[2]), number < .max else { throw Self.error(specification) }
                self = .adapter(number)
            }

            private static func error(_ specification: String) -> BluetoothError {
                BluetoothError(
                    .invalidArgument,
                    "\"\(specification)\" cannot be listened to. Use hci:monitor for all adapters of this machine, or "
                        + "hci:monitor:NUMBER for one.")
            }

            /// The specification it can be made from.
            public var description: String {
                switch self {
                case .all: "hci:monitor"
                case .adapter(let number): "hci:monitor:\(number)"
                }
            }

            fileprivate var number: UInt16? { if case .adapter(let number) = self { number } else { nil } }
        }

        /// Packets of each adapter that have been recorded so far.
        public var packetCounts: [UInt16: Int] { state.withLock { $0.counts } }
        /// What ended the recording before its time: the disk, or the kernel; nil while all is well.
        public var failure: String? { state.withLock { $0.failure } }

        private let state: Mutex<State>

        private struct State: ~Copyable {
            var file: CaptureFile
            let adapter: UInt16?
            var counts: [UInt16: Int] = [:]
            var failure: String?
            var channel: (any Channel)?
        }

        private init(_ file: consuming CaptureFile, _ adapter: UInt16?) {
            state = Mutex(State(file: file, adapter: adapter))
        }

        /// Begins to record.
        ///
        /// - Parameters:
        ///   - source: which adapters.
        ///   - path: the file, in place of one that is there; btsnoop, which Wireshark and btmon read. Keys and everything that
        ///     is sent can be read in it, so it is made for its owner only.
        /// - Throws: `invalidArgument` when the file cannot be made; `notPoweredOn` with the reason when there is no
        ///   monitor channel or the permission for it is missing.
        public static func start(_ source: Source, to path: String) async throws(BluetoothError) -> HCIMonitor {
            let descriptor = try MonitorChannel.open()
            let monitor: HCIMonitor
            do throws(BluetoothError) {
                monitor = HCIMonitor(try CaptureFile(path: path, header: BTSnoop.monitorHeader), source.number)
            } catch {
                close(descriptor)
                throw error
            }
            do {
                // A message that does not fit what it is read into loses its end: 65 535 octets and a header.
                let channel = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 65_541))
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(MonitorHandler(monitor))
                        }
                    }
                    .takingOwnershipOfDescriptor(input: descriptor).get()
                monitor.state.withLock { $0.channel = channel }
            } catch {
                close(descriptor)
                throw BluetoothError(.notPoweredOn, "The monitor channel cannot be read: \(error).")
            }
            return monitor
        }

        /// Ends the recording; the recorded packets are in the file.
        public func stop() async {
            let channel = state.withLock { $0.channel.take() }
            try? await channel?.close()
        }

        // MARK: On the event loop

        fileprivate func receive(_ message: RawSpan) {
            state.withLock { state in
                guard state.failure == nil else { return }
                switch state.file.addMonitored(message, only: state.adapter) {
                case .appended(let index?): state.counts[index, default: 0] += 1
                case .appended(nil), .passedOver, .malformed: break
                }
            }
        }

        fileprivate func didRead() {
            state.withLock { state in
                state.file.flush()
                if state.failure == nil, let why = state.file.failure {
                    state.failure = "The file cannot be written any more: \(why)."
                }
            }
        }

        fileprivate func didFail(_ why: String) { state.withLock { $0.failure = $0.failure ?? why } }
    }

    /// Hands messages to the monitor; each read is one.
    private final class MonitorHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let monitor: HCIMonitor

        init(_ monitor: HCIMonitor) { self.monitor = monitor }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            unwrapInboundIn(data).withUnsafeReadableBytes { monitor.receive(RawSpan(_unsafeBytes: $0)) }
        }

        func channelReadComplete(context: ChannelHandlerContext) { monitor.didRead() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            monitor.didFail("The monitor channel cannot be read any more: \(error).")
            context.close(promise: nil)
        }
    }
#endif
