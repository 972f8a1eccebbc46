#if NATS
    import CNATS
    import Dispatch
    import Ferry
    import Synchronization

    /// A subscription of the library's, ended once.
    final class NATSSubscription: @unchecked Sendable {
        private let raw: OpaquePointer?
        private let closure: UnsafeMutableRawPointer?
        private let isOver = Mutex(false)

        /// Who is told of its messages: of those together that have come together, for threads wake to take each burst further, and
        /// one of libnats' own to let go of it.
        private final class Listener: @unchecked Sendable {
            private static let most = 128
            private let hear: @Sendable ([OpaquePointer]) -> Void
            // On the library's one thread for a subscription only.
            private var burst: [OpaquePointer] = []
            /// How many are known to wait behind the last.
            private var behind = 0

            init(_ hear: @escaping @Sendable ([OpaquePointer]) -> Void) { self.hear = hear }

            func take(_ message: OpaquePointer, _ subscription: OpaquePointer?) {
                burst.append(message)
                if behind > 0 {
                    behind -= 1
                } else {
                    var count: Int32 = 0
                    behind = natsSubscription_GetPending(subscription, &count, nil) == NATS_OK ? Int(count) : 0
                }
                guard behind == 0 || burst.count == Self.most else { return }
                hear(burst)
                letGo()
            }

            private func letGo() {
                for message in burst { natsMsg_Destroy(message) }
                burst.removeAll(keepingCapacity: true)
            }

            deinit { letGo() }
        }

        init(_ raw: OpaquePointer?, _ closure: UnsafeMutableRawPointer? = nil) {
            self.raw = raw
            self.closure = closure
        }

        /// Listens to a subject.
        ///
        /// - Parameters:
        ///   - what: what fails, as the beginning of an error's sentence.
        ///   - hear: takes messages in their order, which last as long as the call, on a thread of the library's: it must not block.
        convenience init(
            _ handle: NATSHandle, to subject: String, _ what: @autoclosure () -> String,
            hear: @escaping @Sendable ([OpaquePointer]) -> Void
        ) throws(FerryError) {
            try self.init(hear, what()) { raw, closure in
                natsConnection_Subscribe(&raw, handle.connection, subject, Self.onMessage, closure)
            }
        }

        /// Follows subjects of a stream with an ordered consumer.
        ///
        /// - Parameters:
        ///   - sequence: the place of the stream after which it begins.
        ///   - hear: as above.
        convenience init(
            _ handle: NATSHandle, following subject: String, after sequence: UInt64, in stream: String,
            hear: @escaping @Sendable ([OpaquePointer]) -> Void
        ) throws(FerryError) {
            try self.init(hear, "The messages of \(subject) in stream \(stream) cannot be followed") { raw, closure in
                var code = jsErrCode(0)
                var requests = handle.options
                return stream.withCString { stream in
                    var options = jsSubOptions()
                    jsSubOptions_Init(&options)
                    options.Stream = stream
                    options.Ordered = true
                    options.Config.DeliverPolicy = js_DeliverByStartSequence
                    options.Config.OptStartSeq = sequence + 1
                    return js_Subscribe(
                        &raw, handle.jetStream, subject, Self.onMessage, closure, &requests, &options, &code)
                }
            }
        }

        private static let onMessage: natsMsgHandler = { _, subscription, message, closure in
            guard let message, let listener: Listener = Registry.find(closure) else { return natsMsg_Destroy(message) }
            listener.take(message, subscription)
        }

        private convenience init(
            _ hear: @escaping @Sendable ([OpaquePointer]) -> Void, _ what: @autoclosure () -> String,
            _ subscribe: (inout OpaquePointer?, UnsafeMutableRawPointer?) -> natsStatus
        ) throws(FerryError) {
            var raw: OpaquePointer?
            let closure = Registry.add(Listener(hear))
            let status = subscribe(&raw, closure)
            if status != NATS_OK { Registry.remove(closure) }
            try require(status, what())
            self.init(raw, closure)
        }

        func end() {
            let isFirst = isOver.withLock { isOver in
                defer { isOver = true }
                return !isOver
            }
            guard isFirst else { return }
            Registry.remove(closure)
            // libnats holds its lock while it connects and writes; a task's thread is not to wait for that.
            let raw = Raw(raw)
            Self.queue.async { natsSubscription_Destroy(raw.pointer) }
        }

        private struct Raw: @unchecked Sendable {
            let pointer: OpaquePointer?
            init(_ pointer: OpaquePointer?) { self.pointer = pointer }
        }

        private static let queue = DispatchQueue(label: "ferry.nats.subscriptions")

        deinit { end() }
    }
#endif
