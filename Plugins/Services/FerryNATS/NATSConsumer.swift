#if NATS
    import CNATS
    public import Ferry
    import Synchronization

    /// Reads a stream: each message comes again until it is acknowledged, also to the next process under the same name.
    ///
    ///     let consumer = try await NATSConsumer.open("ferry", subject: "ferry.records.>", name: "table", on: connection)
    ///     for delivery in try await consumer.take(atMost: 100, within: .seconds(5)) {
    ///         // write delivery.message under its Nats-Msg-Id
    ///         try await consumer.acknowledge(delivery)
    ///     }
    public final class NATSConsumer: Sendable {
        /// A message as it came out of a stream.
        public struct Delivery: Sendable {
            /// The message.
            public let message: NATSMessage
            /// Its place in the stream.
            public let sequence: UInt64
            fileprivate let raw: NATSDelivered
        }

        private let connection: NATSConnection
        private let subscription: NATSSubscription
        private let raw: NATSPull

        private init(_ connection: NATSConnection, _ subscription: NATSSubscription, _ raw: NATSPull) {
            (self.connection, self.subscription, self.raw) = (connection, subscription, raw)
        }

        /// Opens a durable consumer that pulls, and makes it where there is none.
        ///
        /// - Parameters:
        ///   - stream: the stream's name.
        ///   - subject: what to read of it, with wildcards.
        ///   - name: letters, digits, `-` and `_`; the server keeps the acknowledged messages under it.
        ///   - connection: what it goes over.
        /// - Throws: `natsNotFound`, `natsNotReady`, `invalidConfiguration`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public static func open(
            _ stream: String, subject: String, name: String, on connection: NATSConnection
        ) async throws(FerryError) -> NATSConsumer {
            let (subscription, raw) = try await connection.perform { handle throws(FerryError) in
                var code = jsErrCode(0)
                var made: OpaquePointer?
                let status = stream.withCString { stream in
                    var options = jsSubOptions()
                    jsSubOptions_Init(&options)
                    options.Stream = stream
                    return js_PullSubscribe(&made, handle.jetStream, subject, name, nil, &options, &code)
                }
                try require(status, code, "Consumer \(name) of stream \(stream) cannot be opened")
                return (NATSSubscription(made), NATSPull(made))
            }
            return NATSConsumer(connection, subscription, raw)
        }

        /// The next messages, in the stream's order; none when none came in time.
        ///
        /// - Parameters:
        ///   - count: the most messages to take, 1 to 10 000.
        ///   - patience: how long to wait for the first.
        /// - Throws: `natsNotReady`, `closed`, `natsNoServer`, `natsFailed`.
        public func take(atMost count: Int, within patience: Duration) async throws(FerryError) -> [Delivery] {
            let raw = raw
            return try await connection.perform { _ throws(FerryError) in
                var list = natsMsgList()
                var code = jsErrCode(0)
                let status = natsSubscription_Fetch(
                    &list, raw.raw, Int32(clamping: max(1, min(10_000, count))), patience.milliseconds, &code)
                guard status != NATS_TIMEOUT else { return [] }
                try require(status, code, "Messages cannot be read from the stream")
                defer { natsMsgList_Destroy(&list) }
                var deliveries: [Delivery] = []
                for index in 0..<Int(list.Count) {
                    guard let message = list.Msgs?[index] else { continue }
                    // Taken out of the list, which destroys its messages.
                    list.Msgs?[index] = nil
                    deliveries.append(
                        Delivery(
                            message: NATSMessage(message), sequence: Self.sequence(message),
                            raw: NATSDelivered(message)))
                }
                return deliveries
            }
        }

        private static func sequence(_ message: OpaquePointer) -> UInt64 {
            var details: UnsafeMutablePointer<jsMsgMetaData>?
            guard natsMsg_GetMetaData(&details, message) == NATS_OK, let details else { return 0 }
            defer { jsMsgMetaData_Destroy(details) }
            return details.pointee.Sequence.Stream
        }

        /// The message is dealt with, and does not come again.
        ///
        /// - Throws: `closed`, `natsNoServer`, `natsFailed`.
        public func acknowledge(_ delivery: Delivery) async throws(FerryError) {
            try await connection.perform { _ throws(FerryError) in
                try require(natsMsg_Ack(delivery.raw.raw, nil), "A message cannot be acknowledged")
            }
        }
    }

    /// libnats' subscription of a consumer; its owner ends it.
    private struct NATSPull: @unchecked Sendable {
        let raw: OpaquePointer?
        init(_ raw: OpaquePointer?) { self.raw = raw }
    }

    /// libnats' message, until its last reference is released.
    private final class NATSDelivered: @unchecked Sendable {
        let raw: OpaquePointer
        init(_ raw: OpaquePointer) { self.raw = raw }
        deinit { natsMsg_Destroy(raw) }
    }
#endif
