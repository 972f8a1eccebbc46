#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import NIOCore
    import Synchronization

    /// The thin shell round the host: packets in and out through one NIO channel, the time, and events to their owners.
    ///
    /// Owners' calls change the host under the lock and leave the rest to the event loop; events are delivered there, one
    /// at a time and without the lock.
    final class HCIEngine: Sendable {
        let name: String
        let state: Mutex<EngineState>
        let pairing: HCIPairing?
        /// The static random address's value.
        let address: UInt64
        /// The key of its private addresses, where they change or did.
        let resolvingKey: [UInt8]?
        private let log: (@Sendable (String) -> Void)?
        private let onCaptureFailure: (@Sendable (String) -> Void)?

        init(
            name: String, _ configuration: HostConfiguration, resolvingKey: [UInt8]? = nil, _ options: HCIConfiguration
        ) {
            self.name = name
            pairing = options.pairing
            address = configuration.address.value
            self.resolvingKey = resolvingKey
            log = options.log
            onCaptureFailure = options.onCaptureFailure
            state = Mutex(EngineState(name, LEHost(configuration)))
        }

        /// For people who look for a fault.
        func note(_ text: String) { log?("\(name): \(text)") }

        static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

        /// Changes the host and sees to it that what follows is sent and delivered. What happens before the event loop comes
        /// to it happens at one time: to read the clock for each value costs more than to queue it.
        func change<Value: Sendable>(
            _ body: (inout EngineState, Int64) throws(BluetoothError) -> Value
        ) throws(BluetoothError) -> Value {
            var loop: (any EventLoop)?
            defer { loop?.execute { self.pump() } }
            return try state.withLock { state throws(BluetoothError) in
                if !state.isPumpScheduled {
                    state.now = Self.now
                    if let channel = state.channel {
                        state.isPumpScheduled = true
                        loop = channel.eventLoop
                    }
                }
                return try body(&state, state.now)
            }
        }

        /// Calls `body` on the event loop, between events.
        func deliver(_ body: @escaping @Sendable () -> Void) {
            switch state.withLock({ $0.line }) {
            case .open(let channel), .lost(let channel): channel.eventLoop.execute(body)
            case .none: break
            }
        }

        func waitUntilReady() async throws(BluetoothError) {
            let waiter = Waiter<Void>()
            let isReady = try state.withLock { state throws(BluetoothError) in
                switch state.host.state {
                case .ready: return true
                case .failed(let why): throw BluetoothError(.notPoweredOn, why)
                default:
                    state.startWaiters.append(waiter)
                    return false
                }
            }
            if !isReady { try await waiter.wait() }
        }

        /// Ends the connections first, so that no peer has to wait for its supervision timeout; a controller that does not
        /// answer gets a second.
        func close() {
            let channel = state.withLock { state in
                state.use = .closing
                for id in state.links.keys { state.disconnect(id, at: Self.now) }
                return state.channel
            }
            guard let channel else { return }
            channel.eventLoop.execute {
                self.pump()
                self.closeOnceAlone()
            }
            channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
        }

        /// Closes the channel when that is wanted and no connection is left.
        func closeOnceAlone() {
            let channel = state.withLock { $0.use == .closing && $0.links.isEmpty ? $0.channel : nil }
            channel?.close(promise: nil)
        }

        /// The last reference to the adapter is gone: closes once no role is open.
        func abandon() {
            state.withLock { if $0.use == .held { $0.use = .abandoned } }
            closeIfUnused()
        }

        func closeIfUnused() {
            let isUnused = state.withLock { $0.use == .abandoned && $0.peripherals.isEmpty && $0.centrals.isEmpty }
            if isUnused { close() }
        }

        // MARK: On the event loop

        func channelDidOpen(_ channel: any Channel) {
            state.withLock { state in
                state.line = .open(channel)
                state.isPumpScheduled = true
                state.host.start(at: Self.now)
            }
            pump()
        }

        func channelDidClose(_ why: String) {
            state.withLock { state in
                guard let channel = state.channel else { return }
                state.line = .lost(channel)
                let cause = state.use == .closing ? "this side has closed the channel" : why
                state.host.controllerWasLost("\(name): \(cause)", at: Self.now)
            }
            deliverEvents()
        }

        func receive(_ buffer: ByteBuffer) {
            let error = buffer.withUnsafeReadableBytes { bytes in
                state.withLock { state -> H4StreamError? in
                    let now = Self.now
                    var splitter = H4Splitter()
                    swap(&splitter, &state.splitter)
                    defer { swap(&splitter, &state.splitter) }
                    do throws(H4StreamError) {
                        try splitter.feed(RawSpan(_unsafeBytes: bytes)) { _, packet in
                            state.capture?.add(packet, isReceived: true)
                            state.host.receive(packet, at: now)
                        }
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            pump()
            if let error {
                let channel = state.withLock { $0.channel }
                channelDidClose(error.description)
                channel?.close(promise: nil)
            }
        }

        /// Sends packets and delivers events, until none is left.
        private func pump() {
            repeat {
                let (channel, bytes, complaint) = state.withLock { state -> ((any Channel)?, ByteBuffer?, String?) in
                    state.isPumpScheduled = true
                    let now = Self.now
                    state.now = now
                    if let deadline = state.host.deadline, deadline <= now { state.host.wake(at: now) }
                    var output: [UInt8] = []
                    swap(&output, &state.output)
                    defer { swap(&output, &state.output) }
                    output.removeAll(keepingCapacity: true)
                    var start = 0
                    while state.host.nextPacket(into: &output, at: now) {
                        state.capture?.add(output.span.bytes.extracting(start..<output.count), isReceived: false)
                        start = output.count
                    }
                    state.capture?.flush()
                    let complaint = state.capture?.takeComplaint()
                    guard let channel = state.channel, !output.isEmpty else { return (state.channel, nil, complaint) }
                    return (channel, channel.allocator.buffer(bytes: output), complaint)
                }
                if let complaint { onCaptureFailure?(complaint) }
                if let channel, let bytes { channel.writeAndFlush(bytes, promise: nil) }
            } while deliverEvents()
            armTimer()
        }

        /// Delivers events; returns whether there was one, for it may have led to more.
        @discardableResult
        private func deliverEvents() -> Bool {
            var batch = EventBatch()
            state.withLock { state in
                swap(&batch, &state.batch)
                state.host.swapEvents(&batch)
            }
            let hadEvents = !batch.isEmpty
            for event in batch.events { dispatch(event, batch) }
            state.withLock { swap(&batch, &$0.batch) }
            return hadEvents
        }

        private func armTimer() {
            state.withLock { state in
                state.isPumpScheduled = false
                guard let loop = state.channel?.eventLoop, let deadline = state.host.deadline,
                    deadline < state.timer?.deadline ?? .max
                else { return }
                state.timer?.scheduled.cancel()
                let scheduled = loop.scheduleTask(deadline: .uptimeNanoseconds(UInt64(clamping: deadline))) {
                    self.state.withLock { $0.timer = nil }
                    self.pump()
                }
                state.timer = (scheduled, deadline)
            }
        }
    }

    /// Hands the stream to the engine.
    final class HCIStreamHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let engine: HCIEngine

        init(_ engine: HCIEngine) { self.engine = engine }

        func channelActive(context: ChannelHandlerContext) { engine.channelDidOpen(context.channel) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { engine.receive(unwrapInboundIn(data)) }

        func channelInactive(context: ChannelHandlerContext) {
            engine.channelDidClose("the controller closed the channel")
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            engine.channelDidClose("\(error)")
            context.close(promise: nil)
        }
    }
#endif
